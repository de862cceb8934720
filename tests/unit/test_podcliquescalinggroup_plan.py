"""Plans of one PodCliqueScalingGroup: its members, its claims, and what its status says."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from api import labels
from api.grove import PodClique, PodCliqueScalingGroup, PodCliqueSet
from api.plan import ApplyStatus, Create, Delete, Emit, Key, Plan, SetFinalizers
from api.reasons import Reason
from cli.world import World
from controllers.podcliquescalinggroup.observe import observe
from controllers.podcliquescalinggroup.plan import plan
from tests.unit.worlds import (
    change,
    chosen,
    clique,
    condition_in,
    converge,
    created,
    deleted,
    deleting,
    named,
    names,
    podcliqueset,
    running,
    settled,
    status_in,
)

NOW = datetime(2026, 1, 1, tzinfo=UTC)
GROUP: dict[str, Any] = {"name": "g", "cliqueNames": ["lead", "work"], "minAvailable": 1}
NAME = "chat-0-g"


def planned(world: World, now: datetime = NOW) -> Plan:
    seen = observe(world, Key("serving", NAME), now)
    assert seen is not None
    return plan(seen)


def manifest(replicas: int, minimum: int = 1, **config: Any) -> dict[str, Any]:
    group = {**GROUP, "replicas": replicas, "minAvailable": minimum, **config}
    return podcliqueset(clique("lead"), clique("work", 3, minAvailable=2), podCliqueScalingGroups=[group])


def rescale(world: World, replicas: int) -> None:
    change(world, PodCliqueScalingGroup, NAME, spec={"replicas": replicas})


def member(j: int, name: str) -> str:
    return f"{NAME}-{j}-{name}"


def stored(world: World) -> dict[str, Any]:
    return named(world, PodCliqueScalingGroup, NAME)["status"]


def status_now(world: World) -> dict[str, Any]:
    """The status as it should be: what the plan writes, or what is there already."""
    written = [op.status for op in chosen(planned(world), ApplyStatus)]
    return written[0] if written else stored(world)


def test_a_settled_group_needs_nothing() -> None:
    assert planned(running(manifest(3)), NOW + timedelta(hours=1)) == Plan()


def test_every_replica_has_every_clique() -> None:
    world = settled(manifest(2))
    assert names(world, PodClique) == [member(j, name) for j in (0, 1) for name in ("lead", "work")]
    found = named(world, PodClique, member(1, "work"))
    assert (
        found["metadata"]["labels"].items()
        >= {
            **labels.default_labels("chat"),
            labels.COMPONENT: "pcsg-podclique",
            labels.PCSG: NAME,
            labels.PCSG_REPLICA_INDEX: "1",
            labels.PCS_REPLICA_INDEX: "0",
            labels.PODGANG: "chat-0-g-0",
            labels.BASE_PODGANG: "chat-0",
        }.items()
    )
    (owner,) = found["metadata"]["ownerReferences"]
    assert (owner["kind"], owner["uid"]) == ("PodCliqueScalingGroup", named(world, PodCliqueScalingGroup, NAME)["metadata"]["uid"])
    assert found["metadata"]["finalizers"] == [labels.FINALIZER_PODCLIQUE]


@pytest.mark.parametrize(
    ("j", "minimum", "gang", "base"),
    [(0, 1, "chat-0", None), (1, 1, "chat-0-g-0", "chat-0"), (1, 2, "chat-0", None), (2, 2, "chat-0-g-0", "chat-0")],
)
def test_replicas_below_the_minimum_belong_to_the_anchor_and_others_are_counted_from_it(
    j: int, minimum: int, gang: str, base: str | None
) -> None:
    found = named(settled(manifest(3, minimum)), PodClique, member(j, "lead"))["metadata"]["labels"]
    assert (found[labels.PODGANG], found.get(labels.BASE_PODGANG)) == (gang, base)


def test_a_missing_member_is_made_again() -> None:
    world = converge(settled(manifest(3)))
    world.remove(PodClique, Key("serving", member(1, "work")))
    p = planned(world)
    assert created(p, PodClique) == [member(1, "work")]
    (event,) = chosen(p, Emit)
    assert (event.reason, event.ref.kind) == ("PodCliqueCreateSuccessful", PodCliqueScalingGroup.KIND)


def test_scaling_in_removes_the_highest_replicas_and_tells_the_set() -> None:
    world = converge(settled(manifest(3)))
    rescale(world, 1)
    p = planned(world)
    assert deleted(p, PodClique) == [member(j, name) for j in (1, 2) for name in ("lead", "work")]
    assert all(op.ref.uid for op in chosen(p, Delete))
    (event,) = chosen(p, Emit)
    assert (event.reason, event.ref.kind) == ("PodCliqueScalingGroupReplicaDeleteSuccessful", PodCliqueSet.KIND)


def test_a_hole_in_the_indices_hides_no_replica_that_has_to_go() -> None:
    world = converge(settled(manifest(4)))
    for j in (1, 2):
        for name in ("lead", "work"):
            world.remove(PodClique, Key("serving", member(j, name)))
    rescale(world, 1)
    p = planned(world)
    assert deleted(p, PodClique) == [member(3, "lead"), member(3, "work")]
    assert not created(p, PodClique)


def test_a_hole_below_the_count_is_filled_while_the_top_goes() -> None:
    world = converge(settled(manifest(4)))
    for name in ("lead", "work"):
        world.remove(PodClique, Key("serving", member(0, name)))
    rescale(world, 2)
    p = planned(world)
    assert created(p, PodClique) == [member(0, "lead"), member(0, "work")]
    assert deleted(p, PodClique) == [member(j, name) for j in (2, 3) for name in ("lead", "work")]


def test_a_terminating_member_keeps_its_name_until_it_is_gone() -> None:
    world = converge(settled(manifest(2)))
    deleting(world, PodClique, member(1, "work"))
    p = planned(world)
    assert not [op for op in p.ops if isinstance(op, Create | Delete)]
    world.remove(PodClique, Key("serving", member(1, "work")))
    assert created(planned(world), PodClique) == [member(1, "work")]


def test_a_terminating_member_is_not_deleted_again() -> None:
    world = converge(settled(manifest(2)))
    deleting(world, PodClique, member(1, "work"))
    rescale(world, 1)
    assert deleted(planned(world), PodClique) == [member(1, "lead")]


def test_members_of_a_clique_that_left_the_group_go() -> None:
    world = converge(settled(manifest(2)))
    change(world, PodCliqueScalingGroup, NAME, spec={"cliqueNames": ["lead"]})
    assert deleted(planned(world), PodClique) == [member(0, "work"), member(1, "work")]


def test_members_that_exist_are_never_changed() -> None:
    world = running(manifest(2))
    change(world, PodClique, member(0, "work"), spec={"replicas": 9, "minAvailable": 1})
    assert not [op for op in planned(world).ops if not isinstance(op, ApplyStatus)]


# status


def fail(world: World, *which: int) -> None:
    """These replicas fall below the minimum of one of their cliques."""
    for j in which:
        clique_name = member(j, "work")
        conditions = [{"type": "MinAvailableBreached", "status": "True"}, {"type": "PodCliqueScheduled", "status": "True"}]
        change(world, PodClique, clique_name, status={"conditions": conditions, "readyReplicas": 1})


def drop(world: World, *which: int) -> None:
    """These replicas lack one of their cliques."""
    for j in which:
        world.remove(PodClique, Key("serving", member(j, "lead")))


@pytest.mark.parametrize(
    ("replicas", "minimum", "failed", "incomplete", "breached"),
    [
        (3, 3, (), (), False),
        (5, 2, (3,), (), False),
        (2, 1, (0,), (), False),
        (2, 1, (0, 1), (), True),
        (3, 2, (0, 2), (), True),
        (2, 1, (), (0, 1), True),
        (2, 1, (1,), (0,), True),
        (2, 1, (), (0,), False),
        (0, 1, (), (), True),
    ],
    ids=[
        "all healthy",
        "one of five",
        "one of two",
        "two of two",
        "two of three",
        "none exists whole",
        "incomplete and breached",
        "incomplete and healthy",
        "scaled below the minimum",
    ],
)
def test_when_a_group_is_breached(
    replicas: int, minimum: int, failed: tuple[int, ...], incomplete: tuple[int, ...], breached: bool
) -> None:
    world = running(manifest(max(replicas, minimum), minimum))
    rescale(world, replicas)
    fail(world, *failed)
    drop(world, *incomplete)
    (condition,) = status_now(world)["conditions"]
    assert condition["type"] == "MinAvailableBreached"
    assert condition["status"] == ("True" if breached else "False")
    word = "Insufficient" if breached else "Sufficient"
    assert condition["reason"] == f"{word}AvailablePodCliqueScalingGroupReplicas"


def counts(world: World) -> tuple[int, int, int, int]:
    status = status_now(world)
    return status["replicas"], status["scheduledReplicas"], status["availableReplicas"], status["updatedReplicas"]


SCHEDULED = [{"type": "MinAvailableBreached", "status": "False"}, {"type": "PodCliqueScheduled", "status": "True"}]
UNSCHEDULED = [SCHEDULED[0], {"type": "PodCliqueScheduled", "status": "False"}]


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        ({}, (2, 2, 2, 2)),
        ({"conditions": UNSCHEDULED}, (2, 1, 1, 1)),
        ({"conditions": []}, (2, 1, 1, 1)),
        ({"conditions": SCHEDULED, "readyReplicas": 1}, (2, 2, 1, 1)),
        ({"readyReplicas": 2}, (2, 2, 2, 2)),
        ({"updatedReplicas": 1}, (2, 2, 2, 1)),
        ({"currentPodTemplateHash": "old"}, (2, 2, 2, 1)),
        ({"currentPodCliqueSetGenerationHash": "old"}, (2, 2, 2, 1)),
    ],
    ids=[
        "healthy",
        "not scheduled",
        "no conditions yet",
        "scheduled but not ready",
        "minimum of ready pods",
        "too few updated pods",
        "old template",
        "old generation",
    ],
)
def test_what_a_replica_counts_as(status: dict[str, Any], expected: tuple[int, int, int, int]) -> None:
    world = running(manifest(2))
    change(world, PodClique, member(1, "work"), status=status)
    assert counts(world) == expected


def test_a_replica_without_one_of_its_cliques_counts_as_nothing() -> None:
    world = running(manifest(2))
    drop(world, 1)
    assert counts(world) == (2, 1, 1, 1)


def test_a_replica_with_a_terminating_clique_counts_as_nothing() -> None:
    world = running(manifest(2))
    deleting(world, PodClique, member(0, "work"))
    assert counts(world) == (2, 1, 1, 1)


def test_replicas_above_the_count_do_not_count() -> None:
    world = running(manifest(3))
    rescale(world, 1)
    assert counts(world) == (1, 1, 1, 1)


def test_the_label_of_a_clique_has_to_match_its_template_too() -> None:
    world = running(manifest(2))
    found = named(world, PodClique, member(1, "work"))["metadata"]["labels"]
    change(world, PodClique, member(1, "work"), metadata={"labels": {**found, labels.POD_TEMPLATE_HASH: "old"}})
    assert counts(world) == (2, 2, 2, 1)


def test_the_generation_hash_is_kept_until_every_member_has_converged() -> None:
    world = running(manifest(2))
    before = stored(world)["currentPodCliqueSetGenerationHash"]
    live = named(world, PodCliqueSet, "chat")["spec"]["template"]
    cliques = [{**c, "spec": {**c["spec"], "podSpec": {"containers": [{"name": "c", "image": "new"}]}}} for c in live["cliques"]]
    change(world, PodCliqueSet, "chat", spec={"template": {**live, "cliques": cliques}})
    status = status_now(world)
    assert status["currentPodCliqueSetGenerationHash"] == before
    assert status["updatedReplicas"] == 0


def test_a_new_group_has_no_generation_hash() -> None:
    world = settled(manifest(2))
    status = status_in(planned(world))
    assert "currentPodCliqueSetGenerationHash" not in status
    assert (status["scheduledReplicas"], status["availableReplicas"]) == (0, 0)
    assert condition_in(planned(world), "MinAvailableBreached")["status"] == "False"


def test_the_selector_finds_the_pods_of_the_group() -> None:
    status = stored(running(manifest(1)))
    assert status["selector"] == f"{labels.MANAGED_SELECTOR},{labels.PART_OF}=chat,{labels.PCSG}={NAME}"
    assert status["observedGeneration"] == 1


def test_the_breach_keeps_its_time_while_its_text_changes() -> None:
    world = running(manifest(4, 2))
    fail(world, 0, 1, 2)
    first = status_in(planned(world))
    change(world, PodCliqueScalingGroup, NAME, status=first)
    fail(world, 3)
    later = planned(world, NOW + timedelta(minutes=3))
    (before,), (after,) = first["conditions"], status_in(later)["conditions"]
    assert before["message"] != after["message"]
    assert before["lastTransitionTime"] == after["lastTransitionTime"]


def test_losing_every_scheduled_replica_is_announced_once() -> None:
    world = running(manifest(1))
    change(world, PodClique, member(0, "work"), status={"conditions": UNSCHEDULED})
    p = planned(world)
    assert [(e.reason, e.type) for e in chosen(p, Emit)] == [("AllScheduledReplicasLost", "Warning")]
    change(world, PodCliqueScalingGroup, NAME, status=status_in(p))
    assert planned(world) == Plan()


# where the group stands


def test_a_deleted_group_only_lets_go() -> None:
    world = running(manifest(2))
    change(world, PodCliqueScalingGroup, NAME, metadata={"finalizers": ["example.com/x", labels.FINALIZER_PODCLIQUESCALINGGROUP]})
    deleting(world, PodCliqueScalingGroup, NAME)
    (op,) = planned(world).ops
    assert isinstance(op, SetFinalizers)
    assert (op.finalizers, op.ref.uid != "") == (("example.com/x",), True)
    change(world, PodCliqueScalingGroup, NAME, metadata={"finalizers": ["example.com/x"]})
    assert planned(world) == Plan()


def test_a_group_whose_set_goes_is_left_alone() -> None:
    world = converge(settled(manifest(2)))
    rescale(world, 5)
    deleting(world, PodCliqueSet, "chat")
    assert planned(world) == Plan()
    world.remove(PodCliqueSet, Key("serving", "chat"))
    assert planned(world) == Plan()


def test_a_group_that_the_set_does_not_know_is_left_alone_and_says_why() -> None:
    world = converge(settled(manifest(2)))
    live = named(world, PodCliqueSet, "chat")["spec"]["template"]
    (config,) = live["podCliqueScalingGroups"]
    change(world, PodCliqueSet, "chat", spec={"template": {**live, "podCliqueScalingGroups": [{**config, "name": "other"}]}})
    p = planned(world)
    assert p.ops == ()
    assert [w.reason for w in p.why] == [Reason.CONFLICT]


def test_groups_that_are_not_managed_are_not_looked_at() -> None:
    world = settled(manifest(1))
    change(world, PodCliqueScalingGroup, NAME, metadata={"labels": {labels.PART_OF: "chat"}})
    assert observe(world, Key("serving", NAME), NOW) is None
    assert observe(world, Key("serving", "nobody"), NOW) is None


def test_an_absurd_replica_count_makes_bounded_batches_and_is_told() -> None:
    group = {"name": "g", "cliqueNames": ["w"], "replicas": 1, "minAvailable": 1}
    world = settled(podcliqueset(clique("w"), podCliqueScalingGroups=[group]))
    (live,) = world.of_kind(PodCliqueScalingGroup.KIND)
    world.put({**live, "spec": {**live["spec"], "replicas": 2**31 - 1}})
    seen = observe(world, Key("serving", "chat-0-g"), NOW)
    assert seen is not None
    p = plan(seen)
    assert len([op for op in p.ops if isinstance(op, Create)]) == 500
    (status,) = [op.status for op in p.ops if isinstance(op, ApplyStatus)]
    assert "beyond the limit of 10000" in status["lastErrors"][0]["description"]
