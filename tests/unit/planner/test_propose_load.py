"""Load scaling around the thresholds: guards and their order, floors, budget, and which reason is told."""

from dataclasses import replace
from typing import Any

import pytest

from controllers.planner.fpm import Fpm, FpmMap
from controllers.planner.propose import LoadInputs, ProposeState, propose_load
from controllers.planner.types import Capabilities, RoleCapabilities, ScalingDecision, WorkerCounts
from tests.unit.planner.proposing import FACTS, LinearCore, config, counts, load, model, models, prompts, sla, steps

BUSY_P, IDLE_P, SOME_P = 20_000, 0, 2_000
BUSY_D, IDLE_D, SOME_D = 200_000, 0, 80_000


def reasons(inputs: LoadInputs) -> tuple[str | None, str | None, str | None]:
    changes = propose_load(inputs).changes
    names = ("load_decision_reason", "load_decision_reason_prefill", "load_decision_reason_decode")
    whole, prefill, decode = (changes.get(name) for name in names)
    return whole, prefill, decode  # pyright: ignore[reportReturnType] - reasons, all of them


def numbers(inputs: LoadInputs) -> tuple[int | None, int | None] | None:
    decision = propose_load(inputs).decision
    return None if decision is None else (decision.num_prefill, decision.num_decode)


# Guards: planner.md §12.1, §27 4.

ROLLOUT = {"expected_num_prefill": None, "prefill_scaling_in_progress": True}


@pytest.mark.parametrize(
    ("prefill", "decode", "seen", "reason"),
    [
        pytest.param(None, None, counts(1, 1, **ROLLOUT), "no_fpm_data", id="no metrics, before all else"),
        pytest.param({}, {}, counts(1, 1), "no_fpm_data", id="empty maps"),
        pytest.param(prompts(0, 0), steps(0), counts(1, 1, **ROLLOUT), "scaling_in_progress", id="a rollout, before counting"),
        pytest.param(prompts(0), steps(0), counts(1, 1, expected_num_decode=2), "scaling_in_progress", id="more are expected"),
        pytest.param(prompts(0), steps(0), counts(1, 1, expected_num_prefill=0), "scaling_in_progress", id="fewer are expected"),
        pytest.param(prompts(0), steps(0), counts(None, 1, expected_num_prefill=1), "scaling_in_progress", id="ready is not known"),
        pytest.param(prompts(0), steps(0), counts(2, 1), "worker_count_mismatch", id="a worker does not report"),
        pytest.param(prompts(0), steps(0, 0), counts(1, 1), "worker_count_mismatch", id="a worker too many reports"),
        pytest.param(None, steps(0, 0), counts(1, 1), "worker_count_mismatch", id="only roles that report are counted"),
        pytest.param(prompts(0), steps(0), counts(None, 1), "worker_count_mismatch", id="unknown number"),
        pytest.param(prompts(0), None, counts(1, None), "worker_count_unknown", id="unknown number of a role that does not report"),
        pytest.param(prompts(0), None, counts(1, -2), "worker_count_unknown", id="negative number"),
        pytest.param(prompts(0), steps(0), counts(1, -2), "worker_count_mismatch", id="negative number that is counted"),
    ],
)
def test_pair_holds(prefill: FpmMap | None, decode: FpmMap | None, seen: WorkerCounts, reason: str) -> None:
    inputs = load(config(), prefill, decode, seen)
    assert numbers(inputs) is None
    assert reasons(inputs) == (reason, reason, reason)


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), -1])
def test_a_number_of_replicas_that_is_none_holds(bad: float) -> None:
    fields: dict[str, Any] = {"ready_num_decode": bad, "expected_num_decode": None}
    assert reasons(load(config(), prompts(0), None, counts(1, 1, **fields)))[0] == "worker_count_unknown"
    assert reasons(load(config(mode="decode"), None, steps(0), counts(None, 1, **fields)))[0] == "worker_count_mismatch"
    assert reasons(load(config(mode="decode"), None, steps(0), counts(None, 1, expected_num_decode=bad)))[0] == "scaling_in_progress"


@pytest.mark.parametrize(
    ("mode", "fpms", "seen", "reason"),
    [
        pytest.param("decode", None, counts(None, 1, expected_num_decode=2), "scaling_in_progress", id="one role: change first"),
        pytest.param("agg", None, counts(None, 1, expected_num_decode=2), "no_fpm_data", id="aggregated: metrics first"),
        pytest.param("decode", None, counts(None, 1), "no_fpm_data", id="one role: no metrics"),
        pytest.param("agg", steps(0), counts(None, 1, decode_scaling_in_progress=True), "scaling_in_progress", id="aggregated: change"),
        pytest.param("decode", steps(0), counts(None, 2), "worker_count_mismatch", id="one role: mismatch"),
        pytest.param("agg", steps(0), counts(None, 2), "worker_count_mismatch", id="aggregated: mismatch"),
    ],
)
@pytest.mark.parametrize("make", [config, sla])
def test_single_holds(make: Any, mode: str, fpms: FpmMap | None, seen: WorkerCounts, reason: str) -> None:
    inputs = load(make(mode=mode), None, fpms, seen)
    assert numbers(inputs) is None
    assert propose_load(inputs).changes == {"load_decision_reason": reason}


