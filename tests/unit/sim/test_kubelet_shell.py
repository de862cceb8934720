"""The kubelet against the embedded API server in virtual time: what it writes, when, and how little."""

import time

import anyio
import pytest

from sim.apiserver.requests import Answer, Request, Stream
from sim.apiserver.server import ApiServer
from sim.kubelet.behaviour import Behaviour
from sim.kubelet.distributions import Delay
from sim.kubelet.kubelet import Kubelet
from tests.calls import counting_calls
from tests.unit.sim.kubeletworld import container
from tests.unit.sim.nodeworld import LoopClock, World, simulate


def kubelet_writes(world: World) -> list[str]:
    return [what for who, what in world.writes if who == "kubelet"]


def test_a_fast_pod_takes_one_write() -> None:
    async def scenario(world: World) -> None:
        await world.create()
        await world.at(1)
        assert (world.phase(), world.ready()) == ("Running", "True")
        assert kubelet_writes(world) == ["patch status"]

    simulate(scenario)


def test_a_bound_pod_starts_and_keeps_what_others_wrote() -> None:
    async def scenario(world: World) -> None:
        await world.create(node="")
        await world.at(1)
        assert world.phase() == "Pending"
        target = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": "p"}, "target": {"kind": "Node", "name": "node-1"}}
        await world.call("POST", "/api/v1/namespaces/default/pods/p/binding", target)
        await world.at(2)
        assert world.ready() == "True"
        conditions = {c["type"]: c["status"] for c in world.pod()["status"]["conditions"]}
        assert conditions["PodScheduled"] == "True"
        assert world.pod()["status"]["hostIP"] == world.node("node-1")["status"]["addresses"][0]["address"]

    simulate(scenario)


def test_delays_pass_in_the_loops_time() -> None:
    async def scenario(world: World) -> None:
        await world.create(annotations={"start-delay": "10m", "ready-delay": "1h"})
        await world.at(599)
        assert world.phase() == "Pending"
        await world.at(600)
        assert (world.phase(), world.ready()) == ("Running", "False")
        await world.at(4200)
        assert world.ready() == "True"
        assert kubelet_writes(world) == ["patch status"] * 3

    begun = time.monotonic()
    simulate(scenario)
    assert time.monotonic() - begun < 5


def test_the_startup_order_of_a_gang() -> None:
    labels = {"grove.io/podgang": "g", "grove.io/podclique": "child"}
    waiter = container("grove-initc", args=["--podcliques=parent:2"])

    async def scenario(world: World) -> None:
        await world.create("child", labels=labels, init=(waiter,))
        await world.create("other", labels={**labels, "grove.io/podgang": "h"}, init=(waiter,))
        for i in range(2):
            parent = {**labels, "grove.io/podclique": "parent"}
            await world.create(f"parent-{i}", labels=parent, annotations={"ready-delay": f"{10 * (i + 1)}s"})
        await world.at(19)
        assert [world.phase(n) for n in ("child", "other")] == ["Pending", "Pending"]
        await world.at(20)
        assert [world.ready(n) for n in ("parent-1", "child")] == ["True", "True"]
        await world.delete("parent-0")
        await world.at(30)
        assert world.ready("child") == "True"
        assert world.phase("other") == "Pending"

    simulate(scenario)


def test_a_pod_that_is_deleted_stops_within_its_grace_period() -> None:
    async def scenario(world: World) -> None:
        for name, delay in (("quick", "0s"), ("slow", "10s"), ("stuck", "1h")):
            await world.create(name, annotations={"stop-delay": delay}, terminationGracePeriodSeconds=30)
        await world.at(5)
        for name in ("quick", "slow", "stuck"):
            await world.delete(name)
        await world.at(6)
        assert [world.has(n) for n in ("quick", "slow", "stuck")] == [False, True, True]
        await world.at(15.1)
        assert [world.has(n) for n in ("slow", "stuck")] == [False, True]
        await world.at(34)
        assert world.has("stuck")
        await world.at(35.1)
        assert not world.has("stuck")

    simulate(scenario)


def test_a_pod_with_a_finalizer_shows_that_it_has_ended_and_stays() -> None:
    async def scenario(world: World) -> None:
        await world.create()
        await world.at(1)
        path = "/api/v1/namespaces/default/pods/p"
        await world.call("PATCH", path, {"metadata": {"finalizers": ["example.com/x"]}}, "application/merge-patch+json")
        await world.delete()
        await world.at(40)
        assert (world.phase(), world.ready()) == ("Failed", "False")
        await world.call("PATCH", path, {"metadata": {"finalizers": None}}, "application/merge-patch+json")
        await world.at(41)
        assert not world.has()

    simulate(scenario)


def test_a_name_that_is_used_again_is_another_pod() -> None:
    async def scenario(world: World) -> None:
        await world.create(annotations={"ready-delay": "1m"})
        await world.at(30)
        await world.delete(grace_s=0)
        await world.create()
        await world.at(31)
        assert world.ready() == "True"
        assert world.pod()["status"]["startTime"] == "2026-01-01T00:00:30Z"

    simulate(scenario)


