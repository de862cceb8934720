"""Delays after failures and a token bucket. Both take time and randomness as data."""

from dataclasses import dataclass, field
from random import Random

__all__ = ("Backoff", "TokenBucket")


@dataclass(frozen=True, slots=True)
class Backoff:
    """Exponential delay: `base_s` doubled per failure up to `cap_s`, times a factor drawn from `jitter`."""

    base_s: float = 0.01
    cap_s: float = 60.0
    jitter: tuple[float, float] = (0.8, 1.2)

    def delay_s(self, failures: int, rng: Random) -> float:
        """Seconds to wait after the given number of earlier failures (0 for the first)."""
        # 2.0 ** 1024 overflows; long before that the cap has been reached.
        return min(self.base_s * 2.0 ** min(failures, 64), self.cap_s) * rng.uniform(*self.jitter)


@dataclass(slots=True)
class TokenBucket:
    """`rate_per_s` tokens a second, at most `burst` saved up. Reservations may go below zero, which makes later ones wait longer."""

    rate_per_s: float
    burst: float
    _tokens: float = field(init=False)
    _at: float | None = field(init=False, default=None)

    def __post_init__(self) -> None:
        self._tokens = self.burst

    def reserve(self, now: float) -> float:
        """Takes one token and says how many seconds from `now` (monotonic) it becomes valid; 0.0 when it is valid at once."""
        if self._at is not None:
            self._tokens = min(self.burst, self._tokens + max(0.0, now - self._at) * self.rate_per_s)
        self._at = now
        self._tokens -= 1.0
        return max(0.0, -self._tokens / self.rate_per_s)
