"""Scaling and deletion of a PodCliqueSet, and the gangs that it has."""

from typing import Any

import pytest

from api import labels
from api.core import Service
from api.grove import PodClique, PodCliqueScalingGroup, PodCliqueSet
from api.operatorconfig import OperatorConfiguration
from api.plan import Apply, Create, Delete, Key, Plan, SetFinalizers
from api.podgang import PodGang
from tests.unit.setworld import GROUP, both, events, planned, template
from tests.unit.worlds import (
    change,
    chosen,
    clique,
    converge,
    created,
    deleted,
    deleting,
    named,
    names,
    plans,
    podcliqueset,
    running,
    settled,
)


def test_scaling_out_adds_whole_replicas() -> None:
    world = both()
    change(world, PodCliqueSet, "chat", spec={"replicas": 2})
    p = planned(world)
    assert created(p, Service) == ["chat-1"]
    assert created(p, PodClique) == ["chat-1-router"]
    assert created(p, PodCliqueScalingGroup) == ["chat-1-g"]
    assert created(p, PodGang) == ["chat-1", "chat-1-g-0"]
    assert events(p) == [
        "PodCliqueCreateOrUpdateSuccessful",
        "PodCliqueScalingGroupCreateSuccessful",
        "PodGangCreateOrUpdateSuccessful",
    ]
    assert not chosen(p, Delete)


def test_scaling_in_removes_whole_replicas_from_the_top() -> None:
    world = both(replicas=3)
    change(world, PodCliqueSet, "chat", spec={"replicas": 1})
    p = planned(world)
    assert deleted(p, Service) == ["chat-1", "chat-2"]
    assert deleted(p, PodClique) == ["chat-1-router", "chat-2-router"]
    assert deleted(p, PodCliqueScalingGroup) == ["chat-1-g", "chat-2-g"]
    assert sorted(deleted(p, PodGang)) == ["chat-1", "chat-1-g-0", "chat-2", "chat-2-g-0"]
    assert events(p) == ["PodCliqueDeleteSuccessful", "PodCliqueScalingGroupDeleteSuccessful", "PodGangDeleteSuccessful"]
    assert not chosen(p, Create)
    assert all(op.ref.uid for op in chosen(p, Delete))


def test_a_leaked_clique_is_deleted_even_while_another_is_missing() -> None:
    world = running(podcliqueset(clique("a"), clique("b"), replicas=2))
    change(world, PodCliqueSet, "chat", spec={"replicas": 1})
    for name in ("chat-1-a", "chat-0-b"):
        world.remove(PodClique, Key("serving", name))
    p = planned(world)
    assert (created(p, PodClique), deleted(p, PodClique)) == (["chat-0-b"], ["chat-1-b"])


def test_what_is_being_deleted_is_not_deleted_again() -> None:
    world = both(replicas=2)
    change(world, PodCliqueSet, "chat", spec={"replicas": 1})
    for model in (Service, PodClique, PodCliqueScalingGroup, PodGang):
        for name in names(world, model):
            if name.startswith("chat-1"):
                deleting(world, model, name)
    assert not chosen(planned(world), Delete)


def test_scaling_by_others_is_never_reverted() -> None:
    world = both()
    change(world, PodClique, "chat-0-router", spec={"replicas": 7})
    change(world, PodCliqueScalingGroup, "chat-0-g", spec={"replicas": 4})
    p = planned(world)
    assert not [op for op in p.ops if isinstance(op, Apply | Delete)]
    assert created(p, PodGang) == ["chat-0-g-1", "chat-0-g-2"]


def test_a_scaled_in_group_loses_its_last_gangs_only() -> None:
    world = running(podcliqueset(clique("w"), podCliqueScalingGroups=[{**GROUP, "replicas": 4}]))
    change(world, PodCliqueScalingGroup, "chat-0-g", spec={"replicas": 2})
    assert deleted(planned(world), PodGang) == ["chat-0-g-1", "chat-0-g-2"]


