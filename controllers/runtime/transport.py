"""The only place that speaks HTTP to an API server.

Calls (request, whole answer) and streams (watches) have connectors of their own, so that watches never take a call's connection, and a
failing call never touches a running watch. Every non-GET call passes the fence right before it is sent. A Retry-After of a 429 or 503 holds
back all later calls of the same Transport. Nothing is retried here except once after a 401: retries belong to queues and reflectors.
"""

import asyncio
import sys
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping
from contextlib import aclosing, asynccontextmanager
from types import TracebackType
from typing import Protocol, Self

import aiohttp
import anyio
import anyio.lowlevel
from aiohttp import ClientHandlerType, ClientRequest, ClientResponse
from yarl import URL

from controllers.runtime.errors import ApiError, ServerBusy, StreamIdle, TooManyRequests, TransportError, UnknownOutcome, api_error
from controllers.runtime.identity import Credentials, Identity
from controllers.runtime.lines import LineSplitter

__all__ = ("Fence", "NoTransportMetrics", "Transport", "TransportMetrics")

CONNECT_LIMIT_S = 10.0
WRITE_CONNECT_LIMIT_S = 4.0
"""The fence is asked before connecting and allows for five seconds until the request is at the server."""
OPEN_LIMIT_S = 10.0
"""Seconds until a watch has begun to be answered."""
FORGETS_CLOSED = sys.version_info < (3, 12, 7) or (3, 13, 0) <= sys.version_info < (3, 13, 1)
"""These versions of asyncio can lose a TLS connection that was given up while it closes; aiohttp then has to abort it."""
CLOSE_LIMIT_S = 1.0
"""For the goodbyes of TLS on connections of ended streams, when everything is closed."""
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


class _SendOnce:
    """Stops aiohttp from sending PUT and DELETE again when a kept-alive connection breaks.

    A second send would pass no fence and would hide an unknown outcome.
    """

    def __init__(self) -> None:
        self._sent = False

    async def __call__(self, request: ClientRequest, handler: ClientHandlerType) -> ClientResponse:
        if self._sent:
            raise aiohttp.ServerDisconnectedError
        self._sent = True
        return await handler(request)


def _failure(method: str, path: str, error: BaseException) -> TransportError:
    """What an aiohttp error means: reads have no outcome, and what failed before a connection stood was not executed."""
    text = f"{method} {path}: {type(error).__name__}: {error}".rstrip(": ")
    before_send = isinstance(error, (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError))
    return TransportError(text) if before_send or method == "GET" else UnknownOutcome(text)


