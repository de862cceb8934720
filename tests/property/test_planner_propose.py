"""Scaling decisions for any load: floors and budgets hold, the same inputs give the same answer, more load never gives fewer replicas."""

from dataclasses import replace
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from controllers.planner.config.model import PlannerConfig
from controllers.planner.fpm import Fpm, FpmMap, Queued, Scheduled
from controllers.planner.propose import DecisionReason, Forecast, LoadInputs, ProposeState, propose_load, propose_throughput
from controllers.planner.types import Capabilities, FpmObservations, Mode, Role, WorkerCounts
from tests.unit.planner.proposing import FACTS, config, counts, load, models, traffic

MODES = st.sampled_from(list(Mode))
TARGETS = st.sampled_from(["throughput", "latency", "load", "sla"])
TOKENS = st.integers(0, 12_000) | st.integers(0, 150_000)
LEAST = st.integers(1, 4)
# Enough for the minimums of both roles at any cost.
CEILINGS = st.just(-1) | st.integers(24, 80)
THRESHOLDS = {
    "prefill_scale_up_queue_tokens": 5_000,
    "prefill_scale_down_queue_tokens": 500,
    "decode_scale_up_kv_rate": 80,
    "decode_scale_down_kv_rate": 30,
}
ANYTHING: st.SearchStrategy[Any] = st.none() | st.integers() | st.floats() | st.integers(-(10**400), 10**400)


@st.composite
def settings(draw: st.DrawFn, mode: Mode | None = None, **fields: Any) -> PlannerConfig:
    target, chosen = draw(TARGETS), draw(MODES) if mode is None else mode
    least: dict[str, int] = {"min_endpoint": draw(LEAST)}
    if chosen is Mode.DISAGG:
        least |= {"prefill_min_endpoint": draw(LEAST), "decode_min_endpoint": draw(LEAST)}
    is_sla = target == "sla"
    both = is_sla and draw(st.booleans())
    return config(
        **{
            "mode": chosen,
            "optimization_target": target,
            "max_gpu_budget": draw(CEILINGS),
            "enable_load_scaling": True,
            "enable_throughput_scaling": both,
            "load_scaling_down_sensitivity": draw(st.integers(0, 100)),
            "pending_aware_scale_down": draw(st.booleans()),
            **least,
            **THRESHOLDS,
            **fields,
        }
    )


def fpms_of(prefix: str, tokens: list[tuple[Any, Any, Any]]) -> FpmMap:
    """A worker for each of (KV tokens in use, KV tokens that wait, prompt tokens that wait)."""
    found: dict[tuple[str, int], Fpm] = {}
    for i, (kv, kv_waiting, prompt_tokens) in enumerate(tokens):
        found[(f"{prefix}{i}", 0)] = Fpm(
            worker_id=f"{prefix}{i}",
            scheduled_requests=Scheduled(num_decode_requests=1, sum_decode_kv_tokens=kv),
            queued_requests=Queued(
                num_decode_requests=1, sum_decode_kv_tokens=kv_waiting, num_prefill_requests=1, sum_prefill_tokens=prompt_tokens
            ),
        )
    return found


LOADS = st.lists(st.tuples(TOKENS, TOKENS, TOKENS), min_size=1, max_size=5)


@st.composite
def situations(draw: st.DrawFn, mode: Mode | None = None, **fields: Any) -> LoadInputs:
    """Whatever is ready reports; sometimes more or fewer are expected than are ready."""
    chosen = draw(settings(mode, **fields))
    found = {role: fpms_of(role[0], draw(LOADS)) for role in chosen.roles}
    moving = {f"expected_num_{role}": draw(st.integers(0, 8)) for role in chosen.roles if draw(st.integers(0, 4)) == 0}
    seen = counts(**{role: len(fpms) for role, fpms in found.items()}, **moving)
    costly = Capabilities(*(replace(FACTS, gpu_cost_per_replica=draw(st.integers(1, 3))) for _ in range(2)))
    state = ProposeState(draw(st.integers(1, 6)), draw(st.integers(1, 6)), draw(st.none() | st.floats(0, 1)), draw(st.floats(1, 4)))
    return load(chosen, found.get("prefill"), found.get("decode"), seen, capabilities=costly, state=state)


