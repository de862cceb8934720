"""The gangs of a round, read from the caches in one cut."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from operator import is_

import msgspec

from api.core import Node, Pod, PriorityClass
from api.grove import ClusterTopologyBinding
from api.indexes import BY_GANG, scoped
from api.labels import ANNOTATION_TOPOLOGY_NAME, BASE_PODGANG, PODGANG
from api.plan import CacheView, Key, Why
from api.podgang import PodGang
from api.reasons import Reason
from scheduler.gangs import GangContext, level_keys

__all__ = ("Entry", "gang_keys", "gang_levels", "has_news", "is_mute", "observe", "observe_context")


@dataclass(frozen=True, slots=True, eq=False)
class Entry:
    """A gang and its pods. pods: all that carry its label, terminating ones too, sorted by name. live: those that are neither finished nor
    being deleted. names: scheduler names that are served. cached: the pods as the cache gave them. bases: names of Anchor gangs that it
    waits for. is_served: one of its pods names a scheduler of `names`.
    """

    podgang: PodGang
    pods: tuple[Pod, ...]
    live: tuple[Pod, ...]
    names: Collection[str]
    cached: tuple[Pod, ...]
    bases: tuple[str, ...]
    is_served: bool

    @classmethod
    def of(cls, podgang: PodGang, cached: tuple[Pod, ...], names: Collection[str]) -> "Entry":
        pods = tuple(sorted(cached, key=lambda p: p.metadata.name))
        live = tuple(p for p in pods if not p.metadata.deleting and not p.finished)
        bases = {p.metadata.labels[BASE_PODGANG] for p in pods if BASE_PODGANG in p.metadata.labels}
        return cls(podgang, pods, live, names, cached, tuple(sorted(bases)), any(p.spec.scheduler_name in names for p in pods))

    def is_of(self, podgang: PodGang, cached: tuple[Pod, ...]) -> bool:
        """Whether it was made of these very objects, which never change."""
        return self.podgang is podgang and len(cached) == len(self.cached) and all(map(is_, cached, self.cached))

    @property
    def settled(self) -> bool:
        """Every live pod has a node, so there is nothing to place."""
        return all(p.spec.node_name for p in self.live)

    @property
    def strangers(self) -> tuple[Pod, ...]:
        """Live pods without node that name another scheduler."""
        return tuple(p for p in self.live if not p.spec.node_name and p.spec.scheduler_name not in self.names)

    @property
    def foreign(self) -> Why | None:
        """Why the gang is refused: whoever else places some of its pods knows nothing of the rest."""
        if not (strangers := self.strangers):
            return None
        named = [f"{p.metadata.name} ({p.spec.scheduler_name})" for p in strangers]
        listed = ", ".join(named[:5]) + (f" and {len(named) - 5} more" if len(named) > 5 else "")
        text = f"Pods of the gang name another scheduler: {listed}. Give all pods of the gang the same schedulerName."
        return Why(Reason.CONFLICT, text, {"pods": len(named)})


def has_news(old: Pod | None, new: Pod | None, assumed: Mapping[str, str]) -> bool:
    """Whether a change of a pod can change the plan of its gang. `assumed`: as in observe_context; a pod that shows up there is no news."""
    if old is None or new is None or old.metadata.uid != new.metadata.uid:
        return True
    a, b = old.metadata, new.metadata
    if (a.labels, a.deleting, old.status.phase) != (b.labels, b.deleting, new.status.phase):
        return True
    if old.spec == new.spec:
        return False
    only_node = msgspec.structs.replace(old.spec, node_name=new.spec.node_name) == new.spec
    return not (only_node and assumed.get(b.uid) == new.spec.node_name)


def is_mute(pod: Pod) -> bool:
    """Whether a pod waits for a node and does not say so."""
    said = pod.condition("PodScheduled")
    return not pod.spec.node_name and (said is None or (said.status, said.reason) != ("False", "Unschedulable"))


def gang_keys(old: Pod | None, new: Pod | None) -> Iterable[Key]:
    """The gangs that a pod is or was labelled with."""
    found = {Key(p.metadata.namespace, p.metadata.labels[PODGANG]) for p in (old, new) if p and PODGANG in p.metadata.labels}
    return sorted(found)


def observe(view: CacheView, keys: Iterable[Key], names: Collection[str], known: dict[Key, Entry] | None = None) -> dict[Key, Entry]:
    """The gangs with these keys and the Anchor gangs that they wait for, as far as they exist, are not being deleted and are served.

    A gang is served when one of its pods names a scheduler of `names`. `known`: entries of earlier calls, which are used again while their
    objects are the same, and brought up to date.
    """
    found: dict[Key, Entry] = {}
    known = {} if known is None else known
    waiting = list(keys)
    while waiting:
        key = waiting.pop()
        podgang = view.get(PodGang, *key)
        if podgang is None or podgang.metadata.deleting:
            known.pop(key, None)
            continue
        if key in found:
            continue
        cached = tuple(view.by_index(Pod, BY_GANG, scoped(*key)))
        entry = known.get(key)
        if entry is None or not entry.is_of(podgang, cached):
            entry = known[key] = Entry.of(podgang, cached, names)
        if entry.is_served:
            found[key] = entry
            waiting += [Key(key.namespace, base) for base in entry.bases]
    return found


def observe_context(view: CacheView, assumed: Mapping[str, str]) -> GangContext:
    """Topologies, priorities and node labels. `assumed`: node by uid of pods that were given a node and do not show it yet."""
    nodes = tuple(view.list(Node))
    return GangContext(
        topologies={t.metadata.name: level_keys(t) for t in view.list(ClusterTopologyBinding)},
        has_label_key=lambda key: any(key in n.metadata.labels for n in nodes),
        priorities={c.metadata.name: c.value for c in view.list(PriorityClass)},
        assumed=assumed,
    )


def gang_levels(view: CacheView, podgang: PodGang) -> tuple[str, ...]:
    """Node label keys by which the gang's place is described, broad to narrow; () when it names no topology."""
    binding = view.get(ClusterTopologyBinding, "", podgang.metadata.annotations.get(ANNOTATION_TOPOLOGY_NAME, ""))
    return level_keys(binding) if binding is not None else ()
