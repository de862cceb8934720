"""Past traffic from a recorded trace of requests: planner.md §11.7."""

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from math import isfinite
from typing import Any, Literal, TypeAlias, cast

from controllers.planner.types import TrafficObservation

__all__ = ("TraceLines", "WarmupError", "warmup_traffic")

SCHEMA = "dynamo.request.trace.v1"
END_OF_REQUEST = "request_end"
MOST_WINDOWS = 1_000_000
"""Five years of the usual three minutes. One wrong time would else fill the memory with idle windows."""

Format: TypeAlias = Literal["timestamps", "events"]


class WarmupError(ValueError):
    """A trace is not what it should be; the message names the file, and the line if there is one."""


@dataclass(frozen=True, slots=True)
class TraceLines:
    """One trace file: its name, for messages, and its lines."""

    name: str
    lines: Iterable[str]


@dataclass(frozen=True, slots=True)
class _Request:
    """When it came, in milliseconds, and tokens in and out."""

    time_ms: float
    isl: float
    osl: float


def warmup_traffic(files: Iterable[TraceLines], interval_s: float) -> list[TrafficObservation]:
    """One observation per interval, from the first with a request to the last; zeros for those between without any.

    Lines with `timestamp` count time from 0; events from the first event of all files. WarmupError.
    """
    requests: list[_Request] = []
    formats: set[Format] = set()
    for file in files:
        for where, entry in _entries(file):
            kind, request = _read(entry, where)
            formats.add(kind)
            if len(formats) > 1:
                raise WarmupError(f"{where}: lines with `timestamp` and events are mixed")
            if request is not None:
                requests.append(request)
    origin = min((request.time_ms for request in requests), default=0.0) if "events" in formats else 0.0
    return _bucketed(requests, origin, interval_s)


def _entries(file: TraceLines) -> Iterator[tuple[str, dict[str, Any]]]:
    number = 0
    try:
        for number, line in enumerate(file.lines, 1):
            if not line.strip():
                continue
            where = f"{file.name}:{number}"
            try:
                entry: object = json.loads(line)
            except json.JSONDecodeError as error:
                raise WarmupError(f"{where}: not JSON: {error.msg}") from None
            except (ValueError, RecursionError) as error:
                raise WarmupError(f"{where}: not usable: {error}") from None
            if not isinstance(entry, dict):
                raise WarmupError(f"{where}: not an object")
            yield where, cast("dict[str, Any]", entry)
    except (OSError, EOFError, UnicodeDecodeError) as error:
        raise WarmupError(f"{file.name}:{number + 1}: {error}") from error


def _read(entry: dict[str, Any], where: str) -> tuple[Format, _Request | None]:
    """The request of a line; None: an event of another type."""
    if "timestamp" in entry:
        number = _numbers(entry, where)
        return "timestamps", _Request(number("timestamp"), number("input_length"), number("output_length"))
    event = entry.get("event", entry)
    if not isinstance(event, dict):
        raise WarmupError(f"{where}: event is not an object")
    event = cast("dict[str, Any]", event)
    if event.get("schema") != SCHEMA:
        raise WarmupError(f"{where}: neither `timestamp` nor an event of schema {SCHEMA}")
    if event.get("event_type") != END_OF_REQUEST:
        return "events", None
    request = _part(event, "request", where)
    replay = _part(request, "replay", where)
    received = request if request.get("request_received_ms") is not None else event
    time_ms = _numbers(received, where)("request_received_ms" if received is request else "event_time_unix_ms")
    return "events", _Request(time_ms, _numbers(replay, where)("input_length"), _numbers(request, where)("output_tokens"))


def _part(entry: dict[str, Any], key: str, where: str) -> dict[str, Any]:
    part = entry.get(key)
    if not isinstance(part, dict):
        raise WarmupError(f"{where}: {key} is not an object")
    return cast("dict[str, Any]", part)


def _numbers(entry: dict[str, Any], where: str) -> Callable[[str], float]:
    def number(key: str) -> float:
        value = entry.get(key)
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise WarmupError(f"{where}: {key} is not a number: {json.dumps(value)}")
        try:
            value = float(value)
        except OverflowError:
            raise WarmupError(f"{where}: {key} is too large") from None
        if not isfinite(value) or value < 0:
            raise WarmupError(f"{where}: {key} is negative or not finite: {value}")
        return value

    return number


def _bucketed(requests: Sequence[_Request], origin: float, interval_s: float) -> list[TrafficObservation]:
    buckets: dict[int, list[_Request]] = {}
    for request in requests:
        buckets.setdefault(int((request.time_ms - origin) / 1000 // interval_s), []).append(request)
    if not buckets:
        return []
    windows = max(buckets) - min(buckets) + 1
    if windows > MOST_WINDOWS:
        raise WarmupError(f"requests span {windows} windows of {interval_s:g} s, more than {MOST_WINDOWS}: are their times milliseconds?")
    idle = TrafficObservation(interval_s, 0.0, 0.0, 0.0)
    return [_observation(buckets[i], interval_s) if i in buckets else idle for i in range(min(buckets), max(buckets) + 1)]


def _observation(requests: Sequence[_Request], interval_s: float) -> TrafficObservation:
    count = len(requests)
    isl, osl = sum(request.isl for request in requests), sum(request.osl for request in requests)
    return TrafficObservation(interval_s, float(count), isl / count, osl / count)
