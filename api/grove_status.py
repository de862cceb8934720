"""Status of Grove's kinds (grove.md §1.9). Re-exported by `api.grove`."""

from typing import Annotated, Literal

from api.custom import Condition, Int32, Int64, Items, LastError, Part, Timestamp, null_as

__all__ = (
    "ClusterTopologyBindingStatus",
    "PodCliqueScalingGroupReplicaSelection",
    "PodCliqueScalingGroupStatus",
    "PodCliqueScalingGroupUpdateProgress",
    "PodCliqueSetReplicaUpdate",
    "PodCliqueSetStatus",
    "PodCliqueSetUpdateProgress",
    "PodCliqueStatus",
    "PodCliqueUpdateProgress",
    "PodGangSummary",
    "PodSelection",
    "SchedulerTopologyStatus",
)


class PodGangSummary(Part):
    """Phase and conditions of one PodGang of a PodCliqueSet."""

    name: str
    """Name of the PodGang."""
    phase: Literal["Pending", "Starting", "Running", "Failed", "Succeeded"]
    """Phase of the PodGang."""
    conditions: Items[Condition] | None = None
    """Conditions of the PodGang."""


class PodCliqueSetReplicaUpdate(Part):
    """A replica of a PodCliqueSet that is being updated."""

    replica_index: Int32
    """Index of the replica."""
    update_started_at: Timestamp | None = None
    """When the update of this replica began."""
    update_ended_at: Timestamp | None = None
    """When it ended."""


class PodCliqueSetUpdateProgress(Part):
    """How far an update of a PodCliqueSet has come."""

    update_started_at: Timestamp | None = None
    """When the update began."""
    update_ended_at: Timestamp | None = None
    """When it ended; absent while it runs."""
    updated_pod_cliques_count: Annotated[Int32, null_as(0)] = 0
    """Standalone PodCliques that run the new templates."""
    total_pod_cliques_count: Annotated[Int32, null_as(0)] = 0
    """All standalone PodCliques."""
    updated_pod_clique_scaling_groups_count: Annotated[Int32, null_as(0)] = 0
    """PodCliqueScalingGroups that run the new templates."""
    total_pod_clique_scaling_groups_count: Annotated[Int32, null_as(0)] = 0
    """All PodCliqueScalingGroups."""
    currently_updating: Items[PodCliqueSetReplicaUpdate] | None = None
    """Replicas that are being updated now."""


class PodCliqueSetStatus(Part):
    """Observed state of a PodCliqueSet."""

    observed_generation: Int64 | None = None
    """Newest generation that was reconciled completely."""
    conditions: Items[Condition] | None = None
    """Conditions, one per type."""
    last_errors: Items[LastError] | None = None
    """Errors of the last reconcile that stopped early."""
    replicas: Annotated[Int32, null_as(0)] = 0
    """Replicas asked for."""
    available_replicas: Annotated[Int32, null_as(0)] = 0
    """Replicas whose PodCliques and PodCliqueScalingGroups all have what they need at least."""
    updated_replicas: Annotated[Int32, null_as(0)] = 0
    """Available replicas that run the newest templates."""
    hpa_pod_selector: str | None = None
    """Label selector of the pods, for the scale subresource."""
    pod_gang_statuses: Items[PodGangSummary] | None = None
    """Not filled; kept for compatibility."""
    current_generation_hash: str | None = None
    """Hash of the templates of the newest generation."""
    update_progress: PodCliqueSetUpdateProgress | None = None
    """Progress of the last update."""


class PodSelection(Part):
    """Pods that an update has taken up."""

    current: str
    """Pod that is being replaced."""
    completed: Items[str] | None = None
    """Pods that have been replaced."""


class PodCliqueUpdateProgress(Part):
    """How far an update of a PodClique has come."""

    pod_clique_set_generation_hash: str
    """Hash of the PodCliqueSet's templates that the update leads to."""
    pod_template_hash: str
    """Hash of the pod template that the update leads to."""
    update_started_at: Timestamp | None = None
    """When the update began."""
    update_ended_at: Timestamp | None = None
    """When it ended; absent while it runs."""
    ready_pods_selected_to_update: PodSelection | None = None
    """Ready pods that are being replaced or have been."""


