"""Who prevails when plugins disagree, by example."""

from controllers.planner.merge import Clamp, Kind, MergeOutcome, PluginResult, Target, TargetType, merge

SET, AT_LEAST, AT_MOST = TargetType.SET, TargetType.AT_LEAST, TargetType.AT_MOST


def says(plugin: str, *targets: tuple[str, int | None, TargetType], priority: int = 0, final: bool = False) -> PluginResult:
    return PluginResult(plugin, priority, Kind.OVERRIDE, [Target(*target) for target in targets], final=final)


def merged(*results: PluginResult, set_allowed: bool = True, **baseline: int) -> MergeOutcome:
    return merge(results, baseline, set_allowed=set_allowed)


def test_nobody_says_anything_and_the_baseline_stays() -> None:
    outcome = merged(PluginResult("a", 1, Kind.ACCEPT), prefill=2, decode=0)
    assert outcome.replicas() == {"prefill": 2, "decode": 0}
    assert outcome.source == "merged"


def test_first_of_several_rejects_is_told_and_beats_final() -> None:
    rejects = (PluginResult("a", 9, Kind.REJECT, reason="x"), PluginResult("b", 0, Kind.REJECT, reason="y"))
    outcome = merged(says("f", ("decode", 5, SET), final=True), *rejects, decode=1)
    assert (outcome.short_circuit_reason, outcome.source, outcome.targets) == ("a: x", "", ())


def test_smaller_priority_sets_and_the_first_of_equals() -> None:
    assert merged(says("a", ("decode", 5, SET), priority=2), says("b", ("decode", 7, SET), priority=1)).replicas() == {"decode": 7}
    assert merged(says("a", ("decode", 5, SET)), says("b", ("decode", 7, SET))).replicas() == {"decode": 5}


def test_floor_wins_over_ceiling_and_who_moved_it_is_told() -> None:
    outcome = merged(says("a", ("decode", 6, AT_LEAST)), says("b", ("decode", 3, AT_MOST)), decode=9)
    assert outcome.replicas() == {"decode": 6}
    assert outcome.clamped == (Clamp("decode", "ceiling", "b"),)
    assert merged(says("a", ("decode", 6, AT_LEAST)), decode=1).clamped == (Clamp("decode", "floor", "a"),)
    assert merged(says("a", ("decode", 6, AT_LEAST)), decode=6).clamped == ()


def test_sets_do_not_count_where_they_are_not_allowed() -> None:
    outcome = merged(says("a", ("decode", 6, SET), ("decode", 4, AT_MOST), ("prefill", None, SET)), set_allowed=False, decode=5)
    assert outcome.replicas() == {"decode": 4}
    assert outcome.set_dropped == ("decode",)


def test_unknown_counts_name_nothing() -> None:
    assert merged(says("a", ("router", None, SET), ("prefill", None, AT_LEAST)), decode=1).replicas() == {"decode": 1}


def test_final_answer_keeps_types_and_unknown_counts() -> None:
    outcome = merged(says("a", ("decode", None, AT_MOST), final=True), says("b", ("decode", 3, SET)), decode=1, prefill=2)
    assert outcome.targets == (Target("decode", None, AT_MOST), Target("prefill", 2))
    assert outcome.used_final_from == outcome.source == "a"


def test_final_answer_without_allowed_targets_leaves_the_baseline() -> None:
    outcome = merged(says("a", ("decode", 9, SET), final=True), set_allowed=False, decode=1)
    assert (outcome.replicas(), outcome.set_dropped) == ({"decode": 1}, ("decode",))


def test_order_is_that_of_first_mention_then_of_the_baseline() -> None:
    outcome = merged(says("a", ("router", 1, SET), ("decode", 1, SET)), prefill=2, decode=3)
    assert [target.component for target in outcome.targets] == ["router", "decode", "prefill"]


def test_a_later_target_of_the_same_component_wins_in_replicas() -> None:
    assert MergeOutcome((Target("decode", 1), Target("decode", 2), Target("decode", None))).replicas() == {"decode": 2}
