"""The HTTP listener: what travels, what is refused, and when streams end."""

import asyncio
import io
import json
import ssl
from collections.abc import AsyncIterator
from pathlib import Path

import aiohttp
import pytest
import yaml
import yarl

from sim.apiserver.front.certificate import write_certificate
from sim.apiserver.front.kubeconfig import write_kubeconfig
from sim.apiserver.front.listener import Listener
from sim.apiserver.requests import ADMIN, MAX_BODY, Answer, Request, Stream, User


class Echo:
    """Keeps every request and answers with its path."""

    def __init__(self) -> None:
        self.seen: list[Request] = []

    async def __call__(self, request: Request) -> Answer:
        self.seen.append(request)
        return Answer(201, request.path.encode(), "text/x", {"Warning": '299 - "careful"'})


async def test_requests_and_answers_travel_unchanged() -> None:
    echo = Echo()
    target = "/api/v1/namespaces/a%20b/pods?labelSelector=a%3Db%2Cc&fieldSelector=x+y&watch&labelSelector=second"
    head = {"Accept": "application/json", "Content-Type": "application/yaml", "User-Agent": "me/1", "Impersonate-User": "jane"}
    async with Listener(echo) as listener, aiohttp.ClientSession() as session:
        async with session.post(yarl.URL(listener.url + target, encoded=True), data=b"body", headers=head) as answer:
            assert (answer.status, await answer.read()) == (201, b"/api/v1/namespaces/a b/pods")
            assert answer.headers["Content-Type"] == "text/x"
            assert answer.headers["Warning"] == '299 - "careful"'
        async with session.get(f"{listener.url}/x"):
            pass
    first, second = echo.seen
    assert first.query == {"labelSelector": "a=b,c", "fieldSelector": "x y", "watch": ""}
    assert (first.method, first.body, first.content_type) == ("POST", b"body", "application/yaml")
    assert (first.accept, first.user_agent) == ("application/json", "me/1")
    assert first.user == User("jane", ("system:authenticated",))
    assert (second.body, second.query, second.user) == (b"", {}, ADMIN)


@pytest.mark.parametrize("authorization", [None, "Bearer wrong", "bearer", "Basic x", "Bearer tökén"])
async def test_a_wrong_or_missing_token_is_refused(authorization: str | None) -> None:
    echo = Echo()
    head = {"Authorization": authorization} if authorization else {}
    async with (
        Listener(echo, token="right") as listener,  # noqa: S106 - no secret
        aiohttp.ClientSession(headers=head) as session,
        session.get(f"{listener.url}/api") as answer,
    ):
        assert answer.status == 401
        status = await answer.json()
    assert (status["reason"], status["message"], status["code"]) == ("Unauthorized", "Unauthorized", 401)
    assert echo.seen == []


async def test_large_answers_travel() -> None:
    async def handle(request: Request) -> Answer:
        return Answer(200, b"x" * 5_000_000)

    async with Listener(handle) as listener, aiohttp.ClientSession() as session, session.get(listener.url) as answer:
        assert len(await answer.read()) == 5_000_000


async def test_a_token_that_is_no_text_is_refused() -> None:
    async with Listener(Echo(), token="right") as listener:  # noqa: S106 - no secret
        reader, writer = await asyncio.open_connection("127.0.0.1", listener.port)
        writer.write(b"GET /api HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer \xff\r\nConnection: close\r\n\r\n")
        assert (await reader.readline()).startswith(b"HTTP/1.1 401")
        writer.close()
        await writer.wait_closed()


async def test_the_right_token_and_public_paths_pass() -> None:
    echo = Echo()
    async with Listener(echo, token="right") as listener, aiohttp.ClientSession() as session:  # noqa: S106 - no secret
        async with session.get(f"{listener.url}/api", headers={"Authorization": "Bearer right"}) as answer:
            assert answer.status == 201
        async with session.get(f"{listener.url}/readyz") as answer:
            assert answer.status == 201


async def test_other_addresses_than_loopback_need_a_token() -> None:
    with pytest.raises(ValueError, match="needs a token"):
        Listener(Echo(), host="0.0.0.0")  # noqa: S104 - refused


