"""Binder mode: plans rounds over all gangs that wait, hands plans over to be bound through pods/binding, and reports.

One key in the queue stands for "a round is due", so rounds never overlap. A round plans only when something has changed that a plan depends
on (nodes, pods, gangs, rules, a deadline); else it only reports. Both sets of gangs, those that wait and those about which something has to
be said, outlive a round that fails.
"""

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from random import Random
from typing import Any

import anyio

from api.core import Node, Pod, PriorityClass
from api.grove import ClusterTopologyBinding
from api.indexes import BY_GANG
from api.plan import Clock, Key, Outcome
from api.plan import Plan as Operations
from api.podgang import PodGang
from controllers.runtime.apply import Caller, Executor, Recorder
from controllers.runtime.assembly import Offload, in_thread
from controllers.runtime.controller import Controller, Keys, Watch
from controllers.runtime.errors import ApiError, NotLeader, TransportError
from controllers.runtime.expectations import Expectations
from controllers.runtime.manager import CachesByKind
from controllers.runtime.metrics import Metrics
from controllers.runtime.view import Caches
from controllers.runtime.workqueue import ECHO, USER, WorkQueue
from scheduler.binding import Binding
from scheduler.memory import Memory
from scheduler.model import Decision, Plan
from scheduler.observe import Entry, gang_keys, gang_levels, has_news, is_mute, observe, observe_context
from scheduler.report import GangState, minimums_met, report
from scheduler.rounds import Built, Rechecker, broken, gangs_of, leftovers, plan_all
from scheduler.snapshot import ClusterState, Snapshot

__all__ = ("ECHO_DELAY_S", "FIELD_MANAGER", "PACE_S", "ROUND", "Binder", "BinderController", "binder_watches")

FIELD_MANAGER = "grovekeeper/scheduler"
ROUND = Key("", "round")
ECHO_DELAY_S = 0.05
"""How long a round waits after news of pods, which come in swarms, and before it looks again for own writes."""
PACE_S = 0.02
"""Shortest time from the end of a round to the next: what comes in meanwhile is looked at together, however fast it comes."""
WRITE_AGAIN_S = (1.0, 10.0)
"""Shortest and longest wait after a report that was not accepted."""
NEVER = float("inf")

_LOG = logging.getLogger(__name__)


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


class BinderController(Controller):
    """The worker of the rounds; its work lasts until the binds that they began have ended."""

    def __init__(self, binder: "Binder", queue: WorkQueue[Key], *, clock: Clock, rng: Random, metrics: Metrics | None = None) -> None:
        super().__init__("binder", queue, self._round, clock=clock, rng=rng, workers=1, metrics=metrics)
        self._binder = binder
        self._binding = binder.binding
        self._monotonic = clock.monotonic
        self._next_at = 0.0
        binder.wake = lambda delay_s: queue.add_after(ROUND, delay_s)

    async def run(self) -> None:
        await self._binding.run(super().run)

    async def _round(self, key: Key) -> Outcome:
        """A round, unless the last one is only just over."""
        if (early_s := self._next_at - self._monotonic()) > 0.0:
            return Outcome("after", early_s)
        try:
            return await self._binder.round(key)
        finally:
            self._next_at = self._monotonic() + PACE_S


