"""The closed vocabulary of reasons that users see in conditions, events, metrics and the CLI.

Union of the reason lists in the user-facing specification (waiting, capacity, constraint, configuration, runtime, control) and of the
scheduler's verdicts. Values are append-only: dashboards and alerts depend on them.
"""

from enum import StrEnum

__all__ = ("Reason",)


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
