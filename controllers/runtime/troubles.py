"""What keeps a process from working, as a whole: collected from everything that reads and from the leader elector, shown by /readyz, and
logged once and then at growing intervals, however many requests fail.

Troubles last until whoever told them says that they are over. A right that is missing for a write is known by its refusals only; it is
logged in the same rhythm and keeps nobody from being ready.
"""

import logging
from dataclasses import dataclass, field

import anyio

from api.plan import Clock
from controllers.runtime.advice import MissingRight, advice, missing_right
from controllers.runtime.errors import ApiError

__all__ = ("Troubles",)

_LOG = logging.getLogger(__name__)
GRACE_S = 2.0
"""What is over by itself within this time is nobody's concern."""
REPEAT_S = (30.0, 1800.0)
"""First and longest time until the same is logged again; doubled each time."""
AT_ONCE = 20
"""So many different sentences of one time of trouble are logged as they come; further ones wait as if they had been said. There are servers
whose every answer is worded differently, with a port or an address in it."""
FORGET_S = 600.0
"""A right that was not refused for this long was granted."""


@dataclass(slots=True)
class _Trouble:
    """`before`: the error of another kind that preceded `error`, which has been so since `changed_at`."""

    since: float
    error: Exception
    changed_at: float
    before: Exception

    def error_at(self, now: float) -> Exception:
        """A starting API server refuses for a moment what it will allow, so another kind of error has to last before it counts."""
        return self.error if now - self.changed_at >= GRACE_S else self.before


@dataclass(slots=True)
class _Rhythm:
    """When something that lasts is to be logged."""

    next_at: float = float("-inf")
    interval_s: float = REPEAT_S[0]
    last_at: float = field(default=float("-inf"))

    def is_due(self, now: float) -> bool:
        """Whether it is time; if so, the next time is later by the present interval, which doubles."""
        if now < self.next_at:
            return False
        self.next_at, self.interval_s = now + self.interval_s, min(2 * self.interval_s, REPEAT_S[1])
        return True


class Troubles:
    """See the module. `server`: address of the API server, for texts."""

    def __init__(self, server: str, clock: Clock) -> None:
        self._server = server
        self._clock = clock
        self._open: dict[str, _Trouble] = {}
        self._rights: dict[MissingRight, _Rhythm] = {}
        self._news = anyio.Event()

    def tell(self, what: str, error: Exception | None) -> None:
        """`what` (a resource, the lease) cannot be read or written because of `error`; None: it can."""
        now, known = self._clock.monotonic(), self._open.get(what)
        if error is None:
            self._open.pop(what, None)
        elif known is None:
            self._open[what] = _Trouble(now, error, now, error)
            self._news.set()
        else:
            if type(error) is not type(known.error):
                known.before, known.changed_at = known.error_at(now), now
            known.error = error

    def refused(self, error: ApiError) -> None:
        """A request was refused. What RBAC refuses to write is logged; what it refuses to read is told by whoever reads."""
        right = missing_right(error)
        if right is None or right.is_read:
            return
        right, now = right._replace(namespace=""), self._clock.monotonic()
        rhythm = self._rights.get(right)
        if rhythm is None or now - rhythm.last_at > FORGET_S:
            rhythm = self._rights[right] = _Rhythm()
        rhythm.last_at = now
        if rhythm.is_due(now):
            _LOG.warning("right missing", extra={"what": str(right), "server_says": error.message})

    def lasting(self) -> list[str]:
        """Sentences about what is wrong by now and was wrong moments ago."""
        now = self._clock.monotonic()
        return advice(self._server, {what: t.error_at(now) for what, t in self._open.items() if now - t.since >= GRACE_S})

    async def run(self) -> None:
        """Logs until cancelled. Sleeps while nothing is wrong."""
        while True:
            await self._news.wait()
            self._news = anyio.Event()
            await anyio.sleep(GRACE_S)
            if self._open:
                await self._episode()

    async def _episode(self) -> None:
        """Logs from the first trouble to the end of the last one."""
        began, rhythm, said = self._clock.monotonic(), _Rhythm(), set[str]()
        while self._open:
            texts, now = self.lasting(), self._clock.monotonic()
            is_new = not said.issuperset(texts) and len(said) < AT_ONCE
            if texts and (is_new or now >= rhythm.next_at):
                rhythm.is_due(max(now, rhythm.next_at))
                said.update(texts[:AT_ONCE])
                _LOG.warning("trouble", extra={"what": texts, "seconds": round(now - began)})
            await anyio.sleep(GRACE_S)
        if said:
            _LOG.info("trouble over", extra={"seconds": round(self._clock.monotonic() - began)})
