"""PodGangs of a PodCliqueSet: one Anchor gang per replica, one Tail gang per scaling group replica above minAvailable (grove.md §2.3)."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from api import labels
from api.grove import PodCliqueScalingGroup, PodCliqueScalingGroupConfig, PodCliqueSet
from api.limits import bounded
from api.names import base_gang_name, clique_name, member_clique_name, pcs_replica_of, scaled_gang_name, scaling_group_name
from api.objects.metadata import metadata
from api.objects.scheduler import KAI
from api.objects.template import clique_template, standalone_cliques
from api.objects.topology import pack_constraint, topology_name
from api.plan import Manifest

__all__ = ("LAST_APPLIED", "GangShape", "gang_shape", "gang_shapes", "group_replicas", "podgang_identity", "podgang_manifest")

LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"


@dataclass(frozen=True, slots=True)
class GangShape:
    """Which gang it is: an Anchor (no group) or the Tail gang of replica `group_replica` of a scaling group."""

    name: str
    pcs_replica: int
    group: PodCliqueScalingGroupConfig | None = None
    group_replica: int = 0

    def cliques(self, pcs: PodCliqueSet) -> tuple[tuple[str, str], ...]:
        """(full PodClique name, template name) of each pod group, in gang order."""
        i = self.pcs_replica
        if self.group is not None:
            return _members(pcs, i, self.group, self.group_replica)
        out = [(clique_name(pcs.metadata.name, i, c.name), c.name) for c in standalone_cliques(pcs)]
        for config in pcs.spec.template.pod_clique_scaling_groups or ():
            for j in range(config.min_available):
                out += _members(pcs, i, config, j)
        return tuple(out)


def _members(pcs: PodCliqueSet, i: int, config: PodCliqueScalingGroupConfig, j: int) -> tuple[tuple[str, str], ...]:
    group = scaling_group_name(pcs.metadata.name, i, config.name)
    return tuple((member_clique_name(group, j, name), name) for name in config.clique_names)


def group_replicas(config: PodCliqueScalingGroupConfig, live: PodCliqueScalingGroup | None) -> int:
    """Replicas of a scaling group: the live object's count wins over the template's, so scaling by others is never reverted."""
    return bounded(live.spec.replicas if live is not None else config.replicas)


def gang_shapes(pcs: PodCliqueSet, groups: Mapping[str, PodCliqueScalingGroup]) -> Iterator[GangShape]:
    """Every expected gang: all Anchors by replica, then Tails by (replica, group, index). `groups`: live groups by full name."""
    for i in range(bounded(pcs.spec.replicas)):
        yield GangShape(base_gang_name(pcs.metadata.name, i), i)
    for i in range(bounded(pcs.spec.replicas)):
        for config in pcs.spec.template.pod_clique_scaling_groups or ():
            group = scaling_group_name(pcs.metadata.name, i, config.name)
            minimum = config.min_available
            for j in range(minimum, group_replicas(config, groups.get(group))):
                yield GangShape(scaled_gang_name(group, j - minimum), i, config, j)


def gang_shape(pcs: PodCliqueSet, name: str) -> GangShape | None:
    """The shape that belongs to a gang's name; None when no gang of this set can have that name. Replica counts are not checked."""
    i = pcs_replica_of(pcs.metadata.name, name)
    if i is None:
        return None
    if name == base_gang_name(pcs.metadata.name, i):
        return GangShape(name, i)
    for config in pcs.spec.template.pod_clique_scaling_groups or ():
        rest = name.removeprefix(scaling_group_name(pcs.metadata.name, i, config.name) + "-")
        if rest != name and rest.isascii() and rest.isdigit():
            return GangShape(name, i, config, int(rest) + (config.min_available))
    return None


def podgang_identity(pcs: PodCliqueSet, name: str, scheduler: str) -> Manifest:
    """A new PodGang without content. Whoever creates a field owns it for good, so all content is left to the one who keeps it current."""
    own = {**labels.default_labels(pcs.metadata.name), labels.COMPONENT: "podgang", labels.SCHEDULER_NAME: scheduler}
    return {
        "apiVersion": "scheduler.grove.io/v1alpha1",
        "kind": "PodGang",
        "metadata": metadata(name, pcs, own),
        "spec": {"podgroups": []},
    }


