"""Which events concern a PodCliqueScalingGroup."""

from functools import partial

from api.core import ResourceClaim, ResourceClaimTemplate
from api.grove import PodClique, PodCliqueScalingGroup, PodCliqueSet
from api.indexes import BY_OWNER, BY_PCS, scoped
from api.labels import MANAGED_SELECTOR
from api.plan import CacheView, Key
from controllers.podcliquescalinggroup.observe import Observed, observe
from controllers.podcliquescalinggroup.plan import failed, plan
from controllers.runtime.controller import ControllerSpec, Keys, Watch
from controllers.runtime.handlers import design_changed, lifecycle, own_keys, owner_keys
from controllers.runtime.workqueue import ECHO, USER

__all__ = ("FIELD_MANAGER", "podcliquescalinggroup_controller")

FIELD_MANAGER = "grovekeeper/podcliquescalinggroup"
KIND = PodCliqueScalingGroup.KIND.kind


def podcliquescalinggroup_controller(view: CacheView, workers: int) -> ControllerSpec[Observed]:
    """The controller, for the manager. `view` is what its handlers look up related objects in."""
    return ControllerSpec(
        name="podcliquescalinggroup",
        field_manager=FIELD_MANAGER,
        root=PodCliqueScalingGroup,
        watches=(
            Watch(PodCliqueScalingGroup, partial(own_keys, USER), (BY_PCS,)),
            Watch(PodClique, partial(owner_keys, KIND, ECHO), (BY_OWNER,)),
            Watch(PodCliqueSet, partial(_set, view)),
            Watch(
                ResourceClaim,
                partial(lifecycle, partial(owner_keys, KIND, USER)),
                (BY_OWNER,),
                label_selector=MANAGED_SELECTOR,
            ),
            Watch(ResourceClaimTemplate, partial(_templates, view)),
        ),
        observe=observe,
        plan=plan,
        failed=failed,
        workers=workers,
        echo_delay_s=0.1,
    )


def _set(view: CacheView, old: PodCliqueSet | None, new: PodCliqueSet | None) -> Keys:
    if new is None or not design_changed(old, new):
        return []
    groups = view.by_index(PodCliqueScalingGroup, BY_PCS, scoped(new.metadata.namespace, new.metadata.name))
    return [(Key.of(g), ECHO) for g in groups]


def _templates(view: CacheView, old: ResourceClaimTemplate | None, new: ResourceClaimTemplate | None) -> Keys:
    """Claims may wait for the template: groups of the sets whose groups share claims."""
    for pcs in view.list(PodCliqueSet):
        if any(g.resource_sharing for g in pcs.spec.template.pod_clique_scaling_groups or ()):
            yield from _set(view, None, pcs)
