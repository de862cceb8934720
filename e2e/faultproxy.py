"""A reverse proxy in front of an API server that records requests and does damage on demand.

    async with FaultProxy(control_plane.kubeconfig) as proxy:
        proxy.write_kubeconfig(path)
        proxy.add(Rule(Respond(429, retry_after_s=1), method="POST", path="/pods"))

Requests reach the rules in order; the first that matches and is not used up decides. Without a rule everything passes unchanged.
"""

import asyncio
import json
import re
import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Self

from aiohttp import ClientError, ClientResponse, ClientSession, ClientTimeout, TCPConnector, web
from multidict import CIMultiDict
from yarl import URL

from hack.kube.certificates import Certificates
from hack.kube.client import Access, read_kubeconfig, write_kubeconfig

__all__ = ("CutWatch", "Delay", "DropResponse", "Fault", "FaultProxy", "GoneEvent", "Recorded", "Refuse", "Respond", "Rule")

CLOSE_LIMIT_S = 2.0
HOP_BY_HOP = frozenset(
    ("connection", "keep-alive", "proxy-authenticate", "proxy-authorization", "te", "trailers", "transfer-encoding", "upgrade")
)
REASONS = {403: "Forbidden", 404: "NotFound", 409: "Conflict", 410: "Expired", 429: "TooManyRequests", 500: "InternalError"}


@dataclass(frozen=True, slots=True)
class Respond:
    """Answer with a Status object of this code; the API server sees nothing."""

    status: int
    retry_after_s: int | None = None


@dataclass(frozen=True, slots=True)
class Refuse:
    """Close the connection; the API server sees nothing."""


@dataclass(frozen=True, slots=True)
class Delay:
    """Forward after so many seconds."""

    seconds: float


@dataclass(frozen=True, slots=True)
class DropResponse:
    """Forward, wait for the whole answer, close the connection without it: the write is done and the client cannot know."""


@dataclass(frozen=True, slots=True)
class CutWatch:
    """Pass so many lines of a watch and close the connection in the middle of the stream."""

    after_lines: int = 0


@dataclass(frozen=True, slots=True)
class GoneEvent:
    """Answer a watch with 200 and one ERROR event of code 410, as for a compacted resourceVersion."""


Fault = Respond | Refuse | Delay | DropResponse | CutWatch | GoneEvent


@dataclass(slots=True)
class Rule:
    """`path` is searched in path and query, e.g. r"/pods\\b" or "watch=true"; `method` is a full match. `times` None never ends."""

    fault: Fault
    method: str = ".*"
    path: str = ""
    times: int | None = 1

    def takes(self, method: str, path: str) -> bool:
        """Whether the rule applies; uses it up by one if so."""
        if self.times == 0 or not re.fullmatch(self.method, method) or not re.search(self.path, path):
            return False
        if isinstance(self.fault, CutWatch | GoneEvent) and not _is_watch(path):
            return False
        if self.times is not None:
            self.times -= 1
        return True


