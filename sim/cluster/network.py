"""Between our processes and the API server: every request takes a little time each way, and meets the faults of the desk.

What is under way belongs to no process: a request that has left arrives even when its sender dies or stands still.
"""

import asyncio
from collections.abc import Callable, Coroutine, Mapping
from contextvars import copy_context
from dataclasses import dataclass, field, replace
from random import Random
from typing import Any, Protocol, TypeAlias

import anyio
import msgspec

from controllers.runtime.errors import TransportError, UnknownOutcome
from sim.apiserver.requests import Answer, Request, Stream
from sim.apiserver.storage import Storage
from sim.cluster.calls import CallRecord
from sim.faults.desk import CallFaults, FaultDesk
from sim.faults.plan import Fault, FaultKind
from sim.loop.tasks import PROCESS

__all__ = ("ApiHost", "Network", "Reply")

LATENCY_S = (0.0004, 0.003)
CONNECT_S = 0.002
REFUSALS = {
    FaultKind.CONFLICT: (409, "Conflict", "the object has been modified; please apply your changes to the latest version and try again"),
    FaultKind.THROTTLE: (429, "TooManyRequests", "too many requests, please try again later"),
    FaultKind.BROKEN: (500, "InternalError", "Internal error occurred: fault"),
    FaultKind.UNAVAILABLE: (503, "ServiceUnavailable", "the server is currently unable to handle the request"),
}

Reply: TypeAlias = Answer | Stream


class ApiHost(Protocol):
    """The part of ApiServer that is used here."""

    storage: Storage

    async def handle(self, request: Request) -> Reply: ...


@dataclass(slots=True, eq=False)
class _Flight:
    """A request under way. `back` gets the reply, or why there is none."""

    record: CallRecord
    request: Request
    back: asyncio.Future[Reply]
    faults: CallFaults


