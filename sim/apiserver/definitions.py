"""Serves what CustomResourceDefinitions define, from the moment they are stored until their last object is gone.

What the controllers of kube-apiserver do within a second or so happens here before the request that caused it is answered.
"""

from collections.abc import Callable
from datetime import datetime
from typing import Protocol

from sim.apiserver import metadata as meta
from sim.apiserver.custom import accepted, emptied, is_established, resource_of, terminating
from sim.apiserver.objects import Object, copied
from sim.apiserver.resources import ObjectKey, Resource
from sim.apiserver.schema.fields import fill_defaults, prune
from sim.apiserver.storage import Author, Change, Entry, Storage

__all__ = ("CLEANUP", "Definitions", "Host")

CLEANUP = "customresourcecleanup.apiextensions.k8s.io"
GROUP, PLURAL = "apiextensions.k8s.io", "customresourcedefinitions"
AUTHOR = Author("system:apiserver", "kube-apiserver", "update", "status", "kube-apiserver")


class Host(Protocol):
    """What serves resources."""

    def serve(self, resource: Resource) -> None: ...

    def withdraw(self, group: str, plural: str) -> None: ...


class Definitions:
    """Follows the stored definitions. `end_watches` ends the watches of a resource that is not served any more."""

    def __init__(self, storage: Storage, host: Host, now: Callable[[], datetime], end_watches: Callable[[Resource], None]) -> None:
        self._storage = storage
        self._host = host
        self._now = now
        self._end_watches = end_watches
        self._served: dict[str, Resource] = {}
        storage.subscribe(self._on_change)

    def _on_change(self, change: Change) -> None:
        if change.resource.place == (GROUP, PLURAL):
            self._follow(change)
        elif change.new is None and change.resource.is_custom:
            self._finish(f"{change.resource.plural}.{change.resource.group}")

    def _follow(self, change: Change) -> None:
        name = change.key.name
        current = self._storage.table(change.resource).entries.get(change.key)
        if current is None:
            self._withdraw(name)
        elif current is not change.new:
            return  # a later change will be told
        elif current.obj["metadata"].get("deletionTimestamp"):
            if (leaving := terminating(current.obj, meta.timestamp(self._now()))) is not current.obj:
                self._write(change.resource, current, leaving)
                return
            self._empty(name)
            self._finish(name)
        else:
            self._establish(change.resource, current)

    def _establish(self, definitions: Resource, entry: Entry) -> None:
        others = [e.obj for e in self._storage.table(definitions).entries.values() if e is not entry]
        wanted = accepted(entry.obj, others, meta.timestamp(self._now()))
        finalizers: list[str] = entry.obj["metadata"].get("finalizers", [])
        if CLEANUP not in finalizers:
            wanted = {**wanted, "metadata": {**wanted["metadata"], "finalizers": [*finalizers, CLEANUP]}}
        if wanted != entry.obj:
            self._write(definitions, entry, wanted)
        elif is_established(wanted):
            resource = self._served[entry.obj["metadata"]["name"]] = resource_of(wanted)
            self._host.serve(resource)
            self._reread(resource)

    def _reread(self, resource: Resource) -> None:
        """Objects that are stored show what the schema of today makes of them, without being written."""
        table = self._storage.table(resource)
        schemas = {resource.api_version(v.name): v.schema for v in resource.versions}
        for key, entry in list(table.entries.items()):
            schema = schemas.get(entry.obj["apiVersion"])
            if schema is None:
                continue
            obj = copied(entry.obj)
            prune(obj, schema)
            fill_defaults(obj, schema)
            if obj != entry.obj:
                table.put(key, Entry(obj, entry.ledger, entry.revision))

    def _empty(self, name: str) -> None:
        """Deletes all objects of a definition that is being deleted; those with finalizers go when these are removed."""
        resource = self._served.get(name)
        if resource is None:
            return
        table = self._storage.table(resource)
        for key, entry in list(table.entries.items()):
            metadata = entry.obj["metadata"]
            if not metadata.get("finalizers"):
                self._storage.commit(resource, key, None, entry.ledger, AUTHOR)
            elif not metadata.get("deletionTimestamp"):
                leaving = {**metadata, "deletionTimestamp": meta.timestamp(self._now()), "deletionGracePeriodSeconds": 0}
                self._storage.commit(resource, key, {**entry.obj, "metadata": leaving}, entry.ledger, AUTHOR)

    def _finish(self, name: str) -> None:
        """Lets a definition go whose last object has gone."""
        table = self._storage.find(GROUP, PLURAL)
        entry = table.entries.get(ObjectKey("", name)) if table is not None else None
        if table is None or entry is None or not entry.obj["metadata"].get("deletionTimestamp"):
            return
        resource = self._served.get(name)
        if resource is not None and self._storage.table(resource).entries:
            return
        finalizers: list[str] = entry.obj["metadata"].get("finalizers", [])
        if CLEANUP in finalizers and len(finalizers) > 1:
            metadata = {**entry.obj["metadata"], "finalizers": [f for f in finalizers if f != CLEANUP]}
            self._write(table.resource, entry, {**emptied(entry.obj, meta.timestamp(self._now())), "metadata": metadata})
        elif not finalizers or CLEANUP in finalizers:
            self._storage.commit(table.resource, ObjectKey("", name), None, entry.ledger, AUTHOR)

    def _withdraw(self, name: str) -> None:
        resource = self._served.pop(name, None)
        if resource is not None:
            self._host.withdraw(resource.group, resource.plural)
            self._end_watches(resource)
            self._storage.drop(resource)

    def _write(self, definitions: Resource, entry: Entry, obj: Object) -> None:
        version = definitions.version(definitions.storage)
        assert version is not None  # noqa: S101 - the storage version of a built-in resource is served
        now = meta.timestamp(self._now())
        manager, place = AUTHOR.manager, definitions.stored_version
        ledger = entry.ledger.update(entry.obj, obj, version.schema, manager=manager, subresource="status", api_version=place, now=now)
        self._storage.commit(definitions, ObjectKey("", obj["metadata"]["name"]), obj, ledger, AUTHOR)
