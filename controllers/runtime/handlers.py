"""Event handlers that several controllers share: from a change of an object to the keys that it concerns. They never act."""

from collections.abc import Callable, Iterable
from typing import Any, TypeAlias

import msgspec

from api.grove import PodCliqueSet
from api.plan import Key, Object

__all__ = ("design_changed", "intent_changed", "lifecycle", "own_keys", "owner_keys")

Keys: TypeAlias = Iterable[tuple[Key, int]]


def intent_changed(old: Object | None, new: Object | None) -> bool:
    """True unless only status changed: created, deleted, another life, new generation, labels, annotations, finalizers or deletion."""
    if old is None or new is None:
        return True
    before, after = old.metadata, new.metadata
    return (
        before.uid != after.uid
        or before.generation != after.generation
        or before.deletion_timestamp != after.deletion_timestamp
        or before.labels != after.labels
        or before.annotations != after.annotations
        or before.finalizers != after.finalizers
    )


def design_changed(old: PodCliqueSet | None, new: PodCliqueSet | None) -> bool:
    """Whether more changed of a set than its status and its number of replicas, which is nothing to objects of its replicas."""
    if old is None or new is None or not intent_changed(old, new):
        return old is None or new is None
    a, b = old.metadata, new.metadata
    if msgspec.structs.replace(a, generation=b.generation, resource_version=b.resource_version) != b:
        return True
    return old.spec.model_copy(update={"replicas": new.spec.replicas}) != new.spec


def own_keys(priority: int, old: Object | None, new: Object | None) -> list[tuple[Key, int]]:
    """The object itself, when more than its status changed."""
    obj = new or old
    return [(Key.of(obj), priority)] if obj is not None and intent_changed(old, new) else []


def owner_keys(kind: str, priority: int, old: Object | None, new: Object | None) -> list[tuple[Key, int]]:
    """The controllers of that kind, before and after the change."""
    found: dict[Key, int] = {}
    for obj in (old, new):
        owner = obj.metadata.controller if obj is not None else None
        if obj is not None and owner is not None and owner.kind == kind:
            found[Key(obj.metadata.namespace, owner.name)] = priority
    return list(found.items())


def lifecycle(keys: Callable[[Any, Any], Keys], old: Object | None, new: Object | None) -> Keys:
    """Passes on creation, deletion and changes of intent only."""
    return keys(old, new) if intent_changed(old, new) else ()
