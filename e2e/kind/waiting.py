"""Waiting for a state of a cluster, with a deadline and with what was seen last in the message."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import TypeVar

import httpx
from kr8s import APITimeoutError, ServerError

__all__ = ("UNREACHABLE", "stays", "until")

T = TypeVar("T")

UNREACHABLE = (httpx.TransportError, APITimeoutError, ServerError)
"""What kr8s raises while the API server is away."""
POLL_S = 0.25
SHOWN = 3000


async def until(
    look: Callable[[], Awaitable[T]], right: Callable[[T], object], what: str, timeout_s: float = 60.0, *, poll_s: float = POLL_S
) -> T:
    """The first answer of `look` that is `right`. An API server that does not answer counts as not right."""
    began = time.monotonic()
    seen: object = "nothing"
    while True:
        try:
            answer = await look()
        except UNREACHABLE as error:
            seen = f"{type(error).__name__}: {error}"
        else:
            if right(answer):
                return answer
            seen = answer
        if time.monotonic() - began > timeout_s:
            raise AssertionError(f"{what}: not so after {timeout_s:.0f} s; seen last: {str(seen)[:SHOWN]}")
        await asyncio.sleep(poll_s)


async def stays(look: Callable[[], Awaitable[T]], right: Callable[[T], object], what: str, for_s: float) -> T:
    """Every answer of `look` is `right` for a while; the last one."""
    end = time.monotonic() + for_s
    while True:
        answer = await look()
        assert right(answer), f"{what}: did not stay so; seen: {str(answer)[:SHOWN]}"
        if time.monotonic() >= end:
            return answer
        await asyncio.sleep(POLL_S)
