"""A scripted HTTP server that plays an API server.

Answers and watch streams are given per path and consumed in order; the last one repeats.
"""

import asyncio
import json
import ssl
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from aiohttp import web

from controllers.runtime.identity import Credentials, FileSource, Trust


@dataclass(frozen=True)
class Reply:
    """One whole answer. A dict is sent as JSON. delay_s: time before it is sent. gate: set before it is sent."""

    status: int = 200
    body: bytes | dict[str, Any] = b"{}"
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    delay_s: float = 0.0
    gate: asyncio.Event | None = None


@dataclass(frozen=True)
class Stream:
    """A streamed answer: chunks as they are, numbers as pauses in seconds, events as something to wait for; then its end.

    close: proper end of the answer. cut: the connection breaks. hang: silence until the client goes away.
    """

    chunks: tuple[bytes | float | asyncio.Event, ...] = ()
    end: Literal["close", "cut", "hang"] = "hang"


@dataclass(frozen=True)
class Request:
    """What arrived."""

    method: str
    path: str
    query: Mapping[str, str]
    headers: Mapping[str, str]
    body: bytes

    @property
    def watch(self) -> bool:
        return "watch" in self.query


Answer: TypeAlias = Reply | Stream
Script: TypeAlias = Answer | Callable[[Request], Answer | Awaitable[Answer]]


class FakeApi:
    """Records every request and plays the scripts. `url` is known once it is served."""

    def __init__(self) -> None:
        self.requests: list[Request] = []
        self.url = ""
        self.arrived = asyncio.Event()
        self._scripts: dict[tuple[str, str], list[Script]] = {}

    def on(self, method: str, path: str, *scripts: Script) -> None:
        """Answers to `method` (WATCH for GET with watch=…) on `path`, in order."""
        self._scripts[method, path] = list(scripts)

    def seen(self, method: str, path: str = "") -> list[Request]:
        """Requests so far by method (WATCH as above) and, if given, path."""
        return [r for r in self.requests if _verb(r) == method and path in ("", r.path)]

    async def handle(self, request: web.Request) -> web.StreamResponse:
        record = Request(request.method, request.path, dict(request.query), dict(request.headers), await request.read())
        self.requests.append(record)
        self.arrived.set()
        scripts = self._scripts.get((_verb(record), record.path))
        if not scripts:
            return web.json_response(status(404, "NotFound", f"no script for {_verb(record)} {record.path}"), status=404)
        script = scripts.pop(0) if len(scripts) > 1 else scripts[0]
        answer = script if isinstance(script, (Reply, Stream)) else script(record)
        if isinstance(answer, Awaitable):
            answer = await answer
        return await (_reply(answer, request) if isinstance(answer, Reply) else _stream(answer, request))


def _verb(request: Request) -> str:
    return "WATCH" if request.watch else request.method


async def _reply(reply: Reply, request: web.Request) -> web.StreamResponse:
    if reply.delay_s:
        await asyncio.sleep(reply.delay_s)
    if reply.gate is not None:
        await reply.gate.wait()
    body = reply.body if isinstance(reply.body, bytes) else json.dumps(reply.body).encode()
    return web.Response(status=reply.status, body=body, headers=dict(reply.headers), content_type="application/json")


async def _stream(stream: Stream, request: web.Request) -> web.StreamResponse:
    response = web.StreamResponse(headers={"Content-Type": "application/json"})
    response.enable_chunked_encoding()
    await response.prepare(request)
    for chunk in stream.chunks:
        if isinstance(chunk, bytes):
            await response.write(chunk)
        elif isinstance(chunk, asyncio.Event):
            await chunk.wait()
        else:
            await asyncio.sleep(chunk)
    if stream.end == "hang":
        await asyncio.Event().wait()
    if stream.end == "cut" and request.transport is not None:
        request.transport.close()
    return response


@asynccontextmanager
async def serve(api: FakeApi, context: ssl.SSLContext | None = None) -> AsyncGenerator[FakeApi]:
    """Serves `api` on a free loopback port; with `context` by TLS."""
    app = web.Application(client_max_size=64 * 1024 * 1024)
    app.router.add_route("*", "/{path:.*}", api.handle)
    runner = web.AppRunner(app, shutdown_timeout=0.01, access_log=None, handler_cancellation=True)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0, ssl_context=context)
    await site.start()
    port: int = runner.addresses[0][1]
    api.url = f"{'https' if context else 'http'}://127.0.0.1:{port}"
    try:
        yield api
    finally:
        await runner.cleanup()


def credentials(api: FakeApi, bearer: str = "t0") -> Credentials:
    """Credentials with a fixed token for a served fake."""
    return Credentials(api.url, FileSource(authorization=f"Bearer {bearer}"), Trust())


def status(code: int, reason: str, message: str = "", **details: Any) -> dict[str, Any]:
    """A metav1.Status failure."""
    return {
        "kind": "Status",
        "apiVersion": "v1",
        "status": "Failure",
        "code": code,
        "reason": reason,
        "message": message,
        "details": details,
    }


def refusal(code: int, reason: str, message: str = "", headers: Mapping[str, str] | None = None) -> Reply:
    """A Reply with a metav1.Status."""
    return Reply(code, status(code, reason, message), headers or {})


def pod(
    name: str, rv: int, *, uid: str = "", namespace: str = "ns", labels: Mapping[str, str] | None = None, **spec: Any
) -> dict[str, Any]:
    """A pod manifest; its uid is derived from the name unless given."""
    metadata = {"name": name, "namespace": namespace, "uid": uid or f"uid-{name}", "resourceVersion": str(rv), "labels": dict(labels or {})}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec, "status": {}}


def event(type_: str, obj: Mapping[str, Any]) -> bytes:
    """One line of a watch."""
    return json.dumps({"type": type_, "object": obj}).encode() + b"\n"


def bookmark(rv: int, *, initial_end: bool = False) -> bytes:
    """A bookmark line; with `initial_end` the one that ends the initial events of a WatchList."""
    annotations = {"k8s.io/initial-events-end": "true"} if initial_end else {}
    return event("BOOKMARK", {"kind": "Pod", "apiVersion": "v1", "metadata": {"resourceVersion": str(rv), "annotations": annotations}})


def pod_list(rv: int, *items: Mapping[str, Any], token: str = "") -> Reply:
    """A page of a pod list; `token` continues it."""
    return Reply(
        200, {"kind": "PodList", "apiVersion": "v1", "metadata": {"resourceVersion": str(rv), "continue": token}, "items": list(items)}
    )
