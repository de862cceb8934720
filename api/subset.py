"""Comparison of what is wanted with what an API server returned, which has more: defaults and fields of others."""

from collections.abc import Mapping, Sequence
from typing import Any

__all__ = ("contains",)


def contains(live: Any, wanted: Any) -> bool:
    """True when `live` has everything that `wanted` has. Mappings may have more keys; lists must match item by item."""
    if isinstance(wanted, Mapping):
        return isinstance(live, Mapping) and all(contains(live.get(k), v) for k, v in wanted.items())  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType, reportUnknownArgumentType]
    if isinstance(wanted, Sequence) and not isinstance(wanted, str):
        if not isinstance(live, Sequence) or isinstance(live, str) or len(live) != len(wanted):  # pyright: ignore[reportUnknownArgumentType]
            return False
        return all(contains(x, y) for x, y in zip(live, wanted, strict=True))  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]
    return live == wanted
