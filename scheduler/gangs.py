"""From PodGang, its pods and the topologies to a `Gang` (scheduler.md §1.1 and the edge rules of §8)."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC
from typing import Literal

from api import labels
from api.core import Pod
from api.grove import ClusterTopologyBinding, PodClique
from api.plan import Why
from api.podgang import PodGang, PodGangTopologyConstraint, PodGroup, TopologyConstraintGroupConfig
from api.reasons import Reason
from scheduler.antiaffinity import host_terms
from scheduler.eligibility import rules_of, selects
from scheduler.model import AntiTerm, Gang, Group, Member, MemberState, Scope, Shape
from scheduler.refusals import refusal
from scheduler.requests import read_request

__all__ = ("GangContext", "build_gang", "level_keys")

ANNOTATION_KAI_TOPOLOGY = "kai.scheduler/topology"
NO_INDEX = 2**31


@dataclass(frozen=True, slots=True)
class GangContext:
    """What else is needed to read PodGangs.

    `topologies`: label keys, broad to narrow, by topology name. `priorities`: value by PriorityClass name. `assumed`: node by uid of pods
    that we placed and the API does not show there yet. `has_label_key`: whether some node carries a label. `mode`: in binder mode
    gangs with features that only kube-scheduler checks are refused. `strict_topology` refuses constraints without topology name.
    """

    topologies: Mapping[str, tuple[str, ...]]
    has_label_key: Callable[[str], bool]
    priorities: Mapping[str, int] = field(default_factory=dict[str, int])
    assumed: Mapping[str, str] = field(default_factory=dict[str, str])
    mode: Literal["binder", "extender"] = "binder"
    strict_topology: bool = False


def level_keys(binding: ClusterTopologyBinding) -> tuple[str, ...]:
    """Node label keys of a topology, broad to narrow."""
    return tuple(level.key for level in binding.spec.levels)


def build_gang(podgang: PodGang, pods: Iterable[Pod], context: GangContext) -> Gang:
    """The gang. `pods`: at least every pod that the PodGang lists or that carries its label; others are ignored.

    Pass no PodGang that is being deleted: its pods only hold capacity from then on.
    """
    meta = podgang.metadata
    by_name = {p.metadata.name: p for p in pods if p.metadata.namespace == meta.namespace}
    reader = _Reader(podgang, context)
    chosen = {g.name: reader.pods_of(g, by_name) for g in podgang.spec.podgroups}
    groups = _with_apart(tuple(_group(g, chosen[g.name], reader) for g in podgang.spec.podgroups))
    root = reader.root()
    own = [p for found in chosen.values() for p in found]
    if context.mode == "binder" and reader.problem is None:
        reader.problem = refusal(own)
    return Gang(
        uid=meta.uid,
        namespace=meta.namespace,
        name=meta.name,
        root=root,
        groups=groups,
        generation=meta.generation,
        priority=_priority(podgang, own, context.priorities),
        created=meta.creation_timestamp.astimezone(UTC).isoformat() if meta.creation_timestamp else "",
        base=_base(podgang, own),
        problem=reader.problem,
        stale=_unlisted(podgang, own, by_name.values()),
        warnings=tuple(reader.warnings),
    )


class _Reader:
    """Reads scopes and references of one PodGang and collects what is wrong with them."""

    def __init__(self, podgang: PodGang, context: GangContext) -> None:
        self.podgang = podgang
        self.context = context
        self.problem: Why | None = None
        self.warnings: list[Why] = []
        annotations = podgang.metadata.annotations
        self.topology = annotations.get(labels.ANNOTATION_TOPOLOGY_NAME) or annotations.get(ANNOTATION_KAI_TOPOLOGY, "")

    def pods_of(self, group: PodGroup, by_name: Mapping[str, Pod]) -> list[Pod]:
        """The group's pods that exist and are neither failed nor being deleted. A pod's own label decides which gang it is of."""
        gang, found = self.podgang.metadata, list[Pod]()
        for reference in group.pod_references:
            if reference.namespace != gang.namespace:
                self._fail(
                    Reason.INVALID_SPEC, f"Pod group {group.name} refers to a pod in namespace {reference.namespace}. List own pods."
                )
                continue
            pod = by_name.get(reference.name)
            if pod is None or pod.metadata.deleting or pod.status.phase == "Failed":
                continue
            owner = pod.metadata.labels.get(labels.PODGANG, gang.name)
            if owner != gang.name:
                self._warn(Reason.CONFLICT, f"Pod {reference.name} is listed but belongs to gang {owner}; it is ignored here.")
                continue
            found.append(pod)
        return found

    def member(self, pod: Pod, group: str) -> Member:
        """One pod of a group. An amount that is no quantity, stored before it could be refused, leaves the gang without a plan."""
        node = pod.spec.node_name or self.context.assumed.get(pod.metadata.uid, "")
        if pod.status.phase == "Succeeded":
            state = MemberState.SUCCEEDED
        elif node:
            state = MemberState.PLACED
        else:
            state = MemberState.GATED if pod.spec.scheduling_gates else MemberState.PENDING
        request, problem = read_request(pod)
        if problem:
            self._fail(Reason.INVALID_SPEC, f"Pod {pod.metadata.name} asks for {problem}. Correct the resources of its template.")
        return Member(pod.metadata.uid, pod.metadata.name, Shape(group, request, rules_of(pod)), state, node, pod.spec.priority)

    def root(self) -> Scope:
        """The tree of scopes: configs first, then the groups that no config holds."""
        spec = self.podgang.spec
        leaves = {g.name: self._leaf(g) for g in spec.podgroups}
        children: list[Scope] = []
        for config in spec.topology_constraint_group_configs or ():
            names = self._names(config, leaves)
            if names:
                members = tuple(leaves.pop(n) for n in names)
                children.append(self._constrained(config.name, "config", config.topology_constraint, members))
        return self._constrained(self.podgang.metadata.name, "root", spec.topology_constraint, (*children, *leaves.values()))

    def _names(self, config: TopologyConstraintGroupConfig, leaves: Mapping[str, Scope]) -> list[str]:
        names: list[str] = []
        for name in dict.fromkeys(config.pod_group_names):
            if name in leaves:
                names.append(name)
            else:
                self._warn(
                    Reason.INVALID_SPEC, f"Constraint {config.name} names pod group {name}, which is unknown or in another; ignored."
                )
        return names

    def _leaf(self, group: PodGroup) -> Scope:
        tree, required, preferred = self._constraint(group.name, group.topology_constraint)
        return Scope(group.name, "group", tree, required, preferred, group=group.name)

    def _constrained(
        self, name: str, kind: Literal["root", "config"], constraint: PodGangTopologyConstraint | None, children: tuple[Scope, ...]
    ) -> Scope:
        tree, required, preferred = self._constraint(name, constraint)
        return Scope(name, kind, tree, required, preferred, len(children), children)

    def _constraint(self, scope: str, constraint: PodGangTopologyConstraint | None) -> tuple[tuple[str, ...], int | None, int | None]:
        """Tree and levels. Preferred that is not narrower than required is met by it or makes no sense, so it is dropped."""
        pack = constraint.pack_constraint if constraint is not None else None
        keys = [k for k in (pack.required, pack.preferred) if k] if pack is not None else []
        if pack is None or not keys or not self._known(scope, keys):
            return (), None, None
        tree = self.context.topologies[self.topology] if self.topology else tuple(dict.fromkeys(keys))
        required = tree.index(pack.required) if pack.required else None
        preferred = tree.index(pack.preferred) if pack.preferred else None
        if required is not None and preferred is not None and preferred <= required:
            if preferred < required:
                self._warn(Reason.ADVISORY, f"{scope}: preferred {pack.preferred} is broader than required {pack.required}; ignored.")
            preferred = None
        return tree, required, preferred

    def _known(self, scope: str, keys: list[str]) -> bool:
        """Whether the topology exists and has the levels; without a topology name each key is a topology of its own."""
        if self.topology:
            tree = self.context.topologies.get(self.topology)
            if tree is None:
                text = f"Topology {self.topology} does not exist. Create the ClusterTopologyBinding or correct the name."
                return self._fail(Reason.TOPOLOGY_MISSING, text)
            for key in keys:
                if key not in tree:
                    text = f"{scope}: topology {self.topology} has no level with label {key}. Use one of {', '.join(tree)}."
                    return self._fail(Reason.LEVEL_MISSING, text)
            return True
        if self.context.strict_topology:
            return self._fail(Reason.TOPOLOGY_MISSING, f"{scope} has a topology constraint but the gang names no topology. Name one.")
        for key in keys:
            if not self.context.has_label_key(key):
                return self._fail(Reason.LEVEL_MISSING, f"{scope}: no node has label {key}. Label the nodes or correct the key.")
            self._warn(Reason.ADVISORY, f"{scope}: the gang names no topology; label {key} alone is taken as its topology.")
        return True

    def _fail(self, reason: Reason, message: str) -> Literal[False]:
        if self.problem is None:
            self.problem = Why(reason, message)
        return False

    def _warn(self, reason: Reason, message: str) -> None:
        self.warnings.append(Why(reason, message))


def _group(group: PodGroup, pods: list[Pod], reader: _Reader) -> Group:
    members = [reader.member(p, group.name) for p in sorted(pods, key=_placing_order)]
    anti: list[AntiTerm] = []
    for pod in pods:
        anti += [term for term in host_terms(pod) if term not in anti]
    first = min(pods, key=_placing_order).metadata.labels if pods else {}
    return Group(
        name=group.name,
        namespace=reader.podgang.metadata.namespace,
        min=max(0, group.min_replicas),
        members=tuple(members),
        listed=len(group.pod_references),
        anti=tuple(anti),
        labels=tuple(sorted(first.items())),
    )


def _placing_order(pod: Pod) -> tuple[int, int, str]:
    index = labels.index_of(pod.metadata.labels, labels.POD_INDEX)
    return -pod.spec.priority, NO_INDEX if index is None else index, pod.metadata.name


def _with_apart(groups: tuple[Group, ...]) -> tuple[Group, ...]:
    """Fills in which groups of the gang may not share a node."""
    if not any(g.anti for g in groups):
        return groups

    def matches(a: Group, b: Group) -> bool:
        return any(b.namespace in t.namespaces and _selects(t, b) for t in a.anti)

    return tuple(
        Group(
            a.name,
            a.namespace,
            a.min,
            a.members,
            a.listed,
            frozenset(b.name for b in groups if matches(a, b) or matches(b, a)),
            a.anti,
            a.labels,
        )
        for a in groups
    )


def _selects(term: AntiTerm, group: Group) -> bool:
    return selects(term.selector, dict(group.labels))


def _priority(podgang: PodGang, pods: list[Pod], priorities: Mapping[str, int]) -> int:
    """Value of the gang's class; without class, or with one that does not exist, the highest of its pods."""
    named = priorities.get(podgang.spec.priority_class_name or "")
    return named if named is not None else max((p.spec.priority for p in pods), default=0)


