"""Topology of PodGangs: from domains of a PodCliqueSet to node label keys, on each level, and back to nothing."""

from typing import Any

import pytest

from api import labels
from api.grove import ClusterTopologyBinding, PodCliqueSet
from api.objects.podgang import gang_shapes, podgang_manifest
from api.objects.topology import topology_name
from api.operatorconfig import OperatorConfiguration
from api.plan import Apply, Key, Manifest
from api.podgang import PodGang
from cli.world import World
from tests.unit.worlds import change, chosen, clique, converge, named, plans, podcliqueset, settled

KEYS = {"zone": "example.com/zone", "block": "example.com/block", "rack": "example.com/rack", "host": "kubernetes.io/hostname"}
TAS = OperatorConfiguration.model_validate({"topologyAwareScheduling": {"enabled": True}})
BINDING = {
    "apiVersion": "grove.io/v1alpha1",
    "kind": "ClusterTopologyBinding",
    "metadata": {"name": "dc"},
    "spec": {"levels": [{"domain": d, "key": k} for d, k in KEYS.items()]},
}


def pack(required: str = "", preferred: str = "") -> Manifest:
    """A constraint of a PodCliqueSet."""
    return {"topologyName": "dc", "pack": {k: v for k, v in (("required", required), ("preferred", preferred)) if v}}


def keyed(required: str = "", preferred: str = "") -> Manifest:
    """The same in a PodGang."""
    return {"packConstraint": {k: KEYS[v] for k, v in (("required", required), ("preferred", preferred)) if v}}


def manifest(of_set: Any = None, of_group: Any = None, of_leader: Any = None, of_worker: Any = None) -> Manifest:
    """A set with a scaling group of two cliques, one Anchor replica and one Tail replica; constraints where given."""

    def constrained(part: Manifest, constraint: Any) -> Manifest:
        return {**part, **({"topologyConstraint": constraint} if constraint is not None else {})}

    leader, worker = constrained(clique("leader"), of_leader), constrained(clique("worker", 2), of_worker)
    group = constrained({"name": "g", "cliqueNames": ["leader", "worker"], "replicas": 2, "minAvailable": 1}, of_group)
    return podcliqueset(leader, worker, podCliqueScalingGroups=[group], **constrained({}, of_set))


def places(gang: Manifest) -> dict[str, Manifest]:
    """Every constraint of a gang: "gang", then group configs and pod groups by name."""
    spec = gang["spec"]
    found = {"gang": spec.get("topologyConstraint")}
    found |= {c["name"]: c.get("topologyConstraint", {}) for c in spec.get("topologyConstraintGroupConfigs", ())}
    found |= {g["name"]: g.get("topologyConstraint") for g in spec["podgroups"]}
    return {name: constraint for name, constraint in found.items() if constraint is not None}


def gangs(subject: Manifest, keys: dict[str, str] | None) -> tuple[dict[str, Manifest], dict[str, Manifest]]:
    """Constraints of the Anchor and of the Tail gang."""
    pcs = PodCliqueSet.model_validate(subject)
    made = [podgang_manifest(pcs, s, references={}, level_keys=keys, scheduler="default-scheduler") for s in gang_shapes(pcs, {})]
    for gang in made:
        named_topology = gang["metadata"].get("annotations", {}).get(labels.ANNOTATION_TOPOLOGY_NAME)
        wanted = topology_name(pcs) if any(places(gang).values()) else None
        assert named_topology == wanted, "the topology is named exactly where a constraint is"
    anchor, tail = made
    return places(anchor), places(tail)


A, B = "chat-0-g-0", "chat-0-g-1"
WITHOUT_RACK = {d: k for d, k in KEYS.items() if d != "rack"}

