"""The forest that `grovekeeper get` prints: PodCliqueSets, their replicas, scaling groups, PodCliques and pods with node and rack."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from api import labels
from api.core import Node, Pod
from api.grove import ClusterTopologyBinding, PodClique, PodCliqueScalingGroup, PodCliqueSet
from api.objects.topology import topology_name
from api.podgang import PodGang

__all__ = ("Forest", "lines")

RACK_DOMAIN = "rack"
RACK_KEYS = ("kubernetes.io/rack", "topology.kubernetes.io/rack")


@dataclass(frozen=True, slots=True)
class Forest:
    """Everything that is printed, of one namespace or of all."""

    sets: Sequence[PodCliqueSet] = ()
    groups: Sequence[PodCliqueScalingGroup] = ()
    cliques: Sequence[PodClique] = ()
    gangs: Sequence[PodGang] = ()
    pods: Sequence[Pod] = ()
    nodes: Mapping[str, Node] = field(default_factory=dict[str, Node])
    topologies: Mapping[str, ClusterTopologyBinding] = field(default_factory=dict[str, ClusterTopologyBinding])


@dataclass(frozen=True, slots=True)
class _Branch:
    """One line and what hangs below it."""

    text: str
    below: tuple["_Branch", ...] = ()


def lines(forest: Forest) -> Iterator[str]:
    """The printed lines, sets by namespace and name."""
    for pcs in sorted(forest.sets, key=lambda s: (s.metadata.namespace, s.metadata.name)):
        yield from _drawn(_set(forest, pcs), "", "")


def _drawn(branch: _Branch, first: str, rest: str) -> Iterator[str]:
    yield first + branch.text
    for i, child in enumerate(branch.below):
        last = i == len(branch.below) - 1
        yield from _drawn(child, rest + ("└─ " if last else "├─ "), rest + ("   " if last else "│  "))


def _set(forest: Forest, pcs: PodCliqueSet) -> _Branch:
    available = pcs.status.available_replicas if pcs.status else 0
    text = f"PodCliqueSet {pcs.metadata.namespace}/{pcs.metadata.name}  {available}/{pcs.spec.replicas} available"
    conditions = (pcs.status.conditions or ()) if pcs.status else ()
    invalid = next((c for c in conditions if c.type == "InvalidSpec" and c.status == "True"), None)
    below = [_Branch(f"InvalidSpec: {invalid.message}")] if invalid else []
    below += [_replica(forest, pcs, i) for i in range(pcs.spec.replicas)]
    return _Branch(text, tuple(below))


def _of(pcs: PodCliqueSet, i: int, obj: PodClique | PodCliqueScalingGroup) -> bool:
    found = obj.metadata.labels
    mine = found.get(labels.PART_OF) == pcs.metadata.name and obj.metadata.namespace == pcs.metadata.namespace
    return mine and labels.index_of(found, labels.PCS_REPLICA_INDEX) == i


def _replica(forest: Forest, pcs: PodCliqueSet, i: int) -> _Branch:
    cliques = [c for c in forest.cliques if _of(pcs, i, c)]
    groups = sorted((g for g in forest.groups if _of(pcs, i, g)), key=lambda g: g.metadata.name)
    standalone = [_clique(forest, pcs, c) for c in _sorted(cliques) if labels.PCSG not in c.metadata.labels]
    below = standalone + [_group(forest, pcs, g, cliques) for g in groups]
    return _Branch(f"replica {i}  {_gang(forest, pcs.metadata.namespace, f'{pcs.metadata.name}-{i}')}", tuple(below))


def _sorted(cliques: Sequence[PodClique]) -> list[PodClique]:
    return sorted(cliques, key=lambda c: (labels.index_of(c.metadata.labels, labels.PCSG_REPLICA_INDEX) or 0, c.metadata.name))


def _group(forest: Forest, pcs: PodCliqueSet, group: PodCliqueScalingGroup, cliques: Sequence[PodClique]) -> _Branch:
    available = group.status.available_replicas if group.status else 0
    text = f"PodCliqueScalingGroup {group.metadata.name}  {available}/{group.spec.replicas} available"
    members = _sorted([c for c in cliques if c.metadata.labels.get(labels.PCSG) == group.metadata.name])
    return _Branch(text, tuple(_clique(forest, pcs, c) for c in members))


def _clique(forest: Forest, pcs: PodCliqueSet, clique: PodClique) -> _Branch:
    ready = clique.status.ready_replicas if clique.status else 0
    text = f"PodClique {clique.metadata.name}  {ready}/{clique.spec.replicas} ready"
    if labels.BASE_PODGANG in clique.metadata.labels:
        text += f"  {_gang(forest, clique.metadata.namespace, clique.metadata.labels.get(labels.PODGANG, ''))}"
    pods = [p for p in forest.pods if p.metadata.controller and p.metadata.controller.uid == clique.metadata.uid]
    pods.sort(key=lambda p: (labels.index_of(p.metadata.labels, labels.POD_INDEX) or 0, p.metadata.name))
    return _Branch(text, tuple(_Branch(_pod(forest, pcs, p)) for p in pods))


def _gang(forest: Forest, namespace: str, name: str) -> str:
    gang = next((g for g in forest.gangs if (g.metadata.namespace, g.metadata.name) == (namespace, name)), None)
    if gang is None:
        return f"gang {name}: missing"
    text = f"gang {name}: {gang.status.phase if gang.status else 'Pending'}"
    return f"{text} ({gang.status.blocked})" if gang.status and gang.status.blocked else text


def _pod(forest: Forest, pcs: PodCliqueSet, pod: Pod) -> str:
    if pod.metadata.deleting:
        state = "Terminating"
    elif pod.gates:
        return f"{pod.metadata.name}  gated"
    else:
        state = "Ready" if pod.has("Ready") else pod.status.phase
    if not pod.spec.node_name:
        scheduled = pod.condition("PodScheduled")
        return f"{pod.metadata.name}  {state}  {scheduled.message if scheduled else 'not scheduled yet'}"
    node = forest.nodes.get(pod.spec.node_name)
    rack = _rack(forest, pcs, node) if node is not None else "node is gone"
    return f"{pod.metadata.name}  {state}  {pod.spec.node_name}" + (f"  {rack}" if rack else "")


def _rack(forest: Forest, pcs: PodCliqueSet, node: Node) -> str:
    """The node's rack: by the set's topology where that has a level called rack, else by the usual labels."""
    binding = forest.topologies.get(topology_name(pcs))
    keys = [level.key for level in binding.spec.levels if level.domain == RACK_DOMAIN] if binding else []
    return next((node.metadata.labels[k] for k in (*keys, *RACK_KEYS) if k in node.metadata.labels), "")
