"""The configuration model against recorded validations: dumps, minimums, tick base, and place and type of every error."""

import json
from typing import Any

import pytest

from controllers.planner.replay.vectors import call_again
from tests.golden.planner_vectors import vectors


@pytest.mark.parametrize("vector", vectors("config", "PlannerConfig.model_validate"), ids=lambda v: json.dumps(v["in"])[:70])
def test_configuration(vector: dict[str, Any]) -> None:
    assert call_again("PlannerConfig.model_validate", vector["in"], vector["out"]) == vector["out"]
