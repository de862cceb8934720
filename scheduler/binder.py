"""Binder mode: plans rounds over all gangs that wait, and binds the pods of a plan through pods/binding.

One key in the queue stands for "a round is due", so rounds never overlap. Binding goes on beside the next round: pods in flight are assumed
on their nodes in the cluster state until the watch shows them there, or the API server has refused them.
"""

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import anyio
import anyio.abc
import anyio.to_thread

from api.core import Node, Pod, PriorityClass
from api.grove import ClusterTopologyBinding
from api.indexes import BY_GANG
from api.plan import Bind, Clock, Key, Outcome, Ref, Why
from api.plan import Plan as Operations
from api.podgang import PodGang
from api.reasons import Reason
from controllers.runtime.apply import Caller, Executor, Recorder
from controllers.runtime.controller import Keys, Watch
from controllers.runtime.errors import ApiError, TransportError
from controllers.runtime.expectations import Expectations
from controllers.runtime.manager import CachesByKind
from controllers.runtime.metrics import Metrics
from controllers.runtime.view import Caches
from controllers.runtime.workqueue import ECHO, USER
from scheduler.gangs import build_gang
from scheduler.model import Assignment, Decision, Plan
from scheduler.observe import Entry, gang_keys, gang_levels, observe, observe_context
from scheduler.planner import plan_round
from scheduler.report import GangState, report
from scheduler.snapshot import ClusterState

__all__ = ("FIELD_MANAGER", "ROUND", "Binder", "binder_watches")

FIELD_MANAGER = "grovekeeper/scheduler"
ROUND = Key("", "round")
PATIENCE_S = {Reason.WAITING_FOR_BASE_GANG: 2.0}
LONG_PATIENCE_S = 15.0
"""Waits for pods, gates or an Anchor gang are stations of every gang's life, so they are shown only when they last."""
BACKOFF_S = (1.0, 60.0)
"""After a refused bind a gang sits out at least and at most this long; the time doubles with each refusal in a row."""
BINDS_IN_FLIGHT = 64
UNKNOWN_S = 1.0
"""How long after a bind whose outcome the API server could not tell it is asked again."""

_LOG = logging.getLogger(__name__)


@dataclass(slots=True)
class _Memory:
    """What is remembered of a gang between rounds. waiting_since, retry_at: monotonic seconds."""

    score: float | None = None
    waiting_since: float | None = None
    refusals: int = 0
    retry_at: float = 0.0
    refusal: Why | None = None


def binder_watches(binder: "Binder") -> tuple[Watch[Any], ...]:
    """What the binder reads. Events that free room or change rules wake every gang that waits."""
    cluster: Callable[[Any, Any], Keys] = binder.cluster_changed
    return (
        Watch(PodGang, binder.gang_changed),
        Watch(Pod, binder.pod_changed, (BY_GANG,)),
        Watch(Node, binder.node_changed),
        Watch(ClusterTopologyBinding, cluster),
        Watch(PriorityClass, cluster),
    )


