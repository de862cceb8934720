"""Workloads and faults that make the processes do what they seldom do: autoscalers, shared claims, lost answers, refused streams."""

from typing import Any

from api.names import clique_name, role_name, service_name
from e2e.faultproxy import DropResponse, Respond, Rule
from e2e.kind.workload import chat, clique

__all__ = ("claiming", "faults", "foreign", "scaled_by_metrics", "single")

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
    out = single(image, name)
    out["spec"]["replicas"] = replicas
    out["spec"]["template"] |= {
        "resourceClaimTemplates": [{"name": "shared", "templateSpec": {"spec": {"devices": {"requests": [request]}}}}],
        "resourceSharing": [{"name": "shared", "scope": "PerReplica", "filter": {"childCliqueNames": ["engine"]}}],
    }
    return out


def single(image: str, name: str, node: str = "") -> Manifest:
    """One pod, on that node if one is named."""
    template: Manifest = {"cliques": [clique("engine", image)]}
    if node:
        template["cliques"][0]["spec"]["podSpec"]["nodeSelector"] = {"kubernetes.io/hostname": node}
    return {
        "apiVersion": "grove.io/v1alpha1",
        "kind": "PodCliqueSet",
        "metadata": {"name": name},
        "spec": {"replicas": 1, "template": template},
    }


def foreign(image: str) -> dict[str, tuple[Manifest, Manifest]]:
    """By kind: an object of somebody else, and a set that needs its name for an object of its own."""
    rbac = "rbac.authorization.k8s.io"
    subject: Manifest = {"roleRef": {"apiGroup": rbac, "kind": "Role", "name": "none"}}
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "none"}
    device = {"devices": {"requests": [{"name": "device", "exactly": {"deviceClassName": "none.example.com"}}]}}
    scaled = single(image, "taken-autoscaler")
    scaled["spec"]["template"]["cliques"][0]["spec"]["autoScalingConfig"] = {"minReplicas": 1, "maxReplicas": 2}
    return {
        "ServiceAccount": (_named("v1", "ServiceAccount", "taken-account"), single(image, "taken-account")),
        "Role": (_named(f"{rbac}/v1", "Role", role_name("taken-role")), single(image, "taken-role")),
        "RoleBinding": (_named(f"{rbac}/v1", "RoleBinding", role_name("taken-binding")) | subject, single(image, "taken-binding")),
        "Service": (_named("v1", "Service", service_name("taken-service", 0)) | _spec(clusterIP="None"), single(image, "taken-service")),
        "HorizontalPodAutoscaler": (
            _named("autoscaling/v2", "HorizontalPodAutoscaler", clique_name("taken-autoscaler", 0, "engine"))
            | _spec(scaleTargetRef=target, maxReplicas=1),
            scaled,
        ),
        "ResourceClaim": (
            _named("resource.k8s.io/v1", "ResourceClaim", "taken-claim-0-shared") | _spec(**device),
            claiming(image, "taken-claim", 1),
        ),
    }


def _named(api_version: str, kind: str, name: str) -> Manifest:
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": name}}


def _spec(**fields: Any) -> Manifest:
    return {"spec": fields}
