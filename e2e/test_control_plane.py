"""The control plane that the other end-to-end tests stand on does what a real one does."""

import base64
import json
import os
import ssl
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from e2e.conftest import Kubectl
from hack.kube import AlreadyRunning, Binaries, Client, ComponentFailed, ControlPlane, NodeSpec, PortInUse, cordon, uncordon, uniform_nodes
from hack.kube.certificates import write_certificates
from hack.kube.client import Access, read_kubeconfig, write_kubeconfig
from hack.kube.components import Ports
from hack.kube.process import Lifetime, Process


def eventually(check: Callable[[], bool], timeout_s: float = 30.0) -> None:
    """Wait until the check holds."""
    deadline = time.monotonic() + timeout_s
    while not check():
        assert time.monotonic() < deadline, f"not so after {timeout_s} s"
        time.sleep(0.1)


def test_deployment_becomes_ready_on_simulated_nodes(namespace: str, kubectl: Kubectl, two_nodes: tuple[NodeSpec, ...]) -> None:
    kubectl("create", "deployment", "web", "--image=none", "--replicas=3", "-n", namespace)
    kubectl("rollout", "status", "deployment/web", "-n", namespace, "--timeout=30s")
    pods = json.loads(kubectl("get", "pods", "-n", namespace, "-o", "json"))["items"]
    assert len(pods) == 3
    assert {p["spec"]["nodeName"] for p in pods} <= {n.name for n in two_nodes}
    assert len({p["status"]["podIP"] for p in pods}) == 3
    kubectl("delete", "deployment", "web", "-n", namespace, "--wait=false")
    eventually(lambda: json.loads(kubectl("get", "pods", "-n", namespace, "-o", "json"))["items"] == [])


def test_job_completes(namespace: str, kubectl: Kubectl, two_nodes: tuple[NodeSpec, ...]) -> None:
    kubectl("create", "job", "once", "--image=none", "-n", namespace)
    kubectl("wait", "job/once", "-n", namespace, "--for=condition=Complete", "--timeout=30s")


def test_annotation_delays_readiness(namespace: str, kubectl: Kubectl, two_nodes: tuple[NodeSpec, ...]) -> None:
    kubectl("run", "slow", "--image=none", "-n", namespace, "--annotations=pod-ready.stage.kwok.x-k8s.io/delay=2s")
    kubectl("wait", "pod/slow", "-n", namespace, "--for=condition=PodScheduled", "--timeout=30s")
    assert kubectl("get", "pod", "slow", "-n", namespace, "-o", "jsonpath={.status.phase}") == "Pending"
    kubectl("wait", "pod/slow", "-n", namespace, "--for=condition=Ready", "--timeout=30s")


def test_cordoned_nodes_take_no_pods(
    namespace: str, kubectl: Kubectl, control_plane: ControlPlane, two_nodes: tuple[NodeSpec, ...]
) -> None:
    names = [n.name for n in two_nodes]
    cordon(control_plane.kubeconfig, names)
    try:
        kubectl("run", "lone", "--image=none", "-n", namespace)
        kubectl("wait", "pod/lone", "-n", namespace, "--for=condition=PodScheduled=False", "--timeout=30s")
    finally:
        uncordon(control_plane.kubeconfig, names)
    kubectl("wait", "pod/lone", "-n", namespace, "--for=condition=Ready", "--timeout=30s")


def test_service_account_token_secret_is_filled_and_accepted(
    namespace: str, kubectl: Kubectl, control_plane: ControlPlane, tmp_path: Path
) -> None:
    kubectl("create", "serviceaccount", "waiter", "-n", namespace)
    secret = {
        "apiVersion": "v1",
        "kind": "Secret",
        "type": "kubernetes.io/service-account-token",
        "metadata": {"name": "waiter-token", "annotations": {"kubernetes.io/service-account.name": "waiter"}},
    }
    kubectl("apply", "-n", namespace, "-f", "-", stdin=json.dumps(secret))

    def data() -> dict[str, str]:
        return json.loads(kubectl("get", "secret", "waiter-token", "-n", namespace, "-o", "json")).get("data", {})

    eventually(lambda: {"token", "ca.crt", "namespace"} <= data().keys())
    ca = tmp_path / "ca.crt"
    ca.write_bytes(base64.b64decode(data()["ca.crt"]))
    as_waiter = tmp_path / "kubeconfig"
    write_kubeconfig(as_waiter, Access(control_plane.server, ca, base64.b64decode(data()["token"]).decode()))
    path = f"/api/v1/namespaces/{namespace}/pods"
    with Client(as_waiter) as client:
        # 403 and not 401: the token is known, and RBAC decides.
        assert client.raw("GET", path)[0] == 403
        kubectl("create", "rolebinding", "see", "--clusterrole=view", f"--serviceaccount={namespace}:waiter", "-n", namespace)
        eventually(lambda: client.raw("GET", path)[0] == 200)


def test_restart_of_the_api_server_keeps_data_and_address(namespace: str, kubectl: Kubectl, control_plane: ControlPlane) -> None:
    kubectl("create", "configmap", "kept", "-n", namespace, "--from-literal=a=1")
    before, server = control_plane.running()["kube-apiserver"], control_plane.server
    control_plane.stop_apiserver()
    with control_plane.client() as client, pytest.raises(ConnectionRefusedError):
        client.raw("GET", "/readyz")
    control_plane.start_apiserver()
    assert control_plane.running()["kube-apiserver"] != before
    assert control_plane.server == server
    assert kubectl("get", "configmap", "kept", "-n", namespace, "-o", "jsonpath={.data.a}") == "1"