class Binder:
    """The scheduler in binder mode. `names`: scheduler names that it serves. `wake(delay_s)` has to ask for a round."""

    def __init__(self, caches: Caches, transport: Caller, recorder: Recorder, clock: Clock, metrics: Metrics, names: Sequence[str]) -> None:
        self._caches = caches
        self._clock = clock
        self._names = frozenset(names)
        expectations = Expectations(CachesByKind(caches), clock, metrics)
        self._executor = Executor(transport, FIELD_MANAGER, expectations, recorder, clock, metrics)
        self._expectations = expectations
        self._state = ClusterState()
        self._dirty: set[Key] = set()
        self._pending: set[Key] = set()
        self._memory: dict[str, _Memory] = {}
        self._binding: set[str] = set()
        self._limiter = anyio.CapacityLimiter(BINDS_IN_FLIGHT)
        self._tasks: anyio.abc.TaskGroup | None = None
        self.wake: Callable[[float], None] = lambda delay_s: None

    # handlers: keep the cluster state, remember which gangs are concerned, ask for a round

    def gang_changed(self, old: PodGang | None, new: PodGang | None) -> Keys:
        gang = new or old
        if gang is None or (old is not None and new is not None and old.metadata.generation == new.metadata.generation and _known(old)):
            return ()
        if new is None:
            self._memory.pop(gang.metadata.uid, None)
        self._dirty.add(Key.of(gang))
        return ((ROUND, USER),)

    def pod_changed(self, old: Pod | None, new: Pod | None) -> Keys:
        before = self._state.version
        if old is not None and (new is None or new.metadata.uid != old.metadata.uid):
            self._state.remove_pod(old.metadata.uid)
        if new is not None:
            self._state.set_pod(new)
        keys = tuple(gang_keys(old, new))
        self._dirty.update(keys)
        return ((ROUND, ECHO),) if keys or (self._pending and self._state.version != before) else ()

    def node_changed(self, old: Node | None, new: Node | None) -> Keys:
        before = self._state.version
        if new is None:
            self._state.remove_node(old.metadata.name if old is not None else "")
        else:
            self._state.set_node(new)
        return ((ROUND, USER),) if self._pending and self._state.version != before else ()

    def cluster_changed(self, old: Any, new: Any) -> Keys:
        return ((ROUND, USER),) if self._pending else ()

    # a round

    def first_keys(self) -> Iterable[Key]:
        """A term begins: the cluster state is built from the caches, and every gang is looked at."""
        self._state = ClusterState()
        for node in self._caches.list(Node):
            self._state.set_node(node)
        for pod in self._caches.list(Pod):
            self._state.set_pod(pod)
        self._dirty.update(Key.of(g) for g in self._caches.list(PodGang))
        return (ROUND,)

    async def run(self) -> None:
        """Owns the binding tasks, as long as the process runs."""
        async with anyio.create_task_group() as self._tasks:
            await anyio.sleep_forever()

    async def round(self, key: Key) -> Outcome:
        """Plans all gangs that changed or wait, starts binding, reports. The reconcile function of the queue's one key."""
        considered, self._dirty = self._dirty | self._pending, set()
        entries = observe(self._caches, considered, self._names)
        snapshot = self._state.snapshot(self._clock.now())
        context = observe_context(self._caches, self._state.assumed)
        open_entries = {k: e for k, e in entries.items() if e.podgang.metadata.uid not in self._binding}
        gangs = [build_gang(e.podgang, e.pods, context) for e in open_entries.values() if not self._sits_out(e)]
        decisions: Sequence[Decision] = await anyio.to_thread.run_sync(plan_round, snapshot, gangs) if gangs else ()
        by_uid = {d.gang.uid: d for d in decisions}
        self._pending = {k for k in considered if k in entries and not entries[k].settled}
        plans = [d.result for d in decisions if isinstance(d.result, Plan) and d.result.ready]
        for plan in plans:
            self._begin(plan, open_entries[Key(plan.namespace, plan.name)])
        return await self._tell(entries, by_uid)

    def _sits_out(self, entry: Entry) -> bool:
        return self._retry_at(entry) > self._clock.monotonic()

    def _retry_at(self, entry: Entry) -> float:
        memory = self._memory.get(entry.podgang.metadata.uid)
        return memory.retry_at if memory is not None else 0.0

    def _begin(self, plan: Plan, entry: Entry) -> None:
        """Counts the plan's pods as placed and binds them beside the next rounds."""
        pods = {p.metadata.uid: p for p in entry.pods}
        for assignment in plan.ready:
            self._state.assume(pods[assignment.uid], assignment.node)
        memory = self._memory.setdefault(plan.gang_uid, _Memory())
        memory.score = plan.score
        self._binding.add(plan.gang_uid)
        if self._tasks is None:
            raise RuntimeError("rounds need the binder to run")
        self._tasks.start_soon(self._bind, plan)

    async def _bind(self, plan: Plan) -> None:
        key = Key(plan.namespace, plan.name)
        binds = tuple(Bind(Ref(Pod.KIND, a.namespace, a.name, a.uid), a.node) for a in plan.ready)
        try:
            async with self._limiter:
                outcome = await self._executor.run(key, Operations(stages=(binds,)), plan.gang_uid)
            if outcome.result == "done":
                self._succeeded(plan.gang_uid)
            else:
                await self._settle(plan.ready)
                self._refused(plan, outcome)
        finally:
            self._binding.discard(plan.gang_uid)
            self._dirty.add(key)
            self.wake(0.0)

    def _succeeded(self, uid: str) -> None:
        memory = self._memory.setdefault(uid, _Memory())
        memory.refusals, memory.refusal = 0, None

    def _refused(self, plan: Plan, outcome: Outcome) -> None:
        """Remembers that the gang could not be bound, so that it does not come first in every round from now on."""
        memory = self._memory.setdefault(plan.gang_uid, _Memory())
        first_s, longest_s = BACKOFF_S
        delay_s = outcome.after_s if outcome.result == "after" else min(longest_s, first_s * 2.0 ** min(memory.refusals, 10))
        memory.retry_at = self._clock.monotonic() + delay_s
        if outcome.result != "conflict":
            memory.refusals += 1
            memory.refusal = Why(Reason.BIND_REJECTED, f"The API server refused to bind: {outcome.error}. Retried in {delay_s:.0f} s.")
        _LOG.warning("bind failed", extra={"gang": f"{plan.namespace}/{plan.name}", "error": outcome.error, "retry_s": delay_s})
        self.wake(delay_s)

    async def _settle(self, assignments: Sequence[Assignment]) -> None:
        """After a failed bind the API server tells which pods have a node; the others are given back.

        It is asked until it answers: of a bind that never happened the watch tells nothing.
        """
        informer = self._caches.informer(Pod)
        unknown = list(assignments)
        while unknown:
            asked, unknown = unknown, list[Assignment]()
            for a in asked:
                try:
                    await informer.live_get(Key(a.namespace, a.name))
                except (ApiError, TransportError):
                    unknown.append(a)
                    continue
                self._state.forget(a.uid)
            if unknown:
                await anyio.sleep(UNKNOWN_S)

    # reports

    async def _tell(self, entries: Mapping[Key, Entry], decisions: Mapping[str, Decision]) -> Outcome:
        """Writes what is new about each gang. A refused report does not keep others from theirs."""
        soonest_s: float | None = None
        in_flight = self._state.assumed
        async with anyio.create_task_group() as tasks:
            for key, entry in entries.items():
                # A round for another reason takes the place of the one that was asked for when the gang's retry is due.
                if (left_s := self._retry_at(entry) - self._clock.monotonic()) > 0.0:
                    soonest_s = min(left_s, soonest_s) if soonest_s is not None else left_s
                if any(p.metadata.uid in in_flight for p in entry.pods):
                    continue  # the watch will show where its pods are; half of the truth is not worth a write
                delay_s, why = self._reason(entry, decisions.get(entry.podgang.metadata.uid))
                if delay_s is not None:
                    soonest_s = min(delay_s, soonest_s) if soonest_s is not None else delay_s
                    self._dirty.add(key)
                    continue
                memory = self._memory.get(entry.podgang.metadata.uid, _Memory())
                levels = gang_levels(self._caches, entry.podgang)
                nodes = {n: node for p in entry.live if (n := p.spec.node_name) and (node := self._caches.get(Node, "", n))}
                ops = report(GangState(entry.podgang, entry.live, why, memory.score, levels, nodes), self._clock.now())
                if ops:
                    tasks.start_soon(self._write, key, entry, Operations(stages=(ops,)))
        return Outcome("after", soonest_s) if soonest_s is not None else Outcome()

    async def _write(self, key: Key, entry: Entry, operations: Operations) -> None:
        outcome = await self._executor.tell(key, operations, entry.podgang.metadata.uid)
        if outcome.result != "done":
            self._dirty.add(key)
            self.wake(max(1.0, outcome.after_s))

    def _reason(self, entry: Entry, decision: Decision | None) -> tuple[float | None, Why | None]:
        """(seconds until it may be said, why the gang waits). Waits that usually end by themselves are not announced at once."""
        uid, now = entry.podgang.metadata.uid, self._clock.monotonic()
        memory = self._memory.setdefault(uid, _Memory())
        if memory.retry_at > now:
            return None, memory.refusal
        if decision is None or isinstance(decision.result, Plan):
            memory.waiting_since = None
            return None, None
        verdict = decision.result
        if verdict.kind != "waiting":
            memory.waiting_since = None
            return None, verdict.why
        if memory.waiting_since is None:
            memory.waiting_since = now
        patience_s = PATIENCE_S.get(verdict.why.reason, LONG_PATIENCE_S) if verdict.why else LONG_PATIENCE_S
        left_s = patience_s - (now - memory.waiting_since)
        return (left_s if left_s > 0 else None), verdict.why


def _known(gang: PodGang) -> bool:
    """The PodGang controller has given it a phase, so that our status may be added."""
    return gang.status is not None and bool(gang.status.phase)
