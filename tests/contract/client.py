"""A client that hides nothing: every answer comes back as it is, whatever its status."""

import asyncio
import contextlib
import io
import json
import re
import secrets
import ssl
import time
from collections.abc import AsyncGenerator, Callable, Mapping
from dataclasses import dataclass
from typing import Any, Self

import aiohttp
from yarl import URL

from tests.contract.kinds import Kind, Obj

__all__ = ("PATCH_TYPES", "Access", "Api", "Ended", "Reply", "Watch", "connect")

PATCH_TYPES = {
    "apply": "application/apply-patch+yaml",
    "json": "application/json-patch+json",
    "merge": "application/merge-patch+json",
    "strategic": "application/strategic-merge-patch+json",
}

REBUILDING_S = 10.0
"""For so long answers are not taken that only say that kube-apiserver makes a cache anew."""

# Several warnings may come in one header or in many.
WARNING = re.compile(r'\d{3} [^ ]+ "(?:[^"\\]|\\.)*"')


@dataclass(frozen=True, slots=True)
class Access:
    """How to reach a server; no context means plain HTTP."""

    url: str
    token: str = ""
    tls: ssl.SSLContext | None = None


@dataclass(frozen=True, slots=True)
class Reply:
    """One answer. `headers` has lower-case names and, of a repeated header, the first value."""

    status: int
    headers: Mapping[str, str]
    raw: bytes
    warnings: tuple[str, ...] = ()

    @property
    def body(self) -> Any:
        """The decoded JSON."""
        return json.loads(self.raw)

    @property
    def text(self) -> str:
        return self.raw.decode()

    @property
    def meta(self) -> Obj:
        return self.body["metadata"]

    @property
    def rv(self) -> str:
        return self.meta["resourceVersion"]

    @property
    def uid(self) -> str:
        return self.meta["uid"]

    @property
    def items(self) -> list[Obj]:
        return self.body["items"]

    @property
    def names(self) -> list[str]:
        """Names of a list's items, in its order."""
        return [i["metadata"]["name"] for i in self.items]

    @property
    def reason(self) -> str:
        """Of a Status; "" when there is none."""
        return self.body.get("reason", "")

    @property
    def message(self) -> str:
        return self.body.get("message", "")

    @property
    def details(self) -> Obj:
        return self.body.get("details", {})

    @property
    def causes(self) -> list[tuple[str, str]]:
        """(field, reason) of each cause."""
        return [(c.get("field", ""), c.get("reason", "")) for c in self.details.get("causes", [])]

    @property
    def is_rebuilding(self) -> bool:
        """kube-apiserver makes its cache of a kind anew, as it does for a moment after a definition was made or changed."""
        return self.status == 429 and b"storage is (re)initializing" in self.raw

    def expect(self, status: int, reason: str | None = None, message: str | None = None) -> Self:
        """Assert the status and, where given, the reason and the whole message; returns itself."""
        assert self.status == status, f"{self.status} instead of {status}: {self.raw[:600].decode(errors='replace')}"
        if reason is not None:
            assert (self.body.get("kind"), self.body.get("code"), self.reason) == ("Status", status, reason), self.text
        if message is not None:
            assert self.message == message, f"{self.message}\n instead of\n{message}"
        return self


class Ended(Exception):
    """The server ended a watch."""


class Watch:
    """A watch that was answered. `status` and `headers` are those of the answer; `events` all that were read so far."""

    def __init__(self, response: aiohttp.ClientResponse) -> None:
        self.status = response.status
        self.headers = _headers_of(response)
        self.events: list[Obj] = []
        self._response = response
        self._buffer = b""

    async def next(self, timeout_s: float = 5.0) -> Obj:
        """The next event ({type, object}); Ended at the end of the stream, TimeoutError when nothing comes."""
        async with asyncio.timeout(timeout_s):
            while b"\n" not in self._buffer:
                chunk = await self._response.content.readany()
                if not chunk:
                    raise Ended
                self._buffer += chunk
        line, _, self._buffer = self._buffer.partition(b"\n")
        event = json.loads(line)
        self.events.append(event)
        return event

    async def take(self, n: int, timeout_s: float = 5.0) -> list[Obj]:
        """The next n events."""
        return [await self.next(timeout_s) for _ in range(n)]

    async def rest(self, timeout_s: float = 5.0) -> list[Obj]:
        """All events until the server ends the stream."""
        out: list[Obj] = []
        with contextlib.suppress(Ended):
            while True:
                out.append(await self.next(timeout_s))
        return out

    async def until(self, wanted: Callable[[Obj], bool], timeout_s: float = 5.0) -> Obj:
        """The next event for which this holds; others are read and kept in `events`."""
        async with asyncio.timeout(timeout_s):
            while not wanted(event := await self.next(timeout_s)):
                pass
            return event

    async def named(self, n: int) -> list[tuple[str, str]]:
        """(type, name) of the next n events."""
        return [(e["type"], e["object"]["metadata"]["name"]) for e in await self.take(n)]

    async def reply(self) -> Reply:
        """The whole answer of a watch that was refused."""
        return await _reply(self._response)


