"""The garbage collector: deletes what lost its last owner, and carries out foreground and orphan deletion.

A reference means the object that has its kind, its name and, unless the kind is cluster-scoped, the namespace of the dependent. Where that
one is missing or has another uid, the owner counts as gone, also when it never existed. Where the kind is not served, or a cluster-scoped
object names an owner in a namespace, nothing is known and nothing done.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from enum import Enum
from typing import NamedTuple, Protocol

from sim.apiserver.care.client import Client, path_of
from sim.apiserver.care.queue import Queue
from sim.apiserver.objects import Object
from sim.apiserver.requests import Handle
from sim.apiserver.resources import ObjectKey, Resource
from sim.apiserver.storage import Change, Storage

__all__ = ("Collector", "Host")

ORPHAN, FOREGROUND = "orphan", "foregroundDeletion"
IGNORED = frozenset({("", "events"), ("events.k8s.io", "events")})
DEFINITIONS = ("apiextensions.k8s.io", "customresourcedefinitions")
USER = "system:serviceaccount:kube-system:generic-garbage-collector"


class Host(Protocol):
    """A server as far as this is concerned."""

    @property
    def storage(self) -> Storage: ...

    @property
    def handle(self) -> Handle: ...

    def now(self) -> datetime: ...


class Item(NamedTuple):
    """One object in one of its lives. `place`: (group, plural)."""

    place: tuple[str, str]
    key: ObjectKey
    uid: str


class OwnerState(Enum):
    """What became of the owner that a reference names."""

    SOLID = "solid"
    GONE = "gone"
    WAITING = "waiting"  # for its dependents, in foreground deletion
    UNKNOWN = "unknown"


@dataclass(slots=True)
class Dependents:
    """Of one owner: items by uid, and the uids of those that block its foreground deletion."""

    items: dict[str, Item] = field(default_factory=dict[str, Item])
    blocking: dict[str, None] = field(default_factory=dict[str, None])


class Collector:
    """Watches all changes from the moment it is made; acts while `run` runs."""

    def __init__(self, host: Host) -> None:
        self._storage = host.storage
        self._client = Client(host.handle, USER)
        self._queue = Queue[Item]()
        self._items: dict[str, Item] = {}
        self._dependents: dict[str, Dependents] = {}
        self._dead: dict[str, None] = {}
        """Owners that are gone and have dependents left: known to be gone even when their kind is not served any more."""
        self._unknown: dict[Item, None] = {}
        """What has a reference of which nothing is known."""
        self._kinds: dict[tuple[str, str], Resource] | None = None
        for table in self._storage.tables():
            for key, entry in table.entries.items() if table.resource.place not in IGNORED else ():
                self._note(Item(table.resource.place, key, entry.obj["metadata"]["uid"]), None, entry.obj)
        self._cancel = self._storage.subscribe(self._on_change)

    async def run(self) -> None:
        """Collects until cancelled."""
        try:
            await self._queue.run(self._collect)
        finally:
            self._cancel()

    # the graph

    def _on_change(self, change: Change) -> None:
        place = change.resource.place
        if place in IGNORED:
            return
        old, new = change.old, change.new
        if new is not None:
            self._note(Item(place, change.key, new.obj["metadata"]["uid"]), old.obj if old is not None else None, new.obj)
        elif old is not None:
            self._bury(Item(place, change.key, old.obj["metadata"]["uid"]), old.obj)
        if place == DEFINITIONS:
            self._kinds = None
            for item in self._unknown:
                self._queue.add(item)
            self._unknown.clear()

    def _note(self, item: Item, old: Object | None, new: Object) -> None:
        """An object is there, or changed."""
        before, after = _references(old), _references(new)
        if old is None:
            self._items[item.uid] = item
        if before != after:
            self._relate(item, before, after)
        if not new["metadata"].get("deletionTimestamp"):
            return
        is_new = old is None or not old["metadata"].get("deletionTimestamp")
        if is_new or _finalizers(old) != _finalizers(new):
            # Dependents first: those that do not block go only while their owner still waits.
            dependents = self._dependents.get(item.uid)
            if dependents is not None and FOREGROUND in _finalizers(new) and (is_new or FOREGROUND not in _finalizers(old)):
                for dependent in dependents.items.values():
                    self._queue.add(dependent)
            self._queue.add(item)

    def _relate(self, item: Item, before: list[Object], after: list[Object]) -> None:
        """References of an object changed."""
        wanted = {ref["uid"]: None for ref in after}
        blocked = {ref["uid"]: None for ref in after if ref.get("blockOwnerDeletion")}
        for uid in {ref["uid"]: None for ref in before}:
            self._free(uid, item.uid, keep=uid in wanted, blocks=uid in blocked)
        for uid in wanted:
            dependents = self._dependents.setdefault(uid, Dependents())
            dependents.items[item.uid] = item
            if uid in blocked:
                dependents.blocking[item.uid] = None
        if after:
            self._queue.add(item)

    def _free(self, owner_uid: str, uid: str, *, keep: bool, blocks: bool) -> None:
        """An owner lost a dependent, or at least what it had to wait for, unless it `blocks`."""
        dependents = self._dependents.get(owner_uid)
        if dependents is None:
            return
        if not blocks and uid in dependents.blocking:
            del dependents.blocking[uid]
            owner = self._items.get(owner_uid)
            if owner is not None and not dependents.blocking:
                self._queue.add(owner)
        if keep:
            return
        dependents.items.pop(uid, None)
        if not dependents.items:
            del self._dependents[owner_uid]
            self._dead.pop(owner_uid, None)

    def _bury(self, item: Item, old: Object) -> None:
        """An object is gone."""
        self._items.pop(item.uid, None)
        self._unknown.pop(item, None)
        for uid in {ref["uid"]: None for ref in _references(old)}:
            self._free(uid, item.uid, keep=False, blocks=False)
        dependents = self._dependents.get(item.uid)
        if dependents is not None:
            self._dead[item.uid] = None
            for dependent in dependents.items.values():
                self._queue.add(dependent)

    def _live(self, item: Item) -> Object | None:
        table = self._storage.find(*item.place)
        entry = table.entries.get(item.key) if table is not None else None
        return entry.obj if entry is not None and entry.obj["metadata"]["uid"] == item.uid else None

    def _kind(self, api_version: str, kind: str) -> Resource | None:
        if self._kinds is None:
            resources = [table.resource for table in self._storage.tables()]
            self._kinds = {(r.api_version(v.name), r.kind): r for r in resources for v in r.versions if v.is_served}
        return self._kinds.get((api_version, kind))

    def _state(self, ref: Object, item: Item) -> OwnerState:
        if ref["uid"] in self._dead:
            return OwnerState.GONE
        resource = self._kind(ref["apiVersion"], ref["kind"])
        if resource is None or (resource.is_namespaced and not item.key.namespace):
            return OwnerState.UNKNOWN
        key = ObjectKey(item.key.namespace if resource.is_namespaced else "", ref["name"])
        owner = self._live(Item(resource.place, key, ref["uid"]))
        if owner is None:
            return OwnerState.GONE
        return OwnerState.WAITING if _is_waiting(owner) else OwnerState.SOLID

    # what is done

    async def _collect(self, item: Item) -> bool:
        """Does what is due for one object; False to look again later."""
        obj = self._live(item)
        if obj is None:
            return True
        if obj["metadata"].get("deletionTimestamp"):
            done = await self._orphan(item) if ORPHAN in _finalizers(obj) else True
            return await self._finish(item) if done and FOREGROUND in _finalizers(obj) else done
        return await self._judge(item, obj)

    async def _judge(self, item: Item, obj: Object) -> bool:
        """Deletes an object without owners that stay; drops references to others."""
        found = [(ref, self._state(ref, item)) for ref in _references(obj)]
        states = [state for _, state in found]
        if OwnerState.UNKNOWN in states:
            self._unknown[item] = None
            return True
        gone = [ref["uid"] for ref, state in found if state is not OwnerState.SOLID]
        if not gone:
            return True
        if OwnerState.SOLID in states:
            return await self._drop_references(item, gone)
        if OwnerState.WAITING in states and item.uid in self._dependents:
            # A circle would wait for itself for ever.
            if any(_is_waiting(live) for live in self._dependents_of(item)) and not await self._unblock(item):
                return False
            return await self._delete(item, "Foreground")
        held = _finalizers(obj)
        return await self._delete(item, "Orphan" if ORPHAN in held else "Foreground" if FOREGROUND in held else "Background")

    async def _finish(self, item: Item) -> bool:
        """Lets an object in foreground deletion go when nothing that blocks it is left; told of it when the last goes."""
        dependents = self._dependents.get(item.uid)
        return True if dependents is not None and dependents.blocking else await self._drop_finalizer(item, FOREGROUND)

    async def _orphan(self, item: Item) -> bool:
        """Frees dependents of their owner, then lets it go."""
        dependents = self._dependents.get(item.uid)
        for dependent in list(dependents.items.values()) if dependents is not None else ():
            if not await self._drop_references(dependent, [item.uid]):
                return False
        return await self._drop_finalizer(item, ORPHAN)

    def _dependents_of(self, item: Item) -> Iterator[Object]:
        dependents = self._dependents.get(item.uid)
        for dependent in dependents.items.values() if dependents is not None else ():
            live = self._live(dependent)
            if live is not None:
                yield live

    async def _delete(self, item: Item, policy: str) -> bool:
        options: Object = {"kind": "DeleteOptions", "apiVersion": "v1", "preconditions": {"uid": item.uid}, "propagationPolicy": policy}
        status, _ = await self._client.send("DELETE", self._path(item), options)
        return status < 300 or self._live(item) is None

    async def _drop_references(self, item: Item, uids: list[str]) -> bool:
        left = [ref for ref in _references(self._live(item)) if ref["uid"] not in uids]
        return await self._patch(item, {"ownerReferences": left or None})

    async def _unblock(self, item: Item) -> bool:
        freed = [{**ref, "blockOwnerDeletion": False} for ref in _references(self._live(item))]
        return await self._patch(item, {"ownerReferences": freed})

    async def _drop_finalizer(self, item: Item, finalizer: str) -> bool:
        left = [f for f in _finalizers(self._live(item)) if f != finalizer]
        return await self._patch(item, {"finalizers": left or None})

    async def _patch(self, item: Item, metadata: Object) -> bool:
        """Changes metadata of what is stored now, and of nothing that is stored meanwhile."""
        obj = self._live(item)
        if obj is None:
            return True
        guard = {"uid": item.uid, "resourceVersion": obj["metadata"]["resourceVersion"]}
        status = await self._client.merge(self._path(item), {"metadata": {**guard, **metadata}})
        return status < 300 or self._live(item) is None

    def _path(self, item: Item) -> str:
        table = self._storage.find(*item.place)
        assert table is not None  # noqa: S101 - a live object was found in it
        return path_of(table.resource, item.key)


def _references(obj: Object | None) -> list[Object]:
    return obj["metadata"].get("ownerReferences") or [] if obj is not None else []


def _finalizers(obj: Object | None) -> list[str]:
    return obj["metadata"].get("finalizers") or [] if obj is not None else []


def _is_waiting(obj: Object) -> bool:
    return bool(obj["metadata"].get("deletionTimestamp")) and FOREGROUND in _finalizers(obj)
