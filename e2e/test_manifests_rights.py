"""Both processes do their work with the rights that the base gives their ServiceAccounts."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from e2e.cluster import Pool, Scene, eventually
from e2e.conftest import Kubectl, kubectl_of
from e2e.processes import Grovekeeper
from e2e.workloads import wl2
from hack.codegen.files import ROOT
from hack.daemon import CONTROLLERS_CONFIG, Daemon
from hack.kube import ControlPlane
from hack.kube.client import Access, read_kubeconfig, write_kubeconfig

NAMESPACE = "grovekeeper-system"
RBAC = [str(ROOT / "manifests" / "base" / f"{name}-rbac.yaml") for name in ("controllers", "scheduler")]
REFUSED = re.compile(r'^(?:rest_client_requests_total\{code="40[13]"|grovekeeper_reflector_rounds_total\{reason="denied").*$', re.MULTILINE)


@pytest.fixture
def accounts(control_plane: ControlPlane) -> Iterator[None]:
    """The ServiceAccounts and what they may do; no Deployments."""
    run = kubectl_of(control_plane)
    with control_plane.client() as client:
        client.raw("POST", "/api/v1/namespaces", {"metadata": {"name": NAMESPACE}})
    for component in ("controllers", "scheduler"):
        run("create", "serviceaccount", f"grovekeeper-{component}", "-n", NAMESPACE)
    files = [part for path in RBAC for part in ("-f", path)]
    run("apply", "-n", NAMESPACE, *files)
    yield
    run("delete", "-n", NAMESPACE, *files)
    run("delete", "namespace", NAMESPACE)


def daemon(component: str, kubectl: Kubectl, control_plane: ControlPlane, folder: Path) -> Daemon:
    """A process as a pod of the base runs it: the account's token, leader election, the shipped configuration."""
    admin, kubeconfig = read_kubeconfig(control_plane.kubeconfig), folder / f"{component}.kubeconfig"
    token = kubectl("create", "token", f"grovekeeper-{component}", "-n", NAMESPACE)
    write_kubeconfig(kubeconfig, Access(admin.server, admin.ca, token))
    flags = ("--kubeconfig", str(kubeconfig), "--config", str(CONTROLLERS_CONFIG), "--lease-namespace", NAMESPACE)
    return Daemon(component, (component, *flags), folder)


def refusals(process: Daemon) -> list[str]:
    """What the API server refused, by the process's own count."""
    return REFUSED.findall(process.metrics())


def test_a_set_comes_is_scaled_and_goes_without_a_refusal(
    scene: Scene, pool: Pool, kubectl: Kubectl, control_plane: ControlPlane, grovekeeper: Grovekeeper, accounts: None, tmp_path: Path
) -> None:
    grovekeeper.stop()
    processes = [daemon(component, kubectl, control_plane, tmp_path) for component in ("controllers", "scheduler")]
    try:
        for process in processes:
            process.start()
        pool.open(24)
        scene.apply(wl2())
        scene.wait_counts(10, 0)
        scene.scale("pcsg/workload2-0-sg-x", 1)
        scene.scale("pcs/workload2", 2)
        scene.wait_counts(16, 0)
        scene.scale("pcs/workload2", 1)
        scene.wait_counts(6, 0)
        kubectl("delete", "pcs", "workload2", "-n", scene.namespace, "--wait=false")
        eventually(lambda: not scene.objects("PodCliqueSet") and not scene.pods(), "the set does not go")
        for process in processes:
            assert refusals(process) == [], process.tail()
    finally:
        for process in processes:
            process.stop()
        grovekeeper.start()
    holders = kubectl("get", "leases", "-n", NAMESPACE, "-o", "name").split()
    assert [h.rpartition("/")[2] for h in holders] == ["grove-operator-leader-election", "grovekeeper-scheduler"]
