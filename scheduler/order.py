"""In which order gangs get their turn (scheduler.md §4.5).

Sort key of a work item: priority (high first), phase, base before scaled gangs, creation, name. Surplus pods go one per turn to the gang
with the lowest ratio of placed pods to its minimum.
"""

from collections.abc import Container, Iterable, Mapping
from enum import IntEnum
from typing import NamedTuple, TypeAlias

from scheduler.model import Gang, Group, MemberState, Scope

__all__ = ("Phase", "SurplusKey", "TurnKey", "child_key", "count_placed", "in_place", "is_satisfied", "phase_of", "surplus_key", "turn_key")

NEVER = float("inf")
Placed: TypeAlias = Container[str]
"""Uids of pods that have a node, or are finished."""


class Phase(IntEnum):
    """What a gang's turn is about."""

    DEGRADED = 0
    BASE_MINIMUM = 1
    SCALED_MINIMUM = 2
    SURPLUS = 3


class TurnKey(NamedTuple):
    """Sorts turns for minimums."""

    priority: int
    phase: Phase
    is_scaled: bool
    created: str
    namespace: str
    name: str
    uid: str


class SurplusKey(NamedTuple):
    """Sorts gangs that want one more pod."""

    ratio: float
    is_scaled: bool
    created: str
    namespace: str
    name: str
    uid: str


def in_place(gang: Gang) -> set[str]:
    """Uids of the members that have a node or have succeeded."""
    settled = (MemberState.PLACED, MemberState.SUCCEEDED)
    return {m.uid for g in gang.groups for m in g.members if m.state in settled}


def phase_of(gang: Gang) -> Phase:
    """The phase of a gang that is below its minimums. Pods that have succeeded are no reason to hurry."""
    if any(m.state is MemberState.PLACED for g in gang.groups for m in g.members):
        return Phase.DEGRADED
    return Phase.SCALED_MINIMUM if gang.base else Phase.BASE_MINIMUM


def turn_key(gang: Gang) -> TurnKey:
    """When a gang gets its turn for the missing part of its minimums."""
    return TurnKey(-gang.priority, phase_of(gang), bool(gang.base), gang.created, gang.namespace, gang.name, gang.uid)


def surplus_key(gang: Gang, placed: int) -> SurplusKey:
    """When a gang with `placed` pods gets its turn for one more. A gang without minimum comes last."""
    ratio = placed / gang.minimum if gang.minimum else NEVER
    return SurplusKey(ratio, bool(gang.base), gang.created, gang.namespace, gang.name, gang.uid)


def is_satisfied(scope: Scope, groups: Mapping[str, Group], placed: Placed) -> bool:
    """True when a scope has its minimum: a group enough pods, a scope with children enough satisfied children."""
    if scope.group:
        return count_placed(groups[scope.group], placed) >= groups[scope.group].min
    return n_satisfied(scope.children, groups, placed) >= scope.min_children


def count_placed(group: Group, placed: Placed) -> int:
    """How many members of a group are placed."""
    return sum(m.uid in placed for m in group.members)


def n_satisfied(children: Iterable[Scope], groups: Mapping[str, Group], placed: Placed) -> int:
    """How many of the scopes have their minimum."""
    return sum(is_satisfied(c, groups, placed) for c in children)


def child_key(scope: Scope, groups: Mapping[str, Group], placed: Placed) -> tuple[bool, float, str]:
    """Order among siblings: unsatisfied first, then the lowest ratio of placed to minimum; minimum 0 comes last; ties by name."""
    if scope.group:
        have, minimum = count_placed(groups[scope.group], placed), groups[scope.group].min
    else:
        have, minimum = n_satisfied(scope.children, groups, placed), scope.min_children
    return have >= minimum, have / minimum if minimum else NEVER, scope.name
