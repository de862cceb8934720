"""Parts of objects that may be missing or null, as what they then mean: an empty map or list."""

from sim.apiserver.objects import Object, dig

__all__ = ("mapping", "maps")


def mapping(obj: Object, *path: str) -> Object:
    """The map at a path."""
    return dig(obj, *path) or {}


def maps(obj: Object, *path: str) -> list[Object]:
    """The list of maps at a path."""
    return dig(obj, *path) or []
