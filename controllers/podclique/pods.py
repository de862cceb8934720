"""Pods of a PodClique: which index is free, how the pod looks, which one goes first (grove.md §1.11–1.13, §2.4)."""

from collections.abc import Iterable, Sequence
from itertools import count, islice

from api import labels
from api.core import Pod
from api.grove import PodCliqueSet
from api.names import (
    hostname,
    pcs_replica_of,
    pod_name,
    service_name,
    template_name_of_member,
    template_name_of_standalone,
    token_secret_name,
)
from api.objects.claims import pod_claims, with_claims
from api.objects.env import clique_environment, with_environment
from api.objects.metadata import metadata
from api.objects.scheduler import prepare_pod, scheduler_of
from api.objects.template import clique_template
from api.plan import Create, Manifest
from controllers.podclique.observe import Observed

__all__ = ("create_pods", "free_indices", "surplus")

INIT_CONTAINER = "grove-initc"
TOKEN_PATH = "/var/run/secrets/kubernetes.io/serviceaccount"  # noqa: S105 - a mount path, not a secret
FALLBACK_NAMES = 3
PHASE_ORDER = {"Pending": 0, "Unknown": 1, "Running": 2}


def free_indices(live: Iterable[Pod], wanted: int) -> tuple[int, ...]:
    """The lowest `wanted` pod indices that no live pod uses."""
    used = {labels.index_of(p.metadata.labels, labels.POD_INDEX) for p in live}
    return tuple(islice((i for i in count() if i not in used), max(0, wanted)))


def surplus(live: Sequence[Pod], excess: int, expected_hash: str) -> tuple[Pod, ...]:
    """Victims of a scale-in, first to go first; a total order, so equal pods are never chosen by chance."""

    def rank(pod: Pod) -> tuple[int | bool | float | str, ...]:
        created = pod.metadata.creation_timestamp
        return (
            bool(pod.spec.node_name),
            PHASE_ORDER.get(pod.status.phase, 1),
            pod.has("Ready"),
            pod.metadata.labels.get(labels.POD_TEMPLATE_HASH) == expected_hash,
            -created.timestamp() if created else float("-inf"),
            -(labels.index_of(pod.metadata.labels, labels.POD_INDEX) or 0),
            pod.metadata.uid,
        )

    return tuple(sorted(live, key=rank)[: max(0, excess)])


def create_pods(o: Observed, pcs: PodCliqueSet, indices: Iterable[int]) -> list[Create]:
    """The creates of the pods with these indices."""
    taken = frozenset(p.metadata.name for p in o.pods)
    return [_create_pod(o, pcs, index, taken) for index in indices]


def _create_pod(o: Observed, pcs: PodCliqueSet, index: int, taken: frozenset[str]) -> Create:
    """Under the first name that the cache does not know."""
    names = (pod_name(o.clique.metadata.name, o.clique.metadata.uid, index, attempt) for attempt in count())
    free = list(islice((n for n in names if n not in taken), 1 + FALLBACK_NAMES))
    return Create(Pod.KIND, _pod(o, pcs, index, free[0]), match_labels=(labels.POD_INDEX,), fallback_names=tuple(free[1:]))


def _pod(o: Observed, pcs: PodCliqueSet, index: int, name: str) -> Manifest:
    clique, namespace = o.clique.metadata.name, o.clique.metadata.namespace
    gang = o.clique.metadata.labels.get(labels.PODGANG, "")
    found = {
        **labels.default_labels(pcs.metadata.name),
        **o.clique.metadata.labels,
        labels.PODCLIQUE: clique,
        labels.POD_INDEX: str(index),
    }
    spec = with_environment(o.clique.spec.pod_spec, clique_environment(pcs.metadata.name, o.pcs_replica, clique, namespace))
    spec["hostname"] = hostname(clique, index)
    spec["subdomain"] = service_name(pcs.metadata.name, o.pcs_replica)
    # Gates of the user stay: other controllers may wait for theirs, and ours is removed on its own.
    users = [g for g in spec.get("schedulingGates") or () if g.get("name") != labels.GATE]
    spec["schedulingGates"] = [{"name": labels.GATE}, *users]
    if o.template is not None:
        with_claims(spec, pod_claims(pcs, o.pcs_replica, o.template, o.member, clique, index))
    if o.clique.spec.starts_after:
        _add_waiter(o, pcs, spec)
    pod: Manifest = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": metadata(name, o.clique, found, o.clique.metadata.annotations),
        "spec": spec,
    }
    prepare_pod(pod, scheduler_of(pcs, o.settings.default_scheduler), gang, clique)
    return pod


def _add_waiter(o: Observed, pcs: PodCliqueSet, spec: Manifest) -> None:
    """Appends the init container that waits for the parents, after the user's own, and its volumes (grove.md §3)."""
    args = [f"--podcliques={parent}:{_minimum(o, pcs, parent)}" for parent in o.clique.spec.starts_after or ()]
    mounts = [
        {"name": "pod-info-vol", "mountPath": "/var/grove/pod-info", "readOnly": True},
        {"name": "sa-token-secret-vol", "mountPath": TOKEN_PATH, "readOnly": True},
    ]
    waiter = {"name": INIT_CONTAINER, "image": o.settings.init_container_image, "args": args, "volumeMounts": mounts}
    spec["initContainers"] = [*(spec.get("initContainers") or ()), waiter]
    fields = [
        {"path": "namespace", "fieldRef": {"fieldPath": "metadata.namespace"}},
        {"path": "podgangname", "fieldRef": {"fieldPath": f"metadata.labels['{labels.PODGANG}']"}},
    ]
    info = {"name": "pod-info-vol", "downwardAPI": {"items": fields}}
    spec["volumes"] = [*(spec.get("volumes") or ()), _token_volume(o, pcs), info]
    if o.settings.token == "projected":  # noqa: S105 - the name of a setting
        spec.setdefault("serviceAccountName", pcs.metadata.name)


def _token_volume(o: Observed, pcs: PodCliqueSet) -> Manifest:
    if o.settings.token == "secret":  # noqa: S105 - the name of a setting
        secret = {"secretName": token_secret_name(pcs.metadata.name), "defaultMode": 0o644}
        return {"name": "sa-token-secret-vol", "secret": secret}
    ca = {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}
    sources = [{"serviceAccountToken": {"path": "token", "expirationSeconds": 3600}}, {"configMap": ca}]
    return {"name": "sa-token-secret-vol", "projected": {"sources": sources, "defaultMode": 0o644}}


def _minimum(o: Observed, pcs: PodCliqueSet, parent: str) -> int:
    """minAvailable of a parent, found by stripping known prefixes: a name suffix could match the wrong template."""
    name = template_name_of_standalone(pcs.metadata.name, o.pcs_replica, parent) or ""
    for config in pcs.spec.template.pod_clique_scaling_groups or ():
        prefix = f"{pcs.metadata.name}-{o.pcs_replica}-{config.name}"
        j = pcs_replica_of(prefix, parent)
        member = template_name_of_member(prefix, j, parent) if j is not None else None
        if member in config.clique_names:
            name = member or name
    template = clique_template(pcs, name)
    return (template.spec.min_available or 1) if template is not None else 1
