"""The due rule, and paths into the context."""

import pytest

from controllers.planner.fpm import Fpm
from controllers.planner.plugins.records import Context, Observations, Plugin, Prediction, Proposal
from controllers.planner.plugins.schedule import active_set, is_due, resolve
from controllers.planner.types import FpmObservations, TrafficObservation, WorkerCounts
from tests.unit.planner.planner_plugins import context


def plugin(**changes: object) -> Plugin:
    return Plugin(**({"plugin_id": "p", "stage": "propose", "priority": 1, "endpoint": "inproc://p", "registered_at": 100.0} | changes))  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize(
    ("changes", "now", "due"),
    [
        ({}, 0.0, True),
        ({"interval_s": -1.0}, 100.0, True),
        ({"interval_s": 10.0}, 109.999, False),
        ({"interval_s": 10.0}, 110.0, True),
        # A success moves the anchor, also one before the registration.
        ({"interval_s": 10.0, "last_call_at": 105.0}, 110.0, False),
        ({"interval_s": 10.0, "last_call_at": 105.0}, 115.0, True),
        ({"interval_s": 10.0, "last_call_at": 0.0}, 10.0, True),
        # No tolerance: 0.1 three times is a little more than 0.3, and 0.3 - 0.1 a little less than 0.2.
        ({"interval_s": 0.2, "registered_at": 0.1}, 0.3, False),
        ({"interval_s": float("nan")}, 1e9, False),
    ],
)
def test_due(changes: dict[str, object], now: float, *, due: bool) -> None:
    assert is_due(plugin(**changes), now) is due


def test_other_stages_disabled_plugins_and_open_circuits_are_left_out_without_a_word() -> None:
    opened = plugin(plugin_id="open", interval_s=50.0)
    for _ in range(5):
        opened.breaker.failed(100.0)
    events: list = []
    found = active_set([plugin(stage="constrain"), plugin(enabled=False), opened], "propose", context(), 129.9, 129.9, events)
    assert (found.due, found.inherited, events) == ([], [], [])
    assert active_set([opened], "propose", context(), 150.0, 130.0, events).due == [opened]


SEEN = Context(
    observations=Observations(
        TrafficObservation(5.0, 0.0, 1.0, 2.0),
        FpmObservations(prefill={("w", 0): Fpm()}),
        WorkerCounts(ready_num_prefill=0),
    ),
    predictions=Prediction(predicted_isl=0.0),
    proposal=Proposal(),
)


@pytest.mark.parametrize(
    "path",
    [
        *("observations", "observations.traffic", "observations.traffic.num_req", "observations.fpm", "observations.fpm.prefill_engines"),
        *("observations.fpm.decode_engines", "observations.workers", "observations.workers.ready_prefill", "predictions"),
        *("observations.workers.decode_scaling_in_progress", "predictions.predicted_isl", "predictions.source", "proposal.targets"),
    ],
)
def test_there(path: str) -> None:
    assert resolve(SEEN, path) is not None


@pytest.mark.parametrize(
    "path",
    [
        *("", ".", "constrained", "constrained.targets", "observations.traffic.kv_hit_rate", "observations.workers.ready_decode"),
        *("observations.workers.ready_num_prefill", "predictions.predicted_osl", "predictions.__class__", "predictions.filled_from"),
        *("observations.fpm.prefill", "observations.fpm.prefill_engines.w", "request_id.upper", "nothing", "observations..traffic"),
    ],
)
def test_not_there(path: str) -> None:
    assert resolve(SEEN, path) is None
