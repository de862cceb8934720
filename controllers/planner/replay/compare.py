"""Whether two outputs say the same."""

from collections.abc import Iterator, Mapping, Sequence
from math import isclose
from typing import Any

__all__ = ("DECISION", "differences")

DECISION = ("at_s", "scale_to", "desired")
"""Fields of a line of output that say what was decided."""
_TIMINGS = ("us", "cpu_us")
_SMALLEST = 1e-9


def differences(expected: object, actual: object, rtol: float, path: str = "") -> Iterator[str]:
    """Where `actual` is not as `expected`, "path: expected != actual". Floats within `rtol`; more fields than expected are fine."""
    if isinstance(expected, Mapping) and isinstance(actual, Mapping):
        yield from _of_mappings(expected, actual, rtol, path)  # pyright: ignore[reportUnknownArgumentType] - any mapping
    elif isinstance(expected, list | tuple) and isinstance(actual, list | tuple):
        yield from _of_lists(expected, actual, rtol, path)  # pyright: ignore[reportUnknownArgumentType] - any list
    elif not _same(expected, actual, rtol):  # pyright: ignore[reportUnknownArgumentType] - anything
        yield f"{path}: {expected!r} != {actual!r}"


def _of_mappings(expected: Mapping[str, Any], actual: Mapping[str, Any], rtol: float, path: str) -> Iterator[str]:
    for key, value in expected.items():
        if key in _TIMINGS:
            continue
        if key not in actual:
            yield f"{path}.{key}: is missing"
        else:
            yield from differences(value, actual[key], rtol, f"{path}.{key}")


def _of_lists(expected: Sequence[Any], actual: Sequence[Any], rtol: float, path: str) -> Iterator[str]:
    if len(expected) != len(actual):
        yield f"{path}: {len(expected)} items != {len(actual)}"
        return
    for number, (one, other) in enumerate(zip(expected, actual, strict=True)):
        yield from differences(one, other, rtol, f"{path}[{number}]")


def _same(expected: object, actual: object, rtol: float) -> bool:
    if _is_number(expected) and _is_number(actual) and (isinstance(expected, float) or isinstance(actual, float)):
        try:
            return isclose(expected, actual, rel_tol=rtol, abs_tol=_SMALLEST)  # pyright: ignore[reportArgumentType] - both are numbers
        except OverflowError:  # An integer that is no float is near none.
            return False
    return expected == actual and isinstance(expected, bool) == isinstance(actual, bool)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
