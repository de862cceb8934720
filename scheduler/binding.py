"""Binds the pods of plans beside the rounds. Pods in flight are assumed on their nodes in the cluster state until the watch shows them
there, or the API server has said that they are not.

All of it belongs to a term: `run` ends when no bind is in flight any more, so the lease is kept until then.
"""

import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence

import anyio
import anyio.abc

from api.core import Pod
from api.plan import Bind, Key, Outcome, Ref
from api.plan import Plan as Operations
from controllers.runtime.apply import Executor
from controllers.runtime.errors import ApiError, NotLeader, TransportError
from controllers.runtime.view import Caches
from scheduler.model import Assignment, Plan
from scheduler.snapshot import ClusterState

__all__ = ("Binding",)

BINDS_IN_FLIGHT = 64
ASK_AGAIN_S = (1.0, 10.0)
"""First and longest wait before the API server is asked again what became of binds."""

_LOG = logging.getLogger(__name__)


class Binding:
    """See the module. `ended(plan, outcome)` is called once for each plan that was begun, when it is known where its pods are."""

    def __init__(self, caches: Caches, executor: Executor, ended: Callable[[Plan, Outcome], None]) -> None:
        self._caches = caches
        self._executor = executor
        self._ended = ended
        self._in_flight: set[str] = set()
        self._limiter = anyio.CapacityLimiter(BINDS_IN_FLIGHT)
        self._binds: anyio.abc.TaskGroup | None = None
        self._questions: anyio.abc.TaskGroup | None = None

    def is_busy(self, gang_uid: str) -> bool:
        """Whether a plan of the gang is being carried out."""
        return gang_uid in self._in_flight

    async def run(self, rounds: Callable[[], Awaitable[None]]) -> None:
        """Runs `rounds` to its end, then waits for binds in flight. What is still unknown then is for the next term to find out."""
        async with anyio.create_task_group() as self._questions:
            async with anyio.create_task_group() as self._binds:
                await rounds()
            self._questions.cancel_scope.cancel()

    def begin(self, plan: Plan, pods: Mapping[str, Pod], state: ClusterState) -> None:
        """Counts the plan's ready pods as placed in `state` and binds them. `pods`: at least those, by uid."""
        if self._binds is None:
            raise RuntimeError("binds need `run`")
        for assignment in plan.ready:
            state.assume(pods[assignment.uid], assignment.node)
        self._in_flight.add(plan.gang_uid)
        self._binds.start_soon(self._bind, plan, state)

    async def _bind(self, plan: Plan, state: ClusterState) -> None:
        outcome = await self._carry_out(plan)
        if outcome.result == "done":
            self._end(plan, outcome)
        elif self._questions is not None:
            _LOG.warning("bind failed", extra={"gang": f"{plan.namespace}/{plan.name}", "error": outcome.error})
            self._questions.start_soon(self._settle, plan, state, outcome)

    async def _carry_out(self, plan: Plan) -> Outcome:
        """What went wrong is an outcome, whatever it is: other gangs are being bound too."""
        binds = tuple(Bind(Ref(Pod.KIND, a.namespace, a.name, a.uid), a.node) for a in plan.ready)
        try:
            async with self._limiter:
                return await self._executor.run(Key(plan.namespace, plan.name), Operations(stages=(binds,)), plan.gang_uid)
        except NotLeader as error:
            return Outcome("conflict", error=str(error))
        except Exception as error:
            _LOG.exception("bind crashed", extra={"gang": f"{plan.namespace}/{plan.name}"})
            return Outcome("backoff", error=f"{type(error).__name__}: {error}")

    async def _settle(self, plan: Plan, state: ClusterState, outcome: Outcome) -> None:
        """After a failed bind the API server tells which pods have a node; the others are given back.

        It is asked until it answers: of a bind that never happened the watch tells nothing, and one that happened late takes room.
        """
        wait_s, longest_s = ASK_AGAIN_S
        while unknown := await self._ask(plan.ready, state):
            _LOG.warning("binds unknown", extra={"gang": f"{plan.namespace}/{plan.name}", "pods": len(unknown), "retry_s": wait_s})
            await anyio.sleep(wait_s)
            wait_s = min(2 * wait_s, longest_s)
        self._end(plan, outcome)

    async def _ask(self, assignments: Sequence[Assignment], state: ClusterState) -> list[Assignment]:
        """Reads the pods that are assumed still; returns those of which it is still unknown where they are."""
        open_ = [a for a in assignments if a.uid in state.assumed]
        refused: list[Assignment] = []
        for i, a in enumerate(open_):
            try:
                await self._caches.informer(Pod).live_get(Key(a.namespace, a.name))
            except TransportError:
                return refused + open_[i:]  # an outage meets all of them
            except (ApiError, ValueError):
                refused.append(a)
                continue
            state.forget(a.uid)  # no effect where the answer has put it on a node
        return refused

    def _end(self, plan: Plan, outcome: Outcome) -> None:
        self._in_flight.discard(plan.gang_uid)
        self._ended(plan, outcome)
