"""A tick as a whole: when what is read, what outlives a tick, floors outside of loops, changes while running."""

import json
from typing import Any

import pytest

from controllers.planner.replay.case import parse_line
from tests.unit.planner.replaying import BOTH, ENGINE, MEASURED, MIXED, SLA, decodes, idle, line, prefills, records, scaled, started, ticks

TRAFFIC = {"num_req": 600, "isl": 1000, "osl": 100}
MIXED_LOOPS = {**SLA, "enable_load_scaling": True, "load_predictor": "constant"}
THROUGHPUT = {**SLA, "load_predictor": "constant"}


def flags(record: dict[str, Any]) -> tuple[bool, bool]:
    return record["tick"]["run_load_scaling"], record["tick"]["run_throughput_scaling"]


@pytest.mark.parametrize(
    ("load_s", "throughput_s", "base_s", "loops"),
    [
        (5, 10, 5, [(True, False), (True, True), (True, False), (True, True)]),
        (10, 15, 5, [(False, False), (True, False), (False, True), (True, False), (False, False), (True, True)]),
        (3, 7, 1, [(False, False), (False, False), (True, False), (False, False), (False, False), (True, False), (False, True)]),
        (4, 6, 2, [(False, False), (True, False), (False, True), (True, False), (False, False), (True, True)]),
    ],
)
def test_loops_run_on_multiples_of_their_interval(load_s: int, throughput_s: int, base_s: int, loops: list[tuple[bool, bool]]) -> None:
    config = {**MIXED_LOOPS, "load_adjustment_interval_seconds": load_s, "throughput_adjustment_interval_seconds": throughput_s}
    found = records(config, [line(1, 1)] * len(loops))
    assert [flags(record) for record in found] == loops
    assert [record["at_s"] for record in found] == [base_s * (i + 1) for i in range(len(loops))]
    assert [record["next_at_s"] for record in found] == [base_s * (i + 2) for i in range(len(loops))]


@pytest.mark.parametrize(
    ("config", "index", "wanted"),
    [
        ({}, 0, (False, False, 0.0, True)),
        ({**SLA, "enable_throughput_scaling": False, "enable_load_scaling": True}, 0, (True, False, 10.0, True)),
        (THROUGHPUT, 0, (False, False, 0.0, True)),
        (THROUGHPUT, 5, (True, True, 60.0, True)),
        (MIXED_LOOPS, 0, (False, False, 0.0, True)),
        (MIXED_LOOPS, 5, (True, True, 60.0, True)),
        (
            {**MIXED_LOOPS, "load_adjustment_interval_seconds": 20, "scheduling": {"scale_interval_seconds": 10}},
            0,
            (False, False, 0.0, False),
        ),
    ],
)
def test_what_a_tick_asks_for(config: dict[str, Any], index: int, wanted: tuple[bool, bool, float, bool]) -> None:
    tick = records(config, [line(1, 1)] * 6)[index]["tick"]
    names = ("need_traffic_metrics", "use_full_traffic_metrics", "traffic_metrics_duration_s", "need_worker_fpm")
    assert tuple(tick[name] for name in names) == wanted


def test_a_late_tick_delays_those_after_it() -> None:
    engine = started({}).engine
    first = engine.initial_tick(1000.0, 50.0)
    assert (first.at_s, first.at_monotonic_s) == (1005.0, 55.0)
    line_ = parse_line(json.dumps(idle(1, 1)))
    after = engine.tick(first, line_.given(first, 1007.5, engine.config), 57.5).effects.next_tick
    assert (after.at_s, after.at_monotonic_s) == (1012.5, 62.5)


def test_models_learn_although_load_scaling_is_off() -> None:
    busy = {"prefill": [{**fpm, "worker_id": "p0"} for fpm in MEASURED["prefill"][:1]], "decode": None}
    replay = started(THROUGHPUT)
    model = replay.engine.scaling.models.prefill
    assert model is not None
    assert not model.ready
    for i in range(6):
        tokens = 1000 * (i + 1)
        busy["prefill"] = [
            {"worker_id": "p0", "wall_time": 0.1 * (i + 1), "scheduled_requests": {"num_prefill_requests": 1, "sum_prefill_tokens": tokens}}
        ]
        (played,) = ticks(replay, [line(1, 1, busy)])
        assert played.result.effects.diagnostics.load_decision_reason == "disabled"
    assert model.ready


