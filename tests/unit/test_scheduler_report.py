"""What the scheduler says about a gang, and when it keeps silent."""

from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest

from api.core import Node, Pod
from api.plan import ApplyStatus, Emit, Op, PatchStatus, Why
from api.podgang import PodGang
from api.reasons import Reason
from scheduler.report import GangState, report

NOW = datetime(2026, 1, 1, tzinfo=UTC)
LATER = NOW + timedelta(minutes=5)
LEVELS = ("block", "rack", "kubernetes.io/hostname")
SHORT = Why(Reason.INSUFFICIENT_GPUS, "needs 8 GPUs, 4 are free")


def node(name: str, block: str, rack: str) -> Node:
    return msgspec.convert({"metadata": {"name": name, "labels": {"block": block, "rack": rack, "kubernetes.io/hostname": name}}}, Node)


NODES = {n.metadata.name: n for n in (node("n1", "b1", "r1"), node("n2", "b1", "r1"), node("n3", "b1", "r2"), node("n4", "b2", "r4"))}


def pod(name: str, on: str = "", **parts: Any) -> Pod:
    meta = {"name": name, "namespace": "ns", "uid": f"uid-{name}", **parts.pop("metadata", {})}
    return msgspec.convert({"metadata": meta, "spec": {"nodeName": on, **parts.pop("spec", {})}, "status": parts}, Pod)


def gang(status: dict[str, Any] | None, *minimums: int) -> PodGang:
    """Groups of two pods p0, p1, p2, ... with these minimums."""
    groups = [
        {"name": f"g{i}", "minReplicas": m, "podReferences": [{"namespace": "ns", "name": f"p{2 * i + j}"} for j in (0, 1)]}
        for i, m in enumerate(minimums or (2,))
    ]
    meta = {"name": "gang", "namespace": "ns", "uid": "uid-gang"}
    return PodGang.model_validate({"metadata": meta, "spec": {"podgroups": groups}, **({"status": status} if status is not None else {})})


def state(podgang: PodGang, *pods: Pod, why: Why | None = None, score: float | None = None, levels: tuple[str, ...] = LEVELS) -> GangState:
    return GangState(podgang, pods, why, score, levels, NODES)


def status_of(ops: tuple[Op, ...]) -> dict[str, Any]:
    (op,) = [op for op in ops if isinstance(op, ApplyStatus)]
    return op.status


def events(ops: tuple[Op, ...]) -> list[tuple[str, str]]:
    return [(op.reason, op.type) for op in ops if isinstance(op, Emit)]


def patches(ops: tuple[Op, ...]) -> list[PatchStatus]:
    return [op for op in ops if isinstance(op, PatchStatus)]


def settled(first: GangState, now: datetime = NOW) -> PodGang:
    """The gang once what is reported now has been written."""
    live = first.podgang.status
    before = live.to_manifest() if live is not None else {}
    written = status_of(report(first, now))
    theirs = [c for c in before.get("conditions", ()) if c["type"] != "Scheduled"]
    kept = {k: before[k] for k in ("phase", "ready") if k in before}
    status = {**kept, **written, "conditions": [*theirs, *written["conditions"]]}
    return PodGang.model_validate({**first.podgang.to_manifest(), "metadata": first.podgang.metadata, "status": status})


PENDING = {"phase": "Pending"}


@pytest.mark.parametrize("status", [None, {}, {"phase": ""}, {"conditions": []}], ids=["none", "empty", "empty phase", "no phase"])
def test_nothing_is_said_before_the_gang_has_a_phase(status: dict[str, Any] | None) -> None:
    assert report(state(gang(status), pod("p0"), pod("p1"), why=SHORT), NOW) == ()


def test_a_placed_gang_is_announced_once_with_its_place() -> None:
    first = state(gang(PENDING), pod("p0", "n1"), pod("p1", "n2"), score=0.98765432)
    ops = report(first, NOW)
    status = status_of(ops)
    assert (status["pods"], status["bound"], status["domain"], status["placementScore"]) == (2, 2, "r1", 0.9877)
    assert "blocked" not in status
    (condition,) = status["conditions"]
    assert (condition["type"], condition["status"], condition["reason"]) == ("Scheduled", "True", "GangBound")
    (event,) = [op for op in ops if isinstance(op, Emit)]
    assert (event.reason, event.type, event.message) == ("GangBound", "Normal", "2 of 2 pods have a node in r1")
    again = state(settled(first), pod("p0", "n1"), pod("p1", "n2"), score=0.98765432)
    assert report(again, LATER) == ()


