"""A small cluster in virtual time: API server, kubelets and nodes, without controllers."""

import json
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any

import anyio

from sim.apiserver.bootstrap import bootstrap
from sim.apiserver.requests import Answer, Request
from sim.apiserver.server import ApiServer
from sim.apiserver.storage import Change
from sim.kubelet.behaviour import Behaviour
from sim.kubelet.kubelet import Kubelet
from sim.loop.run import run
from sim.nodes.actions import Nodes
from sim.nodes.heartbeats import Heartbeats
from sim.nodes.lifecycle import NodeLifecycle
from sim.nodes.specs import uniform_nodes
from tests.unit.sim.kubeletworld import pod as manifest

EPOCH = datetime(2026, 1, 1, tzinfo=UTC)


class LoopClock:
    """The event loop's time, from EPOCH on."""

    def now(self) -> datetime:
        return EPOCH + timedelta(seconds=anyio.current_time())

    def monotonic(self) -> float:
        return anyio.current_time()


class World:
    """What a test does and sees. Pods are in namespace default."""

    def __init__(self, defaults: Behaviour | None) -> None:
        clock = LoopClock()
        self.server = ApiServer(clock, Random(1))  # noqa: S311 - simulation
        self.lifecycle = NodeLifecycle(self.server, clock)
        self.kubelet = Kubelet(self.server, clock, defaults=defaults)
        self.nodes = Nodes(self.server, clock, self.kubelet, self.lifecycle)
        self.writes: list[tuple[str, str]] = []
        """(user agent, verb and subresource) of each change of a pod."""
        self.server.subscribe(self._note)

    def _note(self, change: Change) -> None:
        if change.resource.plural == "pods":
            self.writes.append((change.author.user_agent.partition("/")[0], f"{change.author.verb} {change.author.subresource}".strip()))

    async def call(self, method: str, path: str, body: Any = None, content_type: str = "application/json") -> dict[str, Any]:
        data = json.dumps(body).encode() if body is not None else b""
        answer = await self.server.handle(Request(method, path, {}, data, content_type, "application/json", "test"))
        assert isinstance(answer, Answer)
        assert answer.status < 300, answer.body
        return json.loads(answer.body)

    async def create(self, name: str = "p", node: str = "node-0", **fields: Any) -> None:
        """A pod that is bound to `node` from the start."""
        body = manifest(name=name, node=node, **fields)
        body["metadata"] = {"name": name, "annotations": body["metadata"]["annotations"], "labels": body["metadata"]["labels"]}
        del body["status"]
        await self.call("POST", "/api/v1/namespaces/default/pods", body)

    async def delete(self, name: str = "p", grace_s: int | None = None) -> None:
        await self.call("DELETE", f"/api/v1/namespaces/default/pods/{name}", {} if grace_s is None else {"gracePeriodSeconds": grace_s})

    async def at(self, seconds: float) -> None:
        """Lets the cluster run until then, and everything of that moment happen."""
        await anyio.sleep(max(0.0, seconds - anyio.current_time()) + 0.001)

    def pod(self, name: str = "p") -> dict[str, Any]:
        found = self.server.lookup.get("", "pods", "default", name)
        assert found is not None, f"no pod {name}"
        return found

    def has(self, name: str = "p") -> bool:
        return self.server.lookup.get("", "pods", "default", name) is not None

    def ready(self, name: str = "p") -> str:
        return next((c["status"] for c in self.pod(name)["status"].get("conditions", ()) if c["type"] == "Ready"), "-")

    def phase(self, name: str = "p") -> str:
        return self.pod(name)["status"]["phase"]

    def node(self, name: str = "node-0") -> dict[str, Any]:
        found = self.server.lookup.get("", "nodes", "", name)
        assert found is not None, f"no node {name}"
        return found

    def taints(self, name: str = "node-0") -> list[str]:
        found = self.node(name)["spec"].get("taints") or []
        return [f"{t['key'].removeprefix('node.kubernetes.io/')}:{t['effect']}" for t in found]


def simulate(
    scenario: Callable[[World], Awaitable[None]],
    *,
    nodes: int = 2,
    defaults: Behaviour | None = None,
    kubelet: bool = True,
    heartbeats: bool = False,
) -> None:
    """Runs a scenario on nodes node-0, node-1, … with 8 GPUs each."""

    async def main() -> None:
        world = World(defaults)
        await bootstrap(world.server)
        await world.nodes.create(uniform_nodes(nodes, gpus=8))
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(world.lifecycle.run)
            if kubelet:
                tasks.start_soon(world.kubelet.run)
            if heartbeats:
                tasks.start_soon(Heartbeats(world.server, LoopClock(), world.kubelet).run)
            await scenario(world)
            tasks.cancel_scope.cancel()

    run(main)
