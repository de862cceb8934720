"""Everything that decides about one PodCliqueScalingGroup, read from the caches in one cut."""

from dataclasses import dataclass
from datetime import datetime

from api import labels
from api.core import ResourceClaim, ResourceClaimTemplate
from api.defaulting import default_podcliqueset
from api.grove import PodClique, PodCliqueScalingGroup, PodCliqueScalingGroupConfig, PodCliqueSet
from api.indexes import BY_OWNER
from api.objects.template import group_config
from api.plan import CacheView, Key

__all__ = ("Observed", "observe")


@dataclass(frozen=True, slots=True)
class Observed:
    """cliques: owned PodCliques, terminating ones too, sorted by name."""

    group: PodCliqueScalingGroup
    pcs: PodCliqueSet | None
    pcs_replica: int
    config: PodCliqueScalingGroupConfig | None
    cliques: tuple[PodClique, ...]
    claims: tuple[ResourceClaim, ...]
    claim_templates: tuple[ResourceClaimTemplate, ...]
    now: datetime


def observe(view: CacheView, key: Key, now: datetime) -> Observed | None:
    """None when the group does not exist or is not ours."""
    group = view.get(PodCliqueScalingGroup, *key)
    if group is None or group.metadata.labels.get(labels.MANAGED_BY) != labels.MANAGED_BY_VALUE:
        return None
    found = group.metadata.labels
    stored = view.get(PodCliqueSet, key.namespace, found.get(labels.PART_OF, ""))
    pcs = default_podcliqueset(stored) if stored is not None else None
    replica = labels.index_of(found, labels.PCS_REPLICA_INDEX) or 0
    config = None
    if pcs is not None:
        config = group_config(pcs, key.name.removeprefix(f"{pcs.metadata.name}-{replica}-"))
    sharing = config is not None and bool(config.resource_sharing)
    return Observed(
        group=group,
        pcs=pcs,
        pcs_replica=replica,
        config=config,
        cliques=tuple(sorted(view.by_index(PodClique, BY_OWNER, group.metadata.uid), key=lambda c: c.metadata.name)),
        claims=view.by_index(ResourceClaim, BY_OWNER, group.metadata.uid) if sharing else (),
        claim_templates=tuple(view.list(ResourceClaimTemplate)) if sharing else (),
        now=now,
    )
