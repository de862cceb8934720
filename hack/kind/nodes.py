"""What is done to the nodes of a running cluster: pod network, topology labels, simulated GPUs, and waiting for all of it.

Everything goes through kubectl on the control-plane node, so it needs no program and no address on this machine, and may be repeated.
"""

import json
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from hack.kind.docker import docker
from hack.kind.failures import KindFailed
from hack.kind.settings import GPUS_PER_WORKER, NODES, WORKERS, cni_configuration, node_labels

__all__ = ("NodeAddress", "addresses", "connect", "equip", "faults", "kubectl", "wait_answers", "wait_ready")

POLL_S = 0.5
CONFLIST = "/etc/cni/net.d/10-grovekeeper.conflist"


@dataclass(frozen=True, slots=True)
class NodeAddress:
    """A node's name, the range of its pods, its address."""

    name: str
    pod_cidr: str
    address: str


def kubectl(*argv: str, stdin: str | None = None, timeout_s: float = 60.0) -> str:
    """kubectl on the control-plane node, as cluster administrator. Raises KindFailed."""
    return docker("exec", "-i", NODES[0], "kubectl", "--kubeconfig=/etc/kubernetes/admin.conf", *argv, stdin=stdin, timeout_s=timeout_s)


def wait_answers(timeout_s: float = 120.0) -> None:
    """Wait until the API server is ready. Raises KindFailed."""
    _wait(_server_fault, "the API server", timeout_s)


def addresses(nodes: dict[str, Any]) -> tuple[NodeAddress, ...]:
    """Of every node of a NodeList that has got its range."""
    return tuple(
        NodeAddress(node["metadata"]["name"], node["spec"]["podCIDR"], internal)
        for node in nodes["items"]
        if "podCIDR" in node["spec"]
        for internal in [next(a["address"] for a in node["status"]["addresses"] if a["type"] == "InternalIP")]
    )


def connect(timeout_s: float = 60.0) -> None:
    """Give every node its pod network and routes to the pods of the others. Routes are lost when a node restarts, so repeat it then."""
    _wait(lambda: _unregistered(), "registration of the nodes", timeout_s)
    every = addresses(_get("nodes"))
    for node in every:
        routes = [f"ip route replace {other.pod_cidr} via {other.address}" for other in every if other != node]
        script = "\n".join((f"cat >{CONFLIST}", *routes))
        docker("exec", "-i", node.name, "sh", "-ec", script, stdin=cni_configuration(node.pod_cidr))


def equip() -> None:
    """Label the workers and give them GPUs. A kubelet keeps extended resources that it finds."""
    gpus = {"nvidia.com/gpu": str(GPUS_PER_WORKER)}
    for worker in WORKERS:
        kubectl("label", "node", worker, "--overwrite", *(f"{key}={value}" for key, value in node_labels(worker).items()))
        status = json.dumps({"status": {"capacity": gpus, "allocatable": gpus}})
        kubectl("patch", "node", worker, "--subresource=status", "--type=merge", "-p", status)


def wait_ready(timeout_s: float = 180.0) -> None:
    """Wait until all nodes are Ready with their GPUs and DNS is Available. Raises KindFailed with what is missing."""
    _wait(lambda: "; ".join(faults()) or None, "the cluster", timeout_s)


def faults() -> tuple[str, ...]:
    """What keeps the cluster from being whole, in words; empty when it is."""
    if (fault := _server_fault()) is not None:
        return (fault,)
    nodes = {n["metadata"]["name"]: n for n in _get("nodes")["items"]}
    found = [f"node {name} is not registered" for name in NODES if name not in nodes]
    found += [f"node {name} is not Ready: {why}" for name, node in nodes.items() if (why := _not_ready(node)) is not None]
    for worker in WORKERS:
        if worker in nodes:
            node = nodes[worker]
            if node["status"].get("allocatable", {}).get("nvidia.com/gpu") != str(GPUS_PER_WORKER):
                found.append(f"node {worker} lacks its {GPUS_PER_WORKER} nvidia.com/gpu")
            if not node_labels(worker).items() <= node["metadata"].get("labels", {}).items():
                found.append(f"node {worker} lacks its topology labels")
    proxy = json.loads(kubectl("get", "daemonset", "kube-proxy", "-n", "kube-system", "-o", "json"))["status"]
    if (ready := proxy.get("numberReady", 0)) != len(NODES):
        found.append(f"daemonset kube-system/kube-proxy is ready on {ready} of {len(NODES)} nodes")
    if not _has_condition(json.loads(kubectl("get", "deployment", "coredns", "-n", "kube-system", "-o", "json")), "Available"):
        found.append("deployment kube-system/coredns is not Available")
    return tuple(found)


def _get(resource: str) -> dict[str, Any]:
    return json.loads(kubectl("get", resource, "-o", "json"))


def _server_fault() -> str | None:
    try:
        kubectl("get", "--raw", "/readyz", timeout_s=15)
    except KindFailed as error:
        return f"the API server does not answer: {str(error).splitlines()[-1]}"
    return None


def _unregistered() -> str | None:
    missing = set(NODES) - {a.name for a in addresses(_get("nodes"))}
    return f"{min(missing)} is not registered" if missing else None


def _not_ready(node: dict[str, Any]) -> str | None:
    ready = next((c for c in node["status"].get("conditions", ()) if c["type"] == "Ready"), None)
    if ready is None:
        return "no condition Ready"
    return None if ready["status"] == "True" else str(ready.get("message", ready["status"]))[:300]


def _has_condition(subject: dict[str, Any], kind: str) -> bool:
    return any(c["type"] == kind and c["status"] == "True" for c in subject.get("status", {}).get("conditions", ()))


def _wait(fault: Callable[[], str | None], what: str, timeout_s: float) -> None:
    deadline = time.monotonic() + timeout_s
    while (why := fault()) is not None:
        if time.monotonic() > deadline:
            raise KindFailed(f"{what}: not there after {timeout_s:.0f} s: {why}")
        time.sleep(POLL_S)
