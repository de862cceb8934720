"""Scaling groups of a PodCliqueSet (grove.md §1.7)."""

from collections.abc import Collection, Iterator

from api.fielderrors import FieldError, duplicate, invalid, required
from api.grove import PodCliqueScalingGroupConfig, PodCliqueSet
from api.validation.cliques import scaling_errors
from api.validation.names import duplicates, group_name_length, map_errors, subdomain_problem
from api.validation.sharing import group_sharing_errors

__all__ = ("scaling_group_errors", "scaling_group_warnings")

GROUPS = "spec.template.podCliqueScalingGroups"


def scaling_group_errors(pcs: PodCliqueSet) -> Iterator[FieldError]:
    """Groups one by one, then what holds among them."""
    template = pcs.spec.template
    groups = template.pod_clique_scaling_groups or ()
    cliques = {c.name for c in template.cliques}
    for i, group in enumerate(groups):
        path = f"{GROUPS}[{i}]"
        yield from _name_errors(path, pcs.metadata.name, group)
        yield from _member_errors(path, group, cliques)
        yield from map_errors(path, None, group.annotations)
        yield from _size_errors(path, group)
        yield from group_sharing_errors(path, group, template)
    if repeated := duplicates(g.name for g in groups if g.name):
        yield duplicate(f"{GROUPS}.name", repeated)
    if repeated := duplicates(name for g in groups for name in g.clique_names):
        yield duplicate(f"{GROUPS}.cliqueNames", repeated)
    members = {name for g in groups for name in g.clique_names}
    for clique in template.cliques:
        if clique.spec.auto_scaling_config is not None and clique.name in members:
            yield invalid(GROUPS, clique.name, "AutoScalingConfig is not allowed to be defined for PodClique that is part of scaling group")


def _name_errors(path: str, pcs: str, group: PodCliqueScalingGroupConfig) -> Iterator[FieldError]:
    if not group.name:
        yield required(f"{path}.name", "must be set")
        return
    if problem := subdomain_problem(group.name):
        yield invalid(f"{path}.name", group.name, problem)
    for j, clique in enumerate(group.clique_names):
        yield from group_name_length(path, j, pcs, group.name, clique)


def _member_errors(path: str, group: PodCliqueScalingGroupConfig, cliques: Collection[str]) -> Iterator[FieldError]:
    unknown = [name for name in group.clique_names if name not in cliques]
    if unknown:
        yield invalid(f"{path}.cliqueNames", ",".join(unknown), "unidentified PodClique names found")


def _size_errors(path: str, group: PodCliqueScalingGroupConfig) -> Iterator[FieldError]:
    if group.replicas <= 0:
        yield invalid(f"{path}.replicas", group.replicas, "must be greater than 0")
    if group.min_available <= 0:
        yield invalid(f"{path}.minAvailable", group.min_available, "must be greater than 0")
    elif group.min_available > group.replicas:
        yield invalid(f"{path}.minAvailable", group.min_available, "minAvailable must not be greater than replicas")
    if group.scale_config is not None:
        yield from scaling_errors(f"{path}.scaleConfig", group.scale_config, group.min_available)


def scaling_group_warnings(pcs: PodCliqueSet) -> Iterator[str]:
    """Upstream accepts an upper bound below the lower one here, and then cannot make the HorizontalPodAutoscaler."""
    for i, group in enumerate(pcs.spec.template.pod_clique_scaling_groups or ()):
        scale = group.scale_config
        if scale is not None and scale.min_replicas is not None and scale.max_replicas < scale.min_replicas:
            yield (
                f"{GROUPS}[{i}].scaleConfig.maxReplicas: {scale.max_replicas} is less than minReplicas {scale.min_replicas}; "
                "the group will not be scaled until it is raised"
            )
