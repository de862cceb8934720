"""Throughput scaling with an engine of known capacity: demand, floors, steps, lower bounds, and models that cannot tell."""

from dataclasses import replace
from typing import Any

import pytest

from controllers.planner.propose import Forecast, Models, ProposeState, propose_throughput
from controllers.planner.propose.throughput import stepped
from controllers.planner.types import Capabilities, Role
from tests.unit.planner.proposing import FACTS, LinearCore, config, counts, model, models, traffic

# 0.1 ms a prompt token: prompts of 1 000 tokens give 10 requests/s whatever the batch. 0.001 ms a KV token: a step with b requests of
# 1 050 tokens takes b × 1.05 ms, so 100 tokens each give 1/(100 × 1.05 ms) = 9.52 requests/s.
FORECAST = Forecast(num_req=1500.0, isl=1000.0, osl=100.0)
RPS = {"prefill": 10.0, "decode": 1000 / 105}
NOT_READY = LinearCore("insufficient_data")


class Unknown(LinearCore):
    """Cannot tell the time of anything."""

    def estimate_ms(self, ranks: Any) -> float | None:
        return None


def only_throughput(**fields: Any) -> Any:
    return config(**{"optimization_target": "sla", "enable_load_scaling": False, "enable_throughput_scaling": True, **fields})


def both(**fields: Any) -> Any:
    return only_throughput(enable_load_scaling=True, **fields)


def test_both_roles_get_what_the_demand_needs() -> None:
    answer = propose_throughput(traffic(only_throughput(), FORECAST, counts(1, 1)))
    assert answer.decision is not None
    assert (answer.decision.num_prefill, answer.decision.num_decode) == (3, 3)
    changes = answer.changes
    assert changes.get("engine_rps_prefill") == pytest.approx(RPS["prefill"])
    assert changes.get("engine_rps_decode") == pytest.approx(RPS["decode"])
    assert {name: value for name, value in changes.items() if "reason" in name} == dict.fromkeys(
        ("throughput_decision_reason", "throughput_decision_reason_prefill", "throughput_decision_reason_decode"), "scale"
    )
    assert (answer.state.lower_bound_prefill, answer.state.lower_bound_decode) == (1, 1)


def test_demand_is_per_second_of_the_window_that_was_observed() -> None:
    answer = propose_throughput(traffic(only_throughput(), FORECAST, counts(1, 1), duration_s=30.0))
    assert answer.decision is not None
    assert answer.decision.num_prefill == 5


@pytest.mark.parametrize("mode", ["disagg", "decode"])
def test_as_many_as_there_are_is_a_decision_too(mode: str) -> None:
    answer = propose_throughput(traffic(only_throughput(mode=mode), FORECAST, counts(3, 3)))
    assert answer.decision is not None
    assert answer.decision.num_decode == 3


@pytest.mark.parametrize("role", ["prefill", "decode"])
def test_one_role(role: Role) -> None:
    answer = propose_throughput(traffic(only_throughput(mode=role), FORECAST, counts(1, 1)))
    assert answer.decision is not None
    assert (answer.decision.of("prefill"), answer.decision.of("decode")) == ((3, None) if role == "prefill" else (None, 3))
    assert answer.changes.get("throughput_decision_reason") == "scale"
    assert f"throughput_decision_reason_{role}" not in answer.changes


