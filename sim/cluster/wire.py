"""The Wire of simulated processes (see controllers.runtime.wire), and the streams that it opens."""

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from types import TracebackType
from typing import Self, cast

from controllers.runtime.errors import StreamIdle, TransportError
from controllers.runtime.wire import Outgoing
from sim.apiserver.requests import Answer, Request, Stream
from sim.cluster.calls import CallRecord, target_for, verb_of
from sim.cluster.network import Network
from sim.faults.desk import StreamFaults
from sim.faults.plan import Fault, FaultKind
from sim.wires import Reply, request_of

__all__ = ("SimStream", "SimWire")

INITIAL_END = b"k8s.io/initial-events-end"
BOOKMARK = b'{"type":"BOOKMARK"'
LONGEST_FREEZE_S = 60.0
FOREVER_S = 1e9


class SimWire:
    """One life of a process. After `cut` nothing leaves it any more."""

    def __init__(self, network: Network, process: str, life: int, user_agent: str) -> None:
        self._network = network
        self._process = process
        self._life = life
        self._user_agent = user_agent
        self._is_cut = False
        self._siblings: list[SimWire] = []

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        return None

    def sibling(self) -> "SimWire":
        sibling = SimWire(self._network, self._process, self._life, self._user_agent)
        self._siblings.append(sibling)
        return sibling

    def cut(self) -> None:
        """The process dies."""
        self._is_cut = True
        for sibling in self._siblings:
            sibling.cut()

    async def send(self, request: Outgoing, timeout_s: float) -> tuple[int, bytes, str]:
        reply = await self._network.carry(*self._request(request, is_watch=False), timeout_s)
        if isinstance(reply, Stream):
            raise TransportError(f"{request.method} {request.path}: a stream was answered to a call")
        return reply.status, reply.body, reply.headers.get("Retry-After", "")

    async def open(self, request: Outgoing, inactivity_s: float) -> "SimStream":
        record, asked = self._request(request, is_watch=True)
        reply = await self._network.carry(record, asked, FOREVER_S)
        faults = self._network.desk.stream(self._process, record.target.plural)
        return SimStream(self._network, reply, request.path, faults, asked, inactivity_s)

    def _request(self, request: Outgoing, *, is_watch: bool) -> tuple[CallRecord, Request]:
        method, path, body = request.method, request.path, request.body or b""
        if self._is_cut:
            raise TransportError(f"{method} {path}: the process is gone")
        target = target_for(path)
        verb = verb_of(method, target, is_watch=is_watch)
        now = asyncio.get_running_loop().time()
        record = CallRecord(self._process, self._life, method, path, verb, target, body, now)
        return record, request_of(request, self._user_agent)


class SimStream(Reply):
    """A WireStream. Events come in the order of the server with a delay each, unless faults of `faults` meet them."""

    def __init__(
        self, network: Network, reply: Answer | Stream, path: str, faults: StreamFaults, request: Request, inactivity_s: float
    ) -> None:
        super().__init__(reply)
        self._network = network
        self._path = path
        self._faults = faults
        self._inactivity_s = inactivity_s
        self._lines: deque[tuple[float, bytes]] = deque()
        self._is_initial = request.query.get("sendInitialEvents") == "true"
        self._postponed: bytes | None = None
        self._frozen_until = 0.0
        self._frozen_lines = 0
        self._last_due = 0.0
        self._is_over = False
        self._is_broken = False
        self._waiter: asyncio.Future[None] | None = None
        self._pump: asyncio.Task[None] | None = None
        self._forget: Callable[[], None] | None = None
        if isinstance(reply, Stream):
            self._pump = network.spawn(self._receive, "stream")
            self._forget = network.on_outage(self._break)

    def close(self) -> None:
        self._is_over = True
        if self._pump is not None:
            self._pump.cancel()
            self._pump = None
        if self._forget is not None:
            self._forget()
            self._forget = None

    async def chunks(self) -> AsyncGenerator[bytes]:
        loop = asyncio.get_running_loop()
        heard_at = loop.time()
        while True:
            now = loop.time()
            if self._is_broken:
                raise TransportError(f"GET {self._path}: the connection broke")
            chunk = self._due(now)
            if chunk:
                heard_at = now
                yield chunk
                continue
            if self._is_over and not self._lines:
                return
            idle_at = heard_at + self._inactivity_s
            if now >= idle_at:
                raise StreamIdle(f"GET {self._path}: no byte within the inactivity limit")
            await self._wait(min(idle_at, self._next_at()))

    # the reader's side

    def _next_at(self) -> float:
        return max(self._lines[0][0], self._frozen_until) if self._lines else float("inf")

    def _due(self, now: float) -> bytes:
        enough = self._frozen_lines > 0 and (self._is_over or self._frozen_lines <= len(self._lines))
        if self._frozen_until > now and not enough:
            return b""
        self._frozen_until, self._frozen_lines = 0.0, 0
        out: list[bytes] = []
        while self._lines and self._lines[0][0] <= now:
            out.append(self._lines.popleft()[1])
        return b"".join(out)

    async def _wait(self, until: float) -> None:
        loop = asyncio.get_running_loop()
        waiter = self._waiter = loop.create_future()
        timer = loop.call_at(until, self._wake) if until < float("inf") else None
        try:
            await waiter
        finally:
            self._waiter = None
            if timer is not None:
                timer.cancel()

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    def _break(self) -> None:
        self._is_broken = True
        self._wake()

    # the server's side

    async def _receive(self) -> None:
        async with aclosing(cast("AsyncGenerator[bytes]", cast("Stream", self._reply).lines)) as lines:
            async for line in lines:
                self._take(line)
        self._is_over = True
        self._wake()

    def _take(self, line: bytes) -> None:
        if self._is_initial or line.startswith(BOOKMARK):
            self._is_initial = self._is_initial and INITIAL_END not in line
            self._queue(line)
            return
        copies = 1
        for fault in self._faults.hits():
            self._network.desk.met(fault)
            match fault.kind:
                case FaultKind.DROP:
                    copies = 0
                case FaultKind.DUPLICATE:
                    copies = 2
                case FaultKind.CUT:
                    copies = 0
                    self._break()
                case FaultKind.FREEZE:
                    self._freeze(fault)
                case _ if self._postponed is None:
                    self._postponed, copies = line, 0
                case _:
                    pass
        for _ in range(copies):
            self._queue(line)
        if copies and self._postponed is not None:
            postponed, self._postponed = self._postponed, None
            self._queue(postponed)

    def _freeze(self, fault: Fault) -> None:
        now = asyncio.get_running_loop().time()
        self._frozen_until = now + (fault.seconds or LONGEST_FREEZE_S)
        self._frozen_lines = 0 if fault.seconds else fault.count

    def _queue(self, line: bytes) -> None:
        now = asyncio.get_running_loop().time()
        self._last_due = max(self._last_due, now + self._network.latency_s())
        self._lines.append((self._last_due, line))
        self._wake()
