"""What one turn of a gang has to place: the missing part of its minimums, or one more portion of surplus, as a tree of tasks."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

from scheduler.model import Gang, Group, Member, MemberState, Scope, Shape
from scheduler.order import child_key, count_placed, is_satisfied

__all__ = ("Demand", "Task", "full_task", "minimum_task", "repair_tasks", "surplus_task")

Demand: TypeAlias = tuple[tuple[Shape, int], ...]
"""How many pods of each shape."""
Rows: TypeAlias = Mapping[str, int]
"""Row of the node by uid of placed pods; -1 for pods that are finished or on unknown nodes."""


@dataclass(frozen=True)
class Task:
    """Part of a scope tree that has something to place.

    A leaf has `members`, the pods to place in this order. Any other scope needs `k` of its `children`, which are sorted by preference.
    `pins`: rows on which placed pods of the scope are.
    """

    scope: Scope
    members: tuple[Member, ...] = ()
    children: tuple["Task", ...] = ()
    k: int = 0
    pins: tuple[int, ...] = ()

    @property
    def is_choice(self) -> bool:
        """True when not all children are needed."""
        return self.k < len(self.children)

    @cached_property
    def demand(self) -> Demand:
        """What has to be placed in any case, by shape; children among which there is a choice count nothing."""
        total: dict[Shape, int] = {}
        for member in self.members:
            total[member.shape] = total.get(member.shape, 0) + 1
        for child in () if self.is_choice else self.children:
            for shape, count in child.demand:
                total[shape] = total.get(shape, 0) + count
        return tuple(total.items())

    @property
    def is_loose(self) -> bool:
        """True when the scope and all below it may be anywhere and are all needed."""
        own = self.scope.required is None and self.scope.preferred is None and not self.is_choice
        return own and all(c.is_loose for c in self.children)

    def walk(self) -> Iterator["Task"]:
        """This task and all below it, parents first."""
        yield self
        for child in self.children:
            yield from child.walk()


def minimum_task(gang: Gang, placed: Rows) -> Task | None:
    """What is missing to the gang's minimums; None when too few pods are there to reach them."""
    return _missing(gang.root, {g.name: g for g in gang.groups}, placed)


def surplus_task(gang: Gang, placed: Rows, skip: frozenset[str]) -> Task | None:
    """The next portion above the minimums: one pod, or what a child that was not needed lacks to be satisfied.

    `skip`: names of groups that get no more in this round. None when nothing is left to place.
    """
    return _surplus(gang.root, {g.name: g for g in gang.groups}, placed, skip)


def repair_tasks(gang: Gang, placed: Rows) -> list[Task]:
    """What each group with placed pods lacks to its minimum, for running gangs whose missing part does not fit as a whole."""
    groups = {g.name: g for g in gang.groups}
    tasks: list[Task] = []
    for group in gang.groups:
        found = count_placed(group, placed)
        lack = group.min - found
        waiting = _waiting(group, placed)[:lack] if lack > 0 and found else []
        if waiting and len(waiting) == lack:
            task = _path(gang.root, groups, placed, group.name, tuple(waiting))
            if task is not None:
                tasks.append(task)
    return tasks


def full_task(gang: Gang, placed: Rows, *, with_gated: bool) -> Task | None:
    """All waiting pods at once; `with_gated` counts pods behind gates too. None when there are none."""
    states = (MemberState.PENDING, MemberState.GATED) if with_gated else (MemberState.PENDING,)
    return _full(gang.root, {g.name: g for g in gang.groups}, placed, states)


def _waiting(group: Group, placed: Rows, states: tuple[MemberState, ...] = (MemberState.PENDING,)) -> list[Member]:
    return [m for m in group.members if m.uid not in placed and m.state in states]


def _pins(scope: Scope, groups: Mapping[str, Group], placed: Rows) -> tuple[int, ...]:
    rows = [placed[m.uid] for s in scope.walk() if s.group for m in groups[s.group].members if m.uid in placed]
    return tuple(sorted(row for row in rows if row >= 0))


def _missing(scope: Scope, groups: Mapping[str, Group], placed: Rows) -> Task | None:
    pins = _pins(scope, groups, placed)
    if scope.group:
        group = groups[scope.group]
        lack = max(0, group.min - count_placed(group, placed))
        found = _waiting(group, placed)[:lack]
        return Task(scope, tuple(found), pins=pins) if len(found) == lack else None
    ordered = sorted(scope.children, key=lambda c: child_key(c, groups, placed))
    open_ = [c for c in ordered if not is_satisfied(c, groups, placed)]
    k = scope.min_children - (len(ordered) - len(open_))
    if k <= 0:
        return Task(scope, pins=pins)
    tasks = [t for t in (_missing(c, groups, placed) for c in open_) if t is not None]
    return Task(scope, children=tuple(tasks), k=k, pins=pins) if len(tasks) >= k else None


def _surplus(scope: Scope, groups: Mapping[str, Group], placed: Rows, skip: frozenset[str]) -> Task | None:
    pins = _pins(scope, groups, placed)
    if scope.group:
        found = [] if scope.group in skip else _waiting(groups[scope.group], placed)
        group = groups[scope.group]
        portion = max(1, group.min - count_placed(group, placed))
        return Task(scope, tuple(found[:portion]), pins=pins) if len(found) >= portion else None
    for child in sorted(scope.children, key=lambda c: child_key(c, groups, placed)):
        task = _portion(child, groups, placed, skip)
        if task is not None:
            return Task(scope, children=(task,), k=1, pins=pins)
    return None


def _portion(child: Scope, groups: Mapping[str, Group], placed: Rows, skip: frozenset[str]) -> Task | None:
    """An unsatisfied child set is completed as a whole before it gets single pods."""
    if not child.group and not is_satisfied(child, groups, placed):
        whole = _missing(child, groups, placed)
        names = {s.group for s in child.walk() if s.group}
        if whole is None or names & skip:
            return None
        return whole
    return _surplus(child, groups, placed, skip)


def _full(scope: Scope, groups: Mapping[str, Group], placed: Rows, states: tuple[MemberState, ...]) -> Task | None:
    pins = _pins(scope, groups, placed)
    if scope.group:
        found = _waiting(groups[scope.group], placed, states)
        return Task(scope, tuple(found), pins=pins) if found else None
    tasks = [t for t in (_full(c, groups, placed, states) for c in scope.children) if t is not None]
    return Task(scope, children=tuple(tasks), k=len(tasks), pins=pins) if tasks else None


def _path(scope: Scope, groups: Mapping[str, Group], placed: Rows, name: str, members: tuple[Member, ...]) -> Task | None:
    """A task for one group, below all the scopes that it is in."""
    pins = _pins(scope, groups, placed)
    if scope.group:
        return Task(scope, members, pins=pins) if scope.group == name else None
    for child in scope.children:
        task = _path(child, groups, placed, name, members)
        if task is not None:
            return Task(scope, children=(task,), k=1, pins=pins)
    return None
