"""GPU and power budgets against recorded calls."""

from typing import Any

import pytest

from controllers.planner.budget import bounds_for_total, clamp_pair, clamp_single
from controllers.planner.power import PowerLoad, PowerReason, apply_power_budget
from tests.golden.planner_vectors import vectors


@pytest.mark.parametrize("vector", vectors("budget", "bounds_for_total"))
def test_bounds(vector: dict[str, Any]) -> None:
    assert list(bounds_for_total(**vector["in"])) == vector["out"]


@pytest.mark.parametrize("vector", vectors("budget", "proportional_clamp_pair"))
def test_pair(vector: dict[str, Any]) -> None:
    given = dict(vector["in"])
    least = given.pop("prefill_min_endpoint"), given.pop("decode_min_endpoint")
    assert list(clamp_pair(**given, prefill_min=least[0], decode_min=least[1])) == vector["out"]


@pytest.mark.parametrize("vector", vectors("budget", "proportional_clamp_single"))
def test_single(vector: dict[str, Any]) -> None:
    assert clamp_single(**vector["in"]) == vector["out"]


@pytest.mark.parametrize("vector", vectors("budget", "apply_power_budget"))
def test_power(vector: dict[str, Any]) -> None:
    given = vector["in"]
    least_p, least_d = given["prefill_min_endpoint"], given["decode_min_endpoint"]
    verdict = apply_power_budget(
        PowerLoad(given["proposed_p"], given["current_p"], given["p_watts"], least_p),
        PowerLoad(given["proposed_d"], given["current_d"], given["d_watts"], least_p if least_d is None else least_d),
        given["total_budget"],
    )
    infeasible = verdict.reason is PowerReason.MINIMUM_INFEASIBLE
    assert ("RuntimeError" if infeasible else list(verdict)) == vector["out"]