@pytest.mark.parametrize("bootstrap", [{}, MEASURED], ids=["not ready", "ready"])
def test_lower_bounds_last_until_the_next_throughput_decision(bootstrap: dict[str, Any]) -> None:
    lines = [line(3, 4, traffic=TRAFFIC)] * 13
    found = records(MIXED_LOOPS, lines, bootstrap_fpms=bootstrap)
    bounds = [(r["diagnostics"]["throughput_lower_bound_prefill"], r["diagnostics"]["throughput_lower_bound_decode"]) for r in found]
    assert bounds[:5] == [(1, 1)] * 5
    assert bounds[5] == (found[5]["ready"]["prefill"], found[5]["ready"]["decode"]) if not bootstrap else bounds[5] != (3, 4)
    assert bounds[5:] == [bounds[5]] * 8
    assert found[5]["diagnostics"]["throughput_decision_reason"] == ("set_lower_bound" if bootstrap else "model_not_ready")


@pytest.mark.parametrize(
    ("traffic", "reason"),
    [
        (None, "no_traffic_data"),
        ({"num_req": None, "isl": 1, "osl": 1}, "no_traffic_data"),
        ({**TRAFFIC, "duration_s": 0}, "no_traffic_data"),
        ({**TRAFFIC, "duration_s": -5}, "no_traffic_data"),
        (TRAFFIC, "scale"),
    ],
)
def test_reasons_of_a_throughput_tick(traffic: dict[str, Any] | None, reason: str) -> None:
    found = records(THROUGHPUT, [line(1, 1, traffic=traffic)] * 7, bootstrap_fpms=MEASURED)
    assert found[5]["diagnostics"]["throughput_decision_reason"] == reason
    assert found[6]["diagnostics"]["throughput_decision_reason"] is None


def test_no_traffic_moves_the_anchor() -> None:
    """So that the next forecast is made a whole interval later."""
    found = records(THROUGHPUT, [line(1, 1, traffic=None if i < 6 else TRAFFIC) for i in range(12)], bootstrap_fpms=MEASURED)
    assert [i for i, record in enumerate(found) if record["diagnostics"]["predicted_num_req"]] == [11]
    # What would propose is due until it has a forecast, so traffic is read all the while.
    assert [i for i, record in enumerate(found) if record["tick"]["need_traffic_metrics"]] == [5, 6, 7, 8, 9, 10, 11]


def test_a_failing_forecast_is_told_and_the_next_is_made_an_interval_later() -> None:
    config = {**THROUGHPUT, "load_predictor": "kalman", "load_predictor_log1p": True, "kalman_min_points": 1, "kalman_r": 0.1}
    jump = [line(1, 1, traffic={**TRAFFIC, "num_req": 10.0 ** (300 if i > 5 else 3)}) for i in range(18)]
    reasons = [record["diagnostics"]["throughput_decision_reason"] for record in records(config, jump, bootstrap_fpms=MEASURED)]
    assert {i: reason for i, reason in enumerate(reasons) if reason} == {5: "scale", 11: "predict_failed", 17: "scale"}


@pytest.mark.parametrize(
    ("config", "counts", "wanted"),
    [
        ({"min_endpoint": 3}, (1, 3), (3, None)),
        ({"min_endpoint": 3}, (1, 1), (3, 3)),
        ({"prefill_min_endpoint": 2}, (0, 1), (2, None)),
        ({"mode": "decode", "min_endpoint": 2}, (None, 1), (None, 2)),
        ({"mode": "agg", "min_endpoint": 2}, (None, 1), (None, 2)),
        ({"mode": "prefill", "min_endpoint": 2}, (1, None), (2, None)),
    ],
)
def test_minimums_are_restored_on_any_tick(config: dict[str, Any], counts: tuple[Any, Any], wanted: tuple[Any, Any]) -> None:
    """Also on one where no loop runs."""
    slow = {**config, "load_adjustment_interval_seconds": 20, "scheduling": {"scale_interval_seconds": 5}}
    (record,) = records(slow, [line(*counts)])
    assert flags(record) == (False, False)
    assert scaled(record) == wanted


def test_minimums_wait_for_a_change_under_way() -> None:
    (record,) = records({"min_endpoint": 3}, [line(1, 1, workers={"stable": False})])
    assert scaled(record) is None


def test_nothing_is_known_of_replicas() -> None:
    found = records({}, [{"fpm": {"prefill": prefills(9), "decode": decodes(9)}}, {"workers": {}}, {}])
    assert [record["diagnostics"]["execute_action"] for record in found] == ["skip_no_targets"] * 3
    assert found[0]["diagnostics"]["audit_events"] == ["execute_skipped_no_targets"]
    assert [record["desired"] for record in found] == [{"prefill": None, "decode": None}] * 3


def test_one_count_is_missing() -> None:
    (record,) = records({}, [line(2, None, {"prefill": prefills(20_000, 20_000)})])
    assert scaled(record) is None
    assert record["diagnostics"]["load_decision_reason"] == "worker_count_unknown"
    assert record["ready"] == {"prefill": 2, "decode": None}