class Api:
    """Talks to one server. Namespaced kinds go to the test's own namespace unless `ns` names another; `ns=""` means all or none.

    Further keyword arguments of every verb are query parameters, True written as `true`.
    """

    def __init__(self, server: str, access: Access, session: aiohttp.ClientSession, namespace: str) -> None:
        self.server = server
        self.access = access
        self.ns = namespace
        self._session = session

    def unique(self, prefix: str = "x") -> str:
        """A name that nobody else uses: for cluster-scoped objects."""
        return f"{prefix}-{secrets.token_hex(5)}"

    async def get(
        self, kind: Kind, name: str, sub: str = "", *, ns: str | None = None, accept: str = "application/json", **query: Any
    ) -> Reply:
        return await self.request("GET", self.path(kind, name, sub, ns), accept=accept, query=query)

    async def list(self, kind: Kind, *, ns: str | None = None, accept: str = "application/json", **query: Any) -> Reply:
        return await self.request("GET", self.path(kind, ns=ns), accept=accept, query=query)

    async def caught_up(self, kind: Kind) -> None:
        """Returns when the server's cache of a kind, from which version 0 is read, has all that was written so far."""
        rv = (await self.list(kind, limit=1)).expect(200).rv
        (await self.list(kind, limit=1, resourceVersion=rv, resourceVersionMatch="NotOlderThan")).expect(200)

    async def create(self, kind: Kind, body: Any, name: str = "", sub: str = "", *, ns: str | None = None, **query: Any) -> Reply:
        """POST; `name` and `sub` only for subresources."""
        return await self.request("POST", self.path(kind, name, sub, ns), body, query=query)

    async def update(self, kind: Kind, body: Obj, name: str | None = None, sub: str = "", *, ns: str | None = None, **query: Any) -> Reply:
        """PUT to the name in the object, or to `name`."""
        target = body["metadata"]["name"] if name is None else name
        return await self.request("PUT", self.path(kind, target, sub, ns), body, query=query)

    async def patch(
        self, kind: Kind, name: str, body: Any, patch_type: str = "merge", sub: str = "", *, ns: str | None = None, **query: Any
    ) -> Reply:
        """`patch_type`: one of PATCH_TYPES, or a content type."""
        content_type = PATCH_TYPES.get(patch_type, patch_type)
        return await self.request("PATCH", self.path(kind, name, sub, ns), body, content_type=content_type, query=query)

    async def apply(self, kind: Kind, body: Obj, manager: str = "tester", sub: str = "", *, ns: str | None = None, **query: Any) -> Reply:
        """Server-side apply by a field manager."""
        return await self.patch(kind, body["metadata"]["name"], body, "apply", sub, ns=ns, fieldManager=manager, **query)

    async def delete(self, kind: Kind, name: str, options: Obj | None = None, *, ns: str | None = None, **query: Any) -> Reply:
        """`options`: fields of DeleteOptions, sent as the body."""
        return await self.request("DELETE", self.path(kind, name, ns=ns), options, query=query)

    async def delete_all(self, kind: Kind, options: Obj | None = None, *, ns: str | None = None, **query: Any) -> Reply:
        """DELETE of the collection."""
        return await self.request("DELETE", self.path(kind, ns=ns), options, query=query)

    @contextlib.asynccontextmanager
    async def watch(self, kind: Kind, *, ns: str | None = None, accept: str = "application/json", **query: Any) -> AsyncGenerator[Watch]:
        """An open watch of a collection; a refusal has its status and `reply()`."""
        url, headers = self._url(self.path(kind, ns=ns), {"watch": True, **query}), self._headers({"Accept": accept})
        deadline = time.monotonic() + REBUILDING_S
        while True:
            async with self._session.get(url, headers=headers, ssl=self.access.tls or True) as response:
                if time.monotonic() > deadline or response.status != 429 or not (await _reply(response)).is_rebuilding:
                    try:
                        yield Watch(response)
                    finally:
                        # A polite end of TLS would outlive the test's event loop.
                        if response.connection is not None and response.connection.transport is not None:
                            response.connection.transport.abort()
                            await asyncio.sleep(0)
                    return
            await asyncio.sleep(0.1)

    async def made(self, kind: Kind, body: Obj, *, ns: str | None = None, **query: Any) -> Obj:
        """Create and return the object; must succeed."""
        return (await self.create(kind, body, ns=ns, **query)).expect(201).body

    async def read(self, kind: Kind, name: str, *, ns: str | None = None) -> Obj:
        """Get and return the object; must succeed."""
        return (await self.get(kind, name, ns=ns)).expect(200).body

    async def gone(self, kind: Kind, name: str, *, ns: str | None = None) -> bool:
        """Whether the object does not exist."""
        return (await self.get(kind, name, ns=ns)).status == 404

    async def poll(self, question: Callable[[], Any], timeout_s: float = 10.0) -> Any:
        """Ask an async question until its answer is truthy and return that; for what controllers do."""
        async with asyncio.timeout(timeout_s):
            # What is waited for happens in another program.
            while not (answer := await question()):  # noqa: ASYNC110
                await asyncio.sleep(0.05)
            return answer

    async def request(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        query: Mapping[str, Any] | str | None = None,
        content_type: str = "application/json",
        accept: str = "application/json",
        headers: Mapping[str, str] | None = None,
    ) -> Reply:
        """One request. `body`: bytes and str are sent as they are, anything else as JSON. A `query` string is sent as it is.

        An empty `content_type` or `accept` sends no such header.
        """
        data = body if isinstance(body, bytes | None) else body.encode() if isinstance(body, str) else json.dumps(body).encode()
        sent = {"Accept": accept, **({"Content-Type": content_type} if data is not None else {}), **(headers or {})}
        skip = [name for name in ("Accept", "Content-Type") if not sent.get(name)]
        deadline = time.monotonic() + REBUILDING_S
        while True:
            async with self._session.request(
                method,
                self._url(path, query),
                # aiohttp warns of large bodies that come as bytes.
                data=data if data is None or len(data) < 1_000_000 else io.BytesIO(data),
                headers=self._headers({k: v for k, v in sent.items() if v}),
                skip_auto_headers=skip,
                allow_redirects=False,
                ssl=self.access.tls or True,
            ) as response:
                reply = await _reply(response)
            if not reply.is_rebuilding or time.monotonic() > deadline:
                return reply
            await asyncio.sleep(0.1)

    def path(self, kind: Kind, name: str = "", sub: str = "", ns: str | None = None) -> str:
        namespace = "" if not kind.is_namespaced else self.ns if ns is None else ns
        return kind.path(namespace, name, sub)

    def _url(self, path: str, query: Mapping[str, Any] | str | None) -> URL:
        if isinstance(query, str):
            return URL(f"{self.access.url}{path}?{query}", encoded=True)
        url = URL(f"{self.access.url}{path}", encoded="%" in path)
        return url.with_query({k: _text(v) for k, v in query.items() if v is not None}) if query else url

    def _headers(self, headers: Mapping[str, str]) -> dict[str, str]:
        token = {"Authorization": f"Bearer {self.access.token}"} if self.access.token else {}
        return {**token, **headers}


async def _reply(response: aiohttp.ClientResponse) -> Reply:
    return Reply(
        response.status,
        _headers_of(response),
        await response.read(),
        tuple(WARNING.findall(", ".join(response.headers.getall("Warning", ())))),
    )


def _headers_of(response: aiohttp.ClientResponse) -> dict[str, str]:
    return {name.lower(): response.headers[name] for name in response.headers}


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


@contextlib.asynccontextmanager
async def connect(server: str, access: Access, namespace: str) -> AsyncGenerator[Api]:
    """An Api with connections of its own."""
    timeout = aiohttp.ClientTimeout(total=None, sock_connect=5, sock_read=15)
    async with aiohttp.ClientSession(timeout=timeout, headers={"User-Agent": "contract/1.0"}) as session:
        yield Api(server, access, session, namespace)
