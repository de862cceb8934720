"""Workloads and faults that make the processes do what they seldom do: autoscalers, shared claims, lost answers, refused streams."""

from typing import Any

from e2e.faultproxy import DropResponse, Respond, Rule
from e2e.kind.workload import chat, clique

__all__ = ("claiming", "faults", "scaled_by_metrics")

Manifest = dict[str, Any]

CREATED = (
    "serviceaccounts",
    "roles",
    "rolebindings",
    "services",
    "horizontalpodautoscalers",
    "resourceclaims",
    "podcliques",
    "podcliquescalinggroups",
    "podgangs",
    "pods",
)
"""What the controllers create and look for afterwards when the answer got lost."""


def faults() -> list[Rule]:
    """No stream of first objects is served; one answer to each kind of write gets lost; one binding conflicts."""
    lost = [Rule(DropResponse(), method="POST", path=rf"/{plural}(\?|$)") for plural in CREATED]
    lost.append(Rule(DropResponse(), method="PATCH", path=r"/podcliquesets/[^/?]+(\?|$)"))
    lost.append(Rule(DropResponse(), method="PATCH", path=r"/podgangs/[^/?]+/status\?.*grovekeeper(/|%2F)scheduler"))
    return [
        Rule(Respond(422), method="GET", path=r"sendInitialEvents=true", times=None),
        Rule(Respond(409), method="POST", path=r"/pods/[^/]+/binding"),
        *lost,
    ]


def scaled_by_metrics(image: str, name: str, most: int, *, publish: bool) -> Manifest:
    """`chat` with an autoscaler of the clique decode and one of the group prefill, up to `most`."""
    out = chat(image, name)
    template = out["spec"]["template"]
    template["headlessServiceConfig"] = {"publishNotReadyAddresses": publish}
    decode = next(c for c in template["cliques"] if c["name"] == "decode")
    decode["spec"]["autoScalingConfig"] = {"minReplicas": 2, "maxReplicas": most}
    template["podCliqueScalingGroups"][0]["scaleConfig"] = {"minReplicas": 2, "maxReplicas": most}
    return out


def claiming(image: str, name: str, replicas: int) -> Manifest:
    """A set whose pods share a claim per replica. No driver serves the claims, so its pods wait."""
    request = {"name": "device", "exactly": {"deviceClassName": "none.example.com"}}
    template: Manifest = {
        "cliques": [clique("engine", image)],
        "resourceClaimTemplates": [{"name": "shared", "templateSpec": {"spec": {"devices": {"requests": [request]}}}}],
        "resourceSharing": [{"name": "shared", "scope": "PerReplica", "filter": {"childCliqueNames": ["engine"]}}],
    }
    return {
        "apiVersion": "grove.io/v1alpha1",
        "kind": "PodCliqueSet",
        "metadata": {"name": name},
        "spec": {"replicas": replicas, "template": template},
    }
