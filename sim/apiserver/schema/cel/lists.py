"""Methods of lists, and sets.*."""

# pyright: reportUnknownLambdaType=false, reportUnknownMemberType=false, reportUnknownArgumentType=false, reportUnknownVariableType=false
# Values of expressions have no static type: functions get whatever an expression gives them, and fail when it does not fit.

from collections.abc import Callable, Mapping
from datetime import timedelta
from functools import cmp_to_key
from itertools import pairwise
from typing import Any, Final

from sim.apiserver.schema.cel.values import NO_VALUE, CelError, Optional, compare, equal

__all__ = ("LISTS", "SETS")


def _is_in(item: Any, items: list[Any]) -> bool:
    return any(equal(item, other) for other in items)


def _contains(a: list[Any], b: list[Any]) -> bool:
    return all(_is_in(item, a) for item in b)


def _sum(items: list[Any]) -> Any:
    if items and type(items[0]) is timedelta:
        return sum(items, timedelta())
    return sum(items)


def _extreme(sign: int) -> Callable[[list[Any]], Any]:
    def run(items: list[Any]) -> Any:
        if not items:
            raise CelError(f"{'max' if sign > 0 else 'min'} called on empty list")
        return max(items, key=cmp_to_key(lambda a, b: sign * compare(a, b)))

    return run


def _distinct(items: list[Any]) -> list[Any]:
    out: list[Any] = []
    for item in items:
        if not _is_in(item, out):
            out.append(item)
    return out


def _flatten(items: list[Any], depth: int = 1) -> list[Any]:
    out: list[Any] = []
    for item in items:
        if isinstance(item, list) and depth > 0:
            out.extend(_flatten(item, depth - 1))
        else:
            out.append(item)
    return out


def _slice(items: list[Any], start: int, end: int) -> list[Any]:
    if not 0 <= start <= end <= len(items):
        raise CelError(f"cannot slice({start}, {end}), list is length {len(items)}")
    return items[start:end]


def _reverse(value: Any) -> Any:
    return value[::-1]


def _edge(index: int) -> Callable[[list[Any]], Optional]:
    return lambda items: Optional(True, items[index]) if items else NO_VALUE


LISTS: Final[Mapping[str, Callable[..., Any]]] = {
    "isSorted": lambda items: all(compare(a, b) <= 0 for a, b in pairwise(items)),
    "sum": _sum,
    "min": _extreme(-1),
    "max": _extreme(1),
    "distinct": _distinct,
    "flatten": _flatten,
    "slice": _slice,
    "reverse": _reverse,
    "sort": lambda items: sorted(items, key=cmp_to_key(compare)),
    "first": _edge(0),
    "last": _edge(-1),
}
SETS: Final[Mapping[str, Callable[..., Any]]] = {
    "contains": _contains,
    "equivalent": lambda a, b: _contains(a, b) and _contains(b, a),
    "intersects": lambda a, b: any(_is_in(item, b) for item in a),
}
