"""One run of the stages PREDICT, PROPOSE, RECONCILE, CONSTRAIN and the verdict of EXECUTE. Source: planner.md §5.

The logic does no calls of its own: `run` yields what is to be asked and is sent what came of it. `run_sync` drives it for plugins of this
process, `plugins.runner.run_async` for all.
"""

from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TypeAlias

from controllers.planner.merge import MERGED, Kind, MergeOutcome, PluginResult, Target, merge
from controllers.planner.plugins.inprocess import call_now
from controllers.planner.plugins.records import (
    Answer,
    Call,
    Context,
    Failure,
    HoldPolicy,
    Metric,
    MetricEvent,
    Plugin,
    PluginStage,
    Prediction,
    PredictResponse,
    Proposal,
    StageRequest,
    StageResponse,
)
from controllers.planner.plugins.registry import Registry
from controllers.planner.plugins.sanity import checked
from controllers.planner.plugins.schedule import active_set
from controllers.planner.types import WorkerCounts

__all__ = ("PipelineOutcome", "Run", "TickTimeout", "Verdict", "baseline_of", "run", "run_sync")


class Verdict(StrEnum):
    """What EXECUTE is to do: write the proposal, or nothing and why."""

    APPLY = "apply"
    SHORT_CIRCUIT = "skip_short_circuit"
    NO_TARGETS = "skip_no_targets"
    TICK_TIMEOUT = "skip_tick_timeout"


@dataclass(frozen=True, slots=True)
class PipelineOutcome:
    """What a tick's plugins agreed on.

    targets: what CONSTRAIN left of the proposal; empty unless verdict is APPLY. proposed: components that overrides of PROPOSE named, with
    replicas. reason: of a verdict that skips. reasons: of PREDICT, in order. predictions None: nobody made any. events: for metrics.
    notes: warnings for the log.
    """

    verdict: Verdict
    targets: tuple[Target, ...] = ()
    proposed: frozenset[str] = frozenset()
    reason: str = ""
    reasons: tuple[str, ...] = ()
    audit_events: tuple[str, ...] = ()
    predictions: Prediction | None = None
    events: tuple[MetricEvent, ...] = ()
    notes: tuple[str, ...] = ()


class TickTimeout(Exception):
    """Thrown into `run` when the tick took longer than `limit_s`."""

    def __init__(self, limit_s: float) -> None:
        super().__init__(f"tick_max_duration_seconds={limit_s:.2f}")


Run: TypeAlias = Generator[Sequence[Call], Sequence[Answer], PipelineOutcome]
"""Yields calls that may run at the same time and is sent their answers in the same order."""


@dataclass(slots=True)
class _Tick:
    """What a run knows and gathers on its way. clock_s: the latest time of the monotonic clock that it was told."""

    registry: Registry
    now_s: float
    clock_s: float
    context: Context
    events: list[MetricEvent] = field(default_factory=list[MetricEvent])
    reasons: list[str] = field(default_factory=list[str])
    audit_events: list[str] = field(default_factory=list[str])
    notes: list[str] = field(default_factory=list[str])
    proposed: frozenset[str] = frozenset()

    def outcome(self, verdict: Verdict, *, targets: tuple[Target, ...] = (), reason: str = "") -> PipelineOutcome:
        return PipelineOutcome(
            verdict,
            targets,
            self.proposed,
            reason,
            tuple(self.reasons),
            tuple(self.audit_events),
            self.context.predictions,
            tuple(self.events),
            tuple(self.notes),
        )


def baseline_of(counts: WorkerCounts | None) -> dict[str, int]:
    """Replicas where nobody sets them: the ready ones of each role that is known."""
    if counts is None:
        return {}
    ready = {"prefill": counts.ready_num_prefill, "decode": counts.ready_num_decode}
    return {role: count for role, count in ready.items() if count is not None}


