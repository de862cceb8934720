"""Probes and metrics over HTTP: /healthz (the loop runs), /readyz (all caches are synced), /metrics. No state can be changed here."""

from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Self

from aiohttp import web

from controllers.runtime.metrics import Metrics

__all__ = ("HealthServer",)


class HealthServer:
    """An async context manager that listens on `host`:`port`. Port 0 takes a free one, see `port`.

    `unready` says line by line why the process is not ready; ready when it says nothing.
    """

    def __init__(self, metrics: Metrics, unready: Callable[[], Sequence[str]], *, host: str = "127.0.0.1", port: int = 0) -> None:
        self._metrics = metrics
        self._unready = unready
        self._host = host
        self._port = port
        app = web.Application()
        app.router.add_get("/healthz", self._healthz)
        app.router.add_get("/readyz", self._readyz)
        app.router.add_get("/metrics", self._metricz)
        self._runner = web.AppRunner(app, access_log=None)

    @property
    def port(self) -> int:
        """The port that is listened on."""
        return self._port

    async def __aenter__(self) -> Self:
        await self._runner.setup()
        site = web.TCPSite(self._runner, self._host, self._port)
        await site.start()
        self._port = self._runner.addresses[0][1]
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        await self._runner.cleanup()

    async def _healthz(self, request: web.Request) -> web.Response:
        return web.Response(text="ok\n")

    async def _readyz(self, request: web.Request) -> web.Response:
        missing = self._unready()
        if missing:
            return web.Response(text="".join(f"{line}\n" for line in missing), status=503)
        return web.Response(text="ok\n")

    async def _metricz(self, request: web.Request) -> web.Response:
        return web.Response(body=self._metrics.text(), headers={"Content-Type": "text/plain; version=0.0.4; charset=utf-8"})