def podgang_manifest(
    pcs: PodCliqueSet,
    shape: GangShape,
    *,
    references: Mapping[str, Sequence[str]],
    level_keys: Mapping[str, str] | None,
    scheduler: str,
    live_annotations: Mapping[str, str] | None = None,
) -> Manifest:
    """The PodGang as it should be.

    references: pod names by full PodClique name. level_keys: domain → node label key, None when topology-aware scheduling is off or the
    binding is missing (all constraints are then dropped). scheduler: resolved scheduler profile. live_annotations: of the existing gang,
    whose `grove.io/*` keys are kept.
    """
    constrained = pcs.spec.template.topology_constraint
    if shape.group is not None and shape.group.topology_constraint is not None:
        constrained = shape.group.topology_constraint
    groups = [_pod_group(pcs, name, template, references.get(name, ()), level_keys) for name, template in shape.cliques(pcs)]
    spec: Manifest = {"podgroups": groups}
    if (constraint := pack_constraint(constrained, level_keys)) is not None:
        spec["topologyConstraint"] = constraint
    if configs := _group_configs(pcs, shape, level_keys):
        spec["topologyConstraintGroupConfigs"] = configs
    if pcs.spec.template.priority_class_name:
        spec["priorityClassName"] = pcs.spec.template.priority_class_name
    annotations = _annotations(pcs, spec, live_annotations or {})
    if scheduler == KAI:
        annotations[labels.ANNOTATION_KAI_SKIP_PODGROUPER] = "true"
    return {
        "apiVersion": "scheduler.grove.io/v1alpha1",
        "kind": "PodGang",
        "metadata": metadata(shape.name, pcs, _labels(pcs, scheduler), annotations),
        "spec": spec,
    }


def _pod_group(pcs: PodCliqueSet, name: str, template: str, pods: Sequence[str], level_keys: Mapping[str, str] | None) -> Manifest:
    clique = clique_template(pcs, template)
    minimum = clique.spec.min_available if clique is not None else None
    out: Manifest = {
        "name": name,
        "minReplicas": minimum or 0,
        "podReferences": [{"namespace": pcs.metadata.namespace, "name": pod} for pod in pods],
    }
    if clique is not None and (constraint := pack_constraint(clique.topology_constraint, level_keys)) is not None:
        out["topologyConstraint"] = constraint
    return out


def _group_configs(pcs: PodCliqueSet, shape: GangShape, level_keys: Mapping[str, str] | None) -> list[Manifest]:
    """One entry per anchor replica of each constrained scaling group, kept even when its own constraint translates to nothing."""
    if shape.group is not None or level_keys is None:
        return []
    out: list[Manifest] = []
    for config in pcs.spec.template.pod_clique_scaling_groups or ():
        if config.topology_constraint is None:
            continue
        group = scaling_group_name(pcs.metadata.name, shape.pcs_replica, config.name)
        for j in range(config.min_available):
            names = [name for name, _ in _members(pcs, shape.pcs_replica, config, j)]
            entry: Manifest = {"name": f"{group}-{j}", "podGroupNames": names}
            if (constraint := pack_constraint(config.topology_constraint, level_keys)) is not None:
                entry["topologyConstraint"] = constraint
            out.append(entry)
    return out


def _labels(pcs: PodCliqueSet, scheduler: str) -> dict[str, str]:
    mirrored = {k: v for k, v in pcs.metadata.labels.items() if not k.startswith(labels.GROVE_PREFIX)}
    ours = {labels.COMPONENT: "podgang", labels.SCHEDULER_NAME: scheduler}
    return {**mirrored, **labels.default_labels(pcs.metadata.name), **ours}


def _annotations(pcs: PodCliqueSet, spec: Manifest, live: Mapping[str, str]) -> dict[str, str]:
    """The set's annotations except `grove.io/*`, the gang's own `grove.io/*` ones, and the topology name where a constraint exists."""
    out = {k: v for k, v in pcs.metadata.annotations.items() if not k.startswith(labels.GROVE_PREFIX) and k != LAST_APPLIED}
    out |= {k: v for k, v in live.items() if k.startswith(labels.GROVE_PREFIX) and k != labels.ANNOTATION_TOPOLOGY_NAME}
    parts = [spec, *spec["podgroups"], *spec.get("topologyConstraintGroupConfigs", ())]
    if any("topologyConstraint" in part for part in parts):
        out[labels.ANNOTATION_TOPOLOGY_NAME] = topology_name(pcs)
    return out
