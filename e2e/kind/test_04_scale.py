"""kubectl scale at three levels leaves all other pods alone; a gang without room waits with its reason and is placed when there is."""

import pytest

from api import labels
from api.podgang import PodGang
from e2e.cluster import Pod
from e2e.kind.conftest import CHAT_PODS
from e2e.kind.scene import Scene
from e2e.kind.waiting import stays, until
from e2e.kind.workload import late

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.timeout(240)]


async def test_replicas_of_the_set_and_a_gang_without_room(running: Scene, image: str) -> None:
    first = await running.uids()
    await running.scale("pcs/chat", 2)
    await running.ready(2 * CHAT_PODS, "two replicas", 90.0)
    assert first <= await running.uids()

    # Each worker has six of its eight GPUs in use; `late` needs eight on one.
    await running.apply(late(image))

    async def gang() -> dict[str, str]:
        found = next((g for g in await running.objects(PodGang.KIND) if g["metadata"]["name"] == "late-0"), {})
        condition = next((c for c in found.get("status", {}).get("conditions", ()) if c["type"] == "Scheduled"), {})
        return {"blocked": found.get("status", {}).get("blocked", ""), **condition}

    blocked = await until(gang, lambda seen: seen["blocked"] and seen.get("status") == "False", "the gang says why it waits", 30.0)
    assert "for lack of nvidia.com/gpu" in blocked["message"]
    pending = await running.pods(lambda pod: pod.clique == "late-0-engine")
    assert [pod.node for pod in pending] == ["", ""]
    row = await running.kubectl("get", "pg", "late-0", "-n", running.namespace, "-o", "wide", "--no-headers")
    assert blocked["blocked"].split()[0] in row

    async def unplaced() -> list[str]:
        return [pod.node for pod in await running.pods(lambda pod: pod.clique == "late-0-engine")]

    await stays(unplaced, lambda nodes: nodes == ["", ""], "nobody of a gang without room is placed", 2.0)

    await running.scale("pcs/chat", 1)
    await running.ready(CHAT_PODS + 2, "one replica of chat, and late", 90.0)
    assert first <= await running.uids()
    assert len({pod.node for pod in await running.pods(lambda pod: pod.clique == "late-0-engine")}) == 1
    await running.remove("late")
    await running.ready(CHAT_PODS, "only chat")
    assert await running.uids() == first


async def test_replicas_of_a_scaling_group(running: Scene) -> None:
    first = await running.uids()
    await running.scale("pcsg/chat-0-prefill", 3)
    pods = await running.ready(CHAT_PODS + 2, "three prefill engines", 90.0)
    assert first < {pod.uid for pod in pods}
    assert {pod.labels[labels.PCSG_REPLICA_INDEX] for pod in pods if pod.uid not in first} == {"2"}
    await running.scale("pcsg/chat-0-prefill", 2)
    await running.ready(CHAT_PODS, "two prefill engines")
    assert await running.uids() == first


async def test_replicas_of_a_clique(running: Scene) -> None:
    first = await running.uids()
    await running.scale("pclq/chat-0-decode", 4)
    pods = await running.ready(CHAT_PODS + 2, "four decode engines", 90.0)
    assert first < {pod.uid for pod in pods}
    assert sorted(pod.index for pod in pods if is_decode(pod)) == [0, 1, 2, 3]
    await running.scale("pclq/chat-0-decode", 2)
    await running.ready(CHAT_PODS, "two decode engines")
    assert await running.uids() == first


def is_decode(pod: Pod) -> bool:
    return pod.clique == "chat-0-decode"