def test_the_minimum_of_every_group_makes_a_gang_placed() -> None:
    podgang = gang(PENDING, 1, 1)
    half = report(state(podgang, pod("p0", "n1"), pod("p1", "n2"), pod("p2"), pod("p3")), NOW)
    assert (status_of(half)["conditions"][0]["status"], status_of(half)["conditions"][0]["reason"]) == ("False", "Binding")
    assert events(half) == []
    whole = report(state(podgang, pod("p0", "n1"), pod("p1"), pod("p2"), pod("p3", "n2")), NOW)
    assert status_of(whole)["conditions"][0]["status"] == "True"
    assert (status_of(whole)["pods"], status_of(whole)["bound"]) == (4, 2)


def test_pods_that_the_gang_does_not_list_do_not_make_it_placed() -> None:
    ops = report(state(gang(PENDING), pod("p0", "n1"), pod("stray", "n2")), NOW)
    assert status_of(ops)["conditions"][0]["status"] == "False"


def test_surplus_pods_that_wait_do_not_make_a_placed_gang_unplaced() -> None:
    ops = report(state(gang(PENDING, 1), pod("p0", "n1"), pod("p1"), why=SHORT), NOW)
    status = status_of(ops)
    assert status["conditions"][0]["status"] == "True"
    assert status["blocked"] == "InsufficientGPUs"
    assert events(ops) == [("GangBound", "Normal")]
    assert [p.ref.name for p in patches(ops)] == ["p1"]


# waiting


def test_a_gang_that_cannot_be_placed_says_why_on_itself_its_pods_and_once_as_an_event() -> None:
    first = state(gang(PENDING), pod("p0"), pod("p1"), why=SHORT)
    ops = report(first, NOW)
    status = status_of(ops)
    assert (status["blocked"], status["blockedSince"]) == ("InsufficientGPUs", "2026-01-01T00:00:00Z")
    (condition,) = status["conditions"]
    assert (condition["status"], condition["reason"], condition["message"]) == ("False", "InsufficientGPUs", SHORT.message)
    assert events(ops) == [("InsufficientGPUs", "Warning")]
    assert [p.ref.uid for p in patches(ops)] == ["uid-p0", "uid-p1"]
    assert "placementScore" not in status
    (said,) = patches(ops)[0].status["conditions"]
    assert (said["type"], said["status"], said["reason"], said["message"]) == ("PodScheduled", "False", "Unschedulable", SHORT.message)


def test_what_was_said_is_not_said_again() -> None:
    first = state(gang(PENDING), pod("p0"), why=SHORT)
    (said,) = patches(report(first, NOW))
    assert report(state(settled(first), pod("p0", conditions=said.status["conditions"]), why=SHORT), LATER) == ()


def test_the_time_of_a_block_stays_while_its_reason_stays() -> None:
    first = state(gang(PENDING), pod("p0"), why=SHORT)
    worse = Why(Reason.INSUFFICIENT_GPUS, "needs 8 GPUs, 2 are free")
    ops = report(state(settled(first), pod("p0"), why=worse), LATER)
    assert status_of(ops)["blockedSince"] == "2026-01-01T00:00:00Z"
    assert status_of(ops)["conditions"][0]["lastTransitionTime"] == "2026-01-01T00:00:00Z"
    assert events(ops) == [], "other numbers are no news"


def test_another_reason_is_news() -> None:
    first = state(gang(PENDING), pod("p0"), why=SHORT)
    ops = report(state(settled(first), pod("p0"), why=Why(Reason.FRAGMENTED, "no rack has 8")), LATER)
    assert status_of(ops)["blockedSince"] == "2026-01-01T00:05:00Z"
    assert status_of(ops)["conditions"][0]["lastTransitionTime"] == "2026-01-01T00:00:00Z"
    assert events(ops) == [("Fragmented", "Warning")]


@pytest.mark.parametrize("reason", [Reason.WAITING_FOR_PODS, Reason.WAITING_FOR_GATES, Reason.WAITING_FOR_BASE_GANG, Reason.GATED])
def test_stations_of_every_gangs_life_are_shown_but_no_event(reason: Reason) -> None:
    ops = report(state(gang(PENDING), pod("p0"), why=Why(reason, "soon")), NOW)
    assert status_of(ops)["blocked"] == reason
    assert events(ops) == []


def test_a_gang_that_is_no_longer_blocked_forgets_it() -> None:
    first = state(gang(PENDING), pod("p0"), pod("p1"), why=SHORT)
    ops = report(state(settled(first), pod("p0", "n1"), pod("p1", "n1")), LATER)
    status = status_of(ops)
    assert not {"blocked", "blockedSince"} & set(status)
    assert status["conditions"][0]["lastTransitionTime"] == "2026-01-01T00:05:00Z"
    assert events(ops) == [("GangBound", "Normal")]


