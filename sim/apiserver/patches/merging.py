"""JSON Merge Patch (RFC 7386)."""

from typing import Any

from sim.apiserver.objects import Json, Object, is_list, is_map
from sim.apiserver.patches.failures import json_type
from sim.apiserver.status import bad_request

__all__ = ("merge_patch", "without_nulls")


def merge_patch(obj: Json, patch: Json) -> Json:
    """The object merged with the patch; null deletes. `obj` itself stays, and what did not change is shared.

    Raises StatusError 400 for a patch that is no map.
    """
    if not is_map(patch):
        text = f"json: cannot unmarshal {json_type(patch)} into Go value of type map[string]interface {{}}"
        raise bad_request("Invalid JSON Patch" if patch is None else f"error decoding patch: {text}")
    return _merged(obj, patch)


def _merged(obj: Object, patch: Object) -> Object:
    out = dict(obj)
    for key, value in patch.items():
        if value is None:
            out.pop(key, None)
            continue
        current = out.get(key)
        if not is_map(current):
            out[key] = without_nulls(value)
        else:
            # A list in place of a map keeps the nulls in its maps; whoever decodes the object decides about them.
            out[key] = _merged(current, value) if is_map(value) else value
    return out


def without_nulls(value: Any) -> Any:
    """A copy without the null values of maps; null items of lists stay."""
    if is_map(value):
        fields: Object = value
        return {k: without_nulls(v) for k, v in fields.items() if v is not None}
    if is_list(value):
        items: list[Any] = value
        return [without_nulls(v) for v in items]
    return value
