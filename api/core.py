"""Projections of core kinds: the fields that controllers and scheduler read, nothing else.

Quantities stay text here; `api.quantity` turns them into integers where sums are needed.
"""

from datetime import datetime
from typing import Any, ClassVar

from api.kinds import Kind
from api.meta import CoreObject, CoreStruct

__all__ = (
    "Affinity",
    "Condition",
    "Container",
    "ContainerState",
    "ContainerStatus",
    "Event",
    "HorizontalPodAutoscaler",
    "LabelSelector",
    "Lease",
    "Node",
    "NodeSelector",
    "NodeSelectorTerm",
    "Pod",
    "PodAffinityTerm",
    "PodSpec",
    "PodStatus",
    "PriorityClass",
    "ResourceClaim",
    "Role",
    "RoleBinding",
    "Secret",
    "SelectorRequirement",
    "Service",
    "ServiceAccount",
    "Taint",
    "Toleration",
)


class Condition(CoreStruct, frozen=True):
    """metav1.Condition, also read from pods and nodes."""

    type: str = ""
    status: str = "Unknown"
    reason: str = ""
    message: str = ""
    last_transition_time: datetime | None = None
    observed_generation: int = 0


class ResourceRequirements(CoreStruct, frozen=True):
    """Requests and limits by resource name, as quantity text or number."""

    requests: dict[str, str | int | float] = {}
    limits: dict[str, str | int | float] = {}


class ContainerPort(CoreStruct, frozen=True):
    host_port: int = 0
    container_port: int = 0
    protocol: str = "TCP"


class Container(CoreStruct, frozen=True):
    name: str = ""
    image: str = ""
    resources: ResourceRequirements = ResourceRequirements()
    ports: tuple[ContainerPort, ...] = ()
    restart_policy: str = ""


class SchedulingGate(CoreStruct, frozen=True):
    name: str = ""


class Toleration(CoreStruct, frozen=True):
    key: str = ""
    operator: str = "Equal"
    value: str = ""
    effect: str = ""


class SelectorRequirement(CoreStruct, frozen=True):
    """One expression of a label or node selector (node selectors also know Gt and Lt)."""

    key: str = ""
    operator: str = "In"
    values: tuple[str, ...] = ()


class LabelSelector(CoreStruct, frozen=True):
    match_labels: dict[str, str] = {}
    match_expressions: tuple[SelectorRequirement, ...] = ()


class NodeSelectorTerm(CoreStruct, frozen=True):
    match_expressions: tuple[SelectorRequirement, ...] = ()
    match_fields: tuple[SelectorRequirement, ...] = ()


class NodeSelector(CoreStruct, frozen=True):
    node_selector_terms: tuple[NodeSelectorTerm, ...] = ()


class NodeAffinity(CoreStruct, frozen=True):
    required_during_scheduling_ignored_during_execution: NodeSelector | None = None


class PodAffinityTerm(CoreStruct, frozen=True):
    label_selector: LabelSelector | None = None
    namespaces: tuple[str, ...] = ()
    namespace_selector: LabelSelector | None = None
    topology_key: str = ""
    match_label_keys: tuple[str, ...] = ()
    mismatch_label_keys: tuple[str, ...] = ()


class PodAffinity(CoreStruct, frozen=True):
    required_during_scheduling_ignored_during_execution: tuple[PodAffinityTerm, ...] = ()


class Affinity(CoreStruct, frozen=True):
    node_affinity: NodeAffinity | None = None
    pod_affinity: PodAffinity | None = None
    pod_anti_affinity: PodAffinity | None = None


class TopologySpreadConstraint(CoreStruct, frozen=True):
    topology_key: str = ""
    when_unsatisfiable: str = "DoNotSchedule"


class PersistentVolumeClaimSource(CoreStruct, frozen=True):
    claim_name: str = ""


class Volume(CoreStruct, frozen=True):
    name: str = ""
    persistent_volume_claim: PersistentVolumeClaimSource | None = None
    ephemeral: dict[str, Any] | None = None


class PodResourceClaim(CoreStruct, frozen=True):
    name: str = ""
    resource_claim_name: str = ""
    resource_claim_template_name: str = ""


class PodSpec(CoreStruct, frozen=True):
    node_name: str = ""
    hostname: str = ""
    scheduler_name: str = "default-scheduler"
    scheduling_gates: tuple[SchedulingGate, ...] = ()
    scheduling_group: dict[str, Any] | None = None
    priority: int = 0
    priority_class_name: str = ""
    node_selector: dict[str, str] = {}
    affinity: Affinity | None = None
    tolerations: tuple[Toleration, ...] = ()
    topology_spread_constraints: tuple[TopologySpreadConstraint, ...] = ()
    containers: tuple[Container, ...] = ()
    init_containers: tuple[Container, ...] = ()
    overhead: dict[str, str | int | float] = {}
    resources: ResourceRequirements | None = None
    volumes: tuple[Volume, ...] = ()
    resource_claims: tuple[PodResourceClaim, ...] = ()


class ContainerTerminated(CoreStruct, frozen=True):
    exit_code: int = 0
    reason: str = ""


class ContainerWaiting(CoreStruct, frozen=True):
    reason: str = ""


class ContainerState(CoreStruct, frozen=True):
    terminated: ContainerTerminated | None = None
    waiting: ContainerWaiting | None = None


class ContainerStatus(CoreStruct, frozen=True):
    name: str = ""
    ready: bool = False
    started: bool | None = None
    restart_count: int = 0
    state: ContainerState = ContainerState()
    last_state: ContainerState = ContainerState()


