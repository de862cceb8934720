"""Which pods count for which startup order, kept from changes: the same rule as grovekeeper initc, for all waiting pods at once."""

from collections.abc import Sequence

from api import labels
from controllers.initc.wait import ArgumentError, Parent, counted_clique, parse_parents
from sim.apiserver.objects import Object, mapping, maps
from sim.apiserver.resources import ObjectKey
from sim.kubelet.lifecycle import WAITER

__all__ = ("Gang", "Readiness", "gang_of", "parents_of")

Gang = tuple[str, str]
"""Namespace and name of a PodGang."""


def gang_of(pod: Object) -> Gang:
    """The gang that a pod says it is of."""
    metadata = pod["metadata"]
    return metadata.get("namespace", ""), mapping(metadata, "labels").get(labels.PODGANG, "")


def parents_of(pod: Object) -> Sequence[Parent] | None:
    """What the waiter of a pod waits for; None: its arguments are wrong, so that it never ends well."""
    arguments = [
        argument
        for container in maps(pod, "spec", "initContainers")
        if container["name"] == WAITER
        for argument in container.get("args") or ()
    ]
    try:
        return parse_parents(argument.removeprefix("--podcliques=") for argument in arguments)
    except ArgumentError:
        return None


class Readiness:
    """Counts of ready pods by gang and clique."""

    def __init__(self) -> None:
        self._counted: dict[ObjectKey, tuple[Gang, str]] = {}
        self._ready: dict[tuple[Gang, str], int] = {}

    def see(self, key: ObjectKey, pod: Object | None) -> Gang | None:
        """A pod as it is now, None when it is gone. Returns the gang that has a ready pod more."""
        before = self._counted.get(key)
        now = None
        if pod is not None and (gang := gang_of(pod))[1]:
            clique = counted_clique(pod, gang[1])
            now = (gang, clique) if clique is not None else None
        if now == before:
            return None
        if before is not None:
            del self._counted[key]
            self._ready[before] -= 1
            if not self._ready[before]:
                del self._ready[before]
        if now is None:
            return None
        self._counted[key] = now
        self._ready[now] = self._ready.get(now, 0) + 1
        return now[0]

    def may_start(self, gang: Gang, parents: Sequence[Parent]) -> bool:
        """Whether every parent has its minimum."""
        return all(self._ready.get((gang, p.clique), 0) >= p.minimum for p in parents)
