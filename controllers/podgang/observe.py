"""Everything that decides about one PodGang, read from the caches in one cut."""

from dataclasses import dataclass
from datetime import datetime

from api.core import Pod
from api.defaulting import default_podcliqueset
from api.grove import ClusterTopologyBinding, PodClique, PodCliqueSet
from api.indexes import BY_CLIQUE, scoped
from api.objects.podgang import GangShape, gang_shape
from api.objects.topology import level_keys, topology_name
from api.plan import CacheView, Key
from api.podgang import PodGang
from api.settings import Settings

__all__ = ("GroupState", "Observed", "observe")


@dataclass(frozen=True, slots=True)
class GroupState:
    """One pod group: its PodClique (None while missing) and the clique's pods that are not terminating, sorted by name."""

    name: str
    clique: PodClique | None
    pods: tuple[Pod, ...]


@dataclass(frozen=True, slots=True)
class Observed:
    """level_keys: domain → node label key; None when topology-aware scheduling is off, or the named binding is missing."""

    gang: PodGang
    pcs: PodCliqueSet | None
    shape: GangShape | None
    groups: tuple[GroupState, ...]
    level_keys: dict[str, str] | None
    settings: Settings
    now: datetime


def observe(view: CacheView, key: Key, now: datetime, settings: Settings) -> Observed | None:
    """None when the gang does not exist. Whose it is, the owner reference says: labels may have been edited, and are then repaired."""
    gang = view.get(PodGang, *key)
    if gang is None:
        return None
    owner = gang.metadata.controller
    stored = view.get(PodCliqueSet, key.namespace, owner.name) if owner is not None and owner.kind == PodCliqueSet.KIND.kind else None
    if stored is None or owner is None or owner.uid != stored.metadata.uid:
        return Observed(gang, None, None, (), None, settings, now)
    pcs = default_podcliqueset(stored)
    shape = gang_shape(pcs, key.name)
    names = [name for name, _ in shape.cliques(pcs)] if shape is not None else []
    groups = tuple(_group(view, key.namespace, name) for name in names)
    return Observed(gang, pcs, shape, groups, _level_keys(view, pcs, settings), settings, now)


def _group(view: CacheView, namespace: str, name: str) -> GroupState:
    clique = view.get(PodClique, namespace, name)
    pods = view.by_index(Pod, BY_CLIQUE, scoped(namespace, name)) if clique is not None else ()
    uid = clique.metadata.uid if clique is not None else ""
    owned = (p for p in pods if not p.metadata.deleting and p.metadata.controller and p.metadata.controller.uid == uid)
    return GroupState(name, clique, tuple(sorted(owned, key=lambda p: p.metadata.name)))


def _level_keys(view: CacheView, pcs: PodCliqueSet, settings: Settings) -> dict[str, str] | None:
    name = topology_name(pcs)
    binding = view.get(ClusterTopologyBinding, "", name) if settings.topology_enabled and name else None
    return level_keys(binding) if binding is not None else None
