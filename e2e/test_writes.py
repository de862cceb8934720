"""The writing half of the runtime against a real API server: every operation, own-write expectations, events and the lease."""

import asyncio
import json
import random
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import anyio
import anyio.lowlevel
import pytest

from api.core import Event, Lease, Pod
from api.plan import Apply, ApplyStatus, Bind, Create, Delete, Emit, Key, Op, Outcome, PatchStatus, Plan, Ref, SetFinalizers, Ungate
from controllers.runtime.apply import Executor
from controllers.runtime.clock import SystemClock
from controllers.runtime.credentials import load_credentials
from controllers.runtime.events import EventRecorder
from controllers.runtime.expectations import Expectations
from controllers.runtime.fence import LeaseFence
from controllers.runtime.informer import Informer
from controllers.runtime.leader import LeaderElector, LeadershipLost, Timing
from controllers.runtime.manager import CachesByKind
from controllers.runtime.transport import Transport
from controllers.runtime.view import Caches
from hack.kube import ControlPlane, NodeSpec

GATES = ("example.com/one", "example.com/two")
KEY = Key("ns", "test")


async def until(condition: Callable[[], Awaitable[bool]]) -> None:
    """Asks again and again, for at most ten seconds."""
    with anyio.fail_after(10):
        while not await condition():  # noqa: ASYNC110 - a server has no event for us
            await anyio.sleep(0.05)


@dataclass
class World:
    """An executor with a pod informer in one namespace."""

    namespace: str
    transport: Transport
    caches: Caches
    expectations: Expectations
    recorder: EventRecorder
    executor: Executor

    async def run(self, op: Op) -> Outcome:
        return await self.executor.run(KEY, Plan(((op,),)))

    async def visible(self) -> None:
        """Waits until the cache shows all own writes."""
        with anyio.fail_after(10):
            while (wait_s := self.expectations.behind(KEY)) is not None:
                assert wait_s > 0, "the cache never showed an own write"
                await anyio.sleep(wait_s)

    async def get(self, name: str) -> dict[str, Any]:
        return json.loads(await self.transport.call("GET", Pod.KIND.path(self.namespace, name)))

    async def _is_done(self, op: Op) -> bool:
        return await self.run(op) == Outcome()

    async def made(self, name: str) -> Ref:
        """A new gated pod, visible in the cache."""
        # The namespace's service account comes a moment after the namespace.
        await until(lambda: self._is_done(create(self.namespace, name)))
        await self.visible()
        pod = self.caches.get(Pod, self.namespace, name)
        assert pod is not None
        return Ref.of(pod)


@pytest.fixture
async def world(control_plane: ControlPlane, two_nodes: tuple[NodeSpec, ...], namespace: str) -> AsyncGenerator[World]:
    clock, caches = SystemClock(), Caches()
    async with Transport(load_credentials(control_plane.kubeconfig)) as transport:
        informer = caches.add(Informer(transport, Pod, namespace))
        # A task group may not span the yield of a fixture.
        watching = asyncio.create_task(informer.run())
        await informer.wait_synced()
        expectations = Expectations(CachesByKind(caches), clock)
        recorder = EventRecorder(transport, "test", clock)
        executor = Executor(transport, "grovekeeper/test", expectations, recorder, clock)
        yield World(namespace, transport, caches, expectations, recorder, executor)
        watching.cancel()
        with suppress(asyncio.CancelledError):
            await watching


def create(namespace: str, name: str, index: str = "0", *others: str) -> Create:
    spec = {
        "schedulerName": "nobody",
        "containers": [{"name": "main", "image": "x"}],
        "schedulingGates": [{"name": gate} for gate in GATES],
        "terminationGracePeriodSeconds": 0,
    }
    metadata = {"name": name, "namespace": namespace, "labels": {"index": index}}
    return Create(Pod.KIND, {"metadata": metadata, "spec": spec}, match_labels=("index",), fallback_names=others)


async def test_a_create_repeated_is_done_and_a_foreign_name_is_stepped_over(world: World) -> None:
    ref = await world.made("p")
    assert await world.run(create(world.namespace, "p")) == Outcome()
    assert (await world.get("p"))["metadata"]["uid"] == ref.uid
    assert (await world.run(create(world.namespace, "p", "1"))).result == "blocked"
    assert await world.run(create(world.namespace, "p", "1", "q")) == Outcome()
    assert (await world.get("q"))["metadata"]["labels"] == {"index": "1"}


async def test_gates_go_one_by_one_and_a_bind_is_idempotent(world: World) -> None:
    ref = await world.made("p")
    assert (await world.run(Bind(ref, "plain-0"))).result in ("conflict", "blocked")
    assert await world.run(Ungate(ref, GATES[0])) == Outcome()
    assert (await world.get("p"))["spec"]["schedulingGates"] == [{"name": GATES[1]}]
    for _ in range(2):
        assert await world.run(Ungate(ref, GATES[1])) == Outcome()
    assert (await world.run(Bind(Ref(ref.kind, ref.namespace, ref.name, "00000000-dead"), "plain-0"))).result == "conflict"
    for _ in range(2):
        assert await world.run(Bind(ref, "plain-0")) == Outcome()
        await world.visible()
    other = await world.run(Bind(ref, "plain-1"))
    assert other.error == f"foreign bind: Pod {ref.key} is on node plain-0, not on plain-1"


