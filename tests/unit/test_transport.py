"""Transport: what each answer, and each way to get none, means to the caller."""

import asyncio
import logging
import socket
import ssl
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any, Never

import aiohttp
import anyio
import pytest
import trustme

from controllers.runtime.errors import (
    AlreadyExists,
    ApiError,
    BadRequest,
    Conflict,
    Distrusted,
    FieldCause,
    Forbidden,
    Gone,
    Invalid,
    NotFound,
    NotLeader,
    ServerBusy,
    TooManyRequests,
    TransportError,
    Unauthorized,
    UnknownOutcome,
)
from controllers.runtime.identity import Credentials, FileSource, Proof, Trust
from controllers.runtime.transport import Transport
from tests.unit.fakeapi import FakeApi, Reply, Request, Stream, credentials, event, pod, refusal, serve, status

PODS = "/api/v1/namespaces/ns/pods"


@pytest.fixture
async def api() -> AsyncGenerator[FakeApi]:
    async with serve(FakeApi()) as fake:
        yield fake


class Rotating:
    """A source whose token changes at each renewal."""

    def __init__(self) -> None:
        self.renewals = 0

    async def load(self, *, renew: bool) -> Proof:
        if renew:
            self.renewals += 1
            await anyio.sleep(0.02)
        return Proof(f"Bearer t{self.renewals}")


class Counting:
    def __init__(self) -> None:
        self.codes: list[str] = []
        self.pauses: list[float] = []

    def call_done(self, method: str, code: str, seconds: float) -> None:
        self.codes.append(code)

    def gate_closed(self, seconds: float) -> None:
        self.pauses.append(seconds)


class SwitchFence:
    def __init__(self) -> None:
        self.open = True
        self.checks = 0

    def check(self) -> None:
        self.checks += 1
        if not self.open:
            raise NotLeader("not leading")


async def test_a_call_sends_what_it_was_given(api: FakeApi) -> None:
    api.on("PATCH", f"{PODS}/a", Reply(200, {"ok": True}, {"Set-Cookie": "session=1"}))
    async with Transport(credentials(api), user_agent="gk/1") as transport:
        for _ in range(2):
            body = await transport.call(
                "PATCH", f"{PODS}/a", query={"fieldManager": "a b", "force": "true"}, body=b"[]", content_type="application/json-patch+json"
            )
            assert body == b'{"ok": true}'
    sent = api.requests[-1]
    assert dict(sent.query) == {"fieldManager": "a b", "force": "true"}
    assert (sent.headers["Authorization"], sent.headers["User-Agent"]) == ("Bearer t0", "gk/1")
    assert (sent.headers["Content-Type"], sent.body) == ("application/json-patch+json", b"[]")
    assert "Cookie" not in sent.headers


@pytest.mark.parametrize(
    ("code", "reason", "kind"),
    [
        (400, "BadRequest", BadRequest),
        (403, "Forbidden", Forbidden),
        (404, "NotFound", NotFound),
        (409, "AlreadyExists", AlreadyExists),
        (409, "Conflict", Conflict),
        (410, "Gone", Gone),
        (410, "Expired", Gone),
        (422, "Invalid", Invalid),
        (429, "TooManyRequests", TooManyRequests),
        (500, "InternalError", ServerBusy),
        (503, "ServiceUnavailable", ServerBusy),
        (504, "Timeout", ServerBusy),
        (405, "MethodNotAllowed", ApiError),
    ],
)
async def test_statuses_become_types(api: FakeApi, code: int, reason: str, kind: type[ApiError]) -> None:
    api.on("POST", PODS, refusal(code, reason, "why"))
    async with Transport(credentials(api)) as transport:
        with pytest.raises(ApiError) as caught:
            await transport.call("POST", PODS, body=b"{}")
    assert type(caught.value) is kind
    assert (caught.value.status, caught.value.reason, caught.value.message) == (code, reason, "why")
    assert f"POST {PODS}" in str(caught.value)
    assert "t0" not in str(caught.value)
    assert caught.value.may_have_run == (code in (500, 504))


