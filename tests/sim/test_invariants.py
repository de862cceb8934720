"""Each invariant is violated by a log that breaks it, and by none that looks similar and does not."""

import pytest

from sim.invariants.writers import shared_fields
from tests.sim.watching import SCHEDULER, USER, World, clique, gang, lease, node, pod

POD = "/api/v1/namespaces/default/pods/c-0"
RETRY = "/apis/grove.io/v1alpha1/namespaces/default/podcliques/c/status"


@pytest.fixture
def world() -> World:
    return World()


def test_a_pod_that_changes_its_node(world: World) -> None:
    world.put("pods", pod(0))
    world.put("pods", pod(0, "a"), SCHEDULER)
    assert world.names == []
    world.put("pods", pod(0, "b"), SCHEDULER)
    assert world.names == ["NoDoubleBind"]


def test_a_binding_without_uid(world: World) -> None:
    world.bind("c-0", "", "a")
    assert world.names == ["NoDoubleBind"]


def test_two_bindings_that_are_both_accepted(world: World) -> None:
    world.bind("c-0", "uid", "a")
    world.bind("c-0", "uid", "a", status=409)
    assert world.names == []
    world.bind("c-0", "uid", "a")
    assert world.names == ["NoDoubleBind"]


def test_a_second_binding_while_the_first_is_open(world: World) -> None:
    first = world.bind("c-0", "uid", "a", answered=False)
    world.bind("c-0", "uid", "b", status=409)
    assert world.names == ["NoDoubleBind"]
    first.is_settled = True
    world.bind("c-0", "uid", "d", status=409)
    assert world.names == ["NoDoubleBind"]


def test_overcommit(world: World) -> None:
    world.put("nodes", node())
    world.put("pods", pod(0, "n"), SCHEDULER)
    world.put("pods", pod(1), USER)
    world.put("pods", pod(2, "n", memory="70Mi"), SCHEDULER)
    assert world.names == []
    world.put("pods", pod(1, "n", memory="1Mi"), SCHEDULER)
    assert world.names == ["NoOvercommit"]


def test_room_of_pods_that_have_ended_may_be_used_and_other_schedulers_are_not_ours_to_judge(world: World) -> None:
    world.put("nodes", node())
    world.put("pods", pod(0, "n"), SCHEDULER)
    world.put("pods", pod(0, "n", phase="Succeeded"), "kubelet")
    world.put("pods", pod(1, "n"), SCHEDULER)
    world.put("pods", pod(2, "n"), "default-scheduler")
    assert world.names == []


def test_a_gang_that_stays_half_bound(world: World) -> None:
    world.put("podgangs", {**gang(2), "spec": {"podgroups": []}})
    world.put("podgangs", gang(2))
    world.put("pods", pod(0, "a"), SCHEDULER)
    world.time = 25.0
    world.inspector.disturbed()
    world.time = 54.0
    world.put("nodes", node())
    assert world.names == []
    world.time = 56.0
    world.put("nodes", node())
    assert world.names == ["GangAtomicity"]


@pytest.mark.parametrize("then", ["whole", "lost"])
def test_a_gang_that_was_whole_or_has_lost_a_pod_is_not_judged(world: World, then: str) -> None:
    world.put("podgangs", gang(2))
    world.put("pods", pod(0, "a"), SCHEDULER)
    world.put("pods", pod(1, "a"), SCHEDULER)
    if then == "lost":
        world.put("podgangs", gang(3))
    world.put("pods", pod(1, "a", leaving=True), USER)
    world.time = 100.0
    world.put("nodes", node())
    assert world.names == []


def test_writes_of_a_process_that_holds_no_lease(world: World) -> None:
    world.leading()
    world.send("controllers-0", "PATCH", RETRY)
    world.send("controllers-1", "GET", POD)
    assert world.names == []
    world.send("controllers-1", "PATCH", RETRY)
    assert world.names == ["FencedWrites"]


def test_writes_of_an_earlier_life_and_after_the_deadline(world: World) -> None:
    world.leading(life=2)
    world.send("controllers-0", "PATCH", RETRY, life=2)
    world.time = 14.9
    world.send("controllers-0", "PATCH", RETRY, life=2)
    assert world.names == []
    world.send("controllers-0", "PATCH", RETRY, life=1)
    world.time = 15.0
    world.send("controllers-0", "PATCH", RETRY, life=2)
    assert world.names == ["FencedWrites", "FencedWrites"]
    world.put("leases", lease("controllers-0_2"))
    world.send("controllers-0", "PATCH", RETRY, life=2)
    assert len(world.names) == 2


def test_a_pod_that_is_deleted_for_nothing(world: World) -> None:
    world.put("podcliques", clique(2), USER)
    for index in range(2):
        world.put("pods", pod(index))
    world.put("pods", pod(0, leaving=True), USER)
    world.put("pods", pod(0))
    assert world.names == []
    world.put("pods", pod(1, leaving=True))
    assert world.names == ["NoSpuriousRestart"]


