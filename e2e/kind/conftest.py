"""One installation per session in a kind cluster. The files are one story, so their order is fixed and each builds on those before.

    make e2e-kind

Docker and the rights that kind needs: with CI=true their absence fails, elsewhere it skips.
"""

import contextlib
import os
import time
from collections.abc import AsyncGenerator, Callable, Generator, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

import pytest
import pytest_asyncio
import yaml

from api.core import Node
from api.grove import PodCliqueSet
from e2e.kind.access import with_files
from e2e.kind.images import build, exists, image_under_test
from e2e.kind.live import Kubectl, Live, connect
from e2e.kind.report import look_around
from e2e.kind.scene import Scene
from e2e.kind.system import NAMESPACE as SYSTEM
from e2e.kind.system import Overlay, System
from e2e.kind.wipe import wipe
from e2e.kind.workload import chat
from hack.codegen.files import ROOT
from hack.kind import KindCluster, KindFailed
from hack.kube.binaries import cache_folder, find_prepared, locked

HERE = Path(__file__).parent
NAMESPACE = "kind-e2e"
SETTLE_S = 60.0
CHAT_PODS = 7
"""Per replica of the set."""
KUBECTL = pytest.StashKey[Kubectl]()
FIGURES = pytest.StashKey[list[str]]()


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """In the order of the files, whatever other plugins made of it."""
    ours = [item for item in items if item.path.is_relative_to(HERE)]
    places = [index for index, item in enumerate(items) if item.path.is_relative_to(HERE)]
    ours.sort(key=lambda item: (str(item.path), item.location[1] or 0))
    for index, item in zip(places, ours, strict=True):
        items[index] = item


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """A failure shows the cluster as it is now."""
    report = yield
    kubectl = item.session.stash.get(KUBECTL, None)
    if report.failed and kubectl is not None and item.path.is_relative_to(HERE):
        report.sections.append(("cluster", look_around(kubectl)))
    return report


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """What was measured, after all tests."""
    figures = terminalreporter.config.stash.get(FIGURES, [])
    if figures:
        terminalreporter.section("measured in kind")
        for line in figures:
            terminalreporter.line(line)


@pytest.fixture(scope="session")
def measured(pytestconfig: pytest.Config) -> Callable[[str], None]:
    """Takes a line with a figure for the end of the run."""
    return pytestconfig.stash.setdefault(FIGURES, []).append


@pytest.fixture(scope="session")
def kind_cluster() -> Iterator[KindCluster]:
    """The cluster that `make kind-up` makes, whole; left running. One session at a time has it."""
    cluster = KindCluster()
    deadline = time.monotonic() + SETTLE_S
    # One that is there may be busy starting.
    while (faults := _faults(cluster)) and time.monotonic() < deadline and cluster.nodes():
        time.sleep(1.0)
    if why := "; ".join(faults):
        if os.environ.get("CI") == "true":
            pytest.fail(f"CI needs a kind cluster: {why}")
        pytest.skip(f"{why}: make kind-up")
    with locked(cache_folder("kind-e2e")):
        yield cluster


def _faults(cluster: KindCluster) -> tuple[str, ...]:
    """What is wrong with it; that it cannot be looked at is wrong too."""
    try:
        return cluster.faults()
    except KindFailed as error:
        return (str(error),)


@pytest.fixture(scope="session")
def image(kind_cluster: KindCluster) -> str:
    """The image under test, on all nodes."""
    name = image_under_test()
    if not exists(name):
        build(name)
    kind_cluster.load(name)
    return name


@pytest.fixture(scope="session")
def kubectl(kind_cluster: KindCluster, tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Kubectl:
    """kubectl as cluster administrator."""
    programs = tmp_path_factory.mktemp("programs")
    find_prepared(print).link_into(programs)
    made = Kubectl(programs / "kubectl", with_files(kind_cluster.kubeconfig, tmp_path_factory.mktemp("access")), programs / "discovery")
    request.session.stash[KUBECTL] = made
    return made


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def live(kubectl: Kubectl) -> AsyncGenerator[Live]:
    """kr8s as cluster administrator."""
    async with connect(kubectl.kubeconfig) as client:
        yield client


@dataclass(frozen=True, slots=True)
class Beginning:
    """The cluster before anything was installed: since when the audit log counts, and the labels of the nodes."""

    at: datetime
    labels: dict[str, dict[str, str]]


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def beginning(live: Live, kubectl: Kubectl) -> Beginning:
    """Taken before the first installation, after the rest of an earlier session was removed."""
    await wipe(live, kubectl, (SYSTEM, NAMESPACE))
    nodes = await live.objects(Node.KIND)
    return Beginning(datetime.now(UTC), {node["metadata"]["name"]: node["metadata"]["labels"] for node in nodes})


@dataclass(slots=True)
class Deliberate:
    """When a right was missing on purpose: what was refused then proves nothing about the manifests."""

    windows: list[tuple[datetime, datetime]] = field(default_factory=list[tuple[datetime, datetime]])

    @contextlib.contextmanager
    def window(self) -> Generator[None]:
        """A right is missing meanwhile."""
        began = datetime.now(UTC)
        try:
            yield
        finally:
            self.windows.append((began, datetime.now(UTC)))

    def covers(self, at: datetime) -> bool:
        return any(begin <= at <= end for begin, end in self.windows)


@pytest.fixture(scope="session")
def deliberate() -> Deliberate:
    """Shared by the test that takes a right away and the one that looks for refusals."""
    return Deliberate()


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def system(
    kind_cluster: KindCluster, kubectl: Kubectl, live: Live, image: str, beginning: Beginning, tmp_path_factory: pytest.TempPathFactory
) -> System:
    """Grovekeeper as the documentation installs it: CRDs, then the manifests. Not waited for."""
    made = System(live, kubectl, kind_cluster, tmp_path_factory.mktemp("overlays"), Overlay(image))
    await made.install_crds()
    await made.apply(made.overlay)
    return made


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def scene(system: System, kubectl: Kubectl, live: Live) -> AsyncGenerator[Scene]:
    """The namespace of the workloads; Grovekeeper is available."""
    await system.rolled_out()
    made = Scene(live, kubectl, NAMESPACE)
    await kubectl.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}})
    yield made
    await kubectl.outcome("delete", "namespace", NAMESPACE, "--ignore-not-found", "--wait=false")


@pytest_asyncio.fixture(loop_scope="session")
async def running(scene: Scene, kubectl: Kubectl, image: str) -> Scene:
    """One replica of `chat` with all pods ready, whatever was done to it before."""
    for other in await scene.objects(PodCliqueSet.KIND):
        if other["metadata"]["name"] != "chat":
            await scene.remove(other["metadata"]["name"])
    pods = await scene.pods(lambda pod: pod.clique.startswith("chat-"))
    if not pods:
        await kubectl.apply(yaml.safe_load((ROOT / "manifests/samples/topology.yaml").read_text()))
        await scene.apply(chat(image))
    elif len(pods) != CHAT_PODS:
        await scene.scale("pcs/chat", 1)
        await scene.scale("pcsg/chat-0-prefill", 2)
        await scene.scale("pclq/chat-0-decode", 2)
    await scene.ready(CHAT_PODS, "chat with one replica", 90.0)
    return scene
