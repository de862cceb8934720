"""What the pods of a set need besides themselves: identity and access of the startup waiter, headless services, autoscalers
(grove.md §1.13, §1.14, §2.2)."""

from collections.abc import Iterator

from api import labels
from api.core import HorizontalPodAutoscaler, Role, RoleBinding, Secret, Service, ServiceAccount
from api.grove import AutoScalingConfig
from api.limits import bounded
from api.names import clique_name, role_name, scaling_group_name, service_name, token_secret_name
from api.objects.metadata import metadata
from api.objects.startup import has_startup_order
from api.objects.template import standalone_cliques
from api.plan import Apply, Create, Delete, Manifest, Op, Ref
from api.subset import contains
from controllers.podcliqueset.observe import Observed

__all__ = ("infrastructure", "waits_for_token")

RBAC = "rbac.authorization.k8s.io"
TOKEN_FILLED = "kubernetes.io/service-account.uid"  # noqa: S105 - an annotation that the token controller sets together with the token


def infrastructure(o: Observed) -> tuple[Op, ...]:
    """Creates of what is missing, applies of what differs, deletes of what is not wanted any more."""
    ops: list[Op] = []
    if o.pcs.metadata.name not in o.service_accounts:
        ops.append(Create(ServiceAccount.KIND, _service_account(o)))
    if role_name(o.pcs.metadata.name) not in o.roles:
        ops.append(Create(Role.KIND, _role(o)))
    if role_name(o.pcs.metadata.name) not in o.role_bindings:
        ops.append(Create(RoleBinding.KIND, _role_binding(o)))
    if o.settings.token == "secret" and token_secret_name(o.pcs.metadata.name) not in o.secrets:  # noqa: S105
        ops.append(Create(Secret.KIND, _secret(o)))
    return (*ops, *_services(o), *_autoscalers(o))


def waits_for_token(o: Observed) -> bool:
    """True while the startup waiter's token is still to be minted. Sets without a startup order do not wait: their pods never use it."""
    if o.settings.token != "secret" or not has_startup_order(o.pcs):  # noqa: S105 - the name of a setting
        return False
    secret = o.secrets.get(token_secret_name(o.pcs.metadata.name))
    return secret is None or TOKEN_FILLED not in secret.metadata.annotations


def _labels(o: Observed, name: str, component: str) -> dict[str, str]:
    return {**labels.default_labels(o.pcs.metadata.name), labels.NAME: name.replace(":", "-"), labels.COMPONENT: component}


def _service_account(o: Observed) -> Manifest:
    name = o.pcs.metadata.name
    return {
        "apiVersion": "v1",
        "kind": "ServiceAccount",
        "metadata": metadata(name, o.pcs, _labels(o, name, "pod-service-account")),
        "automountServiceAccountToken": True,
    }


def _role(o: Observed) -> Manifest:
    name = role_name(o.pcs.metadata.name)
    rule = {"apiGroups": [""], "resources": ["pods", "pods/status"], "verbs": ["get", "list", "watch"]}
    return {
        "apiVersion": f"{RBAC}/v1",
        "kind": "Role",
        "metadata": metadata(name, o.pcs, _labels(o, name, "pod-role")),
        "rules": [rule],
    }


def _role_binding(o: Observed) -> Manifest:
    name = role_name(o.pcs.metadata.name)
    accounts = dict.fromkeys([o.pcs.metadata.name])
    if o.settings.token == "projected":  # noqa: S105 - a projected token is the pod's own: accounts that the user chose need the role too
        accounts |= dict.fromkeys(
            str(c.spec.pod_spec["serviceAccountName"]) for c in o.pcs.spec.template.cliques if c.spec.pod_spec.get("serviceAccountName")
        )
    namespace = o.pcs.metadata.namespace
    return {
        "apiVersion": f"{RBAC}/v1",
        "kind": "RoleBinding",
        "metadata": metadata(name, o.pcs, _labels(o, name, "pod-role-binding")),
        "roleRef": {"apiGroup": RBAC, "kind": "Role", "name": name},
        "subjects": [{"kind": "ServiceAccount", "name": account, "namespace": namespace} for account in accounts],
    }


