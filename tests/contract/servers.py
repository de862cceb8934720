"""The servers that cases run against, each started at most once per session, when first needed."""

import json
import ssl
import urllib.request
from pathlib import Path
from typing import Protocol

import pytest

from hack.kube import ControlPlane, Lifetime, find_prepared
from hack.kube.cache import silent
from hack.kube.client import read_kubeconfig
from tests.contract.client import Access
from tests.programs import needed

__all__ = ("RealServer", "Server", "Servers")

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
        binaries = needed(lambda: find_prepared(silent))
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
                self._running[name] = RealServer(self._factory.mktemp("kube")) if name == "real" else _embedded()
            except BaseException as error:
                self._failed[name] = error
                raise
        return self._running[name]

    def stop(self) -> None:
        for server in self._running.values():
            server.stop()


def _embedded() -> Server:
    # Imported late: the real server can be asked also while the embedded one cannot even be imported.
    from tests.contract.embedded import EmbeddedServer

    return EmbeddedServer()
