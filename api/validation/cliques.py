"""Clique templates of a PodCliqueSet, one by one and together (grove.md §1.7)."""

from collections.abc import Iterator

from api.fielderrors import FieldError, duplicate, invalid, required
from api.grove import AutoScalingConfig, PodCliqueSet, PodCliqueSpec, PodCliqueTemplate
from api.validation.names import duplicates, map_errors, standalone_name_length, subdomain_problem
from api.validation.podspec import pod_spec_errors
from api.validation.sharing import clique_sharing_errors

__all__ = ("clique_errors", "scaling_errors")

CLIQUES = "spec.template.cliques"


def clique_errors(pcs: PodCliqueSet) -> Iterator[FieldError]:
    """Everything about cliques but startup order, scheduler, topology and MNNVL."""
    template = pcs.spec.template
    if not template.cliques:
        yield required(CLIQUES, "at least one clique must be given")
    members = {name for g in template.pod_clique_scaling_groups or () for name in g.clique_names}
    for i, clique in enumerate(template.cliques):
        path = f"{CLIQUES}[{i}]"
        yield from _name_errors(path, pcs.metadata.name, clique, standalone=clique.name not in members)
        yield from map_errors(path, clique.labels, clique.annotations)
        yield from _spec_errors(f"{path}.spec", clique.spec)
        yield from clique_sharing_errors(path, clique.resource_sharing, template)
    if repeated := duplicates(c.name for c in template.cliques if c.name):
        yield duplicate(f"{CLIQUES}.name", repeated)
    # Absent role names are accepted, so that they do not count as one and the same role.
    if repeated := duplicates(c.spec.role_name for c in template.cliques if c.spec.role_name):
        yield duplicate(f"{CLIQUES}.roleName", repeated)


def _name_errors(path: str, pcs: str, clique: PodCliqueTemplate, *, standalone: bool) -> Iterator[FieldError]:
    if not clique.name:
        yield required(f"{path}.name", "must be set")
        return
    if problem := subdomain_problem(clique.name):
        yield invalid(f"{path}.name", clique.name, problem)
    if standalone:
        yield from standalone_name_length(f"{path}.name", pcs, clique.name)


def _spec_errors(path: str, spec: PodCliqueSpec) -> Iterator[FieldError]:
    if spec.replicas <= 0:
        yield invalid(f"{path}.replicas", spec.replicas, "must be greater than 0")
    if spec.min_available is None:
        yield required(f"{path}.minAvailable", "must be set")
    elif spec.min_available <= 0:
        yield invalid(f"{path}.minAvailable", spec.min_available, "must be greater than 0")
    elif spec.min_available > spec.replicas:
        yield invalid(f"{path}.minAvailable", spec.min_available, "minAvailable must not be greater than replicas")
    if spec.auto_scaling_config is not None:
        yield from _autoscaling_errors(f"{path}.autoScalingConfig", spec.auto_scaling_config, spec)
    yield from pod_spec_errors(f"{path}.podSpec", spec.pod_spec)


def _autoscaling_errors(path: str, config: AutoScalingConfig, spec: PodCliqueSpec) -> Iterator[FieldError]:
    yield from scaling_errors(path, config, spec.min_available)
    if config.min_replicas is not None and config.max_replicas < config.min_replicas:
        yield invalid(f"{path}.maxReplicas", config.max_replicas, "must be greater than or equal to minReplicas")
    if config.max_replicas < spec.replicas:
        yield invalid(f"{path}.maxReplicas", config.max_replicas, "must be greater than or equal to replicas")


def scaling_errors(path: str, config: AutoScalingConfig, min_available: int | None) -> Iterator[FieldError]:
    """The lower bound, which cliques and scaling groups have in common."""
    if config.min_replicas is None:
        yield required(f"{path}.minReplicas", "must be set")
    elif config.min_replicas < (min_available or 0):
        yield invalid(f"{path}.minReplicas", config.min_replicas, "must be greater than or equal to minAvailable")
