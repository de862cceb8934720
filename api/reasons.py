"""The closed vocabulary of reasons that users see in conditions, events, metrics and the CLI.

Union of the reason lists in the user-facing specification (waiting, capacity, constraint, configuration, runtime, control) and of the
scheduler's verdicts. Values are append-only: dashboards and alerts depend on them.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

__all__ = ("NOT_YET", "REASON_HELP", "Help", "Reason")


class Reason(StrEnum):
    """Machine-readable reasons."""

    # waiting
    GATED = "Gated"
    WAITING_FOR_BASE_GANG = "WaitingForBaseGang"
    WAITING_FOR_GATES = "WaitingForGates"
    WAITING_FOR_PODS = "WaitingForPods"
    WAITING_FOR_STARTUP_ORDER = "WaitingForStartupOrder"
    QUEUED_BEHIND = "QueuedBehind"
    # capacity
    INSUFFICIENT_CAPACITY = "InsufficientCapacity"
    INSUFFICIENT_IN_DOMAIN = "InsufficientInDomain"
    INSUFFICIENT_GPUS = "InsufficientGPUs"
    INSUFFICIENT_CPU = "InsufficientCPU"
    INSUFFICIENT_MEMORY = "InsufficientMemory"
    INSUFFICIENT_PODS = "InsufficientPods"
    FRAGMENTED = "Fragmented"
    TOPOLOGY_TOO_NARROW = "TopologyTooNarrow"
    TOPOLOGY_LEVEL_UNKNOWN = "TopologyLevelUnknown"
    TOPOLOGY_MISSING = "TopologyMissing"
    LEVEL_MISSING = "LevelMissing"
    REQUIRED_SPLIT = "RequiredSplit"
    QUOTA_EXCEEDED = "QuotaExceeded"
    OVER_LIMIT = "OverLimit"
    BORROWING_BLOCKED = "BorrowingBlocked"
    # constraint
    NODE_SELECTOR_MISMATCH = "NodeSelectorMismatch"
    TAINT_NOT_TOLERATED = "TaintNotTolerated"
    AFFINITY_CONFLICT = "AffinityConflict"
    VOLUME_BOUND = "VolumeBound"
    CLAIM_UNALLOCATABLE = "ClaimUnallocatable"
    # configuration
    UNKNOWN_QUEUE = "UnknownQueue"
    UNKNOWN_TOPOLOGY = "UnknownTopology"
    INVALID_SPEC = "InvalidSpec"
    NAME_TOO_LONG = "NameTooLong"
    CONFLICT = "Conflict"
    NAMESPACE_TERMINATING = "NamespaceTerminating"
    FORBIDDEN = "Forbidden"
    # runtime
    IMAGE_PULL = "ImagePull"
    CRASH_LOOP = "CrashLoop"
    NOT_READY = "NotReady"
    STARTUP_TIMEOUT = "StartupTimeout"
    NODE_LOST = "NodeLost"
    STUCK_TERMINATING = "StuckTerminating"
    # control
    BIND_REJECTED = "BindRejected"
    BIND_UNKNOWN = "BindUnknown"
    SEARCH_BUDGET = "SearchBudget"
    SOLVER_TIMEOUT = "SolverTimeout"
    SOLVER_FALLBACK = "SolverFallback"
    PREEMPTING = "Preempting"
    CACHE_STALE = "CacheStale"
    NOT_LEADER = "NotLeader"
    PAUSED = "Paused"
    ADVISORY = "Advisory"


@dataclass(frozen=True, slots=True)
class Help:
    """What a reason means, and what its reader does about it. Sentences in Markdown."""

    meaning: str
    action: str


NOT_YET = "Not shown by anything yet."

REASON_HELP: Mapping[Reason, Help] = {
    Reason.GATED: Help("Pods still have a scheduling gate.", NOT_YET),
    Reason.WAITING_FOR_BASE_GANG: Help(
        "A Tail gang waits until its Anchor gang has its minimum of pods on nodes.", "Find out why the Anchor gang waits."
    ),
    Reason.WAITING_FOR_GATES: Help(
        "Pods that the minimum needs exist but are gated.",
        "Usually over in a second. If it stays, look whether the controllers run, and whether the pods have a gate of somebody else.",
    ),
    Reason.WAITING_FOR_PODS: Help(
        "Pods that the minimum needs do not exist.",
        "Usually over in a second. If it stays, look at `status.lastErrors` and events of the PodClique: a quota may refuse the pods.",
    ),
    Reason.WAITING_FOR_STARTUP_ORDER: Help(
        "The token for the startup waiter has not been made yet.",
        "Look whether kube-controller-manager runs, or set `grovekeeper.token: projected`, which needs no Secret.",
    ),
    Reason.QUEUED_BEHIND: Help(
        "Room for the gang is reserved behind pods that are being deleted; the message names their nodes.",
        "Wait until they are gone. If one stays for long, look why it does not end.",
    ),
    Reason.INSUFFICIENT_CAPACITY: Help(
        "The nodes that the pods may use have too little room. The message counts the pods that fit and names the scarcest resource. "
        "With `Scheduled=True`: the gang has its minimum, and more pods do not fit.",
        "Add or free nodes, or change what keeps the pods off the nodes that the message counts as excluded.",
    ),
    Reason.INSUFFICIENT_IN_DOMAIN: Help(
        "The cluster has room, but no single domain of the required level has enough. The message names the best one.",
        "Free room in one domain, or require a broader level.",
    ),
    Reason.INSUFFICIENT_GPUS: Help("Too few GPUs. `InsufficientCapacity` says so today.", NOT_YET),
    Reason.INSUFFICIENT_CPU: Help("Too little CPU. `InsufficientCapacity` says so today.", NOT_YET),
    Reason.INSUFFICIENT_MEMORY: Help("Too little memory. `InsufficientCapacity` says so today.", NOT_YET),
    Reason.INSUFFICIENT_PODS: Help("Too few pods per node. `InsufficientCapacity` says so today.", NOT_YET),
    Reason.FRAGMENTED: Help("There is room, but in pieces that do not fit the gang as a whole.", "Free whole nodes."),
    Reason.TOPOLOGY_TOO_NARROW: Help("A domain of the level can never hold the gang.", NOT_YET),
    Reason.TOPOLOGY_LEVEL_UNKNOWN: Help("No such level. `LevelMissing` says so today.", NOT_YET),
    Reason.TOPOLOGY_MISSING: Help(
        "The gang names a topology that does not exist.", "Create the ClusterTopologyBinding, or correct `topologyName`."
    ),
    Reason.LEVEL_MISSING: Help(
        "The topology has no level with the wanted node label, or no node has the label.",
        "Label the nodes, or correct the levels of the ClusterTopologyBinding.",
    ),
    Reason.REQUIRED_SPLIT: Help("Placed pods span several domains although one is required.", NOT_YET),
    Reason.QUOTA_EXCEEDED: Help(
        "A ResourceQuota of the namespace refuses an object.",
        "Raise the quota or ask for less; it is tried again after one to ten minutes.",
    ),
    Reason.OVER_LIMIT: Help("A queue is at its limit.", NOT_YET),
    Reason.BORROWING_BLOCKED: Help("A queue may not borrow more.", NOT_YET),
    Reason.NODE_SELECTOR_MISMATCH: Help(
        "No node may be used, most of them because of the node selector or node affinity.", "Correct the selector, or label nodes."
    ),
    Reason.TAINT_NOT_TOLERATED: Help("No node may be used, most of them because of taints.", "Add a toleration, or remove the taint."),
    Reason.AFFINITY_CONFLICT: Help(
        "The pods use required pod affinity, required anti-affinity on something else than the host name, or a spread constraint with "
        "`DoNotSchedule`. The binder refuses them.",
        "Remove it, or state what you need as a topology constraint.",
    ),
    Reason.VOLUME_BOUND: Help(
        "The pods use a PersistentVolumeClaim or an ephemeral volume. The binder refuses them.",
        "Use volumes that any node can mount, such as emptyDir, hostPath, NFS or CSI inline volumes.",
    ),
    Reason.CLAIM_UNALLOCATABLE: Help(
        "The pods use a ResourceClaim, which the binder refuses; or a ResourceClaimTemplate does not exist.",
        "Use a device plugin resource instead of the claim; create the template.",
    ),
    Reason.UNKNOWN_QUEUE: Help("No such queue.", NOT_YET),
    Reason.UNKNOWN_TOPOLOGY: Help("No such topology. `TopologyMissing` says so today.", NOT_YET),
    Reason.INVALID_SPEC: Help(
        "The object is wrong. The message names each field. What already runs stays as it is; nothing new is made.",
        "Correct the fields. `grovekeeper render` finds the same mistakes without a cluster.",
    ),
    Reason.NAME_TOO_LONG: Help("Generated names would be too long. `InvalidSpec` says so today.", NOT_YET),
    Reason.CONFLICT: Help(
        "Something else is in the way: a wanted name belongs to somebody else, a scaling group is not in its PodCliqueSet, "
        "pods use a host port, which the binder refuses, or pods of one gang name different schedulers.",
        "Rename or delete what is in the way; remove the host port; give all pods the same `schedulerName`.",
    ),
    Reason.NAMESPACE_TERMINATING: Help("The namespace is being deleted, so nothing can be made in it.", "Use another namespace."),
    Reason.FORBIDDEN: Help("The API server does not permit a write.", "Give the service account the missing permission."),
    Reason.IMAGE_PULL: Help("An image cannot be pulled.", NOT_YET),
    Reason.CRASH_LOOP: Help("A container crashes again and again.", NOT_YET),
    Reason.NOT_READY: Help(
        "A pod group has fewer ready pods than its minimum. The message counts them.", "Look at the named pods and their logs."
    ),
    Reason.STARTUP_TIMEOUT: Help("Pods do not become ready in time.", NOT_YET),
    Reason.NODE_LOST: Help("A node with pods of the gang is gone.", NOT_YET),
    Reason.STUCK_TERMINATING: Help("A pod is being deleted for too long.", NOT_YET),
    Reason.BIND_REJECTED: Help(
        "The API server refused to bind pods. The gang is tried again after 1 to 60 seconds, longer with each refusal.",
        "Read the message: a pod or node may be gone, or a permission missing.",
    ),
    Reason.BIND_UNKNOWN: Help(
        "The API server could not be reached to bind pods, or asked to wait. The message says when it is tried again.",
        "If it stays, look at the API server.",
    ),
    Reason.SEARCH_BUDGET: Help(
        "No placement was found within the bounds of the search. There may be one.",
        "It is tried again after every change of the cluster. Free whole nodes to make it easier.",
    ),
    Reason.SOLVER_TIMEOUT: Help("The solver ran out of time. `SearchBudget` says so today.", NOT_YET),
    Reason.SOLVER_FALLBACK: Help(
        "A gang could not be planned, or its plan failed the final check and was dropped. This is a defect.", "Report it with the message."
    ),
    Reason.PREEMPTING: Help("Pods of lower priority are being removed.", NOT_YET),
    Reason.CACHE_STALE: Help(
        "A pod belongs to the gang, but the PodGang does not list it yet.",
        "Usually over in a second. If it stays, look whether the controllers run.",
    ),
    Reason.NOT_LEADER: Help("The process does not hold the lease.", NOT_YET),
    Reason.PAUSED: Help("Work is paused.", NOT_YET),
    Reason.ADVISORY: Help("A constraint has no effect as it is written.", NOT_YET),
}
"""One entry per reason; docs/reference/reasons.md is made of it."""