class Transport:
    """One API server, one identity, one gate, one limit of concurrent calls. Use as an async context manager.

    connections: calls in flight at a time. `sleep` and `monotonic` drive gate and deadlines.
    """

    def __init__(
        self,
        credentials: Credentials,
        *,
        fence: Fence | None = None,
        metrics: TransportMetrics | None = None,
        user_agent: str = "grovekeeper",
        connections: int = 64,
        sleep: Callable[[float], Awaitable[None]] = anyio.sleep,
        monotonic: Callable[[], float] = anyio.current_time,
    ) -> None:
        self.credentials = credentials
        self._fence = fence
        self._metrics = metrics or NoTransportMetrics()
        self._user_agent = user_agent
        self._connections = connections
        self._sleep = sleep
        self._now = monotonic
        self._gate_until = float("-inf")
        self._calls: aiohttp.ClientSession | None = None
        self._streams: aiohttp.ClientSession | None = None
        self._limiter: anyio.CapacityLimiter | None = None
        self._closing: set[asyncio.Future[None]] = set()

    def sibling(self, *, connections: int = 4) -> "Transport":
        """A Transport for the same server with its own connections, limit and gate, and no fence: for the leader elector."""
        return Transport(
            self.credentials,
            metrics=self._metrics,
            user_agent=self._user_agent,
            connections=connections,
            sleep=self._sleep,
            monotonic=self._now,
        )

    async def __aenter__(self) -> Self:
        self._limiter = anyio.CapacityLimiter(self._connections)
        self._calls = self._session()
        self._streams = self._session()
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        for session in (self._calls, self._streams):
            if session is not None:
                await session.close()
        self._calls = self._streams = None
        # Aborted connections report their end in the next turns of the loop; a loop that is closed before leaves sockets behind.
        with anyio.CancelScope(shield=True):
            await anyio.lowlevel.checkpoint()
            await anyio.lowlevel.checkpoint()
        if self._closing:
            with anyio.move_on_after(CLOSE_LIMIT_S, shield=True):
                await asyncio.wait(self._closing)

    def _session(self) -> aiohttp.ClientSession:
        return aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0, enable_cleanup_closed=FORGETS_CLOSED),
            cookie_jar=aiohttp.DummyCookieJar(),
            headers={"User-Agent": self._user_agent, "Accept-Encoding": "identity"},
            read_bufsize=256 * 1024,
            trust_env=False,
        )

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
                    status, answer, retry_after = await self._send(
                        method, self._url(path, query), body, {**headers, **identity.headers}, identity, deadline
                    )
                    if status != 401 or last or not await self._refresh(method, path, identity, deadline):
                        break
            finally:
                self._limiter.release()
            code = str(status)
            if 200 <= status < 300:
                return answer
            error = api_error(status, answer, retry_after=retry_after, method=method, path=path)
            self._close_gate(error)
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

    def _url(self, path: str, query: Mapping[str, str] | None) -> URL:
        url = URL(self.credentials.server + path)
        return url.with_query(query) if query else url

    async def _send(
        self, method: str, url: URL, body: bytes | None, headers: Mapping[str, str], identity: Identity, deadline: float
    ) -> tuple[int, bytes, str]:
        """One attempt: status, body and Retry-After header."""
        assert self._calls is not None  # noqa: S101 - checked by call
        left_s = deadline - self._now()
        connect_s = CONNECT_LIMIT_S if method == "GET" else WRITE_CONNECT_LIMIT_S
        if left_s <= 0:
            raise TransportError(f"{method} {url.path}: not sent within the deadline")
        try:
            async with self._calls.request(
                method,
                url,
                data=body,
                headers=headers,
                ssl=identity.ssl or True,
                server_hostname=identity.server_hostname,
                allow_redirects=False,
                middlewares=(_SendOnce(),) if method != "GET" else (),
                # A connection that takes half of the time is given up while it is still certain that nothing was sent.
                timeout=aiohttp.ClientTimeout(total=left_s, connect=min(connect_s, left_s / 2)),
            ) as response:
                return response.status, await response.read(), response.headers.get("Retry-After", "")
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise _failure(method, url.path, error) from error

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
        response = await self._open(path, query, accept, inactivity_s)
        try:
            async with aclosing(_lines(response, path)) as lines:
                yield lines
        finally:
            self._close(response)

    def _close(self, response: ClientResponse) -> None:
        """Gives up a connection. The session forgets it at once, although its socket closes later: so we keep that in mind."""
        protocol = response.connection.protocol if response.connection is not None else None
        closed = protocol.closed if protocol is not None else None
        if closed is not None:
            self._closing.add(closed)
            closed.add_done_callback(self._closed)
        response.close()

    def _closed(self, closed: asyncio.Future[None]) -> None:
        self._closing.discard(closed)
        if not closed.cancelled():
            closed.exception()  # taken notice of: how a connection ended that was given up does not matter

    async def _open(self, path: str, query: Mapping[str, str] | None, accept: str, inactivity_s: float) -> ClientResponse:
        if self._streams is None:
            raise RuntimeError("Transport is not entered")
        for last in (False, True):
            identity = await self.credentials.identity()
            try:
                # A starting API server may take a request and never begin to answer it: only an answer that has begun may be silent.
                with anyio.fail_after(OPEN_LIMIT_S):
                    response = await self._streams.get(
                        self._url(path, query),
                        headers={"Accept": accept, **identity.headers},
                        ssl=identity.ssl or True,
                        server_hostname=identity.server_hostname,
                        allow_redirects=False,
                        timeout=aiohttp.ClientTimeout(total=None, connect=CONNECT_LIMIT_S, sock_read=inactivity_s),
                    )
                if response.status == 200:
                    return response
                async with response:
                    answer = await response.read()
            except (aiohttp.ClientError, TimeoutError, OSError) as error:
                raise _failure("GET", path, error) from error
            if response.status != 401 or last or not await self.credentials.refresh(identity.generation):
                break
        raise api_error(response.status, answer, retry_after=response.headers.get("Retry-After", ""), method="GET", path=path)


async def _lines(response: ClientResponse, path: str) -> AsyncGenerator[bytes]:
    splitter = LineSplitter()
    while True:
        try:
            chunk = await response.content.readany()
        except aiohttp.SocketTimeoutError as error:
            raise StreamIdle(f"GET {path}: no byte within the inactivity limit") from error
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise _failure("GET", path, error) from error
        if not chunk:
            break
        for line in splitter.feed(chunk):
            yield line
    if splitter.partial:
        raise TransportError(f"GET {path}: the answer ended inside a line")
