"""Watches: changes of one resource as lines of JSON, from a revision on or with the initial state first (WatchList)."""

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Final

import msgspec

from sim.apiserver.front.table import table
from sim.apiserver.objects import Object
from sim.apiserver.options import ListOptions
from sim.apiserver.reading import Filter, Form, filter_of, retry_later_for, revision_of, with_managers
from sim.apiserver.resources import Resource, Version
from sim.apiserver.status import StatusError, gone
from sim.apiserver.storage import Change, Compacted, Entry, Storage, buried
from sim.apiserver.versions import Converter

__all__ = ("Watches",)

BOOKMARK_S: Final = 60.0
"""Seconds without an event until a bookmark."""
DEFAULT_TIMEOUT_S: Final = 1800.0
INITIAL_END: Final = "k8s.io/initial-events-end"
MAX_BACKLOG: Final = 100_000
"""Events that a reader may be behind before its watch is ended."""


@dataclass(frozen=True, slots=True)
class Subject:
    """What a watch is about."""

    resource: Resource
    version: Version
    namespace: str
    filter: Filter
    form: Form
    options: ListOptions

    @property
    def cache_key(self) -> object:
        """Watches with equal keys send equal lines."""
        return self.version.name, self.form


class Watches:
    """Opens watches on a storage. `close` ends all of them."""

    def __init__(self, storage: Storage, converter: Converter, now: Callable[[], datetime]) -> None:
        self._storage = storage
        self._converter = converter
        self._now = now
        self._open: dict[int, tuple[Subject, _Feed]] = {}
        self._serial = 0

    def open(self, resource: Resource, version: Version, namespace: str, options: ListOptions, form: Form) -> AsyncGenerator[bytes]:
        """Raises StatusError 400, 410 or 504 at once; the generator must be closed."""
        subject = Subject(resource, version, namespace, filter_of(resource, version, options), form, options)
        feed = _Feed(is_table=form.is_table)
        text = options.resource_version
        revision = 0 if text in ("", "0") else revision_of(text)
        feed.after = revision
        initial: list[Entry] = []
        if revision > self._storage.revision and options.initial_events:
            feed.failure = retry_later_for(revision, self._storage.revision)
        elif options.initial_events or (options.initial_events is None and revision == 0):
            initial = [e for _, e in self._storage.table(resource).at(self._storage.revision, namespace) if subject.filter.accepts(e.obj)]
        elif revision:
            try:
                feed.backlog.extend(self._storage.table(resource).since(revision))
            except Compacted:
                oldest = self._storage.table(resource).compacted
                feed.failure = gone(f"too old resource version: {revision} ({oldest})")
        self._serial += 1
        serial = self._serial
        self._open[serial] = subject, feed
        feed.cancel = self._storage.watch(resource, feed.add)
        return self._lines(subject, feed, initial, serial)

    def end(self, resource: Resource | None = None) -> None:
        """Ends the watches of a resource that is not served any more, or all."""
        for subject, feed in list(self._open.values()):
            if resource is None or subject.resource.place == resource.place:
                feed.end()

    async def _lines(self, subject: Subject, feed: "_Feed", initial: list[Entry], serial: int) -> AsyncGenerator[bytes]:
        loop = asyncio.get_running_loop()
        start_revision = self._storage.revision
        deadline = loop.time() + (subject.options.timeout_s or DEFAULT_TIMEOUT_S)
        try:
            if feed.failure is not None:
                yield _line("ERROR", feed.failure.body())
                return
            for entry in initial:
                yield feed.described(await self._event("ADDED", subject, entry))
            if subject.options.initial_events and subject.options.bookmarks:
                yield self._bookmark(subject, start_revision, {INITIAL_END: "true"})
            while True:
                while feed.backlog:
                    change = feed.backlog.popleft()
                    if change.revision <= feed.after:
                        continue
                    if (line := await self._line_of(subject, change)) is not None:
                        yield feed.described(line)
                left_s = deadline - loop.time()
                if feed.is_ended:
                    break
                if left_s <= 0:
                    if subject.options.bookmarks:
                        yield self._bookmark(subject, self._storage.revision)
                    break
                if not await feed.wait(min(left_s, BOOKMARK_S)) and subject.options.bookmarks and loop.time() < deadline:
                    yield self._bookmark(subject, self._storage.revision)
        finally:
            feed.cancel()
            self._open.pop(serial, None)

    async def _line_of(self, subject: Subject, change: Change) -> bytes | None:
        """The line for a change, None when it is not about this watch."""
        if subject.namespace and change.key.namespace != subject.namespace:
            return None
        accepts = subject.filter.accepts
        was = change.old is not None and accepts(change.old.obj)
        now = change.new is not None and accepts(change.new.obj)
        if not was and not now:
            return None
        kind = "MODIFIED" if was and now else "ADDED" if now else "DELETED"
        key = kind, subject.cache_key
        line = change.lines.get(key)
        if line is None:
            entry = change.new if now else buried(change.old, change.revision) if change.old is not None else None
            assert entry is not None  # noqa: S101 - it was or is there
            line = change.lines[key] = await self._event(kind, subject, entry)
        return line

    async def _event(self, kind: str, subject: Subject, entry: Entry) -> bytes:
        resource, version, form = subject.resource, subject.version, subject.form
        obj = await self._converter.convert(resource, entry.obj, resource.api_version(version.name))
        if not form.lean:
            obj = with_managers(obj, entry, version)
        return _line(kind, self._shaped(subject, obj))

    def _shaped(self, subject: Subject, obj: Object) -> Object:
        form = subject.form
        if form.is_table:
            meta = {"resourceVersion": obj["metadata"]["resourceVersion"]}
            return table(subject.resource, subject.version, [obj], include=form.include, now=self._now(), list_meta=meta)
        if form.is_partial:
            return {"kind": "PartialObjectMetadata", "apiVersion": f"meta.k8s.io/{form.accepted.version}", "metadata": obj["metadata"]}
        return obj

    def _bookmark(self, subject: Subject, revision: int, annotations: Object | None = None) -> bytes:
        metadata: Object = {"resourceVersion": str(revision)}
        if annotations:
            metadata["annotations"] = annotations
        kind = {"kind": subject.resource.kind, "apiVersion": subject.resource.api_version(subject.version.name)}
        if subject.form.is_partial:
            kind = {"kind": "PartialObjectMetadata", "apiVersion": f"meta.k8s.io/{subject.form.accepted.version}"}
        if subject.form.is_table:
            return _line("BOOKMARK", table(subject.resource, subject.version, [], include="None", now=self._now(), list_meta=metadata))
        return _line("BOOKMARK", {**kind, "metadata": metadata})


