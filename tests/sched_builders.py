"""Small clusters and gangs for tests of the scheduler, and an exhaustive oracle for them."""

from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from itertools import combinations, product
from typing import Any

import msgspec

from api.core import LabelSelector, Node, Pod
from scheduler.eligibility import Rules
from scheduler.model import AntiTerm, Gang, Group, Member, MemberState, Plan, Scope, Shape
from scheduler.snapshot import ClusterState, Snapshot

NOW = datetime(2026, 1, 1, tzinfo=UTC)
GPU = "nvidia.com/gpu"
TREE = ("block", "rack")


def make_node(name: str, gpus: int, labels: Mapping[str, str] | None = None, **allocatable: Any) -> Node:
    """A ready node with plenty of everything but GPUs."""
    return msgspec.convert(
        {
            "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name, **(labels or {})}},
            "status": {
                "allocatable": {GPU: gpus, "cpu": "1000", "memory": "1Ti", "pods": 110, **allocatable},
                "conditions": [{"type": "Ready", "status": "True"}],
            },
        },
        Node,
    )


def make_pod(name: str, *, gpus: int = 0, node: str = "", **parts: Any) -> Pod:
    """A pod; `parts` may hold more of `metadata`, `spec` and `status`."""
    spec: dict[str, Any] = {
        "nodeName": node,
        "containers": [{"resources": {"requests": {GPU: gpus} if gpus else {}}}],
        **parts.get("spec", {}),
    }
    metadata = {"name": name, "uid": name, "namespace": "default", **parts.get("metadata", {})}
    return msgspec.convert({"metadata": metadata, "spec": spec, "status": parts.get("status", {})}, Pod)


def cluster(nodes: Iterable[Node], pods: Iterable[Pod] = ()) -> ClusterState:
    """A state with these nodes and pods."""
    state = ClusterState()
    for node in nodes:
        state.set_node(node)
    for pod in pods:
        state.set_pod(pod)
    return state


def racks(gpus: Iterable[int], *, per_rack: int = 1, per_block: int = 2) -> list[Node]:
    """Nodes n0, n1, ... with that many GPUs, `per_rack` in a rack and `per_block` racks in a block."""
    return [make_node(f"n{i}", g, {"rack": f"r{i // per_rack}", "block": f"b{i // per_rack // per_block}"}) for i, g in enumerate(gpus)]


def make_group(
    gang: str,
    name: str,
    gpus: int,
    count: int,
    minimum: int | None = None,
    nodes: Iterable[str] = (),
    *,
    cpu: int = 0,
    single: bool = False,
) -> Group:
    """A group of equal pods, the first of which are on `nodes`; `single`: at most one per node."""
    request = tuple((r, n) for r, n in (("cpu", cpu), (GPU, gpus), ("pods", 1)) if n)
    shape = Shape(name, request, Rules())
    homes = [*nodes, *[""] * count][:count]
    members = tuple(
        Member(f"{gang}-{name}-{i}", f"{gang}-{name}-{i}", shape, MemberState.PLACED if home else MemberState.PENDING, home)
        for i, home in enumerate(homes)
    )
    anti = (AntiTerm(("default",), LabelSelector(match_labels={"app": f"{gang}-{name}"})),) if single else ()
    apart = frozenset((name,)) if single else frozenset[str]()
    return Group(name, "default", count if minimum is None else minimum, members, count, apart, anti, (("app", f"{gang}-{name}"),))


def leaf(name: str, required: int | None = None, preferred: int | None = None) -> Scope:
    """The scope of a group."""
    return Scope(name, "group", TREE, required, preferred, group=name)


def make_gang(name: str, groups: Iterable[Group], root: Scope | None = None, **fields: Any) -> Gang:
    """A gang; without `root` its groups are free of constraints."""
    groups = tuple(groups)
    scope = root or Scope(name, "root", children=tuple(leaf(g.name) for g in groups), min_children=len(groups))
    return Gang(f"uid-{name}", "default", name, scope, groups, **fields)


