"""Budgets and projection for any numbers: no exceptions, and bounds hold wherever the rules promise it."""

from typing import Any

from hypothesis import assume, given
from hypothesis import strategies as st

from controllers.planner.budget import bounds_for_total, clamp_pair, clamp_single
from controllers.planner.config.model import PlannerConfig
from controllers.planner.merge import Target
from controllers.planner.power import PowerLoad, PowerReason, apply_power_budget
from controllers.planner.project import Projection, project
from controllers.planner.types import Capabilities, Mode, Role, RoleCapabilities, WorkerCounts

ANY = st.integers() | st.integers(-(10**400), 10**400)
MAYBE = st.none() | ANY
COUNTS = st.integers(0, 40)
COSTS = st.integers(1, 9)
BUDGETS = st.integers(-1, 120)
LEAST = st.integers(0, 5)
WATTS = st.integers(1, 1500)
LIMITS = st.integers(1, 40_000)
# So much that what runs at first is within budget and limit.
ROOMY = {"most": st.just(-1) | st.integers(54, 120), "ready_counts": st.integers(0, 3), "limits": st.integers(9000, 40_000)}


@given(ANY, ANY, ANY, ANY, ANY, ANY, ANY, MAYBE)
def test_any_integers_are_taken(a: int, b: int, c: int, d: int, e: int, f: int, g: int, h: int | None) -> None:
    assert all(type(count) is int for count in (*clamp_pair(a, b, c, d, e, f, g, h), clamp_single(a, b, c, d, e)))
    assert bounds_for_total(a, b, c, d).ok is not bool(bounds_for_total(a, b, c, d).reason)
    one = apply_power_budget(PowerLoad(h, a, b, c), PowerLoad(d, h, e, f), g)
    assert (one.num_p is None, type(one.num_d)) == (h is None, int)
    both = apply_power_budget(PowerLoad(a, b, c, d), PowerLoad(e, f, g, a), b)
    assert (type(both.num_p), type(both.num_d)) == (int, int)


@given(COUNTS, COUNTS, COSTS, COSTS, BUDGETS, BUDGETS, LEAST, LEAST)
def test_pair_keeps_minimums_and_ceiling_unless_both_cannot_be(
    p: int, d: int, p_gpu: int, d_gpu: int, least: int, most: int, least_p: int, least_d: int
) -> None:
    p, d = max(p, least_p), max(d, least_d)
    new_p, new_d = clamp_pair(p, d, p_gpu, d_gpu, least, most, least_p, least_d)
    if 0 <= most < least_p * p_gpu + least_d * d_gpu:
        assert (new_p, new_d) == (0, 0)
        return
    assert new_p >= least_p
    assert new_d >= least_d
    total = new_p * p_gpu + new_d * d_gpu
    assert most < 0 or total <= most
    if least >= 0 and most < 0:
        assert total >= least
    if most < 0 and least < 0:
        assert (new_p, new_d) == (p, d)


@given(COUNTS, COSTS, BUDGETS, BUDGETS, LEAST)
def test_single_keeps_minimum_and_ceiling(n: int, cost: int, least: int, most: int, minimum: int) -> None:
    assume(most < 0 or least < 0 or least + cost <= most)
    new = clamp_single(max(n, minimum), cost, least, most, minimum)
    if 0 <= most < minimum * cost:
        assert new == 0
        return
    assert new >= minimum
    assert most < 0 or new * cost <= most
    assert least < 0 or new * cost >= least - (cost if most >= 0 else 0)
    assert clamp_single(new, cost, least, most, minimum) == new


@given(COUNTS, COUNTS, COUNTS, COUNTS, WATTS, WATTS, st.integers(0, 40_000), LEAST, LEAST)
def test_power_never_grows_beyond_the_limit(
    p: int, d: int, now_p: int, now_d: int, p_watts: int, d_watts: int, limit: int, least_p: int, least_d: int
) -> None:
    assume(now_p * p_watts + now_d * d_watts <= limit)
    prefill, decode = PowerLoad(p, now_p, p_watts, least_p), PowerLoad(d, now_d, d_watts, least_d)
    new_p, new_d, reason = apply_power_budget(prefill, decode, limit)
    if reason is PowerReason.MINIMUM_INFEASIBLE:
        assert least_p * p_watts + least_d * d_watts > limit
        return
    assert new_p is not None
    assert new_d is not None
    # Proposals come with their minimums in them; less than that cannot be kept and is raised.
    assume(p >= least_p and d >= least_d)
    assert new_p <= p
    assert new_d <= d
    assert new_p * p_watts + new_d * d_watts <= limit
    if not (new_p > now_p and new_d > now_d):
        assert max(now_p, new_p) * p_watts + max(now_d, new_d) * d_watts <= limit
    assert (reason is None) == ((new_p, new_d) == (p, d))


