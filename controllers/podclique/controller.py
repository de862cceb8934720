"""Which events concern a PodClique."""

from functools import partial

from api import labels
from api.core import Pod, ResourceClaim, ResourceClaimTemplate
from api.grove import PodClique, PodCliqueScalingGroup, PodCliqueSet
from api.indexes import BY_BASE_GANG, BY_CLIQUE, BY_OWNER, BY_PCS, BY_SCALING_GROUP, scoped
from api.plan import CacheView, Key
from api.podgang import PodGang
from api.settings import Settings
from controllers.podclique.observe import Observed, observe
from controllers.podclique.plan import failed, plan
from controllers.runtime.controller import ControllerSpec, Keys, Watch
from controllers.runtime.handlers import design_changed, intent_changed, lifecycle, own_keys, owner_keys
from controllers.runtime.workqueue import ECHO, USER

__all__ = ("FIELD_MANAGER", "podclique_controller")

FIELD_MANAGER = "grovekeeper/podclique"
KIND = PodClique.KIND.kind


def podclique_controller(view: CacheView, settings: Settings, workers: int) -> ControllerSpec[Observed]:
    """The controller, for the manager. `view` is what its handlers look up related objects in."""
    return ControllerSpec(
        name="podclique",
        field_manager=FIELD_MANAGER,
        root=PodClique,
        watches=(
            Watch(PodClique, partial(own_keys, USER), (BY_OWNER, BY_PCS, BY_BASE_GANG, BY_SCALING_GROUP)),
            Watch(Pod, partial(_pod, view), (BY_OWNER, BY_CLIQUE), label_selector=labels.MANAGED_SELECTOR),
            Watch(PodGang, partial(_gang, view)),
            Watch(PodCliqueSet, partial(_set, view)),
            Watch(PodCliqueScalingGroup, partial(_group, view)),
            Watch(
                ResourceClaim,
                partial(lifecycle, partial(owner_keys, KIND, USER)),
                (BY_OWNER,),
                label_selector=labels.MANAGED_SELECTOR,
            ),
            Watch(ResourceClaimTemplate, partial(_templates, view)),
        ),
        observe=lambda cache, key, now: observe(cache, key, now, settings),
        plan=plan,
        failed=failed,
        workers=workers,
        echo_delay_s=0.2,
    )


def _pod(view: CacheView, old: Pod | None, new: Pod | None) -> Keys:
    """The pod's clique; and, when a pod of an Anchor gang gets or loses its node, the cliques of the Tail gangs that wait for it."""
    yield from owner_keys(KIND, USER if intent_changed(old, new) else ECHO, old, new)
    pod = new or old
    if pod is None or labels.BASE_PODGANG in pod.metadata.labels:
        return
    if (old.spec.node_name if old else "") != (new.spec.node_name if new else ""):
        gang = scoped(pod.metadata.namespace, pod.metadata.labels.get(labels.PODGANG, ""))
        yield from ((Key.of(c), ECHO) for c in view.by_index(PodClique, BY_BASE_GANG, gang))


def _gang(view: CacheView, old: PodGang | None, new: PodGang | None) -> Keys:
    """References decide about gates: cliques of the gang, and of Tail gangs when their Anchor gang appears or changes."""
    if new is None or not intent_changed(old, new):
        return
    namespace = new.metadata.namespace
    yield from ((Key(namespace, group.name), USER) for group in new.spec.podgroups)
    yield from ((Key.of(c), USER) for c in view.by_index(PodClique, BY_BASE_GANG, scoped(namespace, new.metadata.name)))


def _set(view: CacheView, old: PodCliqueSet | None, new: PodCliqueSet | None) -> Keys:
    if new is None or not design_changed(old, new):
        return []
    cliques = view.by_index(PodClique, BY_PCS, scoped(new.metadata.namespace, new.metadata.name))
    return [(Key.of(c), ECHO) for c in cliques]


def _group(view: CacheView, old: PodCliqueScalingGroup | None, new: PodCliqueScalingGroup | None) -> Keys:
    """A member needs its group's place in the template; both may arrive in either order."""
    if old is not None or new is None:
        return []
    members = view.by_index(PodClique, BY_SCALING_GROUP, scoped(new.metadata.namespace, new.metadata.name))
    return [(Key.of(c), ECHO) for c in members]


def _templates(view: CacheView, old: ResourceClaimTemplate | None, new: ResourceClaimTemplate | None) -> Keys:
    """Claims may wait for the template: cliques of the sets whose templates share claims."""
    for pcs in view.list(PodCliqueSet):
        if any(t.resource_sharing for t in pcs.spec.template.cliques):
            yield from _set(view, None, pcs)
