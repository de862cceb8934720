"""Lookups in a PodCliqueSet template by name, never by the suffix of a generated name."""

from dataclasses import dataclass

from api.grove import PodCliqueScalingGroupConfig, PodCliqueSet, PodCliqueTemplate
from api.names import gang_name, scaling_group_name

__all__ = ("Membership", "clique_template", "group_config", "group_of_clique", "standalone_cliques", "template_pods")


@dataclass(frozen=True, slots=True)
class Membership:
    """Where a member clique stands: its scaling group's configuration and full name, and the replica (j) of that group."""

    config: PodCliqueScalingGroupConfig
    group: str
    replica: int

    @property
    def min_available(self) -> int:
        return self.config.min_available

    @property
    def scaled(self) -> bool:
        """True for replicas at or above minAvailable, which form tail gangs of their own."""
        return self.replica >= self.min_available

    @classmethod
    def of(cls, pcs: PodCliqueSet, pcs_replica: int, config: PodCliqueScalingGroupConfig, replica: int) -> "Membership":
        return cls(config, scaling_group_name(pcs.metadata.name, pcs_replica, config.name), replica)

    def gang(self, pcs_name: str, pcs_replica: int) -> str:
        """Name of the gang that this replica's pods belong to."""
        return gang_name(pcs_name, pcs_replica, self.group, self.replica, self.min_available)


def clique_template(pcs: PodCliqueSet, name: str) -> PodCliqueTemplate | None:
    """The clique template of that name."""
    return next((c for c in pcs.spec.template.cliques if c.name == name), None)


def group_config(pcs: PodCliqueSet, name: str) -> PodCliqueScalingGroupConfig | None:
    """The scaling group configuration of that (short) name."""
    return next((g for g in pcs.spec.template.pod_clique_scaling_groups or () if g.name == name), None)


def group_of_clique(pcs: PodCliqueSet, clique: str) -> PodCliqueScalingGroupConfig | None:
    """The scaling group that lists the clique template `clique`, if any (validation allows at most one)."""
    return next((g for g in pcs.spec.template.pod_clique_scaling_groups or () if clique in g.clique_names), None)


def standalone_cliques(pcs: PodCliqueSet) -> tuple[PodCliqueTemplate, ...]:
    """Clique templates in no scaling group, in template order."""
    members = {name for g in pcs.spec.template.pod_clique_scaling_groups or () for name in g.clique_names}
    return tuple(c for c in pcs.spec.template.cliques if c.name not in members)


def template_pods(pcs: PodCliqueSet, config: PodCliqueScalingGroupConfig) -> int:
    """Pods of one replica of a scaling group as its template says (GROVE_PCSG_TEMPLATE_NUM_PODS)."""
    return sum(c.spec.replicas for c in pcs.spec.template.cliques if c.name in config.clique_names)
