"""Service-level targets with a model of fixed times: 0.1 ms a prompt token, 0.001 ms a KV token; 500 ms and 50 ms, sensitivity 80 %."""

from dataclasses import replace
from typing import Any

import pytest

from controllers.planner.fpm import Fpm, FpmMap, Queued, Scheduled
from controllers.planner.perfmodel import AicIdentity, ModelOptions, PerformanceModel
from controllers.planner.propose import LoadInputs, Models, ProposeState, propose_load
from controllers.planner.types import Capabilities
from tests.unit.planner.proposing import FACTS, LinearCore, load, model, prompts, reporting, sla, steps


def decided(inputs: LoadInputs) -> tuple[int | None, str | None]:
    answer = propose_load(inputs)
    replicas = None if answer.decision is None else answer.decision.of(inputs.config.roles[0])
    return replicas, answer.changes.get("load_decision_reason")


SAME, REFUSED = (None, "no_change"), (None, "scale_down_refused_consolidation")
PREFILL = {"mode": "prefill"}
DECODE = {"mode": "decode"}
AGG = {"mode": "agg"}


@pytest.mark.parametrize(
    ("mode", "fpms", "expected"),
    [
        pytest.param("prefill", prompts(5_001, 5_001), (3, "scale_up"), id="all miss the target: up"),
        pytest.param("prefill", prompts(5_001, 5_000), REFUSED, id="one keeps it: no change, and none may go"),
        pytest.param("prefill", prompts(1_999, 1_999), (1, "scale_down"), id="twice the queue is within four fifths: down"),
        pytest.param("prefill", prompts(2_000, 0), REFUSED, id="twice the queue takes four fifths: refused"),
        pytest.param("prefill", prompts(3_000), SAME, id="the last one is not asked to go"),
        pytest.param("decode", steps(50_001, 50_001), (3, "scale_up"), id="decode: all miss the target"),
        pytest.param("decode", steps(50_000, 50_001), REFUSED, id="decode: one keeps it"),
        pytest.param("decode", steps(19_999, 19_999), (1, "scale_down"), id="decode: twice the load is within four fifths"),
        pytest.param("decode", steps(20_000, 0), REFUSED, id="decode: twice the load takes four fifths"),
        pytest.param("decode", steps(9_999, 9_999, waiting=10_000), (1, "scale_down"), id="decode: what waits counts, just below"),
        pytest.param("decode", steps(9_999, 9_999, waiting=10_001), REFUSED, id="decode: what waits counts, just above"),
        pytest.param("decode", steps(30_000), SAME, id="decode: the last one is not asked to go"),
    ],
)
def test_one_role(mode: str, fpms: FpmMap, expected: tuple[int | None, str]) -> None:
    assert decided(reporting(sla(mode=mode), fpms)) == expected


def test_the_longest_estimate_is_told_even_when_nothing_is_decided() -> None:
    assert propose_load(reporting(sla(**PREFILL), prompts(3_000, 100))).changes.get("estimated_ttft_ms") == pytest.approx(300.0)
    assert propose_load(reporting(sla(**DECODE), steps(3_000, 100))).changes.get("estimated_itl_ms") == pytest.approx(3.0)
    both = propose_load(load(sla(), prompts(1_000), steps(5_000))).changes
    assert (both.get("estimated_ttft_ms"), both.get("estimated_itl_ms")) == (pytest.approx(100.0), pytest.approx(5.0))
    agg = propose_load(reporting(sla(**AGG), steps(5_000, 0, waiting_prompts=1_000))).changes
    assert (agg.get("estimated_ttft_ms"), agg.get("estimated_itl_ms")) == (pytest.approx(105.0), pytest.approx(5.0))


def learned(kind: Any, scheduled: Scheduled) -> PerformanceModel:
    """A model that knows how long requests are on average."""
    made = model(kind)
    made.observe({("seen", 0): Fpm(worker_id="seen", wall_time=0.1, scheduled_requests=scheduled)})
    return made


def test_the_next_request_counts_and_hits_in_the_cache_shorten_queue_and_request_alike() -> None:
    known = Models(prefill=learned("prefill", Scheduled(num_prefill_requests=1, sum_prefill_tokens=2_000)))
    inputs = reporting(sla(**PREFILL), prompts(3_100), models=known)
    assert decided(inputs) == (2, "scale_up")
    halved = replace(inputs, state=ProposeState(kv_hit_rate=0.5))
    assert propose_load(halved).changes.get("estimated_ttft_ms") == pytest.approx(255.0)
    assert propose_load(replace(halved, kv_hit_rate=0.25)).changes.get("estimated_ttft_ms") == pytest.approx(382.5)
    assert decided(halved) == SAME


def test_a_request_that_misses_the_target_by_itself_forbids_to_scale_down() -> None:
    known = Models(prefill=learned("prefill", Scheduled(num_prefill_requests=1, sum_prefill_tokens=5_000)))
    assert decided(reporting(sla(**PREFILL), prompts(0, 0), models=known)) == REFUSED


def test_accepted_drafts_share_the_time_of_a_step() -> None:
    inputs = reporting(sla(**DECODE, itl_ms=5), steps(9_000))
    assert decided(inputs) == (2, "scale_up")
    assert decided(replace(inputs, state=ProposeState(accept_length=2.0))) == SAME
    assert decided(replace(inputs, state=ProposeState(accept_length=2.0), accept_length=1.5)) == (2, "scale_up")
    for bad in (0.0, -1.0, float("nan"), float("inf")):
        assert propose_load(replace(inputs, accept_length=bad)).changes.get("estimated_itl_ms") == pytest.approx(9.0)


