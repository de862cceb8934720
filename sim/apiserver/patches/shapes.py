"""Whether JSON data is a map or a list, in a form that type checkers follow."""

from typing import Any, TypeGuard

from sim.apiserver.objects import Object

__all__ = ("is_list", "is_map")


def is_map(value: Any) -> TypeGuard[Object]:
    """JSON object."""
    return isinstance(value, dict)


def is_list(value: Any) -> TypeGuard[list[Any]]:
    """JSON array."""
    return isinstance(value, list)
