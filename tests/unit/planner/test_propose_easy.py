"""Thresholds of the easy targets: where they lie, on which side the threshold itself counts, and what is done without capabilities."""

from typing import Any

import pytest

from controllers.planner.fpm import Fpm, FpmMap, Queued
from controllers.planner.propose import propose_load
from controllers.planner.types import Capabilities, RoleCapabilities
from tests.unit.planner.proposing import config, load, prompts, reporting, steps

THROUGHPUT = {"optimization_target": "throughput"}
LATENCY = {"optimization_target": "latency"}
LOAD_PREFILL = {"optimization_target": "load", "prefill_scale_up_queue_tokens": 4000, "prefill_scale_down_queue_tokens": 100}
LOAD_DECODE = {"optimization_target": "load", "decode_scale_up_kv_rate": 70, "decode_scale_down_kv_rate": 20}


def decided(mode: str, fields: dict[str, Any], fpms: FpmMap) -> tuple[int | None, str | None]:
    """Replicas of the only role and the reason."""
    inputs = reporting(config(mode=mode, **fields), fpms)
    answer = propose_load(inputs)
    role = inputs.config.roles[0]
    return None if answer.decision is None else answer.decision.of(role), answer.changes.get("load_decision_reason")


UP, DOWN, SAME = (3, "scale_up"), (1, "scale_down"), (None, "no_change")


@pytest.mark.parametrize(
    ("fields", "tokens", "expected"),
    [
        pytest.param(THROUGHPUT, (10_000, 0), UP, id="any queue as long as a context: up"),
        pytest.param(THROUGHPUT, (9_999, 9_999), SAME, id="all just below: no change"),
        pytest.param(THROUGHPUT, (999, 999), DOWN, id="all below a tenth: down"),
        pytest.param(THROUGHPUT, (1_000, 0), SAME, id="a tenth itself is not below"),
        pytest.param(LATENCY, (1_000, 0), UP, id="latency: a tenth is enough"),
        pytest.param(LATENCY, (0, 0), DOWN, id="latency: only empty queues"),
        pytest.param(LATENCY, (1, 0), SAME, id="latency: one token waits"),
        pytest.param(LOAD_PREFILL, (4_000, 0), UP, id="load: the upper threshold counts"),
        pytest.param(LOAD_PREFILL, (100, 100), DOWN, id="load: the lower threshold counts"),
        pytest.param(LOAD_PREFILL, (101, 0), SAME, id="load: between"),
    ],
)
def test_prefill(fields: dict[str, Any], tokens: tuple[int, int], expected: tuple[int | None, str]) -> None:
    assert decided("prefill", fields, prompts(*tokens)) == expected


@pytest.mark.parametrize(
    ("fields", "tokens", "expected"),
    [
        pytest.param(THROUGHPUT, (100_001, 0), UP, id="more than the cache holds: up"),
        pytest.param(THROUGHPUT, (100_000, 0), SAME, id="exactly full is not above"),
        pytest.param(THROUGHPUT, (59_999, 59_999), DOWN, id="all below six tenths: down"),
        pytest.param(THROUGHPUT, (60_000, 0), SAME, id="six tenths itself is not below"),
        pytest.param(LATENCY, (40_001, 0), UP, id="latency: above four tenths"),
        pytest.param(LATENCY, (40_000, 0), SAME, id="latency: four tenths itself is not above"),
        pytest.param(LATENCY, (9_999, 0), DOWN, id="latency: below a tenth"),
        pytest.param(LATENCY, (10_000, 0), SAME, id="latency: a tenth itself is not below"),
        pytest.param(LOAD_DECODE, (70_000, 0), UP, id="load: the upper threshold counts"),
        pytest.param(LOAD_DECODE, (20_000, 20_000), DOWN, id="load: the lower threshold counts"),
        pytest.param(LOAD_DECODE, (20_001, 0), SAME, id="load: between"),
    ],
)
@pytest.mark.parametrize("mode", ["decode", "agg"])
def test_decode(mode: str, fields: dict[str, Any], tokens: tuple[int, int], expected: tuple[int | None, str]) -> None:
    assert decided(mode, fields, steps(*tokens)) == expected


def test_waiting_decode_requests_count_and_waiting_prompts_only_where_engines_do_both() -> None:
    assert decided("decode", THROUGHPUT, steps(50_000, 50_000, waiting=50_001)) == UP
    assert decided("decode", THROUGHPUT, steps(50_000, 50_000, waiting_prompts=50_001)) == DOWN
    assert decided("agg", THROUGHPUT, steps(50_000, 50_000, waiting_prompts=50_001)) == UP


def test_every_rank_counts_for_itself() -> None:
    busy = Queued(num_prefill_requests=1, sum_prefill_tokens=10_000)
    ranks = {(f"p{i // 2}", i % 2): Fpm(worker_id=f"p{i // 2}", dp_rank=i % 2) for i in range(4)}
    ranks[("p1", 1)] = Fpm(worker_id="p1", dp_rank=1, queued_requests=busy)
    answer = propose_load(load(config(mode="prefill"), ranks, seen=load(config(mode="prefill"), prompts(0, 0)).counts))
    assert answer.decision is not None
    assert answer.decision.num_prefill == 3


def test_the_last_replica_stays() -> None:
    assert decided("decode", THROUGHPUT, steps(0)) == (None, "no_change")


def test_an_idle_role_below_its_minimum_is_raised_to_it() -> None:
    assert decided("decode", {"min_endpoint": 4}, steps(0, 0)) == (4, "scale_up")


@pytest.mark.parametrize("facts", [None, RoleCapabilities(), RoleCapabilities(context_length=0, max_kv_tokens=0)])
@pytest.mark.parametrize(("mode", "fpms"), [("prefill", prompts(9)), ("decode", steps(9)), ("agg", steps(9))])
def test_without_the_size_of_the_engines_nothing_is_decided(mode: str, fpms: FpmMap, facts: RoleCapabilities | None) -> None:
    answer = propose_load(reporting(config(mode=mode), fpms, capabilities=Capabilities(facts, facts)))
    assert answer.decision is None
    assert answer.changes == {"load_decision_reason": "insufficient_data"}


def test_queue_tokens_as_thresholds_need_no_capabilities() -> None:
    inputs = load(config(mode="prefill", **LOAD_PREFILL), prompts(4000), capabilities=Capabilities())
    assert propose_load(inputs).changes == {"load_decision_reason": "scale_up"}


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), -1, 10**400, -(10**400)])
def test_impossible_numbers_hold_the_role(bad: float) -> None:
    assert decided("prefill", THROUGHPUT, prompts(20_000, bad)) == (None, "fpm_invalid")
    assert decided("decode", THROUGHPUT, steps(0, bad)) == (None, "fpm_invalid")
    assert decided("agg", THROUGHPUT, steps(0, 0, waiting_prompts=bad)) == (None, "fpm_invalid")