@pytest.mark.parametrize(("kv", "expected"), [(66_667, (2, "scale_down")), (66_668, REFUSED)])
def test_load_that_is_to_fit_the_cache_is_truncated(kv: int, expected: tuple[int | None, str]) -> None:
    """66 667 × 1.5 is 100 000.5, just what a cache of 100 001 holds; planner.md §27 10."""
    facts = replace(FACTS, max_kv_tokens=100_001)
    inputs = reporting(sla(**DECODE, itl_ms=1_000), steps(kv, 0, 0), capabilities=Capabilities(None, facts))
    assert decided(inputs) == expected


def test_unknown_cache_size_forbids_nothing() -> None:
    inputs = reporting(sla(**DECODE, itl_ms=1_000), steps(90_000, 0), capabilities=Capabilities(None, replace(FACTS, max_kv_tokens=None)))
    assert decided(inputs) == (1, "scale_down")


def test_sensitivity_says_how_much_of_the_target_may_be_used() -> None:
    assert decided(reporting(sla(**DECODE, load_scaling_down_sensitivity=50), steps(12_500, 0))) == REFUSED
    assert decided(reporting(sla(**DECODE, load_scaling_down_sensitivity=0), steps(0, 0))) == REFUSED


@pytest.mark.parametrize("limit", [None, 0, -5])
def test_prefill_needs_the_tokens_of_a_step(limit: int | None) -> None:
    facts = replace(FACTS, max_num_batched_tokens=limit)
    inputs = reporting(sla(**PREFILL), prompts(9_000), capabilities=Capabilities(facts, None))
    assert decided(inputs) == (None, "insufficient_data")
    agg = reporting(sla(**AGG), steps(0, 0), capabilities=Capabilities(None, facts))
    assert decided(agg) == (1, "scale_down")
    assert "estimated_ttft_ms" not in propose_load(agg).changes


def test_ranks_of_attention_data_parallelism_are_asked_about_together() -> None:
    both = PerformanceModel("prefill", ModelOptions(), AicIdentity("m", "s", "vllm", dp=2), lambda *_: LinearCore())
    both.update_capabilities(FACTS)

    def rank(of: int, tokens: int) -> Fpm:
        return Fpm(worker_id="p", dp_rank=of, queued_requests=Queued(num_prefill_requests=1, sum_prefill_tokens=tokens))

    fpms = {("p", 0): rank(0, 100), ("p", 1): rank(1, 5_100)}
    seen = load(sla(**PREFILL), prompts(0)).counts
    assert decided(load(sla(**PREFILL), fpms, None, seen, models=Models(prefill=both))) == (2, "scale_up")
    assert decided(load(sla(**PREFILL), fpms, None, seen)) == SAME


# Aggregated engines: planner.md §12.4.


@pytest.mark.parametrize(
    ("fpms", "expected"),
    [
        pytest.param(steps(0, 0, waiting_prompts=5_001), (3, "scale_up"), id="first tokens come late"),
        pytest.param(steps(50_001, 50_001), (3, "scale_up"), id="tokens come slowly"),
        pytest.param(steps(10_000, 10_000, waiting_prompts=1_000), (1, "scale_down"), id="both have room"),
        pytest.param(steps(0, 0, waiting_prompts=2_000), REFUSED, id="prefill would take too long"),
        pytest.param(steps(20_000, 0), REFUSED, id="decode would take too long"),
        pytest.param(steps(15_500, 0, waiting_prompts=1_700), (1, "scale_down"), id="prompts count as cache, and there is room"),
        pytest.param(steps(18_500, 0, waiting_prompts=1_600), REFUSED, id="prompts count as cache, and there is none"),
        pytest.param(steps(30_000), SAME, id="the last one is not asked to go"),
    ],
)
def test_aggregated(fpms: FpmMap, expected: tuple[int | None, str]) -> None:
    assert decided(reporting(sla(**AGG), fpms)) == expected


def test_prompts_that_wait_may_overflow_the_cache_of_fewer_engines() -> None:
    inputs = reporting(sla(**AGG, itl_ms=1_000, ttft_ms=50_000), steps(49_000, 0, waiting_prompts=1_000))
    assert decided(inputs) == REFUSED
    assert decided(reporting(sla(**AGG, itl_ms=1_000, ttft_ms=50_000), steps(49_000, 0, waiting_prompts=999))) == (1, "scale_down")


def test_where_nothing_can_be_told_of_mixed_work_decode_is_not_held_by_prefill() -> None:
    narrow = Models(decode=model("aggregated", LinearCore(knows_mixed=False)))
    assert decided(reporting(sla(**AGG), steps(100, 100, waiting_prompts=10), models=narrow)) == (1, "scale_down")
    assert decided(reporting(sla(**AGG), steps(100, 100, waiting_prompts=10))) == (1, "scale_down")


def test_minimum_and_budget_of_aggregated_engines() -> None:
    assert decided(reporting(sla(**AGG, min_endpoint=3), steps(0, 0))) == (3, "scale_up")
    assert decided(reporting(sla(**AGG, min_endpoint=2), steps(0, 0))) == SAME
    assert decided(reporting(sla(**AGG, max_gpu_budget=2), steps(60_000, 60_000))) == SAME
