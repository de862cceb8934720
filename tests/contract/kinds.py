"""The kinds that cases use, and small valid objects of them."""

from dataclasses import dataclass
from typing import Any

__all__ = (
    "CLIQUES",
    "CONFIGMAPS",
    "CRDS",
    "DAEMONSETS",
    "DEPLOYMENTS",
    "EVENTS",
    "JOBS",
    "LEASES",
    "NAMESPACES",
    "NODES",
    "PODS",
    "PRIORITYCLASSES",
    "REPLICASETS",
    "ROLES",
    "SECRETS",
    "SERVICEACCOUNTS",
    "SERVICES",
    "STATEFULSETS",
    "WIDGETS",
    "Kind",
    "Obj",
    "configmap",
    "deployment",
    "node",
    "pod",
    "service",
    "widget",
)

Obj = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Kind:
    """Where objects of a kind are served. `api_version`: v1, apps/v1..."""

    api_version: str
    plural: str
    kind: str
    is_namespaced: bool = True

    @property
    def group(self) -> str:
        return self.api_version.rpartition("/")[0]

    @property
    def qualified(self) -> str:
        """How messages name the resource: pods, deployments.apps."""
        return f"{self.plural}.{self.group}" if self.group else self.plural

    def path(self, namespace: str = "", name: str = "", subresource: str = "") -> str:
        """Path of the collection, of an object, or of a subresource."""
        root = f"/apis/{self.api_version}" if self.group else f"/api/{self.api_version}"
        parts = [root, *(["namespaces", namespace] if namespace else []), self.plural, name, subresource]
        return "/".join(p for p in parts if p)

    def new(self, name: str = "", /, **fields: Any) -> Obj:
        """An object with apiVersion, kind, name (none when empty) and these fields; `labels` and the like go into metadata."""
        inside = ("annotations", "deletionTimestamp", "finalizers", "generateName", "labels", "namespace", "ownerReferences", "uid")
        meta = {k: fields.pop(k) for k in inside if k in fields}
        return {"apiVersion": self.api_version, "kind": self.kind, "metadata": {**({"name": name} if name else {}), **meta}, **fields}


CONFIGMAPS = Kind("v1", "configmaps", "ConfigMap")
EVENTS = Kind("v1", "events", "Event")
NAMESPACES = Kind("v1", "namespaces", "Namespace", is_namespaced=False)
NODES = Kind("v1", "nodes", "Node", is_namespaced=False)
PODS = Kind("v1", "pods", "Pod")
SECRETS = Kind("v1", "secrets", "Secret")
SERVICEACCOUNTS = Kind("v1", "serviceaccounts", "ServiceAccount")
SERVICES = Kind("v1", "services", "Service")
DAEMONSETS = Kind("apps/v1", "daemonsets", "DaemonSet")
DEPLOYMENTS = Kind("apps/v1", "deployments", "Deployment")
REPLICASETS = Kind("apps/v1", "replicasets", "ReplicaSet")
STATEFULSETS = Kind("apps/v1", "statefulsets", "StatefulSet")
JOBS = Kind("batch/v1", "jobs", "Job")
LEASES = Kind("coordination.k8s.io/v1", "leases", "Lease")
PRIORITYCLASSES = Kind("scheduling.k8s.io/v1", "priorityclasses", "PriorityClass", is_namespaced=False)
ROLES = Kind("rbac.authorization.k8s.io/v1", "roles", "Role")
CRDS = Kind("apiextensions.k8s.io/v1", "customresourcedefinitions", "CustomResourceDefinition", is_namespaced=False)
CLIQUES = Kind("grove.io/v1alpha1", "podcliques", "PodClique")
WIDGETS = Kind("contract.example.com/v1", "widgets", "Widget")
"""Of crds.py; has a status subresource, a selectable field and a default."""


def configmap(name: str = "", /, **fields: Any) -> Obj:
    return CONFIGMAPS.new(name, **{"data": {"key": "value"}, **fields})


def pod(name: str = "", /, node: str = "", **fields: Any) -> Obj:
    """A pod of one container; `node` binds it. `spec` is added to what is there."""
    spec = {"containers": [{"name": "main", "image": "busybox"}], **({"nodeName": node} if node else {}), **fields.pop("spec", {})}
    return PODS.new(name, spec=spec, **fields)


def service(name: str = "", /, **fields: Any) -> Obj:
    return SERVICES.new(name, **{"spec": {"selector": {"app": "x"}, "ports": [{"port": 80}]}, **fields})


def node(name: str = "", /, **fields: Any) -> Obj:
    return NODES.new(name, **fields)


def deployment(name: str = "", /, **fields: Any) -> Obj:
    template = {"metadata": {"labels": {"app": "x"}}, "spec": {"containers": [{"name": "main", "image": "busybox"}]}}
    spec = {"replicas": 1, "selector": {"matchLabels": {"app": "x"}}, "template": template, **fields.pop("spec", {})}
    return DEPLOYMENTS.new(name, spec=spec, **fields)


def widget(name: str = "", /, **fields: Any) -> Obj:
    return WIDGETS.new(name, **{"spec": {"size": 1}, **fields})
