"""Checks plans against the snapshot they were made from, with none of the planner's code: the last guard before a plan leaves.

Capacity, node rules, required domains, minimums and host anti-affinity are computed anew from node facts and pods (scheduler.md §5.7).
"""

from collections.abc import Iterable, Iterator, Mapping

from scheduler.eligibility import Cause, exclusion, selects
from scheduler.model import Assignment, Gang, Group, Member, MemberState, Plan, Scope
from scheduler.snapshot import Snapshot

__all__ = ("Checker",)


class Checker:
    """Minimums are asked of gangs that start; one that runs may be repaired piece by piece.

    Checks plans one after the other; each accepted plan takes its room from the next."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        self._names = {column: name for name, column in snapshot.columns.items()}
        self._now: dict[str, dict[str, int]] = {}
        self._later: dict[str, dict[str, int]] = {}
        self._planned: dict[str, list[Group]] = {}

    def accept(self, gang: Gang, plan: Plan) -> list[str]:
        """Faults of the plan, as sentences; none means that it is right, and its pods count from now on."""
        groups = {g.name: g for g in gang.groups}
        members = {m.uid: m for g in gang.groups for m in g.members}
        faults = [*_identity(plan, members)]
        if faults:
            return faults
        faults += self._rules(plan, members)
        faults += self._capacity(plan, members)
        faults += self._apart(plan, groups, members)
        home = {m.uid: m.node for m in members.values() if m.state is MemberState.PLACED}
        done = home | {m.uid: "" for m in members.values() if m.state is MemberState.SUCCEEDED}
        done |= {a.uid: a.node for a in plan.assignments}
        if not home and not _satisfied(gang.root, groups, done):
            faults.append("the minimums are not met")
        for scope in gang.root.walk():
            faults += self._uniform(scope, groups, home, plan)
        if not faults:
            self._take(plan, groups, members)
        return faults

    def _rules(self, plan: Plan, members: Mapping[str, Member]) -> Iterator[str]:
        for a in plan.assignments:
            row = self._snapshot.table.row_of.get(a.node)
            facts = None if row is None else self._snapshot.table.facts[row]
            cause = Cause.ABSENT if facts is None else exclusion(members[a.uid].shape.rules, facts)
            if cause is not Cause.NONE:
                yield f"{a.name} may not be on {a.node}: {cause.name}"

    def _capacity(self, plan: Plan, members: Mapping[str, Member]) -> Iterator[str]:
        ready = {a.uid for a in plan.ready}
        need_now, need_ever = dict[str, dict[str, int]](), dict[str, dict[str, int]]()
        for a in plan.assignments:
            for name, amount in members[a.uid].shape.request:
                for needs in (need_ever, need_now) if a.uid in ready else (need_ever,):
                    needs.setdefault(a.node, {})[name] = needs.get(a.node, {}).get(name, 0) + amount
        for node, wants in need_ever.items():
            now, ever = self._offer(node)
            for name, amount in wants.items():
                at_once = need_now.get(node, {}).get(name, 0)
                if amount > ever.get(name, 0):
                    yield f"{node} has {ever.get(name, 0)} of {name} and is asked for {amount}"
                elif 0 < at_once > now.get(name, 0):
                    yield f"{node} has {now.get(name, 0)} of {name} now and is asked for {at_once}"

    def _offer(self, node: str) -> tuple[dict[str, int], dict[str, int]]:
        """What a node has now, and with what terminating pods will give back, after the plans accepted so far."""
        if node not in self._now:
            row = self._snapshot.table.row_of.get(node)
            columns = {} if row is None else self._names
            self._now[node] = {name: int(self._snapshot.free[row, c]) for c, name in columns.items()}
            self._later[node] = {name: int(self._snapshot.free[row, c] + self._snapshot.soon[row, c]) for c, name in columns.items()}
        return self._now[node], self._later[node]

    def _take(self, plan: Plan, groups: Mapping[str, Group], members: Mapping[str, Member]) -> None:
        ready = {a.uid for a in plan.ready}
        for a in plan.assignments:
            now, ever = self._offer(a.node)
            self._planned.setdefault(a.node, []).append(groups[a.group])
            for name, amount in members[a.uid].shape.request:
                ever[name] -= amount
                now[name] = now[name] - amount if a.uid in ready else min(now[name], ever[name])

    def _apart(self, plan: Plan, groups: Mapping[str, Group], members: Mapping[str, Member]) -> Iterator[str]:
        """Rules of the gang's pods against each other, against pods on nodes and pods of earlier plans; and theirs against the gang's."""
        planned = [g for found in self._planned.values() for g in found]
        if not (self._snapshot.guarded or any(g.anti for g in (*groups.values(), *planned))):
            return
        nodes = {a.node for a in plan.assignments}
        on_node: dict[str, list[tuple[str, Mapping[str, str]]]] = {node: [] for node in nodes}
        guards: dict[str, list[tuple[str, Group | None]]] = {}
        if any(g.anti for g in groups.values()):
            for pods in self._snapshot.pods.values():
                for pod in pods.values():
                    if pod.node in nodes and pod.uid not in members:
                        on_node[pod.node].append((pod.namespace, pod.labels))
        own: dict[str, list[Assignment]] = {}
        for a in plan.assignments:
            own.setdefault(a.node, []).append(a)
        for member in members.values():
            if member.state is MemberState.PLACED and member.node in nodes:
                guards.setdefault(member.node, []).append((member.name, groups[member.shape.group]))
        for node, here in own.items():
            others = [g for _, g in guards.get(node, []) if g is not None] + self._planned.get(node, [])
            for i, a in enumerate(here):
                group = groups[a.group]
                beside = [*others, *(groups[b.group] for b in here[:i])]
                if (
                    any(_forbids(group, o) or _forbids(o, group) for o in beside)
                    or _meets(group, on_node[node])
                    or self._guarded(node, group)
                ):
                    yield f"{a.name} may not share {node}"

    def _guarded(self, node: str, group: Group) -> bool:
        labels = dict(group.labels)
        pods = (p for p in self._snapshot.guarded.values() if p.node == node)
        return any(group.namespace in t.namespaces and selects(t.selector, labels) for p in pods for t in p.anti)

    def _uniform(self, scope: Scope, groups: Mapping[str, Group], home: Mapping[str, str], plan: Plan) -> Iterator[str]:
        """New pods of a required scope share a domain, and if placed pods are in one, it is one of theirs."""
        if scope.required is None:
            return
        keys = scope.tree[: scope.required + 1]
        inside = {s.group for s in scope.walk() if s.group}
        fresh = {self._path(a.node, scope.tree, keys) for a in plan.assignments if a.group in inside}
        old = {self._path(home[m.uid], scope.tree, keys) for n in inside for m in groups[n].members if m.uid in home} - {None}
        if None in fresh or len(fresh) > 1:
            yield f"{scope.name} is not in one domain of {scope.tree[scope.required]}"
        elif fresh and old and not fresh <= old:
            yield f"{scope.name} leaves the domain that its placed pods are in"

    def _path(self, node: str, tree: tuple[str, ...], keys: tuple[str, ...]) -> tuple[str, ...] | None:
        row = self._snapshot.table.row_of.get(node)
        facts = None if row is None else self._snapshot.table.facts[row]
        if facts is None or any(not facts.labels.get(k) for k in tree):
            return None
        return tuple(facts.labels[k] for k in keys)


def _identity(plan: Plan, members: Mapping[str, Member]) -> Iterator[str]:
    seen: set[str] = set()
    for a in plan.assignments:
        member = members.get(a.uid)
        if member is None or member.state is not MemberState.PENDING or member.shape.group != a.group or a.uid in seen:
            yield f"{a.name} is not a waiting pod of {a.group}"
        seen.add(a.uid)


def _satisfied(scope: Scope, groups: Mapping[str, Group], done: Mapping[str, str]) -> bool:
    if scope.group:
        return sum(m.uid in done for m in groups[scope.group].members) >= groups[scope.group].min
    return sum(_satisfied(c, groups, done) for c in scope.children) >= scope.min_children


def _forbids(group: Group, other: Group) -> bool:
    return _meets(group, [(other.namespace, dict(other.labels))])


def _meets(group: Group, pods: Iterable[tuple[str, Mapping[str, str]]]) -> bool:
    return any(ns in term.namespaces and selects(term.selector, labels) for ns, labels in pods for term in group.anti)
