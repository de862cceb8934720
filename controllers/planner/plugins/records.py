"""Plugins, what they are asked and what they answer. Source: planner.md §2, §5, §7–9.

Field names of what a plugin reads are those of plugin.proto, but for `WorkerCounts` and `FpmObservations`, see `context.resolve`.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple, TypeAlias

from controllers.planner.config.parts import HoldPolicy, PluginStage
from controllers.planner.merge import Kind, PluginResult, Target
from controllers.planner.plugins.breaker import Breaker
from controllers.planner.types import FpmObservations, TrafficObservation, WorkerCounts

__all__ = (
    "ACCEPT",
    "STAGES",
    "Answer",
    "Call",
    "Context",
    "Failure",
    "FailureKind",
    "HoldPolicy",
    "Metric",
    "MetricEvent",
    "Observations",
    "Plugin",
    "PluginStage",
    "PredictResponse",
    "Prediction",
    "Proposal",
    "Response",
    "StageRequest",
    "StageResponse",
)

STAGES: tuple[PluginStage, ...] = ("predict", "propose", "reconcile", "constrain")


@dataclass(frozen=True, slots=True)
class Observations:
    """What was read before the tick; None: not asked for, or unknown. `fpm` is None as well if neither role has any."""

    traffic: TrafficObservation | None = None
    fpm: FpmObservations | None = None
    workers: WorkerCounts | None = None


@dataclass(frozen=True, slots=True)
class Prediction:
    """Demand of the next window: requests, tokens, ratio 0–1, tokens per step. `source`: id of the plugin that spoke first."""

    predicted_num_req: float | None = None
    predicted_isl: float | None = None
    predicted_osl: float | None = None
    source: str = ""
    predicted_kv_hit_rate: float | None = None
    predicted_accept_length: float | None = None

    def filled_from(self, other: "Prediction") -> "Prediction":
        """This one, with what it does not know taken from the other."""
        return Prediction(
            _known(self.predicted_num_req, other.predicted_num_req),
            _known(self.predicted_isl, other.predicted_isl),
            _known(self.predicted_osl, other.predicted_osl),
            self.source or other.source,
            _known(self.predicted_kv_hit_rate, other.predicted_kv_hit_rate),
            _known(self.predicted_accept_length, other.predicted_accept_length),
        )


def _known(first: float | None, second: float | None) -> float | None:
    return second if first is None else first


@dataclass(frozen=True, slots=True)
class Proposal:
    """Targets that a stage agreed on. source: "merged" or a plugin id."""

    targets: tuple[Target, ...] = ()
    reason: str = ""
    source: str = ""


@dataclass(frozen=True, slots=True)
class Context:
    """What every plugin of a tick sees. `constrained` is never set in this version."""

    request_id: str = ""
    decision_id: str = ""
    observations: Observations | None = None
    predictions: Prediction | None = None
    proposal: Proposal | None = None
    constrained: Proposal | None = None

    # Not by dataclasses.replace, which is slow, and these are part of every tick.
    def predicting(self, predictions: Prediction) -> "Context":
        """The same with predictions."""
        return Context(self.request_id, self.decision_id, self.observations, predictions, self.proposal, self.constrained)

    def proposing(self, proposal: Proposal) -> "Context":
        """The same with a proposal."""
        return Context(self.request_id, self.decision_id, self.observations, self.predictions, proposal, self.constrained)


@dataclass(frozen=True, slots=True)
class StageRequest:
    """`proposals` is filled for RECONCILE only: all results of PROPOSE."""

    context: Context
    proposals: Sequence[PluginResult] = ()


@dataclass(frozen=True, slots=True)
class PredictResponse:
    """Answer of a PREDICT plugin. `final`: plugins of larger priority are not asked."""

    predictions: Prediction | None = None
    reason: str = ""
    final: bool = False


@dataclass(frozen=True, slots=True)
class StageResponse:
    """Answer of the other stages; kind None: nothing was set, an error of the plugin that counts as accept."""

    kind: Kind | None
    targets: Sequence[Target] = ()
    reason: str = ""
    final: bool = False


ACCEPT = StageResponse(Kind.ACCEPT)
Response: TypeAlias = PredictResponse | StageResponse


class FailureKind(StrEnum):
    """Why a call failed; all count the same for the circuit breaker."""

    TIMEOUT = "timeout"
    CONNECTION = "connection"
    UNKNOWN_METHOD = "unknown_method"
    SERIALIZATION = "serialization"
    CALL = "call"


@dataclass(frozen=True, slots=True)
class Failure:
    """A call without a response. `message` is for logs."""

    kind: FailureKind
    message: str


class Answer(NamedTuple):
    """What came of a call. `at_s`: when, on the clock of breakers (monotonic). `latency_s`: how long it took."""

    result: Response | Failure
    at_s: float
    latency_s: float = 0.0


@dataclass(slots=True)
class Plugin:
    """A registered plugin and what is remembered of it. Times are seconds of the monotonic clock.

    instance: the object to call if the plugin is in this process. held: its last override, if its policy is HOLD_LAST.
    """

    plugin_id: str
    stage: PluginStage
    priority: int
    endpoint: str
    registered_at: float
    interval_s: float = 0.0
    hold_policy: HoldPolicy = HoldPolicy.ACCEPT_WHEN_IDLE
    needs: tuple[str, ...] = ()
    requires: tuple[str, ...] = ()
    window_s: float = 0.0
    version: str = ""
    protocol_version: str = ""
    subject: str = ""
    is_builtin: bool = False
    instance: object = None
    enabled: bool = True
    last_call_at: float | None = None
    last_heartbeat_at: float | None = None
    evaluations_total: int = 0
    held: StageResponse | None = None
    held_at: float = 0.0
    breaker: Breaker = field(default_factory=Breaker)

    @property
    def in_process(self) -> bool:
        return self.endpoint.startswith("inproc://")


class Call(NamedTuple):
    """A plugin to ask. The method is named as the stage, `plugin.stage`."""

    plugin: Plugin
    request: StageRequest


class Metric(StrEnum):
    """Names of planner.md §22 without prefix. Labels of an event, in order: see there."""

    EVALUATIONS = "plugin_evaluations_total"
    HELD_OVER = "plugin_held_over_total"
    RECONCILE_CLAMPED = "reconcile_clamped_total"
    CONSTRAIN_CAPPED = "constrain_capped_total"
    REJECTED = "reject_short_circuited_total"
    SKIPPED = "tick_skipped_total"
    REQUIRES_UNSATISFIED = "tick_requires_unsatisfied_total"
    TICK_TIMEOUT = "tick_timeout_total"
    OVERRIDE_ACTIVE = "plugin_override_active"
    LAG = "tick_lag_seconds"
    LATENCY = "plugin_latency_seconds"


class MetricEvent(NamedTuple):
    """One increment, observation or value. OVERRIDE_ACTIVE: combinations that a tick does not name are 0."""

    metric: Metric
    labels: tuple[str, ...]
    value: float = 1.0