def test_aggregated_engines_report_their_capacity_for_both_roles() -> None:
    answer = propose_throughput(traffic(only_throughput(mode="agg"), FORECAST, counts(None, 1)))
    assert answer.decision is not None
    rps = answer.changes.get("engine_rps_decode")
    assert rps is not None
    assert answer.changes.get("engine_rps_prefill") == rps
    assert answer.decision.num_decode == -(-25 // rps)
    narrow = Capabilities(None, replace(FACTS, max_num_batched_tokens=0))
    held = propose_throughput(traffic(only_throughput(mode="agg"), FORECAST, counts(None, 4), capabilities=narrow))
    assert held.decision is None
    assert held.changes.get("throughput_decision_reason") == "model_not_ready"


def test_hits_in_the_cache_help_prefill_and_accepted_drafts_help_decode() -> None:
    known = replace(FORECAST, kv_hit_rate=0.5, accept_length=2.0)
    answer = propose_throughput(traffic(only_throughput(), known, counts(1, 1)))
    assert answer.changes.get("engine_rps_prefill") == pytest.approx(2 * RPS["prefill"])
    assert answer.changes.get("engine_rps_decode") == pytest.approx(2 * RPS["decode"])
    assert (answer.state.kv_hit_rate, answer.state.accept_length) == (0.5, 2.0)
    assert answer.changes.get("predicted_kv_hit_rate") == 0.5


def test_what_is_not_known_does_not_overwrite_what_was() -> None:
    state = ProposeState(kv_hit_rate=0.4, accept_length=1.5)
    for rate, length in ((None, None), (float("nan"), float("inf"))):
        answer = propose_throughput(
            traffic(only_throughput(), replace(FORECAST, kv_hit_rate=rate, accept_length=length), counts(1, 1), state=state)
        )
        assert answer.state == state
        assert answer.decision is not None


def test_lower_bounds_where_load_scaling_decides() -> None:
    answer = propose_throughput(traffic(both(), FORECAST, counts(1, 1)))
    assert answer.decision is None
    assert (answer.state.lower_bound_prefill, answer.state.lower_bound_decode) == (3, 3)
    assert answer.changes.get("throughput_lower_bound_decode") == 3
    assert answer.changes.get("throughput_decision_reason") == "set_lower_bound"
    one = propose_throughput(traffic(both(mode="prefill"), FORECAST, counts(1)))
    assert (one.state.lower_bound_prefill, one.state.lower_bound_decode) == (3, 1)


def test_lower_bounds_do_not_know_the_budget() -> None:
    answer = propose_throughput(traffic(both(max_gpu_budget=2), FORECAST, counts(1, 1)))
    assert (answer.state.lower_bound_prefill, answer.state.lower_bound_decode) == (3, 3)


@pytest.mark.parametrize("fields", [{"num_req": None}, {"isl": None}, {"osl": None}])
def test_without_a_forecast_nothing_is_said(fields: dict[str, Any]) -> None:
    answer = propose_throughput(traffic(only_throughput(), replace(FORECAST, **fields), counts(1, 1)))
    assert (answer.decision, answer.changes) == (None, {})


@pytest.mark.parametrize("duration_s", [0.0, -60.0, float("nan"), float("inf")])
def test_a_window_that_is_none(duration_s: float) -> None:
    answer = propose_throughput(traffic(only_throughput(), FORECAST, counts(1, 1), duration_s=duration_s))
    assert answer.decision is None
    assert answer.changes.get("throughput_decision_reason") == "no_traffic_data"
    assert answer.changes.get("predicted_isl") == 1000.0


@pytest.mark.parametrize("field", ["num_req", "isl", "osl"])
@pytest.mark.parametrize("bad", [float("nan"), float("inf"), float("-inf")])
def test_a_forecast_that_is_no_number(field: str, bad: float) -> None:
    answer = propose_throughput(traffic(both(), replace(FORECAST, **{field: bad}), counts(1, 1)))
    assert answer.decision is None
    assert answer.changes.get("throughput_decision_reason") == "prediction_invalid"
    assert answer.state.lower_bound_prefill == 1


def test_negative_demand_is_the_minimum() -> None:
    """A forecast of the Kalman filter may be below zero: planner.md §27 11."""
    answer = propose_throughput(traffic(only_throughput(prefill_min_endpoint=2), replace(FORECAST, num_req=-500.0), counts(4, 4)))
    assert answer.decision is not None
    assert (answer.decision.num_prefill, answer.decision.num_decode) == (2, 1)


def half_known(settings: Any) -> Models:
    return Models(model("prefill"), model("decode", Unknown()))


def test_one_model_that_cannot_tell_holds_both_roles() -> None:
    settings = only_throughput(prefill_min_endpoint=3)
    answer = propose_throughput(traffic(settings, FORECAST, counts(5, 2), models=half_known(settings)))
    assert answer.decision is None
    assert answer.changes.get("throughput_decision_reason") == "model_not_ready"
    assert answer.changes.get("throughput_decision_reason_prefill") == "partner_not_ready"
    assert answer.changes.get("throughput_decision_reason_decode") == "model_not_ready"
    assert "engine_rps_decode" not in answer.changes
    assert answer.changes.get("engine_rps_prefill") == pytest.approx(RPS["prefill"])
    short = propose_throughput(traffic(settings, FORECAST, counts(1, 2), models=half_known(settings)))
    assert short.decision is not None
    assert (short.decision.num_prefill, short.decision.num_decode) == (3, 2)
    assert short.changes.get("throughput_decision_reason") == "model_not_ready"


def test_lower_bounds_of_a_model_that_cannot_tell_are_what_there_is() -> None:
    answer = propose_throughput(traffic(both(), FORECAST, counts(5, 2), models=half_known(both())))
    assert (answer.state.lower_bound_prefill, answer.state.lower_bound_decode) == (5, 2)
    assert answer.changes.get("throughput_decision_reason") == "model_not_ready"


@pytest.mark.parametrize("mode", ["prefill", "agg"])
def test_one_model_that_is_missing(mode: str) -> None:
    inputs = traffic(only_throughput(mode=mode), FORECAST, counts(4, 4), models=Models())
    answer = propose_throughput(inputs)
    assert answer.decision is None
    assert answer.changes.get("throughput_decision_reason") == "model_not_ready"
    short = propose_throughput(replace(inputs, config=only_throughput(mode=mode, min_endpoint=6)))
    assert short.decision is not None
    assert short.decision.of(inputs.config.roles[0]) == 6


@pytest.mark.parametrize("mode", ["disagg", "decode"])
def test_without_knowing_how_many_there_are_nothing_can_be_held(mode: str) -> None:
    settings = both(mode=mode)
    answer = propose_throughput(traffic(settings, FORECAST, counts(), models=models(settings, Unknown())))
    assert answer.changes.get("throughput_decision_reason") == "worker_count_unknown"
    assert answer.state == ProposeState()


def test_a_target_out_of_reach_is_used_with_a_warning() -> None:
    answer = propose_throughput(traffic(only_throughput(ttft_ms=50), FORECAST, counts(1, 1)))
    assert answer.decision is not None
    assert answer.decision.num_prefill == 3
    assert len(answer.notes) == 1
    assert "prefill" in answer.notes[0]


def test_ceiling_of_the_budget() -> None:
    answer = propose_throughput(traffic(only_throughput(max_gpu_budget=4), FORECAST, counts(1, 1)))
    assert answer.decision is not None
    assert (answer.decision.num_prefill, answer.decision.num_decode) == (2, 2)
    one = propose_throughput(traffic(only_throughput(mode="decode", max_gpu_budget=2), FORECAST, counts(None, 1)))
    assert one.decision is not None
    assert one.decision.num_decode == 2


# max_throughput_scaling_replicas: the step, not the number.

MUCH = replace(FORECAST, num_req=60_000.0)


@pytest.mark.parametrize(
    ("wanted", "ready", "most", "expected"),
    [
        (30, 2, 8, 10),
        (3, 20, 8, 12),
        (5, 4, 8, 5),
        (100, 40, 8, 48),
        (30, 2, None, 30),
        (30, None, 8, 30),
        (-5, 3, 8, 0),
        (-5, 3, None, -5),
    ],
)
def test_step(wanted: int, ready: int | None, most: int | None, expected: int) -> None:
    assert stepped(wanted, ready, most) == expected


def test_the_step_is_limited_for_each_role_and_for_lower_bounds() -> None:
    answer = propose_throughput(traffic(only_throughput(max_throughput_scaling_replicas=8), MUCH, counts(20, 1)))
    assert answer.decision is not None
    assert (answer.decision.num_prefill, answer.decision.num_decode) == (28, 9)
    bounds = propose_throughput(traffic(both(max_throughput_scaling_replicas=8), MUCH, counts(20, 1))).state
    assert (bounds.lower_bound_prefill, bounds.lower_bound_decode) == (28, 9)
    unlimited = propose_throughput(traffic(only_throughput(), MUCH, counts(20, 1))).decision
    assert unlimited is not None
    assert unlimited.num_prefill == 100


def test_a_second_call_in_a_tick_does_not_step_again() -> None:
    inputs = traffic(both(max_throughput_scaling_replicas=8), MUCH, counts(1, 1))
    once = propose_throughput(inputs)
    again = propose_throughput(replace(inputs, state=once.state))
    assert (again.changes, again.state) == (once.changes, once.state)


def test_minimum_and_budget_come_after_the_step() -> None:
    settings = only_throughput(max_throughput_scaling_replicas=2, prefill_min_endpoint=6, max_gpu_budget=8)
    answer = propose_throughput(traffic(settings, MUCH, counts(1, 12)))
    assert answer.decision is not None
    assert (answer.decision.num_prefill, answer.decision.num_decode) == (6, 2)
