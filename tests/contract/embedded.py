"""The embedded server as cases see it."""

import asyncio
import random
import threading
from collections.abc import Coroutine
from typing import Any

from controllers.runtime.clock import SystemClock
from sim.apiserver.bootstrap import bootstrap
from sim.apiserver.care.controllers import Controllers
from sim.apiserver.care.webhooks import Webhooks
from sim.apiserver.front.listener import Listener
from sim.apiserver.server import ApiServer
from tests.contract.client import Access

__all__ = ("EmbeddedServer",)


class EmbeddedServer:
    """The embedded server on a loopback port, in a thread with an event loop of its own, so that it outlives each test's loop."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="embedded API server", daemon=True)
        self._thread.start()
        self._controllers: list[asyncio.Task[None]] = []
        self._server = ApiServer(SystemClock(), random.Random(1), webhooks=Webhooks)  # noqa: S311 - names, not secrets
        self._listener = Listener(self._server.handle)
        self._run(self._start())
        self.access = Access(self._listener.url)

    async def _start(self) -> None:
        await bootstrap(self._server)
        await self._listener.__aenter__()

    def start_controllers(self) -> None:
        if not self._controllers:
            self._run(self._start_controllers())

    async def _start_controllers(self) -> None:
        self._controllers = [asyncio.ensure_future(Controllers(self._server).run())]

    def stop(self) -> None:
        self._run(self._stop())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    async def _stop(self) -> None:
        for task in self._controllers:
            task.cancel()
        await asyncio.gather(*self._controllers, return_exceptions=True)
        await self._listener.__aexit__(None, None, None)

    def _run(self, work: Coroutine[Any, Any, None]) -> None:
        asyncio.run_coroutine_threadsafe(work, self._loop).result(timeout=30)
