"""Merging against recorded merges."""

from typing import Any

import pytest

from controllers.planner.merge import Kind, PluginResult, Target, TargetType, merge
from tests.golden.planner_vectors import vectors


def _result(given: dict[str, Any]) -> PluginResult:
    targets = [Target(t["component"], t["replicas"], TargetType(t["type"])) for t in given.get("targets", ())]
    return PluginResult(given["plugin_id"], given["priority"], Kind(given["kind"]), targets, given.get("reason", ""), given["final"])


@pytest.mark.parametrize("vector", vectors("merge", "type_aware_merge"))
def test_merge(vector: dict[str, Any]) -> None:
    given, expected = vector["in"], vector["out"]
    outcome = merge([_result(r) for r in given["results"]], dict(given["baseline"]), set_allowed=given["set_allowed"])
    stopped = outcome.short_circuited
    assert {
        "clamped": [list(clamp) for clamp in outcome.clamped],
        "set_dropped": list(outcome.set_dropped),
        "short_circuit_reason": outcome.short_circuit_reason,
        "short_circuited": stopped,
        "source": None if stopped else outcome.source,
        "targets": None if stopped else [[target.component, target.replicas] for target in outcome.targets],
        "used_final_from": outcome.used_final_from,
    } == expected
