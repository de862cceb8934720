"""The fault proxy does exactly the damage that it is told to do."""

import asyncio
import json
import ssl
from collections.abc import AsyncIterator
from pathlib import Path

import aiohttp
import pytest
from aiohttp import web

from e2e.faultproxy import CutWatch, Delay, DropResponse, FaultProxy, GoneEvent, Refuse, Respond, Rule
from hack.kube import ControlPlane
from hack.kube.client import Access, read_kubeconfig, write_kubeconfig

LINES = [f'{{"n":{n}}}\n'.encode() for n in range(5)]


class Upstream:
    """A stand-in API server: echoes calls, streams five lines to a watch and then keeps it open."""

    def __init__(self) -> None:
        self.received: list[tuple[str, str, bytes]] = []
        self.app = web.Application()
        self.app.router.add_route("*", "/{path:.*}", self.handle)

    async def handle(self, request: web.Request) -> web.StreamResponse:
        self.received.append((request.method, request.raw_path, await request.read()))
        if "watch" not in request.query:
            return web.json_response({"token": request.headers.get("Authorization")}, status=201)
        response = web.StreamResponse()
        await response.prepare(request)
        await response.write(b"".join(LINES[:2]) + LINES[2][:3])
        await response.write(LINES[2][3:] + LINES[3] + LINES[4])
        await asyncio.sleep(60)
        return response


