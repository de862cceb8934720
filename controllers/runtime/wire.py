"""How requests of a Transport travel: over HTTP with aiohttp, or over anything else that keeps this contract (a simulated server).

Calls and streams have connectors of their own, so that watches never take a call's connection, and a failing call never touches a watch.
"""

import asyncio
import os
import sys
from collections.abc import AsyncGenerator, Mapping
from dataclasses import dataclass, field
from types import TracebackType
from typing import Protocol, Self

import aiohttp
import anyio
import anyio.lowlevel
from aiohttp import ClientHandlerType, ClientRequest, ClientResponse
from yarl import URL

from controllers.runtime.errors import Distrusted, StreamIdle, TransportError, UnknownOutcome
from controllers.runtime.identity import Identity

__all__ = ("HttpWire", "Outgoing", "Wire", "WireStream")

CONNECT_LIMIT_S = 10.0
WRITE_CONNECT_LIMIT_S = 4.0
"""The fence is asked before connecting and allows for five seconds until the request is at the server."""
FORGETS_CLOSED = sys.version_info < (3, 12, 7) or (3, 13, 0) <= sys.version_info < (3, 13, 1)
"""These versions of asyncio can lose a TLS connection that was given up while it closes; aiohttp then has to abort it."""
CLOSE_LIMIT_S = 1.0
"""For the goodbyes of TLS on connections of ended streams, when everything is closed."""


@dataclass(frozen=True, slots=True)
class Outgoing:
    """One attempt of a request. `path` is encoded and comes without query. What may be secret is not printed."""

    method: str
    path: str
    query: Mapping[str, str] | None
    headers: Mapping[str, str] = field(repr=False)
    identity: Identity
    body: bytes | None = field(default=None, repr=False)


class WireStream(Protocol):
    """An answer that is read while it comes."""

    @property
    def status(self) -> int: ...

    @property
    def retry_after(self) -> str:
        """The Retry-After header, "" without."""
        ...

    async def read(self) -> bytes:
        """The whole body, for answers that refuse."""
        ...

    def chunks(self) -> AsyncGenerator[bytes]:
        """Pieces of the body as they come; ends when the server ends it properly. Raises StreamIdle or TransportError."""
        ...

    def close(self) -> None:
        """Gives the answer up."""
        ...


class Wire(Protocol):
    """Carries single attempts; what is tried again, held back or forbidden is decided above. Used as an async context manager."""

    async def __aenter__(self) -> Self: ...

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None: ...

    async def send(self, request: Outgoing, timeout_s: float) -> tuple[int, bytes, str]:
        """Status, body and Retry-After header. Raises TransportError (surely not executed) or UnknownOutcome."""
        ...

    async def open(self, request: Outgoing, inactivity_s: float) -> WireStream:
        """Begins a GET whose answer is a stream. Raises TransportError."""
        ...

    def sibling(self) -> "Wire":
        """Another wire to the same server, that shares no connection with this one."""
        ...


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
    cause = _cause(error)
    if isinstance(error, aiohttp.ClientSSLError):
        return Distrusted(text, cause)
    before_send = isinstance(error, (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError))
    return TransportError(text, cause) if before_send or method == "GET" else UnknownOutcome(text, cause)


def _cause(error: BaseException) -> str:
    """Why there is no answer, for people."""
    match error:
        case aiohttp.ClientConnectorDNSError():
            return f"DNS does not resolve {error.host}: {error.os_error.strerror or error.os_error}"
        case aiohttp.ClientConnectorCertificateError():
            why = getattr(error.certificate_error, "verify_message", "") or str(error.certificate_error)
            return f"TLS: its certificate is refused ({why}); does the CA of the credentials belong to this server?"
        case aiohttp.ClientConnectorSSLError():
            return f"TLS: {error}"
        case aiohttp.ClientConnectorError():
            number = error.os_error.errno
            return os.strerror(number).lower() if number else str(error.os_error)
        case aiohttp.ServerTimeoutError() | TimeoutError():
            return "no answer in time"
        case _:
            return f"the connection was cut ({str(error) or type(error).__name__})"


class HttpWire:
    """HTTP to `server` (scheme, host, port and an optional path)."""

    def __init__(self, server: str, user_agent: str) -> None:
        self._server = server
        self._user_agent = user_agent
        self._calls: aiohttp.ClientSession | None = None
        self._streams: aiohttp.ClientSession | None = None
        self._closing: set[asyncio.Future[None]] = set()

    def sibling(self) -> "HttpWire":
        return HttpWire(self._server, self._user_agent)

    async def __aenter__(self) -> Self:
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

    def _url(self, request: Outgoing) -> URL:
        url = URL(self._server + request.path)
        return url.with_query(request.query) if request.query else url

    async def send(self, request: Outgoing, timeout_s: float) -> tuple[int, bytes, str]:
        if self._calls is None:
            raise RuntimeError("the wire is not entered")
        connect_s = CONNECT_LIMIT_S if request.method == "GET" else WRITE_CONNECT_LIMIT_S
        try:
            async with self._calls.request(
                request.method,
                self._url(request),
                data=request.body,
                headers=request.headers,
                ssl=request.identity.ssl or True,
                server_hostname=request.identity.server_hostname,
                allow_redirects=False,
                middlewares=(_SendOnce(),) if request.method != "GET" else (),
                # A connection that takes half of the time is given up while it is still certain that nothing was sent.
                timeout=aiohttp.ClientTimeout(total=timeout_s, connect=min(connect_s, timeout_s / 2)),
            ) as response:
                return response.status, await response.read(), response.headers.get("Retry-After", "")
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise _failure(request.method, request.path, error) from error

    async def open(self, request: Outgoing, inactivity_s: float) -> "_HttpStream":
        if self._streams is None:
            raise RuntimeError("the wire is not entered")
        try:
            response = await self._streams.get(
                self._url(request),
                headers=request.headers,
                ssl=request.identity.ssl or True,
                server_hostname=request.identity.server_hostname,
                allow_redirects=False,
                timeout=aiohttp.ClientTimeout(total=None, connect=CONNECT_LIMIT_S, sock_read=inactivity_s),
            )
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise _failure("GET", request.path, error) from error
        return _HttpStream(response, request.path, self._closing)


class _HttpStream:
    """See WireStream."""

    def __init__(self, response: ClientResponse, path: str, closing: set[asyncio.Future[None]]) -> None:
        self._response = response
        self._path = path
        self._closing = closing
        self.status = response.status
        self.retry_after = response.headers.get("Retry-After", "")

    async def read(self) -> bytes:
        try:
            async with self._response:
                return await self._response.read()
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise _failure("GET", self._path, error) from error

    async def chunks(self) -> AsyncGenerator[bytes]:
        while True:
            try:
                chunk = await self._response.content.readany()
            except aiohttp.SocketTimeoutError as error:
                raise StreamIdle(f"GET {self._path}: no byte within the inactivity limit") from error
            except (aiohttp.ClientError, TimeoutError, OSError) as error:
                raise _failure("GET", self._path, error) from error
            if not chunk:
                return
            yield chunk

    def close(self) -> None:
        """The session forgets a connection at once that was given up, although its socket closes later: so we keep that in mind."""
        protocol = self._response.connection.protocol if self._response.connection is not None else None
        closed = protocol.closed if protocol is not None else None
        if closed is not None:
            self._closing.add(closed)
            closed.add_done_callback(self._closed)
        self._response.close()

    def _closed(self, closed: asyncio.Future[None]) -> None:
        self._closing.discard(closed)
        if not closed.cancelled():
            closed.exception()  # taken notice of: how a connection ended that was given up does not matter
