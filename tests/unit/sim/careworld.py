"""A server with its controllers in virtual time, and webhooks that are functions of the test."""

import json
from collections.abc import Awaitable, Callable, Mapping
from random import Random
from typing import Any

import anyio

from sim.apiserver.bootstrap import bootstrap
from sim.apiserver.care.calls import InProcess, Serve
from sim.apiserver.care.controllers import Controllers
from sim.apiserver.care.webhooks import Webhooks
from sim.apiserver.requests import Answer, Request
from sim.apiserver.resources import Lookup
from sim.apiserver.server import ApiServer
from sim.loop.run import run
from tests.unit.sim.nodeworld import LoopClock

MERGE = "application/merge-patch+json"
Obj = dict[str, Any]


class World:
    """What a test does and sees; everything is in namespace default unless a path says otherwise."""

    def __init__(self, hooks: Mapping[str, Serve]) -> None:
        def webhooks(lookup: Lookup) -> Webhooks:
            return Webhooks(lookup, InProcess(hooks))

        self.server = ApiServer(LoopClock(), Random(1), webhooks=webhooks)  # noqa: S311 - simulation
        self.deleted: list[str] = []
        self.server.subscribe(lambda change: self.deleted.append(change.key.name) if change.new is None else None)

    async def call(self, method: str, path: str, body: Any = None, content_type: str = "", **query: str) -> tuple[int, Obj]:
        """Status and answer; `path` below the namespace unless it begins with a slash."""
        path = path if path.startswith("/") else f"/api/v1/namespaces/default/{path}"
        content_type = content_type or (MERGE if method == "PATCH" else "application/json")
        data = json.dumps(body).encode() if body is not None else b""
        answer = await self.server.handle(Request(method, path, query, data, content_type, "application/json", "test"))
        assert isinstance(answer, Answer)
        return answer.status, {**json.loads(answer.body), "warning": answer.headers.get("Warning", "")}

    async def made(self, path: str, body: Obj) -> Obj:
        status, answer = await self.call("POST", path, body)
        assert status == 201, answer
        return answer

    async def config(self, name: str, *owners: Obj, **metadata: Any) -> Obj:
        """A ConfigMap."""
        return await self.made("configmaps", {"metadata": {"name": name, "ownerReferences": list(owners), **metadata}})

    async def delete(self, name: str, policy: str = "Background") -> None:
        status, answer = await self.call("DELETE", f"configmaps/{name}", {"propagationPolicy": policy})
        assert status == 200, answer

    async def settle(self, seconds: float = 0.01) -> None:
        """Lets controllers act."""
        await anyio.sleep(seconds)

    def left(self) -> list[str]:
        """Names of ConfigMaps."""
        return sorted(o["metadata"]["name"] for o in self.server.lookup.list("", "configmaps", "default"))

    def metadata(self, name: str) -> Obj:
        found = self.server.lookup.get("", "configmaps", "default", name)
        assert found is not None
        return found["metadata"]

    def owners(self, name: str) -> list[str]:
        return [ref["name"] for ref in self.metadata(name).get("ownerReferences", ())]


def ref(owner: Obj, **fields: Any) -> Obj:
    """A reference to a ConfigMap."""
    named = {"name": owner["metadata"]["name"], "uid": owner["metadata"]["uid"]}
    return {"apiVersion": "v1", "kind": "ConfigMap", **named, **fields}


def simulate(scenario: Callable[[World], Awaitable[None]], hooks: Mapping[str, Serve] | None = None) -> None:
    """Runs a scenario beside all controllers."""

    async def main() -> None:
        world = World(hooks or {})
        await bootstrap(world.server)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(Controllers(world.server, "CA").run)
            await world.settle()
            await scenario(world)
            tasks.cancel_scope.cancel()

    run(main)
