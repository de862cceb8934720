"""Stages, their merge, and the verdict."""

# What plugins of no type answer is part of this.
# pyright: reportArgumentType=false

from typing import Any

import pytest

from controllers.planner.merge import Kind, PluginResult, Target, TargetType, merge
from controllers.planner.pipeline import PipelineOutcome, TickTimeout, Verdict, _unopposed, baseline_of, run, run_sync
from controllers.planner.plugins.records import (
    ACCEPT,
    Answer,
    Context,
    Failure,
    FailureKind,
    HoldPolicy,
    Metric,
    Prediction,
    PredictResponse,
    StageResponse,
)
from controllers.planner.plugins.registry import Registry
from controllers.planner.types import WorkerCounts
from tests.calls import counting_calls
from tests.unit.planner.planner_plugins import EMPTY, REJECT, Scripted, context, override, predicted, registration, registry

AT_LEAST, AT_MOST = TargetType.AT_LEAST, TargetType.AT_MOST


def replicas(outcome: PipelineOutcome) -> dict[str, int | None]:
    return {target.component: target.replicas for target in outcome.targets}


def counted(outcome: PipelineOutcome, metric: Metric) -> list[tuple[str, ...]]:
    return [event.labels for event in outcome.events if event.metric is metric]


def proposed(plugin: Scripted) -> tuple[Target, ...]:
    """What it was shown of the proposal when first asked."""
    proposal = plugin.requests[0].context.proposal
    assert proposal is not None
    return proposal.targets


def with_plugins(*plugins: tuple[str, Any, int, object], **options: Any) -> Registry:
    made = registry()
    for plugin_id, stage, priority, instance in plugins:
        made.register_internal(plugin_id, stage, priority, instance, 0.0, **options)
    return made


def test_baseline_is_what_is_ready_and_known() -> None:
    assert baseline_of(WorkerCounts(ready_num_decode=0, expected_num_prefill=4)) == {"decode": 0}
    assert baseline_of(None) == {}


def test_without_plugins_the_baseline_is_applied() -> None:
    outcome = run_sync(context(), registry(), 5.0)
    assert (outcome.verdict, replicas(outcome), outcome.proposed) == (Verdict.APPLY, {"prefill": 2, "decode": 3}, frozenset())


@pytest.mark.parametrize("nothing", [Context(), context(None), context(WorkerCounts())])
def test_without_counts_and_plugins_there_are_no_targets(nothing: Context) -> None:
    outcome = run_sync(nothing, registry(), 5.0)
    assert (outcome.verdict, outcome.audit_events, outcome.reason) == (Verdict.NO_TARGETS, ("execute_skipped_no_targets",), "")


def test_predictions_are_filled_in_order_of_priority() -> None:
    late, early = Scripted(predicted(9.0, 9.0, 9.0, 9.0, 9.0, source="late", reason="b")), Scripted(predicted(1.0, source="", reason="a"))
    outcome = run_sync(context(), with_plugins(("late", "predict", 7, late), ("early", "predict", 1, early)), 5.0)
    assert outcome.predictions == Prediction(1.0, 9.0, 9.0, "late", 9.0, 9.0)
    assert outcome.reasons == ("a", "b")
    assert early.requests[0].context.predictions is None
    assert late.requests[0].context.predictions == Prediction(1.0)


def test_a_prediction_of_nothing_is_one() -> None:
    outcome = run_sync(context(), with_plugins(("p", "predict", 0, Scripted(PredictResponse(Prediction())))), 5.0)
    assert outcome.predictions == Prediction()


def test_equal_priorities_keep_the_order_of_registration() -> None:
    plugins = [(name, "predict", 3, Scripted(predicted(reason=name))) for name in "bac"]
    assert run_sync(context(), with_plugins(*plugins), 5.0).reasons == ("b", "a", "c")


