"""Plugins of this process that try to end it, or fail before they are called."""

import json
import time
from typing import Any

import pytest

from cli.main import main
from controllers.planner.pipeline import run_sync
from controllers.planner.plugins.configured import warm
from controllers.planner.plugins.records import FailureKind, StageRequest
from controllers.planner.plugins.runner import Caller, run_async
from controllers.planner.types import TrafficObservation
from tests.unit.planner.planner_plugins import context, registry
from tests.unit.planner.replaying import case_text, idle


class Ending:
    def propose(self, _request: StageRequest) -> None:
        raise SystemExit(3)


class EndingLater:
    async def propose(self, _request: StageRequest) -> None:
        raise SystemExit(3)


class Hidden:
    """Fails when its methods are looked for."""

    def __getattr__(self, name: str) -> Any:
        raise OSError(f"no {name}")


@pytest.mark.parametrize(("kind", "problem"), [(Ending, "SystemExit: 3"), (EndingLater, "SystemExit: 3"), (Hidden, "OSError: no propose")])
async def test_nothing_ends_a_tick(kind: type, problem: str) -> None:
    made = registry()
    made.register_internal("p", "propose", 5, kind(), 0.0, version="user-in-process")
    wanted = (f"plugin p failed in propose: call: {problem}",)
    assert (await run_async(context(), made, 5.0, caller=Caller(5.0, time.monotonic), tick_max_duration_s=10)).notes == wanted
    assert run_sync(context(), made, 10.0, clock_s=10.0).notes == wanted


async def test_nothing_ends_startup() -> None:
    made = registry()
    plugin = made.register_internal("p", "propose", 5, Hidden(), 0.0, version="user-in-process")
    found = await Caller(5.0, time.monotonic).bootstrap(plugin)
    assert found is not None
    assert (found.kind, found.message) == (FailureKind.CALL, "OSError: no bootstrap")
    assert warm(made, [TrafficObservation(5.0, 1.0, 1.0, 1.0)]) == ["plugin 'p' could not be warmed up: OSError: no warm_from_observations"]


class Silent:
    def propose(self, _request: StageRequest) -> None:
        """Answers nothing at all."""


def test_explain_says_of_nonsense_that_it_failed(tmp_path: Any, capsys: pytest.CaptureFixture[str]) -> None:
    entry = {"module": __name__, "class": "Silent", "plugin_id": "p", "plugin_type": "propose", "priority": 1}
    case, trace = tmp_path / "case.json", tmp_path / "trace.jsonl"
    case.write_text(case_text({"plugin_registration": {"in_process_plugins": [entry]}}))
    trace.write_text(json.dumps(idle(1, 1)))
    assert main(["planner", "explain", str(case), str(trace), "--tick", "0"]) == 0
    assert "p (priority 1): failed, serialization: propose answers StageResponse, not NoneType" in capsys.readouterr().out
