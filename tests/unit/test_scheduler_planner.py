"""Planning rounds: order, gang rules, running members, reservations, anchors, and what users are told."""

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from api.plan import Why
from api.reasons import Reason
from scheduler.eligibility import Rules
from scheduler.model import Decision, Gang, Group, MemberState, Plan, Scope, Verdict
from scheduler.planner import PlannerConfig, plan_round
from scheduler.requests import MOST
from tests.sched_builders import NOW, TREE, cluster, leaf, make_gang, make_group, make_node, make_pod, racks, running_pods

RACK, BLOCK = 1, 0


def _root(
    name: str, *groups: Group, required: int | None = None, preferred: int | None = None, k: int | None = None, **fields: Any
) -> Gang:
    children = tuple(leaf(g.name) for g in groups)
    return make_gang(name, groups, Scope(name, "root", TREE, required, preferred, len(groups) if k is None else k, children), **fields)


def _plan(decisions: list[Decision], name: str) -> Plan:
    result = next(r for g, r in decisions if g.name == name)
    assert isinstance(result, Plan), result
    return result


def _verdict(decisions: list[Decision], name: str) -> tuple[str, Why]:
    result = next(r for g, r in decisions if g.name == name)
    assert isinstance(result, Verdict)
    assert result.why is not None
    return result.kind, result.why


def _nodes(plan: Plan) -> list[str]:
    return sorted(a.node for a in plan.assignments)


def _round(gpus: list[int], *gangs: Gang, pods: Any = (), config: PlannerConfig | None = None, **layout: int) -> list[Decision]:
    running = [p for g in gangs for p in running_pods(g)]
    return plan_round(cluster(racks(gpus, **layout), [*running, *pods]).snapshot(NOW), gangs, config)


def _gated(group: Group) -> Group:
    return replace(group, members=tuple(replace(m, state=MemberState.GATED) for m in group.members))


def test_priority_goes_first_and_a_gang_that_does_not_fit_holds_nothing() -> None:
    decisions = _round(
        [4],
        _root("small", make_group("small", "a", 2, 2), created="1"),
        _root("big", make_group("big", "a", 1, 5), priority=9, created="2"),
        _root("high", make_group("high", "a", 3, 1), priority=5, created="3"),
    )
    assert [g.name for g, _ in decisions] == ["big", "high", "small"]
    assert len(_plan(decisions, "high").assignments) == 1
    assert _verdict(decisions, "big")[1].reason is Reason.INSUFFICIENT_CAPACITY
    assert _verdict(decisions, "small")[0] == "infeasible"


def test_a_running_gang_below_its_minimum_goes_before_older_ones() -> None:
    torn = _root("torn", make_group("torn", "a", 1, 2, nodes=["n0"]), created="9")
    decisions = _round([1, 1], _root("old", make_group("old", "a", 1, 1), created="1"), torn)
    assert _nodes(_plan(decisions, "torn")) == ["n1"]
    assert isinstance(decisions[1].result, Verdict)


def test_base_minimum_then_scaled_minimum_then_surplus() -> None:
    base, tail = make_group("base", "a", 1, 4, 2), make_group("tail", "a", 1, 2, 1)
    decisions = _round([4], _root("tail", tail, base="base"), _root("base", base))
    assert len(_plan(decisions, "base").assignments) == 3
    assert len(_plan(decisions, "tail").assignments) == 1


def test_scaled_gang_waits_for_a_base_that_is_not_placed_or_not_there() -> None:
    base, tail = make_group("base", "a", 1, 4), make_group("tail", "a", 1, 1)
    decisions = _round([3], _root("base", base), _root("tail", tail, base="base"), _root("orphan", tail, base="none"))
    for name in ("tail", "orphan"):
        assert _verdict(decisions, name)[1].reason is Reason.WAITING_FOR_BASE_GANG


def test_surplus_goes_to_the_gang_with_the_lowest_ratio() -> None:
    one = _root("one", make_group("one", "a", 1, 5, 2))
    two = _root("two", make_group("two", "a", 1, 5, 1))
    zero = _root("zero", make_group("zero", "a", 1, 5, 0))
    counts = {g.name: len(r.assignments) if isinstance(r, Plan) else 0 for g, r in _round([7], one, two, zero)}
    assert counts == {"one": 5, "two": 2, "zero": 0}


def test_a_gang_without_minimum_gets_what_is_left_within_its_rack() -> None:
    decisions = _round([2, 3], _root("g", make_group("g", "a", 1, 4, 0), required=RACK))
    plan = _plan(decisions, "g")
    assert len(set(_nodes(plan))) == 1
    assert plan.notes[0].reason is Reason.INSUFFICIENT_CAPACITY


