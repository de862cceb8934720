"""Everything that decides about one PodClique, read from the caches in one cut."""

from dataclasses import dataclass
from datetime import datetime

from api import labels
from api.core import Pod, ResourceClaim, ResourceClaimTemplate
from api.defaulting import default_podcliqueset
from api.grove import PodClique, PodCliqueScalingGroup, PodCliqueSet, PodCliqueTemplate
from api.indexes import BY_CLIQUE, BY_OWNER, scoped
from api.names import template_name_of_member, template_name_of_standalone
from api.objects.template import Membership, clique_template, group_of_clique
from api.plan import CacheView, Key
from api.podgang import PodGang
from api.settings import Settings

__all__ = ("GroupProgress", "Observed", "observe")


@dataclass(frozen=True, slots=True)
class GroupProgress:
    """One pod group of the Anchor gang: how many of its pods have a node, and how many must."""

    clique: str
    scheduled: int
    minimum: int


@dataclass(frozen=True, slots=True)
class Observed:
    """pods: owned pods, terminating ones too, sorted by (index, creation, uid). base: progress of the Anchor gang that this clique's Tail
    gang waits for; None when it waits for none or the Anchor gang does not exist (`base_name` tells which)."""

    clique: PodClique
    pcs: PodCliqueSet | None
    pcs_replica: int
    template: PodCliqueTemplate | None
    member: Membership | None
    gang: PodGang | None
    base_name: str
    base: tuple[GroupProgress, ...] | None
    pods: tuple[Pod, ...]
    claims: tuple[ResourceClaim, ...]
    claim_templates: tuple[ResourceClaimTemplate, ...]
    settings: Settings
    now: datetime


def observe(view: CacheView, key: Key, now: datetime, settings: Settings) -> Observed | None:
    """None when the clique does not exist or is not ours."""
    clique = view.get(PodClique, *key)
    if clique is None or clique.metadata.labels.get(labels.MANAGED_BY) != labels.MANAGED_BY_VALUE:
        return None
    found = clique.metadata.labels
    stored = view.get(PodCliqueSet, key.namespace, found.get(labels.PART_OF, ""))
    pcs = default_podcliqueset(stored) if stored is not None else None
    replica = labels.index_of(found, labels.PCS_REPLICA_INDEX) or 0
    template, member = _template(view, pcs, clique, replica) if pcs is not None else (None, None)
    base = found.get(labels.BASE_PODGANG, "")
    sharing = template is not None and bool(template.resource_sharing)
    return Observed(
        clique=clique,
        pcs=pcs,
        pcs_replica=replica,
        template=template,
        member=member,
        gang=view.get(PodGang, key.namespace, found.get(labels.PODGANG, "")),
        base_name=base,
        base=_progress(view, key.namespace, base) if base else None,
        pods=tuple(sorted(view.by_index(Pod, BY_OWNER, clique.metadata.uid), key=_pod_order)),
        claims=view.by_index(ResourceClaim, BY_OWNER, clique.metadata.uid) if sharing else (),
        claim_templates=tuple(view.list(ResourceClaimTemplate)) if sharing else (),
        settings=settings,
        now=now,
    )


def _pod_order(pod: Pod) -> tuple[int, str, str]:
    index = labels.index_of(pod.metadata.labels, labels.POD_INDEX)
    return (-1 if index is None else index, str(pod.metadata.creation_timestamp), pod.metadata.uid)


def _template(view: CacheView, pcs: PodCliqueSet, clique: PodClique, replica: int) -> tuple[PodCliqueTemplate | None, Membership | None]:
    """The clique's template and, for a member, its place in the scaling group."""
    found = clique.metadata.labels
    group = found.get(labels.PCSG)
    if group is None:
        name = template_name_of_standalone(pcs.metadata.name, replica, clique.metadata.name)
        return (clique_template(pcs, name) if name else None), None
    j = labels.index_of(found, labels.PCSG_REPLICA_INDEX) or 0
    name = template_name_of_member(group, j, clique.metadata.name)
    config = group_of_clique(pcs, name) if name else None
    if name is None or config is None or view.get(PodCliqueScalingGroup, clique.metadata.namespace, group) is None:
        return None, None
    return clique_template(pcs, name), Membership(config, group, j)


def _holds_node(pod: Pod) -> bool:
    """Pods on their way out and finished ones do not count: an Anchor gang that is going must not open the gates of others."""
    return bool(pod.spec.node_name) and not pod.metadata.deleting and not pod.finished


def _progress(view: CacheView, namespace: str, gang: str) -> tuple[GroupProgress, ...] | None:
    base = view.get(PodGang, namespace, gang)
    if base is None:
        return None
    return tuple(
        GroupProgress(
            clique=group.name,
            scheduled=sum(_holds_node(p) for p in view.by_index(Pod, BY_CLIQUE, scoped(namespace, group.name))),
            minimum=group.min_replicas,
        )
        for group in base.spec.podgroups
    )
