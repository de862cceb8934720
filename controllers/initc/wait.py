"""What the startup waiter waits for: enough ready pods of each parent PodClique, counted inside one PodGang (grove.md §3).

Pods belong to a parent by their label, not by a prefix of their name: `decode` is no parent of `decode-x-0`. Only the standard library is
imported, so that the program starts quickly in a small image.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from api import labels

__all__ = ("ArgumentError", "Parent", "Progress", "Waiter", "counted_clique", "parse_parents")


class ArgumentError(ValueError):
    """A --podcliques argument cannot be used; the text says which and why."""


@dataclass(frozen=True, slots=True)
class Parent:
    """A PodClique by its full name, and how many of its pods have to be ready (at least one)."""

    clique: str
    minimum: int


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a parent is."""

    parent: Parent
    ready: int

    def __str__(self) -> str:
        return f"{self.parent.clique}: {self.ready}/{self.parent.minimum} ready"


def parse_parents(values: Iterable[str]) -> tuple[Parent, ...]:
    """Parents from values of --podcliques: `<full name>:<minimum>`, several joined by commas. Blank ones are left out.

    A clique that is named twice counts with the larger minimum. Raises ArgumentError.
    """
    found: dict[str, int] = {}
    for text in (part.strip() for value in values for part in value.split(",")):
        if text:
            parent = _parent(text)
            found[parent.clique] = max(parent.minimum, found.get(parent.clique, 0))
    return tuple(Parent(clique, minimum) for clique, minimum in found.items())


def _parent(text: str) -> Parent:
    parts = [part.strip() for part in text.split(":")]
    if len(parts) != 2 or not parts[0]:
        raise ArgumentError(f"--podcliques {text!r}: expected NAME:MINIMUM, for example chat-0-router:1")
    if not (parts[1].isascii() and parts[1].isdigit() and int(parts[1]) > 0):
        raise ArgumentError(f"--podcliques {text!r}: the minimum has to be a whole number above zero, not {parts[1]!r}")
    return Parent(parts[0], int(parts[1]))


def counted_clique(pod: Mapping[str, Any], gang: str) -> str | None:
    """The clique that a pod counts for: a pod of `gang` that is Ready and is not being deleted (it would be gone when it is needed)."""
    metadata: Mapping[str, Any] = pod.get("metadata") or {}
    found: Mapping[str, str] = metadata.get("labels") or {}
    if found.get(labels.PODGANG) != gang or metadata.get("deletionTimestamp"):
        return None
    status: Mapping[str, Any] = pod.get("status") or {}
    conditions: Sequence[Mapping[str, Any]] = status.get("conditions") or ()
    is_ready = any(c.get("type") == "Ready" and c.get("status") == "True" for c in conditions)
    return found.get(labels.PODCLIQUE) if is_ready else None


class Waiter:
    """Counts ready pods of one namespace from what a list and a watch tell. Once satisfied it stays so, whatever happens to the parents."""

    def __init__(self, gang: str, parents: Iterable[Parent]) -> None:
        self.gang = gang
        self.parents = tuple(parents)
        self._cliques: dict[str, str] = {}  # pod name -> the clique it counts for
        self._satisfied = not self.parents

    @property
    def is_satisfied(self) -> bool:
        return self._satisfied

    def replace(self, pods: Iterable[Mapping[str, Any]]) -> None:
        """All pods there are, of a list."""
        self._cliques = {}
        for pod in pods:
            self._count(pod)
        self._decide()

    def see(self, pod: Mapping[str, Any]) -> None:
        """A pod that is new or has changed."""
        self._count(pod)
        self._decide()

    def forget(self, pod: Mapping[str, Any]) -> None:
        """A pod that is gone."""
        self._cliques.pop(_name(pod), None)

    def progress(self) -> tuple[Progress, ...]:
        """All parents in the order of the arguments."""
        counted = list(self._cliques.values())
        return tuple(Progress(p, counted.count(p.clique)) for p in self.parents)

    def _count(self, pod: Mapping[str, Any]) -> None:
        clique = counted_clique(pod, self.gang)
        if clique is None:
            self._cliques.pop(_name(pod), None)
        else:
            self._cliques[_name(pod)] = clique

    def _decide(self) -> None:
        self._satisfied = self._satisfied or all(p.ready >= p.parent.minimum for p in self.progress())


def _name(pod: Mapping[str, Any]) -> str:
    metadata: Mapping[str, str] = pod.get("metadata") or {}
    return metadata.get("name", "")
