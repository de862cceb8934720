"""The queue between event handlers and workers, with the semantics of client-go's workqueue and controller-runtime's priorities.

Guarantees: a key is in the hands of at most one worker; a key added while it is worked on is handed out exactly once more, after `done`;
many adds before a worker takes the key are one; of several times at which a key becomes ready the earliest counts, of several priorities
the highest. Time comes from the clock; only `get` and `drained` wait.
"""

from collections import deque
from collections.abc import Hashable
from dataclasses import dataclass
from heapq import heappop, heappush
from itertools import count
from random import Random
from typing import Generic, TypeVar

import anyio

from api.plan import Clock
from controllers.runtime.metrics import QueueMetrics
from controllers.runtime.ratelimit import Backoff, TokenBucket

__all__ = ("ECHO", "RESYNC", "USER", "WorkQueue")

USER = 0
"""Priority of somebody's change."""
ECHO = -10
"""Priority of status changes that mostly follow from our own writes."""
RESYNC = -100
"""Priority of the first list and of resyncs, so that fresh changes overtake them after a start."""

K = TypeVar("K", bound=Hashable)


@dataclass(slots=True)
class _Ready:
    """A key that a worker may take, or will be able to take when the present work on it is done."""

    priority: int
    since: float
    ticket: int = -1


@dataclass(slots=True)
class _Delayed:
    """A key that becomes ready later."""

    ready_at: float
    priority: int
    ticket: int


@dataclass(slots=True)
class _Active:
    """A key in the hands of a worker."""

    priority: int
    started: float