@pytest.mark.parametrize("is_chunked", [False, True])
async def test_bodies_have_a_limit(is_chunked: bool) -> None:
    echo = Echo()

    async def chunks() -> AsyncIterator[bytes]:
        for _ in range(4):
            yield b" " * (MAX_BODY // 3)

    async with Listener(echo) as listener, aiohttp.ClientSession() as session:
        async with session.post(f"{listener.url}/fits", data=io.BytesIO(b" " * MAX_BODY)) as answer:
            assert answer.status == 201
        data = chunks() if is_chunked else io.BytesIO(b" " * (MAX_BODY + 1))
        async with session.post(f"{listener.url}/big", data=data) as answer:
            assert answer.status == 413
            assert json.loads(await answer.read()) == {
                "kind": "Status",
                "apiVersion": "v1",
                "metadata": {},
                "status": "Failure",
                "message": "Request entity too large: limit is 3145728",
                "reason": "RequestEntityTooLarge",
                "code": 413,
            }
    assert [r.path for r in echo.seen] == ["/fits"]


class Lines:
    """A stream fed by the test."""

    def __init__(self) -> None:
        self.queue: asyncio.Queue[bytes | None] = asyncio.Queue()
        self.ended = asyncio.Event()

    async def lines(self) -> AsyncIterator[bytes]:
        try:
            while (line := await self.queue.get()) is not None:
                yield line
        finally:
            self.ended.set()

    async def __call__(self, request: Request) -> Stream:
        return Stream(self.lines())


async def test_every_line_is_sent_at_once_and_the_end_is_clean() -> None:
    lines = Lines()
    async with Listener(lines) as listener, aiohttp.ClientSession() as session, session.get(f"{listener.url}/watch") as answer:
        assert answer.headers["Transfer-Encoding"] == "chunked"
        for line in (b'{"a":1}\n', b'{"b":2}\n'):
            lines.queue.put_nowait(line)
            assert await asyncio.wait_for(answer.content.readline(), 5) == line
        lines.queue.put_nowait(None)
        assert await asyncio.wait_for(answer.content.read(), 5) == b""


async def test_a_client_that_leaves_ends_the_stream() -> None:
    lines = Lines()
    async with Listener(lines) as listener, aiohttp.ClientSession() as session:
        async with session.get(f"{listener.url}/watch") as answer:
            answer.close()
        await asyncio.wait_for(lines.ended.wait(), 5)


async def test_closing_ends_streams_at_once_and_waits_for_answers() -> None:
    lines = Lines()
    started = asyncio.Event()

    async def handle(request: Request) -> Answer | Stream:
        if request.path == "/watch":
            return await lines(request)
        started.set()
        await asyncio.sleep(0.1)
        return Answer(200, b"done")

    async with aiohttp.ClientSession() as session:
        async with Listener(handle) as listener:
            await session.get(f"{listener.url}/watch")
            slow = asyncio.create_task(session.get(f"{listener.url}/slow"))
            await started.wait()
        assert lines.ended.is_set()
        assert await (await slow).read() == b"done"
        with pytest.raises(aiohttp.ClientConnectorError):
            await session.get(f"{listener.url}/later")


async def test_tls_with_a_certificate_of_its_own(tmp_path: Path) -> None:
    context, trusted = write_certificate(tmp_path / "tls")
    assert (tmp_path / "tls" / "server.key").stat().st_mode & 0o077 == 0
    client = ssl.create_default_context(cafile=trusted)
    async with (
        Listener(Echo(), tls=context) as listener,
        aiohttp.ClientSession() as session,
        session.get(f"{listener.url}/api", ssl=client) as answer,
    ):
        assert listener.url.startswith("https://127.0.0.1:")
        assert await answer.read() == b"/api"


def test_the_kubeconfig_names_server_and_token(tmp_path: Path) -> None:
    path = tmp_path / "new" / "kubeconfig"
    write_kubeconfig(path, "http://127.0.0.1:1", "secret")
    config = yaml.safe_load(path.read_text())
    assert config["clusters"][0]["cluster"] == {"server": "http://127.0.0.1:1"}
    assert config["users"][0]["user"] == {"token": "secret"}
    assert config["current-context"] == config["contexts"][0]["name"]
    assert path.stat().st_mode & 0o077 == 0
