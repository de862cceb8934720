"""Checks of numbers that many kinds share."""

import re
from collections.abc import Sequence
from typing import Any

from api.fielderrors import FieldError, invalid
from sim.apiserver.objects import Object

__all__ = ("int_or_percent_errors", "negative_errors")

NEGATIVE = "must be greater than or equal to 0"
_PERCENT = re.compile(r"[0-9]+%")
_PERCENT_TEXT = (
    "a valid percent string must be a numeric string followed by an ending '%' (e.g. '1%',  or '93%', regex used for validation is "
    "'[0-9]+%')"
)


def negative_errors(path: str, obj: Object, keys: Sequence[str]) -> list[FieldError]:
    """Of numbers in a map that may not be negative."""
    prefix = f"{path}." if path else ""
    return [invalid(f"{prefix}{key}", obj[key], NEGATIVE) for key in keys if (obj.get(key) or 0) < 0]


def int_or_percent_errors(path: str, value: Any) -> list[FieldError]:
    """A count or a percentage of at most 100."""
    if isinstance(value, str):
        if not _PERCENT.fullmatch(value):
            return [invalid(path, value, _PERCENT_TEXT)]
        return [] if int(value[:-1]) <= 100 else [invalid(path, value, "must not be greater than 100%")]
    return [invalid(path, value, NEGATIVE)] if value < 0 else []
