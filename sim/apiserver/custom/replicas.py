"""What the scale subresource asks of the objects of a custom resource, in whichever way they are written."""

from collections.abc import Iterator
from typing import Any

from api.fielderrors import FieldError, invalid
from sim.apiserver.objects import Object, as_map, is_list
from sim.apiserver.patches.failures import go_text
from sim.apiserver.resources import Scale

__all__ = ("scale_errors",)

MAX = 2**31 - 1


def scale_errors(obj: Object, scale: Scale | None, *, status_only: bool = False) -> Iterator[FieldError]:
    """Errors of replicas and selector, wherever the definition says that they are. `status_only`: the write was one of status."""
    if scale is None:
        return
    for path in (scale.status_replicas,) if status_only else (scale.spec_replicas, scale.status_replicas):
        yield from _replicas(obj, path)
    if scale.label_selector:
        value, problem = _found(obj, scale.label_selector, str)
        if problem:
            yield invalid(scale.label_selector, value or "", problem)


def _replicas(obj: Object, path: str) -> Iterator[FieldError]:
    value, problem = _found(obj, path, int)
    if problem:
        yield invalid(path, 0, problem)
    elif value is not None and value < 0:
        yield invalid(path, value, "should be a non-negative integer")
    elif value is not None and value > MAX:
        yield invalid(path, value, f"should be less than or equal to {MAX}")


def _found(obj: Object, path: str, wanted: type[int] | type[str]) -> tuple[Any, str]:
    """The value at a path, None where there is none, and why it cannot be read."""
    keys = path.removeprefix(".").split(".")
    value: Any = obj
    for at, key in enumerate(keys):
        if value is None:
            return None, ""
        fields = as_map(value)
        if fields is None:
            return None, _unreadable(keys[: at + 1], value, "map[string]interface{}")
        if key not in fields:
            return None, ""
        value = fields[key]
    if isinstance(value, bool) or not isinstance(value, wanted):
        return None, _unreadable(keys, value, "int64" if wanted is int else "string")
    return value, ""


def _unreadable(keys: list[str], value: Any, wanted: str) -> str:
    return f".{'.'.join(keys)} accessor error: {go_text(value)} is of the type {_go_type(value)}, expected {wanted}"


def _go_type(value: Any) -> str:
    if value is None:
        return "<nil>"
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, int | float):
        return "int64" if isinstance(value, int) else "float64"
    return "string" if isinstance(value, str) else "[]interface {}" if is_list(value) else "map[string]interface {}"