def test_replicas_of_now_may_meet_the_pods_of_a_moment_ago(world: World) -> None:
    """A user scales down and deletes a pod at once; a watch that is a little behind still shows the pod, and another one has to go."""
    world.put("podcliques", clique(3), USER)
    for index in range(3):
        world.put("pods", pod(index))
    world.put("podcliques", clique(2), USER)
    world.put("pods", pod(0, leaving=True), USER)
    world.put("pods", pod(2, leaving=True))
    assert world.names == []


@pytest.mark.parametrize("why", ["fewer wanted", "ended", "clique leaves", "clique gone", "other owner"])
def test_reasons_for_deleting_a_pod(world: World, why: str) -> None:
    world.put("podcliques", clique(1), USER)
    world.put("pods", pod(0, phase="Failed" if why == "ended" else "Running"))
    match why:
        case "fewer wanted":
            world.put("podcliques", clique(0), USER)
        case "clique leaves":
            world.put("podcliques", clique(1, deletionTimestamp="2026-01-01T00:00:00Z"), USER)
        case "clique gone":
            world.remove("podcliques", "c", USER)
        case "other owner":
            world.put("podcliques", clique(1, uid="another"), USER)
        case _:
            pass
    world.put("pods", {**pod(0, leaving=True), "status": {"phase": "Failed" if why == "ended" else "Running"}})
    assert world.names == []


def test_one_pod_too_many(world: World) -> None:
    world.put("podcliques", clique(1), USER)
    world.put("pods", pod(0))
    world.put("pods", pod(0, leaving=True), USER)
    world.put("pods", pod(0, name="again"))
    assert world.names == []
    world.put("pods", pod(1))
    assert world.names == ["NoSurplusPod"]


def test_two_pods_of_one_index(world: World) -> None:
    world.put("podcliques", clique(2), USER)
    world.put("pods", pod(0))
    world.put("pods", pod(0, name="twin"))
    assert world.names == ["NoSurplusPod"]


def test_a_late_controller_may_act_on_what_was_wanted_a_moment_ago(world: World) -> None:
    world.put("podcliques", clique(2), USER)
    world.put("podcliques", clique(1), USER)
    world.time = 50.0
    world.put("pods", pod(0))
    world.put("pods", pod(1))
    assert world.names == []
    world.time = 200.0
    world.put("pods", pod(2))
    assert world.names == ["NoSurplusPod"]


def test_a_delete_without_uid(world: World) -> None:
    world.send("controllers-0", "DELETE", POD, {"preconditions": {"uid": "u"}})
    assert world.names == []
    world.send("controllers-0", "DELETE", POD, {"kind": "DeleteOptions"})
    assert world.names == ["DeleteWithPrecondition"]


def test_replicas_that_belong_to_others(world: World) -> None:
    path, replicas = {"metadata": {"name": "x", "namespace": "default"}}, "podcliquescalinggroups"
    world.put(replicas, {**path, "spec": {"replicas": 1}})
    world.put(replicas, {**path, "spec": {"replicas": 2}}, USER)
    world.put(replicas, {**path, "spec": {"replicas": 2, "minAvailable": 1}})
    assert world.names == []
    world.put(replicas, {**path, "spec": {"replicas": 1}})
    world.put("podcliquesets", {**path, "spec": {"replicas": 1}}, USER)
    world.put("podcliquesets", {**path, "spec": {"replicas": 2}})
    assert world.names == ["ReplicasLeftAlone"] * 2


def test_the_same_request_again_and_again(world: World) -> None:
    for _ in range(40):
        world.time += 3.5
        world.send("controllers-0", "PATCH", RETRY, {"status": 1})
    assert world.names == []
    for _ in range(21):
        world.time += 1.0
        world.send("controllers-0", "PATCH", RETRY, {"status": 2})
    assert world.names == ["BoundedWork"]


def managed(*owners: tuple[str, str, str]) -> dict[str, object]:
    """A PodGang; owners: manager, subresource, field of status."""
    entries = [{"manager": m, "subresource": sub, "fieldsV1": {"f:status": {field: {}}}} for m, sub, field in owners]
    return {"kind": "PodGang", "metadata": {"name": "g", "managedFields": entries}}


def test_fields_of_two_managers() -> None:
    ours = "grovekeeper/podgang", "status", "f:phase"
    innocent = [managed(ours, ("kubectl", "status", "f:phase")), managed(ours, ("grovekeeper/scheduler", "status", "f:score"))]
    innocent.append(managed(ours, ("grovekeeper/scheduler", "", "f:phase")))
    assert shared_fields(innocent) == []
    found = shared_fields([managed(ours, ("grovekeeper/scheduler", "status", "f:phase"))])
    assert found == ["PodGang/g f:status/f:phase: grovekeeper/podgang, grovekeeper/scheduler"]
