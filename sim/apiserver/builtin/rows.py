"""What a plain cluster serves, as a table: names, versions and subresources as discovery lists them."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from sim.apiserver.resources import Scale, Subresource

__all__ = ("CREATE", "REPLICAS", "ROWS", "STANDARD", "Row")

STANDARD = ("create", "delete", "deletecollection", "get", "list", "patch", "update", "watch")
CREATE = ("create",)
_WRITE = ("get", "patch", "update")
_STREAM = ("create", "get")
_PROXY = ("create", "delete", "get", "patch", "update")

REPLICAS = Scale(".spec.replicas", ".status.replicas", ".spec.selector")
"""A scale subresource. The selector is a metav1.LabelSelector, or a plain map (replication controllers): printed in text form."""


class Row(NamedTuple):
    """One resource. `versions`: served, the storage version first. `short`, `categories`: words apart by spaces."""

    group: str
    versions: tuple[str, ...]
    plural: str
    kind: str
    short: str = ""
    categories: str = ""
    is_namespaced: bool = True
    has_status: bool = False
    scale: Scale | None = None
    subresources: Mapping[str, Subresource] = {}
    verbs: tuple[str, ...] = STANDARD


_POD_SUBRESOURCES = {
    "attach": Subresource("PodAttachOptions", _STREAM),
    "binding": Subresource("Binding", CREATE),
    "ephemeralcontainers": Subresource("Pod", _WRITE),
    "eviction": Subresource("Eviction", CREATE, "policy", "v1"),
    "exec": Subresource("PodExecOptions", _STREAM),
    "log": Subresource("Pod", ("get",)),
    "portforward": Subresource("PodPortForwardOptions", _STREAM),
    "proxy": Subresource("PodProxyOptions", _PROXY),
    "resize": Subresource("Pod", _WRITE),
}
_WITHOUT_COLLECTION = ("create", "delete", "get", "list", "patch", "update", "watch")


def _core(plural: str, kind: str, short: str = "", **rest: Any) -> Row:
    return Row("", ("v1",), plural, kind, short)._replace(**rest)


def _v1(group: str, plural: str, kind: str, short: str = "", **rest: Any) -> Row:
    return Row(group, ("v1",), plural, kind, short)._replace(**rest)


def _cluster(group: str, plural: str, kind: str, short: str = "", **rest: Any) -> Row:
    return Row(group, ("v1",), plural, kind, short, is_namespaced=False)._replace(**rest)


_CORE = (
    _core("bindings", "Binding", verbs=CREATE),
    _core("configmaps", "ConfigMap", "cm"),
    _core("endpoints", "Endpoints", "ep"),
    _core("events", "Event", "ev"),
    _core("limitranges", "LimitRange", "limits"),
    _cluster(
        "",
        "namespaces",
        "Namespace",
        "ns",
        has_status=True,
        verbs=_WITHOUT_COLLECTION,
        subresources={"finalize": Subresource("Namespace", ("update",))},
    ),
    _cluster("", "nodes", "Node", "no", has_status=True, subresources={"proxy": Subresource("NodeProxyOptions", _PROXY)}),
    _core("persistentvolumeclaims", "PersistentVolumeClaim", "pvc", has_status=True),
    _cluster("", "persistentvolumes", "PersistentVolume", "pv", has_status=True),
    _core("pods", "Pod", "po", categories="all", has_status=True, subresources=_POD_SUBRESOURCES),
    _core("podtemplates", "PodTemplate"),
    _core("replicationcontrollers", "ReplicationController", "rc", categories="all", has_status=True, scale=REPLICAS),
    _core("resourcequotas", "ResourceQuota", "quota", has_status=True),
    _core("secrets", "Secret"),
    _core(
        "serviceaccounts",
        "ServiceAccount",
        "sa",
        subresources={"token": Subresource("TokenRequest", CREATE, "authentication.k8s.io", "v1")},
    ),
    _core(
        "services",
        "Service",
        "svc",
        categories="all",
        has_status=True,
        subresources={"proxy": Subresource("ServiceProxyOptions", _PROXY)},
    ),
)
_WORKLOADS = (
    _v1("apps", "controllerrevisions", "ControllerRevision"),
    _v1("apps", "daemonsets", "DaemonSet", "ds", categories="all", has_status=True),
    _v1("apps", "deployments", "Deployment", "deploy", categories="all", has_status=True, scale=REPLICAS),
    _v1("apps", "replicasets", "ReplicaSet", "rs", categories="all", has_status=True, scale=REPLICAS),
    _v1("apps", "statefulsets", "StatefulSet", "sts", categories="all", has_status=True, scale=REPLICAS),
    _v1("events.k8s.io", "events", "Event", "ev"),
    Row("autoscaling", ("v2", "v1"), "horizontalpodautoscalers", "HorizontalPodAutoscaler", "hpa", categories="all", has_status=True),
    _v1("batch", "cronjobs", "CronJob", "cj", categories="all", has_status=True),
    _v1("batch", "jobs", "Job", categories="all", has_status=True),
    _v1("policy", "poddisruptionbudgets", "PodDisruptionBudget", "pdb", has_status=True),
    _cluster("scheduling.k8s.io", "priorityclasses", "PriorityClass", "pc"),
    _v1("coordination.k8s.io", "leases", "Lease"),
    _cluster("node.k8s.io", "runtimeclasses", "RuntimeClass"),
    _v1("discovery.k8s.io", "endpointslices", "EndpointSlice"),
    _cluster("resource.k8s.io", "deviceclasses", "DeviceClass"),
    _v1("resource.k8s.io", "resourceclaims", "ResourceClaim", has_status=True),
    _v1("resource.k8s.io", "resourceclaimtemplates", "ResourceClaimTemplate"),
    _cluster("resource.k8s.io", "resourceslices", "ResourceSlice"),
)
_ACCESS = (
    _cluster("authentication.k8s.io", "selfsubjectreviews", "SelfSubjectReview", verbs=CREATE),
    _cluster("authentication.k8s.io", "tokenreviews", "TokenReview", verbs=CREATE),
    _v1("authorization.k8s.io", "localsubjectaccessreviews", "LocalSubjectAccessReview", verbs=CREATE),
    _cluster("authorization.k8s.io", "selfsubjectaccessreviews", "SelfSubjectAccessReview", verbs=CREATE),
    _cluster("authorization.k8s.io", "selfsubjectrulesreviews", "SelfSubjectRulesReview", verbs=CREATE),
    _cluster("authorization.k8s.io", "subjectaccessreviews", "SubjectAccessReview", verbs=CREATE),
    _cluster("rbac.authorization.k8s.io", "clusterrolebindings", "ClusterRoleBinding"),
    _cluster("rbac.authorization.k8s.io", "clusterroles", "ClusterRole"),
    _v1("rbac.authorization.k8s.io", "rolebindings", "RoleBinding"),
    _v1("rbac.authorization.k8s.io", "roles", "Role"),
)
_ADMISSION = tuple(
    _cluster("admissionregistration.k8s.io", plural, kind, categories="api-extensions", has_status=has_status)
    for plural, kind, has_status in (
        ("mutatingadmissionpolicies", "MutatingAdmissionPolicy", False),
        ("mutatingadmissionpolicybindings", "MutatingAdmissionPolicyBinding", False),
        ("mutatingwebhookconfigurations", "MutatingWebhookConfiguration", False),
        ("validatingadmissionpolicies", "ValidatingAdmissionPolicy", True),
        ("validatingadmissionpolicybindings", "ValidatingAdmissionPolicyBinding", False),
        ("validatingwebhookconfigurations", "ValidatingWebhookConfiguration", False),
    )
)
_EXTENSIONS = (
    *_ADMISSION,
    _cluster(
        "apiextensions.k8s.io",
        "customresourcedefinitions",
        "CustomResourceDefinition",
        "crd crds",
        categories="api-extensions",
        has_status=True,
    ),
)
_INFRASTRUCTURE = (
    _cluster("networking.k8s.io", "ingressclasses", "IngressClass"),
    _v1("networking.k8s.io", "ingresses", "Ingress", "ing", has_status=True),
    _cluster("networking.k8s.io", "ipaddresses", "IPAddress", "ip"),
    _v1("networking.k8s.io", "networkpolicies", "NetworkPolicy", "netpol"),
    _cluster("networking.k8s.io", "servicecidrs", "ServiceCIDR", has_status=True),
    _cluster("storage.k8s.io", "csidrivers", "CSIDriver"),
    _cluster("storage.k8s.io", "csinodes", "CSINode"),
    _v1("storage.k8s.io", "csistoragecapacities", "CSIStorageCapacity"),
    _cluster("storage.k8s.io", "storageclasses", "StorageClass", "sc"),
    _cluster("storage.k8s.io", "volumeattachments", "VolumeAttachment", has_status=True),
    _cluster("storage.k8s.io", "volumeattributesclasses", "VolumeAttributesClass", "vac"),
)
ROWS: tuple[Row, ...] = (*_CORE, *_WORKLOADS, *_ACCESS, *_EXTENSIONS, *_INFRASTRUCTURE)
"""Not served here: componentstatuses, apiservices, certificatesigningrequests, flow control."""
