"""Everything that decides about one PodCliqueSet, read from the caches in one cut."""

from dataclasses import dataclass
from datetime import datetime

from api.core import HorizontalPodAutoscaler, ResourceClaim, ResourceClaimTemplate, Role, RoleBinding, Secret, Service, ServiceAccount
from api.defaulting import default_podcliqueset
from api.grove import ClusterTopologyBinding, PodClique, PodCliqueScalingGroup, PodCliqueSet
from api.indexes import BY_OWNER
from api.objects.topology import level_keys, topology_name
from api.operatorconfig import OperatorConfiguration
from api.plan import CacheView, Key
from api.podgang import PodGang
from api.settings import Settings, settings_of
from api.validation import Validation, validate_create, validate_update

__all__ = ("Observed", "observe")


@dataclass(frozen=True, slots=True)
class Observed:
    """pcs: with defaults filled in. Children are those owned by this life of the set, by name, terminating ones too.

    secrets: those of the startup waiter, none where it has projected tokens: they are not watched then.
    binding: the ClusterTopologyBinding that the set names, None when it names none or it is missing.
    """

    pcs: PodCliqueSet
    validation: Validation
    service_accounts: dict[str, ServiceAccount]
    roles: dict[str, Role]
    role_bindings: dict[str, RoleBinding]
    secrets: dict[str, Secret]
    services: dict[str, Service]
    autoscalers: dict[str, HorizontalPodAutoscaler]
    cliques: dict[str, PodClique]
    groups: dict[str, PodCliqueScalingGroup]
    gangs: dict[str, PodGang]
    claims: dict[str, ResourceClaim]
    claim_templates: tuple[ResourceClaimTemplate, ...]
    binding: ClusterTopologyBinding | None
    settings: Settings
    now: datetime

    @property
    def level_keys(self) -> dict[str, str] | None:
        """Domain → node label key, None when no topology is in effect."""
        return level_keys(self.binding) if self.binding is not None and self.settings.topology_enabled else None


def observe(view: CacheView, key: Key, now: datetime, config: OperatorConfiguration) -> Observed | None:
    """None when the set does not exist."""
    stored = view.get(PodCliqueSet, *key)
    if stored is None:
        return None
    pcs = default_podcliqueset(stored)
    uid = pcs.metadata.uid
    name = topology_name(pcs)
    return Observed(
        pcs=pcs,
        validation=_validate(view, pcs, config),
        service_accounts={o.metadata.name: o for o in view.by_index(ServiceAccount, BY_OWNER, uid)},
        roles={o.metadata.name: o for o in view.by_index(Role, BY_OWNER, uid)},
        role_bindings={o.metadata.name: o for o in view.by_index(RoleBinding, BY_OWNER, uid)},
        secrets=_secrets(view, uid, config),
        services={o.metadata.name: o for o in view.by_index(Service, BY_OWNER, uid)},
        autoscalers={o.metadata.name: o for o in view.by_index(HorizontalPodAutoscaler, BY_OWNER, uid)},
        cliques={o.metadata.name: o for o in view.by_index(PodClique, BY_OWNER, uid)},
        groups={o.metadata.name: o for o in view.by_index(PodCliqueScalingGroup, BY_OWNER, uid)},
        gangs={o.metadata.name: o for o in view.by_index(PodGang, BY_OWNER, uid)},
        claims={o.metadata.name: o for o in view.by_index(ResourceClaim, BY_OWNER, uid)},
        claim_templates=tuple(view.list(ResourceClaimTemplate)) if pcs.spec.template.resource_sharing else (),
        binding=view.get(ClusterTopologyBinding, "", name) if name else None,
        settings=settings_of(config),
        now=now,
    )


def _secrets(view: CacheView, uid: str, config: OperatorConfiguration) -> dict[str, Secret]:
    if config.grovekeeper.token != "secret":  # noqa: S105 - the name of a setting
        return {}
    return {o.metadata.name: o for o in view.by_index(Secret, BY_OWNER, uid)}


def _validate(view: CacheView, pcs: PodCliqueSet, config: OperatorConfiguration) -> Validation:
    """Rules that hold only at creation (topology bindings among them) are not asked again of a set that has been accepted before:
    a binding that is deleted later must not stop it."""
    topologies = {t.metadata.name: t for t in view.list(ClusterTopologyBinding)}
    if pcs.status is not None and pcs.status.current_generation_hash:
        return validate_update(pcs, pcs, config, topologies)
    return validate_create(pcs, config, topologies)
