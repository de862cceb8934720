"""A running informer against a scripted server, for the tests of reflectors and informers."""

import asyncio
import random
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from typing import Any

import anyio

from api.core import Pod
from controllers.runtime.informer import Informer
from controllers.runtime.transport import Transport
from tests.unit.fakeapi import FakeApi, Stream, credentials, refusal, serve

PODS = "/api/v1/pods"
NO_WATCH_LIST = refusal(422, "Invalid", "sendInitialEvents is forbidden for watch unless the WatchList feature gate is enabled")


class Metrics:
    def __init__(self) -> None:
        self.rounds: list[str] = []
        self.lists: list[int] = []
        self.left_out: list[str] = []

    def round_ended(self, resource: str, reason: str) -> None:
        self.rounds.append(reason)

    def listed(self, resource: str, objects: int) -> None:
        self.lists.append(objects)

    def skipped(self, resource: str, reason: str) -> None:
        self.left_out.append(reason)


class World:
    """A served fake, a transport, one running informer, and the waits its reflector asked for (they take no time)."""

    def __init__(self, api: FakeApi, informer: Informer[Any], metrics: Metrics, delays: list[float], transport: Transport) -> None:
        self.api, self.informer, self.metrics, self.delays, self.transport = api, informer, metrics, delays, transport

    @property
    def names(self) -> list[str]:
        return sorted(p.metadata.name for p in self.informer.store.list())

    async def until(self, rv: int) -> None:
        assert await self.informer.wait_rv(rv, 2.0), f"seen_rv stays at {self.informer.store.seen_rv}; rounds {self.metrics.rounds}"


@asynccontextmanager
async def world(script: Callable[[FakeApi], None], model: type[Any] = Pod, **options: Any) -> AsyncGenerator[World]:
    delays: list[float] = []
    metrics = Metrics()

    async def sleep(seconds: float) -> None:
        delays.append(seconds)
        await asyncio.sleep(0.001)

    async with serve(FakeApi()) as api, Transport(credentials(api)) as transport:
        script(api)
        informer = Informer(transport, model, metrics=metrics, rng=random.Random(1), sleep=sleep, **options)  # noqa: S311
        async with anyio.create_task_group() as group:
            group.start_soon(informer.run)
            yield World(api, informer, metrics, delays, transport)
            group.cancel_scope.cancel()


def stream(*chunks: bytes | float, end: Any = "hang") -> Stream:
    return Stream(chunks, end=end)