class WorkQueue(Generic[K]):
    """See the module. `bucket` bounds the rate of retries of all keys together."""

    def __init__(
        self,
        clock: Clock,
        rng: Random,
        *,
        backoff: Backoff | None = None,
        bucket: TokenBucket | None = None,
        metrics: QueueMetrics | None = None,
    ) -> None:
        self._clock = clock
        self._rng = rng
        self._backoff = backoff or Backoff()
        self._bucket = bucket
        self._metrics = metrics
        self._ready: dict[K, _Ready] = {}
        self._ready_heap: list[tuple[int, int, K]] = []
        self._delayed: dict[K, _Delayed] = {}
        self._delayed_heap: list[tuple[float, int, K]] = []
        self._active: dict[K, _Active] = {}
        self._failures: dict[K, int] = {}
        self._tickets = count()
        self._waiters: deque[anyio.Event] = deque()
        self._idle: list[anyio.Event] = []
        self._closed = False
        if metrics is not None:
            metrics.depth.set(0)
            metrics.report_running(self._unfinished, lambda: max(self._running(), default=0.0))

    def __len__(self) -> int:
        """Keys that wait for a worker now; delayed ones and those in work are not counted."""
        return len(self._ready) - sum(key in self._ready for key in self._active)

    def add(self, key: K, priority: int | None = None) -> None:
        """Makes the key ready now. Without a priority: that of the present work on it, else USER."""
        if self._closed:
            return
        priority = self._priority(key, priority)
        delayed = self._delayed.pop(key, None)
        if delayed is not None:
            priority = max(priority, delayed.priority)
        ready = self._ready.get(key)
        if ready is None:
            ready = self._ready[key] = _Ready(priority, self._clock.monotonic())
            if self._metrics is not None:
                self._metrics.adds.inc()
        elif priority <= ready.priority:
            return
        ready.priority = priority
        if key not in self._active:
            self._offer(key, ready)

    def add_after(self, key: K, delay_s: float, priority: int | None = None) -> None:
        """Makes the key ready in `delay_s` seconds, unless it is or becomes ready earlier for another reason."""
        if self._closed:
            return
        if delay_s <= 0.0 or key in self._ready:
            self.add(key, priority)
            return
        ready_at = self._clock.monotonic() + delay_s
        priority = self._priority(key, priority)
        earlier = self._delayed.get(key)
        if earlier is not None:
            earlier.priority = max(earlier.priority, priority)
            if earlier.ready_at <= ready_at:
                return
            priority = earlier.priority
        ticket = next(self._tickets)
        self._delayed[key] = _Delayed(ready_at, priority, ticket)
        heappush(self._delayed_heap, (ready_at, ticket, key))
        self._wake()

    def add_rate_limited(self, key: K, priority: int | None = None) -> None:
        """add_after with a delay that doubles with each call until `forget`."""
        failures = self._failures.get(key, 0)
        self._failures[key] = failures + 1
        delay_s = self._backoff.delay_s(failures, self._rng)
        if self._bucket is not None:
            delay_s = max(delay_s, self._bucket.reserve(self._clock.monotonic()))
        self.requeue_after(key, delay_s, priority)

    def requeue_after(self, key: K, delay_s: float, priority: int | None = None) -> None:
        """add_after by a worker that gives its key back: counted as a retry, which a delayed event is not."""
        if self._metrics is not None and not self._closed:
            self._metrics.retries.inc()
        self.add_after(key, delay_s, priority)

    def forget(self, key: K) -> None:
        """Forgets the failures of the key."""
        self._failures.pop(key, None)

    def failures(self, key: K) -> int:
        """Calls of add_rate_limited since the last `forget`."""
        return self._failures.get(key, 0)

    def done(self, key: K) -> None:
        """Ends the work on a key that `get` gave out. Every `get` needs exactly one."""
        active = self._active.pop(key)
        if self._metrics is not None:
            self._metrics.work_duration.observe(self._clock.monotonic() - active.started)
        ready = self._ready.get(key)
        if ready is not None and not self._closed:
            self._offer(key, ready)
        if not self._active:
            for event in self._idle:
                event.set()
            self._idle.clear()

    def get_nowait(self) -> K | None:
        """The ready key with the highest priority, first come first served among equals; None when there is none."""
        if self._closed:
            return None
        self._promote()
        while self._ready_heap:
            _, ticket, key = heappop(self._ready_heap)
            ready = self._ready.get(key)
            if ready is None or ready.ticket != ticket:
                continue  # taken already, or re-queued with a higher priority
            del self._ready[key]
            now = self._clock.monotonic()
            self._active[key] = _Active(ready.priority, now)
            if self._metrics is not None:
                self._metrics.queue_duration.observe(now - ready.since)
                self._metrics.depth.set(len(self))
            return key
        return None

    async def get(self) -> K | None:
        """Waits for a key; None once the queue is shut down."""
        while not self._closed:
            key = self.get_nowait()
            if key is not None:
                return key
            waiter = anyio.Event()
            self._waiters.append(waiter)
            try:
                with anyio.move_on_after(self._next_delay_s()):
                    await waiter.wait()
            finally:
                if not waiter.is_set():
                    self._waiters.remove(waiter)
                elif self._ready_heap:
                    self._wake()  # this worker may be cancelled: the wake-up must not be lost
        return None

    def shut_down(self) -> None:
        """Stops intake and hand-out; keys in work stay in work until `done`."""
        self._closed = True
        while self._waiters:
            self._waiters.popleft().set()

    async def drained(self) -> None:
        """Waits until no key is in work. The caller sets the deadline."""
        if self._active:
            event = anyio.Event()
            self._idle.append(event)
            await event.wait()

    def _priority(self, key: K, priority: int | None) -> int:
        if priority is not None:
            return priority
        active = self._active.get(key)
        return active.priority if active is not None else USER

    def _offer(self, key: K, ready: _Ready) -> None:
        ready.ticket = next(self._tickets)
        heappush(self._ready_heap, (-ready.priority, ready.ticket, key))
        if self._metrics is not None:
            self._metrics.depth.set(len(self))
        self._wake()

    def _promote(self) -> None:
        now = self._clock.monotonic()
        while self._delayed_heap and self._delayed_heap[0][0] <= now:
            _, ticket, key = heappop(self._delayed_heap)
            delayed = self._delayed.get(key)
            if delayed is not None and delayed.ticket == ticket:
                self.add(key, delayed.priority)

    def _next_delay_s(self) -> float | None:
        while self._delayed_heap:
            ready_at, ticket, key = self._delayed_heap[0]
            delayed = self._delayed.get(key)
            if delayed is not None and delayed.ticket == ticket:
                return max(0.0, ready_at - self._clock.monotonic())
            heappop(self._delayed_heap)
        return None

    def _wake(self) -> None:
        if self._waiters:
            self._waiters.popleft().set()

    def _running(self) -> list[float]:
        now = self._clock.monotonic()
        return [now - active.started for active in self._active.values()]

    def _unfinished(self) -> float:
        return sum(self._running())