def gpus(inputs: LoadInputs, numbers: dict[Role, int]) -> int:
    return sum(number * (facts.gpu_cost or 0) for role, number in numbers.items() if (facts := inputs.capabilities.of(role)) is not None)


def decided(inputs: LoadInputs) -> dict[Role, int]:
    """Replicas after the decision, as they are without one."""
    decision = propose_load(inputs).decision
    numbers: dict[Role, int | None] = {role: None if decision is None else decision.of(role) for role in inputs.config.roles}
    return {role: inputs.counts.ready(role) or 0 if number is None else number for role, number in numbers.items()}


@given(situations())
def test_floors_and_budget(inputs: LoadInputs) -> None:
    answer = propose_load(inputs)
    if answer.decision is None:
        return
    numbers: dict[Role, int | None] = {role: answer.decision.of(role) for role in inputs.config.roles}
    known: dict[Role, int] = {role: number for role, number in numbers.items() if number is not None}
    assert known.keys() == numbers.keys()
    for role, number in known.items():
        # What is asked for already, below the minimum, is not for taking back to repair.
        assert number >= inputs.config.effective_min(role)
    assert inputs.config.max_gpu_budget < 0 or gpus(inputs, known) <= inputs.config.max_gpu_budget


@given(situations())
def test_the_same_inputs_give_the_same_answer_in_any_order(inputs: LoadInputs) -> None:
    def backwards(fpms: FpmMap | None) -> FpmMap | None:
        return None if fpms is None else dict(reversed(list(fpms.items())))

    turned = replace(inputs, fpm=FpmObservations(backwards(inputs.fpm.prefill), backwards(inputs.fpm.decode)))
    assert propose_load(inputs) == propose_load(inputs) == propose_load(turned)
    assert propose_load(inputs).state == inputs.state


@given(situations(max_gpu_budget=-1, min_endpoint=1, prefill_min_endpoint=None, decode_min_endpoint=None), st.data())
def test_more_load_never_gives_fewer_replicas(inputs: LoadInputs, data: st.DataObject) -> None:
    # A lower bound above what is ready raises every decision, also one for less, but holding is none: there the rule does not apply.
    unbound = replace(inputs.state, lower_bound_prefill=1, lower_bound_decode=1)
    inputs = replace(inputs, counts=counts(**{role: len(inputs.fpm_of(role)) for role in inputs.config.roles}), state=unbound)
    busier: dict[str, FpmMap] = {}
    for role in inputs.config.roles:
        loads = [
            (
                fpm.scheduled_requests.sum_decode_kv_tokens + data.draw(TOKENS),
                fpm.queued_requests.sum_decode_kv_tokens + data.draw(TOKENS),
                fpm.queued_requests.sum_prefill_tokens + data.draw(TOKENS),
            )
            for fpm in inputs.fpm_of(role).values()
        ]
        busier[role] = fpms_of(role[0], loads)
    before, after = decided(inputs), decided(replace(inputs, fpm=FpmObservations(**busier)))
    assert all(after[role] >= before[role] for role in inputs.config.roles)


@given(situations())
def test_taking_back_touches_nothing_that_is_ready_and_asks_for_nothing_new(inputs: LoadInputs) -> None:
    answer = propose_load(inputs)
    off = propose_load(replace(inputs, config=inputs.config.with_changes(pending_aware_scale_down=False)))
    if not answer.taken_back:
        assert answer == off
        return
    assert off.decision is None
    assert off.changes.get("load_decision_reason") == DecisionReason.SCALING_IN_PROGRESS
    assert answer.decision is not None
    for role in inputs.config.roles:
        number, ready, expected = answer.decision.of(role), inputs.counts.ready(role), inputs.counts.expected(role)
        assert number is not None
        assert ready is not None
        assert expected is not None
        assert (ready <= number < expected) if role in answer.taken_back else number == expected


