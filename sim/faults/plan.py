"""One fault, its text, and lists of faults drawn from a seed.

Text of a fault: `kind key=value …`, for example `conflict process=controllers-0 verb=patch nth=3 count=2`.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, fields
from enum import StrEnum
from random import Random
from typing import Any

__all__ = ("CALLS", "CLUSTER", "DEFAULT_KINDS", "STREAMS", "Fault", "FaultKind", "draw", "parse")


class FaultKind(StrEnum):
    """What can go wrong. `nth` and `count` of a Fault choose calls or events; `seconds` and `at` are virtual time."""

    TIMEOUT_BEFORE = "timeout-before"
    """The request never reaches the server."""
    TIMEOUT_AFTER = "timeout-after"
    """The server has executed the request, and its answer is lost."""
    CONFLICT = "conflict"
    """409, not executed."""
    THROTTLE = "throttle"
    """429, not executed; `seconds` above 0: the Retry-After."""
    BROKEN = "broken"
    """500, not executed."""
    UNAVAILABLE = "unavailable"
    """503, not executed; `seconds` above 0: the Retry-After."""
    SLOW = "slow"
    """The request reaches the server `seconds` later."""
    STALE = "stale"
    """A list or the beginning of a watch shows the state of `count` revisions ago; the watch goes on after `seconds`."""
    DROP = "drop"
    """`count` events of a watch from its `nth` on never arrive."""
    DUPLICATE = "duplicate"
    """They arrive twice."""
    REORDER = "reorder"
    """Each of them arrives after its successor."""
    FREEZE = "freeze"
    """From its `nth` event on a watch delivers nothing for `seconds`, or until `count` events wait (seconds 0)."""
    CUT = "cut"
    """The connection of a watch breaks before its `nth` event."""
    COMPACT = "compact"
    """The history of all resources is forgotten at `at` and all watches end: what resumes gets 410."""
    CRASH = "crash"
    """The process dies right after its `nth` write (leases and events do not count) and is started again after `seconds`."""
    PAUSE = "pause"
    """The process stands still at `at` for `seconds`."""
    OUTAGE = "outage"
    """The API server cannot be reached at `at` for `seconds`; watches break."""


K = FaultKind
CALLS = frozenset({K.TIMEOUT_BEFORE, K.TIMEOUT_AFTER, K.CONFLICT, K.THROTTLE, K.BROKEN, K.UNAVAILABLE, K.SLOW, K.STALE, K.CRASH})
STREAMS = frozenset({K.DROP, K.DUPLICATE, K.REORDER, K.FREEZE, K.CUT})
CLUSTER = frozenset({K.COMPACT, K.PAUSE, K.OUTAGE})
DEFAULT_KINDS = tuple(kind for kind in FaultKind if kind not in (K.DROP, K.STALE, K.REORDER))
"""What real API servers and networks do. The others show more than the contract of a watch allows; they are asked for by name."""


MAX_NUMBER, MAX_SECONDS = 1_000_000_000, 86_400.0


def _number(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) <= 10 and 1 <= int(text) <= MAX_NUMBER):
        raise ValueError(f"{text!r} is not a whole number from 1 to {MAX_NUMBER}")
    return int(text)


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = -1.0
    if not 0 <= seconds <= MAX_SECONDS:
        raise ValueError(f"{text!r} is not a number of seconds from 0 to {MAX_SECONDS:.0f}")
    return seconds


READERS: dict[str, Callable[[str], str | int | float]] = {
    **dict.fromkeys(("process", "verb", "resource"), str),
    **dict.fromkeys(("nth", "count"), _number),
    **dict.fromkeys(("seconds", "at"), _seconds),
}


@dataclass(frozen=True, slots=True)
class Fault:
    """See FaultKind. Empty `process`, `verb` (create, update, patch, delete, bind, get, list, watch) and `resource` (plural) match all;
    calls without a verb match writes only, and leases only where `resource` names them."""

    kind: FaultKind
    process: str = ""
    verb: str = ""
    resource: str = ""
    nth: int = 1
    count: int = 1
    seconds: float = 0.0
    at: float = 0.0

    def __str__(self) -> str:
        parts = [f"{f.name}={_text(getattr(self, f.name))}" for f in fields(self)[1:] if getattr(self, f.name) != f.default]
        return " ".join([str(self.kind), *parts])


def parse(text: str) -> Fault:
    """A fault of its text. Raises ValueError."""
    kind, *parts = text.split() or [""]
    if kind not in list(FaultKind):
        raise ValueError(f"{kind!r} is no fault; known are: {', '.join(FaultKind)}")
    values: dict[str, Any] = {}
    for part in parts:
        name, equals, value = part.partition("=")
        if not equals or name not in READERS:
            raise ValueError(f"{part}: expected one of {', '.join(READERS)} with =VALUE")
        if name in values:
            raise ValueError(f"{name} is given twice")
        values[name] = READERS[name](value)
    return Fault(FaultKind(kind), **values)


def draw(
    rng: Random, processes: Sequence[str], resources: Sequence[str], kinds: Iterable[FaultKind], *, count: int, span_s: float
) -> list[Fault]:
    """`count` faults within the first `span_s` seconds. `resources`: what is watched."""
    chosen = sorted(kinds)
    return [_one(rng, rng.choice(chosen), processes, resources, span_s) for _ in range(count)] if chosen else []


def _one(rng: Random, kind: FaultKind, processes: Sequence[str], resources: Sequence[str], span_s: float) -> Fault:
    process = rng.choice(processes)
    nth, some = 1 + int(rng.expovariate(1 / 12)), 1 + int(rng.expovariate(1 / 2))
    match kind:
        case K.COMPACT:
            return Fault(kind, at=_round(rng.uniform(0.5, span_s)))
        case K.OUTAGE:
            return Fault(
                kind, at=_round(rng.uniform(0.5, span_s)), seconds=_round(rng.choice((0.5, 3.0, 12.0, 25.0)) * rng.uniform(0.8, 1.2))
            )
        case K.PAUSE:
            return Fault(
                kind,
                process,
                at=_round(rng.uniform(0.5, span_s)),
                seconds=_round(rng.choice((1.0, 8.0, 14.0, 60.0)) * rng.uniform(0.8, 1.2)),
            )
        case K.CRASH:
            return Fault(kind, process, nth=nth, seconds=_round(rng.uniform(0.1, 8.0)))
        case K.STALE:
            verb = rng.choice(("list", "watch"))
            return Fault(kind, process, verb, rng.choice(resources), nth=1, count=10 * some, seconds=_round(rng.uniform(0.0, 5.0)))
        case K.FREEZE:
            if rng.random() < 0.5:
                return Fault(kind, process, resource=rng.choice(resources), nth=nth, seconds=_round(rng.uniform(0.5, 70.0)))
            return Fault(kind, process, resource=rng.choice(resources), nth=nth, count=some + 1)
        case _ if kind in STREAMS:
            return Fault(kind, process, resource=rng.choice(resources), nth=nth, count=some)
        case K.SLOW:
            return Fault(kind, process, nth=nth, count=some, seconds=_round(rng.uniform(0.1, 4.0)))
        case K.THROTTLE | K.UNAVAILABLE:
            return Fault(kind, process, nth=nth, count=some, seconds=float(rng.choice((0, 0, 1, 5))))
        case _:
            resource = "leases" if rng.random() < 0.1 else ""
            return Fault(kind, process, resource=resource, nth=nth, count=some)


def _round(seconds: float) -> float:
    return round(seconds, 3)


def _text(value: object) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)