class Binder:
    """The scheduler in binder mode. `names`: scheduler names that it serves. `wake(delay_s)` has to ask for a round. `offload`: where plans
    are computed."""

    def __init__(
        self,
        caches: Caches,
        transport: Caller,
        recorder: Recorder,
        clock: Clock,
        metrics: Metrics,
        names: Sequence[str],
        offload: Offload = in_thread,
    ) -> None:
        self._offload = offload
        self._caches = caches
        self._clock = clock
        self._names = frozenset(names)
        self._expectations = Expectations(CachesByKind(caches), clock, metrics)
        self._executor = Executor(transport, FIELD_MANAGER, self._expectations, recorder, clock, metrics)
        self.binding = Binding(caches, self._executor, self._bind_ended)
        self.wake: Callable[[float], None] = lambda delay_s: None
        self._state = ClusterState()
        self._planned_version = -1
        """Version of the state that the last plans were made from; -1 when a round has to plan in any case."""
        self._pending: set[Key] = set()
        """Gangs that wait for nodes, and those that were not looked at yet."""
        self._untold: dict[Key, float] = {}
        """Gangs about which something may have to be written, with the time before which it is not worth a look (monotonic)."""
        self._plan_again_at = NEVER
        self._memory: dict[str, Memory] = {}
        self._entries: dict[Key, Entry] = {}
        self._built = Built()

    # handlers: keep the cluster state, remember which gangs are concerned, ask for a round

    def gang_changed(self, old: PodGang | None, new: PodGang | None) -> Keys:
        gang = new or old
        if gang is None or (old is not None and new is not None and _same_gang(old, new)):
            return ()
        key = Key.of(gang)
        if new is None:
            self._memory.pop(gang.metadata.uid, None)
            self._entries.pop(key, None)
            self._built.forget(gang.metadata.uid)
            self._expectations.forget(key)
            self._executor.forget(key)
        self._replan(key)
        return ((ROUND, USER),)

    def pod_changed(self, old: Pod | None, new: Pod | None) -> Keys:
        before = self._state.version
        news = has_news(old, new, self._state.assumed)
        if old is not None and (new is None or new.metadata.uid != old.metadata.uid):
            self._state.remove_pod(old.metadata.uid)
        if new is not None:
            self._state.set_pod(new)
        keys = tuple(gang_keys(old, new))
        if keys and news:
            self._replan(*keys)
        elif old is not None and new is not None and old.spec.node_name == new.spec.node_name and not is_mute(new):
            keys = ()  # the life of a placed pod is not ours to tell, and what we said last comes back
        self._untold |= dict.fromkeys(keys, 0.0)
        return ((ROUND, ECHO),) if keys or (self._pending and self._state.version != before) else ()

    def node_changed(self, old: Node | None, new: Node | None) -> Keys:
        before = self._state.version
        if old is None or new is None or old.metadata.labels != new.metadata.labels:
            self._built.clear()
        if new is None:
            self._state.remove_node(old.metadata.name if old is not None else "")
        else:
            self._state.set_node(new)
        return ((ROUND, USER),) if self._pending and self._state.version != before else ()

    def cluster_changed(self, old: Any, new: Any) -> Keys:
        self._built.clear()
        self._replan()
        return ((ROUND, USER),) if self._pending else ()

    def _replan(self, *keys: Key) -> None:
        self._pending.update(keys)
        self._planned_version = -1

    # a round

    def first_keys(self) -> Iterable[Key]:
        """A term begins: the cluster state is built from the caches, and every gang is looked at."""
        self._state = ClusterState()
        self._entries.clear()
        self._built.clear()
        for node in self._caches.list(Node):
            self._state.set_node(node)
        for pod in self._caches.list(Pod):
            self._state.set_pod(pod)
        self._replan(*(Key.of(g) for g in self._caches.list(PodGang)))
        return (ROUND,)

    async def round(self, key: Key) -> Outcome:
        """Plans what waits if need be, starts binding, reports. The reconcile function of the queue's one key."""
        if self._state.version != self._planned_version or self._clock.monotonic() >= self._plan_again_at:
            await self._plan()
        due_at = min(await self._tell(), self._plan_again_at)
        return Outcome("after", max(0.0, due_at - self._clock.monotonic())) if due_at < NEVER else Outcome()

    async def _plan(self) -> None:
        considered = set(self._pending)
        if not considered:
            self._planned_version, self._plan_again_at = self._state.version, NEVER
            return
        entries = observe(self._caches, considered, self._names, self._entries)
        snapshot, now = self._state.snapshot(self._clock.now()), self._clock.monotonic()
        # News that come while the planner works set it back to -1.
        self._planned_version, self._plan_again_at = snapshot.version, NEVER
        faults: dict[str, Exception] = {}
        context = observe_context(self._caches, self._state.assumed)
        idle = {uid for e in entries.values() if self._is_idle(uid := e.podgang.metadata.uid, now)}
        gangs = gangs_of(tuple(entries.values()), context, idle.__contains__, faults, self._built)
        try:
            planned = await self._offload(plan_all, snapshot, gangs) if gangs else None
        except BaseException:
            self._planned_version = -1
            raise
        if self._planned_version >= 0:  # else an entry may be out of date
            self._pending -= {k for k in considered if k not in entries or entries[k].settled}
        self._untold |= dict.fromkeys(considered & entries.keys(), 0.0)
        if planned is None:
            self._note(entries, {}, faults)
            return
        decisions = {uid: d for uid, d in planned.decisions.items() if uid not in idle}
        self._note(entries, decisions, faults | planned.faults)
        self._begin(snapshot, {d.gang.uid: d for d in decisions.values() if isinstance(d.result, Plan)}, entries)

    def _is_idle(self, uid: str, now: float) -> bool:
        """Being bound, or sitting out after a failed bind."""
        memory = self._memory.get(uid)
        if memory is not None and memory.retry_at > now:
            self._plan_again_at = min(self._plan_again_at, memory.retry_at)
            return True
        return self.binding.is_busy(uid)

    def _note(self, entries: Mapping[Key, Entry], decisions: Mapping[str, Decision], faults: Mapping[str, Exception]) -> None:
        now = self._clock.monotonic()
        for uid, error in faults.items():
            self._log_fault(uid, error)
        for entry in entries.values():
            uid = entry.podgang.metadata.uid
            memory = self._memory.setdefault(uid, Memory())
            if uid in faults:
                memory.decided(broken(faults[uid]), now)
            elif uid in decisions:
                memory.decided(decisions[uid].result, now)

    def _begin(self, snapshot: Snapshot, decisions: Mapping[str, Decision], entries: Mapping[Key, Entry]) -> None:
        """Hands over what can be bound and still holds. A plan that does not is dropped whole, and its gang is planned again."""
        is_same = self._state.version == snapshot.version
        checker = Rechecker(self._caches, None if is_same else self._state.snapshot(self._clock.now()))
        for uid, (gang, plan) in decisions.items():
            if not isinstance(plan, Plan):
                continue
            if len(plan.ready) < len(plan.assignments):
                self._look_again_at_release()
            if not plan.ready:
                continue
            key = Key(plan.namespace, plan.name)
            if faults := checker.faults(gang, plan):
                _LOG.info("plan dropped", extra={"gang": str(key), "why": "; ".join(faults)[:500]})
                self._replan(key)
                self.wake(0.0)
                continue
            memory = self._memory.setdefault(uid, Memory())
            memory.score, memory.has_leftovers = plan.score, leftovers(decisions[uid])
            self.binding.begin(plan, {p.metadata.uid: p for p in entries[key].pods}, self._state)
        if is_same and self._planned_version == snapshot.version:
            self._planned_version = self._state.version  # the planner knew the room that its own plans take

    def _look_again_at_release(self) -> None:
        """When a pod that should be gone by then counts as stuck, its room is promised to nobody."""
        now = self._clock.now()
        if (at := self._state.stuck_at(now)) is not None:
            self._plan_again_at = min(self._plan_again_at, self._clock.monotonic() + (at - now).total_seconds() + 1.0)

    def _bind_ended(self, plan: Plan, outcome: Outcome) -> None:
        key, memory = Key(plan.namespace, plan.name), self._memory.get(plan.gang_uid)
        self._untold[key] = 0.0
        if outcome.result == "done":
            if memory is not None:
                memory.bound()
            if memory is not None and memory.has_leftovers:
                self._replan(key)
            self.wake(ECHO_DELAY_S)  # with the watch's news of the same pods
            return
        if memory is not None:
            memory.refused(outcome, self._clock.monotonic())
        self._replan(key)
        self.wake(0.0)

    # reports

    async def _tell(self) -> float:
        """Writes what is new about each gang that may have news; when to look again (monotonic). What was not told stays untold."""
        now = self._clock.monotonic()
        due = sorted(key for key, at in self._untold.items() if at <= now)
        entries = observe(self._caches, due, self._names, self._entries)
        async with anyio.create_task_group() as tasks:
            for key in due:
                entry = entries.get(key)
                if entry is None:
                    del self._untold[key]
                    continue
                if entry.settled and self._planned_version >= 0:
                    self._pending.discard(key)
                uid = entry.podgang.metadata.uid
                if self.binding.is_busy(uid) or any(p.metadata.uid in self._state.assumed for p in entry.pods):
                    self._untold[key] = NEVER  # the end of the bind and the watch tell; half of the truth is not worth a write
                    continue
                lag_s, memory = self._expectations.behind(key, uid), self._memory.setdefault(uid, Memory())
                if entry.settled:
                    memory.bound()  # also when the answers to the binds were lost
                if lag_s == 0.0 and memory.tell_at <= now:
                    tasks.start_soon(self._catch_up, key, memory)
                left_s, why = memory.reason(now)
                left_s = max(left_s, memory.silence_s(why, now), ECHO_DELAY_S if lag_s is not None else 0.0)
                if left_s > 0.0:
                    self._untold[key] = now + left_s
                    continue
                del self._untold[key]
                if operations := self._report(entry, memory):
                    memory.told(why, now)
                    tasks.start_soon(self._write, key, entry, operations)
        # What came in meanwhile asks for its own round.
        return min((at for at in self._untold.values() if at > now), default=NEVER)

    def _report(self, entry: Entry, memory: Memory) -> Operations | None:
        _, why = memory.reason(self._clock.monotonic())
        levels = gang_levels(self._caches, entry.podgang)
        nodes = {n: node for p in entry.live if (n := p.spec.node_name) and (node := self._caches.get(Node, "", n))}
        foreign = frozenset(p.metadata.uid for p in entry.strangers)
        state = GangState(entry.podgang, entry.live, why, memory.score, levels, nodes, foreign)
        if why is None and not minimums_met(state):
            return None  # the next plan tells more
        try:
            ops = report(state, self._clock.now())
        except Exception as error:
            self._log_fault(entry.podgang.metadata.uid, error)
            return None
        return Operations(stages=(ops,)) if ops else None

    async def _write(self, key: Key, entry: Entry, operations: Operations) -> None:
        uid = entry.podgang.metadata.uid
        try:
            outcome = await self._executor.tell(key, operations, uid)
        except NotLeader as error:
            outcome = Outcome("after", error=str(error))
        except Exception as error:
            self._log_fault(uid, error)
            outcome = Outcome("backoff", error=str(error))
        if outcome.result != "done":
            again_at = self._clock.monotonic() + min(max(WRITE_AGAIN_S[0], outcome.after_s), WRITE_AGAIN_S[1])
            self._memory.setdefault(uid, Memory()).tell_at = self._untold[key] = again_at

    async def _catch_up(self, key: Key, memory: Memory) -> None:
        """Reads what became of a write of unknown outcome."""
        try:
            await self._expectations.settle(key)
        except (ApiError, TransportError) as error:
            _LOG.debug("outcome still unknown", extra={"key": str(key), "error": str(error)})
            memory.tell_at = self._clock.monotonic() + WRITE_AGAIN_S[0]

    def _log_fault(self, uid: str, error: Exception) -> None:
        """With its traceback, unless the gang ("": all together) raised the same before."""
        memory, text = self._memory.setdefault(uid, Memory()), f"{type(error).__name__}: {error}"
        if memory.fault != text:
            memory.fault = text
            _LOG.error("gang not handled", exc_info=error, extra={"uid": uid, "error": text})


def _same_gang(old: PodGang, new: PodGang) -> bool:
    """Nothing changed that plans or reports depend on. Before it has a phase our status cannot be added, so getting one counts."""
    a, b = old.metadata, new.metadata
    had_phase = old.status is not None and bool(old.status.phase)
    return had_phase and (a.uid, a.generation, a.labels, a.annotations) == (b.uid, b.generation, b.labels, b.annotations)