@dataclass(slots=True)
class Recorded:
    """One request. `status` is what the client was sent, None if nothing; `forwarded_status` what the API server said."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes
    fault: Fault | None
    status: int | None = None
    forwarded_status: int | None = None

    @property
    def is_watch(self) -> bool:
        return _is_watch(self.path)

    @property
    def is_write(self) -> bool:
        return self.method in {"POST", "PUT", "PATCH", "DELETE"}


@dataclass(slots=True)
class FaultProxy:
    """Listens on a free port while entered. HTTPS with `certificates` (those of the control plane do) or `identity`, else plain HTTP.

    `host`: where to listen. `upstream`: the API server, if not the one of the kubeconfig.
    """

    kubeconfig: Path = Path()
    certificates: Certificates | None = None
    host: str = "127.0.0.1"
    upstream: Access | None = None
    identity: ssl.SSLContext | None = None
    rules: list[Rule] = field(default_factory=list[Rule])
    requests: list[Recorded] = field(default_factory=list[Recorded])
    server: str = ""
    _live: dict[asyncio.Transport, Recorded] = field(default_factory=dict[asyncio.Transport, Recorded])
    _runner: web.AppRunner | None = None
    _session: ClientSession | None = None
    _closing: set[asyncio.Future[None]] = field(default_factory=set[asyncio.Future[None]])
    _upstream: Access = field(default=Access("", None, ""))

    async def __aenter__(self) -> Self:
        self._upstream = self.upstream or read_kubeconfig(self.kubeconfig)
        trust = ssl.create_default_context(cafile=self._upstream.ca) if self._upstream.ca else True
        connector = TCPConnector(ssl=trust, limit=0)
        self._session = ClientSession(connector=connector, auto_decompress=False, timeout=ClientTimeout(total=None))
        app = web.Application(client_max_size=1 << 30)
        app.router.add_route("*", "/{path:.*}", self._handle)
        self._runner = web.AppRunner(app, handler_cancellation=True, access_log=None, shutdown_timeout=1.0)
        await self._runner.setup()
        identity = self.identity
        if self.certificates:
            identity = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            identity.load_cert_chain(self.certificates.server_cert, self.certificates.server_key)
        await web.TCPSite(self._runner, self.host, 0, ssl_context=identity).start()
        self.server = f"{'https' if identity else 'http'}://{self.host}:{self._runner.addresses[0][1]}"
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.cut_watches()
        if self._runner:
            await self._runner.cleanup()
        if self._session:
            await self._session.close()
        # A connection that was given up in the middle of an answer closes later than its session.
        if self._closing:
            await asyncio.wait(self._closing, timeout=CLOSE_LIMIT_S)

    def write_kubeconfig(self, path: Path) -> None:
        """A kubeconfig that leads through this proxy, with the same token."""
        ca = self.certificates.ca if self.certificates else None
        write_kubeconfig(path, Access(self.server, ca, self._upstream.token))

    def add(self, rule: Rule) -> Rule:
        """Add a rule after the others; `proxy.rules.remove(rule)` ends it."""
        self.rules.append(rule)
        return rule

    def cut_watches(self, path: str = "") -> int:
        """Close the connections of live watches whose path and query contain the pattern; how many."""
        cut = [t for t, seen in self._live.items() if re.search(path, seen.path)]
        for transport in cut:
            transport.abort()
        return len(cut)

    def live_watches(self, path: str = "") -> list[Recorded]:
        """Watches that are open now."""
        return [seen for seen in self._live.values() if re.search(path, seen.path)]

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        body = await request.read()
        rule = next((r for r in self.rules if r.takes(request.method, request.raw_path)), None)
        fault = rule.fault if rule else None
        seen = Recorded(request.method, request.raw_path, request.headers.copy(), body, fault)
        self.requests.append(seen)
        match fault:
            case Respond(status, retry_after_s):
                seen.status = status
                headers = {} if retry_after_s is None else {"Retry-After": str(retry_after_s)}
                return web.json_response(_status(status), status=status, headers=headers)
            case GoneEvent():
                seen.status = 200
                return web.Response(text=json.dumps({"type": "ERROR", "object": _status(410)}) + "\n", content_type="application/json")
            case Refuse():
                return _abort(request)
            case Delay(seconds):
                await asyncio.sleep(seconds)
            case DropResponse() | CutWatch() | None:
                pass
        return await self._forward(request, seen)

    async def _forward(self, request: web.Request, seen: Recorded) -> web.StreamResponse:
        if self._session is None:
            raise RuntimeError("the proxy is not entered")
        headers = {k: v for k, v in request.headers.items() if k.lower() not in HOP_BY_HOP | {"host", "content-length"}}
        url = URL(self._upstream.server + request.raw_path, encoded=True)
        skip = ("User-Agent", "Content-Type", "Accept", "Accept-Encoding")
        try:
            async with self._session.request(
                request.method, url, headers=headers, data=seen.body or None, skip_auto_headers=skip, allow_redirects=False
            ) as answer:
                seen.forwarded_status = answer.status
                if seen.is_watch and answer.status == 200:
                    self._note(answer)
                    return await self._stream(request, answer, seen)
                body = await answer.read()
        except ClientError:
            # A server that is away looks like a lost connection, not like an answer of ours.
            return _abort(request)
        if isinstance(seen.fault, DropResponse):
            return _abort(request)
        seen.status = answer.status
        return web.Response(status=answer.status, body=body, headers=_passed_on(answer))

    def _note(self, answer: ClientResponse) -> None:
        """Keeps in mind a connection that will be given up."""
        protocol = answer.connection.protocol if answer.connection is not None else None
        closed = protocol.closed if protocol is not None else None
        if closed is not None:
            self._closing.add(closed)
            closed.add_done_callback(self._forget)

    def _forget(self, closed: asyncio.Future[None]) -> None:
        self._closing.discard(closed)
        if not closed.cancelled():
            closed.exception()  # taken notice of: how it ended does not matter

    async def _stream(self, request: web.Request, answer: ClientResponse, seen: Recorded) -> web.StreamResponse:
        lines_left = seen.fault.after_lines if isinstance(seen.fault, CutWatch) else None
        response = web.StreamResponse(status=200, headers=_passed_on(answer))
        transport = request.transport
        if transport is None:
            return response
        seen.status = 200
        await response.prepare(request)
        self._live[transport] = seen
        try:
            if lines_left == 0:
                return _abort(request, response)
            async for chunk in answer.content.iter_any():
                if lines_left is None:
                    await response.write(chunk)
                    continue
                lines = chunk.splitlines(keepends=True)
                whole = sum(line.endswith(b"\n") for line in lines)
                if whole >= lines_left:
                    await response.write(_first_lines(lines, lines_left))
                    return _abort(request, response, flush=True)
                await response.write(chunk)
                lines_left -= whole
        finally:
            self._live.pop(transport, None)
        return response


def _first_lines(parts: list[bytes], count: int) -> bytes:
    """The parts up to the count-th that ends a line."""
    taken: list[bytes] = []
    for part in parts:
        if count == 0:
            break
        taken.append(part)
        count -= part.endswith(b"\n")
    return b"".join(taken)


def _abort(request: web.Request, response: web.StreamResponse | None = None, *, flush: bool = False) -> web.StreamResponse:
    """Close the connection under the response. `flush` lets bytes already written go out first."""
    if request.transport is not None:
        if flush:
            request.transport.close()
        else:
            request.transport.abort()
    return response or web.Response()


def _passed_on(answer: ClientResponse) -> CIMultiDict[str]:
    kept = ((k, v) for k, v in answer.headers.items() if k.lower() not in HOP_BY_HOP | {"content-length"})
    return CIMultiDict(kept)


def _status(code: int) -> dict[str, object]:
    return {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": "injected fault",
        "reason": REASONS.get(code, "ServiceUnavailable" if code == 503 else "Unknown"),
        "code": code,
    }


def _is_watch(path: str) -> bool:
    return URL(path, encoded=True).query.get("watch") in {"true", "1"}