def _secret(o: Observed) -> Manifest:
    name = token_secret_name(o.pcs.metadata.name)
    bound = {"kubernetes.io/service-account.name": o.pcs.metadata.name}
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": metadata(name, o.pcs, _labels(o, name, "pod-sa-token-secret"), bound),
        "type": "kubernetes.io/service-account-token",
    }


def _services(o: Observed) -> Iterator[Op]:
    """One headless service per replica. Those of replicas scaled in are deleted, which upstream forgets."""
    config = o.pcs.spec.template.headless_service_config
    publish = config.publish_not_ready_addresses if config is not None else True
    expected: set[str] = set()
    for i in range(bounded(o.pcs.spec.replicas)):
        name = service_name(o.pcs.metadata.name, i)
        expected.add(name)
        live = o.services.get(name)
        if live is None:
            yield Create(Service.KIND, _service(o, i, publish=publish))
        elif live.spec.publish_not_ready_addresses != publish and not live.metadata.deleting:
            yield Apply(Service.KIND, _service(o, i, publish=publish), uid=live.metadata.uid)
    yield from (Delete(Ref.of(s)) for n, s in o.services.items() if n not in expected and not s.metadata.deleting)


def _service(o: Observed, i: int, *, publish: bool) -> Manifest:
    name = service_name(o.pcs.metadata.name, i)
    replica = {labels.PCS_REPLICA_INDEX: str(i)}
    spec: Manifest = {"clusterIP": "None", "selector": {**labels.default_labels(o.pcs.metadata.name), **replica}}
    # false is the default and stays away from a new object; on an existing one it has to be said
    if publish or name in o.services:
        spec["publishNotReadyAddresses"] = publish
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": metadata(name, o.pcs, {**_labels(o, name, "pcs-headless-service"), **replica}),
        "spec": spec,
    }


def _autoscalers(o: Observed) -> Iterator[Op]:
    expected: set[str] = set()
    for kind, name, config in _scaled(o):
        expected.add(name)
        manifest = _autoscaler(o, kind, name, config)
        live = o.autoscalers.get(name)
        if live is None:
            yield Create(HorizontalPodAutoscaler.KIND, manifest)
        elif not live.metadata.deleting and not _matches(live, config):
            yield Apply(HorizontalPodAutoscaler.KIND, manifest, uid=live.metadata.uid)
    yield from (Delete(Ref.of(a)) for n, a in o.autoscalers.items() if n not in expected and not a.metadata.deleting)


def _scaled(o: Observed) -> Iterator[tuple[str, str, AutoScalingConfig]]:
    """(kind, name, configuration) of everything that is scaled by metrics."""
    pcs, cliques = o.pcs.metadata.name, standalone_cliques(o.pcs)
    for i in range(bounded(o.pcs.spec.replicas)):
        for clique in cliques:
            if clique.spec.auto_scaling_config is not None:
                yield "PodClique", clique_name(pcs, i, clique.name), clique.spec.auto_scaling_config
        for group in o.pcs.spec.template.pod_clique_scaling_groups or ():
            if group.scale_config is not None:
                yield "PodCliqueScalingGroup", scaling_group_name(pcs, i, group.name), group.scale_config


def _autoscaler(o: Observed, kind: str, name: str, config: AutoScalingConfig) -> Manifest:
    target = {"apiVersion": "grove.io/v1alpha1", "kind": kind, "name": name}
    spec: Manifest = {"scaleTargetRef": target, "minReplicas": config.min_replicas, "maxReplicas": config.max_replicas}
    if config.metrics:
        spec["metrics"] = list(config.metrics)
    return {
        "apiVersion": HorizontalPodAutoscaler.KIND.api_version,
        "kind": "HorizontalPodAutoscaler",
        "metadata": metadata(name, o.pcs, _labels(o, name, "pcs-hpa")),
        "spec": spec,
    }


def _matches(live: HorizontalPodAutoscaler, config: AutoScalingConfig) -> bool:
    bounds = (live.spec.min_replicas, live.spec.max_replicas) == (config.min_replicas, config.max_replicas)
    return bounds and (not config.metrics or contains(live.spec.metrics, list(config.metrics)))
