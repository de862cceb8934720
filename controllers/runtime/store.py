"""The cached objects of one resource: frozen, indexed, and never moved backwards by late or repeated news.

resourceVersions of one resource compare as integers (Kubernetes promises this since 1.35), across objects and across lives of one name.
`seen_rv` is how far the watch has come: everything the server did up to it is in the store. Handlers see each change exactly once.
"""

import heapq
import itertools
from collections.abc import Callable, Collection, Iterable
from typing import Generic, Literal, NamedTuple, TypeAlias, TypeVar

import anyio

from api.plan import Index, Key, Object

__all__ = ("Change", "EventType", "Handler", "Store", "version")

T = TypeVar("T", bound=Object)

EventType: TypeAlias = Literal["ADDED", "MODIFIED", "DELETED"]
Handler: TypeAlias = Callable[[T | None, T | None], None]
"""Called with (old, new): (None, new) is an addition, (old, None) a removal with the last known state. Must not wait or raise."""


class Change(NamedTuple, Generic[T]):
    """What became of one key. Where both are set and their uids differ, the object was deleted and another one of that name created."""

    old: T | None
    new: T | None


def version(obj: Object) -> int:
    """resourceVersion as an integer; raises ValueError if it is none."""
    return int(obj.metadata.resource_version)


def _same(old: Object | None, new: Object) -> bool:
    """The same state of the same life."""
    return old is not None and old.metadata.resource_version == new.metadata.resource_version and old.metadata.uid == new.metadata.uid


