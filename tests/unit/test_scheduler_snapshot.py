"""The cluster state that planning starts from."""

from datetime import timedelta
from typing import Any

import msgspec
import numpy as np

from api.core import Node, Pod
from scheduler.eligibility import Cause, Rules
from scheduler.requests import MOST
from scheduler.snapshot import STUCK_AFTER, ClusterState, Snapshot
from scheduler.topology import TreeIndex
from tests.sched_builders import GPU, NOW, cluster, make_node, make_pod


def _free(snapshot: Snapshot, node: str, resource: str = GPU) -> int:
    return int(snapshot.free[snapshot.table.row_of[node], snapshot.columns[resource]])


def _now(state: ClusterState, node: str, resource: str = GPU) -> int:
    return _free(state.snapshot(NOW), node, resource)


def test_pods_take_and_give_back_room() -> None:
    state = cluster([make_node("n", 8)], [make_pod("a", gpus=3, node="n")])
    assert _now(state, "n") == 5
    assert _now(state, "n", "pods") == 109
    state.set_pod(make_pod("a", gpus=3, node="n", status={"phase": "Succeeded"}))
    assert _now(state, "n") == 8
    state.set_pod(make_pod("b", gpus=2, node="n"))
    state.remove_pod("b")
    state.remove_pod("unknown")
    assert _now(state, "n") == 8


def test_pods_may_come_before_their_node_and_outlive_it() -> None:
    state = cluster([], [make_pod("a", gpus=3, node="n")])
    state.set_node(make_node("n", 8))
    assert _now(state, "n") == 5
    state.remove_node("n")
    assert "n" not in state.snapshot(NOW).table.row_of
    state.set_node(make_node("m", 8))
    assert _now(state, "m") == 8
    state.set_node(make_node("n", 4))
    assert _now(state, "n") == 1


def test_a_terminating_pod_holds_room_that_is_soon_free_until_it_is_stuck() -> None:
    deleted = {"metadata": {"deletionTimestamp": NOW.isoformat()}}
    state = cluster([make_node("n", 8)], [make_pod("a", gpus=3, node="n", **deleted)])
    for moment, soon in ((NOW, 3), (NOW + STUCK_AFTER, 3), (NOW + STUCK_AFTER + timedelta(seconds=1), 0)):
        snapshot = state.snapshot(moment)
        assert _free(snapshot, "n") == 5
        assert snapshot.soon[snapshot.table.row_of["n"], snapshot.columns[GPU]] == soon


def test_an_assumed_pod_holds_room_until_it_is_seen_or_forgotten() -> None:
    state = cluster([make_node("n", 8)])
    pod = make_pod("a", gpus=3)
    state.assume(pod, "n")
    state.set_pod(pod)
    assert (_now(state, "n"), state.assumed) == (5, {"a": "n"})
    state.set_pod(make_pod("a", gpus=3, node="n"))
    state.forget("a")
    assert (_now(state, "n"), state.assumed) == (5, {})
    state.remove_pod("a")
    state.assume(pod, "n")
    state.forget("a")
    assert _now(state, "n") == 8


def test_a_snapshot_does_not_change_with_the_state() -> None:
    state = cluster([make_node("n", 8, {"rack": "a"})])
    snapshot = state.snapshot(NOW)
    tree = snapshot.table.tree(("rack",))
    causes = snapshot.table.causes(Rules())
    row, version = snapshot.table.row_of["n"], snapshot.version
    state.set_node(make_node("n", 4, {"rack": "b"}))
    for i in range(40):
        state.set_node(make_node(f"m{i}", 8, {"rack": "b"}))
    state.remove_node("n")
    assert (_free(snapshot, "n"), tree.path(0, int(tree.domains[0, row])), causes[row]) == (8, ("a",), Cause.NONE)
    later = state.snapshot(NOW)
    assert later.version > version
    assert later.table.tree(("rack",)).path(0, int(later.table.tree(("rack",)).domains[0, later.table.row_of["m39"]])) == ("b",)


def test_news_without_change_keep_the_version() -> None:
    state = cluster([make_node("n", 8)], [make_pod("a", gpus=1, node="n")])
    before = state.version
    state.set_node(make_node("n", 8))
    state.set_pod(make_pod("a", gpus=1, node="n"))
    assert state.version == before


