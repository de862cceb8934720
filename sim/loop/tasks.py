"""Tasks of a simulation, and the simulated processes to which they belong."""

import asyncio
from collections.abc import Coroutine
from contextvars import Context, ContextVar
from pathlib import PurePath
from typing import Any, TypeVar

__all__ = ("PROCESS", "SimTask", "described")

T = TypeVar("T")

PROCESS: ContextVar[str] = ContextVar("PROCESS", default="")
"""Name of the simulated process that runs; "" outside of all. Inherited by whatever the process starts."""


class SimTask(asyncio.Task[T]):
    """A task with a serial number as its hash, so that sets of tasks have the same order in every run."""

    def __init__(
        self, coro: Coroutine[Any, Any, T], loop: asyncio.AbstractEventLoop, serial: int, name: str, context: Context | None
    ) -> None:
        self.serial = serial
        super().__init__(coro, loop=loop, name=name, context=context)

    def __hash__(self) -> int:
        return self.serial

    def __eq__(self, other: object) -> bool:
        return self is other


def described(task: SimTask[Any]) -> str:
    """One line: the task's name and where it waits, from the outermost to the innermost function of the program."""
    places: list[str] = []
    here: Any = task.get_coro()
    while here is not None:
        code, frame = getattr(here, "cr_code", None), getattr(here, "cr_frame", None)
        if code is not None and frame is not None and "site-packages" not in code.co_filename:
            places.append(f"{code.co_qualname} ({PurePath(code.co_filename).name}:{frame.f_lineno})")
        here = getattr(here, "cr_await", None)
    return f"{task.get_name()}: {' > '.join(places)}"
