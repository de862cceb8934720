"""Whole runs of Planner on any trace: floors and budgets hold, the same inputs give the same output, junk ends nothing."""

import json
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from controllers.planner.replay.case import Case, parse_case, parse_line
from controllers.planner.replay.decode import CaseError
from controllers.planner.replay.run import Played, Replay, record_of, to_json
from controllers.planner.types import Mode, Role
from tests.unit.planner.replaying import ENGINE, MEASURED, MIXED

MODES = st.sampled_from(list(Mode))
TARGETS = st.sampled_from(["throughput", "latency", "load", "sla", "sla", "sla"])
COUNTS = st.integers(0, 6)
TOKENS = st.integers(0, 12_000) | st.integers(0, 200_000)
THRESHOLDS = {
    "prefill_scale_up_queue_tokens": 5_000,
    "prefill_scale_down_queue_tokens": 500,
    "decode_scale_up_kv_rate": 80,
    "decode_scale_down_kv_rate": 30,
}
RUNS = settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
IMPOSSIBLE = st.integers(-(2**70), 2**70)
NUMBERS: st.SearchStrategy[Any] = st.none() | st.integers(-(2**70), 2**70) | st.floats() | st.just("nan")


@st.composite
def configs(draw: st.DrawFn, **fields: Any) -> dict[str, Any]:
    """Any loops in any mode, as both scaling loops, floors, budgets, and the step limit may be set together."""
    mode, target = draw(MODES), draw(TARGETS)
    config: dict[str, Any] = {
        "mode": mode.value,
        "optimization_target": target,
        "min_endpoint": draw(st.integers(0, 3)),
        "max_gpu_budget": draw(st.just(-1) | st.integers(0, 30)),
        "min_gpu_budget": draw(st.just(-1) | st.integers(0, 12)),
        "load_predictor": draw(st.sampled_from(["constant", "kalman", "arima"])),
        "load_adjustment_interval_seconds": draw(st.sampled_from([5, 10])),
        "throughput_adjustment_interval_seconds": draw(st.sampled_from([15, 20])),
        "max_throughput_scaling_replicas": draw(st.none() | st.integers(1, 4)),
        "pending_aware_scale_down": draw(st.booleans()),
        "max_num_fpm_samples": 16,
        **THRESHOLDS,
        **fields,
    }
    if target == "sla":
        config["enable_load_scaling"] = draw(st.booleans())
        config["enable_throughput_scaling"] = not config["enable_load_scaling"] or draw(st.booleans())
    return config


def engines(
    prefix: str, count: int, tokens: st.SearchStrategy[Any], times: st.SearchStrategy[Any]
) -> st.SearchStrategy[list[dict[str, Any]]]:
    def one(drawn: tuple[Any, Any, Any, Any]) -> dict[str, Any]:
        used, queued, prompt, wall = drawn
        return {
            "wall_time": wall,
            "scheduled_requests": {
                "num_prefill_requests": 1,
                "sum_prefill_tokens": prompt,
                "num_decode_requests": 1,
                "sum_decode_kv_tokens": used,
            },
            "queued_requests": {"num_prefill_requests": 1, "sum_prefill_tokens": queued},
        }

    listed = st.lists(st.tuples(tokens, tokens, tokens, times).map(one), min_size=count, max_size=count)
    return listed.map(lambda fpms: [{**fpm, "worker_id": f"{prefix}{i}"} for i, fpm in enumerate(fpms)])


