"""Leader election by a Lease of coordination.k8s.io: at most one process works, the others keep their caches warm.

Deadlines use the monotonic clock only: a lease of somebody else expires when it was not seen to change for its duration, whatever times are
written in it. On doubt the order is: close the fence, cancel the work, wait for its end, then release or give up.
"""

import logging
import os
import socket
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import datetime
from random import Random

import anyio
import msgspec

from api.core import Lease
from api.plan import Clock, Manifest
from controllers.runtime.apply import Caller
from controllers.runtime.errors import AlreadyExists, ApiError, Conflict, NotFound, TransportError
from controllers.runtime.fence import LeaseFence
from controllers.runtime.metrics import Metrics

__all__ = ("LeaderElector", "LeadershipLost", "Timing", "identity")

_LOG = logging.getLogger(__name__)
_JITTER = 0.2


class LeadershipLost(Exception):
    """The lease could not be kept. All work has ended."""


@dataclass(frozen=True, slots=True)
class Timing:
    """Seconds. duration: how long others respect a lease that is not renewed. renew_deadline: after how long without a renewal the holder
    gives up. retry: between tries, and the longest that one try may take."""

    duration_s: float = 15.0
    renew_deadline_s: float = 10.0
    retry_s: float = 2.0


def identity(rng: Random) -> str:
    """host_pid_random: tells apart processes on one host and restarts of one process."""
    return f"{socket.gethostname()}_{os.getpid()}_{rng.getrandbits(32):08x}"


@dataclass(slots=True)
class _Seen:
    """The lease as last read or written, and since when (monotonic) it has not changed."""

    lease: Lease
    since: float


