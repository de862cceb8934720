"""Objects in memory with one revision counter, a history per resource, and whoever wants to know of changes.

Nothing waits here: a change is visible to readers, watches and subscribers when `commit` returns.
"""

from bisect import bisect_right
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

from sim.apiserver.fields.lazy import Ledger
from sim.apiserver.objects import Object
from sim.apiserver.resources import ObjectKey, Resource

__all__ = ("HISTORY", "Author", "Change", "Compacted", "Entry", "Storage", "Table", "buried", "is_ending")

HISTORY = 20_000
"""Changes of one resource that can still be watched from, before the oldest tenth is compacted."""


class Compacted(Exception):
    """A revision that is not in the history any more."""


@dataclass(slots=True, eq=False)
class Entry:
    """One revision of an object in its storage version, without managedFields, which `ledger` knows. Never changed."""

    obj: Object
    ledger: Ledger
    revision: int


@dataclass(frozen=True, slots=True)
class Author:
    """Who made a change: for logs and for those who check them."""

    user: str = ""
    user_agent: str = ""
    verb: str = ""
    subresource: str = ""
    manager: str = ""


@dataclass(slots=True, eq=False)
class Change:
    """An object was created (no `old`), changed, or deleted (no `new`). `lines`: encoded events by form, shared by watches."""

    resource: Resource
    key: ObjectKey
    old: Entry | None
    new: Entry | None
    revision: int
    author: Author
    lines: dict[object, bytes] = field(default_factory=dict[object, bytes])


class Table:
    """All objects of a resource and their history."""

    def __init__(self, resource: Resource) -> None:
        self.resource = resource
        self.entries: dict[ObjectKey, Entry] = {}
        self.by_namespace: dict[str, dict[ObjectKey, Entry]] = {}
        self.history: deque[Change] = deque()
        self.compacted = 0
        self.watchers: dict[int, Callable[[Change], None]] = {}
        self._order: list[ObjectKey] | None = None

    def put(self, key: ObjectKey, entry: Entry | None) -> None:
        """Sets or removes an object."""
        names = self.by_namespace.setdefault(key.namespace, {})
        if entry is None:
            del self.entries[key], names[key]
            self._order = None
        else:
            if key not in self.entries:
                self._order = None
            self.entries[key] = names[key] = entry

    def at(self, revision: int, namespace: str) -> list[tuple[ObjectKey, Entry]]:
        """Objects in key order as of a revision. Raises Compacted."""
        if revision < self.compacted:
            raise Compacted
        entries: Mapping[ObjectKey, Entry] = self.by_namespace.get(namespace, {}) if namespace else self.entries
        if self.history and self.history[-1].revision > revision:
            entries = dict(entries)
            for change in reversed(self.history):
                if change.revision <= revision:
                    break
                if change.old is not None and (not namespace or change.key.namespace == namespace):
                    entries[change.key] = change.old
                else:
                    entries.pop(change.key, None)
            return [(key, entries[key]) for key in sorted(entries, key=_etcd_order)]
        if namespace:
            return [(key, entries[key]) for key in sorted(entries, key=_etcd_order)]
        if self._order is None:
            self._order = sorted(entries, key=_etcd_order)
        return [(key, entries[key]) for key in self._order]

    def since(self, revision: int) -> Iterator[Change]:
        """Changes after a revision, oldest first. Raises Compacted."""
        if revision < self.compacted:
            raise Compacted
        changes = list(self.history)
        return iter(changes[bisect_right(changes, revision, key=_revision_of) :])

    def compact(self, revision: int) -> None:
        """Forgets changes up to and including a revision."""
        while self.history and self.history[0].revision <= revision:
            self.history.popleft()
        self.compacted = max(self.compacted, revision)


class Storage:
    """Tables by group and plural. `revision` is the newest one; the first change gets `revision` + 1."""

    def __init__(self, revision: int = 1, history: int = HISTORY) -> None:
        self.revision = revision
        self._history = history
        self._tables: dict[tuple[str, str], Table] = {}
        self._subscribers: dict[int, Callable[[Change], None]] = {}
        self._serial = 0
        self._untold: deque[Change] = deque()
        self._is_telling = False

    def table(self, resource: Resource) -> Table:
        """The table of a resource, made when first asked for."""
        table = self._tables.get(resource.place)
        if table is None:
            table = self._tables[resource.place] = Table(resource)
            table.compacted = self.revision
        return table

    def find(self, group: str, plural: str) -> Table | None:
        """A table by name, None where nothing was ever stored."""
        return self._tables.get((group, plural))

    def tables(self) -> list[Table]:
        """All tables."""
        return list(self._tables.values())

    def commit(self, resource: Resource, key: ObjectKey, obj: Object | None, ledger: Ledger, author: Author) -> Entry | None:
        """Stores an object (its resourceVersion is set here, on a copy of metadata), or deletes it when `obj` is None."""
        table = self.table(resource)
        self.revision += 1
        new = None
        if obj is not None:
            metadata = {**obj["metadata"], "resourceVersion": str(self.revision)}
            new = Entry({**obj, "metadata": metadata}, ledger, self.revision)
        change = Change(resource, key, table.entries.get(key), new, self.revision, author)
        table.put(key, new)
        table.history.append(change)
        if len(table.history) > self._history:
            table.compact(table.history[self._history // 10].revision)
        self._untold.append(change)
        self._tell()
        return new

    def _tell(self) -> None:
        """Tells everybody of every change in order, also when somebody who is told makes further ones."""
        if self._is_telling:
            return
        self._is_telling = True
        try:
            while self._untold:
                change = self._untold.popleft()
                for notify in [*self.table(change.resource).watchers.values(), *self._subscribers.values()]:
                    notify(change)
        finally:
            self._is_telling = False

    def compact(self) -> None:
        """Forgets all history."""
        for table in self._tables.values():
            table.compact(self.revision)

    def subscribe(self, callback: Callable[[Change], None]) -> Callable[[], None]:
        """Calls back at every change of any resource, synchronously; returns how to end that."""
        return self._add(self._subscribers, callback)

    def watch(self, resource: Resource, callback: Callable[[Change], None]) -> Callable[[], None]:
        """The same for one resource, before all subscribers."""
        return self._add(self.table(resource).watchers, callback)

    def drop(self, resource: Resource) -> None:
        """Forgets a resource that is not served any more."""
        self._tables.pop(resource.place, None)

    def _add(self, callbacks: dict[int, Callable[[Change], None]], callback: Callable[[Change], None]) -> Callable[[], None]:
        self._serial += 1
        serial = self._serial
        callbacks[serial] = callback

        def forget() -> None:
            callbacks.pop(serial, None)

        return forget


def buried(entry: Entry, revision: int) -> Entry:
    """The last state of an object, at the revision of its deletion."""
    obj = entry.obj
    return Entry({**obj, "metadata": {**obj["metadata"], "resourceVersion": str(revision)}}, entry.ledger, revision)


def is_ending(storage: Storage, resource: Resource) -> bool:
    """Whether the definition of a custom resource is being deleted."""
    definitions = storage.find("apiextensions.k8s.io", "customresourcedefinitions")
    entry = definitions.entries.get(ObjectKey("", f"{resource.plural}.{resource.group}")) if definitions is not None else None
    return entry is not None and "deletionTimestamp" in entry.obj["metadata"]


def _etcd_order(key: ObjectKey) -> str:
    return f"{key.namespace}/{key.name}" if key.namespace else key.name


def _revision_of(change: Change) -> int:
    return change.revision
