"""What the gang planner reasons about: gangs, scopes, groups, members; and what it answers: plans and verdicts.

Everything here is immutable data. Source of the rules: scheduler.md §5 and §8.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Literal, NamedTuple, TypeAlias

from api.core import LabelSelector
from api.plan import Why
from scheduler.eligibility import Rules
from scheduler.requests import Request

__all__ = (
    "AntiTerm",
    "Assignment",
    "Decision",
    "Gang",
    "Group",
    "Member",
    "MemberState",
    "Plan",
    "Scope",
    "Shape",
    "Verdict",
    "VerdictKind",
)


class MemberState(StrEnum):
    """Where a pod of a gang is on its way to a node. Failed pods and pods being deleted are no members."""

    GATED = "gated"
    PENDING = "pending"
    PLACED = "placed"
    SUCCEEDED = "succeeded"


@dataclass(frozen=True, slots=True)
class Shape:
    """What makes pods of a gang interchangeable: group, request and node rules."""

    group: str
    request: Request
    rules: Rules


@dataclass(frozen=True, slots=True)
class Member:
    """A pod of a gang. `node` is set when `state` is PLACED."""

    uid: str
    name: str
    shape: Shape
    state: MemberState
    node: str = ""
    priority: int = 0


@dataclass(frozen=True, slots=True)
class AntiTerm:
    """A required anti-affinity on the host name: no pod of `namespaces` that `selector` matches may be on the node."""

    namespaces: tuple[str, ...]
    selector: LabelSelector


@dataclass(frozen=True, slots=True)
class Group:
    """A pod group. Members are in the order in which they are placed: pod priority first, then index, then name.

    `apart`: groups of the same gang, itself included, whose pods may not share a node with a pod of this one.
    `anti`: the same rule against pods outside the gang. `labels`: of one of its pods, for rules that other pods have against it.
    `listed`: pods that the gang refers to, whether they exist or not.
    """

    name: str
    namespace: str
    min: int
    members: tuple[Member, ...]
    listed: int = 0
    apart: frozenset[str] = frozenset()
    anti: tuple[AntiTerm, ...] = ()
    labels: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Scope:
    """A node of the gang's constraint tree: the gang (root), a group config, or one pod group (a leaf, with `group` set).

    `tree` are the label keys of the topology, broad to narrow; `required` and `preferred` index into them.
    `min_children` of the children have to be satisfied for the scope to be satisfied.
    """

    name: str
    kind: Literal["root", "config", "group"]
    tree: tuple[str, ...] = ()
    required: int | None = None
    preferred: int | None = None
    min_children: int = 0
    children: tuple["Scope", ...] = ()
    group: str = ""

    def walk(self) -> Iterator["Scope"]:
        """This scope and all below it, parents first."""
        yield self
        for child in self.children:
            yield from child.walk()


@dataclass(frozen=True, slots=True)
class Gang:
    """A PodGang with its pods, ready for planning.

    `created` sorts as text (RFC 3339 in UTC). `base` names the gang of the same namespace that has to be placed first, "" if none.
    `problem` is set when the gang cannot be planned whatever the cluster looks like (unknown topology, unsupported feature), `stale` when
    there are signs that a newer version of the PodGang is on its way.
    """

    uid: str
    namespace: str
    name: str
    root: Scope
    groups: tuple[Group, ...]
    generation: int = 0
    priority: int = 0
    created: str = ""
    base: str = ""
    problem: Why | None = None
    stale: Why | None = None
    warnings: tuple[Why, ...] = ()

    @property
    def minimum(self) -> int:
        """Sum of the groups' minimums."""
        return sum(g.min for g in self.groups)


class Assignment(NamedTuple):
    """A pod and the node chosen for it. `on_release`: the room appears only when terminating pods are gone; do not bind yet."""

    uid: str
    name: str
    namespace: str
    group: str
    node: str
    on_release: bool = False


@dataclass(frozen=True, slots=True)
class Plan:
    """Where pods of one gang go.

    `state`: "planned" when the gang's minimums can be bound at once, "releasing" when nothing may be bound before terminating pods are
    gone. `score` is the placement score after the plan, 0 to 1; `bound` the best score that any placement could have, so equal values
    mean provably best. `notes`: what the user should know (surplus pods left out, split scopes).
    """

    gang_uid: str
    namespace: str
    name: str
    generation: int
    snapshot_version: int
    assignments: tuple[Assignment, ...]
    state: Literal["planned", "releasing"] = "planned"
    method: Literal["construct", "solver"] = "construct"
    score: float = 1.0
    bound: float = 1.0
    notes: tuple[Why, ...] = ()

    @property
    def ready(self) -> tuple[Assignment, ...]:
        """The assignments that may be bound now."""
        return () if self.state == "releasing" else tuple(a for a in self.assignments if not a.on_release)


VerdictKind: TypeAlias = Literal["placed", "waiting", "infeasible", "budget", "refused"]


@dataclass(frozen=True, slots=True)
class Verdict:
    """Why a gang has no plan.

    placed: nothing left to do (`why` None), or only surplus pods are left (`why` says what they lack). waiting: for pods, gates or the
    base gang. infeasible: proven for this snapshot. budget: the search ended without an answer. refused: `Gang.problem`.
    """

    kind: VerdictKind
    why: Why | None = None


class Decision(NamedTuple):
    """The answer for one gang."""

    gang: Gang
    result: Plan | Verdict