@pytest.mark.parametrize(("priority", "warned"), [(0, False), (1, True)])
def test_a_final_prediction_ends_the_chain(priority: int, *, warned: bool) -> None:
    last = Scripted(predicted(5.0))
    first = Scripted(PredictResponse(reason="first"))
    plugins = [("second", "predict", priority, Scripted(predicted(4.0, final=True))), ("last", "predict", 9, last)]
    outcome = run_sync(context(), with_plugins(("first", "predict", 0, first), *plugins), 5.0)
    assert last.requests == []
    assert outcome.predictions == Prediction(4.0)
    text = f"chain_augment_non_lowest_final: plugin_id=second priority={priority}"
    assert outcome.audit_events == ((text,) if warned else ())


def test_a_failing_prediction_is_as_good_as_none() -> None:
    made = with_plugins(("bad", "predict", 0, Scripted(ValueError("x"))), ("good", "predict", 1, Scripted(predicted(4.0))))
    outcome = run_sync(context(), made, 5.0)
    assert outcome.predictions == Prediction(4.0)
    assert made.plugins[0].last_call_at is None
    assert made.plugins[0].breaker.failures == 1
    assert made.plugins[1].last_call_at == 5.0
    assert counted(outcome, Metric.EVALUATIONS) == [("bad", "predict", "error"), ("good", "predict", "accept")]
    assert outcome.notes == ("plugin bad failed in predict: call: ValueError: x",)


def test_predictions_and_proposals_reach_later_stages() -> None:
    propose, reconcile, constrain = Scripted(override(("decode", 6))), Scripted(override(("decode", 7))), Scripted(ACCEPT)
    plugins = [("q", "predict", 0, Scripted(predicted(1.0))), ("p", "propose", 4, propose)]
    made = with_plugins(*plugins, ("r", "reconcile", 0, reconcile), ("c", "constrain", 0, constrain))
    outcome = run_sync(context(), made, 5.0)
    assert replicas(outcome) == {"decode": 7, "prefill": 2}
    assert propose.requests[0].context.predictions == Prediction(1.0)
    assert propose.requests[0].context.proposal is None
    assert reconcile.requests[0].proposals == (PluginResult("p", 4, Kind.OVERRIDE, (Target("decode", 6),)),)
    assert proposed(reconcile) == (Target("decode", 6), Target("prefill", 2))
    assert proposed(constrain) == (Target("decode", 7), Target("prefill", 2))
    assert constrain.requests[0].proposals == ()


def test_constrain_builds_on_the_baseline_and_reconcile_only() -> None:
    # A final answer of RECONCILE without replicas drops what PROPOSE said.
    none = Scripted(override(("decode", None), final=True))
    made = with_plugins(("p", "propose", 0, Scripted(override(("decode", 9)))), ("r", "reconcile", 0, none))
    assert replicas(run_sync(context(), made, 5.0)) == {"prefill": 2, "decode": 3}


def test_constrain_may_bound_but_not_set_and_is_never_final() -> None:
    bound = Scripted(override(("decode", 4, AT_MOST), ("prefill", 9), final=True))
    floor = Scripted(override(("decode", 1, AT_LEAST)))
    made = with_plugins(("p", "propose", 0, Scripted(override(("decode", 6)))), ("c", "constrain", 0, bound), ("f", "constrain", 9, floor))
    outcome = run_sync(context(), made, 5.0)
    assert replicas(outcome) == {"decode": 4, "prefill": 2}
    assert counted(outcome, Metric.CONSTRAIN_CAPPED) == [("decode", "c")]
    assert outcome.notes == ("a SET target of prefill was dropped: constrain may not set",)


@pytest.mark.parametrize("stage", ["propose", "reconcile", "constrain"])
def test_a_reject_skips(stage: str) -> None:
    made = with_plugins(("ok", stage, 0, Scripted(override(("decode", 9, AT_MOST)))), ("no", stage, 9, Scripted(REJECT)))
    outcome = run_sync(context(), made, 5.0)
    assert (outcome.verdict, outcome.reason, outcome.targets) == (Verdict.SHORT_CIRCUIT, "no: no", ())
    assert counted(outcome, Metric.REJECTED) == [("no",)]


