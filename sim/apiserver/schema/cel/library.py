"""Functions of CEL: the standard ones, strings, lists, sets, math, and Kubernetes' own."""

# pyright: reportUnknownLambdaType=false, reportUnknownMemberType=false, reportUnknownArgumentType=false, reportUnknownVariableType=false
# Values of expressions have no static type: functions get whatever an expression gives them, and fail when it does not fit.

import base64
import math
import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from typing import Any, Final
from zoneinfo import ZoneInfo

from sim.apiserver.schema.cel import kubernetes
from sim.apiserver.schema.cel.lists import LISTS, SETS
from sim.apiserver.schema.cel.strings import STRINGS
from sim.apiserver.schema.cel.times import duration_text, parse_duration, parse_timestamp, timestamp_text
from sim.apiserver.schema.cel.values import (
    NO_VALUE,
    CelError,
    Optional,
    TypeValue,
    checked_int,
    compare,
    equal,
    joined,
    no_overload,
    type_name,
)
from sim.apiserver.schema.regexes import go_regex

__all__ = ("FUNCTIONS", "METHODS", "NAMESPACES", "TYPES")

Table = Mapping[str, Callable[..., Any]]
TYPES: Final[dict[str, TypeValue]] = {
    name: TypeValue(name)
    for name in ("bool", "int", "uint", "double", "string", "bytes", "list", "map", "null_type", "type", "google.protobuf.Timestamp",
                 "google.protobuf.Duration", "net.IP", "net.CIDR", "kubernetes.Quantity", "kubernetes.URL")
}  # fmt: skip


def _add(a: Any, b: Any) -> Any:
    kind, other = type(a), type(b)
    if kind is other and kind is int:
        return checked_int(a + b)
    if isinstance(a, list) and isinstance(b, list):
        return joined(a, b)
    if kind is other and kind in (float, str, bytes, timedelta):
        return a + b
    if {kind, other} == {datetime, timedelta}:
        return a + b
    raise no_overload()


def _subtract(a: Any, b: Any) -> Any:
    kind, other = type(a), type(b)
    if kind is other and kind is int:
        return checked_int(a - b)
    if (kind is other and kind in (float, datetime, timedelta)) or (kind, other) == (datetime, timedelta):
        return a - b
    raise no_overload()


def _multiply(a: Any, b: Any) -> Any:
    if type(a) is type(b) is int:
        return checked_int(a * b)
    if type(a) is type(b) is float:
        return a * b
    raise no_overload()


def _divide(a: Any, b: Any) -> Any:
    if type(a) is type(b) is int:
        if b == 0:
            raise CelError("division by zero")
        quotient = abs(a) // abs(b)
        return checked_int(quotient if (a < 0) == (b < 0) else -quotient)
    if type(a) is type(b) is float:
        return a / b if b else (math.nan if a == 0 or math.isnan(a) else math.copysign(math.inf, a) * math.copysign(1.0, b))
    raise no_overload()


def _modulo(a: Any, b: Any) -> int:
    if type(a) is not int or type(b) is not int:
        raise no_overload()
    if b == 0:
        raise CelError("modulus by zero")
    return int(math.copysign(1, a)) * (abs(a) % abs(b))


def _negate(value: Any) -> Any:
    if type(value) in (int, float, timedelta):
        return checked_int(-value) if type(value) is int else -value
    raise no_overload()


def _not(value: Any) -> bool:
    if type(value) is not bool:
        raise no_overload()
    return not value


def _contained(item: Any, where: Any) -> bool:
    if isinstance(where, list):
        return any(equal(item, other) for other in where)
    if type(where) is dict:
        return isinstance(item, (str, int, float)) and item in where
    raise no_overload()


def _size(value: Any) -> int:
    if isinstance(value, str | bytes | list | dict):
        return len(value)
    raise no_overload()


def _int(value: Any) -> int:
    if type(value) is str:
        if re.fullmatch(r"[+-]?[0-9]+", value) is None:
            raise CelError(f'strconv.ParseInt: parsing "{value}": invalid syntax')
        return checked_int(int(value))
    if type(value) is datetime:
        return int(value.timestamp())
    if type(value) in (int, float):
        return checked_int(int(value))
    raise no_overload()


def _double(value: Any) -> float:
    if type(value) in (int, float, str):
        return float(value)
    raise no_overload()


def _string(value: Any) -> str:
    if type(value) is str:
        return value
    if type(value) is bool:
        return "true" if value else "false"
    if type(value) is int:
        return str(value)
    if type(value) is float:
        return str(int(value)) if value.is_integer() and abs(value) < 1e21 else repr(value)
    if type(value) is bytes:
        return value.decode()
    if type(value) is datetime:
        return timestamp_text(value)
    if type(value) is timedelta:
        return duration_text(value)
    if isinstance(value, (kubernetes.IP, kubernetes.CIDR)):
        return str(value)
    raise no_overload()


def _bool(value: Any) -> bool:
    if type(value) is bool:
        return value
    if value in ("true", "True", "TRUE", "t", "1"):
        return True
    if value in ("false", "False", "FALSE", "f", "0"):
        return False
    raise CelError(f'strconv.ParseBool: parsing "{value}": invalid syntax')


