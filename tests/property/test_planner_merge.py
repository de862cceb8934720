"""Merging for any answers: bounds hold, and order matters only where the rules say so."""

from random import Random

from hypothesis import assume, given
from hypothesis import strategies as st

from controllers.planner.merge import MERGED, Kind, PluginResult, Target, TargetType, merge

COMPONENTS = st.sampled_from(["prefill", "decode", "router"])
COUNTS = st.integers(0, 12)
TARGETS = st.builds(Target, COMPONENTS, st.none() | COUNTS, st.sampled_from(TargetType))
BASELINES = st.dictionaries(COMPONENTS, COUNTS)


@st.composite
def answers(draw: st.DrawFn, *, final: bool = False, distinct: bool = False) -> list[PluginResult]:
    """Accepts and overrides. final: some may be. distinct: no two priorities are equal, and one SET per component and plugin."""
    number = draw(st.integers(0, 5))
    priorities = draw(st.lists(st.integers(-3, 9), min_size=number, max_size=number, unique=distinct))
    results: list[PluginResult] = []
    for index, priority in enumerate(priorities):
        key = (lambda t: (t.component, t.type)) if distinct else None
        targets = draw(st.lists(TARGETS, max_size=5, unique_by=key))
        kind = draw(st.sampled_from([Kind.ACCEPT, Kind.OVERRIDE, Kind.OVERRIDE]))
        results.append(
            PluginResult(f"p{index}", priority, kind, targets if kind is Kind.OVERRIDE else (), final=final and draw(st.booleans()))
        )
    return results


def values(results: list[PluginResult], component: str, kind: TargetType) -> list[int]:
    return [t.replicas for r in results for t in r.targets if t.component == component and t.type is kind and t.replicas is not None]


@given(answers(), BASELINES, st.booleans())
def test_floor_holds_and_ceiling_holds_unless_the_floor_is_above(
    results: list[PluginResult], baseline: dict[str, int], allowed: bool
) -> None:
    outcome = merge(results, baseline, set_allowed=allowed)
    assert outcome.source == MERGED
    names = [target.component for target in outcome.targets]
    assert len(names) == len(set(names))
    assert set(baseline) <= set(names)
    for component, replicas in outcome.replicas().items():
        floor = max(values(results, component, TargetType.AT_LEAST), default=0)
        ceiling = min(values(results, component, TargetType.AT_MOST), default=None)
        assert replicas >= floor
        assert ceiling is None or replicas <= max(floor, ceiling)
        wishes = [baseline.get(component, 0), *(values(results, component, TargetType.SET) if allowed else [])]
        assert replicas in {*wishes, floor, ceiling}


@given(answers(final=True, distinct=True), BASELINES, st.booleans(), st.randoms(use_true_random=False))
def test_order_does_not_matter_without_equal_priorities(
    results: list[PluginResult], baseline: dict[str, int], allowed: bool, random: Random
) -> None:
    shuffled = list(results)
    random.shuffle(shuffled)
    pairs = list(baseline.items())
    random.shuffle(pairs)
    one, other = merge(results, baseline, set_allowed=allowed), merge(shuffled, dict(pairs), set_allowed=allowed)
    assert one.replicas() == other.replicas()
    assert (one.source, one.used_final_from) == (other.source, other.used_final_from)
    assert sorted(one.set_dropped) == sorted(other.set_dropped)
    assert sorted(clamp[:2] for clamp in one.clamped) == sorted(clamp[:2] for clamp in other.clamped)


@given(answers(), BASELINES, st.randoms(use_true_random=False))
def test_floors_and_ceilings_never_depend_on_order(results: list[PluginResult], baseline: dict[str, int], random: Random) -> None:
    shuffled = list(results)
    random.shuffle(shuffled)
    assert merge(results, baseline, set_allowed=False).replicas() == merge(shuffled, baseline, set_allowed=False).replicas()


@given(answers(final=True), BASELINES, st.booleans(), st.integers(0, 5))
def test_a_reject_anywhere_stops_all(results: list[PluginResult], baseline: dict[str, int], allowed: bool, at: int) -> None:
    place = min(at, len(results))
    with_reject = [*results[:place], PluginResult("no", 99, Kind.REJECT, reason="why"), *results[place:]]
    outcome = merge(with_reject, baseline, set_allowed=allowed)
    assert (outcome.short_circuited, outcome.short_circuit_reason, outcome.targets) == (True, "no: why", ())


@given(answers(final=True), BASELINES)
def test_the_strongest_final_answer_is_taken_whole(results: list[PluginResult], baseline: dict[str, int]) -> None:
    finals = [result for result in results if result.final and result.kind is Kind.OVERRIDE]
    assume(finals)
    outcome = merge(results, baseline, set_allowed=True)
    strongest = min(result.priority for result in finals)
    winner = next(result for result in finals if result.priority == strongest)
    assert outcome.used_final_from == winner.plugin_id
    assert list(outcome.targets[: len(winner.targets)]) == list(winner.targets)
    assert {target.component for target in outcome.targets} == {t.component for t in winner.targets} | set(baseline)


@given(answers(), BASELINES)
def test_merging_what_was_merged_changes_nothing(results: list[PluginResult], baseline: dict[str, int]) -> None:
    merged = merge(results, baseline, set_allowed=True).replicas()
    assert merge([PluginResult("p", 0, Kind.ACCEPT)], merged, set_allowed=False).replicas() == merged
