"""What of a cluster's state two runs must agree in."""

from typing import Any, cast

from api.labels import POD_INDEX
from sim.apiserver.objects import Json, Object, mapping, maps
from sim.cluster.cluster import Cluster
from sim.invariants.checker import clique_of
from sim.sweeps.scenarios import is_ready

__all__ = ("normalised",)

KINDS = (
    *(("grove.io", plural) for plural in ("podcliquesets", "podcliquescalinggroups", "podcliques")),
    ("scheduler.grove.io", "podgangs"),
    *(("", plural) for plural in ("services", "serviceaccounts", "secrets")),
    *(("rbac.authorization.k8s.io", plural) for plural in ("roles", "rolebindings")),
)
VOLATILE = frozenset(
    {
        "placementScore",
        "blockedSince",
        "lastTransitionTime",
        "observedGeneration",
        "uid",
        "resourceVersion",
        "generation",
        "creationTimestamp",
        "podReferences",
    }
)
"""Fields that tell when something happened, or how often, or in which life. Pods are compared by index, not by name. A scheduler that dies
between the binds and the report takes the gang's placementScore with it: nothing keeps it for the next one."""


def normalised(cluster: Cluster) -> dict[str, Any]:
    """Objects by plural and name: labels, spec and status without what may differ; pods by clique and index. Nodes of pods may differ."""
    out: dict[str, Any] = {}
    for group, plural in KINDS:
        for obj in cluster.objects(group, plural):
            out[f"{plural}/{obj['metadata']['name']}"] = _shape(obj)
    for pod in cluster.pods():
        index = mapping(pod, "metadata", "labels").get(POD_INDEX, "")
        gates = [gate["name"] for gate in maps(pod, "spec", "schedulingGates")]
        out[f"pods/{clique_of(pod)}/{index}"] = {"labels": mapping(pod, "metadata", "labels"), "gates": gates, "ready": is_ready(pod)}
    return out


def _shape(obj: Object) -> Any:
    labels = mapping(obj, "metadata", "labels")
    owners = sorted(owner["name"] for owner in maps(obj, "metadata", "ownerReferences"))
    return _without({"labels": labels, "owners": owners, **{k: v for k, v in obj.items() if k not in ("metadata", "apiVersion", "kind")}})


def _without(value: Json) -> Json:
    if isinstance(value, dict):
        fields = cast("Object", value)
        return {k: _without(v) for k, v in sorted(fields.items()) if k not in VOLATILE}
    if isinstance(value, list):
        items = cast("list[Any]", value)
        conditions = all(isinstance(item, dict) and "type" in item and "status" in item for item in items)
        ordered = sorted(items, key=lambda item: item["type"]) if conditions else items
        return [_without(item) for item in ordered]
    return value