class _Feed:
    """Changes that a watch has not sent yet."""

    def __init__(self, *, is_table: bool) -> None:
        self._is_table = is_table
        self._has_columns = False
        self.backlog: deque[Change] = deque()
        self.failure: StatusError | None = None
        self.is_ended = False
        self.after = 0
        self.cancel: Callable[[], None] = _nothing
        self._waiter: asyncio.Future[None] | None = None

    def add(self, change: Change) -> None:
        if len(self.backlog) >= MAX_BACKLOG:
            self.end()
            return
        self.backlog.append(change)
        self._wake()

    def described(self, line: bytes) -> bytes:
        """A line as it is; of tables all but the first without the columns, which are the same for all."""
        if not self._is_table:
            return line
        if not self._has_columns:
            self._has_columns = True
            return line
        event = msgspec.json.decode(line)
        event["object"]["columnDefinitions"] = None
        return msgspec.json.encode(event) + b"\n"

    def end(self) -> None:
        self.is_ended = True
        self._wake()

    async def wait(self, limit_s: float) -> bool:
        """Until there is something to do; False when the time was over first."""
        if self.backlog or self.is_ended:
            return True
        loop = asyncio.get_running_loop()
        waiter = self._waiter = loop.create_future()
        timer = loop.call_later(limit_s, self._wake)
        try:
            await waiter
        finally:
            timer.cancel()
            self._waiter = None
        return bool(self.backlog) or self.is_ended

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)


def _line(kind: str, obj: Object) -> bytes:
    return msgspec.json.encode({"type": kind, "object": obj}) + b"\n"


def _nothing() -> None:
    """Before a watch has begun."""
