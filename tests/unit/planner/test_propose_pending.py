"""Taking back replicas that never started: when it happens, what it decides, and all that keeps it from happening."""

from typing import Any

import pytest

from controllers.planner.fpm import Fpm, FpmMap
from controllers.planner.propose import LoadInputs, ProposeState, propose_load
from controllers.planner.types import Role, WorkerCounts
from tests.unit.planner.proposing import config, counts, load, prompts, reporting, sla, steps

ON = {"pending_aware_scale_down": True}
AWAITED = counts(2, 2, expected_num_prefill=5)
"""Three prefill workers were asked for and are not there."""


def numbers(inputs: LoadInputs) -> tuple[int | None, int | None] | None:
    decision = propose_load(inputs).decision
    return None if decision is None else (decision.num_prefill, decision.num_decode)


def holds(inputs: LoadInputs) -> bool:
    answer = propose_load(inputs)
    told = {value for name, value in answer.changes.items() if "reason" in name}
    return answer.decision is None and told == {"scaling_in_progress"} and not answer.taken_back


@pytest.mark.parametrize("make", [config, sla])
def test_what_never_started_goes_once_the_load_is_gone(make: Any) -> None:
    answer = propose_load(load(make(**ON), prompts(0, 0), steps(90_000, 90_000), AWAITED))
    assert answer.decision is not None
    assert (answer.decision.num_prefill, answer.decision.num_decode) == (2, 2)
    assert answer.taken_back == ("prefill",)
    assert answer.changes == {
        "load_decision_reason": "pending_taken_back",
        "load_decision_reason_prefill": "pending_taken_back",
        "load_decision_reason_decode": "scaling_in_progress",
    }


@pytest.mark.parametrize("make", [config, sla])
def test_off_it_holds_as_before(make: Any) -> None:
    assert holds(load(make(), prompts(0, 0), steps(0, 0), AWAITED))


@pytest.mark.parametrize(
    ("make", "tokens"),
    [
        pytest.param(config, (20_000, 20_000), id="easy: the load asks for more still"),
        pytest.param(config, (2_000, 0), id="easy: between the thresholds"),
        pytest.param(sla, (6_000, 6_000), id="sla: the target is missed still"),
        pytest.param(sla, (4_000, 0), id="sla: more than four fifths of the target are used"),
    ],
)
def test_load_that_is_not_gone_holds(make: Any, tokens: tuple[int, int]) -> None:
    assert holds(load(make(**ON), prompts(*tokens), steps(0, 0), AWAITED))


def test_the_ready_ones_need_only_suffice_not_be_fewer() -> None:
    """One less could not take 2 × 3 000 tokens in time; the two that are there can."""
    assert numbers(load(sla(**ON), prompts(3_000, 3_000), steps(0, 0), AWAITED)) == (2, 2)


@pytest.mark.parametrize(
    "seen",
    [
        pytest.param(
            counts(2, 2, expected_num_prefill=None, prefill_scaling_in_progress=True), id="a rollout: nobody knows what is asked for"
        ),
        pytest.param(counts(2, 2, expected_num_prefill=5, expected_num_decode=None), id="the other role's expected number is unknown"),
        pytest.param(counts(2, 2, expected_num_prefill=-1), id="expected is no number"),
        pytest.param(counts(2, 2, expected_num_prefill=1), id="fewer are expected: a scale-down runs"),
        pytest.param(counts(2, 2, prefill_scaling_in_progress=True), id="nothing is pending"),
        pytest.param(counts(3, 2, expected_num_prefill=5), id="a ready one does not report"),
        pytest.param(counts(0, 2, expected_num_prefill=5), id="none is ready"),
        pytest.param(counts(None, 2, expected_num_prefill=5), id="ready is unknown"),
    ],
)
def test_what_is_not_known_holds(seen: WorkerCounts) -> None:
    assert holds(load(config(**ON), prompts(0, 0), steps(0, 0), seen))


@pytest.mark.parametrize("fpms", [None, {}, prompts(0, float("nan")), {("", 0): Fpm(), ("p", 0): Fpm(worker_id="p")}])
def test_metrics_that_say_nothing_hold(fpms: FpmMap | None) -> None:
    assert holds(load(config(**ON), fpms, steps(0, 0), AWAITED))
    assert holds(load(sla(**ON), fpms, steps(0, 0), AWAITED))


@pytest.mark.parametrize(("decode_expected", "expected"), [(1, (2, 1)), (4, (2, 2)), (2, (2, 2))])
def test_the_other_role_is_left_with_what_is_expected_unless_it_waits_in_vain_too(decode_expected: int, expected: tuple[int, int]) -> None:
    seen = counts(2, 2, expected_num_prefill=5, expected_num_decode=decode_expected)
    assert numbers(load(config(**ON), prompts(0, 0), steps(0, 0), seen)) == expected
    if decode_expected == 4:
        assert numbers(load(config(**ON), prompts(0, 0), steps(90_000, 0), seen)) == (2, 4)


@pytest.mark.parametrize(
    ("fields", "bound", "expected"),
    [
        pytest.param({"prefill_min_endpoint": 3}, 1, (3, 2), id="minimum above what is ready"),
        pytest.param({"prefill_min_endpoint": 5}, 1, None, id="minimum is what is asked for"),
        pytest.param({"enable_throughput_scaling": True}, 4, (4, 2), id="lower bound of throughput scaling"),
        pytest.param({}, 4, (2, 2), id="lower bounds count only where throughput scaling is on"),
        pytest.param({"min_gpu_budget": 7}, 1, None, id="fewest GPUs"),
        pytest.param({"max_gpu_budget": 3}, 1, None, id="too many GPUs are in use already"),
        pytest.param({"max_gpu_budget": 4}, 1, (2, 2), id="just within the GPUs"),
    ],
)
def test_floors_and_budget(fields: dict[str, Any], bound: int, expected: tuple[int, int] | None) -> None:
    inputs = load(sla(**ON, **fields), prompts(0, 0), steps(0, 0), AWAITED, state=ProposeState(lower_bound_prefill=bound))
    assert numbers(inputs) == expected
    assert (expected is None) == holds(inputs)


@pytest.mark.parametrize("make", [config, sla])
@pytest.mark.parametrize("mode", ["prefill", "decode", "agg"])
def test_single_role(make: Any, mode: str) -> None:
    role: Role = "prefill" if mode == "prefill" else "decode"
    settings = make(mode=mode, **ON)
    seen = counts(**{role: 1}, **{f"expected_num_{role}": 3})
    answer = propose_load(reporting(settings, prompts(0) if role == "prefill" else steps(0), seen=seen))
    assert answer.decision is not None
    assert answer.decision.of(role) == 1
    assert answer.decision.of("decode" if role == "prefill" else "prefill") is None
    assert answer.changes == {"load_decision_reason": "pending_taken_back"}
    busy = reporting(settings, prompts(20_000) if role == "prefill" else steps(200_000), seen=seen)
    assert holds(busy)


def test_aggregated_engines_give_up_only_what_neither_target_needs() -> None:
    settings, seen = sla(mode="agg", **ON), counts(None, 1, expected_num_decode=3)
    assert holds(reporting(settings, steps(0, waiting_prompts=4_500), seen=seen))
    assert holds(reporting(settings, steps(45_000), seen=seen))
    assert numbers(reporting(settings, steps(10_000, waiting_prompts=1_000), seen=seen)) == (None, 1)
