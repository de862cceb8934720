"""What a controller still has to look at."""

import asyncio
from collections.abc import Awaitable, Callable, Hashable
from typing import Final, Generic, TypeVar

__all__ = ("Queue",)

K = TypeVar("K", bound=Hashable)

FIRST_RETRY_S: Final = 0.1
LAST_RETRY_S: Final = 60.0
BATCH: Final = 50
"""Keys between two turns of the event loop: requests in this process never wait, so others would have to."""


class Queue(Generic[K]):
    """Keys in the order in which they came, each once. What fails comes again later, ever more slowly.

    Keys can be added from the moment it is made; timers exist only while `run` runs.
    """

    def __init__(self) -> None:
        self._due: dict[K, None] = {}
        self._wake = asyncio.Event()
        self._tries: dict[K, int] = {}
        self._timers: dict[K, asyncio.TimerHandle] = {}

    def add(self, key: K) -> None:
        """Looks at the key soon."""
        if (timer := self._timers.pop(key, None)) is not None:
            timer.cancel()
        self._due[key] = None
        self._wake.set()

    async def run(self, settle: Callable[[K], Awaitable[bool]]) -> None:
        """Settles until cancelled. `settle` says whether it is done with the key for now."""
        try:
            while True:
                await self._wake.wait()
                self._wake.clear()
                count = 0
                while self._due:
                    key = next(iter(self._due))
                    del self._due[key]
                    if await settle(key):
                        self._tries.pop(key, None)
                    else:
                        self._again(key)
                    count += 1
                    if count % BATCH == 0:
                        await asyncio.sleep(0)
        finally:
            for timer in self._timers.values():
                timer.cancel()
            self._timers.clear()

    def _again(self, key: K) -> None:
        if key in self._due:
            return
        tries = self._tries[key] = self._tries.get(key, 0) + 1
        delay_s = min(FIRST_RETRY_S * 2 ** (tries - 1), LAST_RETRY_S)
        self._timers[key] = asyncio.get_running_loop().call_later(delay_s, self.add, key)
