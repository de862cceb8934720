"""Runs the pipeline with plugins that may take their time. Source: planner.md §5, §9.

Built-in plugins are called directly, coroutines of user plugins as tasks, their plain functions in threads, all others over gRPC.
"""

import asyncio
import contextlib
import threading
from collections.abc import Callable, Coroutine, Sequence
from inspect import iscoroutine, iscoroutinefunction
from typing import Protocol, TypeAlias, cast

from controllers.planner.pipeline import PipelineOutcome, Run, TickTimeout, run
from controllers.planner.plugins.inprocess import attribute_of, failure_of, method_of
from controllers.planner.plugins.records import Answer, Call, Context, Failure, FailureKind, Plugin, PredictResponse, StageResponse
from controllers.planner.plugins.registry import Registry

__all__ = ("Caller", "Remote", "run_async")

Result: TypeAlias = PredictResponse | StageResponse | Failure


class Remote(Protocol):
    """Reaches plugins of other processes; see `transport.GrpcTransport`."""

    async def call(self, call: Call) -> Result: ...
    async def bootstrap(self, plugin: Plugin) -> Failure | None: ...
    async def close(self, plugin: Plugin) -> None: ...
    async def aclose(self) -> None: ...


class Caller:
    """Calls plugins, each no longer than `timeout_s`. A plugin whose last call goes on for ever is not called again before that ends.

    clock: seconds of the monotonic clock. remote None: only plugins of this process can be called.
    """

    def __init__(self, timeout_s: float, clock: Callable[[], float], remote: Remote | None = None) -> None:
        self.timeout_s = timeout_s
        self.clock = clock
        self.remote = remote
        self._busy: set[str] = set()

    async def call(self, call: Call) -> Answer:
        """Never raises for what a plugin does."""
        started = self.clock()
        result = await self._result(call)
        ended = self.clock()
        return Answer(result, ended, ended - started)

    async def bootstrap(self, plugin: Plugin) -> Failure | None:
        """Tells a plugin that it is about to be called."""
        if not plugin.in_process:
            return _unreachable(plugin) if self.remote is None else await self.remote.bootstrap(plugin)
        method = attribute_of(plugin, "bootstrap")
        if isinstance(method, Failure):
            return method
        answer = await self._bounded(plugin, cast("Callable[[], object]", method))
        return answer if isinstance(answer, Failure) else None

    async def close(self, plugin: Plugin) -> None:
        """Ends what is open to a plugin that was removed."""
        if self.remote is not None:
            await self.remote.close(plugin)

    async def aclose(self) -> None:
        """Ends all that is open."""
        if self.remote is not None:
            await self.remote.aclose()

    async def _result(self, call: Call) -> Result:
        plugin = call.plugin
        if not plugin.in_process:
            return _unreachable(plugin) if self.remote is None else await self.remote.call(call)
        method = method_of(call)
        if isinstance(method, Failure):
            return method
        found = method
        response = await self._bounded(plugin, lambda: found(call.request), is_coroutine=iscoroutinefunction(method))
        # Of which kind it really is, the pipeline checks.
        return cast("Result", response)

    async def _bounded(self, plugin: Plugin, function: Callable[[], object], *, is_coroutine: bool = False) -> object:
        if plugin.plugin_id in self._busy:
            return Failure(FailureKind.TIMEOUT, "an earlier call has not ended yet")
        try:
            response = function() if plugin.is_builtin or is_coroutine else await self._wait(plugin, _in_thread(function))
            if iscoroutine(response):
                response = await self._wait(plugin, asyncio.ensure_future(_staying(cast("Coroutine[object, None, object]", response))))
        except Exception as error:  # A plugin's error is its own.
            return failure_of(error)
        return response

    async def _wait(self, plugin: Plugin, future: asyncio.Future[object]) -> object:
        """Does not wait for one that will not be cancelled."""
        self._busy.add(plugin.plugin_id)
        future.add_done_callback(lambda done: self._ended(plugin, done))
        try:
            await asyncio.wait((future,), timeout=self.timeout_s)
            if not future.done():
                return Failure(FailureKind.TIMEOUT, f"no answer within {self.timeout_s:g} s")
            if future.cancelled():
                return Failure(FailureKind.CALL, "the plugin cancelled its own call")
            return future.result()
        finally:
            # A thread cannot be stopped; its plugin stays busy.
            if isinstance(future, asyncio.Task):
                future.cancel()

    def _ended(self, plugin: Plugin, future: asyncio.Future[object]) -> None:
        self._busy.discard(plugin.plugin_id)
        if not future.cancelled():
            # Looked at, so that asyncio does not complain of one that nobody waited for.
            future.exception()


async def run_async(
    context: Context,
    registry: Registry,
    now_s: float,
    *,
    caller: Caller,
    tick_max_duration_s: float,
) -> PipelineOutcome:
    """As `pipeline.run`. A run that takes longer than `tick_max_duration_s` is cut; calls under way are cancelled."""
    steps = run(context, registry, now_s, clock_s=caller.clock())
    try:
        async with asyncio.timeout(tick_max_duration_s):
            calls, outcome = _advance(lambda: next(steps))
            while outcome is None:
                answers = await _answers(caller, calls)
                calls, outcome = _advance(lambda: steps.send(answers))  # noqa: B023 - called at once
        return outcome
    except TimeoutError:
        return _cut(steps, tick_max_duration_s)
    finally:
        steps.close()


def _advance(step: Callable[[], Sequence[Call]]) -> tuple[Sequence[Call], PipelineOutcome | None]:
    """The next calls, or with none the outcome."""
    try:
        return step(), None
    except StopIteration as done:
        outcome: PipelineOutcome = done.value
        return (), outcome


def _cut(steps: Run, limit_s: float) -> PipelineOutcome:
    _, outcome = _advance(lambda: steps.throw(TickTimeout(limit_s)))
    if outcome is None:
        raise RuntimeError("the pipeline goes on after it was cut")
    return outcome


async def _answers(caller: Caller, calls: Sequence[Call]) -> list[Answer]:
    if len(calls) == 1:
        return [await caller.call(calls[0])]
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(caller.call(call)) for call in calls]
    return [task.result() for task in tasks]


async def _staying(coroutine: Coroutine[object, None, object]) -> object:
    """What a plugin may not do is end the event loop."""
    try:
        return await coroutine
    except SystemExit as error:
        return failure_of(error)


def _unreachable(plugin: Plugin) -> Failure:
    return Failure(FailureKind.CONNECTION, f"{plugin.endpoint}: nothing here reaches other processes")


def _in_thread(function: Callable[[], object]) -> asyncio.Future[object]:
    """A thread that does not keep the process from ending, unlike those of asyncio.to_thread."""
    loop = asyncio.get_running_loop()
    future: asyncio.Future[object] = loop.create_future()

    def work() -> None:
        try:
            response = function()
        except BaseException as error:  # Of a plugin, and there is nobody above this thread.
            response = failure_of(error)
        # A loop that was closed meanwhile has nobody who waits.
        with contextlib.suppress(RuntimeError):
            loop.call_soon_threadsafe(future.set_result, response)

    threading.Thread(target=work, name="plugin", daemon=True).start()
    return future