def test_a_placed_gang_that_loses_pods_is_announced_when_it_is_placed_again() -> None:
    placed = settled(state(gang(PENDING), pod("p0", "n1"), pod("p1", "n1")))
    lost = state(placed, pod("p0", "n1"), pod("p1"), why=SHORT)
    assert events(report(lost, LATER)) == [("InsufficientGPUs", "Warning")]
    back = report(state(settled(lost, LATER), pod("p0", "n1"), pod("p1", "n2")), LATER)
    assert events(back) == [("GangBound", "Normal")]


def test_messages_are_cut_to_what_a_status_may_hold() -> None:
    ops = report(state(gang(PENDING), pod("p0"), why=Why(Reason.FRAGMENTED, "x" * 5000)), NOW)
    assert len(status_of(ops)["conditions"][0]["message"]) == 1024
    (said,) = patches(ops)
    assert len(said.status["conditions"][0]["message"]) == 1024
    shown = pod("p0", conditions=said.status["conditions"])
    assert patches(report(state(gang(PENDING), shown, why=Why(Reason.FRAGMENTED, "x" * 5000)), LATER)) == []


# pods


SAID = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": SHORT.message}
QUIET: list[tuple[str, Pod, bool]] = [
    ("a pod that has not said anything", pod("p0"), True),
    ("a pod that has said it", pod("p0", conditions=[SAID]), False),
    ("a pod that has said something else", pod("p0", conditions=[{**SAID, "message": "old"}]), True),
    ("a pod that was gated", pod("p0", conditions=[{**SAID, "reason": "SchedulingGated"}]), True),
    ("a pod with a gate", pod("p0", spec={"schedulingGates": [{"name": "x"}]}), False),
    ("a pod with a node", pod("p0", "n1"), False),
    ("a pod that goes", pod("p0", metadata={"deletionTimestamp": "2026-01-01T00:00:00Z"}), False),
    ("a finished pod", pod("p0", phase="Failed"), False),
]


@pytest.mark.parametrize(("subject", "patched"), [q[1:] for q in QUIET], ids=[q[0] for q in QUIET])
def test_which_pods_are_told(subject: Pod, patched: bool) -> None:
    assert bool(patches(report(state(gang(PENDING), subject, why=SHORT), NOW))) is patched


def test_the_time_of_a_pods_condition_moves_only_with_its_status() -> None:
    since = {**SAID, "reason": "SchedulingGated", "lastTransitionTime": "2025-12-31T00:00:00Z"}
    (patch,) = patches(report(state(gang(PENDING), pod("p0", conditions=[since]), why=SHORT), NOW))
    assert patch.status["conditions"][0]["lastTransitionTime"] == "2025-12-31T00:00:00Z"
    (patch,) = patches(report(state(gang(PENDING), pod("p0", conditions=[{**since, "status": "True"}]), why=SHORT), NOW))
    assert patch.status["conditions"][0]["lastTransitionTime"] == "2026-01-01T00:00:00Z"


# place


@pytest.mark.parametrize(
    ("nodes", "levels", "domain"),
    [
        (("n1", "n1"), LEVELS, "n1"),
        (("n1", "n2"), LEVELS, "r1"),
        (("n1", "n3"), LEVELS, "b1"),
        (("n1", "n4"), LEVELS, None),
        (("n1", "gone"), LEVELS, None),
        (("n1", ""), LEVELS, "n1"),
        (("", ""), LEVELS, None),
        (("n1", "n2"), (), None),
        (("n1", "n2"), ("missing", "rack"), None),
    ],
    ids=["node", "rack", "block", "nothing in common", "node gone", "one bound", "none bound", "no topology", "label missing"],
)
def test_the_narrowest_domain_that_holds_all_bound_pods(nodes: tuple[str, str], levels: tuple[str, ...], domain: str | None) -> None:
    pods = [pod(f"p{i}", on) for i, on in enumerate(nodes)]
    assert status_of(report(state(gang(PENDING), *pods, levels=levels), NOW)).get("domain") == domain


def test_the_score_is_kept_when_it_is_not_known_any_more() -> None:
    placed = settled(state(gang(PENDING), pod("p0", "n1"), pod("p1", "n1"), score=0.5))
    assert report(state(placed, pod("p0", "n1"), pod("p1", "n1"), score=None), LATER) == ()


def test_conditions_of_the_podgang_controller_are_not_touched() -> None:
    theirs = {"type": "Initialized", "status": "True", "reason": "x", "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z"}
    first = state(gang({"phase": "Pending", "conditions": [theirs]}), pod("p0", "n1"), pod("p1", "n1"))
    status = status_of(report(first, NOW))
    assert [c["type"] for c in status["conditions"]] == ["Scheduled"]
    assert "phase" not in status
    assert report(state(settled(first), pod("p0", "n1"), pod("p1", "n1")), LATER) == ()
