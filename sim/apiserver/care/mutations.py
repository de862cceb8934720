"""What a mutating webhook's answer makes of an object."""

from typing import Any

from sim.apiserver.care.reviews import Response, internal
from sim.apiserver.objects import Object, as_map, copied, dig
from sim.apiserver.patches import json_patch
from sim.apiserver.resources import Scale
from sim.apiserver.schema.check import type_errors
from sim.apiserver.schema.fields import fill_defaults, prune
from sim.apiserver.schema.model import Schema
from sim.apiserver.schema.normal import normalize
from sim.apiserver.status import StatusError
from sim.apiserver.versions import Converter
from sim.apiserver.writes import Attributes

__all__ = ("mutated",)

PATCH_TYPE = "JSONPatch"


async def mutated(
    hook: str, response: Response, obj: Object | None, shown: Object | None, attributes: Attributes, converter: Converter
) -> Object | None:
    """The object of the pipeline after the patch, a private copy; None where nothing changed. `shown`: as the webhook saw it.

    Raises StatusError 500 for a patch that does not fit.
    """
    if not response.patch:
        return None
    if response.patch_type != PATCH_TYPE:
        raise internal(f'failed calling webhook "{hook}": unsupported patch type "{response.patch_type}"')
    if obj is None or shown is None:
        raise internal(f'admission webhook "{hook}" attempted to modify the object, which is not supported for this operation')
    patched = copied(_patched(shown, response.patch))
    if patched == shown:
        return None
    resource, version = attributes.resource, attributes.version
    if attributes.subresource == "scale" and version.scale is not None:
        return _rescaled(obj, version.scale, patched)
    if patched.get("kind") != shown["kind"]:
        found = f"{str(patched.get('apiVersion')).rpartition('/')[2]}.{patched.get('kind')}"
        wanted = f"{resource.group.partition('.')[0] or 'core'}.{shown['kind']}"
        raise StatusError(500, "", f"converting ({found}) to ({wanted}): unknown conversion")
    if shown["kind"] != resource.kind:
        return patched
    patched = copied(await converter.convert(resource, patched, obj["apiVersion"]))
    _check(patched, _schema(attributes, patched), attributes)
    return patched


def _rescaled(obj: Object, scale: Scale, patched: Object) -> Object:
    """The object with the replicas of a Scale."""
    out = place = copied(obj)
    *path, last = scale.spec_replicas.lstrip(".").split(".")
    for part in path:
        place = place.setdefault(part, {})
    place[last] = dig(patched, "spec", "replicas") or 0
    return out


def _patched(obj: Object, operations: list[Any]) -> Object:
    for operation in operations:
        try:
            obj = json_patch(obj, [operation])
        except StatusError:
            raise internal(_complaint(operation, obj)) from None
    return obj


def _complaint(operation: Any, obj: Object) -> str:
    """The words of the real library for an operation that does not fit."""
    fields = as_map(operation) or {}
    kind, path = fields.get("op"), str(fields.get("path", ""))
    match kind:
        case "test":
            return f"testing value {path} failed: test failed"
        case "remove" if _has_container(obj, path):
            return f"error in remove for path: '{path}': Unable to remove nonexistent key: {path.rpartition('/')[2]}: missing value"
        case "add" | "remove" | "replace":
            return f'{kind} operation does not apply: doc is missing path: "{path}": missing value'
        case "copy" | "move":
            return f"{kind} operation does not apply: doc is missing from path: {fields.get('from')}: missing value"
        case _:
            return f"Unexpected kind: {kind or 'unknown'}"


def _has_container(obj: Object, path: str) -> bool:
    container = path.rpartition("/")[0]
    try:
        json_patch(obj, [{"op": "copy", "from": container, "path": "/metadata"}])
    except StatusError:
        return False
    return True


def _schema(attributes: Attributes, obj: Object) -> Schema:
    """Of the version of the pipeline: the client's for custom resources, the stored one for others."""
    resource, name = attributes.resource, obj["apiVersion"].rpartition("/")[2]
    return (attributes.version if resource.is_custom else resource.version(name) or attributes.version).schema


def _check(obj: Object, schema: Schema, attributes: Attributes) -> None:
    """What decoding and defaulting do to the patched object, in place."""
    resource = attributes.resource
    if problem := type_errors(obj, schema, resource.kind, obj["apiVersion"]):
        raise internal(problem.partition(f" cannot be handled as a {resource.kind}: ")[2] or problem)
    prune(obj, schema)
    if not resource.is_custom:
        normalize(obj, schema)
    fill_defaults(obj, schema)
    resource.strategy.default(obj)