class PodCliqueStatus(Part):
    """Observed state of a PodClique."""

    observed_generation: Int64 | None = None
    """Newest generation that was reconciled completely."""
    conditions: Items[Condition] | None = None
    """Conditions, one per type."""
    last_errors: Items[LastError] | None = None
    """Errors of the last reconcile that stopped early."""
    replicas: Annotated[Int32, null_as(0)] = 0
    """Pods that are not terminating."""
    ready_replicas: Annotated[Int32, null_as(0)] = 0
    """Pods that are ready."""
    scheduled_replicas: Annotated[Int32, null_as(0)] = 0
    """Pods that have a node."""
    schedule_gated_replicas: Annotated[Int32, null_as(0)] = 0
    """Pods that still carry a scheduling gate."""
    updated_replicas: Annotated[Int32, null_as(0)] = 0
    """Pods that run the newest template."""
    hpa_pod_selector: str | None = None
    """Label selector of the pods, for the scale subresource; absent for members of a scaling group."""
    current_pod_clique_set_generation_hash: str | None = None
    """Hash of the PodCliqueSet's templates that all pods run."""
    current_pod_template_hash: str | None = None
    """Hash of the pod template that all pods run."""
    update_progress: PodCliqueUpdateProgress | None = None
    """Progress of the last update."""


class PodCliqueScalingGroupReplicaSelection(Part):
    """Replicas of a scaling group that an update has taken up."""

    current: Int32
    """Replica that is being replaced."""
    completed: Items[Int32] | None = None
    """Replicas that have been replaced."""


class PodCliqueScalingGroupUpdateProgress(Part):
    """How far an update of a PodCliqueScalingGroup has come."""

    update_started_at: Timestamp | None = None
    """When the update began."""
    update_ended_at: Timestamp | None = None
    """When it ended; absent while it runs."""
    pod_clique_set_generation_hash: str
    """Hash of the PodCliqueSet's templates that the update leads to."""
    updated_pod_cliques_count: Annotated[Int32, null_as(0)] = 0
    """Member PodCliques that run the new templates."""
    total_pod_cliques_count: Annotated[Int32, null_as(0)] = 0
    """All member PodCliques."""
    ready_replica_indices_selected_to_update: PodCliqueScalingGroupReplicaSelection | None = None
    """Ready replicas that are being replaced or have been."""


class PodCliqueScalingGroupStatus(Part):
    """Observed state of a PodCliqueScalingGroup."""

    observed_generation: Int64 | None = None
    """Newest generation that was reconciled completely."""
    conditions: Items[Condition] | None = None
    """Conditions, one per type."""
    last_errors: Items[LastError] | None = None
    """Errors of the last reconcile that stopped early."""
    replicas: Annotated[Int32, null_as(0)] = 0
    """Replicas asked for."""
    scheduled_replicas: Annotated[Int32, null_as(0)] = 0
    """Replicas whose PodCliques are all scheduled."""
    available_replicas: Annotated[Int32, null_as(0)] = 0
    """Scheduled replicas whose PodCliques all have enough ready pods."""
    updated_replicas: Annotated[Int32, null_as(0)] = 0
    """Available replicas that run the newest templates."""
    selector: str | None = None
    """Label selector of the pods, for the scale subresource."""
    current_pod_clique_set_generation_hash: str | None = None
    """Hash of the PodCliqueSet's templates that all replicas run."""
    update_progress: PodCliqueScalingGroupUpdateProgress | None = None
    """Progress of the last update."""


class SchedulerTopologyStatus(Part):
    """Whether a scheduler's own topology object agrees with a ClusterTopologyBinding."""

    scheduler_name: str
    """Name of the scheduler."""
    topology_reference: str
    """Name of the scheduler's topology object."""
    in_sync: bool
    """True when both name the same levels in the same order."""
    scheduler_backend_topology_observed_generation: Int64 | None = None
    """Generation of the scheduler's object that was compared."""
    message: str | None = None
    """What differs."""


class ClusterTopologyBindingStatus(Part):
    """Observed state of a ClusterTopologyBinding."""

    observed_generation: Int64 | None = None
    """Newest generation that was reconciled completely."""
    conditions: Items[Condition] | None = None
    """Conditions, one per type."""
    scheduler_topology_statuses: Items[SchedulerTopologyStatus] | None = None
    """One entry per scheduler that knows topologies."""