def run(context: Context, registry: Registry, now_s: float, *, clock_s: float | None = None) -> Run:
    """Both times are seconds of the monotonic clock. State of plugins in `registry` moves on with every answer, also if the run is cut.

    now_s: for when the tick was planned; intervals count from it. clock_s: when it runs, for breakers; else the same.
    """
    baseline = baseline_of(None if context.observations is None else context.observations.workers)
    tick = _Tick(registry, now_s, now_s if clock_s is None else clock_s, context)
    try:
        return (yield from _stages(tick, baseline))
    except TickTimeout as cut:
        timeout = Metric.TICK_TIMEOUT
        events = (*tick.events, MetricEvent(timeout, ()))
        return PipelineOutcome(Verdict.TICK_TIMEOUT, reason=str(cut), audit_events=(timeout.value,), events=events, notes=tuple(tick.notes))


def run_sync(
    context: Context,
    registry: Registry,
    now_s: float,
    *,
    clock_s: float | None = None,
    heard: list[tuple[Call, Answer]] | None = None,
) -> PipelineOutcome:
    """As `run`, for plugins of this process that do not wait: called one after another. Others fail, as a closed connection does.

    heard: takes every call and its answer, in order.
    """
    at_s = now_s if clock_s is None else clock_s
    steps = run(context, registry, now_s, clock_s=at_s)
    try:
        calls = next(steps)
        while True:
            answers = [Answer(call_now(call), at_s) for call in calls]
            if heard is not None:
                heard.extend(zip(calls, answers, strict=True))
            calls = steps.send(answers)
    except StopIteration as done:
        outcome: PipelineOutcome = done.value
        return outcome


def _stages(tick: _Tick, baseline: Mapping[str, int]) -> Run:
    yield from _predict(tick)
    results, merged = yield from _stage(tick, "propose", StageRequest(tick.context), baseline)
    tick.proposed = frozenset(
        target.component for result in results if result.kind is Kind.OVERRIDE for target in result.targets if target.replicas is not None
    )
    if merged.short_circuited:
        return tick.outcome(Verdict.SHORT_CIRCUIT, reason=merged.short_circuit_reason)
    _propose(tick, merged)
    _, merged = yield from _stage(tick, "reconcile", StageRequest(tick.context, tuple(results)), {**baseline, **merged.replicas()})
    _count_clamps(tick, Metric.RECONCILE_CLAMPED, merged)
    if merged.short_circuited:
        return tick.outcome(Verdict.SHORT_CIRCUIT, reason=merged.short_circuit_reason)
    _propose(tick, merged)
    _, merged = yield from _stage(tick, "constrain", StageRequest(tick.context), {**baseline, **merged.replicas()})
    _count_clamps(tick, Metric.CONSTRAIN_CAPPED, merged)
    if merged.short_circuited:
        return tick.outcome(Verdict.SHORT_CIRCUIT, reason=merged.short_circuit_reason)
    if not merged.targets:
        tick.audit_events.append("execute_skipped_no_targets")
        return tick.outcome(Verdict.NO_TARGETS)
    return tick.outcome(Verdict.APPLY, targets=merged.targets)


def _propose(tick: _Tick, merged: MergeOutcome) -> None:
    tick.context = tick.context.proposing(Proposal(merged.targets, source=merged.source))


def _count_clamps(tick: _Tick, metric: Metric, merged: MergeOutcome) -> None:
    tick.events.extend(MetricEvent(metric, (clamp.component, clamp.plugin_id)) for clamp in merged.clamped)


def _predict(tick: _Tick) -> Generator[Sequence[Call], Sequence[Answer], None]:
    """One after another, the smallest priority first; what is known is not overwritten."""
    due = active_set(tick.registry.plugins, "predict", tick.context, tick.now_s, tick.clock_s, tick.events).due
    chain = sorted(due, key=lambda plugin: plugin.priority)
    for plugin in chain:
        (answer,) = yield (Call(plugin, StageRequest(tick.context)),)
        response = _settle(tick, plugin, answer)
        if not isinstance(response, PredictResponse):
            continue
        _evaluated(tick, plugin, "accept")
        if response.reason:
            tick.reasons.append(response.reason)
        if response.predictions is not None:
            known = tick.context.predictions
            merged = response.predictions if known is None else known.filled_from(response.predictions)
            tick.context = tick.context.predicting(merged)
        if response.final:
            if plugin.priority != chain[0].priority:
                warning = f"chain_augment_non_lowest_final: plugin_id={plugin.plugin_id} priority={plugin.priority}"
                tick.audit_events.append(warning)
                tick.notes.append(warning)
            return


