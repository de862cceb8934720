"""Pods reach each other by the names that their environment spells, in one replica and across replicas and nodes."""

import json

import pytest

from e2e.cluster import Pod
from e2e.kind.conftest import CHAT_PODS
from e2e.kind.scene import Scene
from e2e.kind.waiting import until
from e2e.kind.workload import ASK

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.timeout(200)]


async def ask(scene: Scene, pod: Pod, names: list[str]) -> dict[str, dict[str, str]]:
    """What each host answered to a question from inside the pod; an error comes as {"error": …}."""
    lines = (await scene.live.run_in(pod.object, "python", "-c", ASK, *names)).splitlines()
    return {row["name"]: row.get("answer", row) for row in map(json.loads, lines)}


def address(scene: Scene, pod: Pod) -> str:
    """As its own environment has it: <clique>-<index>.<headless service>."""
    service = pod.object["spec"]["subdomain"]
    return f"{pod.clique}-{pod.index}.{service}.{scene.namespace}.svc.cluster.local"


async def test_two_replicas_on_two_nodes_reach_each_other(running: Scene) -> None:
    await running.scale("pcs/chat", 2)
    pods = await running.ready(2 * CHAT_PODS, "two replicas", 90.0)
    assert len({pod.node for pod in pods}) == 2
    expected = {address(running, pod): (pod.clique, str(pod.index), pod.name) for pod in pods}
    # One that asks on each node.
    askers = {pod.node: pod for pod in pods}.values()
    assert len(askers) == 2
    for asker in askers:

        async def look(asker: Pod = asker) -> dict[str, tuple[str, ...]]:
            answers = await ask(running, asker, list(expected))
            return {name: (a.get("GROVE_PCLQ_NAME", str(a)), a.get("GROVE_PCLQ_POD_INDEX", ""), asker.name) for name, a in answers.items()}

        def right(seen: dict[str, tuple[str, ...]]) -> bool:
            return {name: found[:2] for name, found in seen.items()} == {name: wanted[:2] for name, wanted in expected.items()}

        await until(look, right, f"{asker.name} on {asker.node} reaches every pod by name", 20.0, poll_s=1.0)


async def test_the_environment_spells_the_names(running: Scene) -> None:
    pods = await running.pods()
    router = next(pod for pod in pods if pod.clique == "chat-0-router")
    names = {address(running, pod): pod for pod in pods}
    for name, answer in (await ask(running, router, list(names))).items():
        assert answer["SAID"] == name
        assert answer["GROVE_PCS_NAME"] == "chat"
        assert answer["HOSTNAME"] == f"{names[name].clique}-{names[name].index}"
        if "-prefill-" in names[name].clique:
            assert answer["GROVE_PCSG_NAME"] == f"chat-{answer['GROVE_PCS_INDEX']}-prefill"
            assert names[name].clique.startswith(f"{answer['GROVE_PCSG_NAME']}-{answer['GROVE_PCSG_INDEX']}-")