@st.composite
def lines(draw: st.DrawFn) -> dict[str, Any]:
    """What a well-behaved cluster may show; counts and metrics mostly agree."""
    counts = {"prefill": draw(COUNTS), "decode": draw(COUNTS)}
    times = st.floats(0.001, 2.0)
    fpm = {
        role: draw(engines(role[0], max(0, count - draw(st.sampled_from([0, 0, 0, 1]))), TOKENS, times)) for role, count in counts.items()
    }
    workers: dict[str, Any] = {**counts, "stable": draw(st.sampled_from([True, True, True, False]))}
    if draw(st.integers(0, 5)) == 0:
        workers["prefill"] = {"active": counts["prefill"], "expected": draw(COUNTS)}
    traffic = {
        "num_req": draw(st.floats(0, 1e5)),
        "isl": draw(st.floats(1, 9000)),
        "osl": draw(st.floats(1, 900)),
        "kv_hit_rate": draw(st.none() | st.floats(0, 1)),
        "accept_length": draw(st.none() | st.floats(1, 4)),
    }
    return {"workers": workers, "fpm": fpm, "traffic": traffic}


@st.composite
def plugins(draw: st.DrawFn) -> list[dict[str, Any]]:
    target = st.fixed_dictionaries(
        {
            "component": st.sampled_from(["prefill", "decode", "router"]),
            "replicas": st.none() | st.integers(-3, 9),
            "type": st.sampled_from(["SET", "AT_LEAST", "AT_MOST"]),
        }
    )
    answer = st.fixed_dictionaries(
        {
            "kind": st.sampled_from(["accept", "reject", "override", "override", "empty", "raise", "predict"]),
            "targets": st.lists(target, max_size=3),
            "final": st.booleans(),
            "num_req": st.none() | st.floats(0, 1e4),
            "isl": st.none() | st.floats(1, 9000),
            "osl": st.none() | st.floats(1, 900),
        }
    )
    plugin = st.fixed_dictionaries(
        {
            "plugin_type": st.sampled_from(["predict", "propose", "reconcile", "constrain"]),
            "priority": st.integers(-5, 30),
            "execution_interval_seconds": st.sampled_from([0, 5, 7, 20]),
            "hold_policy": st.sampled_from(["HOLD_LAST", "ACCEPT_WHEN_IDLE"]),
            "needs": st.lists(st.sampled_from(["observations.traffic", "observations.fpm"]), max_size=2),
            "script": st.lists(answer, min_size=1, max_size=3),
        }
    )
    return [{**each, "plugin_id": f"user{i}"} for i, each in enumerate(draw(st.lists(plugin, max_size=3)))]


def case(
    config: dict[str, Any], scripted: list[dict[str, Any]], costs: tuple[int | None, int | None] = (1, 1), watts: int | None = None
) -> Case:
    capabilities = {
        role: {**ENGINE, "num_gpu": cost, "power_watts_per_replica": watts} for role, cost in zip(("prefill", "decode"), costs, strict=True)
    }
    bootstrap = {**MEASURED, "agg": MIXED}
    whole = {"planner_config": config, "capabilities": capabilities, "bootstrap_fpms": bootstrap, "scripted_plugins": scripted}
    return parse_case(json.dumps(whole), {})


def played(case_of_run: Case, texts: list[str]) -> tuple[Replay, list[Played]]:
    replay = Replay(case_of_run)
    return replay, [replay.play(parse_line(text)) for text in texts]


def targets(tick: Played) -> dict[Role, int]:
    """Replicas after the tick of roles that are written."""
    decision = tick.result.effects.scale_to
    wanted: dict[Role, int | None] = (
        {"prefill": None, "decode": None} if decision is None else {"prefill": decision.num_prefill, "decode": decision.num_decode}
    )
    return {role: number for role, number in wanted.items() if number is not None}


