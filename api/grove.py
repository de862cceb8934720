"""grove.io/v1alpha1: PodCliqueSet, PodClique, PodCliqueScalingGroup, ClusterTopologyBinding (grove.md §1).

Defaults here are those of the CRDs. What the admission webhook fills in stays None (or 0, "") until `api.defaulting` has run.
"""

from typing import Annotated, ClassVar, Literal, TypeAlias

from pydantic import Field

from api.custom import Condition, Int32, Items, JsonObject, LastError, Part, Resource, null_as
from api.grove_status import (
    ClusterTopologyBindingStatus,
    PodCliqueScalingGroupReplicaSelection,
    PodCliqueScalingGroupStatus,
    PodCliqueScalingGroupUpdateProgress,
    PodCliqueSetReplicaUpdate,
    PodCliqueSetStatus,
    PodCliqueSetUpdateProgress,
    PodCliqueStatus,
    PodCliqueUpdateProgress,
    PodGangSummary,
    PodSelection,
    SchedulerTopologyStatus,
)
from api.kinds import Kind

__all__ = (
    "AutoScalingConfig",
    "CliqueFilter",
    "ClusterTopologyBinding",
    "ClusterTopologyBindingSpec",
    "ClusterTopologyBindingStatus",
    "Condition",
    "GroupResourceSharing",
    "HeadlessServiceConfig",
    "LastError",
    "PackConstraint",
    "PodClique",
    "PodCliqueScalingGroup",
    "PodCliqueScalingGroupConfig",
    "PodCliqueScalingGroupReplicaSelection",
    "PodCliqueScalingGroupSpec",
    "PodCliqueScalingGroupStatus",
    "PodCliqueScalingGroupUpdateProgress",
    "PodCliqueSet",
    "PodCliqueSetReplicaUpdate",
    "PodCliqueSetSpec",
    "PodCliqueSetStatus",
    "PodCliqueSetTemplate",
    "PodCliqueSetUpdateProgress",
    "PodCliqueSpec",
    "PodCliqueStatus",
    "PodCliqueTemplate",
    "PodCliqueUpdateProgress",
    "PodGangSummary",
    "PodSelection",
    "ResourceClaimTemplateConfig",
    "ResourceSharing",
    "SchedulerTopologyBinding",
    "SchedulerTopologyStatus",
    "SetFilter",
    "SetResourceSharing",
    "SharingScope",
    "StartupType",
    "TopologyConstraint",
    "TopologyLevel",
    "UpdateStrategy",
    "UpdateStrategyType",
)

GROUP = "grove.io"
VERSION = "v1alpha1"

StartupType: TypeAlias = Literal["CliqueStartupTypeAnyOrder", "CliqueStartupTypeInOrder", "CliqueStartupTypeExplicit"]
UpdateStrategyType: TypeAlias = Literal["RollingRecreate", "OnDelete"]
SharingScope: TypeAlias = Literal["AllReplicas", "PerReplica"]
Domain: TypeAlias = Annotated[str, Field(min_length=1, max_length=63, pattern=r"^[a-z][a-z0-9-]*$")]
NodeLabelKey: TypeAlias = Annotated[
    str,
    Field(
        min_length=1,
        max_length=63,
        pattern=r"^(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]/)?([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]$",
    ),
]


class PackConstraint(Part):
    """How closely pods are packed: within one domain of a topology level."""

    required: Domain | None = None
    """Level of which one domain must hold all pods; without such a domain nothing is scheduled."""
    preferred: Domain | None = None
    """Level of which one domain should hold all pods, if possible."""


class TopologyConstraint(Part):
    """Where pods may be placed relative to each other."""

    topology_name: str | None = None
    """ClusterTopologyBinding that defines the levels; inherited from the level above when absent."""
    pack: PackConstraint | None = None
    """Packing within domains."""
    pack_domain: Domain | None = None
    """Deprecated form of pack.required."""


class AutoScalingConfig(Part):
    """Bounds and metrics of a HorizontalPodAutoscaler."""

    min_replicas: Int32 | None = None
    """Lower bound; defaults to the replicas given."""
    max_replicas: Int32
    """Upper bound."""
    metrics: Items[JsonObject] | None = None
    """Metrics of the HorizontalPodAutoscaler."""


