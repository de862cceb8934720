"""The scale subresource: replicas of an object as a Scale of autoscaling/v1."""

from typing import Any

from api.fielderrors import invalid
from sim.apiserver import metadata as meta
from sim.apiserver.bodies import decoded
from sim.apiserver.fields.applying import applied
from sim.apiserver.fields.lazy import Ledger
from sim.apiserver.fields.managed import Managers, same, updated
from sim.apiserver.fields.scales import parent_managers, replicas_place, scale_managers
from sim.apiserver.fitting import APPLY, Patch, fitted, patch_kind, patch_of
from sim.apiserver.objects import Object, as_map, copied, dig
from sim.apiserver.patches import read_config
from sim.apiserver.patching import RETRIES, Patcher, check_identity, check_kind
from sim.apiserver.requests import Request
from sim.apiserver.resources import Resource, Scale, Version
from sim.apiserver.schema.builtin import raw_document
from sim.apiserver.schema.openapi import compile_openapi
from sim.apiserver.status import StatusError, not_found
from sim.apiserver.status import invalid as invalid_status
from sim.apiserver.storage import Entry
from sim.apiserver.writes import Result, Work, Writer

__all__ = ("Scaler", "scale_of")

API_VERSION = "autoscaling/v1"
SCHEMA = compile_openapi("io.k8s.api.autoscaling.v1.Scale", raw_document("apps", "v1"))
SCALE = Resource("autoscaling", "scales", "Scale", (Version("v1", SCHEMA),), "v1")
"""Only to decode and check what is sent."""


def scale_of(obj: Object, scale: Scale, resource: Resource) -> Object:
    """The Scale of an object. Raises StatusError 404 where a custom resource has no replicas."""
    replicas = _read(obj, scale.spec_replicas)
    if replicas is None and resource.is_custom:
        name = obj["metadata"]["name"]
        raise not_found(resource.group, f"{resource.plural}/scale", name)
    kept = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")
    metadata = {key: obj["metadata"][key] for key in kept if key in obj["metadata"]}
    status: Object = {"replicas": _read(obj, scale.status_replicas) or 0}
    if selector := _selector(_read(obj, scale.label_selector) if scale.label_selector else None):
        status["selector"] = selector
    spec = {"replicas": replicas} if replicas else {}
    return {"kind": "Scale", "apiVersion": API_VERSION, "metadata": metadata, "spec": spec, "status": status}


class Scaler:
    """Carries out PUT and PATCH of Scales."""

    def __init__(self, writer: Writer, patcher: Patcher) -> None:
        self._writer = writer
        self._patcher = patcher

    async def write(self, work: Work, request: Request) -> Result:
        """Raises StatusError 400, 404, 409, 415 or 422."""
        scale = work.version.scale
        assert scale is not None  # noqa: S101 - the resource has this subresource
        is_patch = request.method == "PATCH"
        kind = patch_kind(request, work.resource) if is_patch else ""
        patch = patch_of(request, kind) if is_patch and kind != APPLY else None

        async def change(old: Entry) -> tuple[Object, Ledger | None]:
            current = await self._patcher.current(work, old)
            shown = scale_of(current, scale, work.resource)
            managers, places = old.ledger.managers(work.version.schema), places_of(work.resource)
            before = scale_managers(managers, places, API_VERSION)
            if kind == APPLY:
                wanted, after = _applied(work, request, shown, before)
            else:
                wanted = _written(work, request, shown, patch)
                after = _noted(work, shown, wanted, before)
            check_identity(work, wanted)
            owners = parent_managers(managers, after, places, work.resource.api_version(work.version.name))
            ledger = old.ledger if same(managers, owners) else Ledger(owners)
            return await self._patcher.converted(work, scaled(current, scale, wanted, work)), ledger

        return await self._writer.update(work, change, retries=RETRIES if is_patch else 0)


def places_of(resource: Resource) -> dict[str, Object | None]:
    """Where the versions of a resource have their replicas."""
    return {resource.api_version(v.name): None if v.scale is None else replicas_place(v.scale.spec_replicas) for v in resource.versions}


def _written(work: Work, request: Request, shown: Object, patch: Patch | None) -> Object:
    """The Scale that a PUT or a patch asks for."""
    validation, version = work.options.validation, SCALE.versions[0]
    if patch is None:
        wanted, work.warnings = decoded(request, SCALE, version, validation)
    else:
        wanted, work.warnings = fitted(patch, shown, SCALE, version, validation)
    return wanted


def _applied(work: Work, request: Request, shown: Object, before: Managers) -> tuple[Object, Managers]:
    config, _ = read_config(request.body)
    check_kind(config, SCALE.kind, API_VERSION)
    if work.resource.is_custom:
        # The real server looks for this version among those of the custom resource.
        named = f"{dig(config, 'metadata', 'namespace') or ''}/{dig(config, 'metadata', 'name') or ''}; {API_VERSION}, Kind={SCALE.kind}"
        problem = f"request to convert CR to an invalid group/version: {API_VERSION}"
        raise StatusError(500, "", f"failed to convert new object ({named}) to proper version: {problem}")
    force, now = bool(work.options.force), meta.timestamp(work.ctx.now)
    return applied(
        before, shown, config, SCHEMA, manager=work.author.manager, force=force, subresource="scale", api_version=API_VERSION, now=now
    )


def _noted(work: Work, shown: Object, wanted: Object, before: Managers) -> Managers:
    """Owners after an update. Only the replicas count."""
    new: Object = {**shown, "spec": wanted.get("spec") or {}}
    now = meta.timestamp(work.ctx.now)
    return updated(before, shown, new, SCHEMA, manager=work.author.manager, subresource="scale", api_version=API_VERSION, now=now)


def scaled(obj: Object, scale: Scale, wanted: Object, work: Work) -> Object:
    """A private copy of the object with the replicas of a Scale, and its resourceVersion and uid as preconditions."""
    name = work.key.name
    metadata: Object = wanted.get("metadata") or {}
    spec: Object = wanted.get("spec") or {}
    replicas = spec.get("replicas") or 0
    if replicas < 0 and not work.resource.is_custom:
        raise invalid_status("autoscaling", "Scale", name, [invalid("spec.replicas", replicas, "must be greater than or equal to 0")])
    out = copied(obj)
    for key in ("resourceVersion", "uid"):
        if metadata.get(key):
            out["metadata"][key] = metadata[key]
    if not metadata.get("resourceVersion"):
        out["metadata"].pop("resourceVersion", None)
    *path, last = scale.spec_replicas.lstrip(".").split(".")
    place = out
    for part in path:
        place = place.setdefault(part, {})
    place[last] = replicas
    return out


def _read(obj: Object, path: str) -> Any:
    return dig(obj, *path.lstrip(".").split("."))


def _selector(value: Any) -> str:
    """A selector as text: custom resources hold the text, built-in kinds a map or a LabelSelector."""
    fields = as_map(value)
    if fields is None:
        return value or ""
    labels: Object = fields.get("matchLabels") or {}
    if "matchLabels" not in fields and "matchExpressions" not in fields:
        labels = fields
    parts = [f"{key}={labels[key]}" for key in labels]
    expressions: list[Object] = fields.get("matchExpressions") or []
    for expression in expressions:
        key, operator = expression["key"], expression["operator"]
        values = ",".join(sorted(expression.get("values") or []))
        shown = {"In": f"{key} in ({values})", "NotIn": f"{key} notin ({values})", "Exists": key, "DoesNotExist": f"!{key}"}
        parts.append(shown.get(operator, ""))
    return ",".join(sorted(parts))