def test_answers_per_rule_follow_node_changes() -> None:
    state = cluster([make_node("n", 8, {"kind": "a"})])
    rules = Rules(selector=(("kind", "a"),))
    assert state.snapshot(NOW).table.causes(rules)[0:].tolist().count(Cause.NONE) == 1
    state.set_node(make_node("n", 8, {"kind": "b"}))
    snapshot = state.snapshot(NOW)
    assert snapshot.table.causes(rules)[snapshot.table.row_of["n"]] == Cause.SELECTOR
    assert (np.delete(snapshot.table.causes(rules), snapshot.table.row_of["n"]) == Cause.ABSENT).all()


def test_domains_are_paths_and_nodes_without_a_label_are_outside() -> None:
    tree = TreeIndex(("block", "rack"), 4)
    rows: list[dict[str, Any]] = [{"block": "a", "rack": "r"}, {"block": "b", "rack": "r"}, {"rack": "r"}, {"block": "a", "rack": "r2"}]
    for row, labels in enumerate(rows):
        tree.set_row(row, labels)
    assert len({*tree.domains[1, :2].tolist(), *tree.domains[1, 3:].tolist()}) == 3
    assert tree.domains[:, 2].tolist() == [-1, -1]
    assert tree.ancestors(1, 0)[tree.domains[1, 0]] == tree.domains[0, 0]
    assert [tree.path(1, int(d)) for d in np.argsort(tree.ranks(1))] == [("a", "r"), ("a", "r2"), ("b", "r")]


def test_a_node_may_be_named_like_a_domain() -> None:
    state = cluster([msgspec.convert({"metadata": {"name": "b1", "labels": {"block": "b1"}}, "status": {"allocatable": {GPU: 1}}}, Node)])
    tree = state.snapshot(NOW).table.tree(("block",))
    assert tree.path(0, int(tree.domains[0].max())) == ("b1",)


def test_a_pod_moved_by_somebody_else_counts_on_its_node() -> None:
    state = cluster([make_node("n", 8), make_node("m", 8)])
    pod: Pod = make_pod("a", gpus=3)
    state.assume(pod, "n")
    state.set_pod(make_pod("a", gpus=3, node="m"))
    assert (_now(state, "n"), _now(state, "m")) == (8, 5)


def _asking(name: str, node: str, **requests: Any) -> Pod:
    return make_pod(name, node=node, spec={"containers": [{"resources": {"requests": requests}}]})


def test_absurd_and_malformed_amounts_leave_the_state_usable() -> None:
    state = cluster([make_node("n", 8, memory="1E"), make_node("m", 8, cpu="many")])
    for pod in (_asking("a", "n", cpu="1E"), _asking("b", "n", memory="many"), _asking("c", "n", memory="8Ei")):
        state.set_pod(pod)
    assert _now(state, "n", "cpu") == 10**6 - MOST - 1
    assert _now(state, "n", "memory") == -1
    assert (_now(state, "m", "cpu"), state.n_unreadable) == (0, 1)
    for uid in "abc":
        state.remove_pod(uid)
    assert (_now(state, "n", "cpu"), _now(state, "n", "memory")) == (10**6, MOST)


def test_a_node_may_come_after_a_pod_with_a_resource_that_no_node_has() -> None:
    state = cluster([], [_asking("a", "n", **{"example.com/odd": 2})])
    state.set_node(make_node("n", 8))
    assert _now(state, "n", "example.com/odd") == -2
    state.remove_pod("a")
    assert _now(state, "n", "example.com/odd") == 0


def test_a_snapshot_does_not_see_domains_that_come_later() -> None:
    state = cluster([make_node("n", 8, {"block": "a", "rack": "a"})])
    tree = state.snapshot(NOW).table.tree(("block", "rack"))
    state.set_node(make_node("m", 8, {"block": "b", "rack": "b"}))
    later = state.snapshot(NOW).table.tree(("block", "rack"))
    assert ([tree.size(0), tree.size(1)], [later.size(0), later.size(1)]) == ([1, 1], [2, 2])
    assert (len(tree.ranks(1)), len(tree.ancestors(1, 0))) == (1, 1)
