"""One planning round: a snapshot and gangs in, a plan or a verdict for each gang out.

    decisions = plan_round(state.snapshot(now), gangs)

Pass every gang that still exists, placed ones too: scaled gangs look at their base gang. The snapshot is not changed. Each plan takes its
room before the next gang is looked at, so all plans of a round may be carried out together; whoever binds tells the `ClusterState`
(`assume`) and plans the next round on a new snapshot. The answer depends on the snapshot and the set of gangs alone, not on their order,
the clock or hash seeds. Order of turns: scheduler.md §4.5.
"""

import heapq
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np

from api.plan import Why
from api.reasons import Reason
from scheduler import explain
from scheduler.attempt import Anchor, Attempt, Budget, attempt, relabelled
from scheduler.checker import Checker
from scheduler.model import Assignment, Decision, Gang, Group, MemberState, Plan, Scope, Verdict
from scheduler.order import is_satisfied, surplus_key, turn_key
from scheduler.snapshot import Snapshot
from scheduler.tasks import Task, full_task, minimum_task, repair_tasks, surplus_task

__all__ = ("PlannerConfig", "plan_round")


@dataclass(frozen=True, slots=True)
class PlannerConfig:
    """`anchor`: whether scaled gangs prefer their base gang's domain or have to be in it. The rest limits search per round: choices of
    construction, calls of CP-SAT, and CP-SAT's deterministic time per call.
    """

    anchor: Literal["soft", "hard"] = "soft"
    steps: int = 6000
    proofs: int = 8
    improvements: int = 8
    proof_limit: float = 0.25
    improvement_limit: float = 0.05


@dataclass(slots=True)
class _Standing:
    """A gang in the course of the round. `rows`: row by uid of placed pods, -1 when finished or on an unknown node."""

    gang: Gang
    groups: dict[str, Group]
    rows: dict[str, int]
    assignments: list[Assignment] = field(default_factory=list[Assignment])
    is_releasing: bool = False
    verdict: Verdict | None = None
    method: Literal["construct", "solver"] = "construct"
    is_best: bool = True
    least: dict[tuple[str, str], int] = field(default_factory=dict[tuple[str, str], int])
    notes: tuple[Why, ...] = ()

    @property
    def is_satisfied(self) -> bool:
        return is_satisfied(self.gang.root, self.groups, self.rows)

    @property
    def is_settled(self) -> bool:
        """At its minimum with pods that run or may be bound now."""
        return self.is_satisfied and not self.is_releasing

    def restore(self, old: "_Standing") -> None:
        """Takes back what surplus changed since `old` was copied."""
        self.rows, self.assignments, self.least = old.rows, old.assignments, old.least
        self.notes, self.is_best, self.method = old.notes, old.is_best, old.method


def plan_round(snapshot: Snapshot, gangs: Iterable[Gang], config: PlannerConfig | None = None) -> list[Decision]:
    """A decision per gang, in the order in which minimums are served (priority, phase, base first, creation, name)."""
    planning = _Round(snapshot, gangs, config or PlannerConfig())
    planning.run()
    return planning.decisions()


