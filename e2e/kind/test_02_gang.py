"""A gang of real containers: placed by topology, started in order by the real waiter, shown by kubectl."""

from datetime import datetime

import pytest

from api import labels
from api.podgang import PodGang
from e2e.cluster import Pod
from e2e.kind.conftest import CHAT_PODS
from e2e.kind.scene import Scene
from e2e.kind.system import moment
from e2e.kind.waiting import until
from hack.kind.settings import GPUS_PER_WORKER, WORKERS

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.timeout(200)]


async def columns(scene: Scene, what: str) -> dict[str, dict[str, str]]:
    """kubectl get, wide: name → column → value."""
    lines = (await scene.kubectl("get", "-n", scene.namespace, what, "-o", "wide")).splitlines()
    heads = lines[0].split()
    starts = [lines[0].index(f"{head} ") if i + 1 < len(heads) else lines[0].rindex(head) for i, head in enumerate(heads)]
    rows = [{head: line[a:b].strip() for head, a, b in zip(heads, starts, [*starts[1:], None], strict=True)} for line in lines[1:]]
    return {row["NAME"]: row for row in rows}


@pytest.mark.parametrize(
    ("what", "name", "wanted"),
    [
        ("pcs", "chat", {"REPLICAS": "1", "AVAILABLE": "1", "UPDATED": "1"}),
        ("pcsg", "chat-0-prefill", {"MINAVAIL": "1", "REPLICAS": "2", "AVAILABLE": "2", "SCHEDULED": "2", "MINBREACHED": "False"}),
        ("pclq", "chat-0-decode", {"MINAVAIL": "1", "REPLICAS": "2", "READY": "2", "SCHEDULED": "2", "GATED": "0", "MINBREACHED": "False"}),
        ("pclq", "chat-0-prefill-1-worker", {"MINAVAIL": "1", "REPLICAS": "1", "READY": "1", "SCHEDULED": "1"}),
        ("pg", "chat-0", {"PHASE": "Running", "PODS": "5", "BOUND": "5", "READY": "5", "BLOCKED": ""}),
        ("pg", "chat-0-prefill-0", {"PHASE": "Running", "PODS": "2", "BOUND": "2", "READY": "2", "BLOCKED": ""}),
    ],
)
async def test_columns(running: Scene, what: str, name: str, wanted: dict[str, str]) -> None:
    async def look() -> dict[str, str]:
        row = (await columns(running, what)).get(name, {})
        return {key: row.get(key, "no such column") for key in wanted}

    await until(look, lambda seen: seen == wanted, f"kubectl get {what}: {name} has {wanted}", 20.0)


async def test_every_gang_says_that_it_runs(running: Scene) -> None:
    async def look() -> dict[str, set[str]]:
        gangs = await running.objects(PodGang.KIND)
        return {g["metadata"]["name"]: {c["type"] for c in g["status"]["conditions"] if c["status"] == "True"} for g in gangs}

    def right(seen: dict[str, set[str]]) -> bool:
        return seen.keys() == {"chat-0", "chat-0-prefill-0"} and all(c >= {"Initialized", "Scheduled", "Ready"} for c in seen.values())

    await until(look, right, "both gangs are Initialized, Scheduled and Ready", 20.0)


async def test_topology_and_gpus(running: Scene) -> None:
    pods = await running.pods()
    assert len(pods) == CHAT_PODS
    for replica in ("0", "1"):
        nodes = {pod.node for pod in pods if pod.labels.get(labels.PCSG_REPLICA_INDEX) == replica}
        assert len(nodes) == 1, f"engine {replica} is spread over racks: {nodes}"
    assert {pod.node for pod in pods if gpus(pod)} <= set(WORKERS)
    for worker in WORKERS:
        assert sum(gpus(pod) for pod in pods if pod.node == worker) <= GPUS_PER_WORKER
    assert sum(map(gpus, pods)) == 6


def gpus(pod: Pod) -> int:
    return sum(int(c["resources"].get("limits", {}).get("nvidia.com/gpu", 0)) for c in pod.object["spec"]["containers"])


async def test_startup_order(running: Scene) -> None:
    """Workers start after the leader of their engine is ready, the router after the first engine's leader and one decode engine."""
    pods = await running.pods()
    leaders = {pod.gang: ready_at(pod) for pod in pods if pod.clique.endswith("-leader")}
    workers = [pod for pod in pods if pod.clique.endswith("-worker")]
    assert len(leaders) == len(workers) == 2
    for worker in workers:
        assert waiter(worker)["exitCode"] == "0"
        assert moment(waiter(worker)["finishedAt"]) >= leaders[worker.gang]
        assert started_at(worker) >= leaders[worker.gang]
    (router,) = (pod for pod in pods if pod.clique == "chat-0-router")
    first_decode = min(ready_at(pod) for pod in pods if pod.clique == "chat-0-decode")
    assert waiter(router)["exitCode"] == "0"
    assert started_at(router) >= max(leaders["chat-0"], first_decode)
    # Leaders take three seconds to become ready, so nobody was right by chance.
    began = {pod.gang: started_at(pod) for pod in pods if pod.clique.endswith("-leader")}
    assert all((started_at(worker) - began[worker.gang]).total_seconds() >= 3 for worker in workers)
    assert not any(pod.object["spec"].get("initContainers") for pod in pods if pod.clique.endswith(("-leader", "-decode")))


async def test_the_waiter_says_what_it_waited_for(running: Scene) -> None:
    (router,) = await running.pods(lambda pod: pod.clique == "chat-0-router")
    said = await running.kubectl("logs", router.name, "-n", running.namespace, "-c", "grove-initc")
    assert "all parents are ready" in said
    assert "chat-0-prefill-0-leader: 1/1 ready" in said
    (container,) = router.object["spec"]["initContainers"]
    assert container["image"] == router.object["spec"]["containers"][0]["image"]
    sources = [source for volume in router.object["spec"]["volumes"] for source in volume.get("projected", {}).get("sources", ())]
    assert any("serviceAccountToken" in source for source in sources)


def waiter(pod: Pod) -> dict[str, str]:
    """How the startup waiter of a pod ended."""
    (status,) = pod.object["status"]["initContainerStatuses"]
    assert status["name"] == "grove-initc"
    return {key: str(value) for key, value in status["state"]["terminated"].items()}


def started_at(pod: Pod) -> datetime:
    """When its engine started."""
    return moment(pod.object["status"]["containerStatuses"][0]["state"]["running"]["startedAt"])


def ready_at(pod: Pod) -> datetime:
    """Since when it is ready."""
    return moment(pod.condition("Ready")["lastTransitionTime"])