class CliqueFilter(Part):
    """Which children may use a shared ResourceClaim."""

    child_clique_names: Items[str] | None = None
    """Template names of the PodCliques."""


class SetFilter(CliqueFilter):
    """Which children may use a shared ResourceClaim."""

    child_scaling_group_names: Items[str] | None = None
    """Names of the scaling groups, all of whose PodCliques are meant."""


class ResourceSharing(Part):
    """ResourceClaims that pods share."""

    name: str
    """Template of the claims: one of resourceClaimTemplates, else a ResourceClaimTemplate of the cluster."""
    namespace: str | None = None
    """Namespace of a template of the cluster, if it is another one."""
    scope: SharingScope
    """One claim for all replicas of this level, or one for each."""


class GroupResourceSharing(ResourceSharing):
    """ResourceClaims that pods of a scaling group share."""

    filter: CliqueFilter | None = None
    """Restricts who uses the claims; absent means everybody."""


class SetResourceSharing(ResourceSharing):
    """ResourceClaims that pods of a PodCliqueSet share."""

    filter: SetFilter | None = None
    """Restricts who uses the claims; absent means everybody."""


class ResourceClaimTemplateConfig(Part):
    """A template for ResourceClaims inside the PodCliqueSet."""

    name: str
    """Name that resourceSharing refers to."""
    template_spec: JsonObject
    """What the claims look like."""


class PodCliqueSpec(Part):
    """Pods that play one role."""

    role_name: Annotated[str, null_as("")] = ""
    """Role of the pods; unique within a PodCliqueSet."""
    pod_spec: JsonObject
    """Specification of the pods."""
    replicas: Annotated[Int32, null_as(0)] = 0
    """How many pods there are. In a PodCliqueSet it counts only when the PodClique is created."""
    min_available: Int32 | None = None
    """How many pods are the least that is useful: so many are scheduled together or not at all."""
    starts_after: Items[str] | None = None
    """PodCliques whose pods must be ready before these start."""
    auto_scaling_config: AutoScalingConfig | None = None
    """Scales the PodClique by metrics; not for members of a scaling group."""


class PodCliqueTemplate(Part):
    """Template of a PodClique."""

    name: str
    """Name of the template; part of the names of its PodCliques."""
    labels: dict[str, str] | None = None
    """Labels of the PodClique and its pods."""
    annotations: dict[str, str] | None = None
    """Annotations of the PodClique and its pods."""
    topology_constraint: TopologyConstraint | None = None
    """Placement of the pods of one PodClique."""
    resource_sharing: Items[ResourceSharing] | None = None
    """ResourceClaims that the pods of one PodClique share."""
    spec: PodCliqueSpec
    """What the PodClique consists of."""


class PodCliqueScalingGroupConfig(Part):
    """PodCliques that are scaled together, as one unit per replica."""

    name: str
    """Name of the group; part of the names of its objects."""
    clique_names: Items[str]
    """Templates of the members."""
    annotations: dict[str, str] | None = None
    """Annotations of the PodCliqueScalingGroup."""
    replicas: Annotated[Int32, null_as(1)] = 1
    """How many copies of the members there are; counts only when the group is created."""
    min_available: Annotated[Int32, null_as(1)] = 1
    """How many replicas belong to the base gang; each further one is a gang of its own."""
    scale_config: AutoScalingConfig | None = None
    """Scales the group by metrics."""
    resource_sharing: Items[GroupResourceSharing] | None = None
    """ResourceClaims that pods of the group share."""
    topology_constraint: TopologyConstraint | None = None
    """Placement of the pods of one replica of the group."""


class HeadlessServiceConfig(Part):
    """The headless Service that gives pods their names."""

    publish_not_ready_addresses: Annotated[bool, null_as(True)] = True
    """Publishes pods before they are ready."""


