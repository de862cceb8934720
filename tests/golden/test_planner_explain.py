"""What `grovekeeper planner explain` says. `GROVEKEEPER_UPDATE=1` writes the files anew; read what changed."""

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from controllers.planner.replay.case import parse_case
from controllers.planner.replay.explain import explained
from tests.unit.planner.replaying import ENGINE, MEASURED, MIXED, SLA, case_text, decodes, idle, line, prefills

FOLDER = Path(__file__).parent / "planner_explain"
TRAFFIC = {"num_req": 6000, "isl": 1000, "osl": 100, "kv_hit_rate": 0.25}
LOAD = {**SLA, "enable_load_scaling": True, "enable_throughput_scaling": False}
READY = {"bootstrap_fpms": MEASURED}
BOTH = {**SLA, "enable_load_scaling": True, "load_predictor": "constant"}
REJECT = {"kind": "reject", "reason": "weekend"}
WATTS = {role: {**ENGINE, "power_watts_per_replica": 1000} for role in ("prefill", "decode")}
BUSY = {"prefill": prefills(20_000), "decode": decodes(120_000)}
WAITING = {"queued_requests": {"num_prefill_requests": 9, "sum_prefill_tokens": 30_000}}
AGG = {"decode": [{"worker_id": "a", "scheduled_requests": {"num_decode_requests": 5, "sum_decode_kv_tokens": 5000}, **WAITING}]}
THRESHOLDS = {"mode": "prefill", "prefill_scale_up_queue_tokens": 4000, "prefill_scale_down_queue_tokens": 10}


def plugin(plugin_id: str, stage: str, *script: Mapping[str, Any], **fields: Any) -> dict[str, Any]:
    return {"plugin_id": plugin_id, "plugin_type": stage, "priority": 5, "script": list(script), **fields}


def override(component: str, replicas: int | None, kind: str = "SET", **fields: Any) -> dict[str, Any]:
    return {"kind": "override", "targets": [{"component": component, "replicas": replicas, "type": kind}], **fields}


class Story(NamedTuple):
    """The last line is explained."""

    config: Mapping[str, Any]
    lines: Sequence[Mapping[str, Any]]
    fields: Mapping[str, Any] = {}


STORIES: Mapping[str, Story] = {
    "easy-up": Story({"max_gpu_budget": 3}, [line(1, 1, BUSY)]),
    "easy-down": Story({"optimization_target": "latency"}, [line(2, 3, {"prefill": prefills(0, 0), "decode": decodes(0, 0, 0)})]),
    "easy-load-prefill": Story({**THRESHOLDS, "optimization_target": "load"}, [line(2, None, {"prefill": prefills(9, 90)})]),
    "held": Story({}, [line(1, 1, BUSY, workers={"stable": False})]),
    "capability-missing": Story({}, [line(1, 1, BUSY)], {"capabilities": {"decode": {}}}),
    "sla-up": Story(LOAD, [line(1, 2, {"prefill": prefills(20_000), "decode": decodes(100, 99_000)}, traffic=TRAFFIC)], READY),
    "sla-refused": Story(LOAD, [line(2, 1, {"prefill": prefills(700, 700), "decode": decodes(9)})], READY),
    "sla-not-ready": Story(LOAD, [line(1, 1, {"prefill": prefills(9), "decode": decodes(9)})]),
    "both": Story(BOTH, [idle(3, 3, traffic=TRAFFIC)] * 6, READY),
    "throughput-step": Story(
        {**SLA, "load_predictor": "constant", "max_throughput_scaling_replicas": 2},
        [line(1, 1, traffic=TRAFFIC)] * 6,
        READY,
    ),
    "no-traffic": Story({**SLA, "load_predictor": "constant"}, [line(1, 1)] * 6, READY),
    "agg": Story({**LOAD, "mode": "agg"}, [line(None, 1, AGG)], {"bootstrap_fpms": {"agg": MIXED}}),
    "floor": Story({"min_endpoint": 3, "max_gpu_budget": 8}, [line(1, 5)]),
    "power": Story({"enable_power_awareness": True, "total_gpu_power_limit": 3000}, [line(1, 1, BUSY)], {"capabilities": WATTS}),
    "plugins": Story(
        {"max_gpu_budget": 9},
        [line(2, 2, {"prefill": prefills(5000, 5000), "decode": decodes(70_000, 70_000)})] * 2,
        {
            "scripted_plugins": [
                plugin(
                    "floor",
                    "propose",
                    override("prefill", 4, "AT_LEAST", reason="weekend"),
                    hold_policy="HOLD_LAST",
                    execution_interval_seconds=5,
                ),
                plugin("slow", "propose", override("decode", 5), hold_policy="HOLD_LAST", execution_interval_seconds=9),
                plugin("broken", "propose", {"kind": "raise", "reason": "down"}),
                plugin("empty", "reconcile", {"kind": "empty"}),
                plugin("cap", "constrain", override("decode", 3, "AT_MOST")),
                plugin("needy", "constrain", {"kind": "accept"}, requires_produced_fields=["predictions"]),
            ]
        },
    ),
    "rejected": Story({}, [line(1, 1, BUSY)], {"scripted_plugins": [plugin("freeze", "constrain", REJECT)]}),
    "foreseen": Story(
        {**SLA, "load_predictor": "constant"},
        [line(1, 1, traffic=TRAFFIC)] * 6,
        {
            "bootstrap_fpms": MEASURED,
            "scripted_plugins": [
                plugin("seer", "predict", {"kind": "predict", "num_req": 9000, "reason": "sale", "final": True}),
                plugin("blind", "predict", {"kind": "raise"}, priority=-3),
            ],
        },
    ),
    "taken-back": Story(
        {"pending_aware_scale_down": True},
        [line({"active": 1, "expected": 3}, {"active": 1, "expected": 1}, {"prefill": prefills(0), "decode": decodes(70_000)})],
    ),
    "nothing-known": Story({}, [{}]),
}


def text_of(story: Story) -> str:
    case = parse_case(case_text(story.config, **story.fields), {})
    (text,) = explained(case, [json.dumps(each) for each in story.lines], len(story.lines) - 1)
    return text + "\n"


@pytest.mark.parametrize("name", STORIES)
def test_text(name: str) -> None:
    path = FOLDER / f"{name}.txt"
    text = text_of(STORIES[name])
    if os.environ.get("GROVEKEEPER_UPDATE") == "1":
        path.write_text(text, encoding="utf-8")
    assert text == path.read_text(encoding="utf-8")
    assert text == text_of(STORIES[name])


def test_every_file_has_a_story() -> None:
    assert {path.stem for path in FOLDER.glob("*.txt")} == set(STORIES)


def test_no_such_tick() -> None:
    assert list(explained(parse_case(case_text({}), {}), ["{}"], 1)) == []
