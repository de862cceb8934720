"""scheduling.grovekeeper.io/v1alpha1 GangPlacement: the scheduler's journal, one per PodGang and of the same name.

It is written before the first pod of a gang is bound, so that a new process can finish or undo what the old one began.
"""

from typing import Annotated, ClassVar, Literal, TypeAlias

from pydantic import Field

from api.custom import Condition, Int32, Int64, Items, Part, Resource, Timestamp
from api.kinds import Kind

__all__ = ("GangPlacement", "GangPlacementSpec", "GangPlacementStatus", "PlacedPod", "PlacementPhase")

PlacementPhase: TypeAlias = Literal["Open", "Confirmed", "Compensating", "Abandoned"]


class PlacedPod(Part):
    """A pod and the node chosen for it."""

    name: str
    """Name of the pod."""
    uid: str
    """Identity of the pod; a pod of the same name with another uid is not meant."""
    node: str
    """Name of the node."""
    group: str
    """Pod group of the gang that the pod belongs to."""


class GangPlacementSpec(Part):
    """A decision of the scheduler; never changed, only replaced as a whole by the next decision."""

    decision_id: Annotated[str, Field(alias="decisionID")]
    """Identifies the decision in logs, events and metrics."""
    epoch: Int64
    """Leader transitions of the lease under which it was made."""
    digest: str | None = None
    """Digest of the inputs of the decision."""
    pods: Items[PlacedPod]
    """Where each pod goes."""
    deadline: Timestamp
    """When the decision is given up if its pods are not bound by then."""


class GangPlacementStatus(Part):
    """What has become of the decision."""

    phase: PlacementPhase = "Open"
    """Open while pods are being bound, then Confirmed; or Compensating while it is undone, then Abandoned."""
    pods: Int32 | None = None
    """Pods that the decision places."""
    bound: Int32 | None = None
    """Pods that are on the node chosen for them."""
    domain: str | None = None
    """Narrowest topology domain that holds the gang."""
    score: float | None = None
    """How well the placement meets preferences, from 0 to 1."""
    reason: str | None = None
    """Why the placement does not go on; absent when it does."""
    message: str | None = None
    """The same for people."""
    observed_generation: Int64 | None = None
    """Generation of the spec that this status is about."""
    conditions: Items[Condition] | None = None
    """Conditions, one per type."""


class GangPlacement(Resource):
    """The scheduler's decision where the pods of one PodGang go."""

    KIND: ClassVar[Kind] = Kind("scheduling.grovekeeper.io", "v1alpha1", "GangPlacement", "gangplacements")

    spec: GangPlacementSpec
    """The decision."""
    status: GangPlacementStatus | None = None
    """What has become of it."""
