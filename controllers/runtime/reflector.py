"""Keeps one store equal to one resource of the API server, through cut connections, restarts, compaction and garbage on the wire.

A round starts with WatchList (one stream: initial objects, a bookmark that says "complete", then changes) or, where that is refused or did
not get through, with a paged LIST and a watch from its resourceVersion. Streams end all the time; the next one resumes from `seen_rv`.
Only what makes that impossible (410, an ERROR event, an unreadable line) leads to a new list, whose differences the store works out.
"""

import logging
import random
from collections.abc import Awaitable, Callable
from typing import Generic, Never, TypeAlias, TypeVar

import anyio
import anyio.lowlevel
import msgspec

from api.plan import Key, Object, Ref
from controllers.runtime.errors import (
    ApiError,
    BadRequest,
    Forbidden,
    Gone,
    Invalid,
    NotFound,
    StreamIdle,
    TransportError,
    Unauthorized,
    api_error,
)
from controllers.runtime.lines import LineTooLong
from controllers.runtime.reflectormetrics import NoReflectorMetrics, ReflectorMetrics
from controllers.runtime.representation import accept_for
from controllers.runtime.store import EventType, Store, version
from controllers.runtime.transport import Transport
from controllers.runtime.watchevents import EVENTS, INITIAL_END, LISTS, PARTIALS, UNDECODABLE, Meta, describe_decode_error

__all__ = ("NoReflectorMetrics", "Reflector", "ReflectorMetrics", "Told", "Unreadable")

log = logging.getLogger(__name__)

T = TypeVar("T", bound=Object)

PAGE_SIZE = 500
YIELD_EVERY = 200
LIST_TIMEOUT_S = 60.0
INACTIVITY_S = 90.0
"""API servers send nothing for up to two minutes when nothing happens, so reaching this limit is normal and costs one request."""
BACKOFF_FIRST_S, BACKOFF_LIMIT_S = 0.2, 30.0
UNREACHABLE_LIMIT_S = 5.0
"""Nobody is there to be overrun by attempts, and everybody waits for us once the server is back."""
MISSING_LIMIT_S = 5.0
"""For what somebody has to install or to grant, and then waits for."""
VERIFY_S, VERIFY_S_PER_OBJECT = 600.0, 0.01
"""How often the store is compared with a new list whatever the watch says, so that an event that got lost on the way is made up for."""
HEALTHY_S = 10.0
"""A round that lasted this long starts the backoff anew."""
REMEMBERED = 1000

LASTING = frozenset(("network", "busy", "denied", "missing"))
"""Ends of rounds that do not go away by listing anew."""
OPTIONAL_GROUPS = frozenset({"resource.k8s.io"})
"""Groups that clusters may lack or withhold. While the server says so (404, 403) at the start, their resources count as empty."""


Unreadable: TypeAlias = Callable[[Ref, str], None]
"""Called with an object that cannot be read, and why."""
Told: TypeAlias = Callable[[str, Exception | None], None]
"""Called with Kind.resource and why it cannot be read at present; None once it can."""


def _nobody(ref: Ref, why: str) -> None:
    """Nobody wants to know."""


class _Relist(Exception):
    """The stream cannot be resumed. `reason` as in ReflectorMetrics.round_ended."""

    def __init__(self, reason: str, text: str) -> None:
        super().__init__(text)
        self.reason = reason


class _Snapshot(Generic[T]):
    """A list that is not complete yet."""

    def __init__(self) -> None:
        self.objects: dict[Key, T] = {}
        self.unreadable: set[Key] = set()