async def test_causes_and_bodies_that_are_no_status(api: FakeApi) -> None:
    cause = {"field": "spec.replicas", "message": "must be positive", "reason": "FieldValueInvalid"}
    api.on("POST", PODS, Reply(422, status(422, "Invalid", "no", causes=[cause])), Reply(502, b"<html>bad \xff gateway</html>"))
    async with Transport(credentials(api)) as transport:
        with pytest.raises(Invalid) as invalid:
            await transport.call("POST", PODS)
        with pytest.raises(ServerBusy, match="gateway"):
            await transport.call("POST", PODS)
    assert invalid.value.details == (FieldCause("spec.replicas", "must be positive", "FieldValueInvalid"),)


async def test_closed_fence_stops_writes_and_no_reads(api: FakeApi) -> None:
    fence = SwitchFence()
    fence.open = False
    api.on("GET", PODS, Reply())
    async with Transport(credentials(api), fence=fence) as transport:
        await transport.call("GET", PODS)
        for method in ("POST", "PUT", "PATCH", "DELETE"):
            with pytest.raises(NotLeader):
                await transport.call(method, PODS)
        assert [r.method for r in api.requests] == ["GET"]
        api.on("PUT", "/lease", Reply())
        async with transport.sibling() as elector:
            await elector.call("PUT", "/lease")
    assert [r.method for r in api.requests] == ["GET", "PUT"]


async def test_fence_that_closes_while_a_write_waits_for_a_connection(api: FakeApi) -> None:
    fence, gate = SwitchFence(), asyncio.Event()
    api.on("POST", PODS, Reply(gate=gate))
    async with Transport(credentials(api), fence=fence, connections=1) as transport:
        first = asyncio.create_task(transport.call("POST", PODS))
        second = asyncio.create_task(transport.call("POST", PODS))
        await api.arrived.wait()
        fence.open = False
        gate.set()
        await first
        with pytest.raises(NotLeader):
            await second
    assert len(api.requests) == 1


async def test_calls_in_flight_are_limited_and_watches_do_not_count(api: FakeApi) -> None:
    running = peak = 0

    async def slow(request: Request) -> Reply:
        nonlocal running, peak
        running += 1
        peak = max(peak, running)
        await asyncio.sleep(0.01)
        running -= 1
        return Reply()

    api.on("GET", PODS, slow)
    api.on("WATCH", PODS, Stream((event("ADDED", pod("a", 1)),)))
    async with Transport(credentials(api), connections=2) as transport, anyio.create_task_group() as group:
        async with transport.stream(PODS, query={"watch": "1"}) as one, transport.stream(PODS, query={"watch": "1"}) as two:
            assert [await anext(one), await anext(two)]
            async with anyio.create_task_group() as calls:
                for _ in range(6):
                    calls.start_soon(transport.call, "GET", PODS)
        group.cancel_scope.cancel()
    assert peak == 2


async def test_retry_after_holds_back_later_calls_but_no_watch_and_no_sibling(api: FakeApi) -> None:
    now, slept, metrics = 0.0, list[float](), Counting()

    async def sleep(seconds: float) -> None:
        nonlocal now
        slept.append(seconds)
        now += seconds

    api.on("POST", PODS, refusal(429, "TooManyRequests", headers={"Retry-After": "5"}), Reply())
    api.on("GET", PODS, Reply(503, b"", {"Retry-After": "3600"}))
    api.on("WATCH", PODS, Stream((event("ADDED", pod("a", 1)),)))
    api.on("PUT", "/lease", Reply())
    async with Transport(credentials(api), metrics=metrics, sleep=sleep, monotonic=lambda: now) as transport:
        with pytest.raises(TooManyRequests) as caught:
            await transport.call("POST", PODS)
        assert caught.value.retry_after_s == 5.0
        async with transport.stream(PODS, query={"watch": "1"}) as lines, transport.sibling() as elector:
            assert await anext(lines)
            await elector.call("PUT", "/lease")
        assert slept == []
        await transport.call("POST", PODS)
        assert slept == [5.0]
        with pytest.raises(ServerBusy):
            await transport.call("GET", PODS)
        assert metrics.pauses == [5.0, 60.0], "an absurd Retry-After is capped"
        before = len(api.requests)
        with pytest.raises(TooManyRequests) as early:
            await transport.call("POST", PODS, timeout_s=30.0)
        assert early.value.retry_after_s == 60.0
        assert len(api.requests) == before, "a call whose deadline is before the gate opens fails at once"
    assert metrics.codes == ["429", "200", "200", "503", "error"]