@pytest.mark.parametrize(("mode", "wanted"), [("prefill", (3, None)), ("decode", (None, 3)), ("agg", (None, 3)), ("disagg", (3, 3))])
def test_only_roles_of_the_mode_are_scaled(mode: str, wanted: tuple[int | None, int | None]) -> None:
    busy = line(2, 2, {"prefill": prefills(20_000, 0), "decode": decodes(120_000, 0)})
    (record,) = records({"mode": mode}, [busy])
    assert scaled(record) == wanted


def test_agg_scales_by_both_targets() -> None:
    config = {**SLA, "mode": "agg", "enable_load_scaling": True, "enable_throughput_scaling": False, "ttft_ms": 500, "itl_ms": 400}
    waiting = {"queued_requests": {"num_prefill_requests": 9, "sum_prefill_tokens": 30_000}}
    engine = {"worker_id": "a", "scheduled_requests": {"num_decode_requests": 5, "sum_decode_kv_tokens": 5000}, **waiting}
    (record,) = records(config, [line(None, 1, {"decode": [engine]})], bootstrap_fpms={"agg": MIXED})
    assert scaled(record) == (None, 2)
    found = record["diagnostics"]
    assert found["estimated_ttft_ms"] > 500
    assert found["estimated_itl_ms"] < 400
    assert (found["load_decision_reason"], found["load_decision_reason_decode"]) == ("scale_up", None)


