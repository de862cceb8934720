"""One real control plane per test session; a fresh namespace per test."""

import contextlib
import http.client
import json
import os
import secrets
import subprocess
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Protocol

import pytest

from api.registry import MODELS, crd_name
from e2e import workloads
from e2e.cluster import Pool, Scene
from e2e.faultproxy import FaultProxy
from e2e.processes import Grovekeeper
from hack.codegen.crd import FOLDER
from hack.kube import ControlPlane, Lifetime, NodeSpec, cordon, create_nodes, find_prepared, uniform_nodes
from hack.kube.cache import silent
from tests.patience import allow
from tests.programs import needed

TIMEOUT_S = 120
POOL_SIZE = 28
TAINT = {"key": workloads.POOL, "value": "agent", "effect": "NoSchedule"}


class Kubectl(Protocol):
    """Runs kubectl with the session's kubeconfig: standard output, or AssertionError with standard error."""

    def __call__(self, *args: str, stdin: str = "") -> str: ...


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests here wait for real controllers."""
    allow(items, Path(__file__).parent, TIMEOUT_S)


@pytest.fixture(scope="session")
def control_plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """A running control plane with free ports in a directory of its own; it dies with the test program in any case."""
    binaries = needed(lambda: find_prepared(silent))
    plane = ControlPlane(tmp_path_factory.mktemp("kube"), binaries=binaries, lifetime=Lifetime.WITH_PARENT)
    try:
        plane.start()
        yield plane
    finally:
        plane.stop()


@pytest.fixture(scope="session")
def two_nodes(control_plane: ControlPlane) -> tuple[NodeSpec, ...]:
    """Two simulated nodes that exist for the whole session, `plain-0` and `plain-1`."""
    specs = uniform_nodes(2, name="plain-{i}")
    create_nodes(control_plane.kubeconfig, specs)
    return specs


@pytest.fixture
def namespace(control_plane: ControlPlane) -> Iterator[str]:
    """Name of a new namespace; deleted afterwards without waiting."""
    name = f"e2e-{secrets.token_hex(4)}"
    with control_plane.client() as client:
        client.request("POST", "/api/v1/namespaces", {"metadata": {"name": name}})
    yield name
    # A test may leave the API server stopped; the directory goes with the session anyway.
    with contextlib.suppress(OSError, http.client.HTTPException), control_plane.client() as client:
        client.raw("DELETE", f"/api/v1/namespaces/{name}")


@pytest.fixture
def kubectl(control_plane: ControlPlane) -> Kubectl:
    """A callable: kubectl("get", "pods", "-n", namespace)."""
    return kubectl_of(control_plane)


def kubectl_of(control_plane: ControlPlane) -> Kubectl:
    """kubectl with the kubeconfig of a control plane."""
    environment = {**os.environ, "KUBECONFIG": str(control_plane.kubeconfig), "KUBECACHEDIR": str(control_plane.layout.root / "discovery")}

    def run(*args: str, stdin: str = "") -> str:
        done = subprocess.run(
            [str(control_plane.kubectl), *args], input=stdin, capture_output=True, text=True, env=environment, timeout=60, check=False
        )
        assert done.returncode == 0, f"kubectl {' '.join(args)} exited with {done.returncode}: {done.stderr}"
        return done.stdout

    return run


@pytest.fixture
async def fault_proxy(control_plane: ControlPlane) -> AsyncIterator[FaultProxy]:
    """An HTTPS fault proxy in front of the control plane."""
    async with FaultProxy(control_plane.kubeconfig, control_plane.layout.certs) as proxy:
        yield proxy


@pytest.fixture(scope="session")
def crds(control_plane: ControlPlane) -> None:
    """The CRDs are installed and served."""
    run = kubectl_of(control_plane)
    run("apply", "--server-side", "--force-conflicts", "-f", str(FOLDER))
    names = [f"crd/{crd_name(m)}" for m in MODELS]
    run("wait", "--for=jsonpath={.status.conditions}", "--timeout=30s", *names)
    run("wait", "--for=condition=Established", "--timeout=30s", *names)
    # Its garbage collector would learn of the new kinds half a minute later.
    control_plane.stop_component("kube-controller-manager")
    control_plane.start_component("kube-controller-manager")


@pytest.fixture(scope="session")
def pool(control_plane: ControlPlane) -> Pool:
    """28 nodes `agent-0`…, all cordoned, with upstream's topology labels, room for one pod of 80Mi each, and a taint (grove.md §9.1)."""
    specs = uniform_nodes(POOL_SIZE, cpu="4", memory="150Mi", name="agent-{i}", labels=lambda i: {workloads.POOL: "agent"})
    specs = tuple(NodeSpec(s.name, s.allocatable, s.labels, (TAINT,)) for s in specs)
    create_nodes(control_plane.kubeconfig, specs)
    names = tuple(s.name for s in specs)
    cordon(control_plane.kubeconfig, names)
    return Pool(control_plane, names)


@pytest.fixture(scope="session")
def grovekeeper(control_plane: ControlPlane, crds: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Grovekeeper]:
    """Controllers and scheduler with the configuration that we ship; the binding `grove-topology` exists."""
    levels = {"zone": "kubernetes.io/zone", "block": "kubernetes.io/block", "rack": "kubernetes.io/rack", "host": "kubernetes.io/hostname"}
    document = json.dumps(workloads.binding(workloads.TOPOLOGY, levels))
    kubectl_of(control_plane)("apply", "--server-side", "-f", "-", stdin=document)
    pair = Grovekeeper.on(control_plane.kubeconfig, tmp_path_factory.mktemp("grovekeeper"))
    try:
        pair.start()
        yield pair
    finally:
        pair.stop()


@pytest.fixture
def scene(control_plane: ControlPlane, grovekeeper: Grovekeeper, pool: Pool, namespace: str, kubectl: Kubectl) -> Iterator[Scene]:
    """A namespace with the processes at work. Afterwards its pods are gone and every node of the pool is cordoned."""
    pool.at_once = grovekeeper.scheduler_paused
    with control_plane.client() as client:
        here = Scene(control_plane, namespace, client, kubectl, grovekeeper.tails)
        yield here
        pool.open(0)
        here.clear()
