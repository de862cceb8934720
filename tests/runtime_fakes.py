"""Stand-ins for what the runtime talks to: a clock that moves by hand, a transport that answers from a script, caches as dictionaries."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any, Literal

import anyio
import msgspec

from api.core import Pod, PodSpec
from api.kinds import Kind
from api.meta import ObjectMeta
from api.plan import Key, Object, Ref

__all__ = ("Call", "FakeCaches", "FakeRecorder", "FakeTransport", "HandClock", "eventually", "pod", "ref_of", "seeded")

EPOCH = datetime(2026, 1, 1, tzinfo=UTC)


class HandClock:
    """Moves only when told to."""

    def __init__(self) -> None:
        self.t = 1000.0

    def now(self) -> datetime:
        return EPOCH + timedelta(seconds=self.t)

    def monotonic(self) -> float:
        return self.t

    def advance(self, seconds: float) -> None:
        self.t += seconds


@dataclass(frozen=True)
class Call:
    """One request as the transport saw it; `body` is decoded."""

    method: str
    path: str
    body: Any
    content_type: str
    query: Mapping[str, str] = field(default_factory=dict[str, str])
    accept: str = "application/json"
    timeout_s: float = 30.0


Answer = Callable[[Call], Awaitable[Any]]


class FakeTransport:
    """Records calls and answers them with `answer`: what it returns is encoded, what it raises is raised."""

    def __init__(self, answer: Answer | None = None) -> None:
        self.calls: list[Call] = []
        self.running = 0
        self.most_running = 0
        self._answer = answer

    async def call(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        body: bytes | None = None,
        content_type: str = "application/json",
        accept: str = "application/json",
        timeout_s: float = 30.0,
    ) -> bytes:
        call = Call(method, path, msgspec.json.decode(body) if body else None, content_type, dict(query or {}), accept, timeout_s)
        self.calls.append(call)
        self.running += 1
        self.most_running = max(self.most_running, self.running)
        try:
            answer = await self._answer(call) if self._answer is not None else {"metadata": {"resourceVersion": "7"}}
        finally:
            self.running -= 1
        return msgspec.json.encode(answer)


class FakeRecorder:
    """Keeps events."""

    def __init__(self) -> None:
        self.events: list[tuple[Ref, str, str, str]] = []

    def emit(self, ref: Ref, reason: str, message: str, type: Literal["Normal", "Warning"] = "Normal") -> None:
        self.events.append((ref, reason, message, type))


class FakeCaches:
    """Caches by kind: what they have seen, what they hold, and what a live read would find."""

    def __init__(self, *kinds: Kind) -> None:
        self.seen: dict[Kind, int] = dict.fromkeys(kinds, 0)
        self.held: dict[tuple[Kind, Key], Object] = {}
        self.live: dict[tuple[Kind, Key], Object] = {}
        self.live_reads: list[tuple[Kind, Key]] = []

    def seen_rv(self, kind: Kind) -> int | None:
        return self.seen.get(kind)

    def find(self, kind: Kind, key: Key) -> Object | None:
        return self.held.get((kind, key))

    async def live_get(self, kind: Kind, key: Key) -> Object | None:
        self.live_reads.append((kind, key))
        return self.live.get((kind, key))


def pod(name: str = "p", *, uid: str = "u", rv: str = "1", node: str = "", deleting: bool = False) -> Pod:
    """A pod in namespace ns."""
    deleted_at = EPOCH if deleting else None
    meta = ObjectMeta(name=name, namespace="ns", uid=uid, resource_version=rv, deletion_timestamp=deleted_at)
    return Pod(metadata=meta, spec=PodSpec(node_name=node))


def ref_of(name: str = "p", uid: str = "u") -> Ref:
    """The pod `name` of namespace ns."""
    return Ref(Pod.KIND, "ns", name, uid)


def seeded(seed: int = 1) -> Random:
    """A random source that repeats itself."""
    return Random(seed)  # noqa: S311 - jitter, not secrets


async def eventually(condition: Callable[[], bool], within_s: float = 5.0) -> None:
    """Lets other tasks run until the condition holds."""
    with anyio.fail_after(within_s):
        while not condition():
            await anyio.lowlevel.checkpoint()