class Reflector(Generic[T]):
    """One resource, in all namespaces or one, optionally narrowed by selectors.

    `synced` is set once the store is complete for the first time, or known to stay empty (OPTIONAL_GROUPS). `missing` is True while the
    server does not know the resource. `trouble`: how the latest round ended, as in ReflectorMetrics.round_ended.
    `unreadable` is told once of each object that the model refuses (it was stored before validation existed, say), and why. `told` hears
    of what keeps the resource from being read; without it the log does.
    """

    def __init__(
        self,
        transport: Transport,
        store: Store[T],
        *,
        namespace: str = "",
        label_selector: str = "",
        field_selector: str = "",
        metrics: ReflectorMetrics | None = None,
        rng: random.Random | None = None,
        sleep: Callable[[float], Awaitable[None]] = anyio.sleep,
        inactivity_s: float = INACTIVITY_S,
        unreadable: Unreadable | None = None,
        told: Told | None = None,
    ) -> None:
        self.synced = anyio.Event()
        self.missing = False
        self.trouble = ""
        self._transport = transport
        self._store = store
        self._kind = store.model.KIND
        self._path = self._kind.path(namespace)
        self._selectors = {k: v for k, v in (("labelSelector", label_selector), ("fieldSelector", field_selector)) if v}
        self._metrics = metrics or NoReflectorMetrics()
        self._rng = rng or random.Random()  # noqa: S311 - spreads load, protects nothing
        self._sleep = sleep
        self._inactivity_s = inactivity_s
        self._tell_unreadable = unreadable or _nobody
        self._told = told
        self._began = self._listed_at = float("-inf")
        self._verify_at = float("inf")
        self._round_scope = anyio.CancelScope()
        self._listed = anyio.Event()
        self._resume = False
        self._watch_list = True
        self._list_next = False
        self._failures = 0
        self._reported: set[str] = set()

    async def run(self) -> Never:
        """Reflects until cancelled. Whatever the server does, this does not raise."""
        while True:
            start = anyio.current_time()
            reason, error = await self._bounded_round()
            healthy = anyio.current_time() - start >= HEALTHY_S
            self._metrics.round_ended(self._kind.resource, reason)
            await self._sleep(self._delay(reason, error, healthy))

    def _delay(self, reason: str, error: Exception | None, healthy: bool) -> float:
        """Seconds until the next round."""
        if healthy:
            self._failures = 0
        elif self.trouble in ("network", "missing", "denied") and self.trouble != reason:
            # The server is back, or the resource is there, so the length of the absence is no measure any more.
            self._failures = min(self._failures, 1)
        self.trouble = reason
        if reason == "verify":
            return 0.0
        if healthy and reason in ("closed", "idle"):
            return self._rng.uniform(0.0, BACKOFF_FIRST_S)
        limit_s = {"network": UNREACHABLE_LIMIT_S, "missing": MISSING_LIMIT_S, "denied": MISSING_LIMIT_S}.get(reason, BACKOFF_LIMIT_S)
        delay_s = min(BACKOFF_FIRST_S * 2.0 ** min(self._failures, 20) * self._rng.uniform(0.8, 1.2), limit_s)
        self._failures += 1
        if isinstance(error, ApiError) and error.retry_after_s:
            delay_s = max(delay_s, min(error.retry_after_s, 2 * BACKOFF_LIMIT_S))
        is_lasting = reason in LASTING and not self._may_do_without(error)
        # At the first, second, fourth, eighth … failure in a row, so that a long outage fills no log.
        if error is not None and self._failures & (self._failures - 1) == 0 and not (reason == "missing" and self.missing):
            extra = {"resource": self._kind.resource, "reason": reason, "error": str(error), "retry_s": round(delay_s, 2)}
            log.log(logging.DEBUG if self._told and is_lasting else logging.WARNING, "watch interrupted", extra=extra)
        self.missing = reason == "missing"
        if self._told and (is_lasting or isinstance(error, ApiError)):
            # Any other answer of the server ends what was told before: an outage, say.
            self._told(self._kind.resource, error if is_lasting else None)
        return delay_s

    async def renew(self, since: float) -> None:
        """Returns when the store holds a list that was begun at `since` (loop time) or later, and begins one if need be."""
        while self._listed_at < since:
            if self._began < since:
                self._resume = False
                self._round_scope.cancel()
            await self._listed.wait()

    async def _bounded_round(self) -> tuple[str, Exception | None]:
        """A round that ends when a new list is due."""
        with anyio.CancelScope() as self._round_scope:
            if self._resume:
                self._round_scope.deadline = self._verify_at
            else:
                self._began = anyio.current_time()
            return await self._round()
        self._resume = False
        return "verify", None

    def _has_listed(self) -> None:
        """The list of this round is complete, or there is none to be had."""
        self._listed_at = self._began
        listed, self._listed = self._listed, anyio.Event()
        listed.set()

    async def _round(self) -> tuple[str, Exception | None]:
        """One stream, with a list before it if need be. Returns why it ended."""
        listing = not self._resume
        try:
            if listing and self._watch_list and not self._list_next:
                await self._watch(_Snapshot())
            else:
                if listing:
                    await self._list()
                await self._watch(None)
        except (Gone, _Relist, LineTooLong) as error:
            self._resume = False
            # A line that is too long would come again in a WatchList; a list has no lines.
            self._list_next = self._list_next or isinstance(error, LineTooLong)
            reason = error.reason if isinstance(error, _Relist) else "expired" if isinstance(error, Gone) else "long_line"
            return reason, error
        except NotFound as error:
            # The objects known so far stay: a starting API server does not know its custom resources yet either.
            self._do_without(error)
            return "missing", error
        except (Invalid, BadRequest) as error:
            # Servers without WatchList say so in this way, however the round began it is lists from now on.
            self._watch_list = False
            return "refused", error
        except Forbidden as error:
            self._do_without(error)
            return "denied", error
        except ApiError as error:
            return "denied" if isinstance(error, Unauthorized) else "busy", error
        except StreamIdle as error:
            return "idle", error
        except TransportError as error:
            return "network", error
        return "closed", None

    def _may_do_without(self, error: Exception | None) -> bool:
        return self._kind.group in OPTIONAL_GROUPS and isinstance(error, (NotFound, Forbidden))

    def _do_without(self, error: ApiError) -> None:
        """Nobody waits for an optional resource that is not served; should that change, its objects come in as usual."""
        if not self._may_do_without(error):
            return
        self._has_listed()
        if not self.synced.is_set():
            log.warning("resource not available, counted as empty", extra={"resource": self._kind.resource, "error": str(error)})
            self.synced.set()

    async def _watch(self, snapshot: _Snapshot[T] | None) -> None:
        """Streams changes; with a snapshot, the objects first."""
        query = {"watch": "true", "allowWatchBookmarks": "true", "timeoutSeconds": str(self._rng.randint(300, 600)), **self._selectors}
        if snapshot is None:
            query["resourceVersion"] = str(self._store.seen_rv)
        else:
            query |= {"sendInitialEvents": "true", "resourceVersionMatch": "NotOlderThan"}
        accept = accept_for(self._kind.resource)
        async with self._transport.stream(self._path, query=query, accept=accept, inactivity_s=self._inactivity_s) as lines:
            self.missing = False
            if self._told:
                self._told(self._kind.resource, None)
            # If this stream ends before its objects are complete, for whatever reason, a list is tried next.
            self._list_next = snapshot is not None
            count = 0
            async for line in lines:
                snapshot = self._line(line, snapshot)
                count += 1
                if count % YIELD_EVERY == 0:
                    await anyio.lowlevel.checkpoint()

    def _line(self, line: bytes, snapshot: _Snapshot[T] | None) -> _Snapshot[T] | None:
        """Takes in one event; returns the snapshot as long as it is incomplete."""
        try:
            event = EVENTS.decode(line)
        except UNDECODABLE as error:
            raise _Relist("bad_line", f"{self._path}: a line is no watch event: {type(error).__name__}") from None
        if event.type in ("ADDED", "MODIFIED", "DELETED"):
            self._object(event.type, event.object, snapshot)  # pyright: ignore[reportArgumentType] - narrowing by `in` is not understood
        elif event.type == "BOOKMARK":
            return self._bookmark(event.object, snapshot)
        elif event.type == "ERROR":
            error = api_error(0, event.object, method="GET", path=self._path)
            raise _Relist("expired" if isinstance(error, Gone) else "error_event", str(error))
        else:
            self._skip("unknown_event", f"type {event.type[:50]!r}")
        return snapshot

    def _bookmark(self, raw: msgspec.Raw, snapshot: _Snapshot[T] | None) -> _Snapshot[T] | None:
        try:
            metadata = PARTIALS.decode(raw).metadata
            rv = int(metadata.resource_version)
        except UNDECODABLE as error:
            raise _Relist("bad_line", f"{self._path}: unreadable bookmark: {type(error).__name__}") from None
        if snapshot is None:
            self._store.advance(rv)
        elif (metadata.annotations or {}).get(INITIAL_END) == "true":
            self._complete(snapshot, rv)
            return None
        return snapshot

    def _complete(self, snapshot: _Snapshot[T], rv: int) -> None:
        self._store.replace(snapshot.objects.values(), rv, keep=snapshot.unreadable)
        self._resume = True
        self._list_next = False
        self.missing = False
        self._metrics.listed(self._kind.resource, len(snapshot.objects))
        self.synced.set()
        self._verify_at = anyio.current_time() + VERIFY_S * self._rng.uniform(0.8, 1.2) + VERIFY_S_PER_OBJECT * len(snapshot.objects)
        self._round_scope.deadline = self._verify_at
        self._has_listed()

    def _object(self, type_: EventType, raw: msgspec.Raw, snapshot: _Snapshot[T] | None) -> None:
        obj = self._decode(raw)
        if isinstance(obj, Meta):
            self._unreadable(type_, obj, snapshot)
        elif snapshot is None:
            self._store.apply(type_, obj)
        elif type_ == "DELETED":
            snapshot.objects.pop(Key.of(obj), None)
        else:
            snapshot.objects[Key.of(obj)] = obj

    def _unreadable(self, type_: EventType, metadata: Meta, snapshot: _Snapshot[T] | None) -> None:
        """The object stays as it was known; its deletion is understood all the same."""
        key = Key(metadata.namespace, metadata.name)
        if snapshot is not None:
            snapshot.objects.pop(key, None)
            (snapshot.unreadable.discard if type_ == "DELETED" else snapshot.unreadable.add)(key)
        elif metadata.resource_version.isdecimal():
            rv = int(metadata.resource_version)
            if type_ == "DELETED":
                self._store.remove(key, rv)
            else:
                self._store.advance(rv)

    def _decode(self, raw: msgspec.Raw) -> T | Meta:
        """The object, or what identifies it where the model cannot read it."""
        try:
            obj: T = self._store.model.decode(raw)
            version(obj)
        except UNDECODABLE as error:
            try:
                metadata = PARTIALS.decode(raw).metadata
            except UNDECODABLE:
                metadata = Meta()
            text = describe_decode_error(error)
            if self._skip("undecodable", f"{metadata.namespace}/{metadata.name}: {text}"):
                self._tell_unreadable(Ref(self._kind, metadata.namespace, metadata.name, metadata.uid), text)
            return metadata
        return obj

    def _skip(self, reason: str, what: str) -> bool:
        """Counts each, logs each only once; True for the first time."""
        self._metrics.skipped(self._kind.resource, reason)
        if what not in self._reported and len(self._reported) < REMEMBERED:
            self._reported.add(what)
            log.error("left out", extra={"resource": self._kind.resource, "reason": reason, "what": what})
            return True
        return False

    async def _list(self) -> None:
        """A consistent list (no resourceVersion given), page by page; in one piece if a page token expires on the way."""
        snapshot, rv, query = _Snapshot[T](), "", {"limit": str(PAGE_SIZE), **self._selectors}
        accept = accept_for(self._kind.resource, "List")
        while True:
            try:
                body = await self._transport.call("GET", self._path, query=query, accept=accept, timeout_s=LIST_TIMEOUT_S)
            except Gone:
                if "continue" not in query:
                    raise
                snapshot, rv, query = _Snapshot[T](), "", dict(self._selectors)
                continue
            try:
                page = LISTS.decode(body)
                rv = rv or str(int(page.metadata.resource_version))
            except UNDECODABLE as error:
                raise _Relist("bad_line", f"{self._path}: the answer is no list: {type(error).__name__}") from None
            for count, raw in enumerate(page.items or (), 1):
                self._object("ADDED", raw, snapshot)
                if count % YIELD_EVERY == 0:
                    await anyio.lowlevel.checkpoint()
            if not page.metadata.next:
                break
            query["continue"] = page.metadata.next
        self._complete(snapshot, int(rv))
