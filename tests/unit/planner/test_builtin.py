"""Built-in plugins: which there are, what they answer, and that the throughput decision is computed once where two ask for it."""

from typing import Any

import pytest

from controllers.planner import scaling
from controllers.planner.engine import PlannerEngine
from controllers.planner.merge import Kind
from controllers.planner.plugins.builtin import LOAD_PREDICT, THROUGHPUT_PROPOSE, LoadPredict
from controllers.planner.plugins.records import Context, Observations, PredictResponse, StageRequest, StageResponse
from controllers.planner.predict.traffic import TrafficState
from controllers.planner.ticks import LOAD_PROPOSE
from controllers.planner.types import Capabilities, TrafficObservation
from tests.unit.planner.proposing import config
from tests.unit.planner.replaying import MEASURED, SLA, decodes, idle, line, prefills, records, scaled, started, ticks

TRAFFIC = {"num_req": 600, "isl": 1000, "osl": 100}
LOAD_ONLY = {**SLA, "enable_load_scaling": True, "enable_throughput_scaling": False}
MIXED_LOOPS = {**SLA, "enable_load_scaling": True, "load_predictor": "constant"}
THROUGHPUT = {**SLA, "load_predictor": "constant"}


def engine(settings: dict[str, Any]) -> PlannerEngine:
    return PlannerEngine(config(**settings), Capabilities(), 7.0)


@pytest.mark.parametrize(
    ("settings", "wanted"),
    [
        ({}, [(LOAD_PROPOSE, "propose", 10, 5.0, ("observations.fpm", "observations.workers"), (), 0.0)]),
        (
            LOAD_ONLY,
            [(LOAD_PROPOSE, "propose", 10, 10.0, ("observations.fpm", "observations.workers", "observations.traffic"), (), 10.0)],
        ),
        (
            MIXED_LOOPS,
            [
                (LOAD_PREDICT, "predict", 0, 60.0, ("observations.traffic",), (), 60.0),
                (THROUGHPUT_PROPOSE, "propose", 20, 60.0, ("observations.traffic", "predictions"), ("predictions",), 60.0),
                (LOAD_PROPOSE, "propose", 10, 10.0, ("observations.fpm", "observations.workers"), (), 0.0),
            ],
        ),
        (
            THROUGHPUT,
            [
                (LOAD_PREDICT, "predict", 0, 60.0, ("observations.traffic",), (), 60.0),
                (THROUGHPUT_PROPOSE, "propose", 20, 60.0, ("observations.traffic", "predictions"), ("predictions",), 60.0),
            ],
        ),
    ],
    ids=["easy", "load", "both", "throughput"],
)
def test_which_plugins_there_are(settings: dict[str, Any], wanted: list[tuple[Any, ...]]) -> None:
    found = engine(settings).registry.plugins
    assert [(p.plugin_id, p.stage, p.priority, p.interval_s, p.needs, p.requires, p.window_s) for p in found] == wanted
    assert all(p.is_builtin and p.hold_policy.name == "ACCEPT_WHEN_IDLE" for p in found)


def test_an_unknown_predictor_is_refused() -> None:
    with pytest.raises(ValueError, match="load_predictor: there is no 'oracle'"):
        engine({**THROUGHPUT, "load_predictor": "oracle"})


def _request(traffic: TrafficObservation | None) -> StageRequest:
    return StageRequest(Context(observations=Observations(traffic)))


def test_the_forecast_plugin_answers() -> None:
    settings = config(**THROUGHPUT, speculative_nextn=2)
    plugin = LoadPredict(TrafficState(settings, Capabilities()))
    assert plugin.predict(_request(None)) == PredictResponse(reason="no_traffic_data")
    answer = plugin.predict(_request(TrafficObservation(60.0, 5.0, 100.0, 10.0, 0.25, 9.0)))
    assert isinstance(answer, PredictResponse)
    assert answer.predictions is not None
    assert (answer.reason, answer.final, answer.predictions.source) == ("predicted", False, LOAD_PREDICT)
    found = answer.predictions
    assert (found.predicted_num_req, found.predicted_isl, found.predicted_osl) == (5.0, 100.0, 10.0)
    assert (found.predicted_kv_hit_rate, found.predicted_accept_length) == (0.25, 3.0)


