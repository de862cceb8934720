"""From targets to a decision, by example: floors, budget, rollouts, power."""

from typing import Any

import pytest

from controllers.planner.config.model import PlannerConfig
from controllers.planner.merge import Target
from controllers.planner.power import PowerReason
from controllers.planner.project import Projection, project
from controllers.planner.types import Capabilities, RoleCapabilities, ScalingDecision, WorkerCounts

POWER: dict[str, Any] = {"enable_power_awareness": True, "total_gpu_power_limit": 10_000, "max_gpu_budget": 40}
ONE_GPU = RoleCapabilities(num_gpu=1, power_watts_per_replica=500)


def limited(watts: int) -> dict[str, Any]:
    return {**POWER, "total_gpu_power_limit": watts}


def ready(p: int | None, d: int | None, **more: Any) -> WorkerCounts:
    counts: dict[str, Any] = {"expected_num_prefill": p, "expected_num_decode": d, **more}
    return WorkerCounts(p, d, **counts)


def run(
    p: int | None,
    d: int | None,
    counts: WorkerCounts,
    proposed: str = "prefill decode",
    facts: Capabilities | None = None,
    **settings: Any,
) -> Projection:
    targets = [Target("prefill", p), Target("decode", d), Target("router", 9)]
    config = PlannerConfig.model_validate({"max_gpu_budget": 40, **settings})
    return project(targets, proposed.split(), counts, config, facts or Capabilities(ONE_GPU, ONE_GPU))


def decided(*arguments: Any, **settings: Any) -> tuple[int | None, int | None] | None:
    decision = run(*arguments, **settings).decision
    return None if decision is None else (decision.num_prefill, decision.num_decode)


def test_the_unchanged_role_is_written_again() -> None:
    assert decided(2, 5, ready(2, 3)) == (2, 5)


@pytest.mark.parametrize(("p", "d"), [(2, 3), (None, 3), (None, None)])
def test_nothing_new_is_no_decision(p: int | None, d: int | None) -> None:
    assert decided(p, d, ready(2, 3)) is None


def test_ready_counts_decide_even_during_a_rollout() -> None:
    assert decided(2, 3, ready(2, 3, expected_num_decode=9)) is None


def test_minimum_is_restored_without_any_proposal_and_the_other_role_is_left_alone() -> None:
    assert decided(2, 3, ready(2, 3), "", min_endpoint=3) == (3, None)
    assert decided(None, None, ready(2, 5), "", min_endpoint=3) == (3, None)
    assert run(2, 3, ready(2, 3), "", min_endpoint=3).repaired == ("prefill",)


@pytest.mark.parametrize("busy", [{"decode_scaling_in_progress": True}, {"expected_num_decode": 4}])
def test_minimum_waits_while_anything_is_under_way(busy: dict[str, Any]) -> None:
    assert decided(2, 3, ready(2, 3, **busy), "", min_endpoint=3) is None


def test_budget_of_a_pair() -> None:
    assert decided(8, 8, ready(1, 1), max_gpu_budget=8) == (4, 4)
    assert decided(8, 8, ready(1, 1), max_gpu_budget=1) == (0, 0)


def test_budget_without_costs_only_keeps_minimums() -> None:
    assert decided(0, 9, ready(1, 1), facts=Capabilities(), max_gpu_budget=1) == (1, 9)


def test_budget_without_counts_treats_every_role_alone() -> None:
    assert decided(None, 9, ready(None, 1), max_gpu_budget=4) == (None, 4)


def test_one_role_of_a_pair_still_shares_the_budget() -> None:
    assert decided(None, 9, ready(4, 1), max_gpu_budget=8) == (None, 6)


@pytest.mark.parametrize("mode", ["decode", "agg"])
def test_single_role_ignores_the_other(mode: str) -> None:
    assert decided(7, 9, ready(None, 1), mode=mode, max_gpu_budget=4) == (None, 4)
    assert decided(7, None, ready(None, 1), mode=mode) is None


def test_prefill_only() -> None:
    assert decided(0, 9, ready(3, None), mode="prefill", prefill_min_endpoint=2) == (2, None)


def test_with_power_only_proposed_roles_are_written() -> None:
    assert decided(2, 5, ready(2, 3), "decode", **POWER) == (None, 5)
    assert decided(3, 5, ready(2, 3), "", **POWER) is None
    assert decided(2, 5, ready(2, 3), "prefill decode", **POWER) == (None, 5)


def test_with_power_a_target_is_compared_with_what_is_expected() -> None:
    assert decided(2, 3, ready(2, 3, expected_num_decode=5), "decode", **POWER) == (None, 3)
    assert decided(2, 5, ready(2, 3, expected_num_decode=5), "decode", **POWER) is None


def test_with_power_one_role_gets_what_the_other_leaves_of_the_gpus() -> None:
    settings: dict[str, Any] = {**POWER, "max_gpu_budget": 8}
    needing: dict[str, Any] = {**settings, "min_gpu_budget": 8}
    assert decided(4, 9, ready(4, 1), "decode", **settings) == (None, 4)
    assert decided(8, 9, ready(8, 2), "decode", **settings) is None, "no room for even the minimum: no growth"
    assert decided(8, 1, ready(8, 2), "decode", **settings) == (None, 1)
    assert decided(4, 1, ready(4, 2), "decode", **needing) == (None, 4)


def test_with_power_nothing_grows_during_a_rollout() -> None:
    rolling = ready(2, 3, expected_num_prefill=None, expected_num_decode=None, prefill_scaling_in_progress=True)
    assert decided(1, 5, rolling, **POWER) == (1, None)
    unknown = Capabilities(RoleCapabilities(num_gpu=1), RoleCapabilities(num_gpu=1))
    assert decided(1, 5, rolling, facts=unknown, **POWER) == (1, 5)


def test_power_limit_and_its_reasons() -> None:
    assert run(20, 20, ready(5, 5), **POWER) == Projection(ScalingDecision(10, 10), PowerReason.BUDGET_CLAMPED)
    swap = run(5, 14, ready(14, 5), **POWER)
    assert (swap.decision, swap.power_reason) == (ScalingDecision(5, None), PowerReason.REBALANCE_STAGED)
    held = run(19, 5, ready(19, 1), "decode", **limited(9_600))
    assert (held.decision, held.power_reason) == (None, PowerReason.SCALE_UP_SUPPRESSED)


def test_minimums_beyond_the_power_limit_hold_everything() -> None:
    projection = run(5, 5, ready(1, 1), **limited(900))
    assert projection == Projection(None, PowerReason.MINIMUM_INFEASIBLE)
