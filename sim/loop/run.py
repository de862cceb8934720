"""Runs one simulation from beginning to end."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from sim.loop.errors import LeakedTasksError, UnhandledError
from sim.loop.isolation import isolated
from sim.loop.loop import SimLoop
from sim.loop.tasks import described

__all__ = ("run", "running")

T = TypeVar("T")


def run(main: Callable[[], Coroutine[Any, Any, T]], seed: int | None = 0) -> T:
    """What `main()` returns, run on a SimLoop of its own. Not to be called while another event loop runs.

    Raises what main raises; DeadlockError or LivelockError; LeakedTasksError when main leaves tasks behind; UnhandledError when something
    that nobody awaits has failed.
    """
    loop = SimLoop(seed)
    with isolated():
        try:
            result = loop.run_until_complete(main())
            if leaked := loop.unfinished:
                raise LeakedTasksError("left behind:\n" + "\n".join(f"  {described(task)}" for task in leaked))
        finally:
            _close(loop)
    if loop.failures:
        raise UnhandledError("; ".join(loop.failures))
    return result


def running() -> SimLoop:
    """The loop of the simulation that runs. Raises RuntimeError outside of one."""
    loop = asyncio.get_running_loop()
    if not isinstance(loop, SimLoop):
        raise RuntimeError("not in a simulation")
    return loop


def _close(loop: SimLoop) -> None:
    """Ends all tasks, whatever state a failure has left them in."""
    try:
        tasks = loop.unfinished
        for task in tasks:
            task.cancel()
        if tasks:
            loop.run_until_complete(asyncio.gather(*tasks, return_exceptions=True))
        loop.run_until_complete(loop.shutdown_asyncgens())
    finally:
        loop.close()
