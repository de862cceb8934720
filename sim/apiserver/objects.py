"""Objects as JSON data. What is stored is shared between readers, so it is never changed in place: writers copy."""

from typing import Any, TypeAlias, TypeGuard, cast

__all__ = ("Json", "Object", "as_list", "as_map", "copied", "dig", "is_list", "is_map", "mapping", "maps")

Json: TypeAlias = Any
"""What JSON can say: dict with string keys, list, str, int, float, bool, None."""
Object: TypeAlias = dict[str, Any]
"""A JSON object: a whole Kubernetes object or a part of one."""

_DEEP = (dict, list)


def as_map(value: Any) -> Object | None:
    """The value if it is a JSON object."""
    return cast("Object", value) if isinstance(value, dict) else None


def as_list(value: Any) -> list[Any] | None:
    """The value if it is a list."""
    return cast("list[Any]", value) if isinstance(value, list) else None


def copied(value: Any) -> Any:
    """A deep copy of JSON data (much faster than copy.deepcopy)."""
    if isinstance(value, dict):
        return {k: copied(v) if isinstance(v, _DEEP) else v for k, v in cast("Object", value).items()}
    if isinstance(value, list):
        return [copied(v) if isinstance(v, _DEEP) else v for v in cast("list[Any]", value)]
    return value


def dig(obj: Object, *path: str) -> Any:
    """The value at a path of map keys, None where any part is missing or no map."""
    value: Any = obj
    for key in path:
        fields = as_map(value)
        if fields is None:
            return None
        value = fields.get(key)
    return value


def mapping(obj: Object, *path: str) -> Object:
    """The map at a path, empty where it is missing or null."""
    return dig(obj, *path) or {}


def maps(obj: Object, *path: str) -> list[Object]:
    """The list of maps at a path, empty where it is missing or null."""
    return dig(obj, *path) or []


def is_map(value: Any) -> TypeGuard[Object]:
    """JSON object, in a form that type checkers follow."""
    return isinstance(value, dict)


def is_list(value: Any) -> TypeGuard[list[Any]]:
    """JSON array."""
    return isinstance(value, list)
