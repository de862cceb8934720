"""The cluster as the planner sees it: `ClusterState` follows nodes and pods, `Snapshot` is one cut of it.

A snapshot's arrays are its own, so a plan can be computed elsewhere while the state moves on.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

import numpy as np
import numpy.typing as npt

from api.core import Node, Pod
from scheduler.antiaffinity import host_terms
from scheduler.eligibility import NodeFacts, facts_of, selects
from scheduler.model import AntiTerm, Group, Plan
from scheduler.nodetable import NodeTable
from scheduler.requests import BASIC, Request, pod_request, read_capacity
from scheduler.topology import Ints

__all__ = ("STUCK_AFTER", "ClusterState", "PodRecord", "Snapshot", "commit", "repels")

STUCK_AFTER = timedelta(minutes=2)
"""A pod still there this long after its grace period ended does not count as soon gone (scheduler.md §1.5)."""
Bools = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class PodRecord:
    """A pod that holds room on `node`. `assumed`: we chose the node and the API does not show it yet."""

    uid: str
    namespace: str
    node: str
    request: Request
    labels: Mapping[str, str]
    anti: tuple[AntiTerm, ...] = ()
    deleting_at: datetime | None = None
    assumed: bool = False


@dataclass(slots=True)
class Snapshot:
    """One cut of the cluster.

    `free`: int64 [rows, resources], allocatable minus what pods hold (may be negative); `soon`: what terminating pods hold and will
    give back. `columns`: resource name to column. `pods`: by namespace, then uid. `version` counts changes of the state.
    """

    version: int
    table: NodeTable
    columns: dict[str, int]
    free: Ints
    soon: Ints
    pods: Mapping[str, Mapping[str, PodRecord]]
    guarded: Mapping[str, PodRecord] = field(default_factory=dict[str, PodRecord])
    """Pods with host anti-affinity rules of their own, by uid."""
    planned: list[tuple[int, Group]] = field(default_factory=list[tuple[int, Group]])
    """Rows taken by plans that were committed to this snapshot, with the group of the pod."""

    def fork(self) -> "Snapshot":
        """A snapshot to commit plans to; this one stays as it is."""
        return Snapshot(
            self.version, self.table, dict(self.columns), self.free.copy(), self.soon.copy(), self.pods, self.guarded, list(self.planned)
        )

    def vector(self, request: Request) -> Ints:
        """A request as int64 [resources]. A resource that no node has becomes a column without room."""
        for name, _ in request:
            if name not in self.columns:
                self.columns[name] = len(self.columns)
                zeros = np.zeros((self.free.shape[0], 1), dtype=np.int64)
                self.free, self.soon = np.hstack((self.free, zeros)), np.hstack((self.soon, zeros))
        vector = np.zeros(len(self.columns), dtype=np.int64)
        for name, amount in request:
            vector[self.columns[name]] = amount
        return vector

    def take(self, row: int, vector: Ints, count: int = 1) -> None:
        """Takes room for `count` pods, from what is free first, then from what terminating pods will give back."""
        need = vector * count
        direct = np.minimum(need, np.maximum(self.free[row], 0))
        late = np.minimum(need - direct, self.soon[row])
        self.soon[row] -= late
        self.free[row] -= need - late

    def conflicts(self, group: Group) -> Bools | None:
        """bool [rows]: where host anti-affinity with pods outside the plan forbids the group's pods; None when nowhere."""
        rows: set[int] = set()
        for term in group.anti:
            for namespace in term.namespaces:
                rows |= {
                    self.table.row_of.get(p.node, -1) for p in self.pods.get(namespace, {}).values() if selects(term.selector, p.labels)
                }
        labels = dict(group.labels)
        for pod in self.guarded.values():
            if any(group.namespace in t.namespaces and selects(t.selector, labels) for t in pod.anti):
                rows.add(self.table.row_of.get(pod.node, -1))
        rows |= {row for row, other in self.planned if (group.anti or other.anti) and repels(group, other)}
        rows.discard(-1)
        if not rows:
            return None
        mask = np.zeros(self.table.rows, dtype=np.bool_)
        mask[sorted(rows)] = True
        return mask