@pytest.mark.parametrize(("gated", "reason"), [(False, Reason.WAITING_FOR_PODS), (True, Reason.WAITING_FOR_GATES)])
def test_waiting_for_pods(gated: bool, reason: Reason) -> None:
    group = replace(make_group("g", "a", 1, 2), min=3)
    kind, why = _verdict(_round([8], _root("g", _gated(group) if gated else group)), "g")
    assert (kind, why.reason) == ("waiting", reason)
    assert "a (2 exist" in why.message


def test_finished_pods_count_as_present() -> None:
    group = make_group("g", "a", 1, 3)
    done = replace(group, members=(replace(group.members[0], state=MemberState.SUCCEEDED), *group.members[1:]))
    assert len(_plan(_round([2], _root("g", done)), "g").assignments) == 2


def test_refused_and_stale_gangs() -> None:
    group = make_group("g", "a", 1, 1)
    refused = _root("refused", group, problem=Why(Reason.VOLUME_BOUND, "no"))
    stale = _root("stale", group, stale=Why(Reason.CACHE_STALE, "no"))
    decisions = _round([8], refused, stale)
    assert (_verdict(decisions, "refused")[0], _verdict(decisions, "stale")[0]) == ("refused", "waiting")


def test_new_pods_join_the_domain_of_running_ones() -> None:
    gang = _root("g", make_group("g", "a", 1, 2, 1, nodes=["n0"]), required=RACK)
    assert _round([1, 5], gang)[0].result == Verdict("placed", _verdict(_round([1, 5], gang), "g")[1])
    assert _nodes(_plan(_round([2, 5], gang), "g")) == ["n0"]


def test_a_split_scope_is_reported_and_grows_where_most_pods_are() -> None:
    gang = _root("g", make_group("g", "a", 1, 4, 4, nodes=["n0", "n1", "n1"]), required=RACK)
    plan = _plan(_round([5, 5], gang), "g")
    assert _nodes(plan) == ["n1"]
    assert plan.notes[0].reason is Reason.REQUIRED_SPLIT


def test_one_lost_rack_does_not_starve_the_rest() -> None:
    a, b = make_group("g", "a", 1, 2, nodes=["n0"]), make_group("g", "b", 1, 2, nodes=["n1"])
    scopes = (leaf("a", RACK), leaf("b", RACK))
    gang = make_gang("g", [a, b], Scope("g", "root", TREE, min_children=2, children=scopes))
    plan = _plan(_round([1, 2, 1], gang), "g")
    assert [x.name for x in plan.assignments] == ["g-b-1"]
    assert plan.notes[-1].reason is Reason.INSUFFICIENT_IN_DOMAIN


def test_room_of_terminating_pods_is_reserved_for_whole_gangs_only() -> None:
    leaving = make_pod("old", gpus=2, node="n0", metadata={"deletionTimestamp": NOW.isoformat()})
    decisions = _round(
        [3], _root("g", make_group("g", "a", 1, 2)), _root("late", make_group("late", "a", 1, 1), created="9"), pods=[leaving]
    )
    plan = _plan(decisions, "g")
    assert (plan.state, plan.ready, len(plan.assignments)) == ("releasing", (), 2)
    assert _plan(decisions, "late").state == "releasing"
    assert isinstance(_round([3], _root("g", make_group("g", "a", 1, 4)), pods=[leaving])[0].result, Verdict)


def test_surplus_on_terminating_room_does_not_hold_back_the_minimum() -> None:
    leaving = make_pod("old", gpus=1, node="n0", metadata={"deletionTimestamp": NOW.isoformat()})
    plan = _plan(_round([3], _root("g", make_group("g", "a", 1, 3, 2)), pods=[leaving]), "g")
    assert (plan.state, len(plan.ready), len(plan.assignments)) == ("planned", 2, 3)


def test_k_of_n_by_feasibility_and_else_in_order() -> None:
    a, b = make_group("g", "a", 4, 2), make_group("g", "b", 2, 2)
    assert {x.group for x in _plan(_round([4], _root("g", a, b, k=1)), "g").assignments} == {"b"}
    a = make_group("g", "a", 2, 2)
    assert {x.group for x in _plan(_round([4], _root("g", a, b, k=1)), "g").assignments} == {"a"}


def test_siblings_backtrack() -> None:
    a, b = make_group("g", "a", 1, 3), make_group("g", "b", 1, 3)
    assert _nodes(_plan(_round([4, 6], _root("g", a, b, required=RACK)), "g")) == ["n1"] * 6
    scopes = (leaf("a", RACK), leaf("b", RACK))
    small, large = make_group("g", "a", 1, 4), make_group("g", "b", 4, 1)
    gang = make_gang("g", [small, large], Scope("g", "root", TREE, min_children=2, children=scopes))
    assert len(_plan(_round([4, 4], gang), "g").assignments) == 5