def test_server_certificate_is_verified(control_plane: ControlPlane, tmp_path: Path) -> None:
    foreign = write_certificates(tmp_path / "foreign")
    config = tmp_path / "kubeconfig"
    write_kubeconfig(config, Access(control_plane.server, foreign.ca, read_kubeconfig(control_plane.kubeconfig).token))
    with Client(config) as client, pytest.raises(ssl.SSLCertVerificationError):
        client.raw("GET", "/readyz")


def test_unknown_token_is_refused(control_plane: ControlPlane, tmp_path: Path) -> None:
    config = tmp_path / "kubeconfig"
    write_kubeconfig(config, Access(control_plane.server, control_plane.layout.certs.ca, "guessed"))
    with Client(config) as client:
        assert client.raw("GET", "/api/v1/nodes")[0] == 401


def test_killed_component_is_reported_dead_until_it_is_started_again(control_plane: ControlPlane) -> None:
    control_plane.kill_component("kube-scheduler")
    try:
        assert "kube-scheduler" not in control_plane.running()
        assert control_plane.dead() == ("kube-scheduler",)
    finally:
        control_plane.start_component("kube-scheduler")
    assert control_plane.dead() == ()
    assert control_plane.ready()["kube-scheduler"]


def test_second_start_is_refused_and_harmless(control_plane: ControlPlane) -> None:
    before = control_plane.running()
    with pytest.raises(AlreadyRunning, match="etcd"):
        ControlPlane(control_plane.layout.root).start()
    assert control_plane.running() == before


def test_taken_port_is_named(control_plane: ControlPlane, tmp_path: Path) -> None:
    taken = control_plane.ports.apiserver
    with pytest.raises(PortInUse, match=f"{taken} for apiserver"):
        ControlPlane(tmp_path, binaries=Binaries(control_plane.layout.bin), ports=Ports(apiserver=taken)).start()


def test_component_that_dies_at_start_shows_its_log_and_leaves_nothing(control_plane: ControlPlane, tmp_path: Path) -> None:
    plane = ControlPlane(
        tmp_path / "kube",
        binaries=Binaries(control_plane.layout.bin),
        components=("etcd",),
        flags={"etcd": {"data-dir": "/dev/null/data"}},
        lifetime=Lifetime.WITH_PARENT,
    )
    with pytest.raises(ComponentFailed, match=r"etcd exited[^$]*/dev/null/data"):
        plane.start()
    assert plane.running() == {}
    plane.remove()
    assert not (tmp_path / "kube").exists()


def test_stale_pid_file_is_not_mistaken_for_a_process(tmp_path: Path) -> None:
    process = Process("sleeper", tmp_path / "pid", tmp_path / "log")
    process.pid_file.write_text(json.dumps({"pid": os.getpid(), "started": "1"}))
    assert process.pid is None
    process.start([sys.executable, "-c", "import time; time.sleep(60)"], Lifetime.WITH_PARENT)
    try:
        assert process.pid not in {None, os.getpid()}
    finally:
        process.stop()
    assert process.pid is None


def test_process_that_ignores_term_is_killed(tmp_path: Path) -> None:
    process = Process("stubborn", tmp_path / "pid", tmp_path / "log")
    program = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('deaf', flush=True); time.sleep(60)"
    process.start([sys.executable, "-c", program], Lifetime.WITH_PARENT)
    eventually(lambda: "deaf" in process.log_tail())
    process.stop(grace_s=0.2)
    assert process.pid is None


def test_process_dies_with_a_parent_that_is_killed(tmp_path: Path) -> None:
    program = (
        "import sys, os; from pathlib import Path; from hack.kube.process import Process, Lifetime;"
        "p = Process('child', Path(sys.argv[1]), Path(sys.argv[2]));"
        "p.start([sys.executable, '-c', 'print(1, flush=True); import time; time.sleep(60)'], Lifetime.WITH_PARENT);"
        "[None for _ in iter(lambda: '1' in p.log_tail(), True)]; os.kill(os.getpid(), 9)"
    )
    subprocess.run([sys.executable, "-c", program, str(tmp_path / "pid"), str(tmp_path / "log")], check=False, timeout=20)
    assert (tmp_path / "pid").exists()
    eventually(lambda: Process("child", tmp_path / "pid", tmp_path / "log").pid is None, 5.0)


def test_domains_of_nodes() -> None:
    by_size = uniform_nodes(29)
    assert [by_size[i].labels["kubernetes.io/rack"] for i in (0, 6, 7, 28)] == ["rack-0", "rack-0", "rack-1", "rack-4"]
    assert by_size[28].labels["kubernetes.io/zone"] == "zone-1"
    assert by_size[20].labels["kubernetes.io/block"] == "block-1"
    split = uniform_nodes(8, gpus=8, racks=2)
    assert [n.labels["kubernetes.io/rack"] for n in split] == ["rack-0"] * 4 + ["rack-1"] * 4
    assert {n.labels["kubernetes.io/block"] for n in split} == {"block-0"}
    assert split[0].allocatable["nvidia.com/gpu"] == "8"