class _Round:
    def __init__(self, snapshot: Snapshot, gangs: Iterable[Gang], config: PlannerConfig) -> None:
        self._origin = snapshot
        self._snapshot = snapshot.fork()
        self._config = config
        self._budget = Budget(config.steps, config.proofs, config.improvements, config.proof_limit, config.improvement_limit)
        ordered = sorted(gangs, key=turn_key)
        self._standings = [_Standing(g, {x.name: x for x in g.groups}, self._rows(g)) for g in ordered]
        self._by_name = {(s.gang.namespace, s.gang.name): s for s in self._standings}
        self._tails: dict[tuple[str, str], list[_Standing]] = {}
        for standing in self._standings:
            if standing.gang.base:
                self._tails.setdefault((standing.gang.namespace, standing.gang.base), []).append(standing)
        self._failed: dict[object, tuple[Attempt, explain.Certificate]] = {}

    def run(self) -> None:
        """Priorities one after the other: first all minimums, then surplus."""
        for priority in sorted({s.gang.priority for s in self._standings}, reverse=True):
            batch = [s for s in self._standings if s.gang.priority == priority]
            waiting = [s for s in batch if not s.is_satisfied]
            while waiting:
                later = [s for s in waiting if not self._minimum(s)]
                if len(later) == len(waiting):
                    break
                waiting = later
            self._surplus([s for s in batch if s.is_settled and self._hindrance(s) is None])

    def decisions(self) -> list[Decision]:
        """The results, each plan checked once more."""
        checker = Checker(self._origin)
        return [Decision(s.gang, self._result(s, checker)) for s in self._standings]

    def _result(self, standing: _Standing, checker: Checker) -> Plan | Verdict:
        gang = standing.gang
        left = explain.surplus_left(gang, standing.rows) if standing.is_settled else None
        if not standing.assignments:
            return standing.verdict or Verdict("placed", left)
        score = self._score(standing)
        plan = Plan(
            gang.uid,
            gang.namespace,
            gang.name,
            gang.generation,
            self._origin.version,
            tuple(standing.assignments),
            "releasing" if standing.is_releasing else "planned",
            standing.method,
            score,
            score if standing.is_best else 1.0,
            (*standing.notes, *(why for why in (left, standing.verdict and standing.verdict.why) if why is not None)),
        )
        faults = checker.accept(gang, plan)
        if faults:
            text = f"The plan failed its check: {'; '.join(faults)[:700]}. It is dropped; please report this."
            return Verdict("budget", Why(Reason.SOLVER_FALLBACK, text, {"faults": len(faults)}))
        return plan

    def _hindrance(self, standing: _Standing) -> Verdict | None:
        """What keeps the gang from being planned at all."""
        gang = standing.gang
        if gang.problem is not None:
            return Verdict("refused", gang.problem)
        if gang.stale is not None:
            return Verdict("waiting", gang.stale)
        if gang.base:
            base = self._by_name.get((gang.namespace, gang.base))
            if base is None or not base.is_settled:
                return Verdict("waiting", explain.waiting_for_base(gang))
        return None

    def _minimum(self, standing: _Standing) -> bool:
        """Gives a gang its turn for its minimums. False when it may have to be asked again, because its base gang is not placed yet."""
        gang = standing.gang
        standing.verdict = self._hindrance(standing)
        if standing.verdict is not None:
            return standing.verdict.why is None or standing.verdict.why.reason is not Reason.WAITING_FOR_BASE_GANG
        task = minimum_task(gang, standing.rows)
        if task is None:
            standing.verdict = Verdict("waiting", explain.waiting(gang, standing.rows))
            return True
        anchor, ahead, groups = self._anchor(standing), *self._ahead(standing)
        key = self._kind(standing, task) if anchor is None else None
        if key is not None and key in self._failed:
            self._fail(standing, task, *self._failed[key])
            return True
        result = attempt(self._snapshot, groups, task, self._budget, anchor=anchor, ahead=ahead)
        if result.found is not None:
            self._take(standing, task, result)
        elif not self._on_release(standing, task, anchor):
            found = explain.certificate(self._snapshot, standing.groups, task)
            if key is not None:
                self._failed[key] = result, found
            self._fail(standing, task, result, found)
            self._repair(standing, anchor)
        return True

    def _repair(self, standing: _Standing, anchor: Anchor | None) -> None:
        """A running gang gets replacements for each group on its own when they do not all fit: one lost rack must not starve the rest."""
        for task in repair_tasks(standing.gang, standing.rows):
            self._take(standing, task, attempt(self._snapshot, standing.groups, task, self._budget, anchor=anchor))

    def _on_release(self, standing: _Standing, task: Task, anchor: Anchor | None) -> bool:
        """Reserves room of terminating pods for the whole gang, if that is enough."""
        if not self._snapshot.soon.any():
            return False
        result = attempt(self._snapshot, standing.groups, task, self._budget, with_soon=True, anchor=anchor)
        if result.found is None:
            return False
        standing.is_releasing = True
        self._take(standing, task, result)
        return True

    def _fail(self, standing: _Standing, task: Task, result: Attempt, found: explain.Certificate) -> None:
        is_proven = result.status == "impossible"
        kind = "infeasible" if is_proven or found.fits < found.wanted else "budget"
        standing.verdict = Verdict(kind, explain.infeasible(task, found, is_proven=is_proven))

    def _take(self, standing: _Standing, task: Task, result: Attempt, *, on_release: bool = False) -> None:
        """Commits a placement to the round's snapshot."""
        if result.found is None:
            return
        standing.notes = explain.split_notes(self._snapshot, task) or standing.notes
        standing.least |= {k: v for k, v in result.found.least.items() if k not in standing.least}
        standing.is_best = standing.is_best and result.is_best
        standing.method = "solver" if result.method == "solver" else standing.method
        for member, row in sorted(result.found.placements, key=lambda p: (p[0].shape.group, p[0].name)):
            group = standing.groups[member.shape.group]
            self._snapshot.take(row, self._snapshot.vector(member.shape.request))
            self._snapshot.planned.append((row, group))
            standing.rows[member.uid] = row
            node = self._snapshot.table.name(row)
            standing.assignments.append(Assignment(member.uid, member.name, group.namespace, group.name, node, on_release))

    def _surplus(self, standings: list[_Standing]) -> None:
        """All surplus at once if there is room for it, else one portion per turn to the gang with the lowest ratio."""
        hungry = [s for s in standings if full_task(s.gang, s.rows, with_gated=False) is not None]
        if not hungry or self._all_surplus(hungry):
            return
        skips: dict[str, frozenset[str]] = {s.gang.uid: frozenset() for s in hungry}
        turns = [(surplus_key(s.gang, len(s.rows)), i) for i, s in enumerate(hungry)]
        heapq.heapify(turns)
        while turns:
            _, i = heapq.heappop(turns)
            standing = hungry[i]
            task = surplus_task(standing.gang, standing.rows, skips[standing.gang.uid])
            if task is None:
                continue
            if not self._portion(standing, task):
                skips[standing.gang.uid] |= {m.shape.group for t in task.walk() for m in t.members}
            heapq.heappush(turns, (surplus_key(standing.gang, len(standing.rows)), i))

    def _all_surplus(self, hungry: list[_Standing]) -> bool:
        """When everything fits, turns make no difference. Nothing is changed otherwise."""
        before, budget = self._snapshot, Budget(proofs=0, improvements=0)
        self._snapshot = before.fork()
        kept = [replace(s, rows=dict(s.rows), assignments=list(s.assignments), least=dict(s.least)) for s in hungry]
        for hungriest in sorted(hungry, key=lambda s: surplus_key(s.gang, len(s.rows))):
            task = full_task(hungriest.gang, hungriest.rows, with_gated=False)
            if task is None:
                continue
            result = attempt(self._snapshot, hungriest.groups, task, budget, anchor=self._anchor(hungriest))
            if result.found is None:
                self._snapshot = before
                for standing, old in zip(hungry, kept, strict=True):
                    standing.restore(old)
                return False
            self._take(hungriest, task, result)
        return True

    def _portion(self, standing: _Standing, task: Task) -> bool:
        anchor = self._anchor(standing)
        result = attempt(self._snapshot, standing.groups, task, self._budget, anchor=anchor)
        on_release = False
        if result.found is None and self._snapshot.soon.any():
            result = attempt(self._snapshot, standing.groups, task, self._budget, with_soon=True, anchor=anchor)
            on_release = True
        self._take(standing, task, result, on_release=on_release)
        return result.found is not None

    def _anchor(self, standing: _Standing) -> Anchor | None:
        """The domain that most of the base gang's pods are in, at the level that the base gang's own rule names."""
        gang = standing.gang
        base = self._by_name.get((gang.namespace, gang.base)) if gang.base else None
        if base is None:
            return None
        root = base.gang.root
        level = root.required if root.required is not None else root.preferred
        rows = [row for row in base.rows.values() if row >= 0]
        if level is None or not rows:
            return None
        index = self._snapshot.table.tree(root.tree)
        found = index.domains[level][rows]
        domains, counts = np.unique(found[found >= 0], return_counts=True)
        if not len(domains):
            return None
        best = int(domains[np.lexsort((index.ranks(level)[domains], -counts))[0]])
        return Anchor(root.tree, level, best, self._config.anchor == "hard")

    def _ahead(self, standing: _Standing) -> tuple[Task | None, Mapping[str, Group]]:
        """What the gang's scaled gangs will ask for next to it, and the groups of both."""
        gang = standing.gang
        tails = [t for t in self._tails.get((gang.namespace, gang.name), ()) if not t.is_satisfied]
        tasks: list[Task] = []
        groups = dict(standing.groups)
        for tail in tails:
            task = full_task(tail.gang, tail.rows, with_gated=True)
            if task is not None:
                tasks.append(relabelled(task, tail.gang.uid))
                groups |= {f"{tail.gang.uid}/{name}": group for name, group in tail.groups.items()}
        if not tasks:
            return None, groups
        return Task(Scope("scaled gangs", "config"), children=tuple(tasks), k=len(tasks)), groups

    def _score(self, standing: _Standing) -> float:
        """Mean over preferred scopes of least over actual number of domains; 1 without such scopes."""
        shares: list[float] = []
        for scope in standing.gang.root.walk():
            if scope.preferred is None:
                continue
            names = [s.group for s in scope.walk() if s.group]
            rows = [standing.rows[m.uid] for n in names for m in standing.groups[n].members if standing.rows.get(m.uid, -1) >= 0]
            if rows:
                touched = len(np.unique(self._snapshot.table.tree(scope.tree).domains[scope.preferred][rows]))
                shares.append(min(1.0, standing.least.get((scope.kind, scope.name), 1) / touched))
        return sum(shares) / len(shares) if shares else 1.0

    def _kind(self, standing: _Standing, task: Task) -> object | None:
        """Within a round room only shrinks, so what failed once fails again; None where more than room decides."""
        is_guarded = self._snapshot.guarded or any(g.anti for g in standing.groups.values())
        return None if is_guarded or any(t.pins for t in task.walk()) else _kind_of(task)

    def _rows(self, gang: Gang) -> dict[str, int]:
        row_of = self._origin.table.row_of
        rows: dict[str, int] = {}
        for group in gang.groups:
            for member in group.members:
                if member.state is MemberState.PLACED:
                    rows[member.uid] = row_of.get(member.node, -1)
                elif member.state is MemberState.SUCCEEDED:
                    rows[member.uid] = -1
        return rows


def _kind_of(task: Task) -> object:
    """Equal for tasks that differ in names only."""
    scope = task.scope
    pods = tuple((m.shape.request, m.shape.rules) for m in task.members)
    return scope.kind, scope.tree, scope.required, scope.preferred, task.k, pods, tuple(_kind_of(c) for c in task.children)