class Store(Generic[T]):
    """Written by one reflector (and live reads), read by everybody. All methods are synchronous."""

    def __init__(self, model: type[T], indexes: Iterable[Index] = ()) -> None:
        self.model = model
        self._objects: dict[Key, T] = {}
        self._spaces: dict[str, dict[Key, T]] = {}
        self._indexes = tuple(indexes)
        self._buckets: dict[str, dict[str, dict[Key, T]]] = {index.name: {} for index in self._indexes}
        self._handlers: list[Handler[T]] = []
        self._seen_rv = 0
        self._waiters: list[tuple[int, int, anyio.Event]] = []
        self._tickets = itertools.count()

    def __len__(self) -> int:
        return len(self._objects)

    @property
    def seen_rv(self) -> int:
        """Newest resourceVersion up to which the store is known to be complete; 0 before the first list."""
        return self._seen_rv

    def get(self, key: Key) -> T | None:
        return self._objects.get(key)

    def list(self, namespace: str = "") -> tuple[T, ...]:
        """All objects, or those of one namespace."""
        return tuple((self._spaces.get(namespace, {}) if namespace else self._objects).values())

    def by_index(self, index: Index, value: str) -> tuple[T, ...]:
        """Objects that a declared index has under `value`. Raises KeyError for an index that was not declared for this store."""
        bucket = self._buckets.get(index.name)
        if bucket is None:
            raise KeyError(f"index {index.name!r} is not declared for {self.model.KIND.resource}; pass it to the informer")
        return tuple(bucket.get(value, {}).values())

    def subscribe(self, handler: Handler[T]) -> None:
        """Calls `handler` for every later change, and now for every object already here."""
        self._handlers.append(handler)
        for obj in tuple(self._objects.values()):
            handler(None, obj)

    def apply(self, type_: EventType, obj: T) -> Change[T] | None:
        """Takes in one watch event; None when it is no news. Advances seen_rv."""
        rv = version(obj)
        change = self._drop(Key.of(obj), rv) if type_ == "DELETED" else self._put(obj, rv)
        self.advance(rv)
        return change

    def put_live(self, obj: T) -> Change[T] | None:
        """Takes in the answer of a live read. It may be ahead of the watch, so seen_rv stays."""
        return self._put(obj, version(obj))

    def remove(self, key: Key, rv: int) -> Change[T] | None:
        """Takes in a deletion at `rv` of which only the key is known. Advances seen_rv."""
        change = self._drop(key, rv)
        self.advance(rv)
        return change

    def forget(self, key: Key, known: T | None) -> Change[T] | None:
        """A live read found nothing: removes the object if it is still `known`, the one that was here when the read began."""
        if known is None or self._objects.get(key) is not known:
            return None
        return self._commit((Change(known, None),))[0]

    def replace(self, objects: Iterable[T], rv: int, keep: Collection[Key] = ()) -> tuple[Change[T], ...]:
        """Takes in a complete list as of `rv`. What it lacks becomes a removal with its last known state, except the keys in `keep`.

        The list wins even where the store seems newer: after a restore of etcd from a backup, resourceVersions go back.
        """
        listed = {Key.of(obj): obj for obj in objects}
        gone = tuple(Change[T](old, None) for key, old in self._objects.items() if key not in listed and key not in keep)
        news = tuple(Change[T](self._objects.get(key), obj) for key, obj in listed.items() if not _same(self._objects.get(key), obj))
        committed = self._commit(gone + news)
        self._seen_rv = 0
        self.advance(rv)
        return committed

    def advance(self, rv: int) -> None:
        """A bookmark or event says that the watch has come as far as `rv`."""
        self._seen_rv = max(self._seen_rv, rv)
        while self._waiters and self._waiters[0][0] <= self._seen_rv:
            heapq.heappop(self._waiters)[2].set()

    def reached(self, rv: int) -> anyio.Event:
        """An event that is set once seen_rv is at least `rv`."""
        event = anyio.Event()
        if rv <= self._seen_rv:
            event.set()
        else:
            heapq.heappush(self._waiters, (rv, next(self._tickets), event))
        return event

    def _put(self, obj: T, rv: int) -> Change[T] | None:
        old = self._objects.get(Key.of(obj))
        # An unknown object from the past was deleted since: the watch has already told everything up to seen_rv.
        if rv < self._seen_rv if old is None else rv <= version(old):
            return None
        return self._commit((Change(old, obj),))[0]

    def _drop(self, key: Key, rv: int) -> Change[T] | None:
        old = self._objects.get(key)
        if old is None or rv < version(old):
            return None
        return self._commit((Change(old, None),))[0]

    def _commit(self, changes: tuple[Change[T], ...]) -> tuple[Change[T], ...]:
        """Changes objects and indexes first, so that handlers see the whole new state."""
        keys = [self._index_keys(change) for change in changes]
        for change, index_keys in zip(changes, keys, strict=True):
            self._store(change)
            for index, (before, after) in zip(self._indexes, index_keys, strict=True):
                self._reindex(self._buckets[index.name], change, before, after)
        for old, new in changes:
            for handler in self._handlers:
                if old is not None and new is not None and old.metadata.uid != new.metadata.uid:
                    handler(old, None)
                    handler(None, new)
                else:
                    handler(old, new)
        return changes

    def _index_keys(self, change: Change[T]) -> tuple[tuple[tuple[str, ...], tuple[str, ...]], ...]:
        old, new = change
        return tuple((tuple(i.keys(old)) if old is not None else (), tuple(i.keys(new)) if new is not None else ()) for i in self._indexes)

    def _store(self, change: Change[T]) -> None:
        old, new = change
        if new is not None:
            key = Key.of(new)
            self._objects[key] = new
            self._spaces.setdefault(key.namespace, {})[key] = new
        elif old is not None:
            key = Key.of(old)
            del self._objects[key]
            space = self._spaces[key.namespace]
            del space[key]
            if not space:
                del self._spaces[key.namespace]

    @staticmethod
    def _reindex(buckets: dict[str, dict[Key, T]], change: Change[T], before: tuple[str, ...], after: tuple[str, ...]) -> None:
        old, new = change
        for value in before:
            if old is not None and value not in after and (bucket := buckets.get(value)) is not None:
                bucket.pop(Key.of(old), None)
                if not bucket:
                    del buckets[value]
        for value in after:
            if new is not None:
                buckets.setdefault(value, {})[Key.of(new)] = new
