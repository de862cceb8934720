"""PodCliqueSets for tests and simulations (grove.md §9.1): built, not copied, so that a test shows only what matters to it."""

from collections.abc import Mapping, Sequence
from typing import Any

__all__ = ("POOL", "TOPOLOGY", "binding", "clique", "group", "pack", "pcs", "wl1", "wl2")

Manifest = dict[str, Any]

POOL = "node_role.e2e.grove.nvidia.com"
TOPOLOGY = "grove-topology"


def pod_spec(memory: str, *, one_per_host: str = "", scheduler: str = "") -> Manifest:
    """A pod that only goes to the pool of test nodes. `one_per_host`: label value of pods that must not share a host with each other."""
    container = {"name": "main", "image": "registry.local/none:1", "resources": {"requests": {"memory": memory}}}
    spec: Manifest = {
        "nodeSelector": {POOL: "agent"},
        "tolerations": [{"key": POOL, "operator": "Equal", "value": "agent", "effect": "NoSchedule"}],
        "containers": [container],
    }
    if scheduler:
        spec["schedulerName"] = scheduler
    if one_per_host:
        term = {"labelSelector": {"matchLabels": {"apart": one_per_host}}, "topologyKey": "kubernetes.io/hostname"}
        spec["affinity"] = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    return spec


def pack(required: str = "", preferred: str = "", *, topology: str = "") -> Manifest:
    """A topologyConstraint."""
    domains = {key: value for key, value in (("required", required), ("preferred", preferred)) if value}
    return {**({"topologyName": topology} if topology else {}), "pack": domains}


def clique(
    name: str,
    replicas: int,
    minimum: int | None = None,
    *,
    memory: str = "80Mi",
    constraint: Manifest | None = None,
    apart: bool = False,
    after: Sequence[str] = (),
    scheduler: str = "",
) -> Manifest:
    """One clique template; `apart`: at most one of its pods on a host; `after`: startsAfter."""
    spec: Manifest = {"roleName": name, "replicas": replicas}
    spec["podSpec"] = pod_spec(memory, one_per_host=name if apart else "", scheduler=scheduler)
    if minimum is not None:
        spec["minAvailable"] = minimum
    if after:
        spec["startsAfter"] = list(after)
    out: Manifest = {"name": name, "spec": spec}
    if apart:
        out["labels"] = {"apart": name}
    if constraint is not None:
        out["topologyConstraint"] = constraint
    return out


def group(name: str, cliques: Sequence[str], replicas: int, minimum: int, *, constraint: Manifest | None = None) -> Manifest:
    """One scaling group of the template."""
    out: Manifest = {"name": name, "cliqueNames": list(cliques), "replicas": replicas, "minAvailable": minimum}
    if constraint is not None:
        out["topologyConstraint"] = constraint
    return out


def pcs(
    name: str,
    cliques: Sequence[Manifest],
    groups: Sequence[Manifest] = (),
    *,
    replicas: int = 1,
    constraint: Manifest | None = None,
    template: Mapping[str, Any] | None = None,
) -> Manifest:
    """A PodCliqueSet; `template`: further fields of spec.template."""
    inner: Manifest = {"cliques": list(cliques), **(template or {})}
    if groups:
        inner["podCliqueScalingGroups"] = list(groups)
    if constraint is not None:
        inner["topologyConstraint"] = constraint
    return {
        "apiVersion": "grove.io/v1alpha1",
        "kind": "PodCliqueSet",
        "metadata": {"name": name, "labels": {"suite": "e2e"}},
        "spec": {"replicas": replicas, "template": inner},
    }


def wl1(name: str = "workload1", *, replicas: int = 1) -> Manifest:
    """Ten pods in one gang: everything is mandatory."""
    cliques = (clique("pc-a", 2, 2), clique("pc-b", 1, 1), clique("pc-c", 3, 3))
    return pcs(name, cliques, (group("sg-x", ("pc-b", "pc-c"), 2, 2),), replicas=replicas)


def wl2(name: str = "workload2", *, replicas: int = 1, memory: str = "80Mi") -> Manifest:
    """Ten pods: an anchor gang of six with a minimum of three, a tail gang of four with a minimum of two."""
    cliques = (clique("pc-a", 2, 1, memory=memory), clique("pc-b", 1, 1, memory=memory), clique("pc-c", 3, 1, memory=memory))
    return pcs(name, cliques, (group("sg-x", ("pc-b", "pc-c"), 2, 1),), replicas=replicas)


def binding(name: str, levels: Mapping[str, str]) -> Manifest:
    """A ClusterTopologyBinding; `levels`: domain → node label key, broad to narrow."""
    return {
        "apiVersion": "grove.io/v1alpha1",
        "kind": "ClusterTopologyBinding",
        "metadata": {"name": name},
        "spec": {"levels": [{"domain": domain, "key": key} for domain, key in levels.items()]},
    }