def test_proposed_are_components_with_replicas_before_merging() -> None:
    plugins = [("a", "propose", 0, Scripted(override(("decode", None), ("prefill", 0)))), ("b", "propose", 0, Scripted(override(("x", 1))))]
    assert run_sync(context(), with_plugins(*plugins), 5.0).proposed == {"prefill", "x"}


def test_a_result_that_was_not_set_is_an_error_but_no_failure() -> None:
    made = with_plugins(("p", "propose", 0, Scripted(EMPTY)))
    outcome = run_sync(context(), made, 5.0)
    assert counted(outcome, Metric.EVALUATIONS) == [("p", "propose", "error")]
    assert (made.plugins[0].breaker.failures, made.plugins[0].last_call_at) == (0, 5.0)
    assert outcome.notes == ("plugin p set no result in propose; that counts as accept",)


@pytest.mark.parametrize(
    ("response", "label"),
    [
        (ACCEPT, "accept"),
        (override(("decode", 4)), "set"),
        (override(("decode", 4, AT_MOST), ("prefill", 1)), "at_most"),
        (override(("decode", 4, AT_LEAST)), "at_least"),
        (override(), "set"),
        (REJECT, "reject"),
    ],
)
def test_evaluations_are_counted_by_the_kind_of_answer(response: StageResponse, label: str) -> None:
    outcome = run_sync(context(), with_plugins(("p", "propose", 0, Scripted(response))), 5.0)
    assert counted(outcome, Metric.EVALUATIONS) == [("p", "propose", label)]


def test_the_last_override_is_held_between_calls_even_after_an_accept() -> None:
    plugin = Scripted(override(("decode", 6), final=True), ACCEPT)
    made = with_plugins(("p", "propose", 8, plugin), interval_s=10.0, hold_policy=HoldPolicy.HOLD_LAST)
    seen = {now: replicas(run_sync(context(), made, now))["decode"] for now in (5.0, 10.0, 15.0, 20.0, 25.0)}
    # 5: not due, nothing held. 10: called. 15: held. 20: called, accepts. 25: still the override of 10.
    assert seen == {5.0: 3, 10.0: 6, 15.0: 6, 20.0: 3, 25.0: 6}
    assert len(plugin.requests) == 2


def test_held_results_are_not_final_and_come_last_with_the_priority_of_now() -> None:
    made = registry()
    held = made.register_internal(
        "held", "propose", 8, Scripted(override(("decode", 6), final=True)), 0.0, interval_s=10.0, hold_policy=HoldPolicy.HOLD_LAST
    )
    made.register_internal("asked", "propose", 5, Scripted(ACCEPT, override(("decode", 9))), 0.0)
    reconcile = Scripted(ACCEPT)
    made.register_internal("r", "reconcile", 0, reconcile, 0.0)
    assert replicas(run_sync(context(), made, 10.0))["decode"] == 6
    held.priority = 4
    outcome = run_sync(context(), made, 15.0)
    assert replicas(outcome)["decode"] == 6
    results = [(result.plugin_id, result.priority, result.final) for result in reconcile.requests[1].proposals]
    assert results == [("asked", 5, False), ("held", 4, False)]
    assert counted(outcome, Metric.HELD_OVER) == [("held", "propose")]
    assert ("held", "propose", "held_over") in counted(outcome, Metric.EVALUATIONS)
    assert ("held", "propose", "set") in counted(outcome, Metric.OVERRIDE_ACTIVE)


def test_nothing_is_held_of_a_plugin_that_accepts_when_idle() -> None:
    made = with_plugins(("p", "propose", 8, Scripted(override(("decode", 6)))), interval_s=10.0)
    assert replicas(run_sync(context(), made, 10.0))["decode"] == 6
    outcome = run_sync(context(), made, 15.0)
    assert replicas(outcome)["decode"] == 3
    assert counted(outcome, Metric.SKIPPED) == [("p",)]