def ranks(*of_workers: int) -> FpmMap:
    return {(f"d{i}", rank): Fpm(worker_id=f"d{i}", dp_rank=rank) for i, n in enumerate(of_workers) for rank in range(n)}


@pytest.mark.parametrize(
    ("of_workers", "reason"), [((2, 2), "scale_down"), ((2, 1), "worker_count_mismatch"), ((4,), "worker_count_mismatch")]
)
def test_all_workers_report_as_many_ranks(of_workers: tuple[int, ...], reason: str) -> None:
    assert reasons(load(config(mode="decode"), None, ranks(*of_workers), counts(None, 2)))[0] == reason


# Two roles.


@pytest.mark.parametrize(
    ("queues", "kv", "expected", "told"),
    [
        ((BUSY_P,), (BUSY_D,), (2, 2), ("scale_up", "scale_up", "scale_up")),
        ((IDLE_P,) * 3, (IDLE_D,) * 2, (2, 1), ("scale_down", "scale_down", "scale_down")),
        ((IDLE_P,) * 3, (BUSY_D,), (2, 2), ("scale_up", "scale_down", "scale_up")),
        ((BUSY_P,) * 2, (SOME_D,), (3, 1), ("scale_up", "scale_up", "no_change")),
        ((SOME_P,), (IDLE_D,) * 2, (1, 1), ("scale_down", "no_change", "scale_down")),
        ((SOME_P,), (SOME_D,), None, ("no_change", "no_change", "no_change")),
    ],
)
def test_pair(
    queues: tuple[int, ...], kv: tuple[int, ...], expected: tuple[int, int] | None, told: tuple[str | None, str | None, str | None]
) -> None:
    inputs = load(config(), prompts(*queues), steps(*kv))
    assert numbers(inputs) == expected
    assert reasons(inputs) == told


def test_a_role_without_metrics_stays_as_it_is() -> None:
    inputs = load(config(), None, steps(BUSY_D), counts(3, 1))
    assert numbers(inputs) == (3, 2)
    assert reasons(inputs) == ("scale_up", "no_change", "scale_up")


def test_what_keeps_a_role_from_being_decided_is_told_only_if_nothing_changes() -> None:
    no_kv = Capabilities(FACTS, RoleCapabilities())
    assert reasons(load(config(), prompts(SOME_P), steps(IDLE_D), capabilities=no_kv)) == (
        "insufficient_data",
        "no_change",
        "insufficient_data",
    )
    assert reasons(load(config(), prompts(BUSY_P), steps(IDLE_D), capabilities=no_kv)) == ("scale_up", "scale_up", "no_change")


def mixed(**bounds: int) -> dict[str, Any]:
    """Fields of inputs where throughput scaling is on too."""
    return {"state": ProposeState(**bounds)}


BOTH = {"enable_throughput_scaling": True}


@pytest.mark.parametrize(
    ("bounds", "expected", "told"),
    [
        pytest.param(
            {"lower_bound_prefill": 3}, (3, 1), ("scale_down_capped_by_throughput", "scale_down_capped_by_throughput", "scale_down")
        ),
        pytest.param({"lower_bound_prefill": 4}, (4, 1), ("scale_up", "scale_up", "scale_down")),
        pytest.param(
            {"lower_bound_prefill": 3, "lower_bound_decode": 2},
            None,
            ("scale_down_capped_by_throughput",) * 3,
        ),
        pytest.param({}, (2, 1), ("scale_down", "scale_down", "scale_down")),
    ],
)
def test_lower_bounds_hold_where_both_loops_are_on(
    bounds: dict[str, int], expected: tuple[int, int] | None, told: tuple[str, str, str]
) -> None:
    inputs = load(sla(**BOTH), prompts(0, 0, 0), steps(0, 0), **mixed(**bounds))
    assert numbers(inputs) == expected
    assert reasons(inputs) == told
    alone = load(sla(), prompts(0, 0, 0), steps(0, 0), **mixed(**bounds))
    assert numbers(alone) == (2, 1)


def test_lower_bounds_of_one_role() -> None:
    inputs = load(sla(mode="decode", **BOTH), None, steps(0, 0), **mixed(lower_bound_decode=2))
    assert numbers(inputs) == (None, 2)
    assert reasons(inputs)[0] == "no_change"
    assert numbers(replace(inputs, state=ProposeState(lower_bound_decode=5))) == (None, 5)


def test_lower_bounds_of_aggregated_engines() -> None:
    inputs = load(sla(mode="agg", **BOTH), None, steps(0, 0), **mixed(lower_bound_decode=2))
    assert numbers(inputs) is None
    assert reasons(inputs)[0] == "scale_down_capped_by_throughput"


def test_minimums_are_no_cap_of_throughput() -> None:
    inputs = load(config(prefill_min_endpoint=3), prompts(0, 0, 0), steps(SOME_D))
    assert numbers(inputs) is None
    assert reasons(inputs) == ("no_change", "no_change", "no_change")