class PodStatus(CoreStruct, frozen=True):
    phase: str = "Pending"
    reason: str = ""
    nominated_node_name: str = ""
    conditions: tuple[Condition, ...] = ()
    container_statuses: tuple[ContainerStatus, ...] = ()
    init_container_statuses: tuple[ContainerStatus, ...] = ()


class Pod(CoreObject, frozen=True):
    """core/v1 Pod."""

    KIND: ClassVar[Kind] = Kind("", "v1", "Pod", "pods")

    spec: PodSpec = PodSpec()
    status: PodStatus = PodStatus()

    def condition(self, type_: str) -> Condition | None:
        """The condition of that type, if present."""
        return next((c for c in self.status.conditions if c.type == type_), None)

    def has(self, type_: str) -> bool:
        """True when the condition of that type is True."""
        condition = self.condition(type_)
        return condition is not None and condition.status == "True"

    @property
    def gates(self) -> tuple[str, ...]:
        return tuple(g.name for g in self.spec.scheduling_gates)

    @property
    def finished(self) -> bool:
        """Succeeded or Failed: holds no resources any more."""
        return self.status.phase in ("Succeeded", "Failed")


class Taint(CoreStruct, frozen=True):
    key: str = ""
    value: str = ""
    effect: str = ""


class NodeSpec(CoreStruct, frozen=True):
    unschedulable: bool = False
    taints: tuple[Taint, ...] = ()


class NodeStatus(CoreStruct, frozen=True):
    allocatable: dict[str, str | int | float] = {}
    conditions: tuple[Condition, ...] = ()


class Node(CoreObject, frozen=True):
    """core/v1 Node."""

    KIND: ClassVar[Kind] = Kind("", "v1", "Node", "nodes", namespaced=False)

    spec: NodeSpec = NodeSpec()
    status: NodeStatus = NodeStatus()


class ServiceSpec(CoreStruct, frozen=True):
    publish_not_ready_addresses: bool = False
    selector: dict[str, str] = {}


class Service(CoreObject, frozen=True):
    """core/v1 Service."""

    KIND: ClassVar[Kind] = Kind("", "v1", "Service", "services")

    spec: ServiceSpec = ServiceSpec()


class ServiceAccount(CoreObject, frozen=True):
    """core/v1 ServiceAccount, metadata only."""

    KIND: ClassVar[Kind] = Kind("", "v1", "ServiceAccount", "serviceaccounts")


class Secret(CoreObject, frozen=True):
    """core/v1 Secret: type and metadata only, so that no secret value enters this process's caches."""

    KIND: ClassVar[Kind] = Kind("", "v1", "Secret", "secrets")

    type: str = ""


class Role(CoreObject, frozen=True):
    """rbac.authorization.k8s.io/v1 Role, metadata only."""

    KIND: ClassVar[Kind] = Kind("rbac.authorization.k8s.io", "v1", "Role", "roles")


class RoleBinding(CoreObject, frozen=True):
    """rbac.authorization.k8s.io/v1 RoleBinding, metadata only."""

    KIND: ClassVar[Kind] = Kind("rbac.authorization.k8s.io", "v1", "RoleBinding", "rolebindings")


class HorizontalPodAutoscalerSpec(CoreStruct, frozen=True):
    min_replicas: int | None = None
    max_replicas: int = 0
    metrics: tuple[dict[str, Any], ...] = ()
    scale_target_ref: dict[str, Any] = {}


class HorizontalPodAutoscaler(CoreObject, frozen=True):
    """autoscaling/v2 HorizontalPodAutoscaler."""

    KIND: ClassVar[Kind] = Kind("autoscaling", "v2", "HorizontalPodAutoscaler", "horizontalpodautoscalers")

    spec: HorizontalPodAutoscalerSpec = HorizontalPodAutoscalerSpec()


class ResourceClaim(CoreObject, frozen=True):
    """resource.k8s.io/v1 ResourceClaim, metadata only."""

    KIND: ClassVar[Kind] = Kind("resource.k8s.io", "v1", "ResourceClaim", "resourceclaims")


class ResourceClaimTemplate(CoreObject, frozen=True):
    """resource.k8s.io/v1 ResourceClaimTemplate; its spec is copied into claims unaltered."""

    KIND: ClassVar[Kind] = Kind("resource.k8s.io", "v1", "ResourceClaimTemplate", "resourceclaimtemplates")

    spec: dict[str, Any] = {}


class PriorityClass(CoreObject, frozen=True):
    """scheduling.k8s.io/v1 PriorityClass."""

    KIND: ClassVar[Kind] = Kind("scheduling.k8s.io", "v1", "PriorityClass", "priorityclasses", namespaced=False)

    value: int = 0
    global_default: bool = False


class LeaseSpec(CoreStruct, frozen=True):
    holder_identity: str | None = None
    lease_duration_seconds: int | None = None
    acquire_time: datetime | None = None
    renew_time: datetime | None = None
    lease_transitions: int | None = None


class Lease(CoreObject, frozen=True):
    """coordination.k8s.io/v1 Lease."""

    KIND: ClassVar[Kind] = Kind("coordination.k8s.io", "v1", "Lease", "leases")

    spec: LeaseSpec = LeaseSpec()


class Event(CoreObject, frozen=True):
    """core/v1 Event; written, hardly ever read."""

    KIND: ClassVar[Kind] = Kind("", "v1", "Event", "events")

    reason: str = ""
    message: str = ""
    type: str = "Normal"
    count: int = 0
