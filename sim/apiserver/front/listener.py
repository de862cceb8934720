"""HTTP in front of a request handler: bearer token, body limit, answers and streams of JSON lines."""

import asyncio
import hmac
import re
import ssl
from types import TracebackType
from typing import Any, Final, Self
from urllib.parse import parse_qsl, unquote

import msgspec
from aiohttp import web
from aiohttp.abc import AbstractStreamWriter
from aiohttp.http_parser import RawRequestMessage
from aiohttp.streams import StreamReader
from aiohttp.web_protocol import RequestHandler

from sim.apiserver.front.protobuf import PROTOBUF_TYPE, json_of
from sim.apiserver.requests import ADMIN, MAX_BODY, Answer, Handle, Request, Stream, User
from sim.apiserver.status import StatusError, too_large

__all__ = ("Listener",)

MAX_HEAD: Final = 1024 * 1024
BAD_ESCAPE: Final = re.compile(r"%(?![0-9A-Fa-f]{2})|;")
"""What makes Go drop a parameter."""
LOOPBACK: Final = ("127.0.0.1", "::1", "localhost")
# Readable without credentials, as the roles of a new cluster allow.
PUBLIC: Final = ("/healthz", "/livez", "/readyz", "/version")


class Listener:
    """`async with Listener(handle) as listener: listener.url`. What `handle` raises closes the connection with 500.

    `port` 0 takes a free one. `token`: the bearer token of the administrator; "" lets everybody in as that, which only loopback addresses
    may do (ValueError otherwise). `drain_s`: how long requests that run may take to end when the listener closes; streams end at once.
    """

    def __init__(
        self,
        handle: Handle,
        *,
        host: str = "127.0.0.1",
        port: int = 0,
        token: str = "",
        tls: ssl.SSLContext | None = None,
        drain_s: float = 2.0,
    ) -> None:
        if host not in LOOPBACK and not token:
            raise ValueError(f"listening on {host} needs a token: without one only loopback addresses are allowed")
        self.host = host
        self.port = port
        self._handle = handle
        self._authorization = f"Bearer {token}".encode() if token else b""
        self._tls = tls
        self._drain_s = drain_s
        self._http: web.Server | None = None
        self._sockets: asyncio.Server | None = None
        self._streams: set[asyncio.Task[Any]] = set()

    @property
    def url(self) -> str:
        """Where it listens, without a slash at the end."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{'https' if self._tls else 'http'}://{host}:{self.port}"

    async def __aenter__(self) -> Self:
        loop = asyncio.get_running_loop()

        def request(
            message: RawRequestMessage,
            body: StreamReader,
            protocol: RequestHandler,
            writer: AbstractStreamWriter,
            task: asyncio.Task[None],
        ) -> web.BaseRequest:
            return web.BaseRequest(message, body, protocol, writer, task, loop, client_max_size=MAX_BODY)

        self._http = web.Server(
            self._serve,
            request_factory=request,
            handler_cancellation=True,
            auto_decompress=False,
            access_log=None,
            keepalive_timeout=75.0,
            max_line_size=MAX_HEAD,
            max_field_size=MAX_HEAD,
        )
        self._sockets = await loop.create_server(self._http, self.host, self.port, ssl=self._tls, backlog=1024)
        self.port = self._sockets.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if self._sockets is None or self._http is None:
            return
        self._sockets.close()
        for task in self._streams:
            task.cancel()
        await self._http.shutdown(self._drain_s)
        await self._sockets.wait_closed()

    async def _serve(self, incoming: web.BaseRequest) -> web.StreamResponse:
        headers = incoming.headers
        # The target as sent: aiohttp's own URL would normalise what the API takes literally.
        path, _, query = incoming.raw_path.partition("?")
        if "%" in path:
            path = unquote(path)
        if self._authorization and (refusal := self._refusal(path, headers.get("Authorization"))):
            return refusal
        body = b""
        if incoming.can_read_body:
            if (incoming.content_length or 0) > MAX_BODY:
                return _too_large()
            if incoming.headers.get("Expect", "").lower() == "100-continue":
                await incoming.writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
            try:
                body = await incoming.read()
            except web.HTTPRequestEntityTooLarge:
                return _too_large()
        content_type = headers.get("Content-Type", "")
        if body and content_type.startswith(PROTOBUF_TYPE):
            try:
                body, content_type = json_of(body), "application/json"
            except StatusError as error:
                return _failure(error)
        user = ADMIN
        if "Impersonate-User" in headers:
            groups = headers.getall("Impersonate-Group", [])
            user = User(headers["Impersonate-User"], tuple(dict.fromkeys((*groups, "system:authenticated"))))
        answer = await self._handle(
            Request(
                incoming.method,
                path,
                _query(query) if query else {},
                body,
                content_type,
                ",".join(headers.getall("Accept", ())),
                headers.get("User-Agent", ""),
                user,
                if_none_match=headers.get("If-None-Match", ""),
            )
        )
        return await self._stream(incoming, answer) if isinstance(answer, Stream) else _response(answer)

    def _refusal(self, path: str, authorization: str | None) -> web.Response | None:
        if authorization is None and path.startswith(PUBLIC):
            return None
        if hmac.compare_digest((authorization or "").encode(errors="surrogateescape"), self._authorization):
            return None
        return _failure(StatusError(401, "Unauthorized", "Unauthorized"))

    async def _stream(self, incoming: web.BaseRequest, stream: Stream) -> web.StreamResponse:
        """Write line by line until the stream, the client or the listener ends."""
        response = web.StreamResponse(headers={"Content-Type": stream.content_type, "Cache-Control": "no-cache, private"})
        response.enable_chunked_encoding()
        task = asyncio.current_task()
        assert task is not None  # noqa: S101 - coroutines run in tasks
        self._streams.add(task)
        try:
            await response.prepare(incoming)
            async for line in stream.lines:
                await response.write(line)
            await response.write_eof()
        except ConnectionError:
            # The client went away while a line was on its way.
            response.force_close()
        finally:
            self._streams.discard(task)
            # The cleanup of a generator runs now, not when the garbage collector finds it.
            if (close := getattr(stream.lines, "aclose", None)) is not None:
                await close()
        return response


def _query(text: str) -> dict[str, str]:
    """Decoded parameters; of repeated ones the first counts. What cannot be decoded is as good as absent."""
    found: dict[str, str] = {}
    for name, value in parse_qsl(text if BAD_ESCAPE.search(text) is None else _decodable(text), keep_blank_values=True):
        found.setdefault(name, value)
    return found


def _decodable(text: str) -> str:
    return "&".join(pair for pair in text.split("&") if BAD_ESCAPE.search(pair) is None)


def _response(answer: Answer) -> web.Response:
    headers = {"Content-Type": answer.content_type, "Cache-Control": "no-cache, private", **answer.headers}
    return web.Response(status=answer.status, body=answer.body, headers=headers)


def _failure(error: StatusError) -> web.Response:
    return _response(Answer(error.code, msgspec.json.encode(error.body())))


def _too_large() -> web.Response:
    """The rest of the body is not read, so the connection cannot be used again."""
    response = _failure(too_large(f"limit is {MAX_BODY}"))
    response.force_close()
    return response
