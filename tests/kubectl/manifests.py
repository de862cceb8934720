"""Objects that the tests create."""

from typing import Any

__all__ = ("clique_set", "config", "node", "pod")


def pod(name: str, node: str = "", **labels: str) -> dict[str, Any]:
    """A pod that is gone as soon as it is deleted."""
    spec: dict[str, Any] = {"terminationGracePeriodSeconds": 0, "containers": [{"name": "main", "image": "example.com/a:1"}]}
    if node:
        spec["nodeName"] = node
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "labels": labels}, "spec": spec}


def node(name: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}}


def config(name: str, **data: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}


def clique_set(name: str, replicas: int = 1) -> dict[str, Any]:
    containers = [{"name": "main", "image": "example.com/a:1"}]
    clique = {"name": "worker", "spec": {"roleName": "worker", "replicas": 2, "podSpec": {"containers": containers}}}
    spec = {"replicas": replicas, "template": {"cliques": [clique]}}
    return {"apiVersion": "grove.io/v1alpha1", "kind": "PodCliqueSet", "metadata": {"name": name}, "spec": spec}
