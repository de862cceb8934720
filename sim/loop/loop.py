"""The event loop of simulations: no selector, no threads, virtual time."""

import asyncio
import gc
import heapq
from collections import deque
from collections.abc import AsyncGenerator, Callable, Coroutine, Iterable
from contextvars import Context
from random import Random
from typing import Any, NoReturn, TypeVar, cast

from sim.loop.errors import DeadlockError, LivelockError
from sim.loop.isolation import refuse
from sim.loop.tasks import PROCESS, SimTask, described

__all__ = ("SimLoop",)

T = TypeVar("T")

BATCH = 512
"""Callbacks between two looks at the housekeeping."""
COLLECT_EVERY = 400_000
"""Callbacks between two garbage collections."""
STANDSTILL = 2_000_000
"""Callbacks without time passing after which nobody believes any more that it will."""
MANY_CANCELLED = 200


class SimLoop(asyncio.BaseEventLoop):
    """`seed`: decides which of the ready callbacks runs next; None runs them in the order in which they became ready ("calm").

    time() starts at 0.0 and passes only when nothing is ready: it then jumps to the next timer. `failures`: exceptions of callbacks and of
    tasks that nobody awaited. `callbacks`: how many ran.
    """

    def __init__(self, seed: int | None = 0) -> None:
        super().__init__()
        self.failures: list[str] = []
        self.callbacks = 0
        self._time = 0.0
        self._moved_at = 0
        self._collected_at = 0
        self._serial = 0
        self._choose: Callable[[], float] | None = None
        self._ready: Any = deque[asyncio.Handle]()
        self._scheduled: list[asyncio.TimerHandle] = []
        self._timer_cancelled_count = 0
        self._stopping = False
        self._frozen: dict[str, list[asyncio.Handle]] = {}
        if seed is not None:
            self._choose = Random(seed).random  # noqa: S311 - an order, no secret
            self._ready = list[asyncio.Handle]()
        self.set_exception_handler(self._note_failure)

    def time(self) -> float:
        return self._time

    def create_task(self, coro: Any, *, name: object = None, context: Context | None = None) -> asyncio.Task[Any]:
        self._serial += 1
        return SimTask(cast("Coroutine[Any, Any, Any]", coro), self, self._serial, str(name or f"task-{self._serial}"), context)

    @property
    def unfinished(self) -> list[SimTask[Any]]:
        """Tasks that have not ended, in the order in which they were made."""
        return sorted((task for task in asyncio.all_tasks(self) if isinstance(task, SimTask)), key=lambda task: task.serial)

    # processes that stand still

    def freeze(self, process: str) -> None:
        """From now on nothing of the process runs (see PROCESS), until it thaws."""
        self._frozen.setdefault(process, [])

    def thaw(self, process: str) -> None:
        """What became ready in the meantime runs now."""
        self._ready.extend(self._frozen.pop(process, ()))

    # inside

    def _run_once(self) -> None:
        """Up to BATCH callbacks, or a jump of time when none is ready."""
        ready, choose = self._ready, self._choose
        if not ready:
            self._jump()
        count = 0
        while ready and count < BATCH and not self._stopping:
            if choose is None:
                handle = ready.popleft()
            elif (size := len(ready)) > 1:
                index, handle = int(choose() * size), ready.pop()
                if index < size - 1:
                    handle, ready[index] = ready[index], handle
            else:
                handle = ready.pop()
            if handle._cancelled:  # pyright: ignore[reportPrivateUsage] - the loop owns its handles
                continue
            if self._frozen and self._parked(handle):
                continue
            count += 1
            handle._run()  # pyright: ignore[reportPrivateUsage]
        self.callbacks += count
        if self.callbacks - self._moved_at > STANDSTILL:
            raise LivelockError(f"{STANDSTILL} callbacks at {self._time:.3f} s\n{self._waiting()}")
        if self.callbacks - self._collected_at > COLLECT_EVERY:
            self._collected_at = self.callbacks
            gc.collect()

    def _parked(self, handle: asyncio.Handle) -> bool:
        parked = self._frozen.get(cast("Context", handle._context).get(PROCESS, ""))  # pyright: ignore[reportPrivateUsage, reportUnknownMemberType]
        if parked is None:
            return False
        parked.append(handle)
        return True

    def _jump(self) -> None:
        """Moves the time to the next timer and makes ready what is due then."""
        timers = self._scheduled
        if self._timer_cancelled_count > MANY_CANCELLED and 2 * self._timer_cancelled_count > len(timers):
            kept = [timer for timer in timers if not timer.cancelled()]
            heapq.heapify(kept)
            self._scheduled = timers = kept
            self._timer_cancelled_count = 0
        while timers and timers[0].cancelled():
            heapq.heappop(timers)
            self._timer_cancelled_count -= 1
        if not timers:
            if self._stopping:
                return
            raise DeadlockError(f"nothing is ready and no timer runs at {self._time:.3f} s\n{self._waiting()}")
        if timers[0].when() > self._time:
            self._time = timers[0].when()
            self._moved_at = self.callbacks
        while timers and timers[0].when() <= self._time:
            timer = heapq.heappop(timers)
            timer._scheduled = False  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType]
            if timer.cancelled():
                self._timer_cancelled_count -= 1
            else:
                self._ready.append(timer)

    def _waiting(self) -> str:
        return "\n".join(f"  {described(task)}" for task in self.unfinished)

    def _note_failure(self, _loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        error = context.get("exception")
        self.failures.append(f"{context.get('message')}: {type(error).__name__}: {error}" if error else str(context.get("message")))

    def _asyncgen_finalizer_hook(self, agen: AsyncGenerator[Any, Any]) -> None:
        self._asyncgens.discard(agen)  # pyright: ignore[reportUnknownMemberType, reportAttributeAccessIssue]
        if not self.is_closed():
            self.create_task(agen.aclose())

    def _process_events(self, event_list: Iterable[object]) -> None:
        """There is no selector."""

    def _write_to_self(self) -> None:
        """There is no selector to wake."""

    def call_soon_threadsafe(self, callback: Any, *args: Any, context: Context | None = None) -> NoReturn:
        refuse("call_soon_threadsafe (a thread)")

    def run_in_executor(self, executor: Any, func: Any, *args: Any) -> NoReturn:
        refuse("run_in_executor (a thread)")


def _forbid(name: str) -> Callable[..., NoReturn]:
    def method(self: SimLoop, *_args: object, **_options: object) -> NoReturn:
        refuse(f"{name} of the event loop")

    method.__name__ = name
    return method


for _name in (
    *("add_reader", "add_signal_handler", "add_writer", "connect_accepted_socket", "connect_read_pipe", "connect_write_pipe"),
    *("create_connection", "create_datagram_endpoint", "create_server", "create_unix_connection", "create_unix_server", "getaddrinfo"),
    *("getnameinfo", "remove_signal_handler", "sendfile", "sock_accept", "sock_connect", "sock_recv", "sock_recv_into", "sock_sendall"),
    *("start_tls", "subprocess_exec", "subprocess_shell"),
):
    setattr(SimLoop, _name, _forbid(_name))