@given(st.data(), MODES, TARGETS, st.booleans())
def test_whatever_comes_in_nothing_breaks(data: st.DataObject, mode: Mode, target: str, pending: bool) -> None:
    chosen = config(mode=mode, optimization_target=target, enable_load_scaling=True, pending_aware_scale_down=pending, **THRESHOLDS)
    fields = [f"{name}_num_{role}" for name in ("ready", "expected") for role in ("prefill", "decode")]
    seen = replace(WorkerCounts(), **{name: data.draw(ANYTHING | st.integers(0, 3)) for name in fields})
    wild = st.lists(st.tuples(*[ANYTHING.filter(lambda value: value is not None)] * 3), max_size=3)
    fpm = FpmObservations(fpms_of("p", data.draw(wild)), fpms_of("d", data.draw(wild)))
    answer = propose_load(LoadInputs(chosen, Capabilities(FACTS, FACTS), seen, fpm, models(chosen)))
    assert set(answer.changes.values()) <= {*DecisionReason} | {value for value in answer.changes.values() if isinstance(value, float)}


NUMBERS = st.floats(0, 1e6)


@given(settings(), st.integers(0, 30), st.integers(0, 30), NUMBERS, st.floats(0, 6_000), st.floats(0, 2_000), st.none() | st.integers(1, 9))
def test_throughput_keeps_floors_budget_and_step(
    chosen: PlannerConfig, ready_p: int, ready_d: int, num_req: float, isl: float, osl: float, most: int | None
) -> None:
    chosen = chosen.with_changes(
        optimization_target="sla", enable_load_scaling=False, enable_throughput_scaling=True, max_throughput_scaling_replicas=most
    )
    inputs = traffic(chosen, Forecast(num_req, isl, osl), counts(ready_p, ready_d))
    answer = propose_throughput(inputs)
    assert answer == propose_throughput(inputs)
    if answer.decision is None:
        assert answer.changes.get("throughput_decision_reason") == DecisionReason.MODEL_NOT_READY
        return
    numbers: dict[Role, int] = {role: number for role in chosen.roles if (number := answer.decision.of(role)) is not None}
    assert numbers.keys() == set(chosen.roles)
    assert chosen.max_gpu_budget < 0 or sum(numbers.values()) <= chosen.max_gpu_budget
    for role, number in numbers.items():
        assert number >= chosen.effective_min(role)
        if most is not None and chosen.max_gpu_budget < 0:
            assert abs(number - (inputs.counts.ready(role) or 0)) <= most or number == chosen.effective_min(role)


@given(settings(max_gpu_budget=-1), st.integers(0, 30), NUMBERS, NUMBERS, st.floats(1, 6_000), st.floats(1, 2_000))
def test_more_traffic_never_needs_fewer_replicas(
    chosen: PlannerConfig, ready: int, num_req: float, more: float, isl: float, osl: float
) -> None:
    chosen = chosen.with_changes(optimization_target="sla", enable_load_scaling=True, enable_throughput_scaling=True)
    inputs = traffic(chosen, Forecast(num_req, isl, osl), counts(ready, ready))
    before = propose_throughput(inputs).state
    after = propose_throughput(replace(inputs, forecast=Forecast(num_req + more, isl, osl))).state
    assert after.lower_bound_prefill >= before.lower_bound_prefill
    assert after.lower_bound_decode >= before.lower_bound_decode


@given(MODES, st.booleans(), ANYTHING, ANYTHING, ANYTHING, ANYTHING, ANYTHING, ANYTHING, ANYTHING)
def test_whatever_is_forecast_nothing_breaks(
    mode: Mode, is_mixed: bool, num_req: Any, isl: Any, osl: Any, rate: Any, length: Any, duration_s: Any, ready: Any
) -> None:
    chosen = config(mode=mode, optimization_target="sla", enable_load_scaling=is_mixed, max_throughput_scaling_replicas=8)
    inputs = traffic(
        chosen, Forecast(num_req, isl, osl, rate, length), counts(ready, ready), duration_s=60.0 if duration_s is None else duration_s
    )
    answer = propose_throughput(inputs)
    assert answer.decision is None or not is_mixed
