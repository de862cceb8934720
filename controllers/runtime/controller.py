"""Workers around a queue, and the one loop that all controllers share: expectations, observe, plan, execute.

A controller is data (`ControllerSpec`): what it watches, how an event becomes keys, and its two pure functions.
"""

import logging
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from datetime import datetime
from random import Random
from typing import Any, Generic, Literal, TypeAlias, TypeVar

import anyio

from api.plan import CacheView, Clock, Index, Key, Object, Outcome, Plan
from controllers.runtime.apply import Executor
from controllers.runtime.errors import ApiError, NotLeader, TransportError
from controllers.runtime.expectations import Expectations
from controllers.runtime.metrics import Metrics
from controllers.runtime.observability import log_context
from controllers.runtime.refusals import UNREACHABLE_S
from controllers.runtime.workqueue import RESYNC, WorkQueue

__all__ = ("Controller", "ControllerSpec", "Keys", "ReconcileLoop", "Watch", "enqueue_all")

_LOG = logging.getLogger(__name__)
_SOONEST_S = 0.05
"""A plan whose deadline has passed is made again after this, not at once, so that no deadline can spin."""

O = TypeVar("O")  # noqa: E741 - the observation
T = TypeVar("T", bound=Object)

Keys: TypeAlias = Iterable[tuple[Key, int]]
"""Keys to reconcile, each with a priority of controllers.runtime.workqueue."""


@dataclass(frozen=True)
class Watch(Generic[T]):
    """A resource that a controller reads.

    keys: called with (old, new) for each change, as handlers of a store are; says which keys to reconcile. Never acts.
    indexes: those that `observe` uses on this model. Watches of one model by several controllers share an informer.
    """

    model: type[T]
    keys: Callable[[T | None, T | None], Keys]
    indexes: tuple[Index, ...] = ()
    namespace: str = ""
    label_selector: str = ""
    field_selector: str = ""


@dataclass(frozen=True)
class ControllerSpec(Generic[O]):
    """One controller. `name` is the value of metrics labels, `field_manager` what owns its fields.

    `root` is the kind that keys name; it has to be among the watches. All its keys are reconciled when a term begins.
    `echo_delay_s`: how long a key waits after an event of priority ECHO or lower, so that many of them become one reconcile.
    `failed` makes the plan that tells the user when a plan ended early (outcome blocked or backoff); without it only the log tells.
    """

    name: str
    field_manager: str
    root: type[Any]
    watches: tuple[Watch[Any], ...]
    observe: Callable[[CacheView, Key, datetime], O | None]
    plan: Callable[[O], Plan]
    failed: Callable[[O, Outcome], Plan] | None = None
    workers: int = 4
    echo_delay_s: float = 0.0


class ReconcileLoop(Generic[O]):
    """The reconcile function of a ControllerSpec."""

    def __init__(self, spec: ControllerSpec[O], view: CacheView, expectations: Expectations, executor: Executor, clock: Clock) -> None:
        self._spec = spec
        self._view = view
        self._expectations = expectations
        self._executor = executor
        self._clock = clock

    async def __call__(self, key: Key) -> Outcome:
        """Waits for own writes to become visible, then observes, plans and executes."""
        root: Object | None = self._view.get(self._spec.root, key.namespace, key.name)
        uid = root.metadata.uid if root is not None else ""
        lag_s = self._expectations.behind(key, uid)
        if lag_s == 0.0:
            try:
                await self._expectations.settle(key)
            except (ApiError, TransportError) as error:
                return Outcome("after", UNREACHABLE_S, str(error))
            lag_s = self._expectations.behind(key, uid)
        if lag_s is not None:
            return Outcome("after", max(lag_s, _SOONEST_S / 5))
        seen = self._spec.observe(self._view, key, self._clock.now())
        if seen is None:
            self._expectations.forget(key)
            self._executor.forget(key)
            return Outcome()
        plan = self._spec.plan(seen)
        outcome = await self._executor.run(key, plan, uid)
        if outcome.result in ("blocked", "backoff") and self._spec.failed is not None:
            await self._executor.tell(key, self._spec.failed(seen, outcome), uid)
        if outcome.result == "done" and plan.requeue_at is not None:
            return Outcome("after", max(_SOONEST_S, (plan.requeue_at - self._clock.now()).total_seconds()))
        return outcome


class Controller:
    """Workers that take keys from `queue` and give them to `reconcile`. `rng` makes reconcile ids.

    done: failures are forgotten. after and blocked: forgotten, and the key comes back in `after_s`. conflict and backoff, and what
    `reconcile` raises: the key comes back with a growing delay. Quietly so after NotLeader: whoever closed the fence ends the workers.
    """

    def __init__(
        self,
        name: str,
        queue: WorkQueue[Key],
        reconcile: Callable[[Key], Awaitable[Outcome]],
        *,
        clock: Clock,
        rng: Random,
        workers: int = 4,
        metrics: Metrics | None = None,
    ) -> None:
        self.name = name
        self.queue = queue
        self._reconcile = reconcile
        self._clock = clock
        self._rng = rng
        self._workers = workers
        self._metrics = metrics
        self._traced: set[tuple[str, str]] = set()

    async def run(self) -> None:
        """Works until the queue is shut down and the keys in work are finished."""
        async with anyio.create_task_group() as tasks:
            for _ in range(self._workers):
                tasks.start_soon(self._work)

    async def _work(self) -> None:
        while (key := await self.queue.get()) is not None:
            try:
                await self._handle(key)
            finally:
                self.queue.done(key)

    async def _handle(self, key: Key) -> None:
        started = self._clock.monotonic()
        with log_context(controller=self.name, reconcile_id=f"{self._rng.getrandbits(48):012x}"):
            result: Literal["done", "after", "conflict", "backoff", "blocked", "error", "not_leader"]
            try:
                outcome = await self._reconcile(key)
            except NotLeader:
                result = "not_leader"
                self.queue.add_rate_limited(key)
            except Exception as error:
                result = "error"
                self._report(key, error)
                self.queue.add_rate_limited(key)
            else:
                result = outcome.result
                self._requeue(key, outcome)
        if self._metrics is not None:
            self._metrics.reconcile_total.labels(self.name, result).inc()
            self._metrics.reconcile_time.labels(self.name).observe(self._clock.monotonic() - started)

    def _requeue(self, key: Key, outcome: Outcome) -> None:
        match outcome.result:
            case "done":
                self.queue.forget(key)
            case "after" | "blocked":
                self.queue.forget(key)
                self.queue.requeue_after(key, outcome.after_s)
            case "conflict" | "backoff":
                self.queue.add_rate_limited(key)

    def _report(self, key: Key, error: Exception) -> None:
        """A traceback for each new kind of bug, then one line each time. What the API answers is no bug and has no traceback."""
        kind = (type(error).__name__, _place(error))
        is_new_bug = not isinstance(error, (ApiError, TransportError)) and kind not in self._traced
        self._traced.add(kind)
        if self._metrics is not None:
            self._metrics.reconcile_errors.labels(self.name).inc()
        _LOG.error(
            "reconcile failed",
            exc_info=error if is_new_bug else None,
            extra={"key": str(key), "error": f"{type(error).__name__}: {error}", "retries": self.queue.failures(key)},
        )


def enqueue_all(queue: WorkQueue[Key], keys: Iterable[Key]) -> None:
    """Adds keys with the priority of a resync."""
    for key in keys:
        queue.add(key, RESYNC)


def _place(error: BaseException) -> str:
    """Where it was raised, as file and line."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return f"{trace.tb_frame.f_code.co_filename}:{trace.tb_lineno}" if trace is not None else ""