def test_a_failure_leaves_the_anchor_and_five_open_the_circuit_and_end_holding() -> None:
    plugin = Scripted(override(("decode", 6)), ValueError("out of order"))
    made = with_plugins(("p", "propose", 8, plugin), interval_s=10.0, hold_policy=HoldPolicy.HOLD_LAST)
    run_sync(context(), made, 10.0)
    # Due again on every tick from 20 on.
    outcomes = [run_sync(context(), made, now) for now in (15.0, 20.0, 25.0, 30.0, 35.0, 40.0, 45.0, 69.9)]
    assert [replicas(outcome)["decode"] for outcome in outcomes] == [6, 3, 3, 3, 3, 3, 3, 3]
    assert len(plugin.requests) == 6
    assert made.plugins[0].held is None
    plugin.script = [override(("decode", 7))]
    assert replicas(run_sync(context(), made, 70.0))["decode"] == 7
    assert made.plugins[0].breaker.failures == 0


def test_a_missing_field_keeps_a_plugin_from_being_asked_without_moving_its_anchor() -> None:
    plugin = Scripted(override(("decode", 6)))
    held = {"hold_policy": HoldPolicy.HOLD_LAST, "interval_s": 5.0, "requires": ("observations.workers", "predictions")}
    made = with_plugins(("p", "propose", 8, plugin), **held)
    outcome = run_sync(context(), made, 5.0)
    assert counted(outcome, Metric.REQUIRES_UNSATISFIED) == [("p", "predictions")]
    assert (plugin.requests, made.plugins[0].last_call_at) == ([], None)
    made.register_internal("q", "predict", 0, Scripted(predicted(1.0), PredictResponse()), 0.0)
    assert replicas(run_sync(context(), made, 6.0))["decode"] == 6
    # Held, but due and unsatisfied: nothing stands in.
    assert replicas(run_sync(context(), made, 11.0))["decode"] == 3


def test_lag_is_how_late_a_call_is() -> None:
    made = with_plugins(("p", "propose", 8, Scripted(ACCEPT)), ("q", "predict", 8, Scripted(predicted())), interval_s=10.0)
    first = [event.value for event in run_sync(context(), made, 12.0).events if event.metric is Metric.LAG]
    second = [event.value for event in run_sync(context(), made, 25.0).events if event.metric is Metric.LAG]
    assert (first, second) == ([0.0, 0.0], [3.0, 3.0])


def test_a_cut_run_keeps_what_moved_and_says_why() -> None:
    made = with_plugins(("q", "predict", 0, Scripted(None)), ("p", "propose", 0, Scripted(None)))
    steps = run(context(), made, 5.0)
    assert [call.plugin.plugin_id for call in next(steps)] == ["q"]
    assert [call.plugin.plugin_id for call in steps.send([Answer(predicted(1.0, reason="x"), 5.0)])] == ["p"]
    with pytest.raises(StopIteration) as done:
        steps.throw(TickTimeout(2.5))
    outcome: PipelineOutcome = done.value.value
    assert (outcome.verdict, outcome.reason) == (Verdict.TICK_TIMEOUT, "tick_max_duration_seconds=2.50")
    assert (outcome.audit_events, outcome.predictions, outcome.reasons) == (("tick_timeout_total",), None, ())
    assert [plugin.last_call_at for plugin in made.plugins] == [5.0, None]


def test_plugins_of_a_stage_are_asked_at_once_and_answers_go_by_order() -> None:
    made = with_plugins(("a", "propose", 0, None), ("b", "propose", 0, None))
    steps = run(context(), made, 5.0, clock_s=100.0)
    assert [call.plugin.plugin_id for call in next(steps)] == ["a", "b"]
    with pytest.raises(StopIteration) as done:
        steps.send([Answer(override(("decode", 8)), 103.0, 3.0), Answer(Failure(FailureKind.TIMEOUT, "late"), 104.0, 4.0)])
    outcome: PipelineOutcome = done.value.value
    assert replicas(outcome)["decode"] == 8
    assert [(event.labels, event.value) for event in outcome.events if event.metric is Metric.LATENCY] == [(("a", "propose"), 3.0)]