CASES: list[tuple[str, Manifest, dict[str, str] | None, dict[str, Manifest], dict[str, Manifest]]] = [
    ("no constraint", manifest(), KEYS, {}, {}),
    ("set only", manifest(pack("rack")), KEYS, {"gang": keyed("rack")}, {"gang": keyed("rack")}),
    ("set only, preferred", manifest(pack("", "rack")), KEYS, {"gang": keyed("", "rack")}, {"gang": keyed("", "rack")}),
    ("set only, both", manifest(pack("block", "rack")), KEYS, {"gang": keyed("block", "rack")}, {"gang": keyed("block", "rack")}),
    ("old field", manifest({"topologyName": "dc", "packDomain": "rack"}), KEYS, {"gang": keyed("rack")}, {"gang": keyed("rack")}),
    ("preferred vanished", manifest(pack("block", "rack")), WITHOUT_RACK, {"gang": keyed("block")}, {"gang": keyed("block")}),
    ("required vanished", manifest(pack("rack", "host")), WITHOUT_RACK, {"gang": keyed("", "host")}, {"gang": keyed("", "host")}),
    ("all vanished", manifest(pack("rack")), WITHOUT_RACK, {}, {}),
    (
        "one of two cliques",
        manifest(of_worker=pack("host")),
        KEYS,
        {f"{A}-worker": keyed("host")},
        {f"{B}-worker": keyed("host")},
    ),
    (
        "all levels",
        manifest(pack("zone"), pack("block"), pack("rack"), pack("host")),
        KEYS,
        {"gang": keyed("zone"), A: keyed("block"), f"{A}-leader": keyed("rack"), f"{A}-worker": keyed("host")},
        {"gang": keyed("block"), f"{B}-leader": keyed("rack"), f"{B}-worker": keyed("host")},
    ),
    ("set and group", manifest(pack("zone"), pack("rack")), KEYS, {"gang": keyed("zone"), A: keyed("rack")}, {"gang": keyed("rack")}),
    ("group only", manifest(of_group=pack("rack")), KEYS, {A: keyed("rack")}, {"gang": keyed("rack")}),
    ("group only, preferred", manifest(of_group=pack("", "rack")), KEYS, {A: keyed("", "rack")}, {"gang": keyed("", "rack")}),
    (
        "set and cliques",
        manifest(pack("zone"), None, pack("rack"), pack("host")),
        KEYS,
        {"gang": keyed("zone"), f"{A}-leader": keyed("rack"), f"{A}-worker": keyed("host")},
        {"gang": keyed("zone"), f"{B}-leader": keyed("rack"), f"{B}-worker": keyed("host")},
    ),
    ("group's domain vanished", manifest(pack("zone"), pack("rack")), WITHOUT_RACK, {"gang": keyed("zone"), A: {}}, {}),
    ("no topology in effect", manifest(pack("zone"), pack("block"), pack("rack"), pack("host")), None, {}, {}),
]


@pytest.mark.parametrize(("subject", "keys", "anchor", "tail"), [c[1:] for c in CASES], ids=[c[0] for c in CASES])
def test_translation(subject: Manifest, keys: dict[str, str] | None, anchor: dict[str, Manifest], tail: dict[str, Manifest]) -> None:
    assert gangs(subject, keys) == (anchor, tail)


def test_one_group_config_for_each_anchor_replica() -> None:
    group = {"name": "g", "cliqueNames": ["leader", "worker"], "replicas": 3, "minAvailable": 2, "topologyConstraint": pack("rack")}
    pcs = PodCliqueSet.model_validate(podcliqueset(clique("leader"), clique("worker"), podCliqueScalingGroups=[group]))
    anchor = next(gang_shapes(pcs, {}))
    made = podgang_manifest(pcs, anchor, references={}, level_keys=KEYS, scheduler="default-scheduler")
    assert made["spec"]["topologyConstraintGroupConfigs"] == [
        {"name": f"chat-0-g-{j}", "podGroupNames": [f"chat-0-g-{j}-leader", f"chat-0-g-{j}-worker"], "topologyConstraint": keyed("rack")}
        for j in (0, 1)
    ]


# gangs that exist already


def live() -> World:
    return converge(settled(BINDING, manifest(pack("zone"), pack("rack")), config=TAS))


def applied(world: World) -> dict[str, Manifest]:
    """PodGangs as their controller would write them now, by name."""
    ops = [op for _, plan in plans(world) for op in chosen(plan, Apply) if op.kind == PodGang.KIND]
    return {op.manifest["metadata"]["name"]: op.manifest for op in ops}


def test_a_live_gang_has_its_constraints_and_names_its_topology() -> None:
    world = live()
    for name in ("chat-0", "chat-0-g-0"):
        gang = named(world, PodGang, name)
        assert places(gang)["gang"] == keyed("zone" if name == "chat-0" else "rack")
        assert gang["metadata"]["annotations"] == {labels.ANNOTATION_TOPOLOGY_NAME: "dc"}


def test_constraints_go_with_their_binding() -> None:
    world = live()
    world.remove(ClusterTopologyBinding, Key("", "dc"))
    found = applied(world)
    assert sorted(found) == ["chat-0", "chat-0-g-0"]
    for gang in found.values():
        assert places(gang) == {}
        assert "topologyConstraintGroupConfigs" not in gang["spec"]
        assert "annotations" not in gang["metadata"]


def test_a_constraint_goes_with_its_domain() -> None:
    world = live()
    change(world, ClusterTopologyBinding, "dc", spec={"levels": [{"domain": d, "key": k} for d, k in WITHOUT_RACK.items()]})
    found = applied(world)
    assert places(found["chat-0"]) == {"gang": keyed("zone"), A: {}}
    assert found["chat-0"]["metadata"]["annotations"] == {labels.ANNOTATION_TOPOLOGY_NAME: "dc"}
    assert places(found["chat-0-g-0"]) == {}
    assert "annotations" not in found["chat-0-g-0"]["metadata"]


def test_constraints_follow_the_keys_of_their_levels() -> None:
    world = live()
    levels = [{"domain": d, "key": "example.com/other" if d == "zone" else k} for d, k in KEYS.items()]
    change(world, ClusterTopologyBinding, "dc", spec={"levels": levels})
    assert places(applied(world)["chat-0"])["gang"] == {"packConstraint": {"required": "example.com/other"}}


def test_another_binding_concerns_nobody() -> None:
    world = live()
    world.put({**BINDING, "metadata": {"name": "other"}})
    assert applied(world) == {}