@RUNS
@given(configs(), plugins(), st.lists(lines(), min_size=1, max_size=8), st.integers(1, 3), st.integers(1, 3))
def test_floors_and_ceiling_hold_whatever_plugins_want(
    config: dict[str, Any], scripted: list[dict[str, Any]], trace: list[dict[str, Any]], p_gpu: int, d_gpu: int
) -> None:
    replay, found = played(case(config, scripted, (p_gpu, d_gpu)), [json.dumps(line) for line in trace])
    settings_of, cost = replay.engine.config, {"prefill": p_gpu, "decode": d_gpu}
    for tick in found:
        written, ceiling = targets(tick), settings_of.max_gpu_budget
        counts = tick.given.worker_counts
        assert counts is not None
        assert set(written) <= set(settings_of.roles)
        least = settings_of.active_minimums()
        smallest = sum(least[role] * cost[role] for role in settings_of.roles)
        if not written:
            continue
        if 0 <= ceiling < smallest:
            # The minimums cannot be had: nothing may run, or what runs stays.
            assert all(number == 0 or number == counts.ready(role) or number >= least[role] for role, number in written.items())
            continue
        assert all(number >= least[role] for role, number in written.items())
        # Where a plugin's last word names one role and has no opinion of the other, Planner 1.5.1 leaves room for the minimum of the other
        # only, not for what runs of it.
        total = sum(written.get(role, least[role]) * cost[role] for role in settings_of.roles)
        assert ceiling < 0 or total <= ceiling


@RUNS
@given(configs(), plugins(), st.lists(lines(), min_size=1, max_size=8))
def test_the_same_inputs_give_the_same_output(config: dict[str, Any], scripted: list[dict[str, Any]], trace: list[dict[str, Any]]) -> None:
    made, texts = case(config, scripted), [json.dumps(line) for line in trace]
    first, second = ([to_json(record_of(tick)) for tick in played(made, texts)[1]] for _ in range(2))
    assert first == second


@RUNS
@given(
    configs(enable_power_awareness=True, total_gpu_power_limit=6000, mode="disagg"),
    st.lists(lines(), min_size=1, max_size=8),
    st.integers(200, 2000),
)
def test_power_holds_where_the_minimums_allow_it(config: dict[str, Any], trace: list[dict[str, Any]], watts: int) -> None:
    replay, found = played(case(config, [], watts=watts), [json.dumps(line) for line in trace])
    least = sum(replay.engine.config.active_minimums().values()) * watts
    for tick in found:
        written, counts = targets(tick), tick.given.worker_counts
        assert counts is not None
        ready: dict[Role, int] = {role: counts.ready(role) or 0 for role in replay.engine.config.roles}
        after = sum(written.get(role, ready[role]) for role in ready) * watts
        if least <= 6000 and written:
            assert after <= max(6000, sum(ready.values()) * watts)


JUNK = st.recursive(
    NUMBERS | st.booleans() | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
)


@st.composite
def junk_lines(draw: st.DrawFn) -> str:
    """Lines that are nearly lines: values of the wrong kind, impossible numbers, cut off."""
    line = draw(lines())
    line["fpm"] = {role: draw(engines(role[0], draw(COUNTS), IMPOSSIBLE | TOKENS, st.floats())) for role in ("prefill", "decode")}
    line["traffic"] = draw(
        st.none() | st.fixed_dictionaries(dict.fromkeys(("num_req", "isl", "osl", "kv_hit_rate", "accept_length", "duration_s"), NUMBERS))
    )
    if draw(st.booleans()):
        line[draw(st.sampled_from(["workers", "fpm", "traffic", "capabilities", "set_config"]))] = draw(JUNK)
    if draw(st.integers(0, 3)) == 0:
        line["workers"] = {"prefill": draw(NUMBERS), "decode": draw(NUMBERS)}
    if draw(st.integers(0, 3)) == 0:
        line["capabilities"] = {"prefill": draw(st.dictionaries(st.sampled_from([*ENGINE, "speculative_nextn"]), NUMBERS)), "decode": None}
    text = json.dumps(line)
    return text[: draw(st.integers(0, len(text)))] if draw(st.integers(0, 9)) == 0 else text


@RUNS
@given(configs(), st.lists(junk_lines(), min_size=1, max_size=10))
def test_junk_is_an_error_or_read_but_never_ends_planner(config: dict[str, Any], texts: list[str]) -> None:
    replay = Replay(case({**config, "max_gpu_budget": 20}, []))
    problems: list[str] = []
    for text in texts:
        try:
            tick = replay.play(parse_line(text))
        except CaseError as error:
            problems.append(str(error))
            continue
        json.loads(to_json(record_of(tick)))
    assert all(problems)
