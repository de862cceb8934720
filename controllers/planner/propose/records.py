"""What scaling decisions are made from, and what they consist of."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from sys import float_info
from typing import TypedDict

from controllers.planner.config.model import PlannerConfig
from controllers.planner.fpm import FpmMap
from controllers.planner.perfmodel import PerformanceModel
from controllers.planner.propose.reasons import DecisionReason
from controllers.planner.types import Capabilities, FpmObservations, Role, ScalingDecision, WorkerCounts

__all__ = (
    "Changes",
    "Forecast",
    "LoadInputs",
    "Models",
    "Opinion",
    "ProposeState",
    "Proposed",
    "ThroughputInputs",
    "decision_of",
    "finite",
    "is_finite",
    "load_reason",
    "load_reasons",
)


def is_finite(value: float) -> bool:
    """Also for integers of any size, which `math.isfinite` may fail on."""
    return -float_info.max <= value <= float_info.max


def finite(value: float | None) -> float | None:
    """The value if it is one."""
    return value if value is not None and is_finite(value) else None


@dataclass(frozen=True, slots=True)
class ProposeState:
    """What outlives a tick.

    lower_bound_*: fewest replicas of the last throughput decision, which load scaling keeps to where both loops are on.
    kv_hit_rate: share of prompt tokens found in cache when last known, 0–1. accept_length: tokens per decode step, at least 1.
    """

    lower_bound_prefill: int = 1
    lower_bound_decode: int = 1
    kv_hit_rate: float | None = None
    accept_length: float = 1.0

    def lower_bound(self, role: Role) -> int:
        return self.lower_bound_prefill if role == "prefill" else self.lower_bound_decode

    def noted(self, kv_hit_rate: float | None, accept_length: float | None) -> "ProposeState":
        """With newer values; those that are unknown or no finite numbers leave the last ones. Clamping is for the caller."""
        rate, length = finite(kv_hit_rate), finite(accept_length)
        return replace(
            self,
            kv_hit_rate=self.kv_hit_rate if rate is None else rate,
            accept_length=self.accept_length if length is None else length,
        )


@dataclass(frozen=True, slots=True)
class Models:
    """Performance models by role; None with the easy targets. The model of aggregated engines is under decode."""

    prefill: PerformanceModel | None = None
    decode: PerformanceModel | None = None

    def of(self, role: Role) -> PerformanceModel | None:
        return self.prefill if role == "prefill" else self.decode


@dataclass(frozen=True, slots=True)
class LoadInputs:
    """All that load scaling reads. kv_hit_rate, accept_length: of this tick's prediction; None: those of the state."""

    config: PlannerConfig
    capabilities: Capabilities
    counts: WorkerCounts
    fpm: FpmObservations
    models: Models = field(default_factory=Models)
    state: ProposeState = field(default_factory=ProposeState)
    kv_hit_rate: float | None = None
    accept_length: float | None = None

    def fpm_of(self, role: Role) -> FpmMap:
        return self.fpm.of(role) or {}


@dataclass(frozen=True, slots=True)
class Forecast:
    """What PREDICT agreed on for the next window: requests per window, mean lengths in tokens; None is no opinion."""

    num_req: float | None = None
    isl: float | None = None
    osl: float | None = None
    kv_hit_rate: float | None = None
    accept_length: float | None = None


@dataclass(frozen=True, slots=True)
class ThroughputInputs:
    """All that throughput scaling reads. `duration_s`: of the observed window, which `forecast.num_req` belongs to."""

    config: PlannerConfig
    capabilities: Capabilities
    counts: WorkerCounts
    forecast: Forecast
    duration_s: float
    models: Models = field(default_factory=Models)
    state: ProposeState = field(default_factory=ProposeState)


def decision_of(role: Role, replicas: int) -> ScalingDecision:
    """Of one role; no opinion of the other."""
    return ScalingDecision(replicas, None) if role == "prefill" else ScalingDecision(None, replicas)


class Changes(TypedDict, total=False):
    """Fields of TickDiagnostics that a decision sets."""

    estimated_ttft_ms: float
    estimated_itl_ms: float
    predicted_num_req: float
    predicted_isl: float
    predicted_osl: float
    predicted_kv_hit_rate: float | None
    engine_rps_prefill: float
    engine_rps_decode: float
    throughput_lower_bound_prefill: int
    throughput_lower_bound_decode: int
    load_decision_reason: DecisionReason
    load_decision_reason_prefill: DecisionReason
    load_decision_reason_decode: DecisionReason
    throughput_decision_reason: DecisionReason
    throughput_decision_reason_prefill: DecisionReason
    throughput_decision_reason_decode: DecisionReason


def load_reason(reason: DecisionReason) -> Changes:
    """Of a Planner with one role: only the whole has a reason."""
    return {"load_decision_reason": reason}


def load_reasons(whole: DecisionReason, prefill: DecisionReason, decode: DecisionReason) -> Changes:
    return {"load_decision_reason": whole, "load_decision_reason_prefill": prefill, "load_decision_reason_decode": decode}


@dataclass(frozen=True, slots=True)
class Proposed:
    """One answer. decision None: accept whatever others want. notes: warnings for the log.

    taken_back: roles whose unstarted replicas are given up. The decision then may equal the ready count of a role of which more are
    expected; it is meant, not an echo, so it must be written although nothing that is ready changes.
    """

    decision: ScalingDecision | None
    changes: Changes
    state: ProposeState
    notes: Sequence[str] = ()
    taken_back: tuple[Role, ...] = ()


@dataclass(frozen=True, slots=True)
class Opinion:
    """What the load of one role asks for. replicas None: as they are, for `reason` (None: nothing was looked at).

    estimate_ms: the longest TTFT (prefill) or ITL (decode) that was estimated.
    """

    replicas: int | None
    reason: DecisionReason | None = None
    estimate_ms: float | None = None