def test_fewest_gpus_are_no_cap_of_throughput() -> None:
    inputs = load(sla(**BOTH, min_gpu_budget=6), prompts(0, 0, 0), steps(0, 0, 0))
    assert numbers(inputs) is None
    assert reasons(inputs) == ("no_change", "no_change", "no_change")


# Budget: planner.md §17.1, §27 6.


def test_what_a_ceiling_leaves_goes_to_decode() -> None:
    costly = Capabilities(replace(FACTS, gpu_cost_per_replica=4), FACTS)
    inputs = load(config(max_gpu_budget=11), prompts(BUSY_P, BUSY_P), steps(SOME_D, SOME_D, SOME_D), capabilities=costly)
    assert numbers(inputs) is None
    roomy = load(config(max_gpu_budget=14), prompts(BUSY_P, BUSY_P), steps(SOME_D, SOME_D, SOME_D), capabilities=costly)
    assert numbers(roomy) == (2, 6)


def test_minimums_above_the_ceiling_leave_nothing() -> None:
    inputs = load(config(max_gpu_budget=3, min_endpoint=2), prompts(0, 0), steps(0, 0))
    assert numbers(inputs) == (0, 0)
    assert reasons(inputs) == ("scale_down", "scale_down", "scale_down")


@pytest.mark.parametrize("mode", ["decode", "agg"])
def test_single_at_the_ceiling_is_a_decision_for_what_there_is(mode: str) -> None:
    inputs = load(config(mode=mode, max_gpu_budget=2), None, steps(BUSY_D, BUSY_D))
    assert numbers(inputs) == (None, 2)
    assert reasons(inputs)[0] == "no_change"


def test_known_cost_raises_a_single_role_to_its_minimum() -> None:
    inputs = load(config(mode="decode", min_endpoint=5), None, steps(BUSY_D))
    assert numbers(inputs) == (None, 5)
    assert numbers(replace(inputs, config=config(mode="decode", min_endpoint=5, max_gpu_budget=9))) == (None, 5)


def test_unknown_cost_leaves_a_single_role_unlimited_but_aggregated_engines_keep_their_minimum() -> None:
    unknown = Capabilities(None, replace(FACTS, gpu_cost_per_replica=None))
    one = load(config(mode="decode", max_gpu_budget=1, min_endpoint=5), None, steps(BUSY_D), capabilities=unknown)
    assert numbers(one) == (None, 2)
    both = load(config(mode="agg", max_gpu_budget=1, min_endpoint=5), None, steps(BUSY_D), capabilities=unknown)
    assert numbers(both) == (None, 5)


# What comes in wrong.


def other(fpms: FpmMap, **fields: Any) -> FpmMap:
    key, first = next(iter(fpms.items()))
    made = {name: getattr(first, name) for name in Fpm.__struct_fields__} | fields
    return {**{each: fpm for each, fpm in fpms.items() if each != key}, (made["worker_id"], 0): Fpm(**made)}


@pytest.mark.parametrize("make", [config, sla])
@pytest.mark.parametrize("fields", [{"version": 2}, {"worker_id": ""}])
def test_metrics_of_another_version_or_of_nobody_hold_their_role(make: Any, fields: dict[str, Any]) -> None:
    inputs = load(make(), prompts(BUSY_P, BUSY_P), other(steps(0, 0), **fields))
    assert numbers(inputs) == (3, 2)
    idle = load(make(), prompts(SOME_P), other(steps(0, 0), **fields))
    assert reasons(idle) == ("fpm_invalid", "no_change", "fpm_invalid")
    agg = load(make(mode="agg"), None, other(steps(0, 0), **fields))
    assert numbers(agg) is None
    assert reasons(agg)[0] == "fpm_invalid"


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), -1, 10**400])
def test_impossible_numbers_hold_with_service_level_targets(bad: float) -> None:
    assert reasons(load(sla(), prompts(SOME_P, bad), steps(0)))[:2] == ("fpm_invalid", "fpm_invalid")
    assert reasons(load(sla(mode="agg"), None, steps(0, bad)))[0] == "fpm_invalid"


def test_state_and_other_diagnostics_are_left_as_they_are() -> None:
    state = ProposeState(lower_bound_decode=7, kv_hit_rate=0.5)
    answer = propose_load(load(config(), prompts(BUSY_P), steps(BUSY_D), state=state))
    assert answer.state is state
    assert answer.changes == dict.fromkeys(
        ("load_decision_reason", "load_decision_reason_prefill", "load_decision_reason_decode"), "scale_up"
    )
    assert answer.decision == ScalingDecision(2, 2)


def test_a_model_that_is_not_ready_or_missing_decides_nothing() -> None:
    young = LinearCore("insufficient_data")
    assert reasons(load(sla(), prompts(BUSY_P), steps(BUSY_D), models=models(sla(), young))) == ("insufficient_data",) * 3
    assert reasons(load(sla(mode="agg"), None, steps(0, 0), models=replace(models(sla()), decode=None)))[0] == "insufficient_data"
    assert reasons(load(sla(mode="agg"), None, steps(0, 0), models=replace(models(sla()), decode=model("aggregated", young))))[0] == (
        "insufficient_data"
    )
