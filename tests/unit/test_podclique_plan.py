"""Plans of one PodClique: pods created, removed, ungated, and the status that follows."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from api import labels
from api.core import Pod
from api.grove import PodClique
from api.plan import ApplyStatus, Create, Delete, Emit, Key, Outcome, Plan, SetFinalizers, Ungate
from api.podgang import PodGang
from api.reasons import Reason
from api.settings import Settings
from cli.world import World
from controllers.podclique.observe import observe
from controllers.podclique.plan import failed, plan
from tests.unit.worlds import clique, podcliqueset, settled

NOW = datetime(2026, 1, 1, tzinfo=UTC)
GROUP = {"name": "g", "cliqueNames": ["w"], "replicas": 2, "minAvailable": 1}


def planned(world: World, name: str) -> Plan:
    seen = observe(world, Key("serving", name), NOW, Settings())
    assert seen is not None
    return plan(seen)


def pods(world: World, clique_name: str) -> list[dict[str, Any]]:
    found = [m for m in world.of_kind(Pod.KIND) if m["metadata"]["labels"][labels.PODCLIQUE] == clique_name]
    return sorted(found, key=lambda m: int(m["metadata"]["labels"][labels.POD_INDEX]))


def bind(world: World, manifest: dict[str, Any], *, ready: bool = True, **status: Any) -> None:
    """The pod as it is once it runs: bound, ungated, ready or not."""
    ready_text = "True" if ready else "False"
    conditions = [{"type": "PodScheduled", "status": "True"}, {"type": "Ready", "status": ready_text}]
    spec = {**manifest["spec"], "nodeName": "n", "schedulingGates": []}
    world.put({**manifest, "spec": spec, "status": {"phase": "Running", "conditions": conditions, **status}})


def rescale(world: World, name: str, replicas: int) -> None:
    live = next(m for m in world.of_kind(PodClique.KIND) if m["metadata"]["name"] == name)
    world.put({**live, "spec": {**live["spec"], "replicas": replicas}})


def status_of(p: Plan) -> dict[str, Any]:
    return next(op.status for op in p.ops if isinstance(op, ApplyStatus))


def test_a_settled_clique_creates_no_pod_and_ungates_those_its_gang_references() -> None:
    world = settled(podcliqueset(clique("w", 3)))
    ops = planned(world, "chat-0-w").ops
    assert not [op for op in ops if isinstance(op, Create | Delete)]
    assert sorted(op.ref.name for op in ops if isinstance(op, Ungate)) == sorted(p["metadata"]["name"] for p in pods(world, "chat-0-w"))


def test_a_pod_that_its_gang_does_not_reference_stays_gated() -> None:
    world = settled(podcliqueset(clique("w", 2)))
    gang = next(m for m in world.of_kind(PodGang.KIND))
    group = gang["spec"]["podgroups"][0]
    world.put({**gang, "spec": {"podgroups": [{**group, "podReferences": group["podReferences"][:1]}]}})
    ungated = [op.ref.name for op in planned(world, "chat-0-w").ops if isinstance(op, Ungate)]
    assert ungated == [group["podReferences"][0]["name"]]


def test_scaling_out_fills_the_lowest_free_indices() -> None:
    world = settled(podcliqueset(clique("w", 3)))
    middle = pods(world, "chat-0-w")[1]
    world.remove(Pod, Key("serving", middle["metadata"]["name"]))
    rescale(world, "chat-0-w", 4)
    made = [op.manifest["spec"]["hostname"] for op in planned(world, "chat-0-w").ops if isinstance(op, Create)]
    assert made == ["chat-0-w-1", "chat-0-w-3"]


def test_a_repeated_create_uses_the_same_name_and_a_taken_one_moves_on() -> None:
    world = settled(podcliqueset(clique("w", 1)))
    (pod,) = pods(world, "chat-0-w")
    world.remove(Pod, Key("serving", pod["metadata"]["name"]))
    (again,) = [op for op in planned(world, "chat-0-w").ops if isinstance(op, Create)]
    assert again.manifest["metadata"]["name"] == pod["metadata"]["name"]
    world.put({**pod, "metadata": {**pod["metadata"], "deletionTimestamp": "2026-01-01T00:00:00Z"}})
    (other,) = [op for op in planned(world, "chat-0-w").ops if isinstance(op, Create)]
    assert other.manifest["metadata"]["name"] == again.fallback_names[0] != pod["metadata"]["name"]
    assert other.manifest["spec"]["hostname"] == pod["spec"]["hostname"]


def test_scaling_in_takes_unassigned_then_unready_then_higher_pods_and_never_terminating_ones() -> None:
    world = settled(podcliqueset(clique("w", 5)))
    p0, p1, p2, p3, p4 = pods(world, "chat-0-w")
    for pod in (p0, p2, p4):
        bind(world, pod)
    bind(world, p1, ready=False)
    rescale(world, "chat-0-w", 2)
    victims = [op.ref.name for op in planned(world, "chat-0-w").ops if isinstance(op, Delete)]
    assert victims == [p["metadata"]["name"] for p in (p3, p1, p4)]
    world.put({**p3, "metadata": {**p3["metadata"], "deletionTimestamp": "2026-01-01T00:00:00Z"}})
    left = [op.ref.name for op in planned(world, "chat-0-w").ops if isinstance(op, Delete)]
    assert left == [p["metadata"]["name"] for p in (p1, p4)]


def test_every_delete_carries_the_uid() -> None:
    world = settled(podcliqueset(clique("w", 2)))
    rescale(world, "chat-0-w", 0)
    deletes = [op for op in planned(world, "chat-0-w").ops if isinstance(op, Delete)]
    assert len(deletes) == 2
    assert all(op.ref.uid for op in deletes)


def test_a_failed_pod_is_replaced_under_its_index() -> None:
    world = settled(podcliqueset(clique("w", 1)))
    (pod,) = pods(world, "chat-0-w")
    world.put({**pod, "status": {"phase": "Failed"}})
    ops = planned(world, "chat-0-w").ops
    assert [op.ref.name for op in ops if isinstance(op, Delete)] == [pod["metadata"]["name"]]
    assert [op.manifest["spec"]["hostname"] for op in ops if isinstance(op, Create)] == ["chat-0-w-0"]


def test_a_tail_gang_waits_until_every_group_of_the_anchor_is_scheduled() -> None:
    world = settled(podcliqueset(clique("router"), clique("w", 2), podCliqueScalingGroups=[GROUP]))
    waiting = planned(world, "chat-0-g-1-w")
    assert not [op for op in waiting.ops if isinstance(op, Ungate)]
    assert [w.reason for w in waiting.why] == [Reason.WAITING_FOR_BASE_GANG]
    bind(world, pods(world, "chat-0-router")[0], ready=False)
    bind(world, pods(world, "chat-0-g-0-w")[0], ready=False)
    assert not [op for op in planned(world, "chat-0-g-1-w").ops if isinstance(op, Ungate)]
    bind(world, pods(world, "chat-0-g-0-w")[1], ready=False)
    assert len([op for op in planned(world, "chat-0-g-1-w").ops if isinstance(op, Ungate)]) == 2


def test_a_tail_gang_does_not_wait_for_other_tail_gangs() -> None:
    world = settled(podcliqueset(clique("w"), podCliqueScalingGroups=[{**GROUP, "replicas": 3}]))
    bind(world, pods(world, "chat-0-g-0-w")[0])
    assert [op for op in planned(world, "chat-0-g-2-w").ops if isinstance(op, Ungate)]


def test_gates_of_the_user_stay_on_the_pod() -> None:
    spec = {"containers": [{"name": "c", "image": "i"}], "schedulingGates": [{"name": "example.com/quota"}]}
    world = settled(podcliqueset(clique("w", podSpec=spec)))
    (pod,) = pods(world, "chat-0-w")
    assert [g["name"] for g in pod["spec"]["schedulingGates"]] == [labels.GATE, "example.com/quota"]


def test_status_has_no_conditions_while_pods_are_gated() -> None:
    world = settled(podcliqueset(clique("w", 2)))
    status = status_of(planned(world, "chat-0-w"))
    assert (status["replicas"], status["scheduleGatedReplicas"], status["readyReplicas"]) == (2, 2, 0)
    assert "conditions" not in status
    assert "observedGeneration" not in status


@pytest.mark.parametrize(
    ("ready", "extra", "reason"),
    [
        (True, {}, "SufficientReadyPods"),
        (False, {}, "SufficientReadyPods"),
        (False, {"containerStatuses": [{"name": "c", "started": True, "ready": False}]}, "InsufficientReadyPods"),
        (False, {"containerStatuses": [{"name": "c", "lastState": {"terminated": {"exitCode": 1}}}]}, "InsufficientReadyPods"),
        (False, {"containerStatuses": [{"name": "c", "lastState": {"terminated": {"exitCode": 0}}}]}, "SufficientReadyPods"),
        (False, {"initContainerStatuses": [{"name": "c", "lastState": {"terminated": {"exitCode": 2}}}]}, "InsufficientReadyPods"),
    ],
    ids=["ready", "still starting", "started but not ready", "crashed", "ended well", "init crashed"],
)
def test_a_clique_is_breached_by_crashed_or_unready_pods_but_not_by_starting_ones(ready: bool, extra: dict[str, Any], reason: str) -> None:
    world = settled(podcliqueset(clique("w", 1)))
    bind(world, pods(world, "chat-0-w")[0], ready=ready, **extra)
    conditions = {c["type"]: c for c in status_of(planned(world, "chat-0-w"))["conditions"]}
    assert conditions["MinAvailableBreached"]["reason"] == reason
    assert conditions["PodCliqueScheduled"]["status"] == "True"


def test_lost_nodes_breach_the_clique_and_are_announced_once() -> None:
    world = settled(podcliqueset(clique("w", 1)))
    bind(world, pods(world, "chat-0-w")[0])
    status = status_of(planned(world, "chat-0-w"))
    assert status["scheduledReplicas"] == 1
    assert status["currentPodTemplateHash"]
    live = next(m for m in world.of_kind(PodClique.KIND))
    world.put({**live, "status": status})
    assert not planned(world, "chat-0-w").ops
    world.remove(Pod, Key("serving", pods(world, "chat-0-w")[0]["metadata"]["name"]))
    reasons = [getattr(op, "reason", "") for op in planned(world, "chat-0-w").ops]
    assert "AllScheduledReplicasLost" in reasons


def test_transition_times_move_only_with_the_status() -> None:
    world = settled(podcliqueset(clique("w", 2, minAvailable=1)))
    for pod in pods(world, "chat-0-w"):
        bind(world, pod)
    status = status_of(planned(world, "chat-0-w"))
    live = next(m for m in world.of_kind(PodClique.KIND))
    world.put({**live, "status": status})
    bind(world, pods(world, "chat-0-w")[0], ready=False)
    seen = observe(world, Key("serving", "chat-0-w"), NOW + timedelta(hours=1), Settings())
    assert seen is not None
    later = status_of(plan(seen))
    assert later["readyReplicas"] == 1
    assert {c["lastTransitionTime"] for c in later["conditions"]} == {"2026-01-01T00:00:00Z"}


@pytest.mark.parametrize(("others", "deleted"), [((), 2), (("orphan",), 0)], ids=["ordinary", "cascade=orphan"])
def test_a_deleted_clique_deletes_its_pods_and_lets_go(others: tuple[str, ...], deleted: int) -> None:
    world = settled(podcliqueset(clique("w", 2)))
    live = next(m for m in world.of_kind(PodClique.KIND))
    finalizers = [*live["metadata"]["finalizers"], *others]
    world.put({**live, "metadata": {**live["metadata"], "finalizers": finalizers, "deletionTimestamp": "2026-01-01T00:00:00Z"}})
    *deletes, release = planned(world, "chat-0-w").ops
    assert len(deletes) == deleted
    assert all(isinstance(op, Delete) and op.ref.uid for op in deletes)
    assert isinstance(release, SetFinalizers)
    assert release.finalizers == others
    assert release.ref.uid


def test_startup_order_adds_the_waiter_last_with_the_parents_minimum() -> None:
    spec = {"containers": [{"name": "c", "image": "i"}], "initContainers": [{"name": "warm", "image": "i"}]}
    cliques = (clique("ab", 3, minAvailable=2), clique("b", 2, podSpec=spec, startsAfter=["ab"]))
    world = settled(podcliqueset(*cliques, cliqueStartupType="CliqueStartupTypeExplicit"))
    pod = pods(world, "chat-0-b")[0]
    assert [c["name"] for c in pod["spec"]["initContainers"]] == ["warm", "grove-initc"]
    assert pod["spec"]["initContainers"][-1]["args"] == ["--podcliques=chat-0-ab:2"]


def test_a_refused_create_still_opens_gates_and_writes_the_status() -> None:
    world = settled(podcliqueset(clique("w", 2)))
    rescale(world, "chat-0-w", 3)
    seen = observe(world, Key("serving", "chat-0-w"), NOW, Settings())
    assert seen is not None
    kinds = [type(op) for op in plan(seen).ops]
    assert kinds.index(Ungate) < kinds.index(Create)
    refused = Outcome("blocked", 60.0, "QuotaExceeded: exceeded quota: pods", plan(seen).ops[-1])
    told = failed(seen, refused)
    assert status_of(told)["replicas"] == 2
    assert [e["code"] for e in status_of(told)["lastErrors"]] == ["ERR_CREATE_POD"]
    assert [op.reason for op in told.ops if isinstance(op, Emit)] == ["PodCreateFailed"]
    live = next(m for m in world.of_kind(PodClique.KIND))
    world.put({**live, "status": status_of(told)})
    again = observe(world, Key("serving", "chat-0-w"), NOW + timedelta(minutes=5), Settings())
    assert again is not None
    assert not failed(again, refused).ops, "the same refusal is not told twice"
    assert "lastErrors" not in status_of(plan(again)), "a pass that succeeds clears it"


def test_an_anchor_pod_on_its_way_out_opens_no_gate() -> None:
    world = settled(podcliqueset(clique("w"), podCliqueScalingGroups=[GROUP]))
    (anchor,) = pods(world, "chat-0-g-0-w")
    bind(world, anchor)
    assert [op for op in planned(world, "chat-0-g-1-w").ops if isinstance(op, Ungate)]
    (bound,) = pods(world, "chat-0-g-0-w")
    world.put({**bound, "metadata": {**bound["metadata"], "deletionTimestamp": "2026-01-01T00:00:00Z"}})
    assert not [op for op in planned(world, "chat-0-g-1-w").ops if isinstance(op, Ungate)]


def test_a_new_clique_whose_pods_are_all_gated_says_nothing_for_a_while() -> None:
    world = settled(podcliqueset(clique("w", 2)))
    live = next(m for m in world.of_kind(PodClique.KIND))
    world.put({**live, "metadata": {**live["metadata"], "creationTimestamp": "2026-01-01T00:00:00Z"}})
    early = planned(world, "chat-0-w")
    assert not [op for op in early.ops if isinstance(op, ApplyStatus)]
    assert early.requeue_at == NOW + timedelta(seconds=15)
    seen = observe(world, Key("serving", "chat-0-w"), NOW + timedelta(seconds=15), Settings())
    assert seen is not None
    assert status_of(plan(seen))["scheduleGatedReplicas"] == 2
    bind(world, pods(world, "chat-0-w")[0])
    assert status_of(planned(world, "chat-0-w"))["readyReplicas"] == 1, "progress is told at once"


def test_an_absurd_replica_count_makes_bounded_batches_and_is_told() -> None:
    world = settled(podcliqueset(clique("w", 1)))
    rescale(world, "chat-0-w", 2**31 - 1)
    p = planned(world, "chat-0-w")
    assert len([op for op in p.ops if isinstance(op, Create)]) == 500
    assert "beyond the limit of 10000" in status_of(p)["lastErrors"][0]["description"]
    rescale(world, "chat-0-w", 1)
    assert "lastErrors" not in status_of(planned(world, "chat-0-w"))
