"""Stops asking a plugin that keeps failing. Source: planner.md §7."""

from dataclasses import dataclass
from enum import IntEnum

__all__ = ("COOLDOWN_S", "MAX_FAILURES", "Breaker", "CircuitState")

MAX_FAILURES = 5
COOLDOWN_S = 30.0


class CircuitState(IntEnum):
    """Numbers are those of the wire."""

    CLOSED = 0
    OPEN = 1
    HALF_OPEN = 2


@dataclass(slots=True)
class Breaker:
    """Five failures in a row open the circuit. Half a minute later calls are tried again: a success closes it, a failure opens it anew."""

    failures: int = 0
    opened_at: float | None = None

    def state(self, now_s: float) -> CircuitState:
        """`now_s`: seconds of the monotonic clock. HALF_OPEN allows calls, as many as there are."""
        if self.opened_at is None:
            return CircuitState.CLOSED
        return CircuitState.HALF_OPEN if now_s - self.opened_at >= COOLDOWN_S else CircuitState.OPEN

    def succeeded(self) -> None:
        self.failures = 0
        self.opened_at = None

    def failed(self, now_s: float) -> bool:
        """Whether this failure opened the circuit. A late failure while it is open changes nothing."""
        state = self.state(now_s)
        if state is CircuitState.OPEN:
            return False
        self.failures += 1
        if state is CircuitState.CLOSED and self.failures < MAX_FAILURES:
            return False
        self.opened_at = now_s
        return True
