"""The forest that `grovekeeper get` prints: PodCliqueSets, their replicas, scaling groups, PodCliques and pods with node and rack."""

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from api import labels
from api.core import Node, Pod
from api.grove import ClusterTopologyBinding, PodClique, PodCliqueScalingGroup, PodCliqueSet
from api.limits import bounded
from api.objects.topology import topology_name
from api.podgang import PodGang

__all__ = ("Forest", "lines")

RACK_DOMAIN = "rack"
RACK_KEYS = ("kubernetes.io/rack", "topology.kubernetes.io/rack")

T = TypeVar("T")
K = TypeVar("K", bound=Hashable)


@dataclass(frozen=True, slots=True)
class Forest:
    """Everything that is printed, of one namespace or of all. `nodes` None: they may not be read."""

    sets: Sequence[PodCliqueSet] = ()
    groups: Sequence[PodCliqueScalingGroup] = ()
    cliques: Sequence[PodClique] = ()
    gangs: Sequence[PodGang] = ()
    pods: Sequence[Pod] = ()
    nodes: Mapping[str, Node] | None = field(default_factory=dict[str, Node])
    topologies: Mapping[str, ClusterTopologyBinding] = field(default_factory=dict[str, ClusterTopologyBinding])


class _Grown:
    """The forest with what hangs below each thing grouped once. Cliques and groups are by namespace, set and replica index."""

    def __init__(self, forest: Forest) -> None:
        self.nodes, self.topologies = forest.nodes, forest.topologies
        self.cliques = _grouped(forest.cliques, _replica_of)
        self.groups = _grouped(forest.groups, _replica_of)
        self.pods = _grouped(forest.pods, lambda p: p.metadata.controller.uid if p.metadata.controller else "")
        self.gangs = {(g.metadata.namespace, g.metadata.name): g for g in forest.gangs}


def _grouped(objects: Iterable[T], key: Callable[[T], K]) -> dict[K, list[T]]:
    found: dict[K, list[T]] = {}
    for obj in objects:
        found.setdefault(key(obj), []).append(obj)
    return found


def _replica_of(obj: PodClique | PodCliqueScalingGroup) -> tuple[str, str, int | None]:
    found = obj.metadata.labels
    return obj.metadata.namespace, found.get(labels.PART_OF, ""), labels.index_of(found, labels.PCS_REPLICA_INDEX)


@dataclass(frozen=True, slots=True)
class _Branch:
    """One line and what hangs below it."""

    text: str
    below: tuple["_Branch", ...] = ()


def lines(forest: Forest) -> Iterator[str]:
    """The printed lines, sets by namespace and name."""
    grown = _Grown(forest)
    for pcs in sorted(forest.sets, key=lambda s: (s.metadata.namespace, s.metadata.name)):
        yield from _drawn(_set(grown, pcs), "", "")


def _drawn(branch: _Branch, first: str, rest: str) -> Iterator[str]:
    yield first + branch.text
    for i, child in enumerate(branch.below):
        last = i == len(branch.below) - 1
        yield from _drawn(child, rest + ("└─ " if last else "├─ "), rest + ("   " if last else "│  "))


def _set(forest: _Grown, pcs: PodCliqueSet) -> _Branch:
    available = pcs.status.available_replicas if pcs.status else 0
    text = f"PodCliqueSet {pcs.metadata.namespace}/{pcs.metadata.name}  {available}/{pcs.spec.replicas} available"
    conditions = (pcs.status.conditions or ()) if pcs.status else ()
    invalid = next((c for c in conditions if c.type == "InvalidSpec" and c.status == "True"), None)
    below = [_Branch(f"InvalidSpec: {invalid.message}")] if invalid else []
    below += [_replica(forest, pcs, i) for i in range(bounded(pcs.spec.replicas))]
    return _Branch(text, tuple(below))


def _replica(forest: _Grown, pcs: PodCliqueSet, i: int) -> _Branch:
    here = pcs.metadata.namespace, pcs.metadata.name, i
    cliques = forest.cliques.get(here, [])
    groups = sorted(forest.groups.get(here, ()), key=lambda g: g.metadata.name)
    members = _grouped(cliques, lambda c: c.metadata.labels.get(labels.PCSG, ""))
    standalone = [_clique(forest, pcs, c) for c in _sorted(cliques) if labels.PCSG not in c.metadata.labels]
    below = standalone + [_group(forest, pcs, g, members.get(g.metadata.name, ())) for g in groups]
    return _Branch(f"replica {i}  {_gang(forest, pcs.metadata.namespace, f'{pcs.metadata.name}-{i}')}", tuple(below))


def _sorted(cliques: Sequence[PodClique]) -> list[PodClique]:
    return sorted(cliques, key=lambda c: (labels.index_of(c.metadata.labels, labels.PCSG_REPLICA_INDEX) or 0, c.metadata.name))


def _group(forest: _Grown, pcs: PodCliqueSet, group: PodCliqueScalingGroup, cliques: Sequence[PodClique]) -> _Branch:
    available = group.status.available_replicas if group.status else 0
    text = f"PodCliqueScalingGroup {group.metadata.name}  {available}/{group.spec.replicas} available"
    return _Branch(text, tuple(_clique(forest, pcs, c) for c in _sorted(cliques)))


def _clique(forest: _Grown, pcs: PodCliqueSet, clique: PodClique) -> _Branch:
    ready = clique.status.ready_replicas if clique.status else 0
    text = f"PodClique {clique.metadata.name}  {ready}/{clique.spec.replicas} ready"
    if labels.BASE_PODGANG in clique.metadata.labels:
        text += f"  {_gang(forest, clique.metadata.namespace, clique.metadata.labels.get(labels.PODGANG, ''))}"
    pods = sorted(
        forest.pods.get(clique.metadata.uid, ()), key=lambda p: (labels.index_of(p.metadata.labels, labels.POD_INDEX) or 0, p.metadata.name)
    )
    return _Branch(text, tuple(_Branch(_pod(forest, pcs, p)) for p in pods))


def _gang(forest: _Grown, namespace: str, name: str) -> str:
    gang = forest.gangs.get((namespace, name))
    if gang is None:
        return f"gang {name}: missing"
    text = f"gang {name}: {gang.status.phase if gang.status else 'Pending'}"
    return f"{text} ({gang.status.blocked})" if gang.status and gang.status.blocked else text


def _pod(forest: _Grown, pcs: PodCliqueSet, pod: Pod) -> str:
    if pod.metadata.deleting:
        state = "Terminating"
    elif pod.gates:
        return f"{pod.metadata.name}  gated"
    else:
        state = "Ready" if pod.has("Ready") else pod.status.phase
    if not pod.spec.node_name:
        scheduled = pod.condition("PodScheduled")
        return f"{pod.metadata.name}  {state}  {scheduled.message if scheduled else 'not scheduled yet'}"
    node = forest.nodes.get(pod.spec.node_name) if forest.nodes is not None else None
    missing = "node is gone" if forest.nodes is not None else ""
    rack = _rack(forest, pcs, node) if node is not None else missing
    return f"{pod.metadata.name}  {state}  {pod.spec.node_name}" + (f"  {rack}" if rack else "")


def _rack(forest: _Grown, pcs: PodCliqueSet, node: Node) -> str:
    """The node's rack: by the set's topology where that has a level called rack, else by the usual labels."""
    binding = forest.topologies.get(topology_name(pcs))
    keys = [level.key for level in binding.spec.levels if level.domain == RACK_DOMAIN] if binding else []
    return next((node.metadata.labels[k] for k in (*keys, *RACK_KEYS) if k in node.metadata.labels), "")
