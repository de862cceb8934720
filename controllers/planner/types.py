"""What Planner reads and what it decides: the data types of planner.md §2."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Literal, TypeAlias

from controllers.planner.fpm import FpmMap

__all__ = (
    "Capabilities",
    "FpmObservations",
    "Mode",
    "Role",
    "RoleCapabilities",
    "ScalingDecision",
    "ScheduledTick",
    "TickDiagnostics",
    "TickEffects",
    "TickInput",
    "TrafficObservation",
    "WorkerCounts",
)

Role: TypeAlias = Literal["prefill", "decode"]


class Mode(StrEnum):
    """Which roles a Planner is responsible for; an aggregated engine counts as decode."""

    DISAGG = "disagg"
    PREFILL = "prefill"
    DECODE = "decode"
    AGG = "agg"

    @property
    def roles(self) -> tuple[Role, ...]:
        """In the order in which decisions are made."""
        match self:
            case Mode.DISAGG:
                return ("prefill", "decode")
            case Mode.PREFILL:
                return ("prefill",)
            case _:
                return ("decode",)


@dataclass(frozen=True, slots=True)
class ScheduledTick:
    """One run of the pipeline. `at_s` is epoch or simulated time, `at_monotonic_s` the clock that intervals are measured with."""

    at_s: float
    at_monotonic_s: float
    run_load_scaling: bool
    run_throughput_scaling: bool
    need_traffic_metrics: bool
    use_full_traffic_metrics: bool
    traffic_metrics_duration_s: float
    need_worker_states: bool
    need_worker_fpm: bool


@dataclass(frozen=True, slots=True)
class TrafficObservation:
    """Traffic of a window of `duration_s` seconds: number of requests, mean lengths in tokens, ratio 0–1, tokens per step of a decode."""

    duration_s: float
    num_req: float
    isl: float
    osl: float
    kv_hit_rate: float | None = None
    accept_length: float | None = None


@dataclass(frozen=True, slots=True)
class WorkerCounts:
    """Engines that are ready and that there should be; None is unknown."""

    ready_num_prefill: int | None = None
    ready_num_decode: int | None = None
    expected_num_prefill: int | None = None
    expected_num_decode: int | None = None
    prefill_scaling_in_progress: bool = False
    decode_scaling_in_progress: bool = False

    def ready(self, role: Role) -> int | None:
        return self.ready_num_prefill if role == "prefill" else self.ready_num_decode

    def expected(self, role: Role) -> int | None:
        return self.expected_num_prefill if role == "prefill" else self.expected_num_decode

    def is_scaling(self, role: Role) -> bool:
        """The flag alone; whether expected and ready differ is for the caller."""
        return self.prefill_scaling_in_progress if role == "prefill" else self.decode_scaling_in_progress


@dataclass(frozen=True, slots=True)
class FpmObservations:
    """The latest metrics of each role; None: not read."""

    prefill: FpmMap | None = None
    decode: FpmMap | None = None

    def of(self, role: Role) -> FpmMap | None:
        return self.prefill if role == "prefill" else self.decode


@dataclass(frozen=True, slots=True)
class TickInput:
    """All that a tick may read."""

    now_s: float
    traffic: TrafficObservation | None = None
    worker_counts: WorkerCounts | None = None
    fpm_observations: FpmObservations | None = None


@dataclass(frozen=True, slots=True)
class ScalingDecision:
    """Replicas; None is no opinion."""

    num_prefill: int | None = None
    num_decode: int | None = None

    def of(self, role: Role) -> int | None:
        return self.num_prefill if role == "prefill" else self.num_decode


@dataclass(frozen=True, slots=True)
class RoleCapabilities:
    """What is known of the engines of one role; None is unknown. The cost of budgets is `gpu_cost`."""

    num_gpu: int | None = None
    gpu_cost_per_replica: int | None = None
    max_num_batched_tokens: int | None = None
    max_num_seqs: int | None = None
    context_length: int | None = None
    max_kv_tokens: int | None = None
    kv_cache_block_size: int | None = None
    speculative_nextn: int | None = None
    power_watts_per_replica: int | None = None

    @property
    def gpu_cost(self) -> int | None:
        """GPUs that one replica takes."""
        return self.num_gpu if self.gpu_cost_per_replica is None else self.gpu_cost_per_replica


@dataclass(frozen=True, slots=True)
class Capabilities:
    """By role; an aggregated engine is described under decode."""

    prefill: RoleCapabilities | None = None
    decode: RoleCapabilities | None = None

    def of(self, role: Role) -> RoleCapabilities | None:
        return self.prefill if role == "prefill" else self.decode


@dataclass(frozen=True, slots=True)
class TickDiagnostics:
    """Why a tick decided as it did. Times in milliseconds, rates in requests per second. Field names are those of recorded output.

    The lower bounds hold until the next throughput decision; all else is of this tick alone.
    """

    estimated_ttft_ms: float | None = None
    estimated_itl_ms: float | None = None
    predicted_num_req: float | None = None
    predicted_isl: float | None = None
    predicted_osl: float | None = None
    predicted_kv_hit_rate: float | None = None
    engine_rps_prefill: float | None = None
    engine_rps_decode: float | None = None
    throughput_lower_bound_prefill: int = 1
    throughput_lower_bound_decode: int = 1
    load_decision_reason: str | None = None
    load_decision_reason_prefill: str | None = None
    load_decision_reason_decode: str | None = None
    throughput_decision_reason: str | None = None
    throughput_decision_reason_prefill: str | None = None
    throughput_decision_reason_decode: str | None = None
    plugin_overrides: Sequence[str] = ()
    reconcile_reasons: dict[str, str] = field(default_factory=dict[str, str])
    held_over_plugins: Sequence[str] = ()
    execute_action: str = ""
    short_circuit_reason: str = ""
    audit_events: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class TickEffects:
    """What a tick wants: replicas to write (None: leave all as it is), when to look again, and why."""

    scale_to: ScalingDecision | None
    next_tick: ScheduledTick
    diagnostics: TickDiagnostics