@pytest.fixture
async def upstream(tmp_path: Path) -> AsyncIterator[Upstream]:
    fake = Upstream()
    runner = web.AppRunner(fake.app, handler_cancellation=True, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    write_kubeconfig(tmp_path / "upstream", Access(f"http://127.0.0.1:{runner.addresses[0][1]}", None, "secret"))
    yield fake
    await runner.cleanup()


@pytest.fixture
async def proxy(upstream: Upstream, tmp_path: Path) -> AsyncIterator[FaultProxy]:
    async with FaultProxy(tmp_path / "upstream") as started:
        yield started


@pytest.fixture
async def session() -> AsyncIterator[aiohttp.ClientSession]:
    async with aiohttp.ClientSession() as opened:
        yield opened


async def test_passes_requests_unchanged(upstream: Upstream, proxy: FaultProxy, session: aiohttp.ClientSession, tmp_path: Path) -> None:
    proxy.write_kubeconfig(tmp_path / "through")
    access = read_kubeconfig(tmp_path / "through")
    assert access == Access(proxy.server, None, "secret")
    async with session.post(f"{access.server}/a%2Fb?x=1%3D", data=b"body", headers={"Authorization": "Bearer secret"}) as answer:
        assert answer.status == 201
        assert await answer.json() == {"token": "Bearer secret"}
    assert upstream.received == [("POST", "/a%2Fb?x=1%3D", b"body")]
    seen = proxy.requests[0]
    assert (seen.method, seen.body, seen.status, seen.fault, seen.is_write) == ("POST", b"body", 201, None, True)


async def test_responds_to_the_next_matching_requests_only(upstream: Upstream, proxy: FaultProxy, session: aiohttp.ClientSession) -> None:
    proxy.add(Rule(Respond(429, retry_after_s=7), method="POST", path="/pods$", times=2))
    statuses: list[int] = []
    for method, path in (("POST", "/nodes"), ("GET", "/pods"), ("POST", "/pods"), ("POST", "/pods"), ("POST", "/pods")):
        async with session.request(method, proxy.server + path) as answer:
            statuses.append(answer.status)
            if answer.status == 429:
                assert answer.headers["Retry-After"] == "7"
                assert (await answer.json())["reason"] == "TooManyRequests"
    assert statuses == [201, 201, 429, 429, 201]
    assert len(upstream.received) == 3


async def test_refuses_without_forwarding(upstream: Upstream, proxy: FaultProxy, session: aiohttp.ClientSession) -> None:
    rule = proxy.add(Rule(Refuse(), times=None))
    for _ in range(2):
        with pytest.raises(aiohttp.ClientConnectionError):
            await session.post(f"{proxy.server}/pods")
    assert upstream.received == []
    proxy.rules.remove(rule)
    async with session.post(f"{proxy.server}/pods") as answer:
        assert answer.status == 201


async def test_drops_the_response_after_the_write(upstream: Upstream, proxy: FaultProxy, session: aiohttp.ClientSession) -> None:
    proxy.add(Rule(DropResponse(), method="POST"))
    with pytest.raises(aiohttp.ClientConnectionError):
        await session.post(f"{proxy.server}/pods", data=b"x")
    assert upstream.received == [("POST", "/pods", b"x")]
    assert (proxy.requests[0].forwarded_status, proxy.requests[0].status) == (201, None)


async def test_delays(proxy: FaultProxy, session: aiohttp.ClientSession) -> None:
    proxy.add(Rule(Delay(0.2)))
    loop = asyncio.get_running_loop()
    began = loop.time()
    async with session.get(f"{proxy.server}/pods") as answer:
        assert answer.status == 201
    assert loop.time() - began >= 0.2


@pytest.mark.parametrize("lines", [0, 1, 3])
async def test_cuts_a_watch_after_whole_lines(proxy: FaultProxy, session: aiohttp.ClientSession, lines: int) -> None:
    proxy.add(Rule(CutWatch(after_lines=lines)))
    received = b""
    with pytest.raises(aiohttp.ClientError):  # noqa: PT012 - the error may come with the headers or with any line
        async with session.get(f"{proxy.server}/pods?watch=true") as answer:
            async for chunk in answer.content.iter_any():
                received += chunk
    assert received == b"".join(LINES[:lines])


async def test_watch_faults_leave_calls_alone(proxy: FaultProxy, session: aiohttp.ClientSession) -> None:
    rule = proxy.add(Rule(CutWatch()))
    async with session.get(f"{proxy.server}/pods") as answer:
        assert answer.status == 201
    assert rule.times == 1


async def test_answers_a_watch_with_gone(upstream: Upstream, proxy: FaultProxy, session: aiohttp.ClientSession) -> None:
    proxy.add(Rule(GoneEvent()))
    async with session.get(f"{proxy.server}/pods?watch=1") as answer:
        event = json.loads(await answer.text())
    assert (event["type"], event["object"]["code"], event["object"]["reason"]) == ("ERROR", 410, "Expired")
    assert upstream.received == []


async def test_cuts_live_watches_by_path(proxy: FaultProxy, session: aiohttp.ClientSession) -> None:
    async with session.get(f"{proxy.server}/pods?watch=true") as pods, session.get(f"{proxy.server}/nodes?watch=true") as nodes:
        assert await pods.content.readline() == LINES[0]
        assert await nodes.content.readline() == LINES[0]
        assert len(proxy.live_watches()) == 2
        assert proxy.cut_watches("/pods") == 1
        with pytest.raises(aiohttp.ClientError):
            await pods.content.read()
        assert await nodes.content.readline() == LINES[1]
        assert [w.path for w in proxy.live_watches()] == ["/nodes?watch=true"]


async def test_server_that_is_away_looks_like_a_lost_connection(tmp_path: Path, session: aiohttp.ClientSession) -> None:
    write_kubeconfig(tmp_path / "away", Access("http://127.0.0.1:9", None, ""))
    async with FaultProxy(tmp_path / "away") as proxy:
        with pytest.raises(aiohttp.ClientConnectionError):
            await session.post(f"{proxy.server}/pods")


async def test_in_front_of_a_real_api_server(
    control_plane: ControlPlane, fault_proxy: FaultProxy, namespace: str, session: aiohttp.ClientSession
) -> None:
    trust = ssl.create_default_context(cafile=control_plane.layout.certs.ca)
    headers = {"Authorization": f"Bearer {read_kubeconfig(control_plane.kubeconfig).token}"}
    url = f"{fault_proxy.server}/api/v1/namespaces/{namespace}/configmaps"
    fault_proxy.add(Rule(DropResponse(), method="POST"))
    with pytest.raises(aiohttp.ClientConnectionError):
        await session.post(url, json={"metadata": {"name": "unsure"}}, headers=headers, ssl=trust)
    async with session.post(url, json={"metadata": {"name": "unsure"}}, headers=headers, ssl=trust) as answer:
        assert answer.status == 409
    async with session.get(f"{url}?watch=true", headers=headers, ssl=trust) as watch:
        names: set[str] = set()
        while "unsure" not in names:
            names.add(json.loads(await watch.content.readline())["object"]["metadata"]["name"])
        assert fault_proxy.cut_watches() == 1
        with pytest.raises(aiohttp.ClientError):
            await watch.content.read()
