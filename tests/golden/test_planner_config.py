"""The configuration model against recorded validations: dumps, minimums, tick base, and place and type of every error."""

import json
from typing import Any

import pytest
from pydantic import ValidationError

from controllers.planner.config.model import PlannerConfig
from tests.golden.planner_vectors import vectors

# Not in the version that was recorded.
LATER = ("max_throughput_scaling_replicas", "pending_aware_scale_down")


def _validated(given: dict[str, Any]) -> dict[str, Any]:
    try:
        config = PlannerConfig.model_validate(given)
    except ValidationError as error:
        errors = [{"loc": [str(part) for part in item["loc"]], "type": item["type"]} for item in error.errors()]
        return {"ok": False, "errors": errors}
    dump = config.model_dump(mode="json")
    minimums = config.active_minimums()
    return {
        "ok": True,
        "config": {name: value for name, value in dump.items() if name not in LATER},
        "active_min_endpoints": [minimums.get("prefill"), minimums.get("decode")],
        "scale_interval_seconds": config.scheduling.scale_interval_seconds,
    }


@pytest.mark.parametrize("vector", vectors("config", "PlannerConfig.model_validate"), ids=lambda v: json.dumps(v["in"])[:70])
def test_configuration(vector: dict[str, Any]) -> None:
    assert _validated(vector["in"]) == vector["out"]
