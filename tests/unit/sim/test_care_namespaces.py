"""Namespaces: what they get, how they end. And token secrets of their service accounts."""

import asyncio
import base64
from typing import Any

import pytest

from sim.apiserver.care.controllers import Controllers
from sim.apiserver.care.queue import Queue
from sim.loop.run import run
from tests.unit.sim.careworld import World, simulate

NAMESPACES = "/api/v1/namespaces"
INSIDE = f"{NAMESPACES}/n"
POD = {"metadata": {"name": "p", "finalizers": ["a.b/c"]}, "spec": {"containers": [{"name": "a", "image": "i"}]}}
OF_ACCOUNTS = "kubernetes.io/service-account-token"
ACCOUNT = {"kubernetes.io/service-account.name": "a"}


def namespace(world: World) -> dict[str, Any] | None:
    return world.server.lookup.get("", "namespaces", "", "n")


def conditions(world: World) -> dict[str, tuple[str, str]]:
    found = namespace(world)
    assert found is not None
    return {c["type"]: (c["status"], c["message"]) for c in found["status"].get("conditions", ())}


def test_every_namespace_keeps_a_default_account() -> None:
    async def scenario(world: World) -> None:
        await world.made(NAMESPACES, {"metadata": {"name": "n"}})
        await world.settle()
        assert world.server.lookup.get("", "serviceaccounts", "n", "default") is not None
        await world.call("DELETE", f"{INSIDE}/serviceaccounts/default")
        await world.settle()
        assert world.server.lookup.get("", "serviceaccounts", "n", "default") is not None
        assert world.server.lookup.get("", "serviceaccounts", "kube-system", "default") is not None

    simulate(scenario)


def test_pods_go_first_then_everything_then_the_namespace() -> None:
    async def scenario(world: World) -> None:
        await world.made(NAMESPACES, {"metadata": {"name": "n"}})
        await world.made(f"{INSIDE}/pods", POD)
        await world.made(f"{INSIDE}/configmaps", {"metadata": {"name": "c"}})
        await world.made(f"{INSIDE}/secrets", {"metadata": {"name": "s", "finalizers": ["a.b/c", "d.e/f"]}})
        await world.call("DELETE", INSIDE)
        await world.settle()
        assert world.server.lookup.get("", "configmaps", "n", "c") is not None
        assert conditions(world)["NamespaceContentRemaining"] == ("False", "All content successfully removed")
        await world.call("PATCH", f"{INSIDE}/pods/p", {"metadata": {"finalizers": None}})
        await world.settle()
        assert world.server.lookup.list("", "configmaps", "n") == []
        assert world.server.lookup.list("", "serviceaccounts", "n") == []
        assert conditions(world)["NamespaceContentRemaining"] == ("True", "Some resources are remaining: secrets. has 1 resource instances")
        held = "Some content in the namespace has finalizers remaining: a.b/c in 1 resource instances, d.e/f in 1 resource instances"
        assert conditions(world)["NamespaceFinalizersRemaining"] == ("True", held)
        await world.call("PATCH", f"{INSIDE}/secrets/s", {"metadata": {"finalizers": None}})
        await world.settle()
        assert namespace(world) is None

    simulate(scenario)


def test_finalizers_of_others_keep_a_namespace() -> None:
    async def scenario(world: World) -> None:
        await world.made(NAMESPACES, {"metadata": {"name": "n"}, "spec": {"finalizers": ["a.b/c"]}})
        await world.call("DELETE", INSIDE)
        await world.settle()
        found = namespace(world)
        assert found is not None
        assert found["spec"] == {"finalizers": ["a.b/c"]}

    simulate(scenario)


def test_token_secrets_are_filled_and_go_with_their_account() -> None:
    async def scenario(world: World) -> None:
        await world.made("serviceaccounts", {"metadata": {"name": "a"}})
        await world.made("secrets", {"metadata": {"name": "s", "annotations": ACCOUNT}, "type": OF_ACCOUNTS})
        await world.settle()
        found = world.server.lookup.get("", "secrets", "default", "s")
        assert found is not None
        assert base64.b64decode(found["data"]["ca.crt"]) == b"CA"
        assert base64.b64decode(found["data"]["namespace"]) == b"default"
        assert found["data"]["token"]
        owner = world.server.lookup.get("", "serviceaccounts", "default", "a")
        assert owner is not None
        assert found["metadata"]["annotations"]["kubernetes.io/service-account.uid"] == owner["metadata"]["uid"]
        await world.call("DELETE", "serviceaccounts/a")
        await world.settle()
        assert world.server.lookup.get("", "secrets", "default", "s") is None

    simulate(scenario)


@pytest.mark.parametrize("more", [{}, {"kubernetes.io/service-account.uid": "another"}], ids=["no account", "another account"])
def test_token_secrets_without_their_account_go(more: dict[str, str]) -> None:
    async def scenario(world: World) -> None:
        if more:
            await world.made("serviceaccounts", {"metadata": {"name": "a"}})
        await world.made("secrets", {"metadata": {"name": "s", "annotations": {**ACCOUNT, **more}}, "type": OF_ACCOUNTS})
        await world.settle()
        assert world.server.lookup.get("", "secrets", "default", "s") is None

    simulate(scenario)


def test_a_queue_tries_again_ever_more_slowly_and_leaves_no_timer() -> None:
    times: list[float] = []

    async def main() -> None:
        loop = asyncio.get_running_loop()
        queue = Queue[str]()

        async def settle(key: str) -> bool:
            times.append(round(loop.time(), 3))
            return len(times) == 5

        queue.add("x")
        task = asyncio.ensure_future(queue.run(settle))
        await asyncio.sleep(1.0)
        queue.add("x")
        await asyncio.sleep(600)
        assert times == [0.0, 0.1, 0.3, 0.7, 1.0]
        times.clear()
        queue.add("x")
        await asyncio.sleep(0.05)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        await asyncio.sleep(600)
        assert len(times) == 1

    run(main)


def test_controllers_stop_watching_when_they_end() -> None:
    async def scenario(world: World) -> None:
        count = len(vars(world.server.storage)["_subscribers"])
        task = asyncio.ensure_future(Controllers(world.server).run())
        await world.settle()
        assert len(vars(world.server.storage)["_subscribers"]) == count + 3
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        assert len(vars(world.server.storage)["_subscribers"]) == count

    simulate(scenario)