def _base(podgang: PodGang, pods: list[Pod]) -> str:
    """The gang to be placed first: Grove marks the pods of scaled gangs with its name."""
    sources = (podgang.metadata.labels, *(p.metadata.labels for p in pods))
    return next((found for s in sources if (found := s.get(labels.BASE_PODGANG, ""))), "")


def _unlisted(podgang: PodGang, own: list[Pod], pods: Iterable[Pod]) -> Why | None:
    """Live, ungated pods of the gang that it does not list: gates open only for listed pods, so a newer PodGang is on its way.

    Only a PodClique's pods with a scheduler that listed ones (`own`) have too: a copy for debugging, or a pod that another scheduler
    places, will never be listed.
    """
    listed = {r.name for g in podgang.spec.podgroups for r in g.pod_references}
    schedulers = {p.spec.scheduler_name for p in own}
    name = podgang.metadata.name
    strays = sorted(
        p.metadata.name
        for p in pods
        if p.metadata.labels.get(labels.PODGANG) == name and p.metadata.name not in listed and _is_waiting(p)
        if p.spec.scheduler_name in schedulers and p.metadata.controller and p.metadata.controller.kind == PodClique.KIND.kind
    )
    if not strays:
        return None
    return Why(Reason.CACHE_STALE, f"Pod {strays[0]} belongs to the gang but is not listed in it yet. Waiting for the PodGang's update.")


def _is_waiting(pod: Pod) -> bool:
    return not (pod.finished or pod.metadata.deleting or pod.spec.node_name or pod.spec.scheduling_gates)
