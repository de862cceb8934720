"""One tick of Planner from what was read to what is to be written. Source: planner.md §4.

The logic waits for nothing: `open` and `close` stand before and after the pipeline, which `tick` runs for plugins of this process,
`controller.LiveEngine` for all.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from controllers.planner.config.model import PlannerConfig
from controllers.planner.fpm import Fpm
from controllers.planner.models import bootstrap, describe, feed
from controllers.planner.pipeline import PipelineOutcome, Verdict, run_sync
from controllers.planner.plugins.builtin import LOAD_PREDICT, PREDICT_PENDING, THROUGHPUT_PROPOSE, FitElsewhere, register_builtins
from controllers.planner.plugins.records import Answer, Call, Context, Observations
from controllers.planner.plugins.registry import Registry
from controllers.planner.project import Projection, project
from controllers.planner.propose import DecisionReason
from controllers.planner.scaling import Scaling
from controllers.planner.ticks import TickScheduler
from controllers.planner.types import (
    Capabilities,
    FpmObservations,
    Role,
    ScheduledTick,
    TickDiagnostics,
    TickEffects,
    TickInput,
    TrafficObservation,
)

__all__ = ("Opened", "PlannerEngine", "TickResult")


class Opened(NamedTuple):
    """A tick that has begun, and what plugins see of it."""

    tick: ScheduledTick
    context: Context


@dataclass(frozen=True, slots=True)
class TickResult:
    """Effects, and how they came about. notes: warnings for the log."""

    effects: TickEffects
    outcome: PipelineOutcome
    projection: Projection
    notes: tuple[str, ...] = ()


class PlannerEngine:
    """Decides, and remembers what decisions need. Times are passed in; nothing is read or written."""

    def __init__(
        self, config: PlannerConfig, capabilities: Capabilities, monotonic_s: float, fit_elsewhere: FitElsewhere | None = None
    ) -> None:
        """ValueError for a predictor that there is not, and for settings of plugins that contradict each other."""
        self.scaling = Scaling.of(config, capabilities)
        self.registry = Registry(config.scheduling.scale_interval_seconds, config.plugin_registration)
        self._predict = register_builtins(self.registry, self.scaling, monotonic_s, fit_elsewhere)
        self._ticks = TickScheduler(config)
        self._notes: list[str] = describe(self.scaling.models, capabilities)
        # Of the forecast that is awaited: when its plugin was asked first, and when before that.
        self._asked_at: float | None = None
        self._asked_before: float | None = None

    @property
    def config(self) -> PlannerConfig:
        return self.scaling.config

    @property
    def capabilities(self) -> Capabilities:
        return self.scaling.capabilities

    def update_capabilities(self, capabilities: Capabilities) -> None:
        """Engines are other than they were; models are made anew where it matters to them."""
        self.scaling.update(self.config, capabilities)
        self._notes.extend(describe(self.scaling.models, capabilities))

    def change_config(self, config: PlannerConfig) -> None:
        """Effective from the next decision. What plugins were registered with, and predictors and models made for, stays."""
        self.scaling.update(config, self.capabilities)
        self._ticks.config = config

    def bootstrap(self, role: Role, fpms: Sequence[Fpm]) -> None:
        """Iterations measured before the first tick. Nothing to do with an easy target."""
        self._notes.extend(bootstrap(self.scaling.models, role, fpms))

    def warm(self, history: Sequence[TrafficObservation]) -> None:
        """Traffic of the past for the forecast, before the first tick. Nothing to do with an easy target."""
        if not self.config.is_easy:
            self._predict.warm_from_observations(history)

    def initial_tick(self, start_s: float, monotonic_s: float) -> ScheduledTick:
        """start_s: epoch or simulated time."""
        return self._ticks.initial_tick(start_s, monotonic_s, self.registry)

    def tick(self, tick: ScheduledTick, given: TickInput, monotonic_s: float, heard: list[tuple[Call, Answer]] | None = None) -> TickResult:
        """A whole tick, for plugins of this process that do not wait. heard: takes what plugins were asked and answered."""
        opened = self.open(tick, given, monotonic_s)
        outcome = run_sync(opened.context, self.registry, tick.at_monotonic_s, clock_s=monotonic_s, heard=heard)
        return self.close(opened, outcome)

    def open(self, tick: ScheduledTick, given: TickInput, monotonic_s: float) -> Opened:
        """Takes in what was read. Models learn before intervals are counted, and whether or not load scaling is on."""
        scaling = self.scaling
        scaling.begin(given.worker_counts)
        fpm = given.fpm_observations
        if tick.run_load_scaling and fpm is not None and not self.config.is_easy:
            scaling.notes.extend(feed(scaling.models, fpm))
        self._ticks.ran(tick, given.now_s, monotonic_s)
        observations = Observations(given.traffic, _unless_empty(fpm), given.worker_counts)
        context = Context(f"tick-{given.now_s}", f"d-{given.now_s}", observations)
        return Opened(tick, context)

    def close(self, opened: Opened, outcome: PipelineOutcome) -> TickResult:
        """Makes a decision of what plugins agreed on, and plans the next tick."""
        scaling = self.scaling
        if outcome.verdict is Verdict.APPLY:
            projection = project(
                outcome.targets, outcome.proposed, scaling.counts, self.config, self.capabilities, taken_back=scaling.taken_back
            )
        else:
            projection = Projection(None)
        self._keep_asking(opened.tick)
        notes = (*self._notes, *scaling.notes, *outcome.notes)
        self._notes = []
        effects = TickEffects(projection.decision, self._ticks.next_tick(self.registry), self._diagnostics(opened.tick, outcome))
        return TickResult(effects, outcome, projection, notes)

    def _keep_asking(self, tick: ScheduledTick) -> None:
        """While a forecast is awaited, the plugin that makes it stays due; once there, intervals count from when it was asked for."""
        plugin = self.registry.get(LOAD_PREDICT)
        if plugin is None:
            return
        if self._predict.is_waiting:
            if self._asked_at is None:
                self._asked_at = tick.at_monotonic_s
            plugin.last_call_at = self._asked_before
            return
        proposing = self.registry.get(THROUGHPUT_PROPOSE)
        if self._asked_at is not None:
            plugin.last_call_at = self._asked_at
            if proposing is not None and proposing.last_call_at == tick.at_monotonic_s:
                proposing.last_call_at = self._asked_at
        self._asked_at, self._asked_before = None, plugin.last_call_at

    def _diagnostics(self, tick: ScheduledTick, outcome: PipelineOutcome) -> TickDiagnostics:
        state = self.scaling.state
        fields: dict[str, Any] = {
            "throughput_lower_bound_prefill": state.lower_bound_prefill,
            "throughput_lower_bound_decode": state.lower_bound_decode,
            **self.scaling.changes,
        }
        predictions = outcome.predictions
        if predictions is not None:
            fields["predicted_num_req"] = predictions.predicted_num_req
            fields["predicted_isl"] = predictions.predicted_isl
            fields["predicted_osl"] = predictions.predicted_osl
            fields["predicted_kv_hit_rate"] = predictions.predicted_kv_hit_rate
        elif tick.run_throughput_scaling and "throughput_decision_reason" not in fields:
            told = (DecisionReason.PREDICT_FAILED, DecisionReason.NO_TRAFFIC_DATA, PREDICT_PENDING)
            fields["throughput_decision_reason"] = next((reason for reason in told if reason in outcome.reasons), None)
        if tick.run_load_scaling and not self.config.enable_load_scaling:
            fields["load_decision_reason"] = DecisionReason.DISABLED
        return TickDiagnostics(
            **fields,
            execute_action=outcome.verdict,
            short_circuit_reason=outcome.reason,
            audit_events=outcome.audit_events,
        )


def _unless_empty(fpm: FpmObservations | None) -> FpmObservations | None:
    return fpm if fpm is not None and (fpm.prefill or fpm.decode) else None