def answers(settings: dict[str, Any], lines: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """What each plugin answered in PROPOSE, by tick."""
    played = ticks(started(settings, bootstrap_fpms=MEASURED), lines)
    return [{call.plugin.plugin_id: answer.result for call, answer in tick.heard if call.plugin.stage == "propose"} for tick in played]


def test_throughput_alone_sets_both_roles() -> None:
    found = answers(THROUGHPUT, [line(1, 1, traffic=TRAFFIC)] * 6)
    assert found[:5] == [{}] * 5
    answer = found[5][THROUGHPUT_PROPOSE]
    assert isinstance(answer, StageResponse)
    assert (answer.kind, answer.reason) == (Kind.OVERRIDE, "throughput_scale")
    assert [target.component for target in answer.targets] == ["prefill", "decode"]


def test_with_load_scaling_throughput_only_accepts() -> None:
    found = answers(MIXED_LOOPS, [idle(1, 1, traffic=TRAFFIC)] * 6)[5]
    assert isinstance(found[THROUGHPUT_PROPOSE], StageResponse)
    assert found[THROUGHPUT_PROPOSE].kind is Kind.ACCEPT


def test_load_sets_both_roles_even_if_only_one_changes() -> None:
    busy = line(1, 1, {"prefill": prefills(20_000), "decode": decodes(70_000)})
    answer = answers({}, [busy])[0][LOAD_PROPOSE]
    assert isinstance(answer, StageResponse)
    assert [(target.component, target.replicas) for target in answer.targets] == [("prefill", 2), ("decode", 1)]
    assert answer.reason == "load_scale"


def test_throughput_is_decided_once_a_tick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Both plugins ask for it with the same inputs, and a second decision says the same."""
    asked: list[Any] = []
    real = scaling.propose_throughput

    def counted(inputs: Any) -> Any:
        asked.append(inputs)
        first, second = real(inputs), real(inputs)
        assert first == second
        return first

    monkeypatch.setattr(scaling, "propose_throughput", counted)
    records(MIXED_LOOPS, [idle(1, 1, traffic=TRAFFIC)] * 12, bootstrap_fpms=MEASURED)
    assert len(asked) == 2


def predicting(*script: dict[str, Any], **fields: Any) -> dict[str, Any]:
    return {"plugin_id": "seer", "plugin_type": "predict", "priority": -1, "script": list(script), **fields}


FORESEEN = {"kind": "predict", "num_req": 6000, "isl": 2000, "osl": 50}


def test_a_plugin_may_foresee_what_the_predictor_does_not() -> None:
    """The strongest speaks first; what it does not know is filled in."""
    seer = predicting({**FORESEEN, "isl": None, "kv_hit_rate": 0.9, "reason": "told"})
    found = records(THROUGHPUT, [line(1, 1, traffic=TRAFFIC)] * 6, bootstrap_fpms=MEASURED, scripted_plugins=[seer])[5]["diagnostics"]
    assert (found["predicted_num_req"], found["predicted_isl"], found["predicted_osl"]) == (6000, 1000, 50)
    assert found["predicted_kv_hit_rate"] == 0.9


def test_a_final_forecast_ends_the_chain_with_a_warning_if_it_is_not_the_strongest() -> None:
    late = predicting({**FORESEEN, "final": True}, priority=3)
    later = predicting({"kind": "predict", "kv_hit_rate": 0.5}, plugin_id="later", priority=4)
    lines = [line(1, 1, traffic=TRAFFIC)] * 6
    found = records(THROUGHPUT, lines, bootstrap_fpms=MEASURED, scripted_plugins=[late, later])
    assert found[0]["diagnostics"]["audit_events"] == []
    assert found[5]["diagnostics"]["audit_events"] == ["chain_augment_non_lowest_final: plugin_id=seer priority=3"]
    assert (found[5]["diagnostics"]["predicted_num_req"], found[5]["diagnostics"]["predicted_kv_hit_rate"]) == (600, None)


def test_a_foreseeing_plugin_that_reads_traffic_lets_throughput_decide_on_every_load_tick() -> None:
    seer = predicting(FORESEEN, needs=["observations.traffic"])
    found = records(MIXED_LOOPS, [idle(1, 1, traffic=TRAFFIC)] * 2, bootstrap_fpms=MEASURED, scripted_plugins=[seer])
    assert [record["tick"]["use_full_traffic_metrics"] for record in found] == [True, True]
    assert [record["diagnostics"]["throughput_decision_reason"] for record in found] == ["set_lower_bound"] * 2
    assert found[0]["diagnostics"]["throughput_lower_bound_prefill"] > 1
    assert found[0]["diagnostics"]["predicted_num_req"] == 6000


def test_without_load_scaling_a_plugin_alone_decides() -> None:
    setter = {
        "plugin_id": "setter",
        "plugin_type": "propose",
        "priority": 1,
        "script": [{"kind": "override", "targets": [{"component": "decode", "replicas": 4}]}, {"kind": "reject", "reason": "freeze"}],
    }
    found = records(THROUGHPUT, [line(1, 1)] * 2, scripted_plugins=[setter])
    assert scaled(found[0]) == (1, 4)
    assert scaled(found[1]) is None
    assert found[1]["diagnostics"]["short_circuit_reason"] == "setter: freeze"
    assert found[1]["diagnostics"]["execute_action"] == "skip_short_circuit"
