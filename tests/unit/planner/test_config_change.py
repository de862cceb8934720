"""Changing minimums at run time."""

import json
from typing import Any

import pytest

from controllers.planner.config.change import Refusal, change_min_endpoints, min_endpoints
from controllers.planner.config.model import PlannerConfig
from controllers.planner.types import Capabilities, RoleCapabilities

TWO = Capabilities(RoleCapabilities(num_gpu=2, power_watts_per_replica=700), RoleCapabilities(num_gpu=2, power_watts_per_replica=700))


def configured(**settings: Any) -> PlannerConfig:
    return PlannerConfig.model_validate(settings)


@pytest.mark.parametrize(
    "body", ["{", b"\xff", "[]", "1", "null", "{}", '{"max_gpu_budget": 1}', '{"min_endpoint": 1, "x": 1}', "[" * 99999]
)
def test_malformed_request_is_400(body: str | bytes) -> None:
    refusal = change_min_endpoints(configured(), body, TWO)
    assert isinstance(refusal, Refusal)
    assert refusal.status == 400


@pytest.mark.parametrize(
    ("settings", "body"),
    [
        ({}, {"min_endpoint": -1}),
        ({}, {"min_endpoint": None}),
        ({}, {"min_endpoint": True}),
        ({}, {"min_endpoint": 1.0}),
        ({}, {"min_endpoint": "1"}),
        ({}, {"prefill_min_endpoint": 0}),
        ({"mode": "prefill"}, {"decode_min_endpoint": 1}),
        ({"mode": "agg"}, {"decode_min_endpoint": 1}),
        ({"max_gpu_budget": 8}, {"min_endpoint": 3}),
        ({"max_gpu_budget": 0}, {"prefill_min_endpoint": 1}),
        ({"max_gpu_budget": -1, "enable_power_awareness": True, "total_gpu_power_limit": 2000}, {"prefill_min_endpoint": 2}),
    ],
)
def test_value_that_cannot_be_is_422(settings: dict[str, Any], body: dict[str, Any]) -> None:
    refusal = change_min_endpoints(configured(**settings), json.dumps(body), TWO)
    assert isinstance(refusal, Refusal)
    assert refusal.status == 422
    assert next(iter(body)) in refusal.text or "minimum of" in refusal.text


def test_change_is_a_new_configuration() -> None:
    config = configured()
    changed = change_min_endpoints(config, b'{"min_endpoint": 0, "decode_min_endpoint": 3}', TWO)
    assert isinstance(changed, PlannerConfig)
    assert min_endpoints(changed) == {"mode": "disagg", "min_endpoint": 0, "prefill_min_endpoint": None, "decode_min_endpoint": 3}
    assert config.active_minimums() == {"prefill": 1, "decode": 1}


def test_unknown_costs_do_not_refuse() -> None:
    changed = change_min_endpoints(configured(mode="agg"), '{"min_endpoint": 99}', Capabilities())
    assert isinstance(changed, PlannerConfig)
    assert min_endpoints(changed) == {"mode": "agg", "min_endpoint": 99}