async def test_401_refreshes_once_for_twenty_calls(api: FakeApi) -> None:
    api.on("GET", PODS, lambda r: Reply() if r.headers["Authorization"] == "Bearer t1" else refusal(401, "Unauthorized"))
    source = Rotating()
    async with Transport(Credentials(api.url, source, Trust())) as transport, anyio.create_task_group() as group:
        for _ in range(20):
            group.start_soon(transport.call, "GET", PODS)
    assert source.renewals == 1
    assert len(api.requests) == 40


async def test_401_that_stays_is_raised_without_a_storm_of_refreshes(api: FakeApi) -> None:
    api.on("GET", PODS, refusal(401, "Unauthorized"))
    source = Rotating()
    async with Transport(Credentials(api.url, source, Trust())) as transport:
        for _ in range(5):
            with pytest.raises(Unauthorized):
                await transport.call("GET", PODS)
    assert source.renewals == 1
    assert len(api.requests) == 6


async def test_slow_refresh_does_not_outlast_the_deadline_of_a_call(api: FakeApi) -> None:
    class Stuck:
        async def load(self, *, renew: bool) -> Proof:
            if renew:
                await asyncio.Event().wait()
            return Proof("Bearer old")

    api.on("POST", PODS, refusal(401, "Unauthorized"))
    async with Transport(Credentials(api.url, Stuck(), Trust())) as transport:
        with pytest.raises(TransportError, match="no new credentials") as caught:
            await transport.call("POST", PODS, timeout_s=0.1)
    assert not isinstance(caught.value, UnknownOutcome)


async def test_403_and_401_leave_running_watches_alone(api: FakeApi) -> None:
    gate = asyncio.Event()
    api.on("WATCH", PODS, Stream((event("ADDED", pod("a", 1)), gate, event("ADDED", pod("b", 2)))))
    api.on("POST", PODS, refusal(403, "Forbidden", "exceeded quota"), refusal(401, "Unauthorized"))
    async with Transport(Credentials(api.url, Rotating(), Trust())) as transport, transport.stream(PODS, query={"watch": "1"}) as lines:
        assert b'"a"' in await anext(lines)
        with pytest.raises(Forbidden, match="quota"):
            await transport.call("POST", PODS)
        assert len(api.seen("POST")) == 1, "a refused create is sent once"
        with pytest.raises(Unauthorized):
            await transport.call("POST", PODS)
        gate.set()
        assert b'"b"' in await anext(lines)
    assert len(api.seen("WATCH")) == 1


async def test_write_without_an_answer_is_unknown_and_a_read_is_not(api: FakeApi) -> None:
    metrics = Counting()
    for method in ("GET", "POST"):
        api.on(method, PODS, Reply(delay_s=5.0))
    async with Transport(credentials(api), metrics=metrics) as transport:
        with pytest.raises(UnknownOutcome):
            await transport.call("POST", PODS, timeout_s=0.1)
        with pytest.raises(TransportError) as caught:
            await transport.call("GET", PODS, timeout_s=0.1)
    assert not isinstance(caught.value, UnknownOutcome)
    assert metrics.codes == ["unknown", "error"]


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE"])
async def test_write_cut_on_a_kept_alive_connection_is_sent_once(api: FakeApi, method: str) -> None:
    api.on("GET", PODS, Reply())
    api.on(method, PODS, Stream((), end="cut"))
    async with Transport(credentials(api)) as transport:
        await transport.call("GET", PODS)
        with pytest.raises(UnknownOutcome):
            await transport.call(method, PODS)
    assert len(api.seen(method)) == 1


async def test_write_whose_connection_dies_before_any_answer_is_sent_once() -> None:
    heads: list[bytes] = []

    async def serve_once(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        heads.append(await reader.readuntil(b"\r\n\r\n"))
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}")
        heads.append(await reader.readuntil(b"\r\n\r\n"))
        writer.close()

    server = await asyncio.start_server(serve_once, "127.0.0.1", 0)
    url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    async with server, Transport(Credentials(url, FileSource(), Trust())) as transport:
        await transport.call("GET", PODS)
        with pytest.raises(UnknownOutcome):
            await transport.call("DELETE", f"{PODS}/a", timeout_s=1.0)
    assert [head.split()[0] for head in heads] == [b"GET", b"DELETE"]


