"""scheduler.grove.io/v1alpha1 PodGang: what a gang scheduler is asked to place (grove.md §1.16).

Topology constraints here name node label keys, not domains.
Status has two writers: the PodGang controller (phase, Initialized, Ready, Unhealthy) and the scheduler (everything else).
"""

from typing import Annotated, ClassVar

from api.custom import Condition, Int32, Items, Part, Resource, Timestamp, null_as
from api.kinds import Kind

__all__ = (
    "NamespacedName",
    "PodGang",
    "PodGangPackConstraint",
    "PodGangSpec",
    "PodGangStatus",
    "PodGangTopologyConstraint",
    "PodGroup",
    "TopologyConstraintGroupConfig",
)


class NamespacedName(Part):
    """Names an object of a known kind."""

    namespace: str
    """Namespace of the object."""
    name: str
    """Name of the object."""


class PodGangPackConstraint(Part):
    """How closely pods are packed, in node label keys."""

    required: str | None = None
    """Node label key: all pods must be on nodes with one value of it."""
    preferred: str | None = None
    """Node label key: all pods should be on nodes with one value of it."""


class PodGangTopologyConstraint(Part):
    """Where pods may be placed relative to each other."""

    pack_constraint: PodGangPackConstraint | None = None
    """Packing within domains."""


class PodGroup(Part):
    """Pods of one PodClique."""

    name: str
    """Name of the PodClique."""
    pod_references: Items[NamespacedName]
    """The pods."""
    min_replicas: Int32
    """How many of them must be placed for the gang to be placed."""
    topology_constraint: PodGangTopologyConstraint | None = None
    """Placement of the pods of this group."""


class TopologyConstraintGroupConfig(Part):
    """A topology constraint over several pod groups."""

    name: str
    """Name of the constraint."""
    pod_group_names: Items[str]
    """The pod groups."""
    topology_constraint: PodGangTopologyConstraint | None = None
    """Placement of the pods of these groups."""


class PodGangSpec(Part):
    """Desired state of a PodGang."""

    podgroups: Items[PodGroup]
    """The gang's pods, by PodClique."""
    topology_constraint: PodGangTopologyConstraint | None = None
    """Placement of all pods of the gang."""
    topology_constraint_group_configs: Items[TopologyConstraintGroupConfig] | None = None
    """Placement of parts of the gang."""
    priority_class_name: str | None = None
    """PriorityClass of the gang."""
    reuse_reservation_ref: NamespacedName | None = None
    """Not used; kept for compatibility."""


class PodGangStatus(Part):
    """Observed state of a PodGang."""

    phase: Annotated[str, null_as("")] = ""
    """Pending, Starting or Running."""
    conditions: Items[Condition] | None = None
    """Conditions, one per type."""
    placement_score: float | None = None
    """How well the placement meets preferences, from 0 to 1."""
    pods: Int32 | None = None
    """Pods of the gang that the scheduler has seen."""
    bound: Int32 | None = None
    """Pods that have a node."""
    ready: Int32 | None = None
    """Pods that are ready."""
    domain: str | None = None
    """Narrowest topology domain that holds all bound pods."""
    blocked: str | None = None
    """Reason why the gang waits; absent when it does not."""
    blocked_since: Timestamp | None = None
    """Since when it waits for this reason."""


class PodGang(Resource):
    """Pods that are scheduled together or not at all."""

    KIND: ClassVar[Kind] = Kind("scheduler.grove.io", "v1alpha1", "PodGang", "podgangs")

    spec: PodGangSpec
    """Desired state."""
    status: PodGangStatus | None = None
    """Observed state."""
