"""Which events concern a PodGang."""

from functools import partial

from api import labels
from api.core import Pod
from api.grove import ClusterTopologyBinding, PodClique, PodCliqueSet
from api.indexes import BY_CLIQUE, BY_PCS, scoped
from api.objects.topology import topology_name
from api.plan import CacheView, Key, Object
from api.podgang import PodGang
from api.settings import Settings
from controllers.podgang.observe import Observed, observe
from controllers.podgang.plan import plan
from controllers.runtime.controller import ControllerSpec, Keys, Watch
from controllers.runtime.handlers import design_changed, intent_changed, own_keys
from controllers.runtime.workqueue import ECHO, USER

__all__ = ("FIELD_MANAGER", "podgang_controller")

FIELD_MANAGER = "grovekeeper/podgang"


def podgang_controller(view: CacheView, settings: Settings, workers: int) -> ControllerSpec[Observed]:
    """The controller, for the manager. `view` is what its handlers look up related objects in."""
    return ControllerSpec(
        name="podgang",
        field_manager=FIELD_MANAGER,
        root=PodGang,
        watches=(
            Watch(PodGang, partial(own_keys, USER), (BY_PCS,)),
            Watch(Pod, _pod, (BY_CLIQUE,), label_selector=labels.MANAGED_SELECTOR),
            Watch(PodClique, _clique),
            Watch(PodCliqueSet, partial(_set, view)),
            Watch(ClusterTopologyBinding, partial(_topology, view)),
        ),
        observe=lambda cache, key, now: observe(cache, key, now, settings),
        plan=plan,
        workers=workers,
        echo_delay_s=0.2,
    )


def _labelled(priority: int, old: Object | None, new: Object | None) -> Keys:
    """The gangs that the object is or was labelled with."""
    found = {(o.metadata.namespace, o.metadata.labels[labels.PODGANG]) for o in (old, new) if o and labels.PODGANG in o.metadata.labels}
    return [(Key(*gang), priority) for gang in sorted(found)]


def _pod(old: Pod | None, new: Pod | None) -> Keys:
    """Which pods there are is urgent, since references open gates; how they fare is not."""
    return _labelled(USER if intent_changed(old, new) else ECHO, old, new)


def _clique(old: PodClique | None, new: PodClique | None) -> Keys:
    """Replicas decide whether a gang is complete; a clique's status says nothing that its pods do not."""
    return _labelled(USER, old, new) if intent_changed(old, new) else []


def _set(view: CacheView, old: PodCliqueSet | None, new: PodCliqueSet | None) -> Keys:
    if new is None or not design_changed(old, new):
        return []
    return _gangs(view, new)


def _gangs(view: CacheView, pcs: PodCliqueSet) -> Keys:
    return [(Key.of(g), ECHO) for g in view.by_index(PodGang, BY_PCS, scoped(pcs.metadata.namespace, pcs.metadata.name))]


def _topology(view: CacheView, old: ClusterTopologyBinding | None, new: ClusterTopologyBinding | None) -> Keys:
    name = next(o.metadata.name for o in (new, old) if o is not None)
    for pcs in view.list(PodCliqueSet):
        if topology_name(pcs) == name:
            yield from _gangs(view, pcs)
