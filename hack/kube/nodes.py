"""Simulated nodes for KWOK."""

import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from hack.kube.client import ApiError, Client
from sim.nodes.specs import SYSTEM_LABELS, NodeSpec, uniform_nodes

__all__ = ("NodeSpec", "cordon", "create_nodes", "delete_nodes", "uncordon", "uniform_nodes")

MERGE = "application/merge-patch+json"
NOT_READY = "node.kubernetes.io/not-ready"


def create_nodes(kubeconfig: Path, specs: Iterable[NodeSpec], *, timeout_s: float | None = None) -> None:
    """Create or update nodes and wait until each is Ready and without the not-ready taint. Raises ApiError, TimeoutError.

    kube-controller-manager writes to every new node; with its default client rate it does about ten nodes in a second.
    """
    specs = tuple(specs)
    limit_s = 60.0 + 0.3 * len(specs) if timeout_s is None else timeout_s
    with Client(kubeconfig) as client:
        for spec in specs:
            _apply(client, spec)
        _wait_ready(client, {s.name for s in specs}, limit_s)


def delete_nodes(kubeconfig: Path, names: Iterable[str]) -> None:
    """Delete nodes; one that is not there is fine. Their pods are collected by the controller manager."""
    with Client(kubeconfig) as client:
        for name in names:
            status, body = client.raw("DELETE", f"/api/v1/nodes/{name}")
            if status >= 400 and status != 404:
                raise ApiError(status, body.decode(errors="replace"))


def cordon(kubeconfig: Path, names: Iterable[str]) -> None:
    """Make nodes unschedulable."""
    _set_unschedulable(kubeconfig, names, {"unschedulable": True})


def uncordon(kubeconfig: Path, names: Iterable[str]) -> None:
    """Make nodes schedulable again."""
    _set_unschedulable(kubeconfig, names, {"unschedulable": None})


def _set_unschedulable(kubeconfig: Path, names: Iterable[str], spec: Mapping[str, bool | None]) -> None:
    with Client(kubeconfig) as client:
        for name in names:
            client.request("PATCH", f"/api/v1/nodes/{name}", {"spec": spec}, MERGE)


def _apply(client: Client, spec: NodeSpec) -> None:
    """A new node takes its status from the request; for one that exists, status is a second request."""
    labels = {"type": "kwok", **SYSTEM_LABELS, **spec.labels}
    resources = {"allocatable": dict(spec.allocatable), "capacity": dict(spec.allocatable)}
    body: dict[str, Any] = {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": spec.name, "labels": labels, "annotations": {"kwok.x-k8s.io/node": "fake"}},
        "status": resources,
    }
    if spec.taints:
        body["spec"] = {"taints": [dict(t) for t in spec.taints]}
    path = f"/api/v1/nodes/{spec.name}"
    status, answer = client.raw("POST", "/api/v1/nodes", body)
    if status == 409:
        client.request("PATCH", path, {k: v for k, v in body.items() if k in {"metadata", "spec"}}, MERGE)
        client.request("PATCH", f"{path}/status", {"status": resources}, MERGE)
    elif status >= 400:
        raise ApiError(status, answer.decode(errors="replace"))


def _wait_ready(client: Client, names: set[str], timeout_s: float) -> None:
    deadline = time.monotonic() + timeout_s
    while waiting := names - {n["metadata"]["name"] for n in client.request("GET", "/api/v1/nodes")["items"] if _is_ready(n)}:
        if time.monotonic() > deadline:
            raise TimeoutError(f"{len(waiting)} nodes are not Ready after {timeout_s:.0f} s, e.g. {min(waiting)}; does kwok run?")
        time.sleep(0.2)


def _is_ready(node: Mapping[str, Any]) -> bool:
    ready = any(c["type"] == "Ready" and c["status"] == "True" for c in node["status"].get("conditions", ()))
    return ready and not any(t["key"] == NOT_READY for t in node["spec"].get("taints", ()))
