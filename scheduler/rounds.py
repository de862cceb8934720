"""Parts of a round that wait for nothing: gangs from entries, planning that survives a gang it cannot handle, the check before binding."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from api.core import Pod
from api.labels import PODGANG
from api.plan import CacheView, Why
from api.podgang import PodGang
from api.reasons import Reason
from scheduler.checker import Checker
from scheduler.gangs import GangContext, build_gang
from scheduler.model import Decision, Gang, MemberState, Plan, Verdict
from scheduler.observe import Entry
from scheduler.order import turn_key
from scheduler.planner import plan_round
from scheduler.snapshot import Snapshot, commit

__all__ = ("Built", "Planned", "Rechecker", "broken", "gangs_of", "leftovers", "plan_all")

PLACED = (MemberState.PLACED, MemberState.SUCCEEDED)


class Planned:
    """The answers of a round by gang uid. `faults`: what was raised, by uid of the gang; by "" where all gangs together raised it."""

    def __init__(self) -> None:
        self.decisions: dict[str, Decision] = {}
        self.faults: dict[str, Exception] = {}

    def take(self, decisions: Iterable[Decision]) -> None:
        self.decisions |= {d.gang.uid: d for d in decisions}


class Built:
    """Gangs of earlier rounds, used again while their entry is the same. `clear` when topologies, priorities or labels of nodes change."""

    def __init__(self) -> None:
        self._gangs: dict[str, tuple[Entry, list[str | None], Gang]] = {}

    def gang(self, entry: Entry, context: GangContext) -> Gang:
        """As build_gang."""
        assumed = [context.assumed.get(p.metadata.uid) for p in entry.live if not p.spec.node_name]
        uid = entry.podgang.metadata.uid
        known = self._gangs.get(uid)
        if known is None or known[0] is not entry or known[1] != assumed:
            known = self._gangs[uid] = entry, assumed, build_gang(entry.podgang, entry.pods, context)
        return known[2]

    def forget(self, uid: str) -> None:
        """The gang is gone."""
        self._gangs.pop(uid, None)

    def clear(self) -> None:
        """All are built anew."""
        self._gangs.clear()


def gangs_of(
    entries: Sequence[Entry], context: GangContext, idle: Callable[[str], bool], faults: dict[str, Exception], built: Built
) -> list[Gang]:
    """The gangs to plan. Those for whose uid `idle` is true take part with their placed pods only: others look at them.

    A gang that cannot be read is left out and noted in `faults`.
    """
    gangs: list[Gang] = []
    for entry in entries:
        uid = entry.podgang.metadata.uid
        try:
            gang = built.gang(entry, context)
        except Exception as error:
            faults[uid] = error
            continue
        if idle(uid):
            kept = tuple(replace(g, members=tuple(m for m in g.members if m.state in PLACED)) for g in gang.groups)
            gang = replace(gang, groups=kept)
        elif entry.foreign is not None:
            gang = replace(gang, problem=entry.foreign)
        gangs.append(gang)
    return gangs


def plan_all(snapshot: Snapshot, gangs: Sequence[Gang]) -> Planned:
    """As plan_round. When that raises, each gang is planned on its own, so that only those are left out that raise again."""
    planned = Planned()
    try:
        planned.take(plan_round(snapshot, gangs))
    except Exception as error:
        planned.faults[""] = error
        _one_by_one(snapshot.fork(), gangs, planned)
    return planned


def _one_by_one(room: Snapshot, gangs: Sequence[Gang], planned: Planned) -> None:
    """Base gangs that are placed already accompany their scaled gangs; a base gang placed only now lets them wait for the next round."""
    by_name = {(g.namespace, g.name): g for g in gangs}
    for gang in sorted(gangs, key=turn_key):
        base = by_name.get((gang.namespace, gang.base)) if gang.base else None
        result = planned.decisions[base.uid].result if base is not None and base.uid in planned.decisions else None
        company = [base] if base is not None and isinstance(result, Verdict) and result.kind == "placed" else []
        try:
            found = next(d for d in plan_round(room, [gang, *company]) if d.gang.uid == gang.uid)
        except Exception as error:
            planned.faults[gang.uid] = error
            continue
        planned.take([found])
        if isinstance(found.result, Plan):
            commit(room, found.result, {g.name: g for g in gang.groups})


def broken(error: Exception) -> Verdict:
    """What is said about a gang that raised `error`."""
    text = f"{type(error).__name__}: {error}"[:700]
    return Verdict("refused", Why(Reason.SOLVER_FALLBACK, f"The gang could not be planned: {text}. The others are; please report this."))


class Rechecker:
    """Asks, between plan and bind, whether the plan still holds. `snapshot`: a later one than the plans were made from, None when nothing
    has changed in the cluster since; pods and gangs are looked up in `view` in any case.
    """

    def __init__(self, view: CacheView, snapshot: Snapshot | None) -> None:
        self._view = view
        self._checker = Checker(snapshot) if snapshot is not None else None

    def faults(self, gang: Gang, plan: Plan) -> list[str]:
        """Why the plan does not hold any more; none means that it may be bound."""
        live = self._view.get(PodGang, plan.namespace, plan.name)
        if live is None or live.metadata.uid != plan.gang_uid or live.metadata.deleting:
            return ["the gang is gone"]
        if live.metadata.generation != plan.generation:
            return ["the gang was changed"]
        pods = {a.uid: self._view.get(Pod, a.namespace, a.name) for a in plan.ready}
        gone = [a.name for a in plan.ready if not _waits(pods[a.uid], a.uid, plan.name)]
        if gone:
            return [f"pod {name} does not wait for a node any more" for name in gone]
        return self._checker.accept(gang, plan) if self._checker is not None else []


def _waits(pod: Pod | None, uid: str, gang: str) -> bool:
    if pod is None or pod.metadata.uid != uid or pod.metadata.labels.get(PODGANG, gang) != gang:
        return False
    return not (pod.metadata.deleting or pod.finished or pod.gates or pod.spec.node_name)


def leftovers(decision: Decision) -> bool:
    """Whether pods without gates are left that the decision gives no node yet."""
    ready = {a.uid for a in decision.result.ready} if isinstance(decision.result, Plan) else set[str]()
    return any(m.state is MemberState.PENDING and m.uid not in ready for g in decision.gang.groups for m in g.members)
