"""Kubernetes quantities ("100m", "1.5Gi", "2e3") as exact integers.

Everything is computed in nano units, the finest that Kubernetes keeps; what is finer is rounded away from zero, and so are the coarser
results: a request for 0.1 milli counts as 1 milli.
"""

import re
from functools import lru_cache
from typing import Literal

__all__ = ("Quantity", "QuantityError", "compare", "milli", "nano", "units")

Quantity = str | int | float
"""A quantity as manifests carry it: text, or a bare number."""

SUFFIX = {
    **{"": 10**9, "n": 1, "u": 10**3, "m": 10**6},
    **{s: 10 ** (12 + 3 * i) for i, s in enumerate("kMGTPE")},
    **{f"{s}i": 10**9 * 1024 ** (i + 1) for i, s in enumerate("KMGTPE")},
}
"""Nano units per unit of each suffix."""
LIMIT = ((1 << 63) - 1) * 10**9
"""Kubernetes caps quantities at the largest 64 bit integer of base units."""
MAX_TEXT = 128
MAX_EXPONENT = 64
FORM = re.compile(r"([+-]?)([0-9]*)(?:\.([0-9]*))?([KMGTPE]i|[numkMGTPE]|[eE][+-]?[0-9]+)?")


class QuantityError(ValueError):
    """A text is not a quantity. The message names the text."""


def nano(quantity: Quantity) -> int:
    """Nano units. Raises QuantityError."""
    if isinstance(quantity, bool):
        raise QuantityError(f"{str(quantity).lower()!r} is not a quantity")
    return _nano(quantity if isinstance(quantity, str) else repr(quantity))


def milli(quantity: Quantity) -> int:
    """Thousandths (millicores for cpu), rounded away from zero. Raises QuantityError."""
    return _up(nano(quantity), 10**6)


def units(quantity: Quantity) -> int:
    """Base units (cores, bytes, devices), rounded away from zero. Raises QuantityError."""
    return _up(nano(quantity), 10**9)


def compare(a: Quantity, b: Quantity) -> Literal[-1, 0, 1]:
    """Order of two amounts whatever their notation: 1000m equals 1. Raises QuantityError."""
    x, y = nano(a), nano(b)
    return 0 if x == y else -1 if x < y else 1


@lru_cache(maxsize=4096)
def _nano(text: str) -> int:
    if len(text) > MAX_TEXT:
        raise QuantityError(f"quantity {text[:MAX_TEXT]!r}… is too long")
    form = FORM.fullmatch(text)
    if form is None or not (form[2] or form[3]):
        raise QuantityError(f"{text!r} is not a quantity; write a number with an optional suffix, such as 500m, 2 or 16Gi")
    sign, fraction, suffix = form[1], form[3] or "", form[4] or ""
    digits = int(form[2] + fraction)
    if suffix in SUFFIX:
        exponent, scale = -len(fraction), SUFFIX[suffix]
    else:
        exponent, scale = int(suffix[1:]) - len(fraction), SUFFIX[""]
    value = min(_scaled(digits * scale, exponent), LIMIT)
    return -value if sign == "-" else value


def _scaled(value: int, exponent: int) -> int:
    """value * 10^exponent, rounded up. Exponents beyond all reason give the cap or the smallest amount without computing them."""
    if value == 0 or exponent == 0:
        return value
    if exponent > 0:
        return value * 10 ** min(exponent, MAX_EXPONENT)
    return _up(value, 10 ** min(-exponent, MAX_EXPONENT + 2 * MAX_TEXT))


def _up(value: int, unit: int) -> int:
    """value / unit, rounded away from zero."""
    return -(-value // unit) if value >= 0 else value // unit
