"""JSON of files into records, with errors that name the field."""

import json
from math import inf, nan
from typing import Any, TypeVar, cast

import msgspec

__all__ = ("CaseError", "convert", "read_object")

T = TypeVar("T")
# How recordings write numbers that JSON has not.
_NUMBERS = {"nan": nan, "inf": inf, "+inf": inf, "-inf": -inf, "infinity": inf, "-infinity": -inf}


class CaseError(ValueError):
    """A file of a replay that cannot be used. The text names what is wrong; the caller knows file and line."""


def read_object(text: str | bytes) -> dict[str, Any]:
    """A JSON object. CaseError."""
    try:
        content: object = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise CaseError(f"no JSON: {error}") from None
    if not isinstance(content, dict):
        raise CaseError("must be a JSON object")
    return cast("dict[str, Any]", content)


def convert(raw: dict[str, Any], kind: type[T]) -> T:
    """A record of this kind. CaseError."""
    try:
        return msgspec.convert(raw, kind)
    except msgspec.ValidationError as error:
        try:
            return msgspec.convert(_with_numbers(raw), kind)
        except (msgspec.ValidationError, RecursionError):
            problem, _, path = str(error).partition(" - at `$")
            raise CaseError(f"{path.strip('.`')}: {problem}" if path else problem) from None


def _with_numbers(value: object) -> object:
    """With the names of numbers that JSON has not, as numbers."""
    if isinstance(value, dict):
        return {key: _with_numbers(item) for key, item in cast("dict[str, object]", value).items()}
    if isinstance(value, list):
        return [_with_numbers(item) for item in cast("list[object]", value)]
    return _NUMBERS.get(value.lower(), value) if isinstance(value, str) else value
