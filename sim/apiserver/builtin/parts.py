"""Typed access to parts of objects that may be absent."""

from sim.apiserver.objects import Object

__all__ = ("items", "part")


def part(obj: Object | None, key: str) -> Object:
    """A map in a map; empty where it or the outer one is absent or null."""
    return (obj.get(key) if obj else None) or {}


def items(obj: Object | None, key: str) -> list[Object]:
    """A list of maps in a map; empty where it or the map is absent or null."""
    return (obj.get(key) if obj else None) or []