def test_run_sync_does_not_reach_other_processes() -> None:
    made = registry()
    assert made.register(registration(), 0.0).accepted
    outcome = run_sync(context(), made, 5.0)
    assert outcome.verdict is Verdict.APPLY
    assert "connection" in outcome.notes[0]


NONSENSE = [
    None,
    "accept",
    PredictResponse(),
    StageResponse("override"),
    StageResponse(Kind.OVERRIDE, None),
    StageResponse(Kind.OVERRIDE, "ab"),
    StageResponse(Kind.OVERRIDE, ({"component": "decode"},)),
    StageResponse(Kind.REJECT, reason=None),
    override(("decode", float("nan"))),
    override(("decode", 4.0)),
    override(("decode", True)),
    override(("decode", "4")),
    override(("decode", 2**31)),
    override(("decode", -(2**31) - 1)),
    override((None, 4)),
    override(("decode", 4, "SET")),
    SystemError("x"),
    RecursionError("x"),
]


@pytest.mark.parametrize("answer", NONSENSE, ids=repr)
def test_nonsense_is_a_failed_call(answer: object) -> None:
    made = with_plugins(("p", "propose", 0, Scripted(answer)))
    outcome = run_sync(context(), made, 5.0)
    assert (outcome.verdict, replicas(outcome)) == (Verdict.APPLY, {"prefill": 2, "decode": 3})
    assert made.plugins[0].breaker.failures == 1
    assert "plugin p failed in propose" in outcome.notes[0]


@pytest.mark.parametrize(
    "answer",
    [
        ACCEPT,
        predicted(float("nan")),
        predicted(1.0, float("inf")),
        predicted("1"),
        PredictResponse({"predicted_isl": 1.0}),
        PredictResponse(Prediction(source=b"x")),
        PredictResponse(reason=7),
    ],
    ids=repr,
)
def test_nonsense_is_no_prediction(answer: object) -> None:
    made = with_plugins(("p", "predict", 0, Scripted(answer)))
    outcome = run_sync(context(), made, 5.0)
    assert (outcome.predictions, outcome.reasons, made.plugins[0].breaker.failures) == (None, (), 1)


def test_negative_replicas_end_at_zero_and_unknown_components_are_passed_on() -> None:
    outcome = run_sync(context(), with_plugins(("p", "propose", 0, Scripted(override(("decode", -5), ("encode", 2**31 - 1))))), 5.0)
    assert replicas(outcome) == {"decode": 0, "encode": 2**31 - 1, "prefill": 2}


def test_coroutines_are_run_unless_they_wait() -> None:
    class Ready:
        async def propose(self, _request: object) -> StageResponse:
            return override(("decode", 8))

    class Late:
        async def propose(self, _request: object) -> StageResponse:
            await Never()
            return ACCEPT

    class Never:
        def __await__(self):
            yield

    made = with_plugins(("ready", "propose", 0, Ready()), ("late", "propose", 1, Late()), ("none", "propose", 2, object()))
    outcome = run_sync(context(), made, 5.0)
    assert replicas(outcome)["decode"] == 8
    assert [plugin.breaker.failures for plugin in made.plugins] == [0, 1, 1]
    assert "unknown_method" in outcome.notes[1]


def test_no_results_are_what_merging_none_is() -> None:
    baseline = {"decode": 0, "prefill": 7}
    for stage_allows in (True, False):
        assert _unopposed(baseline) == merge([], baseline, set_allowed=stage_allows)


def test_a_tick_costs_little() -> None:
    answers = predicted(1.0, 2.0, 3.0, reason="predicted"), override(("prefill", 3), ("decode", 4))
    made = with_plugins(
        *(("q", "predict", 0, Scripted(answers[0])), ("a", "propose", 1, Scripted(answers[1])), ("b", "propose", 2, Scripted(ACCEPT)))
    )
    seen = context()

    run_sync(seen, made, 0.0)
    with counting_calls() as calls:
        run_sync(seen, made, 5.0)
    assert calls.count < 500