@st.composite
def worlds(
    draw: st.DrawFn,
    *,
    power: bool,
    known: bool,
    most: st.SearchStrategy[int] = BUDGETS,
    ready_counts: st.SearchStrategy[int] = COUNTS,
    limits: st.SearchStrategy[int] = LIMITS,
) -> dict[str, Any]:
    """Arguments of `project`. known: counts, costs and watts of all roles are, and nothing is under way."""
    maybe = (lambda s: s) if known else (lambda s: st.none() | s)
    mode = "disagg" if power else draw(st.sampled_from(["disagg", "prefill", "decode", "agg"]))
    settings: dict[str, Any] = {"mode": mode, "max_gpu_budget": draw(most), "min_gpu_budget": draw(st.just(-1) | BUDGETS)}
    settings["min_endpoint"] = draw(LEAST)
    if power:
        settings |= {"enable_power_awareness": True, "total_gpu_power_limit": draw(limits)}
    config = PlannerConfig.model_validate(settings)
    ready = {role: draw(maybe(ready_counts)) for role in config.roles}
    expected = ready if known else {role: draw(maybe(COUNTS)) for role in config.roles}
    flags = st.just(False) if known else st.booleans()
    roles = config.roles if known else ("prefill", "decode", "router")
    facts = [draw(maybe(st.builds(RoleCapabilities, num_gpu=maybe(COSTS), power_watts_per_replica=maybe(WATTS)))) for _ in range(2)]
    return {
        "targets": [Target(role, draw(maybe(COUNTS))) for role in roles],
        "proposed": draw(st.sets(st.sampled_from(sorted(config.roles)))),
        "counts": WorkerCounts(
            ready.get("prefill"), ready.get("decode"), expected.get("prefill"), expected.get("decode"), draw(flags), draw(flags)
        ),
        "config": config,
        "capabilities": Capabilities(*facts),
    }


@given(worlds(power=True, known=False) | worlds(power=False, known=False))
def test_projection_is_total_and_names_only_roles_of_the_mode(world: dict[str, Any]) -> None:
    projection = project(**world)
    assert projection == project(**world)
    if projection.decision is not None:
        outside: list[Role] = [role for role in Mode.DISAGG.roles if role not in world["config"].roles]
        assert all(projection.decision.of(role) is None for role in outside)
        assert any(projection.decision.of(role) is not None for role in world["config"].roles)


def after(projection: Projection, world: dict[str, Any]) -> dict[str, int]:
    """Replicas once the decision is carried out."""
    decision = projection.decision
    assert decision is not None
    numbers = {role: decision.of(role) for role in world["config"].roles}
    return {role: world["counts"].ready(role) if number is None else number for role, number in numbers.items()}


@given(worlds(power=False, known=True))
def test_a_decision_keeps_budget_and_minimums(world: dict[str, Any]) -> None:
    projection, config, facts = project(**world), world["config"], world["capabilities"]
    if projection.decision is None:
        return
    numbers = after(projection, world)
    footprint = sum(least * facts.of(role).gpu_cost for role, least in config.active_minimums().items())
    if 0 <= config.max_gpu_budget < footprint:
        assert set(numbers.values()) == {0}
        return
    assert all(numbers[role] >= config.effective_min(role) for role in numbers)
    total = sum(number * facts.of(role).gpu_cost for role, number in numbers.items())
    if config.mode == "disagg" or config.min_gpu_budget <= config.max_gpu_budget - 9:
        assert config.max_gpu_budget < 0 or total <= config.max_gpu_budget


@given(worlds(power=False, known=True, most=st.just(-1), ready_counts=st.integers(0, 4)))
def test_a_minimum_is_restored_whatever_was_said(world: dict[str, Any]) -> None:
    config, counts = world["config"], world["counts"]
    short = {role for role in config.roles if counts.ready(role) < config.effective_min(role)}
    assume(short)
    silent: dict[str, Any] = {**world, "targets": []}
    for said in (world, silent):
        projection = project(**said)
        assert set(projection.repaired) == short
        assert all(after(projection, world)[role] >= config.effective_min(role) for role in short)


@given(worlds(power=True, known=True, **ROOMY))
def test_power_and_budget_hold_together(world: dict[str, Any]) -> None:
    config, facts = world["config"], world["capabilities"]
    draw = {role: facts.of(role).power_watts_per_replica for role in config.roles}
    cost = {role: facts.of(role).gpu_cost for role in config.roles}
    projection = project(**world)
    if projection.decision is None:
        return
    numbers = after(projection, world)
    assert sum(number * draw[role] for role, number in numbers.items()) <= config.total_gpu_power_limit
    if config.min_gpu_budget < 0:
        assert config.max_gpu_budget < 0 or sum(number * cost[role] for role, number in numbers.items()) <= config.max_gpu_budget