class PodCliqueSetTemplate(Part):
    """Template of one replica."""

    cliques: Items[PodCliqueTemplate]
    """Templates of the PodCliques; their order is the startup order where that is in order."""
    clique_startup_type: Annotated[StartupType, null_as("CliqueStartupTypeAnyOrder")] = "CliqueStartupTypeAnyOrder"
    """In which order pods start: any, that of the list, or that of startsAfter."""
    priority_class_name: str | None = None
    """PriorityClass of the pods and gangs."""
    headless_service_config: HeadlessServiceConfig | None = None
    """The headless Service of each replica."""
    topology_constraint: TopologyConstraint | None = None
    """Placement of the pods of one replica."""
    termination_delay: str | None = None
    """How long a replica may stay below its minimum before it is deleted and made anew, as a duration such as 4h."""
    resource_claim_templates: Items[ResourceClaimTemplateConfig] | None = None
    """Templates of ResourceClaims for resourceSharing."""
    resource_sharing: Items[SetResourceSharing] | None = None
    """ResourceClaims that pods of a replica or of all replicas share."""
    pod_clique_scaling_groups: Items[PodCliqueScalingGroupConfig] | None = None
    """Groups of PodCliques that are scaled together."""


class UpdateStrategy(Part):
    """How changed templates reach running pods."""

    type: Annotated[UpdateStrategyType, null_as("RollingRecreate")] = "RollingRecreate"
    """Replaced one after the other, or whenever somebody deletes them."""


class PodCliqueSetSpec(Part):
    """Desired state of a PodCliqueSet."""

    replicas: Annotated[Int32, null_as(0)] = 0
    """How many copies of the template run."""
    update_strategy: UpdateStrategy | None = None
    """How changed templates reach running pods."""
    template: PodCliqueSetTemplate
    """Template of one replica."""


class PodCliqueSet(Resource):
    """A multi-role inference system: PodCliques, their gangs, order of startup and placement, times replicas."""

    KIND: ClassVar[Kind] = Kind(GROUP, VERSION, "PodCliqueSet", "podcliquesets")

    spec: PodCliqueSetSpec
    """Desired state."""
    status: PodCliqueSetStatus | None = None
    """Observed state."""


class PodClique(Resource):
    """A set of pods that play one role."""

    KIND: ClassVar[Kind] = Kind(GROUP, VERSION, "PodClique", "podcliques")

    spec: PodCliqueSpec
    """Desired state."""
    status: PodCliqueStatus | None = None
    """Observed state."""


class PodCliqueScalingGroupSpec(Part):
    """Desired state of a PodCliqueScalingGroup."""

    replicas: Annotated[Int32, null_as(1)] = 1
    """How many copies of the members there are."""
    min_available: Annotated[Int32, null_as(1)] = 1
    """How many replicas belong to the base gang."""
    clique_names: Items[str]
    """Templates of the members."""


class PodCliqueScalingGroup(Resource):
    """PodCliques that are scaled together."""

    KIND: ClassVar[Kind] = Kind(GROUP, VERSION, "PodCliqueScalingGroup", "podcliquescalinggroups")

    spec: PodCliqueScalingGroupSpec
    """Desired state."""
    status: PodCliqueScalingGroupStatus | None = None
    """Observed state."""


class TopologyLevel(Part):
    """One level of the topology."""

    domain: Domain
    """Name of the level, as topology constraints use it."""
    key: NodeLabelKey
    """Node label whose value tells the domain that a node is in."""


class SchedulerTopologyBinding(Part):
    """Ties a scheduler's own topology object to this one."""

    scheduler_name: str
    """Name of the scheduler."""
    topology_reference: str
    """Name of its topology object, which is compared and never changed."""


class ClusterTopologyBindingSpec(Part):
    """Desired state of a ClusterTopologyBinding."""

    levels: Annotated[Items[TopologyLevel], Field(min_length=1)]
    """Levels from the broadest to the narrowest."""
    scheduler_topology_bindings: Items[SchedulerTopologyBinding] | None = None
    """Schedulers whose topology objects are kept by somebody else."""


class ClusterTopologyBinding(Resource):
    """Levels of the cluster's topology and the node labels that mark them."""

    KIND: ClassVar[Kind] = Kind(GROUP, VERSION, "ClusterTopologyBinding", "clustertopologybindings", namespaced=False)

    spec: ClusterTopologyBindingSpec
    """Desired state."""
    status: ClusterTopologyBindingStatus | None = None
    """Observed state."""
