"""Own writes that the caches do not show yet. A key is not looked at again until they do, so no plan is made from a past it has changed.

After a write the resourceVersion that the server answered is kept per key and life (uid) of the key's object; the key waits until the cache
of the written kind has passed it. Where the answer has no resourceVersion (deletes, binds) the cached object itself tells. A write whose
outcome is unknown, and one that stays invisible for `limit_s`, cost one live read; then the key continues. Names are deterministic and
writes carry preconditions, so continuing is safe; waiting only saves work and noise.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, Protocol, TypeAlias

from api.kinds import Kind
from api.plan import Clock, Key, Object, Ref
from controllers.runtime.metrics import Metrics

__all__ = ("CacheState", "Expectations")


class CacheState(Protocol):
    """What expectations ask of the caches, by kind."""

    def seen_rv(self, kind: Kind) -> int | None:
        """The newest resourceVersion that the cache of the kind has seen; None when the kind is not cached."""
        ...

    def find(self, kind: Kind, key: Key) -> Object | None:
        """The cached object."""
        ...

    async def live_get(self, kind: Kind, key: Key) -> Object | None:
        """The object as the API server has it now; None when it does not exist. Raises what the transport raises."""
        ...


Cause: TypeAlias = Literal["late", "unknown"]


@dataclass(frozen=True, slots=True)
class _Pending:
    """One write: what it was about, the test that the cache shows it, since when we wait, and when to stop waiting (monotonic)."""

    ref: Ref
    is_seen: Callable[[CacheState], bool]
    since: float
    until: float
    cause: Cause = "late"


@dataclass(slots=True)
class _Life:
    """Pending writes of one life of a key's object."""

    uid: str
    pending: list[_Pending]


class Expectations:
    """See the module. `first_poll_s` and `longest_poll_s` bound the waits that `behind` proposes."""

    def __init__(
        self,
        caches: CacheState,
        clock: Clock,
        metrics: Metrics | None = None,
        *,
        limit_s: float = 30.0,
        first_poll_s: float = 0.01,
        longest_poll_s: float = 1.0,
    ) -> None:
        self._caches = caches
        self._clock = clock
        self._metrics = metrics
        self._limit_s = limit_s
        self._first_poll_s = first_poll_s
        self._longest_poll_s = longest_poll_s
        self._lives: dict[Key, _Life] = {}

    def wrote(self, key: Key, ref: Ref, resource_version: str, uid: str = "") -> None:
        """The server stored `ref` at this resourceVersion for the key `key`, whose object has `uid` ("" when it does not matter)."""
        rv = _number(resource_version)
        if rv is not None:
            self._expect(key, uid, ref, lambda caches: (caches.seen_rv(ref.kind) or 0) >= rv)

    def deleted(self, key: Key, ref: Ref, uid: str = "") -> None:
        """The server accepted the deletion of the life `ref` names; seen when the cache has it no more, or has it as being deleted."""

        def is_seen(caches: CacheState) -> bool:
            found = caches.find(ref.kind, ref.key)
            return found is None or found.metadata.deleting or (ref.uid != "" and found.metadata.uid != ref.uid)

        self._expect(key, uid, ref, is_seen)

    def bound(self, key: Key, ref: Ref, uid: str = "") -> None:
        """The server bound the pod `ref`; seen when the cached pod has a node, or is another life."""

        def is_seen(caches: CacheState) -> bool:
            found: Any = caches.find(ref.kind, ref.key)
            return found is None or found.metadata.uid != ref.uid or bool(found.spec.node_name)

        self._expect(key, uid, ref, is_seen)

    def unknown(self, key: Key, ref: Ref, uid: str = "") -> None:
        """A write to `ref` may or may not have been committed: demands a live read before the key continues."""
        now = self._clock.monotonic()
        self._add(key, uid, _Pending(ref, lambda _: False, now, now, "unknown"))

    def behind(self, key: Key, uid: str = "") -> float | None:
        """None when the caches show all own writes. Otherwise seconds until it is worth asking again; 0.0 demands `settle`.

        The proposed waits double (as long again as has been waited), because a change that only we made may wake nobody.
        """
        life = self._lives.get(key)
        if life is None:
            return None
        if uid and life.uid and life.uid != uid:
            self.forget(key)
            return None
        now = self._clock.monotonic()
        life.pending = [p for p in life.pending if not self._is_over(p, now)]
        if not life.pending:
            self.forget(key)
            return None
        if any(p.until <= now for p in life.pending):
            return 0.0
        waited_s = now - min(p.since for p in life.pending)
        left_s = min(p.until for p in life.pending) - now
        return min(left_s, max(self._first_poll_s, min(waited_s, self._longest_poll_s)))

    async def settle(self, key: Key) -> None:
        """Reads live what is overdue. An unknown write becomes the wait for what the server has; a late one is given up.

        Raises what the read raises; the demand then stays.
        """
        now = self._clock.monotonic()
        life = self._lives.get(key)
        for pending in [p for p in life.pending if p.until <= now] if life is not None else ():
            live = await self._caches.live_get(pending.ref.kind, pending.ref.key)
            if self._metrics is not None:
                self._metrics.expectation_live_reads.labels(pending.ref.kind.kind, pending.cause).inc()
            if life is not None and pending in life.pending:
                life.pending.remove(pending)
            if pending.cause == "unknown" and life is not None:
                self._after_unknown(key, life.uid, pending.ref, live)

    def cached_version(self, ref: Ref) -> str:
        """resourceVersion of the cached object; "" when the cache does not have it."""
        cached = self._caches.find(ref.kind, ref.key)
        return cached.metadata.resource_version if cached is not None else ""

    def forget(self, key: Key) -> None:
        """Drops everything about the key."""
        self._lives.pop(key, None)

    def _after_unknown(self, key: Key, uid: str, ref: Ref, live: Object | None) -> None:
        if live is None:
            self.deleted(key, ref, uid)
        else:
            self.wrote(key, ref, live.metadata.resource_version, uid)

    def _expect(self, key: Key, uid: str, ref: Ref, is_seen: Callable[[CacheState], bool]) -> None:
        now = self._clock.monotonic()
        if self._caches.seen_rv(ref.kind) is not None and not is_seen(self._caches):
            self._add(key, uid, _Pending(ref, is_seen, now, now + self._limit_s))

    def _add(self, key: Key, uid: str, pending: _Pending) -> None:
        if self._caches.seen_rv(pending.ref.kind) is None:
            return
        life = self._lives.get(key)
        if life is None or (uid and life.uid and life.uid != uid):
            life = self._lives[key] = _Life(uid, [])
        life.pending.append(pending)

    def _is_over(self, pending: _Pending, now: float) -> bool:
        seen = pending.is_seen(self._caches)
        if seen and self._metrics is not None:
            self._metrics.expectations_wait.observe(now - pending.since)
        return seen


def _number(resource_version: str) -> int | None:
    """resourceVersions compare as unbounded integers."""
    return int(resource_version) if resource_version.isascii() and resource_version.isdigit() else None
