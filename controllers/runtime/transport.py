"""The only place that speaks to an API server: deadlines, a limit of calls in flight, a gate, a fence, and fresh credentials.

How requests travel is the business of a Wire. Every non-GET call passes the fence right before it is sent. A Retry-After of a 429 or 503
holds back all later calls of the same Transport. Nothing is retried here except once after a 401: retries belong to queues and reflectors.
"""

from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping
from contextlib import aclosing, asynccontextmanager
from types import TracebackType
from typing import Protocol, Self

import anyio

from controllers.runtime.errors import ApiError, Distrusted, ServerBusy, TooManyRequests, TransportError, UnknownOutcome, api_error
from controllers.runtime.identity import Credentials, Identity
from controllers.runtime.lines import LineSplitter
from controllers.runtime.wire import HttpWire, Outgoing, Wire, WireStream

__all__ = ("Fence", "NoTransportMetrics", "Transport", "TransportMetrics")

OPEN_LIMIT_S = 10.0
"""Seconds until a watch has begun to be answered."""
GATE_LIMIT_S = 60.0
"""Longest pause that a Retry-After can impose."""


class Fence(Protocol):
    """Says whether this process may write."""

    def check(self) -> None:
        """Returns if writing is allowed, else raises NotLeader."""
        ...


class TransportMetrics(Protocol):
    """Where a transport counts what it does."""

    def call_done(self, method: str, code: str, seconds: float) -> None:
        """A call ended. code: the HTTP status, "unknown" (UnknownOutcome) or "error" (TransportError)."""
        ...

    def gate_closed(self, seconds: float) -> None:
        """The server asked all calls to wait for that long."""
        ...


class NoTransportMetrics:
    """Counts nothing."""

    def call_done(self, method: str, code: str, seconds: float) -> None: ...

    def gate_closed(self, seconds: float) -> None: ...


