"""Which behaviour belongs to which resource."""

from collections.abc import Mapping
from typing import Final

from sim.apiserver.builtin.access import BindingStrategy, RoleStrategy
from sim.apiserver.builtin.autoscaling import AutoscalerStrategy
from sim.apiserver.builtin.cluster import NamespaceStrategy, NodeStrategy
from sim.apiserver.builtin.config import ConfigMapStrategy, SecretStrategy, issue_token
from sim.apiserver.builtin.devices import ClaimTemplateStrategy, DeviceClaimStrategy
from sim.apiserver.builtin.events import EventStrategy, NewEventStrategy
from sim.apiserver.builtin.jobs import CronJobStrategy, JobStrategy
from sim.apiserver.builtin.plain import (
    Plain,
    fill_csi_driver,
    fill_endpoint_slice,
    fill_endpoints,
    fill_limits,
    fill_network_policy,
    fill_quota,
    fill_storage_class,
    ingress_errors,
    slice_errors,
)
from sim.apiserver.builtin.pod_actions import bind, evict
from sim.apiserver.builtin.pods import PodStrategy
from sim.apiserver.builtin.policy import BudgetStrategy, LeaseStrategy, PriorityStrategy
from sim.apiserver.builtin.services import ServiceStrategy
from sim.apiserver.builtin.volumes import ClaimStrategy, VolumeStrategy
from sim.apiserver.builtin.webhooks import fill_webhooks, webhook_errors
from sim.apiserver.builtin.workloads import (
    ControllerStrategy,
    DaemonSetStrategy,
    DeploymentStrategy,
    PodTemplateStrategy,
    ReplicaSetStrategy,
    RevisionStrategy,
    StatefulSetStrategy,
)
from sim.apiserver.resources import Action, Strategy

__all__ = ("ACTIONS", "STRATEGIES")

_ADMISSION: Final = "admissionregistration.k8s.io"
_DEVICES: Final = "resource.k8s.io"
_NETWORK: Final = "networking.k8s.io"
_RBAC: Final = "rbac.authorization.k8s.io"
_STORAGE: Final = "storage.k8s.io"
_CLASS_FIXED: Final = ("parameters", "provisioner", "reclaimPolicy", "volumeBindingMode")

_CORE: Final[Mapping[str, Strategy]] = {
    "configmaps": ConfigMapStrategy(),
    "endpoints": Plain(fill_endpoints, may_create_on_update=True),
    "events": EventStrategy(may_create_on_update=True),
    "limitranges": Plain(fill_limits, may_create_on_update=True),
    "namespaces": NamespaceStrategy(),
    "nodes": NodeStrategy(),
    "persistentvolumeclaims": ClaimStrategy(returns_deleted=True),
    "persistentvolumes": VolumeStrategy(returns_deleted=True),
    "pods": PodStrategy(returns_deleted=True),
    "podtemplates": PodTemplateStrategy(returns_deleted=True),
    "replicationcontrollers": ControllerStrategy(),
    "resourcequotas": Plain(fill_quota, status={}, returns_deleted=True),
    "secrets": SecretStrategy(),
    "serviceaccounts": Plain(returns_deleted=True),
    "services": ServiceStrategy(may_create_on_update=True, returns_deleted=True),
}
_REVIEWED: Final[Mapping[str, Strategy]] = {
    "mutatingadmissionpolicies": Plain(counts=True, may_update_unconditionally=False),
    "mutatingadmissionpolicybindings": Plain(counts=True, may_update_unconditionally=False),
    "mutatingwebhookconfigurations": Plain(fill_webhooks, webhook_errors, counts=True, may_update_unconditionally=False),
    "validatingadmissionpolicies": Plain(status={}, counts=True, may_update_unconditionally=False),
    "validatingadmissionpolicybindings": Plain(counts=True, may_update_unconditionally=False),
    "validatingwebhookconfigurations": Plain(fill_webhooks, webhook_errors, counts=True, may_update_unconditionally=False),
}
_STORED: Final[Mapping[str, Strategy]] = {
    "csidrivers": Plain(fill_csi_driver, may_update_unconditionally=False, returns_deleted=True),
    "csinodes": Plain(may_update_unconditionally=False, returns_deleted=True),
    "csistoragecapacities": Plain(needed=("storageClassName",), may_update_unconditionally=False),
    "storageclasses": Plain(fill_storage_class, needed=("provisioner",), fixed=_CLASS_FIXED, returns_deleted=True),
    "volumeattachments": Plain(status={"attached": False}, may_update_unconditionally=False, returns_deleted=True),
    "volumeattributesclasses": Plain(needed=("driverName",), fixed=("driverName", "parameters"), returns_deleted=True),
}
STRATEGIES: Final[Mapping[tuple[str, str], Strategy]] = {
    **{("", plural): strategy for plural, strategy in _CORE.items()},
    **{(_ADMISSION, plural): strategy for plural, strategy in _REVIEWED.items()},
    **{(_STORAGE, plural): strategy for plural, strategy in _STORED.items()},
    ("apps", "controllerrevisions"): RevisionStrategy(),
    ("apps", "daemonsets"): DaemonSetStrategy(),
    ("apps", "deployments"): DeploymentStrategy(),
    ("apps", "replicasets"): ReplicaSetStrategy(),
    ("apps", "statefulsets"): StatefulSetStrategy(),
    ("autoscaling", "horizontalpodautoscalers"): AutoscalerStrategy(),
    ("batch", "cronjobs"): CronJobStrategy(),
    ("batch", "jobs"): JobStrategy(),
    ("coordination.k8s.io", "leases"): LeaseStrategy(may_create_on_update=True, may_update_unconditionally=False),
    ("discovery.k8s.io", "endpointslices"): Plain(fill_endpoint_slice, slice_errors, fixed=("addressType",), counts=True),
    ("events.k8s.io", "events"): NewEventStrategy(may_create_on_update=True),
    (_NETWORK, "ingressclasses"): Plain(counts=True),
    (_NETWORK, "ingresses"): Plain(check=ingress_errors, status={"loadBalancer": {}}, counts=True),
    (_NETWORK, "networkpolicies"): Plain(fill_network_policy, counts=True),
    (_NETWORK, "servicecidrs"): Plain(status={}),
    ("node.k8s.io", "runtimeclasses"): Plain(
        needed=("handler",), fixed=("handler",), may_create_on_update=True, may_update_unconditionally=False
    ),
    ("policy", "poddisruptionbudgets"): BudgetStrategy(may_update_unconditionally=False),
    (_RBAC, "clusterrolebindings"): BindingStrategy(is_namespaced=False),
    (_RBAC, "clusterroles"): RoleStrategy(is_namespaced=False),
    (_RBAC, "rolebindings"): BindingStrategy(is_namespaced=True),
    (_RBAC, "roles"): RoleStrategy(is_namespaced=True),
    (_DEVICES, "deviceclasses"): Plain(counts=True, returns_deleted=True),
    (_DEVICES, "resourceclaims"): DeviceClaimStrategy(returns_deleted=True),
    (_DEVICES, "resourceclaimtemplates"): ClaimTemplateStrategy(returns_deleted=True),
    (_DEVICES, "resourceslices"): Plain(counts=True, returns_deleted=True),
    ("scheduling.k8s.io", "priorityclasses"): PriorityStrategy(),
}
"""By (group, plural)."""
ACTIONS: Final[Mapping[str, Mapping[str, Action]]] = {
    "pods": {"binding": bind, "eviction": evict},
    "serviceaccounts": {"token": issue_token},
}
"""POST to subresources, by plural of the core group."""
