"""The servers that cases run against, each started at most once per session, when first needed."""

import asyncio
import json
import os
import random
import ssl
import threading
import urllib.request
from collections.abc import Coroutine
from pathlib import Path
from typing import Any, Protocol

import pytest

from hack.kube import BinariesMissing, ControlPlane, Lifetime, find_prepared
from hack.kube.client import read_kubeconfig
from sim.apiserver.bootstrap import bootstrap
from sim.apiserver.care.collector import Collector
from sim.apiserver.care.namespaces import NamespaceController
from sim.apiserver.front.listener import Listener
from sim.apiserver.server import ApiServer
from tests.contract.client import Access

__all__ = ("EmbeddedServer", "RealServer", "Server", "Servers")

# Revisions before this one are compacted.
OLDEST = 10
# What a case sees of the controller manager: other controllers would only put objects in its way.
CONTROLLERS = "garbage-collector-controller,namespace-controller"


class Server(Protocol):
    """A running API server."""

    access: Access

    def start_controllers(self) -> None:
        """Run the garbage collector and the namespace controller from now on; may be called again."""
        ...

    def stop(self) -> None: ...


class RealServer:
    """etcd and kube-apiserver; the controller manager when a case asks for it."""

    def __init__(self, directory: Path) -> None:
        try:
            binaries = find_prepared(lambda line: None)
        except BinariesMissing as error:
            if os.environ.get("CI") == "true":
                pytest.fail(f"CI needs a real API server: {error}")
            pytest.skip(str(error))
        self._plane = ControlPlane(
            directory,
            binaries=binaries,
            components=("etcd", "kube-apiserver"),
            flags={"kube-controller-manager": {"controllers": CONTROLLERS}},
            lifetime=Lifetime.WITH_PARENT,
        )
        try:
            self._plane.start()
            found = read_kubeconfig(self._plane.kubeconfig)
            self.access = Access(found.server, found.token, ssl.create_default_context(cafile=found.ca))
            self._compact()
        except BaseException:
            self._plane.stop()
            raise

    def _compact(self) -> None:
        """Forget the first revisions, as a server does after some minutes: resourceVersion 1 is too old from now on."""
        etcd = f"http://127.0.0.1:{self._plane.ports.etcd}/v3/kv/compaction"
        body = json.dumps({"revision": OLDEST, "physical": True}).encode()
        urllib.request.urlopen(etcd, body, timeout=5).close()

    def start_controllers(self) -> None:
        if "kube-controller-manager" not in self._plane.running():
            self._plane.start_component("kube-controller-manager")

    def stop(self) -> None:
        # Stops also what start_controllers started.
        self._plane.stop()


class EmbeddedServer:
    """The embedded server on a loopback port, in a thread with an event loop of its own, so that it outlives each test's loop."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="embedded API server", daemon=True)
        self._thread.start()
        self._controllers: list[asyncio.Task[None]] = []
        self._server = ApiServer(SystemClock(), random.Random(1))  # noqa: S311 - names, not secrets
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
        runs = Collector(self._server).run(), NamespaceController(self._server).run()
        self._controllers = [asyncio.ensure_future(run) for run in runs]

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


class Servers:
    """All servers of a session. A server that could not be started fails or skips every case that wants it, without another try."""

    def __init__(self, tmp_path_factory: pytest.TempPathFactory) -> None:
        self._factory = tmp_path_factory
        self._running: dict[str, Server] = {}
        self._failed: dict[str, BaseException] = {}

    def get(self, name: str) -> Server:
        """`name`: real or embedded."""
        if name in self._failed:
            raise self._failed[name]
        if name not in self._running:
            try:
                self._running[name] = RealServer(self._factory.mktemp("kube")) if name == "real" else EmbeddedServer()
            except BaseException as error:
                self._failed[name] = error
                raise
        return self._running[name]

    def stop(self) -> None:
        for server in self._running.values():
            server.stop()
