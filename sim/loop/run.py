"""Runs a simulation: in one go, or step by step from a program that waits for nothing itself."""

import asyncio
from collections.abc import Callable, Coroutine
from contextlib import ExitStack
from types import TracebackType
from typing import Any, Self, TypeVar

from sim.loop.errors import LeakedTasksError, UnhandledError
from sim.loop.isolation import isolated
from sim.loop.loop import SimLoop
from sim.loop.tasks import described

__all__ = ("Simulation", "run", "running")

T = TypeVar("T")


class Simulation:
    """A SimLoop that runs only while `do` does. Use as a context manager, not while another event loop runs.

    Leaving it raises LeakedTasksError when tasks are left, and UnhandledError when something that nobody awaits has failed; when the body
    has failed, that goes first.
    """

    def __init__(self, seed: int | None = 0) -> None:
        self.loop = SimLoop(seed)
        self._isolation = ExitStack()

    def __enter__(self) -> Self:
        self._isolation.enter_context(isolated())
        return self

    def do(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Runs everything until the coroutine has ended, and returns its result."""
        return self.loop.run_until_complete(coroutine)

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        leaked = [described(task) for task in self.loop.unfinished]
        try:
            self._end()
        finally:
            self._isolation.close()
        if error is not None:
            return
        if leaked:
            raise LeakedTasksError("left behind:\n" + "\n".join(f"  {task}" for task in leaked))
        if self.loop.failures:
            raise UnhandledError("; ".join(self.loop.failures))

    def _end(self) -> None:
        """Ends all tasks, whatever state a failure has left them in."""
        try:
            tasks = self.loop.unfinished
            for task in tasks:
                task.cancel()
            if tasks:
                self.loop.run_until_complete(asyncio.gather(*tasks, return_exceptions=True))
            self.loop.run_until_complete(self.loop.shutdown_asyncgens())
        finally:
            self.loop.close()


def run(main: Callable[[], Coroutine[Any, Any, T]], seed: int | None = 0) -> T:
    """What `main()` returns, run on a SimLoop of its own. Raises what main raises, DeadlockError, LivelockError, and as Simulation."""
    with Simulation(seed) as simulation:
        return simulation.do(main())


def running() -> SimLoop:
    """The loop of the simulation that runs. Raises RuntimeError outside of one."""
    loop = asyncio.get_running_loop()
    if not isinstance(loop, SimLoop):
        raise RuntimeError("not in a simulation")
    return loop
