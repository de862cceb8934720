"""The garbage collector: deletes what lost its last owner, and carries out foreground and orphan deletion.

Owners are found by uid. A reference counts only when it also names what that uid is: same kind, same name, and the same namespace unless
the owner is cluster-scoped; one that does not is as good as a reference to nothing.
"""

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from sim.apiserver.care.client import Client, Handle, path_of
from sim.apiserver.objects import Object
from sim.apiserver.resources import ObjectKey, Resource
from sim.apiserver.storage import Change, Storage

__all__ = ("Collector",)

ORPHAN, FOREGROUND = "orphan", "foregroundDeletion"
IGNORED = frozenset({("", "events"), ("events.k8s.io", "events")})
RETRY_S = 1.0


class Host(Protocol):
    """A server as far as this is concerned."""

    @property
    def storage(self) -> Storage: ...

    @property
    def handle(self) -> Handle: ...


class Item(NamedTuple):
    """One object in one of its lives."""

    resource: Resource
    key: ObjectKey
    uid: str


@dataclass(slots=True)
class Owners:
    """References of an object by what became of those they name."""

    solid: list[Object]
    dangling: list[Object]
    waiting: list[Object]


class Collector:
    """Watches all changes from the moment it is made; acts while `run` runs."""

    def __init__(self, host: Host) -> None:
        self._storage = host.storage
        self._client = Client(host.handle, "system:serviceaccount:kube-system:generic-garbage-collector")
        self._items: dict[str, Item] = {}
        self._dependents: dict[str, dict[str, Item]] = {}
        self._due: dict[str, Item] = {}
        self._wake = asyncio.Event()
        for table in self._storage.tables():
            for key, entry in table.entries.items():
                self._note(Item(table.resource, key, entry.obj["metadata"]["uid"]), None, entry.obj)
        self._cancel = self._storage.subscribe(self._on_change)

    async def run(self) -> None:
        """Collects until cancelled."""
        try:
            while True:
                await self._wake.wait()
                self._wake.clear()
                while self._due:
                    uid = next(iter(self._due))
                    item = self._due.pop(uid)
                    if not await self._collect(item):
                        asyncio.get_running_loop().call_later(RETRY_S, self._enqueue, item)
        finally:
            self._cancel()

    def _on_change(self, change: Change) -> None:
        if change.resource.place in IGNORED:
            return
        old = change.old.obj if change.old is not None else None
        new = change.new.obj if change.new is not None else None
        if new is not None:
            self._note(Item(change.resource, change.key, new["metadata"]["uid"]), old, new)
        elif old is not None:
            self._bury(Item(change.resource, change.key, old["metadata"]["uid"]), old)

    def _note(self, item: Item, old: Object | None, new: Object) -> None:
        """An object is there, or changed."""
        self._items[item.uid] = item
        before = {ref["uid"] for ref in _references(old)}
        after = {ref["uid"]: ref for ref in _references(new)}
        for uid in before - after.keys():
            self._dependents.get(uid, {}).pop(item.uid, None)
            self._enqueue_owner(uid)
        for uid in after:
            self._dependents.setdefault(uid, {})[item.uid] = item
        was_leaving = old is not None and old["metadata"].get("deletionTimestamp")
        if after and (old is None or before != after.keys()):
            self._enqueue(item)
        if new["metadata"].get("deletionTimestamp") and (not was_leaving or _finalizers(old) != _finalizers(new)):
            self._enqueue(item)
        if was_leaving is None or (new["metadata"].get("deletionTimestamp") and not was_leaving):
            # Whoever waits for this one may look at it again.
            for uid in after:
                self._enqueue_owner(uid)

    def _bury(self, item: Item, old: Object) -> None:
        """An object is gone."""
        self._items.pop(item.uid, None)
        self._due.pop(item.uid, None)
        for ref in _references(old):
            self._dependents.get(ref["uid"], {}).pop(item.uid, None)
            self._enqueue_owner(ref["uid"])
        for dependent in self._dependents.get(item.uid, {}).values():
            self._enqueue(dependent)

    def _enqueue(self, item: Item) -> None:
        self._due[item.uid] = item
        self._wake.set()

    def _enqueue_owner(self, uid: str) -> None:
        owner = self._items.get(uid)
        if owner is not None and (obj := self._live(owner)) is not None and obj["metadata"].get("deletionTimestamp"):
            self._enqueue(owner)

    def _live(self, item: Item) -> Object | None:
        entry = self._storage.table(item.resource).entries.get(item.key)
        return entry.obj if entry is not None and entry.obj["metadata"]["uid"] == item.uid else None

    async def _collect(self, item: Item) -> bool:
        """Does what is due for one object; False to look again later."""
        obj = self._live(item)
        if obj is None:
            return True
        if obj["metadata"].get("deletionTimestamp"):
            if FOREGROUND in _finalizers(obj):
                return await self._foreground(item, obj)
            if ORPHAN in _finalizers(obj):
                return await self._orphan(item, obj)
            return True
        owners = self._owners(item, obj)
        if not owners.dangling and not owners.waiting:
            return True
        if owners.solid:
            gone = {ref["uid"] for ref in (*owners.dangling, *owners.waiting)}
            return await self._drop_references(item, obj, gone)
        has_dependents = any(self._live(d) is not None for d in self._dependents.get(item.uid, {}).values())
        policy = "Background"
        if owners.waiting and has_dependents:
            policy = "Foreground"
        return await self._delete(item, policy)

    def _owners(self, item: Item, obj: Object) -> Owners:
        owners = Owners([], [], [])
        for ref in _references(obj):
            owner = self._items.get(ref["uid"])
            live = self._live(owner) if owner is not None and _names(ref, owner, item) else None
            if live is None:
                owners.dangling.append(ref)
            elif live["metadata"].get("deletionTimestamp") and FOREGROUND in _finalizers(live) and ref.get("blockOwnerDeletion"):
                owners.waiting.append(ref)
            else:
                owners.solid.append(ref)
        return owners

    async def _foreground(self, item: Item, obj: Object) -> bool:
        """Deletes dependents first; lets the owner go when none is left that blocks it."""
        blocking = False
        done = True
        for dependent, live, ref in list(self._dependents_of(item)):
            if ref.get("blockOwnerDeletion"):
                blocking = True
            if not live["metadata"].get("deletionTimestamp"):
                done = await self._collect(dependent) and done
        if blocking:
            return done
        return await self._drop_finalizer(item, obj, FOREGROUND)

    async def _orphan(self, item: Item, obj: Object) -> bool:
        """Frees dependents of their owner, then lets it go."""
        for dependent, live, _ in list(self._dependents_of(item)):
            if not await self._drop_references(dependent, live, {item.uid}):
                return False
        return await self._drop_finalizer(item, obj, ORPHAN)

    def _dependents_of(self, item: Item) -> Iterator[tuple[Item, Object, Object]]:
        for dependent in self._dependents.get(item.uid, {}).values():
            live = self._live(dependent)
            ref = next((r for r in _references(live) if r["uid"] == item.uid and _names(r, item, dependent)), None)
            if live is not None and ref is not None:
                yield dependent, live, ref

    async def _delete(self, item: Item, policy: str) -> bool:
        options: Object = {
            "kind": "DeleteOptions",
            "apiVersion": "v1",
            "preconditions": {"uid": item.uid},
            "propagationPolicy": policy,
        }
        status, _ = await self._client.send("DELETE", path_of(item.resource, item.key), options)
        return status < 300 or status in (404, 409)

    async def _drop_references(self, item: Item, obj: Object, uids: set[str]) -> bool:
        left = [ref for ref in obj["metadata"].get("ownerReferences", ()) if ref["uid"] not in uids]
        return await self._patch(item, {"ownerReferences": left or None}, obj)

    async def _drop_finalizer(self, item: Item, obj: Object, finalizer: str) -> bool:
        left = [f for f in _finalizers(obj) if f != finalizer]
        return await self._patch(item, {"finalizers": left or None}, obj)

    async def _patch(self, item: Item, metadata: Object, obj: Object) -> bool:
        guard = {"uid": item.uid, "resourceVersion": obj["metadata"]["resourceVersion"]}
        status = await self._client.merge(path_of(item.resource, item.key), {"metadata": {**guard, **metadata}})
        return status < 300 or status == 404


def _references(obj: Object | None) -> list[Object]:
    return obj["metadata"].get("ownerReferences", []) if obj is not None else []


def _finalizers(obj: Object | None) -> list[str]:
    return obj["metadata"].get("finalizers", []) if obj is not None else []


def _names(ref: Object, owner: Item, dependent: Item) -> bool:
    """Whether a reference really means the object that has its uid."""
    group = ref.get("apiVersion", "").rpartition("/")[0]
    if (group, ref.get("kind"), ref.get("name")) != (owner.resource.group, owner.resource.kind, owner.key.name):
        return False
    return not owner.key.namespace or owner.key.namespace == dependent.key.namespace
