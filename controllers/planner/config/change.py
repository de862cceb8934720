"""Changing minimums while Planner runs: the rules of /v1/min-endpoints, planner.md §23. No HTTP here."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from controllers.planner.budget import footprint_error
from controllers.planner.config.model import PlannerConfig
from controllers.planner.types import Capabilities, Mode

__all__ = ("Refusal", "change_min_endpoints", "min_endpoints")

LEAST: Mapping[str, int] = {"min_endpoint": 0, "prefill_min_endpoint": 1, "decode_min_endpoint": 1}


@dataclass(frozen=True, slots=True)
class Refusal:
    """An HTTP status and what was wrong with the request."""

    status: int
    text: str


def active_fields(config: PlannerConfig) -> tuple[str, ...]:
    """Minimums that have an effect in the mode."""
    own = () if config.mode is Mode.AGG else tuple(f"{role}_min_endpoint" for role in config.roles)
    return ("min_endpoint", *own)


def min_endpoints(config: PlannerConfig) -> dict[str, Any]:
    """The answer to GET, and to a change: mode, and the fields as they are set (null: `min_endpoint` counts)."""
    return {"mode": config.mode.value, **{name: getattr(config, name) for name in active_fields(config)}}


def change_min_endpoints(config: PlannerConfig, body: str | bytes, footprint: Capabilities) -> PlannerConfig | Refusal:
    """The configuration that a PATCH asks for, or why not. `footprint`: what a replica of each role takes.

    Malformed requests are 400, values that cannot be 422; integers are taken strictly (neither true nor 1.0 is one).
    """
    try:
        changes = json.loads(body)
    except (ValueError, RecursionError):
        return Refusal(400, "the body must be JSON")
    if not isinstance(changes, dict):
        return Refusal(400, "the body must be a JSON object")
    if not changes:
        return Refusal(400, f"nothing to change: give at least one of {', '.join(active_fields(config))}")
    if unknown := [str(name) for name in changes if name not in LEAST]:  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType] - checked here
        return Refusal(400, f"unknown field {unknown[0]!r}: known are {', '.join(LEAST)}")
    return _changed(config, changes, footprint)  # pyright: ignore[reportUnknownArgumentType] - checked there


def _changed(config: PlannerConfig, changes: Mapping[str, Any], footprint: Capabilities) -> PlannerConfig | Refusal:
    for name, value in changes.items():
        if not isinstance(value, int) or isinstance(value, bool) or value < LEAST[name]:
            return Refusal(422, f"{name} must be an integer of at least {LEAST[name]}")
        if name not in active_fields(config):
            return Refusal(422, f"{name} has no effect in mode {config.mode}: use {' or '.join(active_fields(config))}")
    changed = config.with_changes(**changes)
    error = footprint_error(changed, footprint)
    return changed if error is None else Refusal(422, error)
