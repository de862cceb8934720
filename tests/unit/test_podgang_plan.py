"""Plans of one PodGang: references to pods, mirrored metadata, phase and conditions."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from api import labels
from api.core import Pod
from api.grove import PodClique, PodCliqueScalingGroup, PodCliqueSet
from api.operatorconfig import OperatorConfiguration
from api.plan import Apply, ApplyStatus, Key, Plan
from api.podgang import PodGang
from api.reasons import Reason
from api.settings import settings_of
from cli.world import World
from controllers.podgang.observe import observe
from controllers.podgang.plan import plan
from tests.unit.worlds import (
    change,
    chosen,
    clique,
    condition_in,
    converge,
    deleting,
    named,
    names,
    podcliqueset,
    running,
    settled,
    start_pods,
    status_in,
)

NOW = datetime(2026, 1, 1, tzinfo=UTC)
GROUP: dict[str, Any] = {"name": "prefill", "cliqueNames": ["leader", "worker"], "minAvailable": 1}
KAI = OperatorConfiguration.model_validate({"scheduler": {"profiles": [{"name": "kai-scheduler"}], "defaultProfileName": "kai-scheduler"}})


def planned(world: World, name: str = "chat-0", now: datetime = NOW) -> Plan:
    seen = observe(world, Key("serving", name), now, settings_of(world.config))
    assert seen is not None
    return plan(seen)


def applied(world: World, name: str = "chat-0") -> dict[str, Any]:
    """The gang as the plan writes it."""
    (op,) = chosen(planned(world, name), Apply)
    assert op.uid
    return op.manifest


def pods_of(world: World, clique_name: str) -> list[str]:
    found = [m for m in world.of_kind(Pod.KIND) if m["metadata"]["labels"][labels.PODCLIQUE] == clique_name]
    return sorted(m["metadata"]["name"] for m in found)


def references(gang: dict[str, Any]) -> dict[str, list[str]]:
    return {g["name"]: [r["name"] for r in g["podReferences"]] for g in gang["spec"]["podgroups"]}


def disaggregated(replicas: int, minimum: int) -> World:
    group = {**GROUP, "replicas": replicas, "minAvailable": minimum}
    cliques = (clique("frontend", 3, minAvailable=1), clique("leader"), clique("worker", 4, minAvailable=3))
    return settled(podcliqueset(*cliques, podCliqueScalingGroups=[group]))


# references


@pytest.mark.parametrize(("replicas", "minimum", "pods"), [(2, 1, [8, 5]), (3, 1, [8, 5, 5]), (3, 2, [13, 5])])
def test_the_pods_of_each_gang(replicas: int, minimum: int, pods: list[int]) -> None:
    world = disaggregated(replicas, minimum)
    gangs = [named(world, PodGang, name) for name in names(world, PodGang)]
    assert [sum(map(len, references(g).values())) for g in gangs] == pods


def test_groups_of_an_anchor_are_in_template_order_with_their_minimums() -> None:
    gang = named(disaggregated(3, 2), PodGang, "chat-0")
    assert [(g["name"], g["minReplicas"]) for g in gang["spec"]["podgroups"]] == [
        ("chat-0-frontend", 1),
        ("chat-0-prefill-0-leader", 1),
        ("chat-0-prefill-0-worker", 3),
        ("chat-0-prefill-1-leader", 1),
        ("chat-0-prefill-1-worker", 3),
    ]
    tail = named(disaggregated(3, 2), PodGang, "chat-0-prefill-0")
    assert [g["name"] for g in tail["spec"]["podgroups"]] == ["chat-0-prefill-2-leader", "chat-0-prefill-2-worker"]


def test_references_are_sorted_and_live_in_the_sets_namespace() -> None:
    world = settled(podcliqueset(clique("w", 4)))
    (group,) = named(world, PodGang, "chat-0")["spec"]["podgroups"]
    assert group["podReferences"] == [{"namespace": "serving", "name": n} for n in pods_of(world, "chat-0-w")]


def test_a_replaced_pod_replaces_its_reference() -> None:
    world = running(podcliqueset(clique("w", 2)))
    gone, kept = pods_of(world, "chat-0-w")
    world.remove(Pod, Key("serving", gone))
    assert references(applied(world)) == {"chat-0-w": [kept]}
    converge(world)
    assert references(named(world, PodGang, "chat-0")) == {"chat-0-w": pods_of(world, "chat-0-w")}


def test_terminating_pods_are_not_referenced() -> None:
    world = running(podcliqueset(clique("w", 2)))
    gone, kept = pods_of(world, "chat-0-w")
    deleting(world, Pod, gone)
    assert references(applied(world)) == {"chat-0-w": [kept]}


@pytest.mark.parametrize("label", [None, "chat-7"], ids=["without label", "of another gang"])
def test_pods_that_are_not_labelled_with_the_gang_are_not_referenced(label: str | None) -> None:
    world = settled(podcliqueset(clique("w", 2)))
    other, kept = pods_of(world, "chat-0-w")
    found = {k: v for k, v in named(world, Pod, other)["metadata"]["labels"].items() if k != labels.PODGANG}
    change(world, Pod, other, metadata={"labels": {**found, **({labels.PODGANG: label} if label else {})}})
    assert references(applied(world)) == {"chat-0-w": [kept]}


def test_pods_of_another_owner_are_not_referenced() -> None:
    world = settled(podcliqueset(clique("w", 2)))
    other, kept = pods_of(world, "chat-0-w")
    (owner,) = named(world, Pod, other)["metadata"]["ownerReferences"]
    change(world, Pod, other, metadata={"ownerReferences": [{**owner, "uid": "an earlier life"}]})
    assert references(applied(world)) == {"chat-0-w": [kept]}


# metadata


def labelled(world: World, *, with_labels: dict[str, str], with_annotations: dict[str, str]) -> None:
    change(world, PodCliqueSet, "chat", metadata={"labels": with_labels, "annotations": with_annotations})


def test_labels_and_annotations_of_the_set_are_mirrored_except_those_of_grove() -> None:
    world = settled(podcliqueset(clique("w")))
    last = "kubectl.kubernetes.io/last-applied-configuration"
    mine = {"team": "serving", "grove.io/disable-managed-resource-protection": "true"}
    labelled(world, with_labels=mine, with_annotations={"note": "x", "grove.io/reconcile-trigger": "7", last: "{}"})
    meta = applied(world)["metadata"]
    assert meta["annotations"] == {"note": "x"}
    assert meta["labels"] == {
        "team": "serving",
        **labels.default_labels("chat"),
        labels.COMPONENT: "podgang",
        labels.SCHEDULER_NAME: "default-scheduler",
    }


def test_labels_of_the_set_never_replace_those_that_manage_the_gang() -> None:
    world = settled(podcliqueset(clique("w")))
    labelled(world, with_labels={labels.PART_OF: "somebody", labels.MANAGED_BY: "helm"}, with_annotations={})
    change(world, PodGang, "chat-0", metadata={"labels": {**labels.default_labels("chat")}})
    assert applied(world)["metadata"]["labels"].items() >= labels.default_labels("chat").items()


def test_annotations_that_left_the_set_leave_the_gang() -> None:
    world = settled(podcliqueset(clique("w")))
    change(world, PodGang, "chat-0", metadata={"annotations": {"note": "old"}})
    assert "note" not in applied(world)["metadata"].get("annotations", {})


def test_groves_own_annotations_on_the_gang_are_kept() -> None:
    world = settled(podcliqueset(clique("w")))
    change(world, PodGang, "chat-0", metadata={"annotations": {"grove.io/note": "keep", "note": "old"}})
    assert applied(world)["metadata"]["annotations"] == {"grove.io/note": "keep"}


def test_a_stale_scheduler_name_is_overwritten() -> None:
    world = settled(podcliqueset(clique("w")))
    found = named(world, PodGang, "chat-0")["metadata"]["labels"]
    change(world, PodGang, "chat-0", metadata={"labels": {**found, labels.SCHEDULER_NAME: "another"}})
    assert applied(world)["metadata"]["labels"][labels.SCHEDULER_NAME] == "default-scheduler"


def test_labels_that_others_added_to_the_gang_are_no_difference() -> None:
    world = running(podcliqueset(clique("w")))
    found = named(world, PodGang, "chat-0")["metadata"]["labels"]
    change(world, PodGang, "chat-0", metadata={"labels": {**found, "cost-centre": "7"}})
    assert planned(world) == Plan()


def test_gangs_of_kai_are_marked_so_that_its_grouper_leaves_them_alone() -> None:
    manifest = podcliqueset(clique("w"))
    manifest["metadata"]["labels"] = {"kai.scheduler/queue": "research"}
    world = running(manifest, config=KAI)
    meta = named(world, PodGang, "chat-0")["metadata"]
    assert meta["annotations"] == {labels.ANNOTATION_KAI_SKIP_PODGROUPER: "true"}
    assert meta["labels"]["kai.scheduler/queue"] == "research"
    assert planned(world) == Plan()


def test_the_priority_class_of_the_set_is_the_gangs() -> None:
    world = settled(podcliqueset(clique("w"), priorityClassName="gold"))
    assert named(world, PodGang, "chat-0")["spec"]["priorityClassName"] == "gold"


# status


def test_a_gang_waits_until_all_its_pods_exist_not_only_its_minimum() -> None:
    world = settled(podcliqueset(clique("w", 3, minAvailable=1)))
    world.remove(Pod, Key("serving", pods_of(world, "chat-0-w")[0]))
    p = planned(world)
    condition = condition_in(p, "Initialized")
    assert (condition["status"], condition["reason"]) == ("False", "PodGangPodsCreationPending")
    assert status_in(p)["phase"] == "Pending"
    assert [(w.reason, w.message) for w in p.why] == [(Reason.WAITING_FOR_PODS, "chat-0-w lacks 1 of 3 pods")]


def test_a_gang_waits_for_cliques_that_do_not_exist_yet() -> None:
    world = settled(podcliqueset(clique("w"), clique("v")))
    world.remove(PodClique, Key("serving", "chat-0-v"))
    p = planned(world)
    assert condition_in(p, "Initialized")["status"] == "False"
    assert [w.message for w in p.why] == ["PodClique chat-0-v does not exist yet"]


def test_pods_without_the_gangs_label_do_not_complete_it() -> None:
    world = settled(podcliqueset(clique("w", 1)))
    (name,) = pods_of(world, "chat-0-w")
    found = {k: v for k, v in named(world, Pod, name)["metadata"]["labels"].items() if k != labels.PODGANG}
    change(world, Pod, name, metadata={"labels": found})
    assert condition_in(planned(world), "Initialized")["status"] == "False"


def test_one_gang_that_waits_does_not_keep_another_from_starting() -> None:
    world = settled(podcliqueset(clique("w"), replicas=2))
    world.remove(Pod, Key("serving", pods_of(world, "chat-0-w")[0]))
    assert condition_in(planned(world, "chat-0"), "Initialized")["status"] == "False"
    condition = condition_in(planned(world, "chat-1"), "Initialized")
    assert (condition["status"], condition["reason"]) == ("True", "PodGangPodsCreated")


def test_initialized_never_goes_back() -> None:
    world = running(podcliqueset(clique("w", 2)))
    for name in pods_of(world, "chat-0-w"):
        world.remove(Pod, Key("serving", name))
    p = planned(world, now=NOW + timedelta(hours=1))
    assert condition_in(p, "Initialized") == named(world, PodGang, "chat-0")["status"]["conditions"][0]
    assert [w.reason for w in p.why] == [Reason.WAITING_FOR_PODS]


def unready(world: World, name: str) -> None:
    change(world, Pod, name, status={"phase": "Running", "conditions": [{"type": "Ready", "status": "False"}]})


def test_the_phase_follows_the_pods() -> None:
    world = converge(settled(podcliqueset(clique("w", 3, minAvailable=2))))
    first, second, third = pods_of(world, "chat-0-w")

    def phase() -> tuple[str, int]:
        written = [op.status for op in chosen(planned(world), ApplyStatus)]
        status = written[0] if written else named(world, PodGang, "chat-0")["status"]
        return status["phase"], status["ready"]

    assert phase() == ("Pending", 0)
    start_pods(world)
    assert phase() == ("Running", 3)
    unready(world, first)
    assert phase() == ("Running", 2)
    unready(world, second)
    assert phase() == ("Starting", 1)
    for name in (second, third):
        change(world, Pod, name, spec={"nodeName": ""})
    assert phase()[0] == "Pending"


def test_a_gang_that_starts_is_never_called_unhealthy() -> None:
    world = converge(settled(podcliqueset(clique("w", 2))))
    start_pods(world)
    for name in pods_of(world, "chat-0-w"):
        unready(world, name)
    types = {c["type"]: c["status"] for c in status_in(planned(world))["conditions"]}
    assert types == {"Initialized": "True", "Ready": "False"}


def test_all_that_is_said_of_a_gang_that_gets_ready_is_said_at_once() -> None:
    """A part of it left for later would be written whenever the next controller starts."""
    world = converge(settled(podcliqueset(clique("w", 2))))
    start_pods(world)
    types = {c["type"]: c["status"] for c in status_in(planned(world))["conditions"]}
    assert types == {"Initialized": "True", "Ready": "True", "Unhealthy": "False"}


def test_a_gang_that_was_ready_becomes_unhealthy_and_healthy_again() -> None:
    world = running(podcliqueset(clique("w", 2)))
    name = pods_of(world, "chat-0-w")[0]
    unready(world, name)
    condition = condition_in(planned(world), "Unhealthy")
    assert (condition["status"], condition["reason"]) == ("True", "NotReady")
    assert condition["message"] == "Ready pods below the minimum: chat-0-w 1/2"
    converge(world)
    start_pods(world)
    condition = condition_in(planned(world), "Unhealthy")
    assert (condition["status"], condition["reason"]) == ("False", "GangReady")


def test_what_the_scheduler_says_is_left_to_the_scheduler() -> None:
    world = running(podcliqueset(clique("w", 2)))
    live = named(world, PodGang, "chat-0")["status"]
    scheduled = {"type": "Scheduled", "status": "True", "reason": "GangBound", "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z"}
    theirs = {"placementScore": 1.0, "pods": 2, "bound": 2, "domain": "r1", "conditions": [*live["conditions"], scheduled]}
    change(world, PodGang, "chat-0", status=theirs)
    assert planned(world) == Plan()
    unready(world, pods_of(world, "chat-0-w")[0])
    status = status_in(planned(world))
    assert set(status) == {"phase", "ready", "conditions"}
    assert {c["type"] for c in status["conditions"]} == {"Initialized", "Ready", "Unhealthy"}


def test_a_long_list_of_short_groups_is_cut() -> None:
    world = converge(settled(podcliqueset(*(clique(f"c{i:02}") for i in range(12)))))
    start_pods(world)
    converge(world)
    for name in names(world, Pod):
        unready(world, name)
    assert condition_in(planned(world), "Ready")["message"].endswith("chat-0-c07 0/1 and 4 more")


@pytest.mark.parametrize("name", ["chat-0", "chat-0-prefill-0"])
def test_a_running_gang_needs_nothing(name: str) -> None:
    group = {**GROUP, "replicas": 2}
    world = running(podcliqueset(clique("frontend"), clique("leader"), clique("worker", 2), podCliqueScalingGroups=[group]))
    assert planned(world, name, NOW + timedelta(hours=1)) == Plan()


# where the gang stands


def test_a_gang_that_goes_or_whose_set_goes_is_left_alone() -> None:
    world = settled(podcliqueset(clique("w", 2)))
    deleting(world, PodGang, "chat-0")
    assert planned(world) == Plan()
    world = settled(podcliqueset(clique("w", 2)))
    deleting(world, PodCliqueSet, "chat")
    assert planned(world) == Plan()
    world.remove(PodCliqueSet, Key("serving", "chat"))
    assert planned(world) == Plan()


def test_a_gang_of_an_earlier_life_of_the_set_is_left_alone() -> None:
    world = settled(podcliqueset(clique("w", 2)))
    (owner,) = named(world, PodGang, "chat-0")["metadata"]["ownerReferences"]
    change(world, PodGang, "chat-0", metadata={"ownerReferences": [{**owner, "uid": "an earlier life"}]})
    assert planned(world) == Plan()


def test_a_gang_whose_name_no_gang_of_the_set_can_have_is_left_alone() -> None:
    world = settled(podcliqueset(clique("w", 2)))
    live = named(world, PodGang, "chat-0")
    meta = {k: v for k, v in live["metadata"].items() if k != "uid"}
    for name in ("chat-x", "other-0", "chat-0-prefill-0"):
        world.put({**live, "metadata": {**meta, "name": name}})
        assert planned(world, name) == Plan()


def test_gangs_of_nobody_are_left_alone() -> None:
    world = settled(podcliqueset(clique("w")))
    (live,) = world.of_kind(PodGang.KIND)
    world.put({**live, "metadata": {**live["metadata"], "ownerReferences": []}})
    assert not planned(world).ops


def test_groups_scaled_by_others_change_their_gangs_pods() -> None:
    world = running(podcliqueset(clique("leader"), clique("worker"), podCliqueScalingGroups=[{**GROUP, "replicas": 1}]))
    change(world, PodCliqueScalingGroup, "chat-0-prefill", spec={"replicas": 2})
    converge(world)
    assert list(references(named(world, PodGang, "chat-0-prefill-0"))) == ["chat-0-prefill-1-leader", "chat-0-prefill-1-worker"]


def test_a_gang_whose_managed_labels_were_edited_is_repaired() -> None:
    world = settled(podcliqueset(clique("w")))
    (live,) = world.of_kind(PodGang.KIND)
    edited = {**live["metadata"], "labels": {**live["metadata"]["labels"], labels.MANAGED_BY: "me", labels.PART_OF: "other"}}
    world.put({**live, "metadata": edited})
    (apply,) = [op for op in planned(world).ops if isinstance(op, Apply)]
    assert apply.manifest["metadata"]["labels"][labels.MANAGED_BY] == labels.MANAGED_BY_VALUE
    assert apply.manifest["metadata"]["labels"][labels.PART_OF] == "chat"
