"""An HTTPS server that answers admission and conversion reviews, and keeps what it was asked."""

import asyncio
import base64
import contextlib
import ssl
from collections.abc import AsyncGenerator, Awaitable, Callable
from typing import Any

import trustme
from aiohttp import web

from tests.contract.kinds import Obj

__all__ = ("Hooks", "hooks")

Answer = Callable[[Obj], Any]


class Hooks:
    """`url(path)` and `bundle` (base64 of the CA) go into configurations; `asked` keeps (path, review) in order."""

    def __init__(self, authority: trustme.CA) -> None:
        self.bundle = base64.b64encode(authority.cert_pem.bytes()).decode()
        self.asked: list[tuple[str, Obj]] = []
        self.port = 0
        self._answers: dict[str, Answer] = {}

    def url(self, path: str) -> str:
        return f"https://127.0.0.1:{self.port}/{path}"

    def on(self, path: str, answer: Answer) -> None:
        """`answer`: review request -> fields of the response, or a web.Response, or an awaitable of either."""
        self._answers[path] = answer

    async def handle(self, request: web.Request) -> web.StreamResponse:
        review = await request.json()
        path = request.path.strip("/")
        self.asked.append((path, review))
        answer = self._answers[path](review["request"])
        if isinstance(answer, Awaitable):
            answer = await answer
        if not isinstance(answer, web.StreamResponse):
            response = {"uid": review["request"]["uid"], **answer}
            answer = web.json_response({"apiVersion": review["apiVersion"], "kind": review["kind"], "response": response})
        # A client that keeps a connection would keep it beyond the loop of the test.
        answer.force_close()
        return answer


@contextlib.asynccontextmanager
async def hooks() -> AsyncGenerator[Hooks]:
    """A running server on a free loopback port."""
    authority = trustme.CA()
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    authority.issue_cert("127.0.0.1").configure_cert(context)
    made = Hooks(authority)
    app = web.Application(client_max_size=16 * 1024 * 1024)
    app.router.add_post("/{path:.*}", made.handle)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0, ssl_context=context)
    await site.start()
    made.port = runner.addresses[0][1]
    try:
        yield made
    finally:
        # The greetings and goodbyes of TLS may take longer than the loop of the test lives. A connection in the middle of its greeting
        # is known to the loop only: a client may open one that it then does not need. One that was accepted just now comes a moment later.
        await site.stop()
        await asyncio.sleep(0.05)
        for transport in list(asyncio.get_running_loop()._transports.values()):  # pyright: ignore[reportAttributeAccessIssue]
            if (transport.get_extra_info("sockname") or (None, None))[1] == made.port:
                transport.abort()
        await runner.cleanup()
        await asyncio.sleep(0.05)
