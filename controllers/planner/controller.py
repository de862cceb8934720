"""Ticks of Planner while it runs: plugins that take their time, and fits beside the event loop. Source: planner.md §4, §24."""

import asyncio
from collections.abc import Callable
from concurrent.futures import Executor

from controllers.planner.config.model import PlannerConfig
from controllers.planner.engine import PlannerEngine, TickResult
from controllers.planner.plugins.runner import Caller, run_async
from controllers.planner.predict.traffic import TrafficFit, TrafficFitted, run_traffic_fit
from controllers.planner.types import Capabilities, ScheduledTick, TickInput

__all__ = ("PATIENCE_SHARE", "BackgroundFits", "LiveEngine")

PATIENCE_SHARE = 0.1
"""Of the load interval, how long a tick waits for a fit before it goes on without a forecast."""


class BackgroundFits:
    """One fit at a time in an executor. A fit that nobody could wait for goes on, and its result is there for who asks next."""

    def __init__(self, executor: Executor | None, patience_s: float) -> None:
        """executor None: threads of the event loop."""
        self._executor = executor
        self._patience_s = patience_s
        self._running: tuple[TrafficFit, asyncio.Future[TrafficFitted]] | None = None

    async def fitted(self, fit: TrafficFit) -> TrafficFitted | None:
        """None: not finished in time; ask again with the same fit."""
        if self._running is None or self._running[0] is not fit:
            self._running = fit, asyncio.get_running_loop().run_in_executor(self._executor, run_traffic_fit, fit)
        future = self._running[1]
        # Not `wait_for`, which would cancel it.
        await asyncio.wait((future,), timeout=self._patience_s)
        if not future.done():
            return None
        self._running = None
        try:
            return future.result()
        except Exception as error:  # A worker process that died, or a bug of a package: a failed forecast, not the end of scaling.
            return TrafficFitted((), f"{type(error).__name__}: {error!s:.200}")


class LiveEngine:
    """Ticks one after another, all in one event loop."""

    def __init__(
        self,
        config: PlannerConfig,
        capabilities: Capabilities,
        clock: Callable[[], float],
        caller: Caller,
        executor: Executor | None = None,
    ) -> None:
        """clock: seconds of the monotonic clock. executor: for fits. ValueError as `PlannerEngine`."""
        patience_s = PATIENCE_SHARE * config.load_adjustment_interval_seconds
        self.engine = PlannerEngine(config, capabilities, clock(), BackgroundFits(executor, patience_s).fitted)
        self._clock = clock
        self._caller = caller

    def initial_tick(self, start_s: float) -> ScheduledTick:
        """start_s: epoch time."""
        return self.engine.initial_tick(start_s, self._clock())

    async def tick(self, tick: ScheduledTick, given: TickInput) -> TickResult:
        """As `PlannerEngine.tick`, for all plugins, and cut after `tick_max_duration_seconds`."""
        engine = self.engine
        opened = engine.open(tick, given, self._clock())
        limit_s = engine.config.scheduling.tick_max_duration_seconds
        outcome = await run_async(opened.context, engine.registry, tick.at_monotonic_s, caller=self._caller, tick_max_duration_s=limit_s)
        return engine.close(opened, outcome)
