"""Which events concern a PodCliqueSet."""

from functools import partial
from typing import Any

from api.core import HorizontalPodAutoscaler, ResourceClaim, ResourceClaimTemplate, Role, RoleBinding, Secret, Service, ServiceAccount
from api.grove import ClusterTopologyBinding, PodClique, PodCliqueScalingGroup, PodCliqueSet
from api.indexes import BY_OWNER
from api.labels import MANAGED_SELECTOR
from api.objects.topology import topology_name
from api.operatorconfig import OperatorConfiguration
from api.plan import CacheView, Key
from api.podgang import PodGang
from controllers.podcliqueset.observe import Observed, observe
from controllers.podcliqueset.plan import failed, plan
from controllers.runtime.controller import ControllerSpec, Keys, Watch
from controllers.runtime.handlers import lifecycle, own_keys, owner_keys
from controllers.runtime.workqueue import ECHO, USER

__all__ = ("FIELD_MANAGER", "podcliqueset_controller")

FIELD_MANAGER = "grovekeeper/podcliqueset"
ECHO_DELAY_S = 0.5
"""A pass over a large set costs; what its children report may be summed up for this long."""
INFRASTRUCTURE: tuple[type[Any], ...] = (ServiceAccount, Role, RoleBinding, Service, HorizontalPodAutoscaler)


def podcliqueset_controller(view: CacheView, config: OperatorConfiguration) -> ControllerSpec[Observed]:
    """The controller, for the manager. `view` is what its handlers look up related objects in."""
    owned, echoed = partial(owner_keys, PodCliqueSet.KIND.kind, USER), partial(owner_keys, PodCliqueSet.KIND.kind, ECHO)
    watches: list[Watch[Any]] = [
        Watch(PodCliqueSet, partial(own_keys, USER)),
        Watch(PodClique, echoed, (BY_OWNER,)),
        Watch(PodCliqueScalingGroup, echoed, (BY_OWNER,)),
        Watch(PodGang, partial(lifecycle, echoed), (BY_OWNER,)),
        Watch(ResourceClaim, partial(lifecycle, owned), (BY_OWNER,), label_selector=MANAGED_SELECTOR),
        Watch(ClusterTopologyBinding, partial(_topology, view)),
        Watch(ResourceClaimTemplate, partial(_templates, view)),
    ]
    watches += [Watch(model, owned, (BY_OWNER,), label_selector=MANAGED_SELECTOR) for model in _infrastructure(config)]
    return ControllerSpec(
        name="podcliqueset",
        field_manager=FIELD_MANAGER,
        root=PodCliqueSet,
        watches=tuple(watches),
        observe=lambda cache, key, now: observe(cache, key, now, config),
        plan=plan,
        failed=failed,
        workers=config.controllers.pod_clique_set.concurrent_syncs,
        echo_delay_s=ECHO_DELAY_S,
    )


def _infrastructure(config: OperatorConfiguration) -> tuple[type[Any], ...]:
    """Secrets are read only where there are any of ours, so that no right on them is needed otherwise."""
    has_secrets = config.grovekeeper.token == "secret"  # noqa: S105 - the name of a setting
    return (*INFRASTRUCTURE, Secret) if has_secrets else INFRASTRUCTURE


def _topology(view: CacheView, old: ClusterTopologyBinding | None, new: ClusterTopologyBinding | None) -> Keys:
    name = next(o.metadata.name for o in (new, old) if o is not None)
    return [(Key.of(pcs), ECHO) for pcs in view.list(PodCliqueSet) if topology_name(pcs) == name]


def _templates(view: CacheView, old: ResourceClaimTemplate | None, new: ResourceClaimTemplate | None) -> Keys:
    return [(Key.of(pcs), ECHO) for pcs in view.list(PodCliqueSet) if pcs.spec.template.resource_sharing]
