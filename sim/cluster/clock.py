"""The clocks of everything in a simulated cluster."""

from asyncio import AbstractEventLoop
from datetime import UTC, datetime, timedelta

__all__ = ("EPOCH", "SimClock")

EPOCH = datetime(2026, 1, 1, tzinfo=UTC)
"""Wall time when a simulation begins."""


class SimClock:
    """The loop's time, as api.plan.Clock."""

    def __init__(self, loop: AbstractEventLoop) -> None:
        self._loop = loop

    def now(self) -> datetime:
        return EPOCH + timedelta(seconds=self._loop.time())

    def monotonic(self) -> float:
        return self._loop.time()
