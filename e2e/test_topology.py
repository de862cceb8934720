"""Topology on real objects: placement rules of upstream's scenarios TAS2 to TAS17 and TAS23 (grove.md §9.7), with our binder.

28 nodes of 150Mi in four racks of 7, blocks of 20 and 8, one zone. Each test also reads the constraints off the PodGangs.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import pytest

from e2e.cluster import Pod, Pool, Scene, eventually
from e2e.conftest import POOL_SIZE
from e2e.workloads import TOPOLOGY, binding, clique, group, pack, pcs

pytestmark = pytest.mark.timeout(90)

MERGE = "application/merge-patch+json"
KEYS = {domain: f"kubernetes.io/{domain}" for domain in ("zone", "block", "rack")} | {"host": "kubernetes.io/hostname"}


def constraint(required: str = "", preferred: str = "") -> dict[str, Any]:
    """A constraint as a PodGang carries it, by domain."""
    return {"packConstraint": {kind: KEYS[d] for kind, d in (("required", required), ("preferred", preferred)) if d}}


class Placement:
    """The pods of a scene by domain."""

    def __init__(self, scene: Scene) -> None:
        self.pods = scene.pods()
        nodes = scene.client.request("GET", "/api/v1/nodes")["items"]
        self.labels = {n["metadata"]["name"]: n["metadata"]["labels"] for n in nodes}

    def domains(self, key: str, chosen: Callable[[Pod], bool] = lambda pod: True) -> set[str]:
        """Domains of a level (a node label) that the chosen pods are in."""
        pods = [pod for pod in self.pods if chosen(pod)]
        assert pods
        return {self.labels[pod.node].get(key, "none") for pod in pods}

    def assert_same(self, domain: str, *prefixes: str) -> None:
        """For each prefix of clique names: all those pods are in one domain."""
        for prefix in prefixes or ("",):
            found = self.domains(KEYS[domain], lambda pod, prefix=prefix: pod.clique.startswith(prefix))
            assert len(found) == 1, f"pods of {prefix or 'all cliques'} are in {sorted(found)}"

    def assert_one_per_host(self, prefix: str = "") -> None:
        nodes = Counter(pod.node for pod in self.pods if pod.clique.startswith(prefix))
        assert max(nodes.values()) == 1, nodes


def run(scene: Scene, pool: Pool, manifest: dict[str, Any], placed: int) -> Placement:
    """Apply on the whole pool and wait until all pods are placed and Ready."""
    pool.open(POOL_SIZE)
    scene.apply(manifest)
    scene.wait_counts(placed, 0)
    return Placement(scene)


def gangs(scene: Scene) -> dict[str, dict[str, Any]]:
    return {g["metadata"]["name"]: g["spec"] for g in scene.objects("PodGang")}


def leaves(gang: dict[str, Any]) -> dict[str, Any]:
    """Constraint of each pod group by name, None without one."""
    return {g["name"]: g.get("topologyConstraint") for g in gang["podgroups"]}


def parents(gang: dict[str, Any]) -> dict[str, tuple[tuple[str, ...], Any]]:
    """Group configs by name: (pod groups, constraint)."""
    configs = gang.get("topologyConstraintGroupConfigs", ())
    return {c["name"]: (tuple(c["podGroupNames"]), c.get("topologyConstraint")) for c in configs}


def no_constraint(names: Iterable[str]) -> dict[str, None]:
    return dict.fromkeys(names)


def test_tas2_cliques_pack_on_their_own(scene: Scene, pool: Pool) -> None:
    rack = clique("worker-rack", 3, memory="20Mi", apart=True, constraint=pack("rack", topology=TOPOLOGY))
    block = clique("worker-block", 4, memory="20Mi", apart=True, constraint=pack("block", topology=TOPOLOGY))
    seen = run(scene, pool, pcs("indep", (rack, block)), 7)
    seen.assert_same("rack", "indep-0-worker-rack")
    seen.assert_same("block", "indep-0-worker-block")
    seen.assert_one_per_host("indep-0-worker-rack")
    seen.assert_one_per_host("indep-0-worker-block")
    gang = gangs(scene)["indep-0"]
    assert leaves(gang) == {"indep-0-worker-rack": constraint("rack"), "indep-0-worker-block": constraint("block")}
    assert "topologyConstraint" not in gang


def test_tas3_rule_of_the_set_alone(scene: Scene, pool: Pool) -> None:
    cliques = (clique("worker", 1, memory="10Mi"), clique("router", 2, memory="10Mi", apart=True))
    manifest = pcs("set-only", cliques, (group("workers", ("worker",), 2, 2),), constraint=pack("rack", topology=TOPOLOGY))
    seen = run(scene, pool, manifest, 4)
    seen.assert_same("rack")
    seen.assert_one_per_host("set-only-0-router")
    gang = gangs(scene)["set-only-0"]
    assert gang["topologyConstraint"] == constraint("rack")
    assert parents(gang) == {}
    assert leaves(gang) == no_constraint(("set-only-0-router", "set-only-0-workers-0-worker", "set-only-0-workers-1-worker"))


def test_tas4_rule_of_the_scaling_group_alone(scene: Scene, pool: Pool) -> None:
    cliques = (clique("worker", 1, memory="10Mi"), clique("router", 2, memory="10Mi", apart=True))
    workers = group("workers", ("worker",), 2, 2, constraint=pack("rack", topology=TOPOLOGY))
    seen = run(scene, pool, pcs("group-only", cliques, (workers,)), 4)
    seen.assert_same("rack", "group-only-0-workers-0-", "group-only-0-workers-1-")
    gang = gangs(scene)["group-only-0"]
    assert "topologyConstraint" not in gang
    assert parents(gang) == {f"group-only-0-workers-{j}": ((f"group-only-0-workers-{j}-worker",), constraint("rack")) for j in (0, 1)}


def test_tas5_one_host(scene: Scene, pool: Pool) -> None:
    worker = clique("worker", 2, memory="40Mi", constraint=pack("host", topology=TOPOLOGY))
    run(scene, pool, pcs("host", (worker,)), 2).assert_same("host")
    assert leaves(gangs(scene)["host-0"]) == {"host-0-worker": constraint("host")}


def test_tas6_one_zone(scene: Scene, pool: Pool) -> None:
    worker = clique("worker", 4, memory="40Mi", apart=True)
    seen = run(scene, pool, pcs("zone", (worker,), constraint=pack("zone", topology=TOPOLOGY)), 4)
    seen.assert_same("zone")
    seen.assert_one_per_host()
    gang = gangs(scene)["zone-0"]
    assert (gang["topologyConstraint"], leaves(gang)) == (constraint("zone"), {"zone-0-worker": None})


def test_tas7_no_rule_at_all(scene: Scene, pool: Pool) -> None:
    cliques = (clique("worker", 1, memory="40Mi"), clique("router", 2, memory="40Mi"))
    run(scene, pool, pcs("free", cliques, (group("workers", ("worker",), 2, 2),)), 4)
    gang = gangs(scene)["free-0"]
    assert leaves(gang) == no_constraint(("free-0-router", "free-0-workers-0-worker", "free-0-workers-1-worker"))
    assert "topologyConstraint" not in gang
    assert parents(gang) == {}


def test_tas8_block_rack_host(scene: Scene, pool: Pool) -> None:
    cliques = tuple(clique(name, 2, memory="40Mi", constraint=pack("host")) for name in ("prefill", "decode"))
    units = group("unit", ("prefill", "decode"), 2, 2, constraint=pack("rack"))
    seen = run(scene, pool, pcs("tree", cliques, (units,), constraint=pack("block", topology=TOPOLOGY)), 8)
    seen.assert_same("block")
    seen.assert_same("rack", "tree-0-unit-0-", "tree-0-unit-1-")
    seen.assert_same("host", *(f"tree-0-unit-{j}-{name}" for j in (0, 1) for name in ("prefill", "decode")))
    gang = gangs(scene)["tree-0"]
    assert gang["topologyConstraint"] == constraint("block")
    assert [rule for _, rule in parents(gang).values()] == [constraint("rack")] * 2
    assert list(leaves(gang).values()) == [constraint("host")] * 4


def test_tas9_block_and_host(scene: Scene, pool: Pool) -> None:
    worker = clique("worker", 2, memory="40Mi", constraint=pack("host"))
    seen = run(scene, pool, pcs("two-levels", (worker,), constraint=pack("block", topology=TOPOLOGY)), 2)
    seen.assert_same("host")
    gang = gangs(scene)["two-levels-0"]
    assert (gang["topologyConstraint"], leaves(gang)) == (constraint("block"), {"two-levels-0-worker": constraint("host")})


def test_tas10_tail_gangs_carry_the_groups_rule(scene: Scene, pool: Pool) -> None:
    workers = group("workers", ("worker",), 3, 1, constraint=pack("rack"))
    cliques = (clique("worker", 2, memory="40Mi"),)
    seen = run(scene, pool, pcs("scale", cliques, (workers,), constraint=pack("block", topology=TOPOLOGY)), 6)
    seen.assert_same("rack", *(f"scale-0-workers-{j}-" for j in range(3)))
    found = gangs(scene)
    assert found.keys() == {"scale-0", "scale-0-workers-0", "scale-0-workers-1"}
    assert found["scale-0"]["topologyConstraint"] == constraint("block")
    assert parents(found["scale-0"]).keys() == {"scale-0-workers-0"}
    for name in ("scale-0-workers-0", "scale-0-workers-1"):
        assert (found[name]["topologyConstraint"], parents(found[name])) == (constraint("rack"), {})


def test_tas11_rack_per_replica_and_host_per_clique(scene: Scene, pool: Pool) -> None:
    worker = clique("worker", 2, memory="40Mi", constraint=pack("host"))
    workers = group("workers", ("worker",), 2, 2, constraint=pack("rack", topology=TOPOLOGY))
    seen = run(scene, pool, pcs("no-top", (worker,), (workers,)), 4)
    seen.assert_same("host", "no-top-0-workers-0-", "no-top-0-workers-1-")
    gang = gangs(scene)["no-top-0"]
    assert "topologyConstraint" not in gang
    assert {name: rule for name, (_, rule) in parents(gang).items()} == {f"no-top-0-workers-{j}": constraint("rack") for j in (0, 1)}


def test_tas12_ten_replicas_three_mandatory(scene: Scene, pool: Pool) -> None:
    worker = clique("worker", 2, memory="40Mi", constraint=pack("host"))
    workers = group("workers", ("worker",), 10, 3)
    seen = run(scene, pool, pcs("large", (worker,), (workers,), constraint=pack("block", topology=TOPOLOGY)), 20)
    seen.assert_same("host", *(f"large-0-workers-{j}-" for j in range(10)))
    seen.assert_same("block", *(f"large-0-workers-{j}-" for j in range(3)))
    found = gangs(scene)
    assert len(found["large-0"]["podgroups"]) == 3
    assert found.keys() == {"large-0", *(f"large-0-workers-{k}" for k in range(7))}
    assert all(gang["topologyConstraint"] == constraint("block") for gang in found.values())


def test_tas12_tail_gangs_join_their_anchors_block(scene: Scene, pool: Pool) -> None:
    """Two tail gangs, so that the smaller block has room for all as well."""
    worker = clique("worker", 2, memory="40Mi", constraint=pack("host"))
    workers = group("workers", ("worker",), 5, 3)
    run(scene, pool, pcs("large", (worker,), (workers,), constraint=pack("block", topology=TOPOLOGY)), 10).assert_same("block")


def test_tas13_too_many_for_a_rack(scene: Scene, pool: Pool) -> None:
    pool.open(POOL_SIZE)
    scene.apply(pcs("insuffic", (clique("worker", 10, apart=True),), constraint=pack("rack", topology=TOPOLOGY)))
    scene.wait_counts(0, 10)
    assert all(pod.unschedulable and not pod.gated for pod in scene.pods())
    assert gangs(scene)["insuffic-0"]["topologyConstraint"] == constraint("rack")


def test_tas14_each_replica_its_own_rack(scene: Scene, pool: Pool) -> None:
    worker = clique("worker", 2, memory="20Mi", apart=True)
    seen = run(scene, pool, pcs("multirep", (worker,), replicas=2, constraint=pack("rack", topology=TOPOLOGY)), 4)
    seen.assert_same("rack", "multirep-0-", "multirep-1-")


@pytest.mark.parametrize(("replicas", "leaf"), [(1, ""), (2, "host")], ids=["tas15", "tas16"])
def test_two_scaling_groups(scene: Scene, pool: Pool, replicas: int, leaf: str) -> None:
    cliques = (
        clique("dworker", 1, memory="10Mi"),
        clique("dleader", 1, memory="10Mi"),
        clique("pworker", 1, memory="10Mi", constraint=pack(leaf) if leaf else None),
        clique("pleader", 1, memory="10Mi"),
        clique("router", 2, memory="10Mi"),
    )
    both = tuple(group(name, (f"{name[0]}worker", f"{name[0]}leader"), 2, 1, constraint=pack("rack")) for name in ("decoder", "prefill"))
    seen = run(scene, pool, pcs("disagg", cliques, both, replicas=replicas, constraint=pack("block", topology=TOPOLOGY)), 10 * replicas)
    found = gangs(scene)
    for i in range(replicas):
        seen.assert_same("block", f"disagg-{i}-")
        seen.assert_same("rack", *(f"disagg-{i}-{name}-{j}-" for name in ("decoder", "prefill") for j in (0, 1)))
        anchor = found[f"disagg-{i}"]
        assert anchor["topologyConstraint"] == constraint("block")
        assert parents(anchor).keys() == {f"disagg-{i}-decoder-0", f"disagg-{i}-prefill-0"}
        assert leaves(anchor)[f"disagg-{i}-prefill-0-pworker"] == (constraint(leaf) if leaf else None)
        for name in ("decoder", "prefill"):
            assert found[f"disagg-{i}-{name}-0"]["topologyConstraint"] == constraint("rack")
    assert len(found) == 3 * replicas


@pytest.fixture
def two_segments(scene: Scene, pool: Pool) -> Iterator[None]:
    """Half of the nodes keep rack labels only, the other half has labels of another kind; both topologies call a level `block`."""
    names = pool.names
    originals = {n["metadata"]["name"]: n["metadata"]["labels"] for n in scene.client.request("GET", "/api/v1/nodes")["items"]}
    gone = (KEYS["zone"], KEYS["block"])
    for i, name in enumerate(names):
        new: dict[str, str | None] = dict.fromkeys(gone)
        if i >= 14:
            nvl = {"example.com/nvl-block": f"block-{(i - 14) // 7}", "example.com/nvlink-domain": f"domain-{(i - 14) // 4}"}
            new = {**new, KEYS["rack"]: None, **nvl}
        scene.client.request("PATCH", f"/api/v1/nodes/{name}", {"metadata": {"labels": new}}, MERGE)
    scene.apply(
        binding("h100-topology", {"block": KEYS["rack"], "host": KEYS["host"]}),
        binding("gb200-topology", {"block": "example.com/nvl-block", "rack": "example.com/nvlink-domain", "host": KEYS["host"]}),
    )
    yield
    added = ("example.com/nvl-block", "example.com/nvlink-domain")
    for name in names:
        old = {**dict.fromkeys(added), **{key: originals[name][key] for key in (*gone, KEYS["rack"])}}
        scene.client.request("PATCH", f"/api/v1/nodes/{name}", {"metadata": {"labels": old}}, MERGE)
    for name in ("h100-topology", "gb200-topology"):
        scene.client.request("DELETE", f"/apis/grove.io/v1alpha1/clustertopologybindings/{name}")


@pytest.mark.usefixtures("two_segments")
def test_tas17_two_topologies(scene: Scene, pool: Pool) -> None:
    pool.open(POOL_SIZE)
    for name in ("h100", "gb200"):
        worker = clique("worker", 2, memory="40Mi", apart=True)
        scene.apply(pcs(name, (worker,), constraint=pack("block", topology=f"{name}-topology")))
    scene.wait_counts(4, 0)
    seen = Placement(scene)
    for name, key, nodes in (("h100", KEYS["rack"], pool.names[:14]), ("gb200", "example.com/nvl-block", pool.names[14:])):
        assert len(seen.domains(key, lambda pod, name=name: pod.gang == f"{name}-0")) == 1
        assert {pod.node for pod in seen.pods if pod.gang == f"{name}-0"} <= set(nodes)
        gang = scene.object("PodGang", f"{name}-0")
        assert gang["metadata"]["annotations"]["grove.io/topology-name"] == f"{name}-topology"
        assert gang["spec"]["topologyConstraint"] == {"packConstraint": {"required": key}}


def test_tas23_preferences(scene: Scene, pool: Pool) -> None:
    cliques = (clique("worker", 2, memory="40Mi"), clique("router", 2, memory="40Mi", constraint=pack(preferred="host")))
    workers = group("workers", ("worker",), 2, 1, constraint=pack(preferred="host"))
    top = pack("block", "rack", topology=TOPOLOGY)
    seen = run(scene, pool, pcs("prefer", cliques, (workers,), constraint=top), 6)
    # The pool is empty, so every preference can be met.
    seen.assert_same("host", "prefer-0-workers-0-", "prefer-0-workers-1-", "prefer-0-router")
    seen.assert_same("rack", "prefer-0-workers-0-", "prefer-0-router")
    found = gangs(scene)
    anchor = found["prefer-0"]
    assert anchor["topologyConstraint"] == constraint("block", "rack")
    assert parents(anchor) == {"prefer-0-workers-0": (("prefer-0-workers-0-worker",), constraint(preferred="host"))}
    assert leaves(anchor)["prefer-0-router"] == constraint(preferred="host")
    assert found["prefer-0-workers-0"]["topologyConstraint"] == constraint(preferred="host")
    eventually(
        lambda: scene.condition("PodCliqueSet", "prefer", "TopologyLevelsUnavailable").get("status") == "False",
        "TopologyLevelsUnavailable is not False",
    )
