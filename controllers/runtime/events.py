"""Writes Kubernetes events in the background. Whoever emits never waits and never fails; under overload events are dropped and counted.

Equal events (object, reason, message) are one Event object whose count grows, also while they still wait to be written.
"""

import hashlib
import logging
from collections import OrderedDict
from dataclasses import dataclass
from datetime import datetime
from typing import Literal, NamedTuple

import anyio
import msgspec

from api.core import Event
from api.plan import Clock, Manifest, Ref
from api.timestamps import rfc3339
from controllers.runtime.apply import Caller
from controllers.runtime.errors import ApiError, NotFound, NotLeader, TransportError
from controllers.runtime.metrics import Metrics
from controllers.runtime.ratelimit import TokenBucket

__all__ = ("EventRecorder",)

_LOG = logging.getLogger(__name__)
_MESSAGE_LIMIT = 1024
_REMEMBERED = 4096


class _What(NamedTuple):
    """Events that agree in this are one."""

    ref: Ref
    reason: str
    message: str
    type: str


@dataclass(slots=True)
class _Waiting:
    """Occurrences that are not written yet."""

    first: datetime
    last: datetime
    count: int = 1


@dataclass(slots=True)
class _Written:
    """The Event object that stands for a _What."""

    name: str
    count: int


class EventRecorder:
    """`component` is shown as the source. `limit` bounds the events that wait; `bucket` the rate of writing (20/s, burst 200)."""

    def __init__(
        self,
        transport: Caller,
        component: str,
        clock: Clock,
        metrics: Metrics | None = None,
        *,
        instance: str = "",
        limit: int = 1000,
        bucket: TokenBucket | None = None,
    ) -> None:
        self._transport = transport
        self._component = component
        self._instance = instance or component
        self._clock = clock
        self._metrics = metrics
        self._limit = limit
        self._bucket = bucket or TokenBucket(20.0, 200.0)
        self._waiting: OrderedDict[_What, _Waiting] = OrderedDict()
        self._written: OrderedDict[_What, _Written] = OrderedDict()
        self._news = anyio.Event()
        self._writing = anyio.Lock()

    def emit(self, ref: Ref, reason: str, message: str, type: Literal["Normal", "Warning"] = "Normal") -> None:
        """Queues one occurrence of an event on `ref`."""
        what, now = _What(ref, reason, message[:_MESSAGE_LIMIT], type), self._clock.now()
        waiting = self._waiting.get(what)
        if waiting is not None:
            waiting.count, waiting.last = waiting.count + 1, now
        elif len(self._waiting) >= self._limit:
            self._dropped("overload")
        else:
            self._waiting[what] = _Waiting(now, now)
            self._news.set()

    async def run(self) -> None:
        """Writes what is queued until cancelled."""
        while True:
            await self.flush()
            self._news = anyio.Event()
            await self._news.wait()

    async def flush(self) -> None:
        """Writes what is queued now, at the pace of the bucket. Nothing is being written when it returns, by `run` neither."""
        async with self._writing:
            while self._waiting:
                delay_s = self._bucket.reserve(self._clock.monotonic())
                if delay_s > 0:
                    await anyio.sleep(delay_s)
                what, waiting = self._waiting.popitem(last=False)
                try:
                    await self._write(what, waiting)
                except (ApiError, TransportError, NotLeader) as error:
                    self._dropped(type(error).__name__)
                    _LOG.debug("event not written", extra={"object": str(what.ref), "reason": what.reason, "error": str(error)})

    async def _write(self, what: _What, waiting: _Waiting) -> None:
        written = self._written.get(what)
        if written is not None:
            try:
                await self._add_to(what, written, waiting)
            except NotFound:
                del self._written[what]  # events expire after an hour
            else:
                return
        await self._post(what, waiting)

    async def _add_to(self, what: _What, written: _Written, waiting: _Waiting) -> None:
        written.count += waiting.count
        self._written.move_to_end(what)
        body = msgspec.json.encode({"count": written.count, "lastTimestamp": rfc3339(waiting.last)})
        path = Event.KIND.path(_namespace(what.ref), written.name)
        await self._transport.call("PATCH", path, body=body, content_type="application/merge-patch+json")
        self._count("patch")

    async def _post(self, what: _What, waiting: _Waiting) -> None:
        written = _Written(_name(what, waiting.first), waiting.count)
        body = msgspec.json.encode(self._manifest(what, waiting, written.name))
        await self._transport.call("POST", Event.KIND.path(_namespace(what.ref)), body=body)
        self._written[what] = written
        if len(self._written) > _REMEMBERED:
            self._written.popitem(last=False)
        self._count("create")

    def _manifest(self, what: _What, waiting: _Waiting, name: str) -> Manifest:
        ref = what.ref
        involved = {
            "apiVersion": ref.kind.api_version,
            "kind": ref.kind.kind,
            "namespace": ref.namespace,
            "name": ref.name,
            "uid": ref.uid,
        }
        return {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"name": name, "namespace": _namespace(ref)},
            "involvedObject": {field: value for field, value in involved.items() if value},
            "reason": what.reason,
            "message": what.message,
            "type": what.type,
            "count": waiting.count,
            "firstTimestamp": rfc3339(waiting.first),
            "lastTimestamp": rfc3339(waiting.last),
            "source": {"component": self._component},
            "reportingComponent": self._component,
            "reportingInstance": self._instance,
        }

    def _dropped(self, cause: str) -> None:
        if self._metrics is not None:
            self._metrics.events_dropped.labels(cause).inc()

    def _count(self, verb: str) -> None:
        if self._metrics is not None:
            self._metrics.events_written.labels(verb).inc()


def _namespace(ref: Ref) -> str:
    """Events on cluster-scoped objects live in `default`."""
    return ref.namespace or "default"


def _name(what: _What, first: datetime) -> str:
    """Unique per event and first occurrence, within the length limit of names."""
    text = "\0".join((what.ref.uid, what.ref.name, what.reason, what.message, what.type, first.isoformat()))
    return f"{what.ref.name[:200].rstrip('.-')}.{hashlib.sha256(text.encode()).hexdigest()[:16]}"
