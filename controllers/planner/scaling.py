"""What the built-in plugins share: configuration, models, forecasts, and what they have decided in this tick."""

from dataclasses import dataclass, field, replace

from controllers.planner.config.model import PlannerConfig
from controllers.planner.models import models_of
from controllers.planner.plugins.records import Context, Observations, Prediction
from controllers.planner.predict.traffic import TrafficState
from controllers.planner.propose import (
    Changes,
    Forecast,
    LoadInputs,
    Models,
    Proposed,
    ProposeState,
    ThroughputInputs,
    propose_load,
    propose_throughput,
)
from controllers.planner.types import Capabilities, FpmObservations, Role, ScalingDecision, TrafficObservation, WorkerCounts

__all__ = ("Scaling",)

_NOTHING = FpmObservations()
_UNREAD = Observations()


@dataclass(slots=True)
class Scaling:
    """State of both scaling loops. `state` and `traffic` outlive a tick; `changes`, `notes` and `taken_back` are of the running one."""

    config: PlannerConfig
    capabilities: Capabilities
    traffic: TrafficState
    models: Models
    counts: WorkerCounts = field(default_factory=WorkerCounts)
    state: ProposeState = field(default_factory=ProposeState)
    changes: Changes = field(default_factory=lambda: Changes())
    notes: list[str] = field(default_factory=list[str])
    taken_back: tuple[Role, ...] = ()
    _known: tuple[Prediction, float, ScalingDecision | None] | None = None

    @classmethod
    def of(cls, config: PlannerConfig, capabilities: Capabilities) -> "Scaling":
        """ValueError for a predictor that there is not."""
        return cls(config, capabilities, TrafficState(config, capabilities), models_of(config))

    def begin(self, counts: WorkerCounts | None) -> None:
        """A tick; nothing has been decided in it yet."""
        self.counts = WorkerCounts() if counts is None else counts
        self.changes, self.notes, self.taken_back, self._known = Changes(), [], (), None

    def update(self, config: PlannerConfig, capabilities: Capabilities) -> None:
        """Other settings or other engines, from now on."""
        self.config, self.capabilities = config, capabilities
        self.traffic.update(config, capabilities)
        self.state = replace(self.state, accept_length=self.traffic.clamped(self.state.accept_length))

    def throughput(self, context: Context) -> ScalingDecision | None:
        """The throughput decision. Both proposing plugins ask on the same tick; it is computed for the first and told to the second."""
        traffic, predictions = (context.observations or _UNREAD).traffic, context.predictions
        if traffic is None or predictions is None:
            return None
        if self._known is not None and self._known[:2] == (predictions, traffic.duration_s):
            return self._known[2]
        forecast = Forecast(
            predictions.predicted_num_req,
            predictions.predicted_isl,
            predictions.predicted_osl,
            predictions.predicted_kv_hit_rate,
            predictions.predicted_accept_length,
        )
        inputs = ThroughputInputs(self.config, self.capabilities, self.counts, forecast, traffic.duration_s, self.models, self.state)
        decision = self._taken(propose_throughput(inputs))
        self._known = predictions, traffic.duration_s, decision
        return decision

    def load(self, context: Context) -> ScalingDecision | None:
        """The load decision, above the lower bounds of a throughput decision that is due on this tick too."""
        observed = context.observations or _UNREAD
        if self.config.enable_throughput_scaling:
            self.throughput(context)
        elif observed.traffic is not None and not self.config.is_easy:
            self._note_runtime(observed.traffic)
        return self._taken(propose_load(self.load_inputs(context)))

    def load_inputs(self, context: Context) -> LoadInputs:
        """What a load decision reads now."""
        observed, predictions = context.observations or _UNREAD, context.predictions
        return LoadInputs(
            self.config,
            self.capabilities,
            self.counts,
            observed.fpm or _NOTHING,
            self.models,
            self.state,
            None if predictions is None else predictions.predicted_kv_hit_rate,
            None if predictions is None else predictions.predicted_accept_length,
        )

    def _note_runtime(self, traffic: TrafficObservation) -> None:
        self.traffic.observe_runtime(traffic)
        self.state = self.state.noted(self.traffic.kv_hit_rate, self.traffic.accept_length)

    def _taken(self, proposed: Proposed) -> ScalingDecision | None:
        self.changes |= proposed.changes
        self.notes.extend(proposed.notes)
        self.state = proposed.state
        self.taken_back = proposed.taken_back
        return proposed.decision
