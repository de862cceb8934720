"""Durations and timestamps in the forms that Go reads and writes."""

import re
from datetime import UTC, datetime, timedelta
from typing import Any

from sim.apiserver.schema.cel.values import CelError

__all__ = ("duration_text", "parse_duration", "parse_timestamp", "timestamp_text")

_PART = re.compile(r"([0-9]+\.?[0-9]*|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h)")
_WHOLE = re.compile(r"[-+]?(0|(([0-9]+\.?[0-9]*|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h))+)")
_UNITS = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "μs": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}
_STAMP = re.compile(r"([0-9]{4}-[0-9]{2}-[0-9]{2})[Tt]([0-9]{2}:[0-9]{2}:[0-9]{2})(\.[0-9]+)?([Zz]|[+-][0-9]{2}:[0-9]{2})")


def parse_duration(text: Any) -> timedelta:
    """1h30m, as Go's time.ParseDuration. Anything below a microsecond is lost."""
    if type(text) is timedelta:
        return text
    if _WHOLE.fullmatch(text) is None:
        raise CelError(f'time: invalid duration "{text}"')
    total = sum((timedelta(seconds=float(number) * _UNITS[unit]) for number, unit in _PART.findall(text)), timedelta())
    return -total if text.startswith("-") else total


def duration_text(value: timedelta) -> str:
    seconds = value.total_seconds()
    return f"{int(seconds)}s" if seconds.is_integer() else f"{seconds:g}s"


def parse_timestamp(text: Any) -> datetime:
    """RFC 3339, or seconds since 1970."""
    if type(text) is datetime:
        return text
    if type(text) is int:
        return datetime.fromtimestamp(text, UTC)
    match = _STAMP.fullmatch(text)
    if match is None:
        raise CelError(f'parsing time "{text}" as "2006-01-02T15:04:05Z07:00": cannot parse "{text}" as "2006"')
    zone = "+00:00" if match[4] in "Zz" else match[4]
    return datetime.fromisoformat(f"{match[1]}T{match[2]}{(match[3] or '.0')[:7].ljust(7, '0')}{zone}")


def timestamp_text(value: datetime) -> str:
    text = value.astimezone(UTC).isoformat().removesuffix("+00:00")
    return (text.rstrip("0").rstrip(".") if "." in text else text) + "Z"
