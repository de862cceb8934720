"""Environment variables of discovery (grove.md §1.13): put before the user's, whose variables of the same name are dropped."""

import copy
from collections.abc import Sequence

from api import labels
from api.names import headless_address
from api.plan import Manifest

__all__ = ("clique_environment", "member_environment", "with_environment")


def _from_label(name: str, label: str) -> Manifest:
    return {"name": name, "valueFrom": {"fieldRef": {"fieldPath": f"metadata.labels['{label}']"}}}


def member_environment(template_pods: int) -> list[Manifest]:
    """Variables of scaling group members, written into the PodClique's pod spec."""
    return [
        _from_label("GROVE_PCSG_NAME", labels.PCSG),
        {"name": "GROVE_PCSG_TEMPLATE_NUM_PODS", "value": str(template_pods)},
        _from_label("GROVE_PCSG_INDEX", labels.PCSG_REPLICA_INDEX),
    ]


def clique_environment(pcs: str, pcs_replica: int, clique: str, namespace: str) -> list[Manifest]:
    """Variables of every pod. `clique` is the full PodClique name."""
    return [
        {"name": "GROVE_PCS_NAME", "value": pcs},
        {"name": "GROVE_PCS_INDEX", "value": str(pcs_replica)},
        {"name": "GROVE_PCLQ_NAME", "value": clique},
        {"name": "GROVE_HEADLESS_SERVICE", "value": headless_address(pcs, pcs_replica, namespace)},
        _from_label("GROVE_PCLQ_POD_INDEX", labels.POD_INDEX),
    ]


def with_environment(pod_spec: Manifest, variables: Sequence[Manifest]) -> Manifest:
    """A deep copy of `pod_spec` with `variables` first in every container and init container."""
    out = copy.deepcopy(pod_spec)
    ours = {v["name"] for v in variables}
    for container in [*(out.get("containers") or ()), *(out.get("initContainers") or ())]:
        users = [v for v in container.get("env") or () if v.get("name") not in ours]
        container["env"] = [*copy.deepcopy(list(variables)), *users]
    return out