def touches(snapshot: Snapshot, gang: Gang, homes: Mapping[str, int]) -> int:
    """Preferred domains touched, summed over scopes, for pods (row by uid)."""
    total = 0
    for scope in gang.root.walk():
        rows = _rows(scope, gang, homes)
        if scope.preferred is not None and rows:
            domains = snapshot.table.tree(scope.tree).domains[scope.preferred]
            total += len({int(domains[r]) for r in rows})
    return total


def running_pods(gang: Gang) -> list[Pod]:
    """The gang's pods that are on nodes, for the cluster that they are in."""
    return [
        make_pod(
            m.uid,
            node=m.node,
            metadata={"labels": dict(g.labels)},
            spec={
                "containers": [{"resources": {"requests": {n: f"{a}m" if n == "cpu" else a for n, a in m.shape.request if n != "pods"}}}]
            },
        )
        for g in gang.groups
        for m in g.members
        if m.node
    ]


def homes_of(snapshot: Snapshot, plan: Plan) -> dict[str, int]:
    """Row by uid of what a plan places."""
    return {a.uid: snapshot.table.row_of[a.node] for a in plan.assignments}


def best_touches(snapshot: Snapshot, gang: Gang) -> int | None:
    """Exhaustive: fewest preferred domains over all placements of the minimums; None when there is none. Needs whole choices to be open."""
    running = {m.uid: snapshot.table.row_of[m.node] for g in gang.groups for m in g.members if m.node}
    found = [
        touches(snapshot, gang, homes)
        for chosen in _choices(gang.root)
        for homes in _placements(snapshot, [g for g in gang.groups if g.name in chosen], running)
        if is_uniform(snapshot, gang, homes)
    ]
    return min(found, default=None)


def _choices(scope: Scope) -> Iterator[frozenset[str]]:
    """Sets of groups that satisfy a scope."""
    if scope.group:
        yield frozenset((scope.group,))
        return
    for chosen in combinations(scope.children, scope.min_children):
        for parts in product(*(tuple(_choices(c)) for c in chosen)):
            yield frozenset[str]().union(*parts)


def _placements(snapshot: Snapshot, groups: list[Group], running: Mapping[str, int]) -> Iterator[dict[str, int]]:
    """Every way to put the missing part of the groups' minimums on rows; pods of a group are interchangeable."""
    rows = sorted(snapshot.table.row_of.values())
    free = {r: snapshot.free[r].copy() for r in rows}
    pods = [
        (g, m.uid, snapshot.vector(m.shape.request))
        for g in groups
        for m in [m for m in g.members if not m.node][: max(0, g.min - sum(bool(m.node) for m in g.members))]
    ]
    full = {(g.name, running[m.uid]) for g in groups if g.apart for m in g.members if m.uid in running}

    def place(i: int, homes: dict[str, int], last: int) -> Iterator[dict[str, int]]:
        if i == len(pods):
            yield dict(homes)
            return
        group, uid, need = pods[i]
        start = last if i and pods[i - 1][0] is group else 0
        for j in range(start, len(rows)):
            row, key = rows[j], (group.name, rows[j])
            if (free[row] >= need)[need > 0].all() and not (group.apart and key in full):
                free[row] -= need
                homes[uid] = row
                full.add(key)
                yield from place(i + 1, homes, j)
                full.discard(key)
                del homes[uid]
                free[row] += need

    yield from place(0, dict(running), 0)


def _rows(scope: Scope, gang: Gang, homes: Mapping[str, int]) -> list[int]:
    names = {s.group for s in scope.walk() if s.group}
    return [homes[m.uid] for g in gang.groups if g.name in names for m in g.members if m.uid in homes]


def is_uniform(snapshot: Snapshot, gang: Gang, homes: Mapping[str, int]) -> bool:
    """Whether every required scope is in one domain."""
    for scope in gang.root.walk():
        rows = _rows(scope, gang, homes)
        if scope.required is not None and rows:
            domains = {int(snapshot.table.tree(scope.tree).domains[scope.required, r]) for r in rows}
            if len(domains) != 1 or -1 in domains:
                return False
    return True
