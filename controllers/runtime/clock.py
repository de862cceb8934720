"""The two clocks of a process. Everything that decides takes a `Clock`, so that tests and simulation can put their own in."""

import time
from datetime import UTC, datetime

__all__ = ("SystemClock",)


class SystemClock:
    """Wall time (aware, UTC) for timestamps, CLOCK_MONOTONIC in seconds for deadlines.

    The monotonic clock does not stop for a paused process, which is what the leader's fence relies on.
    """

    def now(self) -> datetime:
        return datetime.now(UTC)

    def monotonic(self) -> float:
        return time.monotonic()