def _stage(
    tick: _Tick, stage: PluginStage, request: StageRequest, baseline: Mapping[str, int]
) -> Generator[Sequence[Call], Sequence[Answer], tuple[list[PluginResult], MergeOutcome]]:
    """What the stage's plugins answered, what stands in for those not asked, and what they come to together."""
    active = active_set(tick.registry.plugins, stage, tick.context, tick.now_s, tick.clock_s, tick.events)
    answers = (yield [Call(plugin, request) for plugin in active.due]) if active.due else ()
    results: list[PluginResult] = []
    for plugin, answer in zip(active.due, answers, strict=True):
        response = _settle(tick, plugin, answer)
        if isinstance(response, StageResponse) and (result := _result(tick, plugin, response)) is not None:
            results.append(result)
    for result in active.inherited:
        tick.events.append(MetricEvent(Metric.HELD_OVER, (result.plugin_id, stage)))
        tick.events.append(MetricEvent(Metric.EVALUATIONS, (result.plugin_id, stage, "held_over")))
        _active(tick, stage, result)
    results.extend(active.inherited)
    merged = merge(results, baseline, set_allowed=stage != "constrain") if results else _unopposed(baseline)
    if merged.short_circuited:
        rejecting = next(result for result in results if result.kind is Kind.REJECT)
        tick.events.append(MetricEvent(Metric.REJECTED, (rejecting.plugin_id,)))
    tick.notes.extend(f"a SET target of {component} was dropped: {stage} may not set" for component in merged.set_dropped)
    return results, merged


def _unopposed(baseline: Mapping[str, int]) -> MergeOutcome:
    """What `merge` makes of no results, which is what most stages have."""
    return MergeOutcome(tuple(Target(component, replicas) for component, replicas in baseline.items()), source=MERGED)


def _settle(tick: _Tick, plugin: Plugin, answer: Answer) -> PredictResponse | StageResponse | None:
    """Counts a call for breaker and anchor. None: it failed."""
    tick.clock_s = max(tick.clock_s, answer.at_s)
    result = answer.result if isinstance(answer.result, Failure) else checked(plugin.stage, answer.result)
    if isinstance(result, Failure):
        tick.notes.append(f"plugin {plugin.plugin_id} failed in {plugin.stage}: {result.kind.value}: {result.message}")
        _evaluated(tick, plugin, "error")
        if plugin.breaker.failed(answer.at_s):
            plugin.held = None
            tick.notes.append(f"plugin {plugin.plugin_id} is not asked for now: its circuit opened")
        return None
    plugin.breaker.succeeded()
    plugin.last_call_at = tick.now_s
    plugin.evaluations_total += 1
    tick.events.append(MetricEvent(Metric.LATENCY, (plugin.plugin_id, plugin.stage), answer.latency_s))
    return result


def _result(tick: _Tick, plugin: Plugin, response: StageResponse) -> PluginResult | None:
    """For the merge; None if nothing was set."""
    if response.kind is None:
        tick.notes.append(f"plugin {plugin.plugin_id} set no result in {plugin.stage}; that counts as accept")
        _evaluated(tick, plugin, "error")
        return None
    is_final = response.final and plugin.stage != "constrain"
    result = PluginResult(plugin.plugin_id, plugin.priority, response.kind, tuple(response.targets), response.reason, is_final)
    if response.kind is not Kind.OVERRIDE:
        _evaluated(tick, plugin, response.kind.value)
        return result
    _evaluated(tick, plugin, response.targets[0].type.lower() if response.targets else "set")
    _active(tick, plugin.stage, result)
    if plugin.hold_policy is HoldPolicy.HOLD_LAST:
        plugin.held, plugin.held_at = response, tick.now_s
    return result


def _evaluated(tick: _Tick, plugin: Plugin, label: str) -> None:
    tick.events.append(MetricEvent(Metric.EVALUATIONS, (plugin.plugin_id, plugin.stage, label)))


def _active(tick: _Tick, stage: PluginStage, result: PluginResult) -> None:
    kinds = dict.fromkeys(target.type.lower() for target in result.targets)
    tick.events.extend(MetricEvent(Metric.OVERRIDE_ACTIVE, (result.plugin_id, stage, kind)) for kind in kinds)