class Transport:
    """One API server, one identity, one gate, one limit of concurrent calls. Use as an async context manager.

    connections: calls in flight at a time. `refused` is told of every call that is answered by 403. `sleep` and `monotonic` drive gate and
    deadlines. `wire`: HTTP to the credentials' server unless given.
    """

    def __init__(
        self,
        credentials: Credentials,
        *,
        fence: Fence | None = None,
        metrics: TransportMetrics | None = None,
        user_agent: str = "grovekeeper",
        connections: int = 64,
        refused: Callable[[ApiError], None] | None = None,
        sleep: Callable[[float], Awaitable[None]] = anyio.sleep,
        monotonic: Callable[[], float] = anyio.current_time,
        wire: Wire | None = None,
    ) -> None:
        self.credentials = credentials
        self._fence = fence
        self._metrics = metrics or NoTransportMetrics()
        self._user_agent = user_agent
        self._connections = connections
        self._refused = refused
        self._sleep = sleep
        self._now = monotonic
        self._gate_until = float("-inf")
        self._wire: Wire = wire if wire is not None else HttpWire(credentials.server, user_agent)
        self._limiter: anyio.CapacityLimiter | None = None

    def sibling(self, *, connections: int = 4) -> "Transport":
        """A Transport for the same server with its own connections, limit and gate, and no fence: for the leader elector."""
        return Transport(
            self.credentials,
            metrics=self._metrics,
            user_agent=self._user_agent,
            connections=connections,
            sleep=self._sleep,
            monotonic=self._now,
            wire=self._wire.sibling(),
        )

    async def __aenter__(self) -> Self:
        self._limiter = anyio.CapacityLimiter(self._connections)
        await self._wire.__aenter__()
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        await self._wire.__aexit__(kind, error, trace)

    async def call(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        body: bytes | None = None,
        content_type: str = "application/json",
        accept: str = "application/json",
        timeout_s: float = 30.0,
    ) -> bytes:
        """Sends one request and returns the body of a 2xx answer.

        timeout_s covers everything: waiting for the gate, for a free connection, and the answer. Raises ApiError, TransportError,
        UnknownOutcome (writes only) or NotLeader. Cancelling a write leaves its outcome unknown as well.
        """
        if self._limiter is None:
            raise RuntimeError("Transport is not entered")
        write = method != "GET"
        if write and self._fence is not None:
            self._fence.check()
        start = self._now()
        deadline = start + timeout_s
        headers = {"Accept": accept}
        if body is not None:
            headers["Content-Type"] = content_type
        code = "error"
        try:
            await self._acquire(method, path, deadline)
            try:
                for last in (False, True):
                    identity = await self._identify(method, path, deadline)
                    # Whoever waited for gate, connection or credentials may have lost the lease meanwhile.
                    if write and self._fence is not None:
                        self._fence.check()
                    request = Outgoing(method, path, query, {**headers, **identity.headers}, identity, body)
                    status, answer, retry_after = await self._send(request, deadline)
                    if status != 401 or last or not await self._refresh(method, path, identity, deadline):
                        break
            finally:
                self._limiter.release()
            code = str(status)
            if 200 <= status < 300:
                return answer
            error = api_error(status, answer, retry_after=retry_after, method=method, path=path)
            self._close_gate(error)
            self._tell_refused(error)
            raise error
        except UnknownOutcome:
            code = "unknown"
            raise
        finally:
            self._metrics.call_done(method, code, self._now() - start)

    async def _acquire(self, method: str, path: str, deadline: float) -> None:
        """Waits for the gate, then for a free connection, then for the gate again if it closed meanwhile."""
        assert self._limiter is not None  # noqa: S101 - checked by call
        while True:
            now = self._now()
            wait_s = self._gate_until - now
            if wait_s > 0:
                if self._gate_until >= deadline:
                    raise TooManyRequests(
                        429, "Gate", "held back: the server asked to wait", retry_after_s=wait_s, method=method, path=path
                    )
                await self._sleep(wait_s)
                continue
            try:
                with anyio.fail_after(deadline - now):
                    await self._limiter.acquire()
            except TimeoutError as error:
                raise TransportError(f"{method} {path}: no free connection within the deadline") from error
            if self._gate_until <= self._now():
                return
            self._limiter.release()

    async def _identify(self, method: str, path: str, deadline: float) -> Identity:
        try:
            with anyio.fail_after(deadline - self._now()):
                return await self.credentials.identity()
        except TimeoutError as error:
            raise TransportError(f"{method} {path}: no credentials within the deadline") from error

    async def _refresh(self, method: str, path: str, identity: Identity, deadline: float) -> bool:
        try:
            with anyio.fail_after(deadline - self._now()):
                return await self.credentials.refresh(identity.generation)
        except TimeoutError as error:
            raise TransportError(f"{method} {path}: refused with 401, and no new credentials within the deadline") from error

    async def _send(self, request: Outgoing, deadline: float) -> tuple[int, bytes, str]:
        """One attempt: status, body and Retry-After header."""
        left_s = deadline - self._now()
        if left_s <= 0:
            raise TransportError(f"{request.method} {request.path}: not sent within the deadline")
        try:
            return await self._wire.send(request, left_s)
        except Distrusted:
            self.credentials.doubt()
            raise

    def _tell_refused(self, error: ApiError) -> None:
        if self._refused is not None and error.status == 403:
            self._refused(error)

    def _close_gate(self, error: ApiError) -> None:
        """A server under load names a pause; it is meant for the client as a whole."""
        if not isinstance(error, (TooManyRequests, ServerBusy)) or not error.retry_after_s:
            return
        wait_s = min(error.retry_after_s, GATE_LIMIT_S)
        self._gate_until = max(self._gate_until, self._now() + wait_s)
        self._metrics.gate_closed(wait_s)

    @asynccontextmanager
    async def stream(
        self, path: str, *, query: Mapping[str, str] | None = None, accept: str = "application/json", inactivity_s: float = 90.0
    ) -> AsyncGenerator[AsyncIterator[bytes]]:
        """Opens a watch; inside the context an iterator gives its complete lines and ends when the server ends the answer properly.

        Neither gate nor limit of the calls applies. Raises ApiError if refused, TransportError when cut, StreamIdle when no
        byte came for `inactivity_s`, LineTooLong for a line beyond the limit.
        """
        answer = await self._open(path, query, accept, inactivity_s)
        try:
            async with aclosing(_lines(answer, path)) as lines:
                yield lines
        finally:
            answer.close()

    async def _open(self, path: str, query: Mapping[str, str] | None, accept: str, inactivity_s: float) -> WireStream:
        if self._limiter is None:
            raise RuntimeError("Transport is not entered")
        for last in (False, True):
            identity = await self.credentials.identity()
            try:
                # A starting API server may take a request and never begin to answer it: only an answer that has begun may be silent.
                with anyio.fail_after(OPEN_LIMIT_S):
                    request = Outgoing("GET", path, query, {"Accept": accept, **identity.headers}, identity)
                    answer = await self._wire.open(request, inactivity_s)
            except TimeoutError as error:
                text = f"not answered within {OPEN_LIMIT_S:.0f} s"
                raise TransportError(f"GET {path}: {text}", text) from error
            except Distrusted:
                self.credentials.doubt()
                raise
            if answer.status == 200:
                return answer
            try:
                body = await answer.read()
            finally:
                answer.close()
            if answer.status != 401 or last or not await self.credentials.refresh(identity.generation):
                break
        raise api_error(answer.status, body, retry_after=answer.retry_after, method="GET", path=path)


async def _lines(answer: WireStream, path: str) -> AsyncGenerator[bytes]:
    splitter = LineSplitter()
    async with aclosing(answer.chunks()) as chunks:
        async for chunk in chunks:
            for line in splitter.feed(chunk):
                yield line
    if splitter.partial:
        raise TransportError(f"GET {path}: the answer ended inside a line")