class LeaderElector:
    """Competes for the lease `namespace/name` as `holder`. `epoch`: the latest term that this process knows of, 0 for none.

    `transport` is used for the lease only and has no fence, so that a busy client or a closed fence does not stop renewals. `told` hears of
    what keeps the lease from being read and written, and of the end of that (None); without it the log does.
    """

    def __init__(
        self,
        transport: Caller,
        fence: LeaseFence,
        clock: Clock,
        rng: Random,
        *,
        namespace: str,
        name: str,
        holder: str,
        epoch: int = 0,
        timing: Timing | None = None,
        metrics: Metrics | None = None,
        told: Callable[[str, Exception | None], None] | None = None,
    ) -> None:
        self._transport = transport
        self._fence = fence
        self._clock = clock
        self._rng = rng
        self._namespace = namespace
        self._name = name
        self._holder = holder
        self._timing = timing or Timing()
        self._metrics = metrics
        self._told = told
        self._seen: _Seen | None = None
        self._epoch = epoch
        self._renew_started = 0.0
        self._is_leading = False

    @property
    def is_leading(self) -> bool:
        """True from the first write of the lease to its loss or release."""
        return self._is_leading

    @property
    def epoch(self) -> int:
        """Number of the latest term of this process."""
        return self._epoch

    async def run(self, lead: Callable[[], Awaitable[None]], stop: anyio.Event) -> None:
        """Waits for the lease, then runs `lead` while renewing it, then releases it.

        Returns when `lead` returns, or when `stop` is set before the lease was won. Raises LeadershipLost after `lead` was cancelled.
        """
        if not await self._acquire(stop):
            return
        self._begin_term()
        work, renewal = anyio.CancelScope(), anyio.CancelScope()
        reasons: list[str] = []

        async def keep() -> None:
            with renewal:
                reasons.append(await self._keep())
                self._fence.close()
                work.cancel()

        try:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(keep)
                with work:
                    await lead()
                renewal.cancel()
        finally:
            self._end_term("lost" if reasons else "ended")
            if not reasons:
                await self._release()
        if reasons:
            raise LeadershipLost(reasons[0])

    async def _acquire(self, stop: anyio.Event) -> bool:
        while not stop.is_set():
            if await self._bounded_attempt(self._timing.retry_s):
                return True
            with anyio.move_on_after(self._pause_s()):
                await stop.wait()
        return False

    def _pause_s(self) -> float:
        """Until the next look at the lease of somebody else: no later than its end."""
        pause_s = self._timing.retry_s * (1 + self._rng.random() * _JITTER)
        if self._seen is None:
            return pause_s
        left_s = self._expires_at(self._seen) - self._clock.monotonic()
        return min(pause_s, left_s) if left_s > 0.0 else pause_s

    async def _keep(self) -> str:
        """Renews until that has failed for too long or the lease is somebody else's; returns why."""
        while True:
            await anyio.sleep(max(0.0, min(self._timing.retry_s, self._left_s())))
            left_s = self._left_s()
            if left_s <= 0:
                return "not renewed in time"
            if await self._bounded_attempt(min(self._timing.retry_s, left_s)) is False:
                holder = self._seen.lease.spec.holder_identity if self._seen is not None else None
                if holder != self._holder:
                    return "the lease was taken or deleted"

    def _left_s(self) -> float:
        return self._renew_started + self._timing.renew_deadline_s - self._clock.monotonic()

    async def _bounded_attempt(self, limit_s: float) -> bool | None:
        """An attempt that ends in time; None when there was no answer by then."""
        with anyio.move_on_after(limit_s):
            return await self._attempt()
        self._tell(TransportError(f"lease {self._namespace}/{self._name}: no answer within {limit_s:.1f} s", "no answer in time"))
        return None

    def _tell(self, error: ApiError | TransportError | None) -> None:
        if self._told is not None:
            self._told(f"lease {self._namespace}/{self._name}", error)
        elif error is not None:
            _LOG.warning("lease request failed", extra={"lease": self._name, "error": str(error)})

    async def _attempt(self) -> bool:
        """One try to take or renew the lease; False when it failed or somebody else holds it.

        Always reads first: so a change by hand is noticed, and a write of unknown outcome is settled by who holds the lease now.
        """
        started = self._clock.monotonic()
        try:
            held = await self._read()
            if not self._may_take(held):
                self._tell(None)
                return False
            await self._write(held)
        except (Conflict, AlreadyExists):
            self._tell(None)
            return False
        except (ApiError, TransportError) as error:
            self._tell(error)
            return False
        self._tell(None)
        self._renew_started = started
        self._fence.renewed(started, self._epoch)
        return True

    def _may_take(self, held: Lease | None) -> bool:
        """Whoever leads keeps only what is its own; whoever follows takes what is free or has expired."""
        if held is None or self._seen is None:
            return not self._is_leading
        holder = held.spec.holder_identity
        if holder == self._holder:
            return True
        if self._is_leading:
            return False
        return not holder or self._clock.monotonic() >= self._expires_at(self._seen)

    def _expires_at(self, seen: _Seen) -> float:
        """When a lease that does not change may be taken (monotonic)."""
        return seen.since + float(seen.lease.spec.lease_duration_seconds or self._timing.duration_s)

    async def _read(self) -> Lease | None:
        try:
            lease = Lease.decode(await self._transport.call("GET", self._path(self._name), timeout_s=self._timing.retry_s))
        except NotFound:
            self._seen = None
            return None
        if self._seen is None or self._seen.lease.metadata.resource_version != lease.metadata.resource_version:
            self._seen = _Seen(lease, self._clock.monotonic())
        return lease

    async def _write(self, held: Lease | None) -> None:
        now = self._clock.now()
        epoch = self._next_epoch(held)
        same_term = held is not None and held.spec.holder_identity == self._holder
        acquired = held.spec.acquire_time if held is not None and same_term else None
        spec = self._spec(self._holder, epoch, acquired or now, now)
        method, path = ("POST", self._path()) if held is None else ("PUT", self._path(self._name))
        answer = await self._send(method, path, held, spec)
        self._seen = _Seen(Lease.decode(answer), self._clock.monotonic())
        self._epoch = epoch

    def _next_epoch(self, held: Lease | None) -> int:
        """Transitions counted by the lease, and never fewer than this process has seen, also when the lease was deleted in between."""
        stored = held.spec.lease_transitions or 0 if held is not None else 0
        if held is not None and held.spec.holder_identity == self._holder:
            return max(stored, self._epoch)
        return max(stored, self._epoch) + 1

    async def _release(self) -> None:
        """Lets the next process start at once. Runs although we are being cancelled, for at most one retry period."""
        with anyio.move_on_after(self._timing.retry_s, shield=True):
            try:
                held = await self._read()
                if held is None or held.spec.holder_identity != self._holder:
                    return
                now = self._clock.now()
                spec = self._spec("", self._epoch, held.spec.acquire_time or now, now) | {"leaseDurationSeconds": 1}
                await self._send("PUT", self._path(self._name), held, spec)
            except (ApiError, TransportError) as error:
                _LOG.warning("lease not released", extra={"lease": self._name, "error": str(error)})

    async def _send(self, method: str, path: str, held: Lease | None, spec: Manifest) -> bytes:
        metadata: Manifest = {"name": self._name, "namespace": self._namespace}
        if held is not None:
            # Labels and annotations that somebody put on the lease survive the replacement.
            metadata |= {"resourceVersion": held.metadata.resource_version, "uid": held.metadata.uid}
            metadata |= {"labels": held.metadata.labels, "annotations": held.metadata.annotations}
        body = {"apiVersion": Lease.KIND.api_version, "kind": Lease.KIND.kind, "metadata": metadata, "spec": spec}
        return await self._transport.call(method, path, body=msgspec.json.encode(body), timeout_s=self._timing.retry_s)

    def _spec(self, holder: str, epoch: int, acquired: datetime, renewed: datetime) -> Manifest:
        return {
            "holderIdentity": holder,
            "leaseDurationSeconds": max(1, round(self._timing.duration_s)),
            "leaseTransitions": epoch,
            "acquireTime": _micro_time(acquired),
            "renewTime": _micro_time(renewed),
        }

    def _path(self, name: str = "") -> str:
        return Lease.KIND.path(self._namespace, name)

    def _begin_term(self) -> None:
        self._is_leading = True
        _LOG.info("leading", extra={"lease": self._name, "holder": self._holder, "epoch": self._epoch})
        self._count("begun", 1)

    def _end_term(self, transition: str) -> None:
        self._fence.close()
        self._is_leading = False
        _LOG.info("not leading", extra={"lease": self._name, "transition": transition, "epoch": self._epoch})
        self._count(transition, 0)

    def _count(self, transition: str, status: int) -> None:
        if self._metrics is not None:
            self._metrics.leader_status.labels(self._name).set(status)
            self._metrics.leader_transitions.labels(self._name, transition).inc()


def _micro_time(moment: datetime) -> str:
    """metav1.MicroTime, which wants exactly six digits."""
    return moment.strftime("%Y-%m-%dT%H:%M:%S.%fZ")
