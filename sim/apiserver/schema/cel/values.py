"""Values of CEL beyond those that JSON and Python have, and what is true for all of them: equality, order, type names."""

# pyright: reportUnknownLambdaType=false, reportUnknownMemberType=false, reportUnknownArgumentType=false, reportUnknownVariableType=false
# Values of expressions have no static type: functions get whatever an expression gives them, and fail when it does not fit.

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final, TypeAlias

__all__ = (
    "NO_VALUE",
    "Budget",
    "CelError",
    "Closure",
    "MapList",
    "Optional",
    "OutOfBudget",
    "Scope",
    "SetList",
    "TypeValue",
    "checked_int",
    "compare",
    "equal",
    "joined",
    "no_overload",
    "type_name",
)

_MAX, _MIN = 2**63 - 1, -(2**63)


Scope: TypeAlias = dict[str, Any]
"""Variables by name."""
Closure: TypeAlias = Callable[[Scope], Any]
"""A compiled part of an expression."""


class CelError(ValueError):
    """An evaluation that failed, in the words of the real evaluator."""


class OutOfBudget(Exception):
    """An evaluation takes too long. No CelError, because loops and || absorb those."""


class Budget:
    """Turns that the loops of one evaluation may still take."""

    __slots__ = ("_left",)

    def __init__(self, turns: int) -> None:
        self._left = turns

    def spend(self) -> None:
        """Takes one turn. Raises OutOfBudget."""
        self._left -= 1
        if self._left < 0:
            raise OutOfBudget


def no_overload() -> CelError:
    return CelError("no such overload")


@dataclass(frozen=True, slots=True)
class Optional:
    """A value that may be missing."""

    has_value: bool = False
    value: Any = None


NO_VALUE: Final = Optional()


@dataclass(frozen=True, slots=True)
class TypeValue:
    """A type as a value: what type() answers."""

    name: str


class SetList(list[Any]):
    """A list of x-kubernetes-list-type set: it equals lists with the same items in any order, and sums are unions."""


class MapList(list[Any]):
    """A list of x-kubernetes-list-type map. `key_of`: what identifies an item. It equals lists with the same items in any order; in sums
    items take the place of those with their key."""

    def __init__(self, items: list[Any], key_of: Callable[[Any], str]) -> None:
        super().__init__(items)
        self.key_of = key_of


_NAMES: Final[dict[type, str]] = {
    bool: "bool",
    int: "int",
    float: "double",
    str: "string",
    bytes: "bytes",
    list: "list",
    SetList: "list",
    MapList: "list",
    dict: "map",
    datetime: "google.protobuf.Timestamp",
    timedelta: "google.protobuf.Duration",
    type(None): "null_type",
    Optional: "optional_type",
    TypeValue: "type",
}


def type_name(value: Any) -> str:
    return _NAMES.get(type(value)) or f"kubernetes.{type(value).__name__}"


def equal(a: Any, b: Any) -> bool:
    """Equality: numbers across types, never a bool with a number, lists and maps by their members."""
    kind = type(a)
    if isinstance(a, list):
        if not isinstance(b, list) or len(a) != len(b):
            return False
        if kind is list:
            return all(equal(x, y) for x, y in zip(a, b, strict=True))
        return all(any(equal(x, y) for x in a) for y in b)
    if kind is not type(b):
        return kind in (int, float) and type(b) in (int, float) and a == b
    if kind is dict:
        return len(a) == len(b) and all(k in b and equal(v, b[k]) for k, v in a.items())
    if kind is Optional:
        return a.has_value == b.has_value and equal(a.value, b.value)
    return bool(a == b)


def joined(a: list[Any], b: list[Any]) -> list[Any]:
    """The sum of two lists, as the first one has it."""
    if isinstance(a, MapList):
        places = {a.key_of(item): at for at, item in enumerate(a)}
        out = list(a)
        for item in b:
            at = places.get(a.key_of(item))
            if at is None:
                out.append(item)
            else:
                out[at] = item
        return MapList(out, a.key_of)
    if isinstance(a, SetList):
        return SetList([*a, *(y for y in b if not any(equal(x, y) for x in a))])
    return [*a, *b]


def compare(a: Any, b: Any) -> int:
    """-1, 0 or 1; raises CelError for what has no order."""
    kind, other = type(a), type(b)
    if kind is not other and not (kind in (int, float) and other in (int, float)):
        raise no_overload()
    if kind not in (bool, int, float, str, bytes, datetime, timedelta) and not hasattr(a, "__lt__"):
        raise no_overload()
    if isinstance(a, list | dict) or a is None:
        raise no_overload()
    return -1 if a < b else 1 if a > b else 0


def checked_int(value: int) -> int:
    if _MIN <= value <= _MAX:
        return value
    raise CelError("integer overflow")