async def test_status_of_a_core_kind_merges_with_that_of_others(world: World) -> None:
    ref = await world.made("p")
    for type_ in ("example.com/A", "example.com/B"):
        assert await world.run(PatchStatus(ref, {"conditions": [{"type": type_, "status": "True"}]})) == Outcome()
    found = {c["type"] for c in (await world.get("p"))["status"]["conditions"]}
    assert {"example.com/A", "example.com/B"} <= found


@pytest.mark.parametrize("verb", ["PatchStatus", "Ungate", "SetFinalizers", "Apply", "ApplyStatus", "Delete", "Bind"])
async def test_another_life_of_the_name_is_a_conflict_and_stays_as_it_is(world: World, verb: str) -> None:
    ref = await world.made("p")
    before = await world.get("p")
    stale = Ref(ref.kind, ref.namespace, ref.name, "00000000-dead")
    manifest = {"metadata": {"name": "p", "namespace": ref.namespace, "labels": {"a": "b"}}}
    ops: dict[str, Op] = {
        "PatchStatus": PatchStatus(stale, {"reason": "X"}),
        "Ungate": Ungate(stale, GATES[0]),
        "SetFinalizers": SetFinalizers(stale, ("example.com/hold",), before["metadata"]["resourceVersion"]),
        "Apply": Apply(ref.kind, manifest, stale.uid),
        "ApplyStatus": ApplyStatus(stale, {"reason": "X"}),
        "Delete": Delete(stale),
        "Bind": Bind(stale, "plain-0"),
    }
    outcome = await world.run(ops[verb])
    assert outcome.result == "conflict", outcome.error
    assert await world.get("p") == before


async def test_finalizers_and_deletes_need_the_life_and_version_they_were_decided_on(world: World) -> None:
    ref = await world.made("p")
    version = (await world.get("p"))["metadata"]["resourceVersion"]
    assert await world.run(SetFinalizers(ref, ("example.com/hold",), version)) == Outcome()
    assert (await world.run(SetFinalizers(ref, (), version))).result == "conflict"
    assert (await world.run(Delete(ref, version))).result == "conflict"
    assert (await world.run(Delete(Ref(ref.kind, ref.namespace, ref.name, "00000000-dead")))).result == "conflict"
    assert await world.run(Delete(ref)) == Outcome()
    await world.visible()
    version = (await world.get("p"))["metadata"]["resourceVersion"]
    assert await world.run(SetFinalizers(ref, (), version)) == Outcome()

    async def is_gone() -> bool:
        return world.caches.get(Pod, world.namespace, "p") is None

    await until(is_gone)
    for op in (Delete(ref), Ungate(ref, GATES[0]), PatchStatus(ref, {"reason": "X"})):
        assert await world.run(op) == Outcome()


async def test_events_are_accepted_and_counted(world: World) -> None:
    ref = await world.made("p")
    for _ in range(2):
        await world.run(Emit(ref, "Tested", "as planned", "Warning"))
        await world.recorder.flush()
    listed = json.loads(await world.transport.call("GET", Event.KIND.path(world.namespace)))
    [event] = [e for e in listed["items"] if e["reason"] == "Tested"]
    assert (event["count"], event["involvedObject"]["uid"], event["type"]) == (2, ref.uid, "Warning")


async def test_the_lease_is_taken_kept_released_and_lost_when_deleted(world: World) -> None:
    clock, path = SystemClock(), Lease.KIND.path(world.namespace, "one")
    timing = Timing(2.0, 1.0, 0.1)

    async def term(holder: str, lead: Callable[[], Awaitable[None]]) -> int:
        """One term of a new process; its epoch."""
        fence = LeaseFence(clock, lease_duration_s=2.0, request_budget_s=0.5)

        async def work() -> None:
            fence.check()
            await lead()
            fence.check()

        rng = random.Random(holder)  # noqa: S311 - jitter
        async with world.transport.sibling() as transport:
            elector = LeaderElector(transport, fence, clock, rng, namespace=world.namespace, name="one", holder=holder, timing=timing)
            await elector.run(work, anyio.Event())
            return elector.epoch

    async def remove() -> None:
        await world.transport.call("DELETE", path)
        await anyio.sleep_forever()

    # Longer than the lease lasts without renewal.
    assert await term("a", lambda: anyio.sleep(2.5)) == 1
    released = json.loads(await world.transport.call("GET", path))["spec"]
    assert released.get("holderIdentity", "") == ""
    assert await term("b", lambda: anyio.lowlevel.checkpoint()) == 2
    with anyio.fail_after(3.0), pytest.raises(LeadershipLost, match="taken or deleted"):
        await term("c", remove)
