"""GPU and power budgets against recorded calls."""

from typing import Any

import pytest

from controllers.planner.replay.vectors import call_again
from tests.golden.planner_vectors import vectors

FUNCTIONS = ("bounds_for_total", "proportional_clamp_pair", "proportional_clamp_single", "apply_power_budget")


@pytest.mark.parametrize(("function", "vector"), [(function, vector) for function in FUNCTIONS for vector in vectors("budget", function)])
def test_budget(function: str, vector: dict[str, Any]) -> None:
    assert call_again(function, vector["in"], vector["out"]) == vector["out"]