def test_odd_sizes_are_decided_by_cp_sat() -> None:
    gang = _root("g", make_group("g", "a", 3, 2), make_group("g", "b", 2, 2), make_group("g", "c", 5, 1), required=BLOCK)
    plan = _plan(_round([5, 5, 5], gang, per_block=3), "g")
    assert sorted(a.node for a in plan.assignments if a.group in "ab") != []
    kind, why = _verdict(_round([5, 5, 4], gang, per_block=3), "g")
    assert (kind, why.reason) == ("infeasible", Reason.INSUFFICIENT_CAPACITY)


def test_two_preferred_scopes_get_a_rack_each_where_greed_would_split_them() -> None:
    groups = [make_group("g", "a", 1, 3), make_group("g", "b", 1, 3)]
    scopes = (leaf("a", None, RACK), leaf("b", None, RACK))
    gang = make_gang("g", groups, Scope("g", "root", TREE, min_children=2, children=scopes))
    plan = _plan(_round([2, 2, 3, 3], gang), "g")
    assert (plan.score, plan.bound) == (1.0, 1.0)
    assert {n: _nodes(plan).count(n) for n in set(_nodes(plan))} == {"n2": 3, "n3": 3}


def test_score_of_a_spread_gang() -> None:
    plan = _plan(_round([2, 2, 1], _root("g", make_group("g", "a", 1, 4), preferred=RACK)), "g")
    assert (plan.score, _nodes(plan)) == (1.0, ["n0", "n0", "n1", "n1"])


def test_scaled_gangs_follow_their_base_and_the_base_looks_ahead() -> None:
    base = _root("base", make_group("base", "a", 4, 1), required=BLOCK)
    tails = [_root(f"tail{i}", _gated(make_group(f"tail{i}", "a", 4, 1)), required=RACK, base="base") for i in range(3)]
    assert _nodes(_plan(_round([4, 4, 4, 0, 4, 4, 4, 4], base, *tails, per_block=4), "base"))[0] in ("n4", "n5", "n6", "n7")
    assert _nodes(_plan(_round([4, 4, 4, 0, 4, 4, 4, 4], base, per_block=4), "base"))[0] in ("n0", "n1", "n2")


@pytest.mark.parametrize(("anchor", "placed"), [("soft", True), ("hard", False)])
def test_anchor(anchor: Any, placed: bool) -> None:
    base = _root("base", make_group("base", "a", 4, 1, nodes=["n0"]), required=BLOCK)
    tail = _root("tail", make_group("tail", "a", 4, 1), base="base")
    assert _nodes(_plan(_round([4, 4, 4], base, tail), "tail")) == ["n1"]
    decisions = _round([4, 0, 4], base, tail, config=PlannerConfig(anchor=anchor))
    assert isinstance(decisions[1].result, Plan) == placed


def test_host_anti_affinity_within_the_gang_and_against_pods_on_nodes() -> None:
    single = make_group("g", "a", 1, 3, single=True)
    assert _nodes(_plan(_round([8, 8, 8], _root("g", single)), "g")) == ["n0", "n1", "n2"]
    assert isinstance(_round([8, 8], _root("g", single))[0].result, Verdict)
    stranger = make_pod("s", node="n1", metadata={"labels": {"app": "g-a"}})
    assert isinstance(_round([8, 8, 8], _root("g", single), pods=[stranger])[0].result, Verdict)
    shy = make_pod(
        "s",
        node="n0",
        spec={
            "affinity": {
                "podAntiAffinity": {
                    "requiredDuringSchedulingIgnoredDuringExecution": [
                        {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"app": "h-a"}}}
                    ]
                }
            }
        },
    )
    assert _nodes(_plan(_round([8, 8], _root("h", make_group("h", "a", 1, 2)), pods=[shy]), "h")) == ["n1", "n1"]


def test_two_gangs_of_one_round_keep_apart() -> None:
    one = make_group("x", "a", 1, 1, single=True)
    two = replace(make_group("y", "a", 1, 1), labels=one.labels)
    decisions = _round([8, 8], _root("one", one), _root("two", two))
    assert _nodes(_plan(decisions, "one")) != _nodes(_plan(decisions, "two"))


def test_pods_without_devices_keep_away_from_free_devices() -> None:
    assert _nodes(_plan(_round([8, 0, 8], _root("g", make_group("g", "a", 0, 3))), "g")) == ["n1"] * 3


