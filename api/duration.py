"""Durations as Go writes and reads them ("4h0m0s", "1.5h", "300ms"), exact to the nanosecond."""

import re
from datetime import timedelta
from functools import lru_cache

__all__ = ("DurationError", "canonical_duration", "format_duration", "parse_duration", "timedelta_of")

UNITS = {"ns": 1, "us": 10**3, "µs": 10**3, "μs": 10**3, "ms": 10**6, "s": 10**9, "m": 60 * 10**9, "h": 3600 * 10**9}
"""Nanoseconds per unit; micro is written with the Latin u, the micro sign or the Greek mu."""
LIMIT = (1 << 63) - 1
"""Longest duration in nanoseconds, about 292 years."""
MAX_TEXT = 128
PIECE = re.compile(r"([0-9]*)(?:\.([0-9]*))?(ns|us|µs|μs|ms|s|m|h)")


class DurationError(ValueError):
    """A text is not a duration. The message names the text."""


@lru_cache(maxsize=256)
def parse_duration(text: str) -> int:
    """Nanoseconds; fractions of a nanosecond are cut off. Raises DurationError."""
    shown = text if len(text) <= MAX_TEXT else text[:MAX_TEXT] + "…"
    if len(text) > MAX_TEXT:
        raise DurationError(f"duration {shown!r} is too long")
    rest = text[1:] if text[:1] in ("+", "-") else text
    if rest == "0":
        return 0
    total, at = 0, 0
    while at < len(rest):
        piece = PIECE.match(rest, at)
        if piece is None or not (piece[1] or piece[2]):
            break
        total += _nanoseconds(piece[1], piece[2] or "", UNITS[piece[3]])
        at = piece.end()
    if at < len(rest) or not rest:
        raise DurationError(f"{shown!r} is not a duration; write numbers with units, such as 90s, 1h30m or 250ms")
    if total > LIMIT:
        raise DurationError(f"duration {shown!r} is too long; the limit is about 292 years")
    return -total if text[0] == "-" else total


def _nanoseconds(whole: str, fraction: str, unit: int) -> int:
    return int(whole or "0") * unit + int(fraction or "0") * unit // 10 ** len(fraction)


def format_duration(nanoseconds: int) -> str:
    """The form that metav1.Duration prints: hours, minutes and seconds from the largest that is not zero; below a second ms, µs or ns."""
    if nanoseconds == 0:
        return "0s"
    sign, value = ("-", -nanoseconds) if nanoseconds < 0 else ("", nanoseconds)
    for unit in ("ns", "µs", "ms"):
        if value < UNITS[unit] * 1000:
            return f"{sign}{_decimal(value, UNITS[unit])}{unit}"
    minutes, rest = divmod(value, UNITS["m"])
    hours, minutes = divmod(minutes, 60)
    seconds = f"{_decimal(rest, UNITS['s'])}s"
    if hours:
        return f"{sign}{hours}h{minutes}m{seconds}"
    return f"{sign}{minutes}m{seconds}" if minutes else f"{sign}{seconds}"


def _decimal(value: int, unit: int) -> str:
    whole, rest = divmod(value, unit)
    digits = str(rest).zfill(len(str(unit)) - 1).rstrip("0") if rest else ""
    return f"{whole}.{digits}" if digits else str(whole)


def canonical_duration(text: str) -> str:
    """The same duration as metav1.Duration prints it. Raises DurationError."""
    return format_duration(parse_duration(text))


def timedelta_of(text: str) -> timedelta:
    """The duration for arithmetic with datetimes, to the microsecond. Raises DurationError."""
    return timedelta(microseconds=parse_duration(text) // 1000)
