"""Quantities in the one form in which the server prints them."""

from functools import lru_cache
from typing import Any

from api.quantity import nano
from sim.apiserver.objects import Object

__all__ = ("canonical", "canonical_amounts", "canonical_resources")

_DECIMAL = {-9: "n", -6: "u", -3: "m", 0: "", 3: "k", 6: "M", 9: "G", 12: "T", 15: "P", 18: "E"}
_BINARY = ("", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei")


@lru_cache(maxsize=4096)
def canonical(quantity: str | int | float) -> str:
    """The printed form of a quantity: 0.5 -> 500m, 1000M -> 1G, 1024Mi -> 1Gi, 1e9 stays. Raises QuantityError."""
    value = nano(quantity)
    text = str(quantity)
    if text.endswith("i") and abs(value) >= 1024 * 10**9:
        return _binary(-(-value // 10**9) if value > 0 else value // 10**9)
    if value == 0:
        return "0"
    exponent = -9
    while value % 1000 == 0 and exponent < 18:
        value //= 1000
        exponent += 3
    if _has_exponent(text):
        return f"{value}e{exponent}" if exponent else str(value)
    return f"{value}{_DECIMAL[exponent]}"


def canonical_amounts(amounts: Object) -> Object:
    """A resource list with every quantity in printed form; the same object when nothing changes. Raises QuantityError."""
    for quantity in amounts.values():
        if canonical(quantity) != quantity:
            return {name: canonical(value) for name, value in amounts.items()}
    return amounts


def canonical_resources(resources: Object, *keys: str) -> None:
    """Puts limits, requests and the like (the keys) into printed form, in place."""
    for key in keys:
        amounts: Any = resources.get(key)
        if amounts:
            resources[key] = canonical_amounts(amounts)


def _binary(value: int) -> str:
    power = 0
    while value % 1024 == 0 and power < 6:
        value //= 1024
        power += 1
    return f"{value}{_BINARY[power]}"


def _has_exponent(text: str) -> bool:
    body = text.rstrip("0123456789+-")
    return body != text and body[-1:] in ("e", "E")
