"""From a patch and an object to an object of the right form, or to what is wrong with what the patch would leave."""

from dataclasses import dataclass
from typing import Any

import msgspec

from api.fielderrors import invalid
from sim.apiserver.bodies import media_type
from sim.apiserver.objects import Object, as_list, as_map, copied
from sim.apiserver.patches import json_patch, merge_patch, read_patch, strategic_patch
from sim.apiserver.patches.failures import go_text, json_type
from sim.apiserver.requests import MAX_BODY, Request
from sim.apiserver.resources import Resource, Version
from sim.apiserver.schema.builtin import schema_of
from sim.apiserver.schema.check import decode_problem, prune, strict_text, unknown_fields
from sim.apiserver.schema.decode import TYPE_META
from sim.apiserver.schema.normal import normalize
from sim.apiserver.schema.unstructured import unstructured_problem
from sim.apiserver.scheme import go_kind, is_registered, unregistered
from sim.apiserver.status import StatusError, too_large, unsupported_media_type
from sim.apiserver.status import invalid as invalid_status

__all__ = ("APPLY", "Patch", "fitted", "patch_kind", "patch_of")

JSON, MERGE, STRATEGIC, APPLY = (
    "application/json-patch+json",
    "application/merge-patch+json",
    "application/strategic-merge-patch+json",
    "application/apply-patch+yaml",
)


@dataclass(frozen=True, slots=True)
class Patch:
    """A patch as it was sent. `kind`: its media type; `duplicates`: complaints about keys that are there twice."""

    kind: str
    body: Any
    duplicates: list[str]

    @property
    def reads_managers(self) -> bool:
        """Whether what it does may depend on metadata.managedFields."""
        paths = [str(operation.get(name, "/")) for operation in _operations(self.body) for name in ("path", "from")]
        return any(path in ("", "/metadata") or path.startswith("/metadata/managedFields") for path in paths)


def _operations(body: Any) -> list[Object]:
    return [fields for item in as_list(body) or () if (fields := as_map(item)) is not None]


def patch_kind(request: Request, resource: Resource) -> str:
    """The media type of a patch. Raises StatusError 415."""
    kind = media_type(request.content_type)
    if resource.is_custom:
        allowed = (JSON, MERGE, APPLY)
        if kind not in allowed:
            listed = ", ".join(allowed)
            raise unsupported_media_type(f"the body of the request was in an unknown format - accepted media types include: {listed}")
    elif kind not in (JSON, MERGE, STRATEGIC, APPLY):
        raise unsupported_media_type("415: Unsupported Media Type", shows_details=True)
    return kind


def patch_of(request: Request, kind: str) -> Patch:
    """Raises StatusError 400 or 413."""
    if len(request.body) > MAX_BODY:
        raise too_large(f"limit is {MAX_BODY}")
    body, duplicates = read_patch(request.body, "" if kind == STRATEGIC else "error decoding patch: ")
    return Patch(kind, body, [] if kind == JSON else duplicates)


def fitted(
    patch: Patch,
    current: Object,
    resource: Resource,
    version: Version,
    validation: str,
) -> tuple[Object, list[str]]:
    """What the patch makes of an object, in the form of its schema, and warnings. `current` has that form; the parts of it that the patch
    leaves alone are shared, all others are new.

    Raises StatusError 400, 413, 422 or 500.
    """
    if patch.kind == JSON:
        obj = json_patch(current, patch.body)
    elif patch.kind == MERGE:
        obj = merge_patch(current, patch.body)
    else:
        obj = strategic_patch(current, patch.body if patch.body is not None else {}, version.schema)
    fields = as_map(obj)
    if fields is None:
        problem = f"json: cannot unmarshal {json_type(obj)} into Go value of type {TYPE_META}"
        raise _refused(patch, obj, f"couldn't get version/kind; json parse error: {problem}")
    if not resource.is_custom and patch.kind != STRATEGIC:
        if not fields.get("apiVersion"):
            return {}, []  # nothing is known of an object without version
        fields = {**fields, "kind": fields.get("kind") or resource.kind}
    changed: Object = {key: copied(value) for key, value in fields.items() if key not in current or value is not current[key]}
    if problem := _problem(fields, changed, resource, version, patch.kind):
        raise _refused(patch, obj, problem)
    warnings: list[str] = []
    if validation != "Ignore":
        warnings = unknown_fields(changed, version.schema, patch.duplicates)
        if warnings and validation == "Strict":
            raise _refused(patch, obj, strict_text(warnings))
    names = list(changed)
    prune(changed, version.schema)
    if not resource.is_custom:
        normalize(changed, version.schema)
    gone = {name for name in names if name not in changed}
    return {key: changed.get(key, value) for key, value in fields.items() if key not in gone}, warnings


def _problem(fields: Object, changed: Object, resource: Resource, version: Version, how: str) -> str:
    """Why a patched object, of which a part has changed, cannot be decoded; "" if it can be."""
    kind, api_version, wanted = fields.get("kind"), fields.get("apiVersion"), resource.api_version(version.name)
    if how == STRATEGIC:
        return unstructured_problem(changed, version.schema)
    if resource.is_custom:
        if not kind:
            return f"Object 'Kind' is missing in '{_text(fields)}'"
        if not api_version:
            problem = "Object 'apiVersion' is missing in 'object has no apiVersion field'"
            raise StatusError(500, "InternalError", f"Internal error occurred: {problem}", {"causes": [{"message": problem}]})
        if kind != resource.kind or api_version != wanted:
            field, have, want = ("kind", kind, resource.kind) if kind != resource.kind else ("apiVersion", api_version, wanted)
            name = (as_map(fields.get("metadata")) or {}).get("name") or ""
            raise invalid_status(resource.group, str(kind), name, [invalid(field, have, f"must be {want}")])
    elif (kind, api_version) != (resource.kind, wanted):
        return _other(fields, resource, str(kind), str(api_version))
    return decode_problem(changed, version.schema, resource.kind)


def _other(obj: Object, resource: Resource, kind: str, api_version: str) -> str:
    """Why an object that says that it is of another type cannot be one of this resource."""
    if not is_registered(api_version, kind, near=resource.group):
        return unregistered(api_version, kind)
    group, _, version = api_version.rpartition("/")
    have, want = go_kind(group, kind), go_kind(resource.group, resource.kind)
    problem = decode_problem(obj, schema_of(group, version, kind), kind)
    return problem or ("" if have == want else f"converting ({version}.{kind}) to ({want}): unknown conversion")


def _refused(patch: Patch, obj: Any, problem: str) -> StatusError:
    """The object that the patch would leave is shown as text, after a strategic patch the patch itself as Go prints it."""
    shown = go_text(patch.body) if patch.kind == STRATEGIC else _text(obj)
    return invalid_status("", "", "", [invalid("patch", shown, problem)])


def _text(obj: Any) -> str:
    return msgspec.json.encode(obj, order="sorted").decode()
