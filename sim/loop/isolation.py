"""What has to differ in libraries while a simulation runs.

anyio keeps tasks and nested cancel scopes in sets, whose order is that of addresses: cancellation would reach them in an order that changes
from process to process. During a run its scopes remember the order of insertion. Threads and real sleep are refused.
"""

import gc
import time
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any, Generic, NoReturn, TypeVar
from unittest import mock

from anyio._backends import _asyncio as backend

from sim.loop.errors import NotSimulatedError

__all__ = ("isolated", "refuse")

T = TypeVar("T")


class _Ordered(dict[T, None], Generic[T]):
    """As much of a set as anyio uses, in order of insertion."""

    def add(self, member: T) -> None:
        self[member] = None

    def discard(self, member: T) -> None:
        self.pop(member, None)

    def remove(self, member: T) -> None:
        del self[member]


class _Scope(backend.CancelScope):
    """A cancel scope that reaches its tasks and its inner scopes in the order in which they came."""

    def __init__(self, *, deadline: float = float("inf"), shield: bool = False) -> None:
        super().__init__(deadline=deadline, shield=shield)
        self._child_scopes: Any = _Ordered[Any]()
        self._tasks: Any = _Ordered[Any]()


def refuse(what: str) -> NoReturn:
    """Raises NotSimulatedError."""
    raise NotSimulatedError(f"{what} cannot be simulated: inject what needs it")


class _NoThread:
    def __init__(self, *_args: object, **_options: object) -> None:
        refuse("anyio.to_thread.run_sync (a thread)")


def _no_sleep(_seconds: float) -> None:
    refuse("time.sleep")


@contextmanager
def isolated() -> Generator[None]:
    """While a simulation runs. The garbage collector rests too: when it runs depends on everything the process has done before, and
    finalizers of asynchronous generators start tasks."""
    collects = gc.isenabled()
    gc.disable()
    try:
        with (
            mock.patch.object(backend, "CancelScope", _Scope),
            mock.patch.object(backend, "WorkerThread", _NoThread),
            mock.patch.object(time, "sleep", _no_sleep),
        ):
            yield
    finally:
        if collects:
            gc.enable()
