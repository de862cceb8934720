"""Calls of webhooks over real connections."""

import base64
import ssl
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
import trustme
from aiohttp import web

from sim.apiserver.care.calls import CallFailed, Http, url_of

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


async def echo(request: web.Request) -> web.Response:
    return web.Response(body=await request.read() + request.query_string.encode(), content_type="application/json")


def refusing(status: int, text: str = "") -> Handler:
    async def answer(request: web.Request) -> web.Response:
        return web.Response(status=status, text=text)

    return answer


@asynccontextmanager
async def webhook(handler: Handler, *names: str) -> AsyncGenerator[tuple[int, str]]:
    """Its port, and the base64 of its CA."""
    authority = trustme.CA()
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    authority.issue_cert(*(names or ("127.0.0.1",))).configure_cert(context)
    app = web.Application()
    app.router.add_post("/{path:.*}", handler)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0, ssl_context=context).start()
    try:
        yield runner.addresses[0][1], base64.b64encode(authority.cert_pem.bytes()).decode()
    finally:
        await runner.cleanup()


async def failure(client: dict[str, Any], http: Http | None = None, timeout_s: float = 5) -> str:
    with pytest.raises(CallFailed) as caught:
        await (http or Http()).post(client, url_of(client), b"{}", timeout_s)
    return str(caught.value)


async def test_a_review_is_posted_with_the_timeout_and_answered() -> None:
    async with webhook(echo) as (port, bundle):
        client = {"url": f"https://127.0.0.1:{port}/a/b", "caBundle": bundle}
        assert await Http().post(client, url_of(client), b"{}", 7) == b"{}timeout=7s"


@pytest.mark.parametrize(
    ("status", "text"),
    [
        (500, 'an error on the server ("why") has prevented the request from succeeding'),
        (404, "the server could not find the requested resource"),
        (403, "why"),
        (302, "the server responded with the status code 302 but did not return more information"),
        (200, "0-length response with status code: 200 and content type: text/plain; charset=utf-8"),
    ],
)
async def test_answers_without_success(status: int, text: str) -> None:
    async with webhook(refusing(status, "" if status == 200 else "why")) as (port, bundle):
        assert await failure({"url": f"https://127.0.0.1:{port}/", "caBundle": bundle}) == text


async def test_connections_that_fail() -> None:
    async with webhook(echo) as (port, _):
        url = f"https://127.0.0.1:{port}/"
        distrust = "tls: failed to verify certificate: x509: certificate signed by unknown authority"
        assert await failure({"url": url}) == f'Post "{url}?timeout=5s": {distrust}'
    dead = "https://127.0.0.1:1/x"
    assert await failure({"url": dead}) == f'Post "{dead}?timeout=5s": dial tcp 127.0.0.1:1: connect: connection refused'


async def test_services_are_resolved_by_whoever_knows_them() -> None:
    service = {"namespace": "n", "name": "s", "path": "p", "port": 8443}
    why = 'service "s" in namespace "n" cannot be reached on port 8443: this server has no cluster network'
    assert await failure({"service": service}) == f'Post "https://s.n.svc:8443/p?timeout=5s": {why}'
    async with webhook(echo, "s.n.svc") as (port, bundle):

        async def resolve(namespace: str, name: str, wanted: int) -> tuple[str, int]:
            assert (namespace, name, wanted) == ("n", "s", 8443)
            return "127.0.0.1", port

        client = {"service": service, "caBundle": bundle}
        assert await Http(resolve).post(client, url_of(client), b"{}", 5) == b"{}timeout=5s"