async def test_refused_connection_certainly_did_nothing() -> None:
    server = await asyncio.start_server(lambda _r, w: w.close(), "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    server.close()
    await server.wait_closed()
    async with Transport(Credentials(f"http://127.0.0.1:{port}", FileSource(), Trust())) as transport:
        with pytest.raises(TransportError) as caught:
            await transport.call("POST", PODS)
        assert not isinstance(caught.value, UnknownOutcome)
        assert caught.value.cause == "connection refused"
        with pytest.raises(TransportError, match="ClientConnectorError"):
            async with transport.stream(PODS):
                pass


@pytest.mark.parametrize(
    ("error", "cause"),
    [
        (aiohttp.ServerDisconnectedError(), "the connection was cut (Server disconnected)"),
        (ConnectionResetError(), "the connection was cut (ConnectionResetError)"),
        (TimeoutError(), "no answer in time"),
    ],
    ids=["with a text", "without one", "timeout"],
)
async def test_why_there_is_no_answer_is_never_empty(error: Exception, cause: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any, **__: Any) -> Never:
        raise error

    monkeypatch.setattr(aiohttp.ClientSession, "request", fail)
    async with Transport(Credentials("http://127.0.0.1:1", FileSource(), Trust())) as transport:
        with pytest.raises(TransportError) as caught:
            await transport.call("GET", PODS)
    assert caught.value.cause == cause


async def test_a_name_that_does_not_resolve_is_told() -> None:
    async with Transport(Credentials("http://grovekeeper.invalid:1", FileSource(), Trust())) as transport:
        with pytest.raises(TransportError) as caught:
            await transport.call("GET", PODS)
    assert caught.value.cause.startswith("DNS does not resolve grovekeeper.invalid")


async def test_refused_calls_are_told_and_watches_are_not(api: FakeApi) -> None:
    told: list[ApiError] = []
    api.on("POST", PODS, refusal(403, "Forbidden"), refusal(409, "Conflict"))
    api.on("WATCH", PODS, refusal(403, "Forbidden"))
    async with Transport(credentials(api), refused=told.append) as transport:
        for _ in range(2):
            with pytest.raises(ApiError):
                await transport.call("POST", PODS)
        with pytest.raises(Forbidden):
            async with transport.stream(PODS, query={"watch": "true"}):
                pass
    assert [error.status for error in told] == [403]


async def test_a_ca_that_is_replaced_after_a_refusal_is_read_soon(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("controllers.runtime.identity.REFRESH_PAUSE_S", 0.05)
    ca, path = trustme.CA(), tmp_path / "ca.crt"
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    ca.issue_cert("127.0.0.1").configure_cert(context)
    path.write_bytes(trustme.CA().cert_pem.bytes())
    async with serve(FakeApi(), context) as api, Transport(Credentials(api.url, FileSource(), Trust(ca_file=path))) as transport:
        api.on("GET", PODS, Reply())
        with pytest.raises(Distrusted):
            await transport.call("GET", PODS)
        path.write_bytes(ca.cert_pem.bytes())
        await anyio.sleep(0.06)
        await transport.call("GET", PODS)


async def test_tls_is_verified_unless_told_otherwise(caplog: pytest.LogCaptureFixture) -> None:
    ca, other = trustme.CA(), trustme.CA()
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    ca.issue_cert("127.0.0.1").configure_cert(context)
    async with serve(FakeApi(), context) as api:
        api.on("POST", PODS, Reply())
        good = Credentials(api.url, FileSource(), Trust(ca=ca.cert_pem.bytes()))
        bad = Credentials(api.url, FileSource(), Trust(ca=other.cert_pem.bytes()))
        with caplog.at_level(logging.WARNING):
            insecure = Credentials(api.url, FileSource(), Trust(insecure=True))
        for trusted in (good, insecure):
            async with Transport(trusted) as transport:
                await transport.call("POST", PODS)
        async with Transport(bad) as transport:
            with pytest.raises(TransportError) as caught:
                await transport.call("POST", PODS)
    assert not isinstance(caught.value, UnknownOutcome)
    assert caught.value.cause.startswith("TLS: its certificate is refused (")
    assert len(api.requests) == 2
    assert [r.message for r in caplog.records] == ["certificates of the API server are not verified"]


async def test_stream_gives_lines_and_ends_with_the_answer(api: FakeApi) -> None:
    api.on("WATCH", PODS, Stream((b'{"a"', 0.01, b":1}\n\n", b'{"b":2}\n'), end="close"))
    async with Transport(credentials(api)) as transport, transport.stream(PODS, query={"watch": "1"}) as lines:
        assert [line async for line in lines] == [b'{"a":1}', b'{"b":2}']


@pytest.mark.parametrize("end", ["cut", "close"])
async def test_stream_cut_mid_line_gives_no_part_of_it(api: FakeApi, end: str) -> None:
    api.on("WATCH", PODS, Stream((b'{"a":1}\n{"b"', 0.01), end="cut" if end == "cut" else "close"))
    got: list[bytes] = []

    async def read(transport: Transport) -> None:
        async with transport.stream(PODS, query={"watch": "1"}) as lines:
            async for line in lines:
                got.append(line)  # noqa: PERF401 - what came before the error is the point

    async with Transport(credentials(api)) as transport:
        with pytest.raises(TransportError):
            await read(transport)
    assert got == [b'{"a":1}']


async def test_silent_stream_is_given_up(api: FakeApi) -> None:
    api.on("WATCH", PODS, Stream((b"\n", 0.05, b"\n", 0.05, b"{}\n")))
    async with Transport(credentials(api)) as transport, transport.stream(PODS, query={"watch": "1"}, inactivity_s=0.15) as lines:
        assert await anext(lines) == b"{}", "empty keep-alive lines count as activity"
        with pytest.raises(TransportError):
            await anext(lines)


async def test_stream_refreshes_credentials_and_raises_refusals(api: FakeApi) -> None:
    api.on("WATCH", PODS, refusal(401, "Unauthorized"), Stream((b"{}\n",)), refusal(410, "Expired"))
    source = Rotating()
    async with Transport(Credentials(api.url, source, Trust())) as transport:
        async with transport.stream(PODS, query={"watch": "1"}) as lines:
            assert await anext(lines) == b"{}"
        with pytest.raises(Gone):
            async with transport.stream(PODS, query={"watch": "1"}):
                pass
    assert source.renewals == 1


@pytest.mark.parametrize("tls", [False, True], ids=["plain", "TLS"])
async def test_when_it_is_left_the_sockets_of_ended_streams_are_closed(tls: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    ca, sockets = trustme.CA(), list[socket.socket]()
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    ca.issue_cert("127.0.0.1").configure_cert(context)
    opened = Transport._open

    async def note(self: Transport, *arguments: Any) -> Any:
        stream: Any = await opened(self, *arguments)
        connection = stream._response.connection
        assert connection is not None
        assert connection.transport is not None
        sockets.append(connection.transport.get_extra_info("socket"))
        return stream

    monkeypatch.setattr(Transport, "_open", note)
    async with serve(FakeApi(), context if tls else None) as api:
        api.on("WATCH", PODS, Stream((event("ADDED", pod("a", 1)),)))
        trust = Trust(ca=ca.cert_pem.bytes()) if tls else Trust()
        async with Transport(Credentials(api.url, FileSource(authorization="Bearer t"), trust)) as transport:
            for _ in range(3):
                async with transport.stream(PODS, query={"watch": "1"}) as lines:
                    assert await anext(lines)
        assert [s.fileno() for s in sockets] == [-1, -1, -1]


async def test_a_watch_that_is_never_begun_to_be_answered_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("controllers.runtime.transport.OPEN_LIMIT_S", 0.1)
    taken = asyncio.Event()

    async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        taken.set()
        await reader.read()
        writer.close()

    server = await asyncio.start_server(silent, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    async with server, Transport(Credentials(f"http://127.0.0.1:{port}", FileSource(authorization="Bearer t"), Trust())) as transport:
        with pytest.raises(TransportError, match="not answered within"), anyio.fail_after(5):
            async with transport.stream("/api/v1/pods"):
                pass
    assert taken.is_set()