def test_verdict_names_domain_numbers_and_excluded_nodes() -> None:
    nodes = [*racks([3, 3, 8]), make_node("odd", 8, {"rack": "r9", "block": "b9"})]
    taken = make_pod("s", gpus=8, node="n2")
    group = make_group("g", "workers", 1, 4)
    rules = Rules(selector=(("block", "b0"),))
    group = replace(group, members=tuple(replace(m, shape=replace(m.shape, rules=rules)) for m in group.members))
    kind, why = _verdict(plan_round(cluster(nodes, [taken]).snapshot(NOW), [_root("g", group, required=RACK)]), "g")
    assert (kind, why.reason) == ("infeasible", Reason.INSUFFICIENT_IN_DOMAIN)
    assert why.message == (
        "g needs 4 pods in one rack; the best, b0/r0, takes 3 (4 workers). 2 of 4 nodes are excluded: 2 not matching the node selector. "
        "Free room in one rack, or ask for a broader level."
    )
    assert (why.evidence["fits"], why.evidence["wanted"], why.evidence["domain"]) == (3, 4, "b0/r0")


def test_verdict_names_the_resource_or_rule_that_is_missing() -> None:
    _, why = _verdict(_round([8], _root("g", make_group("g", "a", 4, 3))), "g")
    assert why.message == "Needs 3 pods (3 a); the cluster takes 2 for lack of nvidia.com/gpu. Add or free nodes."
    group = make_group("g", "a", 1, 1)
    group = replace(group, members=(replace(group.members[0], shape=replace(group.members[0].shape, rules=Rules(selector=(("a", "b"),)))),))
    assert _verdict(_round([8], _root("g", group)), "g")[1].reason is Reason.NODE_SELECTOR_MISMATCH
    unknown = replace(group.members[0].shape, rules=Rules(), request=(("example.com/npu", 1), ("pods", 1)))
    group = replace(group, members=(replace(group.members[0], shape=unknown),))
    assert _verdict(_round([8], _root("g", group)), "g")[1].evidence["resource"] == "example.com/npu"


def test_messages_stay_short() -> None:
    groups = [make_group("g", "x" * 250 + str(i), 9, 1) for i in range(9)]
    _, why = _verdict(_round([8], _root("g", *groups)), "g")
    assert len(why.message.encode()) <= 1024
    assert why.message.endswith("Add or free nodes.")


def test_equal_gangs_that_fail_get_their_own_text() -> None:
    decisions = _round([1], *(_root(f"g{i}", make_group(f"g{i}", f"pods{i}", 2, 1)) for i in range(2)))
    assert "pods1" in _verdict(decisions, "g1")[1].message


def test_the_snapshot_is_not_changed() -> None:
    snapshot = cluster(racks([4])).snapshot(NOW)
    before = snapshot.free.copy()
    plan_round(snapshot, [_root("g", make_group("g", "a", 1, 4))])
    assert (snapshot.free == before).all()
    assert not snapshot.planned


def test_plans_do_not_depend_on_the_hash_seed() -> None:
    code = (
        "from tests.sched_builders import *\nfrom scheduler.planner import plan_round\n"
        "gangs=[make_gang(f'g{i}', [make_group(f'g{i}', c, 1 + i % 3, 3, 1) for c in 'abc']) for i in range(6)]\n"
        "print(plan_round(cluster(racks([8, 5, 3, 8, 2, 7])).snapshot(NOW), gangs))"
    )
    root = Path(__file__).parents[2]
    outputs = {
        subprocess.run(  # noqa: S603
            [sys.executable, "-c", code], cwd=root, env={**os.environ, "PYTHONHASHSEED": seed}, capture_output=True, text=True, check=True
        ).stdout
        for seed in ("1", "2")
    }
    assert len(outputs) == 1


def test_absurd_amounts_end_as_verdicts_and_large_ones_as_plans() -> None:
    huge = _root("huge", make_group("huge", "a", 1, 3, cpu=MOST + 1), make_group("huge", "b", 2, 2, cpu=MOST), required=RACK)
    nodes = [make_node(f"n{i}", 8, {"block": "b", "rack": f"r{i}"}, cpu="1E", memory="8Ei") for i in range(4)]
    decisions = plan_round(cluster(nodes).snapshot(NOW), [huge])
    assert _verdict(decisions, "huge")[0] == "infeasible"
    large = _root("large", make_group("large", "a", 1, 2, cpu=2**45), make_group("large", "b", 2, 2, cpu=2**46), required=RACK)
    decisions = plan_round(cluster(nodes).snapshot(NOW), [large])
    assert len({a.node for a in _plan(decisions, "large").assignments}) == 1
