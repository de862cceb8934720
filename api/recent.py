"""Results of pure functions of large objects, kept for the objects that were asked about last."""

from collections.abc import Callable
from functools import wraps
from typing import TypeVar, TypeVarTuple, Unpack

__all__ = ("recent",)

T = TypeVar("T")
Ts = TypeVarTuple("Ts")
R = TypeVar("R")


def recent(size: int) -> Callable[[Callable[[T, Unpack[Ts]], R]], Callable[[T, Unpack[Ts]], R]]:
    """Makes a pure function remember its results for the last `size` different calls.

    The first argument is told apart by identity, so it must never change; that is what objects of caches promise. The others are
    positional and hashable. What is remembered stays in memory together with the objects.
    """

    def decorate(function: Callable[[T, Unpack[Ts]], R]) -> Callable[[T, Unpack[Ts]], R]:
        known: dict[tuple[object, ...], tuple[T, R]] = {}

        @wraps(function)
        def call(subject: T, /, *args: *Ts) -> R:
            key = (id(subject), *args)
            found = known.get(key)
            # Whoever holds the object keeps its id from being given to another.
            if found is not None and found[0] is subject:
                return found[1]
            result = function(subject, *args)
            while len(known) >= size:
                del known[next(iter(known))]
            known[key] = subject, result
            return result

        return call

    return decorate
