"""Real kubectl programs against the embedded server: python -m pytest tests/kubectl (needs the binaries of hack.kube.kubectl).

GROVEKEEPER_KUBECTL_KUBECONFIG names another server to run the same tests against; they were written against kube-apiserver 1.36.3.
"""

import asyncio
import contextlib
import os
import threading
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from random import Random

import pytest

from hack.kube.cache import silent
from hack.kube.kubectl import KUBECTL_VERSIONS, find_kubectl
from sim.apiserver.front.certificate import write_certificate
from sim.apiserver.front.kubeconfig import write_kubeconfig
from sim.apiserver.front.listener import Listener
from tests.kubectl.program import Kubectl
from tests.programs import needed

CRDS = Path(__file__).parents[2] / "manifests" / "crds"
TOKEN = "kubectl-tests"  # noqa: S105 - of a server on loopback that lives as long as the tests


class WallClock:
    """api.plan.Clock of the machine."""

    def now(self) -> datetime:
        return datetime.now(UTC)

    def monotonic(self) -> float:
        return time.monotonic()


class Background:
    """The embedded server on a loop of its own, in a thread, because the tests wait for programs."""

    def __init__(self, kubeconfig: Path) -> None:
        self._kubeconfig = kubeconfig
        self._ready = threading.Event()
        self._loop = asyncio.new_event_loop()
        self._done = asyncio.Event()
        self._failure: BaseException | None = None
        self._thread = threading.Thread(target=self._run)

    def __enter__(self) -> "Background":
        self._thread.start()
        self._ready.wait(10)
        if self._failure is not None:
            raise self._failure
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._done.set)
        self._thread.join(10)

    def _run(self) -> None:
        try:
            self._loop.run_until_complete(self._serve())
        except BaseException as error:
            self._failure = error
        finally:
            self._ready.set()
            self._loop.close()

    async def _serve(self) -> None:
        from sim.apiserver.bootstrap import bootstrap
        from sim.apiserver.care.controllers import Controllers
        from sim.apiserver.server import ApiServer

        server = ApiServer(WallClock(), Random(1))  # noqa: S311 - no secrets come from it
        care = [asyncio.create_task(Controllers(server).run())]
        await bootstrap(server)
        context, trusted = write_certificate(self._kubeconfig.parent)
        async with Listener(server.handle, token=TOKEN, tls=context) as listener:
            write_kubeconfig(self._kubeconfig, listener.url, TOKEN, ca=trusted)
            self._ready.set()
            await self._done.wait()
        for task in care:
            task.cancel()
        await asyncio.wait(care)


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """These tests need programs that not everybody has, so they run only when asked for by path."""
    here = Path(__file__).parent
    asked = [Path(argument.partition("::")[0]).resolve() for argument in config.args]
    return None if any(path == here or here in path.parents for path in asked) else True


@pytest.fixture(scope="session")
def kubeconfig(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Of the server under test, with our custom resources."""
    given = os.environ.get("GROVEKEEPER_KUBECTL_KUBECONFIG")
    path = Path(given) if given else tmp_path_factory.mktemp("server") / "kubeconfig"
    with contextlib.nullcontext() if given else Background(path):
        first = Kubectl(program(KUBECTL_VERSIONS[-1]), path, tmp_path_factory.mktemp("home"))
        first("apply", "--server-side", "-f", str(CRDS))
        first("wait", "--for=condition=Established", "crd", "--all", "--timeout=10s")
        yield path


@pytest.fixture(scope="session", params=KUBECTL_VERSIONS)
def version(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture(scope="session")
def home(tmp_path_factory: pytest.TempPathFactory, version: str) -> Path:
    """Keeps what kubectl caches between calls."""
    return tmp_path_factory.mktemp(f"home-{version}")


_numbers = iter(range(1000))


@pytest.fixture
def kubectl(version: str, kubeconfig: Path, home: Path) -> Iterator[Kubectl]:
    """In a namespace of its own."""
    namespace = f"t{os.getpid()}-{next(_numbers)}"
    made = Kubectl(program(version), kubeconfig, home, namespace)
    made("create", "namespace", namespace)
    if "GROVEKEEPER_KUBECTL_KUBECONFIG" in os.environ:
        made("wait", "--for=create", "serviceaccount/default", "--timeout=10s")
    yield made
    made("delete", "namespace", namespace, "--wait=false")


def program(version: str) -> Path:
    """Skips where there is none, except in CI."""
    return needed(lambda: find_kubectl(version, silent, may_build=False))


@pytest.fixture(autouse=True)
def _no_stray_children() -> Iterator[None]:
    """A watch that a failed test leaves behind would outlive the server."""
    yield
    for child in Kubectl.running:
        if child.poll() is None:
            child.kill()
            child.wait()
        for pipe in (child.stdout, child.stderr):
            if pipe is not None:
                pipe.close()
    Kubectl.running.clear()
