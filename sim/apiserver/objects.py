"""Objects as JSON data. What is stored is shared between readers, so it is never changed in place: writers copy."""

from typing import Any, TypeAlias

__all__ = ("Json", "Object", "copied", "dig")

Json: TypeAlias = Any
"""What JSON can say: dict with string keys, list, str, int, float, bool, None."""
Object: TypeAlias = dict[str, Any]
"""A JSON object: a whole Kubernetes object or a part of one."""

_DEEP = (dict, list)


def copied(value: Any) -> Any:
    """A deep copy of JSON data (much faster than copy.deepcopy)."""
    if isinstance(value, dict):
        fields: Object = value
        return {k: copied(v) if isinstance(v, _DEEP) else v for k, v in fields.items()}
    if isinstance(value, list):
        items: list[Any] = value
        return [copied(v) if isinstance(v, _DEEP) else v for v in items]
    return value


def dig(obj: Object, *path: str) -> Any:
    """The value at a path of map keys, None where any part is missing or no map."""
    here: Object | None = obj
    value: Any = obj
    for key in path:
        if here is None:
            return None
        value = here.get(key)
        here = value if isinstance(value, dict) else None
    return value