def repels(a: Group, b: Group) -> bool:
    """True when a host anti-affinity rule of one group matches the other's pods."""
    return _matches(a, b) or _matches(b, a)


def _matches(group: Group, other: Group) -> bool:
    labels = dict(other.labels)
    return any(other.namespace in term.namespaces and selects(term.selector, labels) for term in group.anti)


class ClusterState:
    """Follows nodes and pods; each update costs the same whatever the size of the cluster. Not thread-safe.

    `n_unreadable` counts node updates with an amount that is no quantity; the node has nothing of that resource.
    """

    def __init__(self) -> None:
        self.version = 0
        self.n_unreadable = 0
        self._table = NodeTable()
        self._shared = False
        self._columns = {name: i for i, name in enumerate(BASIC)}
        self._allocatable: Ints = np.zeros((self._table.rows, len(BASIC)), dtype=np.int64)
        self._used: Ints = np.zeros_like(self._allocatable)
        self._pods: dict[str, PodRecord] = {}
        self._by_node: dict[str, dict[str, PodRecord]] = {}
        self._by_namespace: dict[str, dict[str, PodRecord]] = {}
        self._guarded: dict[str, PodRecord] = {}
        self._deleting: dict[str, PodRecord] = {}
        self._assumed: dict[str, str] = {}

    @property
    def assumed(self) -> Mapping[str, str]:
        """Node by uid of the pods that we gave a node and the API does not show there yet. It changes with the state."""
        return self._assumed

    def stuck_at(self, now: datetime) -> datetime | None:
        """When the next of the terminating pods that count as soon gone will count as stuck; None when there are none."""
        ends = [record.deleting_at + STUCK_AFTER for record in self._deleting.values() if record.deleting_at is not None]
        return min((end for end in ends if end >= now), default=None)

    def set_node(self, node: Node) -> None:
        """Adds a node or takes over its new state."""
        facts = facts_of(node)
        capacity, problem = read_capacity(node)
        self.n_unreadable += bool(problem)
        known = self._table.row_of.get(facts.name)
        for name in capacity:
            self._column(name)
        row = known if known is not None and self._table.facts[known] == facts else self._change_facts(facts)
        fresh = np.zeros(len(self._columns), dtype=np.int64)
        for name, amount in capacity.items():
            fresh[self._columns[name]] = amount
        if known is not None and np.array_equal(self._allocatable[row], fresh):
            return
        self.version += 1
        self._allocatable[row] = fresh
        if known is None:
            self._used[row] = 0
            for record in self._by_node.get(facts.name, {}).values():
                vector = self._vector(record.request)  # may widen `_used`, so it comes first
                self._used[row] += vector

    def remove_node(self, name: str) -> None:
        """Forgets a node. Its pods are kept in mind until they are removed too."""
        if name not in self._table.row_of:
            return
        self.version += 1
        row = self._own_table().remove(name)
        self._allocatable[row] = 0
        self._used[row] = 0

    def set_pod(self, pod: Pod) -> None:
        """Takes over a pod's state. Finished pods and pods without node hold nothing; an assumption outlives news without a node."""
        uid, old = pod.metadata.uid, self._pods.get(pod.metadata.uid)
        node = pod.spec.node_name
        if pod.finished or not node:
            if old is not None and (pod.finished or not old.assumed or pod.metadata.deleting):
                self._drop(old)
            return
        self._replace(
            old,
            PodRecord(
                uid, pod.metadata.namespace, node, pod_request(pod), pod.metadata.labels, host_terms(pod), pod.metadata.deletion_timestamp
            ),
        )

    def remove_pod(self, uid: str) -> None:
        """The pod is gone."""
        if uid in self._pods:
            self._drop(self._pods[uid])

    def assume(self, pod: Pod, node: str) -> None:
        """Counts a pod as placed on `node` before the API shows it there."""
        self._replace(
            self._pods.get(pod.metadata.uid),
            PodRecord(pod.metadata.uid, pod.metadata.namespace, node, pod_request(pod), pod.metadata.labels, host_terms(pod), assumed=True),
        )

    def forget(self, uid: str) -> None:
        """Takes an assumption back; a pod that the API shows on a node is left alone."""
        record = self._pods.get(uid)
        if record is not None and record.assumed:
            self._drop(record)

    def snapshot(self, now: datetime) -> Snapshot:
        """A cut of the state. `now` decides which terminating pods are stuck."""
        self._shared = True
        soon = np.zeros_like(self._used)
        for record in self._deleting.values():
            row = self._table.row_of.get(record.node)
            if row is not None and record.deleting_at is not None and now - record.deleting_at <= STUCK_AFTER:
                vector = self._vector(record.request)  # no wider than `soon`: the pod's room was taken from that row before
                soon[row] += vector
        pods = {namespace: records.copy() for namespace, records in self._by_namespace.items()}
        free = self._allocatable - self._used
        return Snapshot(self.version, self._table, dict(self._columns), free, soon, pods, self._guarded.copy())

    def _change_facts(self, facts: NodeFacts) -> int:
        self.version += 1
        row = self._own_table().set(facts)
        missing = self._table.rows - self._allocatable.shape[0]
        if missing > 0:
            self._allocatable = np.pad(self._allocatable, ((0, missing), (0, 0)))
            self._used = np.pad(self._used, ((0, missing), (0, 0)))
        return row

    def _own_table(self) -> NodeTable:
        if self._shared:
            self._table, self._shared = self._table.copy(), False
        return self._table

    def _column(self, name: str) -> int:
        column = self._columns.get(name)
        if column is None:
            column = self._columns[name] = len(self._columns)
            self._allocatable = np.pad(self._allocatable, ((0, 0), (0, 1)))
            self._used = np.pad(self._used, ((0, 0), (0, 1)))
        return column

    def _vector(self, request: Request) -> Ints:
        for name, _ in request:
            self._column(name)
        vector = np.zeros(len(self._columns), dtype=np.int64)
        for name, amount in request:
            vector[self._columns[name]] = amount
        return vector

    def _replace(self, old: PodRecord | None, new: PodRecord) -> None:
        if old == new:
            return
        if old is not None:
            version = self.version
            self._drop(old)
            if replace(old, assumed=new.assumed) == new:
                self.version = version - 1  # an assumption came true: the same room is taken
        self.version += 1
        if new.assumed:
            self._assumed[new.uid] = new.node
        self._pods[new.uid] = new
        self._by_node.setdefault(new.node, {})[new.uid] = new
        self._by_namespace.setdefault(new.namespace, {})[new.uid] = new
        if new.anti:
            self._guarded[new.uid] = new
        if new.deleting_at is not None:
            self._deleting[new.uid] = new
        row = self._table.row_of.get(new.node)
        if row is not None:
            vector = self._vector(new.request)
            self._used[row] += vector

    def _drop(self, record: PodRecord) -> None:
        self.version += 1
        del self._pods[record.uid]
        for index, key in ((self._by_node, record.node), (self._by_namespace, record.namespace)):
            del index[key][record.uid]
            if not index[key]:
                del index[key]
        self._guarded.pop(record.uid, None)
        self._deleting.pop(record.uid, None)
        self._assumed.pop(record.uid, None)
        row = self._table.row_of.get(record.node)
        if row is not None:
            vector = self._vector(record.request)
            self._used[row] -= vector


def commit(snapshot: Snapshot, plan: Plan, groups: Mapping[str, Group]) -> None:
    """Takes the room of a plan's pods, so that whoever is planned next sees it gone. `groups` by name, of the plan's gang."""
    shapes = {m.uid: m.shape for group in groups.values() for m in group.members}
    for a in plan.assignments:
        row = snapshot.table.row_of[a.node]
        snapshot.take(row, snapshot.vector(shapes[a.uid].request))
        snapshot.planned.append((row, groups[a.group]))
