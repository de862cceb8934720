"""What stands between a process that may have lost its lease and the API server: every write asks the fence first.

The fence is a matter of time, not of messages: it is open only while a request sent now would end before another process could hold the
lease. So a process that was paused finds it closed at its first write, before any other task of it has run.
"""

from api.plan import Clock
from controllers.runtime.errors import NotLeader

__all__ = ("LeaseFence", "OpenFence")


class OpenFence:
    """Always open, for processes that run without election."""

    epoch = 0

    def check(self) -> None:
        return None


class LeaseFence:
    """Opened and kept open by the leader elector.

    `request_budget_s`: the longest that a write may take to reach the API server's storage after the check.
    """

    def __init__(self, clock: Clock, *, lease_duration_s: float = 15.0, request_budget_s: float = 5.0) -> None:
        self._clock = clock
        self._open_s = lease_duration_s - request_budget_s
        self._renew_started: float | None = None
        self.epoch = 0

    def renewed(self, started: float, epoch: int) -> None:
        """A renewal that was sent at `started` (monotonic) succeeded; the lease is ours in term `epoch`."""
        self._renew_started = started
        self.epoch = epoch

    def close(self) -> None:
        """Closes until the next renewal."""
        self._renew_started = None

    @property
    def is_open(self) -> bool:
        """Whether a write may be sent now."""
        return self._renew_started is not None and self._clock.monotonic() < self._renew_started + self._open_s

    def check(self) -> None:
        if not self.is_open:
            raise NotLeader("the lease is not safely held")