def test_a_node_that_is_full_refuses_until_a_pod_has_ended() -> None:
    gpus = (container(resources={"limits": {"nvidia.com/gpu": "8"}}),)

    async def scenario(world: World) -> None:
        await world.create("a", main=gpus)
        await world.at(1)
        await world.create("b", main=gpus)
        await world.at(2)
        assert (world.phase("a"), world.phase("b")) == ("Running", "Failed")
        assert world.pod("b")["status"]["reason"] == "OutOfnvidia.com/gpu"
        await world.delete("a")
        await world.at(3)
        await world.create("c", main=gpus)
        await world.at(4)
        assert world.phase("c") == "Running"

    simulate(scenario)


def test_a_job_that_is_over_gives_its_resources_back() -> None:
    gpus = (container(resources={"limits": {"nvidia.com/gpu": "8"}}),)

    async def scenario(world: World) -> None:
        await world.create("job", main=gpus, restart="Never", annotations={"run-time": "5s"})
        await world.at(6)
        assert world.phase("job") == "Succeeded"
        await world.create("next", main=gpus)
        await world.at(7)
        assert world.phase("next") == "Running"

    simulate(scenario)


def test_pod_addresses_are_unique() -> None:
    async def scenario(world: World) -> None:
        for i in range(30):
            await world.create(f"p{i}", node=f"node-{i % 2}")
        await world.at(1)
        assert len({world.pod(f"p{i}")["status"]["podIP"] for i in range(30)}) == 30

    simulate(scenario)


def test_what_was_there_before_the_kubelet_is_taken_on() -> None:
    async def scenario(world: World) -> None:
        await world.create()
        await world.at(1)
        assert world.ready() == "True"

    simulate(scenario)


@pytest.mark.parametrize("seed_defaults", [Behaviour(start=Delay("lognormal", (5.0, 1.0)))])
def test_a_simulation_repeats_itself(seed_defaults: Behaviour) -> None:
    def statuses() -> list[object]:
        out: list[object] = []

        async def scenario(world: World) -> None:
            for i in range(20):
                await world.create(f"p{i}", annotations={"crash": "1"} if i % 3 else {})
            await world.at(120)
            out.extend(world.pod(f"p{i}")["status"] for i in range(20))

        simulate(scenario, defaults=seed_defaults)
        return out

    assert statuses() == statuses()


def test_a_thousand_pods_become_ready_quickly() -> None:
    async def scenario(world: World) -> None:
        for i in range(1000):
            await world.create(f"p{i}", node=f"node-{i % 20}")
        with counting_calls() as calls:
            await world.at(1)
        # The kubelet and the server make 3,300 calls a pod.
        assert calls.count < 1000 * 6000
        assert all(world.ready(f"p{i}") == "True" for i in range(1000))
        assert len(kubelet_writes(world)) == 1000

    simulate(scenario, nodes=20)


@pytest.mark.parametrize(("restart", "phase"), [("Always", "Running"), ("Never", "Failed")])
def test_a_program_can_die_at_any_time(restart: str, phase: str) -> None:
    async def scenario(world: World) -> None:
        await world.create(restart=restart)
        await world.at(10)
        world.kubelet.crash("default", "p", 139)
        await world.at(11)
        (found,) = world.pod()["status"]["containerStatuses"]
        assert world.phase() == phase
        terminated = (found["lastState"] if restart == "Always" else found["state"])["terminated"]
        assert (terminated["exitCode"], terminated["finishedAt"]) == (139, "2026-01-01T00:00:10Z")
        assert found["restartCount"] == (1 if restart == "Always" else 0)

    simulate(scenario)


def test_a_pod_can_be_unready_for_a_while() -> None:
    async def scenario(world: World) -> None:
        await world.create()
        await world.at(10)
        world.kubelet.unready("default", "p", 30)
        world.kubelet.unready("default", "nobody", 30)
        await world.at(39)
        assert (world.phase(), world.ready()) == ("Running", "False")
        await world.at(41)
        assert world.ready() == "True"

    simulate(scenario)


class Refusing:
    """A host whose answers to status writes are bad for a while."""

    def __init__(self, host: ApiServer, times: int) -> None:
        self.lookup, self.subscribe = host.lookup, host.subscribe
        self.left = times
        self._host = host

    async def handle(self, request: Request) -> Answer | Stream:
        if request.method == "PATCH" and self.left:
            self.left -= 1
            return Answer(503, b"{}")
        return await self._host.handle(request)


def test_a_write_that_is_not_taken_is_tried_again() -> None:
    async def scenario(world: World) -> None:
        refusing = Refusing(world.server, 3)
        kubelet = Kubelet(refusing, LoopClock())
        await world.create()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(kubelet.run)
            await world.at(2)
            assert world.phase() == "Pending"
            await world.at(4)
            assert (world.ready(), refusing.left) == ("True", 0)
            tasks.cancel_scope.cancel()

    simulate(scenario, kubelet=False)