@dataclass(slots=True)
class Network:
    """`crash(process, life, fault)`: told when a process has to die. `sent` and `done`: told of each request when it leaves, and when the
    server or a fault has answered it. `felt`: told when a process has seen the last of what a fault did to its request.
    """

    server: ApiHost
    desk: FaultDesk
    rng: Random
    crash: Callable[[str, int, Fault], None]
    sent: Callable[[CallRecord], None]
    done: Callable[[CallRecord], None]
    felt: Callable[[], None]
    is_down: bool = False
    _under_way: dict[int, _Flight] = field(default_factory=dict[int, _Flight])
    _tasks: dict[asyncio.Task[Any], None] = field(default_factory=dict[asyncio.Task[Any], None])
    _breakers: dict[int, Callable[[], None]] = field(default_factory=dict[int, Callable[[], None]])
    _serial: int = 0

    def latency_s(self) -> float:
        """Seconds for one way."""
        return self.rng.uniform(*LATENCY_S)

    async def carry(self, record: CallRecord, request: Request, timeout_s: float) -> Reply:
        """Sends a request and waits for its reply. Raises TransportError or UnknownOutcome, as a Wire does."""
        loop = asyncio.get_running_loop()
        flight = _Flight(record, request, loop.create_future(), self.desk.call(record.process, record.verb, record.target.plural))
        self._serial += 1
        serial = self._serial
        self._under_way[serial] = flight
        self.sent(record)
        if self.is_down:
            self._later(CONNECT_S, self._refuse, flight)
        elif flight.faults.ending is None or flight.faults.ending.kind is not FaultKind.TIMEOUT_BEFORE:
            self._later(self.latency_s() + flight.faults.delay_s, self._arrive, flight)
        try:
            with anyio.fail_after(timeout_s):
                return await flight.back
        except TimeoutError:
            raise lost(record, "no answer within the deadline") from None
        finally:
            record.is_settled = True
            del self._under_way[serial]
            if flight.faults.ending is not None or flight.faults.delay_s > 0.0:
                self.felt()

    def break_off(self, process: str, life: int) -> None:
        """A process is gone: nothing reaches it any more."""
        for flight in list(self._under_way.values()):
            if (flight.record.process, flight.record.life) == (process, life) and not flight.back.done():
                flight.back.set_exception(lost(flight.record, "the process is gone"))

    def go_down(self) -> None:
        """The API server cannot be reached: streams break, requests that have not arrived are lost."""
        self.is_down = True
        for cut in list(self._breakers.values()):
            cut()

    def come_up(self) -> None:
        self.is_down = False

    def on_outage(self, cut: Callable[[], None]) -> Callable[[], None]:
        """Has a stream cut when the server goes down; returns how to forget it."""
        self._serial += 1
        serial = self._serial
        self._breakers[serial] = cut

        def forget() -> None:
            self._breakers.pop(serial, None)

        return forget

    def spawn(self, function: Callable[[], Coroutine[Any, Any, Any]], name: str) -> asyncio.Task[Any]:
        """Runs something that belongs to no process."""
        context = copy_context()
        context.run(PROCESS.set, "")
        task: asyncio.Task[Any] = asyncio.get_running_loop().create_task(function(), name=name, context=context)
        self._tasks[task] = None
        task.add_done_callback(self._ended, context=context)
        return task

    def _ended(self, task: asyncio.Task[Any]) -> None:
        self._tasks.pop(task, None)
        if not task.cancelled() and (error := task.exception()) is not None:
            asyncio.get_running_loop().call_exception_handler({"message": f"{task.get_name()} failed", "exception": error})

    async def close(self) -> None:
        """Ends what is still under way."""
        for cut in list(self._breakers.values()):
            cut()
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    # under way

    def _later(self, seconds: float, callback: Callable[[_Flight], None], flight: _Flight) -> None:
        context = copy_context()
        context.run(PROCESS.set, "")
        asyncio.get_running_loop().call_later(seconds, callback, flight, context=context)

    def _refuse(self, flight: _Flight) -> None:
        if not flight.back.done():
            flight.back.set_exception(TransportError(f"{flight.record.method} {flight.record.path}: connection refused"))

    def _arrive(self, flight: _Flight) -> None:
        if self.is_down:
            if not flight.back.done():
                flight.back.set_exception(lost(flight.record, "connection reset"))
            return
        flight.record.arrived_at = asyncio.get_running_loop().time()
        ending = flight.faults.ending
        if ending is not None and ending.kind in REFUSALS:
            self._finish(flight, refusal(ending))
            return
        if ending is not None and ending.kind is FaultKind.STALE:
            flight.request = as_of(flight.request, self.server.storage.revision - ending.count)
        self.spawn(lambda: self._serve(flight), "request")

    async def _serve(self, flight: _Flight) -> None:
        self._finish(flight, await self.server.handle(flight.request))

    def _finish(self, flight: _Flight, reply: Reply) -> None:
        record, faults = flight.record, flight.faults
        record.status = reply.status if isinstance(reply, Answer) else 200
        self.done(record)
        if faults.crash is not None:
            self.crash(record.process, record.life, faults.crash)
        if faults.ending is not None and faults.ending.kind is FaultKind.TIMEOUT_AFTER:
            return
        context = copy_context()
        asyncio.get_running_loop().call_later(self.latency_s(), self._deliver, flight, reply, context=context)

    def _deliver(self, flight: _Flight, reply: Reply) -> None:
        if not flight.back.done():
            if self.is_down:
                flight.back.set_exception(lost(flight.record, "connection reset"))
                self._give_up(reply)
            else:
                flight.back.set_result(reply)
        else:
            self._give_up(reply)

    def _give_up(self, reply: Reply) -> None:
        if isinstance(reply, Stream):
            close = getattr(reply.lines, "aclose", None)
            if close is not None:
                self.spawn(close, "abandoned stream")


def lost(record: CallRecord, why: str) -> TransportError:
    """The end of a request without an answer: of a write nobody knows whether it was executed."""
    text = f"{record.method} {record.path}: {why}"
    return UnknownOutcome(text) if record.is_write else TransportError(text)


def refusal(fault: Fault) -> Answer:
    """The answer of a server that does not execute the request."""
    code, reason, message = REFUSALS[fault.kind]
    details = {"retryAfterSeconds": int(fault.seconds)} if fault.seconds >= 1.0 else {}
    status = {
        "kind": "Status",
        "apiVersion": "v1",
        "status": "Failure",
        "code": code,
        "reason": reason,
        "message": message,
        "details": details,
    }
    headers = {"Retry-After": str(int(fault.seconds))} if fault.seconds >= 1.0 else {}
    return Answer(code, msgspec.json.encode(status), headers=headers)


def as_of(request: Request, revision: int) -> Request:
    """The same list as the server would have answered it at an earlier revision."""
    query: Mapping[str, str] = {**request.query, "resourceVersion": str(max(1, revision)), "resourceVersionMatch": "Exact"}
    return replace(request, query=query)