def test_groups_follow_the_annotations_of_their_configuration() -> None:
    world = both()
    (config,) = named(world, PodCliqueSet, "chat")["spec"]["template"]["podCliqueScalingGroups"]
    template(world, podCliqueScalingGroups=[{**config, "annotations": {"team": "serving"}}])
    (op,) = chosen(planned(world), Apply)
    assert (op.manifest["metadata"]["annotations"], op.uid != "") == ({"team": "serving"}, True)
    assert "replicas" not in op.manifest["spec"]
    assert "finalizers" not in op.manifest["metadata"]


def test_groups_inherit_the_mnnvl_group_unless_they_have_their_own() -> None:
    manifest = podcliqueset(clique("a"), clique("b"), podCliqueScalingGroups=[
        {"name": "x", "cliqueNames": ["a"]},
        {"name": "y", "cliqueNames": ["b"], "annotations": {labels.ANNOTATION_MNNVL_GROUP: "own"}},
    ])  # fmt: skip
    manifest["metadata"]["annotations"] = {labels.ANNOTATION_MNNVL_GROUP: "train"}
    config = OperatorConfiguration.model_validate({"network": {"autoMNNVLEnabled": True}})
    world = settled(manifest, config=config)
    found = {n: named(world, PodCliqueScalingGroup, n)["metadata"]["annotations"] for n in names(world, PodCliqueScalingGroup)}
    assert found == {
        "chat-0-x": {labels.ANNOTATION_MNNVL_GROUP: "train"},
        "chat-0-y": {labels.ANNOTATION_MNNVL_GROUP: "own"},
    }


GANGS: list[tuple[str, int, list[dict[str, Any]], dict[str, int], list[str]]] = [
    ("r4 m1", 1, [{"replicas": 4}], {}, ["chat-0", "chat-0-sg-0", "chat-0-sg-1", "chat-0-sg-2"]),
    ("r6 m2", 1, [{"replicas": 6, "minAvailable": 2}], {}, ["chat-0", *(f"chat-0-sg-{k}" for k in range(4))]),
    ("r2 m2", 1, [{"replicas": 2, "minAvailable": 2}], {}, ["chat-0"]),
    ("two replicas", 2, [{"replicas": 2}], {}, ["chat-0", "chat-0-sg-0", "chat-1", "chat-1-sg-0"]),
    (
        "two groups",
        1,
        [{"name": "a", "replicas": 3}, {"name": "b", "replicas": 2}],
        {},
        ["chat-0", "chat-0-a-0", "chat-0-a-1", "chat-0-b-0"],
    ),
    ("live count wins", 1, [{"replicas": 4}], {"chat-0-sg": 2}, ["chat-0", "chat-0-sg-0"]),
]


@pytest.mark.parametrize(("replicas", "groups", "live", "expected"), [g[1:] for g in GANGS], ids=[g[0] for g in GANGS])
def test_the_gangs_of_a_set(replicas: int, groups: list[dict[str, Any]], live: dict[str, int], expected: list[str]) -> None:
    configs = [{"name": "sg", "minAvailable": 1, **g, "cliqueNames": [f"w{i}"]} for i, g in enumerate(groups)]
    cliques = [clique(f"w{i}") for i in range(len(groups))]
    world = settled(podcliqueset(*cliques, replicas=replicas, podCliqueScalingGroups=configs))
    for name, count in live.items():
        change(world, PodCliqueScalingGroup, name, spec={"replicas": count})
    converge(world)
    assert names(world, PodGang) == expected


def test_a_deleted_set_only_lets_go() -> None:
    world = both()
    change(world, PodCliqueSet, "chat", metadata={"finalizers": ["example.com/x", labels.FINALIZER_PODCLIQUESET]})
    deleting(world, PodCliqueSet, "chat")
    (op,) = planned(world).ops
    assert isinstance(op, SetFinalizers)
    assert op.finalizers == ("example.com/x",)
    change(world, PodCliqueSet, "chat", metadata={"finalizers": ["example.com/x"]})
    assert planned(world) == Plan()


def test_nothing_is_made_for_a_set_that_is_being_deleted() -> None:
    world = both()
    deleting(world, PodCliqueSet, "chat")
    for name in names(world, PodClique):
        world.remove(PodClique, Key("serving", name))
    assert not [op for _, p in plans(world) for op in p.ops if isinstance(op, Create | Apply | Delete)]
