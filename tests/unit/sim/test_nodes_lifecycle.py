"""Nodes in virtual time: taints, lost machines, evictions, orphans, drains."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from sim.nodes.actions import NodeError
from sim.nodes.specs import NodeSpec, node_manifest, uniform_nodes
from sim.nodes.taints import evicted_at, readiness_of, wanted_taints
from tests.unit.sim.nodeworld import World, simulate

NOW = datetime(2026, 1, 1, tzinfo=UTC)
STAMP = "2026-01-01T00:00:00Z"


def node(ready: str = "True", unschedulable: bool = False, taints: tuple[dict[str, str], ...] = ()) -> dict[str, Any]:
    out = node_manifest(NodeSpec("n", {"cpu": "1"}), STAMP)
    out["status"]["conditions"][-1]["status"] = ready
    out["spec"] = {"unschedulable": unschedulable, "taints": list(taints)}
    return out


@pytest.mark.parametrize(
    ("found", "keys"),
    [
        (node(), []),
        (node("False"), ["not-ready:NoSchedule", "not-ready:NoExecute"]),
        (node("Unknown"), ["unreachable:NoSchedule", "unreachable:NoExecute"]),
        (node(unschedulable=True), ["unschedulable:NoSchedule"]),
        (node(taints=({"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"},)), []),
        (
            node("False", taints=({"key": "mine", "effect": "NoSchedule"},)),
            ["mine:NoSchedule", "not-ready:NoSchedule", "not-ready:NoExecute"],
        ),
        ({"metadata": {"name": "n"}, "spec": {}, "status": {}}, ["unreachable:NoSchedule", "unreachable:NoExecute"]),
    ],
)
def test_taints_follow_from_the_state(found: dict[str, Any], keys: list[str]) -> None:
    got = [f"{t['key'].removeprefix('node.kubernetes.io/')}:{t['effect']}" for t in wanted_taints(found, STAMP)]
    assert got == keys


def test_a_taint_keeps_the_time_it_was_added() -> None:
    old = {"key": "node.kubernetes.io/not-ready", "effect": "NoExecute", "timeAdded": "2025-01-01T00:00:00Z"}
    kept = next(t for t in wanted_taints(node("False", taints=(old,)), STAMP) if t["effect"] == "NoExecute")
    assert kept["timeAdded"] == "2025-01-01T00:00:00Z"


@pytest.mark.parametrize(
    ("tolerations", "after_s"),
    [
        ([], 0),
        ([{"key": "k", "operator": "Exists"}], None),
        ([{"key": "k", "operator": "Exists", "tolerationSeconds": 300}], 300),
        ([{"key": "k", "operator": "Exists", "tolerationSeconds": -1}], 0),
        ([{"key": "k", "operator": "Exists"}, {"operator": "Exists", "tolerationSeconds": 60}], 60),
        ([{"key": "other", "operator": "Exists"}], 0),
    ],
)
def test_when_a_pod_has_to_go(tolerations: list[Any], after_s: float | None) -> None:
    pod = {"spec": {"tolerations": tolerations}}
    taints = [{"key": "k", "effect": "NoExecute", "timeAdded": STAMP}]
    expected = None if after_s is None else NOW + timedelta(seconds=after_s)
    assert evicted_at(pod, taints, NOW) == expected
    assert evicted_at(pod, [{**taints[0], "effect": "NoSchedule"}], NOW) is None


def test_uniform_nodes_are_split_into_racks() -> None:
    specs = uniform_nodes(8, gpus=8, racks=2)
    assert [s.labels["kubernetes.io/rack"] for s in specs] == ["rack-0"] * 4 + ["rack-1"] * 4
    assert {s.allocatable["nvidia.com/gpu"] for s in specs} == {"8"}


def test_new_nodes_are_ready_and_have_no_taints() -> None:
    async def scenario(world: World) -> None:
        await world.at(1)
        assert readiness_of(world.node()) == "True"
        assert world.taints() == []
        assert world.node()["status"]["allocatable"]["nvidia.com/gpu"] == "8"

    simulate(scenario)


def test_cordon_and_uncordon() -> None:
    async def scenario(world: World) -> None:
        await world.nodes.cordon("node-0")
        await world.at(1)
        assert world.taints() == ["unschedulable:NoSchedule"]
        await world.nodes.uncordon("node-0")
        await world.at(2)
        assert world.taints() == []
        with pytest.raises(NodeError, match="not found"):
            await world.nodes.cordon("nowhere")

    simulate(scenario)


def tolerating(seconds: int) -> list[dict[str, Any]]:
    keys = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")
    return [{"key": k, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": seconds} for k in keys]


def test_a_lost_node_turns_unknown_and_its_pods_go_when_their_patience_ends() -> None:
    async def scenario(world: World) -> None:
        await world.create("short", tolerations=tolerating(60))
        await world.create("long", tolerations=tolerating(600))
        await world.create("elsewhere", node="node-1", tolerations=tolerating(60))
        await world.at(10)
        await world.nodes.lose("node-0")
        await world.at(49)
        assert (readiness_of(world.node()), world.ready("short")) == ("True", "True")
        await world.at(50.1)
        assert readiness_of(world.node()) == "Unknown"
        assert world.taints() == ["unreachable:NoSchedule", "unreachable:NoExecute"]
        assert [world.ready(n) for n in ("short", "long", "elsewhere")] == ["False", "False", "True"]
        await world.at(109)
        assert "deletionTimestamp" not in world.pod("short")["metadata"]
        await world.at(111)
        assert "deletionTimestamp" in world.pod("short")["metadata"]
        await world.at(500)
        assert world.has("short"), "nobody is there to confirm that it has ended"
        assert "deletionTimestamp" not in world.pod("long")["metadata"]

    simulate(scenario)


def test_a_restored_node_ends_what_is_to_end_and_starts_the_rest_again() -> None:
    async def scenario(world: World) -> None:
        await world.create("gone", tolerations=tolerating(60))
        await world.create("kept", tolerations=tolerating(6000))
        await world.at(10)
        await world.nodes.lose("node-0")
        await world.at(200)
        await world.nodes.restore("node-0")
        await world.at(201)
        assert (readiness_of(world.node()), world.taints()) == ("True", [])
        assert not world.has("gone")
        assert (world.ready("kept"), world.phase("kept")) == ("True", "Running")

    simulate(scenario)


def test_a_node_that_is_silent_can_be_cordoned() -> None:
    async def scenario(world: World) -> None:
        await world.at(1)
        await world.nodes.lose("node-0")
        await world.nodes.cordon("node-0")
        await world.at(2)
        assert world.taints() == ["unschedulable:NoSchedule"]
        await world.at(42)
        assert world.taints() == ["unreachable:NoSchedule", "unreachable:NoExecute", "unschedulable:NoSchedule"]

    simulate(scenario)


def test_a_node_without_any_state_is_unreachable_and_full() -> None:
    async def scenario(world: World) -> None:
        await world.call("POST", "/api/v1/nodes", {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "bare"}})
        await world.create(node="bare", tolerations=[{"operator": "Exists"}])
        await world.at(1)
        assert world.taints("bare") == ["unreachable:NoSchedule", "unreachable:NoExecute"]
        assert world.pod()["status"]["reason"] == "OutOfpods"

    simulate(scenario)


def test_a_short_silence_does_not_matter() -> None:
    async def scenario(world: World) -> None:
        await world.create()
        await world.at(1)
        await world.nodes.lose("node-0")
        await world.at(20)
        await world.nodes.restore("node-0")
        await world.at(100)
        assert (readiness_of(world.node()), world.ready()) == ("True", "True")

    simulate(scenario)


def test_pods_of_a_deleted_node_are_collected() -> None:
    async def scenario(world: World) -> None:
        await world.create()
        await world.create("other", node="node-1")
        await world.at(10)
        await world.nodes.delete("node-0")
        await world.at(49)
        assert world.has()
        await world.at(51)
        assert (world.has(), world.has("other")) == (False, True)

    simulate(scenario)


def test_a_replaced_node_has_another_uid_and_runs_its_pods_anew() -> None:
    async def scenario(world: World) -> None:
        await world.create(annotations={"ready-delay": "5s"})
        await world.at(10)
        before = world.node()["metadata"]["uid"]
        await world.nodes.replace("node-0")
        assert world.node()["metadata"]["uid"] != before
        await world.at(12)
        assert world.ready() == "False"
        await world.at(100)
        assert (world.ready(), readiness_of(world.node())) == ("True", "True")

    simulate(scenario)


def test_a_drain_leaves_nothing_behind() -> None:
    async def scenario(world: World) -> None:
        for i in range(3):
            await world.create(f"p{i}", annotations={"stop-delay": f"{i}s"})
        await world.create("other", node="node-1")
        await world.at(1)
        await world.nodes.drain("node-0")
        assert [world.has(f"p{i}") for i in range(3)] == [False] * 3
        assert world.has("other")
        assert world.taints() == ["unschedulable:NoSchedule"]

    simulate(scenario)


def test_a_drain_of_a_lost_node_gives_up() -> None:
    async def scenario(world: World) -> None:
        await world.create()
        await world.at(1)
        await world.nodes.lose("node-0")
        with pytest.raises(TimeoutError):
            await world.nodes.drain("node-0", timeout_s=30)

    simulate(scenario)


def test_out_of_service_lets_pods_of_a_lost_node_go() -> None:
    async def scenario(world: World) -> None:
        await world.create()
        await world.at(1)
        await world.nodes.lose("node-0")
        await world.at(60)
        await world.delete()
        await world.at(100)
        assert world.has()
        taint = {"key": "node.kubernetes.io/out-of-service", "effect": "NoExecute"}
        taints = [*world.node()["spec"]["taints"], taint]
        await world.call("PATCH", "/api/v1/nodes/node-0", {"spec": {"taints": taints}}, "application/merge-patch+json")
        await world.at(101)
        assert not world.has()

    simulate(scenario)


def test_leases_are_renewed_while_a_machine_lives_and_tell_when_it_does_not() -> None:
    async def scenario(world: World) -> None:
        await world.create(tolerations=tolerating(6000))
        await world.at(95)
        lease = world.server.lookup.get("coordination.k8s.io", "leases", "kube-node-lease", "node-0")
        assert lease is not None
        assert lease["spec"]["renewTime"] == "2026-01-01T00:01:30.000000Z"
        assert lease["metadata"]["ownerReferences"][0]["uid"] == world.node()["metadata"]["uid"]
        assert readiness_of(world.node()) == "True"
        world.kubelet.lose("node-0")
        await world.at(129)
        assert readiness_of(world.node()) == "True"
        await world.at(131)
        assert (readiness_of(world.node()), readiness_of(world.node("node-1"))) == ("Unknown", "True")
        assert world.ready() == "False"
        await world.nodes.restore("node-0")
        await world.at(1000)
        assert (readiness_of(world.node()), world.taints(), world.ready()) == ("True", [], "True")

    simulate(scenario, heartbeats=True)
