"""Bounds of numbers, texts, lists and maps."""

from collections.abc import Iterator
from fractions import Fraction
from typing import Any

from api.fielderrors import OMITTED, ErrorKind, FieldError, duplicate, invalid
from sim.apiserver.objects import Object
from sim.apiserver.schema.regexes import PatternError, go_regex

__all__ = ("bounds_of_list", "bounds_of_map", "bounds_of_number", "bounds_of_text", "too_many")


def too_many(path: str, count: int, limit: int) -> FieldError:
    """More items or fields than allowed."""
    return FieldError(ErrorKind.TOO_MANY, path, count, f"must have at most {limit} item{'' if limit == 1 else 's'}")


def bounds_of_number(value: Any, source: Object, path: str) -> Iterator[FieldError]:
    step, high, low = source.get("multipleOf"), source.get("maximum"), source.get("minimum")
    if step and Fraction(str(value)) % Fraction(str(step)):
        yield invalid(path, value, f"{path} in body should be a multiple of {_number(step)}")
    if high is not None and (value >= high if source.get("exclusiveMaximum") else value > high):
        word = "less than" if source.get("exclusiveMaximum") else "less than or equal to"
        yield invalid(path, value, f"{path} in body should be {word} {_number(high)}")
    if low is not None and (value <= low if source.get("exclusiveMinimum") else value < low):
        word = "greater than" if source.get("exclusiveMinimum") else "greater than or equal to"
        yield invalid(path, value, f"{path} in body should be {word} {_number(low)}")


def _number(value: Any) -> str:
    return str(int(value)) if value == int(value) else str(value)


def bounds_of_text(value: str, source: Object, path: str) -> Iterator[FieldError]:
    """The first that is broken; lengths are counted in characters, whatever the message says."""
    longest, shortest, pattern = source.get("maxLength"), source.get("minLength"), source.get("pattern")
    if longest is not None and len(value) > longest:
        yield FieldError(ErrorKind.TOO_LONG, path, OMITTED, f"may not be more than {longest} byte{'' if longest == 1 else 's'}")
    elif shortest is not None and len(value) < shortest:
        yield invalid(path, value, f"{path} in body should be at least {shortest} chars long")
    elif pattern is not None and not _matches(pattern, value):
        yield invalid(path, value, f"{path} in body should match '{pattern}'")


def _matches(pattern: str, value: str) -> bool:
    try:
        return go_regex(pattern).search(value) is not None
    except PatternError:
        return True  # definitions with such patterns are refused; this one was stored before


def bounds_of_list(items: list[Any], source: Object, path: str) -> Iterator[FieldError]:
    most, least = source.get("maxItems"), source.get("minItems")
    if least is not None and len(items) < least:
        yield invalid(path, len(items), f"{path} in body should have at least {least} items")
    if most is not None and len(items) > most:
        yield too_many(path, len(items), most)
    if source.get("uniqueItems") and any(item in items[:index] for index, item in enumerate(items)):
        yield duplicate(path, items)


def bounds_of_map(fields: Object, source: Object, path: str) -> FieldError | None:
    most, least = source.get("maxProperties"), source.get("minProperties")
    if least is not None and len(fields) < least:
        return invalid(path, len(fields), f"{path} in body should have at least {least} properties")
    if most is not None and len(fields) > most:
        return too_many(path, len(fields), most)
    return None
