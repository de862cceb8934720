"""Leaders that go, politely and by KILL, in the middle of work: somebody else goes on within 20 s, nothing is made twice or told twice."""

import time
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from typing import Any

import pytest

from api.core import Event
from e2e.cluster import Pod
from e2e.kind import audit
from e2e.kind.conftest import CHAT_PODS
from e2e.kind.scene import Scene
from e2e.kind.system import System
from e2e.kind.waiting import until

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.timeout(240)]

TO_FIRST_ACTION_S = 20.0
End = Callable[[Pod], Awaitable[None]]


async def events(scene: Scene) -> dict[str, tuple[str, int]]:
    """Our own events by uid: what an event is about, and how often it was. Kubelets say what they like."""
    found = [e for e in await scene.objects(Event.KIND) if e.get("reportingComponent", "").startswith("grovekeeper-")]
    return {e["metadata"]["uid"]: (f"{e['involvedObject'].get('name')} {e['reason']}", e.get("count") or 1) for e in found}


def repeated(before: dict[str, tuple[str, int]], after: dict[str, tuple[str, int]], untouched: set[str]) -> list[str]:
    """Events that came or counted up since, about objects that nothing happened to."""
    return [what for uid, (what, n) in after.items() if before.get(uid, (what, 0))[1] != n and what.split()[0] in untouched]


def names(pods: list[Pod]) -> set[str]:
    return {pod.name for pod in pods}


def pods_made(system: System, scene: Scene, since: datetime) -> int:
    """Pods that our controllers made in the scene, by the audit log."""
    done = audit.requests(system.kind.audit(), since)
    return sum(1 for r in done if (r.verb, r.resource, r.namespace, r.code) == ("create", "pods", scene.namespace, 201))


async def first_action(look: Callable[[], Awaitable[Any]], since: float, what: str) -> float:
    """Seconds from `since` (monotonic) until there is something to see."""
    await until(look, bool, what, TO_FIRST_ACTION_S + 10.0, poll_s=0.1)
    return time.monotonic() - since


@pytest.mark.parametrize("way", ["deleted", "killed"])
async def test_leader_of_the_controllers_in_the_middle_of_scaling(
    running: Scene, system: System, way: str, measured: Callable[[str], None]
) -> None:
    leader = await system.leader("controllers")
    first, told, began = await running.pods(), await events(running), datetime.now(UTC)
    known = {pod.uid for pod in first}
    end: End = system.delete_pod if way == "deleted" else system.kill

    async def new_decode() -> list[str]:
        return [pod.name for pod in await running.pods(lambda pod: pod.uid not in known and pod.clique == "chat-0-decode")]

    async with running.watched():
        await running.scale("pcsg/chat-0-prefill", 3)
        await end(leader)
        gone_at = time.monotonic()
        # Asked for after the leader went, so only the next one can make it.
        await running.scale("pclq/chat-0-decode", 4)
        taken = await first_action(new_decode, gone_at, f"a pod of the next leader, after {leader.name} was {way}")
        pods = await running.ready(CHAT_PODS + 4, "three prefill and four decode engines", 90.0)
    measured(f"controllers' leader {way} to first new pod: {taken:.1f} s (at most {TO_FIRST_ACTION_S:.0f} s)")
    assert taken <= TO_FIRST_ACTION_S
    assert known < {pod.uid for pod in pods}
    assert pods_made(system, running, began) == 4
    untouched = {"chat-0-router", "chat-0-prefill-0-leader", "chat-0-prefill-0-worker", "chat-0-prefill-0", *names(first)}
    assert told, "our events are not found"
    assert repeated(told, await events(running), untouched) == []
    await system.rolled_out()
    await running.scale("pcsg/chat-0-prefill", 2)
    await running.scale("pclq/chat-0-decode", 2)
    await running.ready(CHAT_PODS, "as before")


@pytest.mark.parametrize("way", ["deleted", "killed"])
async def test_leader_of_the_scheduler_in_the_middle_of_placing(
    running: Scene, system: System, way: str, measured: Callable[[str], None]
) -> None:
    leader = await system.leader("scheduler")
    first, told, began = await running.pods(), await events(running), datetime.now(UTC)
    known = {pod.uid for pod in first}
    end: End = system.delete_pod if way == "deleted" else system.kill

    async def new_pods() -> list[str]:
        return [pod.name for pod in await running.pods(lambda pod: pod.uid not in known)]

    async def third_decode() -> list[str]:
        return [pod.name for pod in await running.pods(lambda pod: (pod.clique, pod.index) == ("chat-0-decode", 2) and bool(pod.node))]

    async with running.watched():
        await running.scale("pcs/chat", 2)
        await until(new_pods, bool, "the first new pod", 20.0, poll_s=0.05)
        await end(leader)
        gone_at = time.monotonic()
        # Asked for after the leader went, so only the next one can place it.
        await running.scale("pclq/chat-0-decode", 3)
        taken = await first_action(third_decode, gone_at, f"a pod is placed by the next leader, after {leader.name} was {way}")
        pods = await running.ready(2 * CHAT_PODS + 1, "two replicas and a third decode engine", 90.0)
    measured(f"scheduler's leader {way} to first pod placed: {taken:.1f} s (at most {TO_FIRST_ACTION_S:.0f} s)")
    assert taken <= TO_FIRST_ACTION_S
    assert known < {pod.uid for pod in pods}
    assert pods_made(system, running, began) == CHAT_PODS + 1
    assert told, "our events are not found"
    assert repeated(told, await events(running), {"chat-0", "chat-0-prefill-0", *names(first)}) == []
    await system.rolled_out()
    await running.scale("pcs/chat", 1)
    await running.scale("pclq/chat-0-decode", 2)
    await running.ready(CHAT_PODS, "as before")
