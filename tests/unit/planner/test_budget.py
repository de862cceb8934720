"""GPU budgets by example, and the check of the minimums at start."""

from collections.abc import Mapping

import pytest

from controllers.planner.budget import clamp_pair, clamp_single, footprint_error
from controllers.planner.config.model import PlannerConfig
from controllers.planner.types import Capabilities, RoleCapabilities


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        # p, d, GPUs of each, floor, ceiling, minimums
        ((4, 4, 1, 1, -1, 8, 1, 1), (4, 4)),
        ((8, 8, 1, 1, -1, 8, 1, 1), (4, 4)),
        ((8, 1, 1, 1, -1, 8, 1, 1), (7, 1)),
        ((9, 3, 4, 1, -1, 13, 1, 1), (3, 1)),
        ((10, 1, 3, 1, -1, 20, 1, 1), (6, 2)),  # what is left goes to decode, beyond what was asked
        ((1, 1, 1, 1, -1, 1, 1, 1), (0, 0)),  # the minimums alone are too much
        ((1, 1, 1, 1, 8, -1, 1, 1), (4, 4)),
        ((0, 0, 1, 1, 8, -1, 0, 0), (4, 4)),
        ((3, 4, 1, 1, 8, 8, 1, 1), (3, 4)),  # within a replica of the floor
        ((1, 1, 3, 3, 8, 8, 1, 1), (1, 1)),  # the floor cannot be met below the ceiling
        ((9, 9, 0, 1, -1, 8, 1, 1), (9, 9)),
    ],
)
def test_pair(arguments: tuple[int, int, int, int, int, int, int, int], expected: tuple[int, int]) -> None:
    assert clamp_pair(*arguments) == expected


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ((9, 2, -1, 8, 1), 4),
        ((9, 2, -1, 1, 1), 0),
        ((1, 2, 7, -1, 1), 4),
        ((3, 2, 8, 8, 1), 3),
        ((9, 0, -1, 8, 1), 9),
        ((9, 2, -1, -1, 1), 9),
    ],
)
def test_single(arguments: tuple[int, int, int, int, int], expected: int) -> None:
    assert clamp_single(*arguments) == expected


def check(config: Mapping[str, object], **of_each: int) -> str | None:
    facts = RoleCapabilities(**of_each)
    return footprint_error(PlannerConfig.model_validate(config), Capabilities(facts, facts))


def test_minimums_that_exceed_the_gpu_budget() -> None:
    assert check({"max_gpu_budget": 7}, num_gpu=4) == (
        "the minimum of 1 prefill + 1 decode takes 8 GPUs, max_gpu_budget is 7: raise it or lower the minimums"
    )
    assert check({"max_gpu_budget": 8}, num_gpu=4) is None
    assert check({"max_gpu_budget": -1, "min_endpoint": 999}, num_gpu=4) is None
    assert check({"max_gpu_budget": 0}) is None, "an unknown cost counts as none"
    assert check({"max_gpu_budget": 4, "mode": "agg"}, num_gpu=4) is None
    assert check({"max_gpu_budget": 4}, num_gpu=4, gpu_cost_per_replica=2) is None


def test_minimums_that_exceed_the_power_limit() -> None:
    power = {"enable_power_awareness": True, "total_gpu_power_limit": 1000}
    assert "draws 1200 W" in (check(power, power_watts_per_replica=600) or "")
    assert check(power, power_watts_per_replica=500) is None
    assert check({"total_gpu_power_limit": 1000}, power_watts_per_replica=600) is None