def test_agg_throughput_tells_one_rate_for_both_roles() -> None:
    config = {**THROUGHPUT, "mode": "agg", "ttft_ms": 2000, "itl_ms": 500}
    found = records(config, [line(None, 1, traffic={**TRAFFIC, "num_req": 6000})] * 6, bootstrap_fpms={"agg": MIXED})[5]
    rps = found["diagnostics"]["engine_rps_decode"]
    assert rps == found["diagnostics"]["engine_rps_prefill"] > 0
    assert scaled(found) == (None, -(-6000 // 60 // rps))


def test_aggregated_engines_may_stand_under_their_own_name() -> None:
    (record,) = records({"mode": "agg"}, [line(None, 1, {"agg": decodes(120_000)})])
    assert scaled(record) == (None, 2)


def test_cache_hits_shorten_the_estimate_of_load_scaling() -> None:
    config = {**SLA, "enable_load_scaling": True, "enable_throughput_scaling": False}
    fpm = {"prefill": prefills(4000), "decode": decodes(10)}
    lines = [line(1, 1, fpm, traffic={"kv_hit_rate": rate, "num_req": 9}) for rate in (None, 0.5, None, "nan", 0.9, 2.0, -1.0)]
    found = [r["diagnostics"]["estimated_ttft_ms"] for r in records(config, lines, bootstrap_fpms=MEASURED)]
    none, half, kept, not_a_number, nine, most, least = found
    assert none > half == kept == not_a_number > nine > most
    assert least == none


def test_accept_length_is_clamped_to_what_engines_propose() -> None:
    config = {**SLA, "mode": "decode", "enable_load_scaling": True, "enable_throughput_scaling": False, "speculative_nextn": 1}
    fpm = {"decode": decodes(4000)}
    lines: list[dict[str, Any]] = [line(None, 1, fpm, traffic={"accept_length": length}) for length in (None, 1.5, 9.0, "inf")]
    published = {"decode": {**ENGINE, "speculative_nextn": 3}}
    lines += [line(None, 1, fpm, traffic={"accept_length": 9.0}, capabilities=published)]
    lines += [line(None, 1, fpm, capabilities={"decode": {**ENGINE, "speculative_nextn": 2}}), line(None, 1, fpm)]
    found = [r["diagnostics"]["estimated_itl_ms"] for r in records(config, lines, bootstrap_fpms=MEASURED)]
    assert [found[0] / itl for itl in found] == pytest.approx([1, 1.5, 2, 2, 4, 3, 3])


def test_speculation_may_be_configured_while_running() -> None:
    config = {**SLA, "mode": "decode", "enable_load_scaling": True, "enable_throughput_scaling": False}
    seen = {"accept_length": 1.8}
    lines = [
        line(None, 1, {"decode": decodes(4000)}, traffic=seen, **changes) for changes in ({}, {"set_config": {"speculative_nextn": 1}})
    ]
    without, with_drafts = [r["diagnostics"]["estimated_itl_ms"] for r in records(config, lines, bootstrap_fpms=MEASURED)]
    assert without / with_drafts == pytest.approx(1.8)


def test_speculation_off_ignores_what_is_accepted() -> None:
    config = {**SLA, "mode": "decode", "enable_load_scaling": True, "enable_throughput_scaling": False}
    lines = [line(None, 1, {"decode": decodes(4000)}, traffic={"accept_length": length}) for length in (None, 3.0)]
    without, with_drafts = [r["diagnostics"]["estimated_itl_ms"] for r in records(config, lines, bootstrap_fpms=MEASURED)]
    assert without == with_drafts


def test_other_engines_count_from_the_tick_that_tells_of_them() -> None:
    quarter = {"prefill": {**ENGINE, "context_length": 2500}, "decode": ENGINE}
    load = {"prefill": prefills(3000), "decode": decodes(80_000)}
    found = records({}, [line(1, 1, load), line(1, 1, load, capabilities=quarter), line(1, 1, load)])
    assert [scaled(record) for record in found] == [None, (2, 1), (2, 1)]


def test_models_are_made_anew_for_other_limits() -> None:
    config = {**SLA, "enable_load_scaling": True, "enable_throughput_scaling": False}
    fpm = {"prefill": prefills(16_000), "decode": decodes(10)}
    smaller = {"prefill": {**ENGINE, "max_num_batched_tokens": 1000}, "decode": ENGINE}
    none = {"prefill": {**ENGINE, "max_num_batched_tokens": 0}, "decode": ENGINE}
    lines = [line(1, 1, fpm), line(1, 1, fpm, capabilities=smaller), line(1, 1, fpm, capabilities=none), line(1, 1, fpm, capabilities=BOTH)]
    found = [r["diagnostics"]["estimated_ttft_ms"] for r in records(config, lines, bootstrap_fpms=MEASURED)]
    assert found[1] > found[0]
    assert found[2] is None
    assert found[3] == found[0]


@pytest.mark.parametrize(
    ("change", "wanted"),
    [
        ({"min_endpoint": 4}, (4, 4)),
        ({"prefill_min_endpoint": 3}, (3, 1)),
        ({"max_gpu_budget": 3}, None),
        ({"max_gpu_budget": 2}, (1, 1)),
        ({"min_gpu_budget": 9}, (6, 3)),
    ],
)
def test_settings_count_from_the_tick_that_changes_them(change: dict[str, Any], wanted: tuple[int | None, int | None] | None) -> None:
    found = records({}, [idle(2, 1), idle(2, 1, set_config=change)])
    assert scaled(found[0]) is None
    assert scaled(found[1]) == wanted


def test_targets_can_be_changed() -> None:
    config = {**SLA, "enable_load_scaling": True, "enable_throughput_scaling": False, "ttft_ms": 5000}
    fpm = {"prefill": prefills(8000), "decode": decodes(10)}
    found = records(config, [line(1, 1, fpm), line(1, 1, fpm, set_config={"ttft_ms": 100})], bootstrap_fpms=MEASURED)
    assert [scaled(record) for record in found] == [None, (2, 1)]


def test_power_limits_what_is_written() -> None:
    watts = {role: {**ENGINE, "power_watts_per_replica": 1000} for role in ("prefill", "decode")}
    config = {"enable_power_awareness": True, "total_gpu_power_limit": 3000}
    busy = line(1, 1, {"prefill": prefills(20_000), "decode": decodes(120_000)})
    (record,) = records(config, [busy], capabilities=watts)
    # One of both at a time: what fits goes to decode, and prefill is what it is expected to be.
    assert scaled(record) == (None, 2)
    wide = {**config, "total_gpu_power_limit": 4000}
    assert scaled(records(wide, [busy], capabilities=watts)[0]) == (2, 2)


def test_a_ceiling_below_the_minimums_stops_everything() -> None:
    (record,) = records({"max_gpu_budget": 3, "min_endpoint": 2}, [idle(2, 2)])
    assert scaled(record) == (0, 0)
    (grown,) = records({"max_gpu_budget": 3, "min_endpoint": 2}, [line(2, 2, {"prefill": prefills(20_000, 20_000)})])
    assert scaled(grown) == (0, 0)


def test_pending_replicas_are_taken_back() -> None:
    calm = {"prefill": prefills(0), "decode": decodes(70_000)}
    moving = line({"active": 1, "expected": 3}, {"active": 1, "expected": 1}, calm)
    on, off = ({"pending_aware_scale_down": value} for value in (True, False))
    (taken,) = records(on, [moving])
    assert scaled(taken) == (1, 1)
    assert taken["diagnostics"]["load_decision_reason_prefill"] == "pending_taken_back"
    assert scaled(records(off, [moving])[0]) is None
    assert scaled(records({}, [moving])[0]) is None


@pytest.mark.parametrize("history", [1, 3, 6])
def test_history_warms_the_forecast(history: int) -> None:
    config = {**THROUGHPUT, "load_predictor": "kalman", "kalman_min_points": 3}
    windows = [{"num_req": 100 * (i + 1), "isl": 1000, "osl": 100, "duration_s": 60} for i in range(history)]
    found = records(config, [line(1, 1, traffic=TRAFFIC)] * 6, bootstrap_fpms=MEASURED, warmup_traffic=windows)[5]
    is_last = found["diagnostics"]["predicted_num_req"] == 600
    assert is_last is (history + 1 < 3)
