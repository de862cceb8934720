"""Ticks while Planner runs: the same decisions as in a replay, and a slow fit that holds nothing up."""

import asyncio
import json
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from controllers.planner import controller
from controllers.planner.controller import BackgroundFits, LiveEngine
from controllers.planner.plugins.records import Prediction, PredictResponse, StageRequest
from controllers.planner.plugins.runner import Caller
from controllers.planner.predict.traffic import TrafficFit, TrafficFitted, run_traffic_fit
from controllers.planner.replay.case import Case, parse_case, parse_line
from controllers.planner.types import TickDiagnostics
from tests.unit.planner.replaying import MEASURED, SLA, case_text, idle, started, ticks

CONFIG = {**SLA, "enable_load_scaling": True, "load_predictor": "arima"}


class Clock:
    def __init__(self) -> None:
        self.now_s = 0.0

    def __call__(self) -> float:
        return self.now_s


class Live:
    """A live engine that lives through lines of a trace, each at its time."""

    def __init__(self, executor: ThreadPoolExecutor | None = None) -> None:
        case: Case = parse_case(case_text(CONFIG, bootstrap_fpms=MEASURED), {})
        self.clock = Clock()
        self.live = LiveEngine(case.config, case.capabilities, self.clock, Caller(5.0, self.clock), executor)
        for role, fpms in case.bootstrap.items():
            self.live.engine.bootstrap(role, fpms)
        self.tick = self.live.initial_tick(0.0)

    async def through(self, lines: Sequence[dict[str, Any]]) -> list[TickDiagnostics]:
        found: list[TickDiagnostics] = []
        for each in lines:
            self.clock.now_s = self.tick.at_monotonic_s
            line = parse_line(json.dumps(each))
            result = await self.live.tick(self.tick, line.given(self.tick, self.tick.at_s, self.live.engine.config))
            self.tick = result.effects.next_tick
            found.append(result.effects.diagnostics)
        return found


def windows(count: int) -> list[dict[str, Any]]:
    """Lines over so many windows of 60 s."""
    return [idle(2, 2, traffic={"num_req": 500 + 90 * (i // 6 % 7), "isl": 900 + i, "osl": 90 + i % 5}) for i in range(6 * count)]


async def test_decides_as_a_replay_does(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(controller, "PATIENCE_SHARE", 2.0)
    lines = windows(8)
    live = await Live().through(lines)
    replayed = [played.result.effects.diagnostics for played in ticks(started(CONFIG, bootstrap_fpms=MEASURED), lines)]
    assert live == replayed
    assert sum(found.throughput_decision_reason == "set_lower_bound" for found in live) == 8


@pytest.fixture(name="gate")
def _gate(monkeypatch: pytest.MonkeyPatch) -> threading.Event:
    """Fits wait for it in their thread."""
    gate = threading.Event()

    def waits(fit: TrafficFit) -> TrafficFitted:
        assert gate.wait(10)
        return run_traffic_fit(fit)

    monkeypatch.setattr(controller, "run_traffic_fit", waits)
    monkeypatch.setattr(controller, "PATIENCE_SHARE", 0.001)
    return gate


async def test_load_scaling_goes_on_while_a_fit_takes_long(gate: threading.Event) -> None:
    lines = windows(8)
    with ThreadPoolExecutor(1) as executor:
        planner = Live(executor)
        try:
            await planner.through(lines[:29])
            waiting = await planner.through(lines[29:32])
            # A forecast of the fifth window is the first that needs a fit.
            assert [found.throughput_decision_reason for found in waiting] == ["predict_pending", None, None]
            assert all(found.load_decision_reason for found in waiting)
            assert planner.tick.need_traffic_metrics
            gate.set()
            fits = planner.live.engine.registry.get("builtin_load_predict")
            assert fits is not None
            # The only thread is free again once the fit is done.
            await asyncio.get_running_loop().run_in_executor(executor, gate.is_set)
            late = await planner.through(lines[32:33])
            assert late[0].throughput_decision_reason == "set_lower_bound"
            assert late[0].predicted_num_req
            # Intervals count from when the forecast was asked for, not from when it came.
            assert fits.last_call_at == 300.0
            (proposing,) = [p for p in planner.live.engine.registry.plugins if p.plugin_id == "builtin_throughput_propose"]
            assert proposing.last_call_at == 300.0
            assert not planner.tick.need_traffic_metrics
        finally:
            gate.set()


async def test_a_window_is_observed_once_however_often_its_forecast_is_asked_for(gate: threading.Event) -> None:
    lines = windows(8)
    with ThreadPoolExecutor(1) as executor:
        planner = Live(executor)
        try:
            await planner.through(lines[:33])
            traffic = planner.live.engine.scaling.traffic
            assert traffic._requests._points == 5  # pyright: ignore[reportPrivateUsage]
        finally:
            gate.set()


async def test_a_fit_that_fails_is_a_failed_forecast(monkeypatch: pytest.MonkeyPatch) -> None:
    def dies(fit: TrafficFit) -> TrafficFitted:
        raise MemoryError("no room")

    monkeypatch.setattr(controller, "run_traffic_fit", dies)
    found = await Live().through(windows(5))
    assert found[29].throughput_decision_reason == "predict_failed"
    assert found[29].load_decision_reason is not None


async def test_a_fit_that_nobody_waits_for_is_not_started_again() -> None:
    started_fits: list[TrafficFit] = []

    class Slow(ThreadPoolExecutor):
        def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> Any:
            started_fits.append(args[0])
            return super().submit(fn, *args, **kwargs)

    fit = TrafficFit((None,))
    with Slow(1) as executor:
        fits = BackgroundFits(executor, 5.0)
        assert await fits.fitted(fit) == TrafficFitted((None,))
        assert await fits.fitted(fit) == TrafficFitted((None,))
    assert len(started_fits) == 2


async def test_plugins_that_wait_are_awaited() -> None:
    class Seer:
        async def predict(self, request: StageRequest) -> PredictResponse:
            await asyncio.sleep(0)
            return PredictResponse(Prediction(1.0, 2.0, 3.0))

    planner = Live()
    planner.live.engine.registry.register_internal("seer", "predict", 9, Seer(), 0.0, version="user-in-process")
    (found,) = await planner.through(windows(1)[:1])
    assert (found.predicted_num_req, found.predicted_isl, found.predicted_osl) == (1.0, 2.0, 3.0)