def _matches(text: str, pattern: str) -> bool:
    return go_regex(pattern).search(text) is not None


def _part(read: Callable[[datetime], int], of_duration: Callable[[timedelta], int] | None = None) -> Callable[..., int]:
    def run(value: Any, zone: str = "UTC") -> int:
        if type(value) is timedelta and of_duration is not None:
            return of_duration(value)
        return read(value.astimezone(_zone(zone)))  # pyright: ignore[reportAttributeAccessIssue]

    return run


def _zone(name: str) -> tzinfo:
    match = re.fullmatch(r"([+-]?)([0-9]{1,2}):([0-9]{2})", name)
    if match is None:
        return UTC if name in ("UTC", "") else ZoneInfo(name)
    offset = timedelta(hours=int(match[2]), minutes=int(match[3]))
    return timezone(-offset if match[1] == "-" else offset)


def _or_value(value: Optional, default: Any) -> Any:
    return value.value if value.has_value else default


def _or(value: Optional, other: Optional) -> Optional:
    return value if value.has_value else other


def _value(value: Optional) -> Any:
    if not value.has_value:
        raise CelError("optional.none() dereference")
    return value.value


def _non_zero(value: Any) -> Optional:
    return Optional(True, value) if value not in (None, False, 0, "", b"", [], {}) else NO_VALUE


def _extreme(pick: Callable[[int], bool]) -> Callable[..., Any]:
    def run(*values: Any) -> Any:
        items = values[0] if len(values) == 1 and isinstance(values[0], list) else values
        best = items[0]
        for item in items[1:]:
            if pick(compare(item, best)):
                best = item
        return best

    return run


def _order(test: Callable[[int], bool]) -> Callable[[Any, Any], bool]:
    return lambda a, b: test(compare(a, b))


FUNCTIONS: Final[Table] = {
    "_==_": equal,
    "_!=_": lambda a, b: not equal(a, b),
    "_<_": _order(lambda c: c < 0),
    "_<=_": _order(lambda c: c <= 0),
    "_>_": _order(lambda c: c > 0),
    "_>=_": _order(lambda c: c >= 0),
    "@in": _contained,
    "_+_": _add,
    "_-_": _subtract,
    "_*_": _multiply,
    "_/_": _divide,
    "_%_": _modulo,
    "-_": _negate,
    "!_": _not,
    "size": _size,
    "int": _int,
    "uint": _int,
    "double": _double,
    "string": _string,
    "bool": _bool,
    "bytes": lambda v: v if type(v) is bytes else v.encode(),
    "dyn": lambda v: v,
    "type": lambda v: TypeValue(type_name(v)),
    "matches": _matches,
    "duration": parse_duration,
    "timestamp": parse_timestamp,
    **kubernetes.FUNCTIONS,
}

METHODS: Final[Table] = {
    "size": _size,
    "matches": _matches,
    "getFullYear": _part(lambda t: t.year),
    "getMonth": _part(lambda t: t.month - 1),
    "getDate": _part(lambda t: t.day),
    "getDayOfMonth": _part(lambda t: t.day - 1),
    "getDayOfWeek": _part(lambda t: t.isoweekday() % 7),
    "getDayOfYear": _part(lambda t: t.timetuple().tm_yday - 1),
    "getHours": _part(lambda t: t.hour, lambda d: int(d.total_seconds() / 3600)),
    "getMinutes": _part(lambda t: t.minute, lambda d: int(d.total_seconds() / 60)),
    "getSeconds": _part(lambda t: t.second, lambda d: int(d.total_seconds())),
    "getMilliseconds": _part(lambda t: t.microsecond // 1000, lambda d: d.microseconds // 1000),
    "hasValue": lambda v: v.has_value,
    "value": _value,
    "orValue": _or_value,
    "or": _or,
    **STRINGS,
    **LISTS,
    **kubernetes.METHODS,
}

NAMESPACES: Final[dict[str, Table]] = {
    "cel": {},
    "optional": {"of": lambda v: Optional(True, v), "none": lambda: NO_VALUE, "ofNonZeroValue": _non_zero},
    "sets": SETS,
    "math": {
        "greatest": _extreme(lambda c: c > 0),
        "least": _extreme(lambda c: c < 0),
        "abs": abs,
        "ceil": lambda v: float(math.ceil(v)),
        "floor": lambda v: float(math.floor(v)),
        "round": lambda v: math.copysign(math.floor(abs(v) + 0.5), v),
        "trunc": lambda v: float(math.trunc(v)),
        "sign": lambda v: (v > 0) - (v < 0),
        "sqrt": lambda v: math.sqrt(v),
        "isNaN": lambda v: math.isnan(v),
        "isInf": lambda v: math.isinf(v),
        "isFinite": lambda v: math.isfinite(v),
    },
    "base64": {"encode": lambda v: base64.b64encode(v).decode(), "decode": lambda v: base64.b64decode(v + "=" * (-len(v) % 4))},
    "strings": {"quote": kubernetes.quote},
    "ip": {"isCanonical": kubernetes.is_canonical},
    "format": {"named": kubernetes.named_format, **kubernetes.NAMED},
}
