"""The search for the best batch: candidates, choice, limits, and what makes it give up."""

from collections.abc import Sequence

import pytest

from controllers.planner.perfmodel.capacity import CapacityQuery, find_capacity, uncached_share
from controllers.planner.perfmodel.engine import Engine
from controllers.planner.perfmodel.options import Limits, ModelDiagnostics, WorkerKind
from controllers.planner.perfmodel.regression import RankLoad


class Linear:
    """fixed + per_token·prefill tokens + per_request·decode requests, ms; unknown above `known` decode requests."""

    def __init__(self, fixed: float = 0.0, per_token: float = 0.0, per_request: float = 0.0, known: int = 10**9) -> None:
        self.fixed, self.per_token, self.per_request, self.known = fixed, per_token, per_request, known
        self.asked: list[RankLoad] = []

    def tune(self, ranks: Sequence[RankLoad]) -> None: ...

    def estimate_ms(self, ranks: Sequence[RankLoad]) -> float | None:
        self.asked.extend(ranks)
        if ranks[0].decode_requests > self.known:
            return None
        return self.fixed + self.per_token * ranks[0].prefill_tokens + self.per_request * ranks[0].decode_requests

    def diagnostics(self) -> ModelDiagnostics:
        return ModelDiagnostics()


def _engine(kind: WorkerKind, core: Linear, tokens: int = 1000, seqs: int = 100, kv: int = 10_000, dp: int = 1) -> Engine:
    return Engine(kind, Limits(tokens, seqs, kv), core, attention_dp=dp)


def test_prefill_batches_fill_one_step() -> None:
    found = find_capacity(_engine("prefill", Linear(10, 0.1)), CapacityQuery(isl=300, osl=0, ttft_ms=500))
    assert found is not None
    assert (found.batch, found.eligible) == (3, True)
    assert found.ttft_ms == found.e2e_latency_ms == pytest.approx(100)
    assert found.rps == pytest.approx(30)
    assert found.itl_ms is None


def test_prefill_longer_than_a_step_is_cut() -> None:
    found = find_capacity(_engine("prefill", Linear(10, 0.1)), CapacityQuery(isl=2500, osl=0))
    assert found is not None
    assert (found.batch, found.ttft_ms) == (1, pytest.approx(3 * 10 + 250))


def test_eligible_batch_beats_a_faster_one() -> None:
    found = find_capacity(_engine("prefill", Linear(10, 0.1)), CapacityQuery(isl=300, osl=0, ttft_ms=70.0000001))
    assert found is not None
    assert (found.batch, found.eligible) == (2, True)


def test_without_eligible_batch_the_fastest_is_told() -> None:
    found = find_capacity(_engine("prefill", Linear(10, 0.1)), CapacityQuery(isl=300, osl=0, ttft_ms=1))
    assert found is not None
    assert (found.batch, found.eligible) == (3, False)


def test_equally_fast_batches_first_wins() -> None:
    found = find_capacity(_engine("decode", Linear(per_request=1.0), seqs=2), CapacityQuery(isl=10, osl=10))
    assert found is not None
    assert found.batch == 1


def test_cached_prompts_are_shorter_for_prefill_only() -> None:
    query = CapacityQuery(isl=400, osl=10, kv_hit_rate=0.5)
    prefill, decode = Linear(10), Linear(10)
    find_capacity(_engine("prefill", prefill), query)
    find_capacity(_engine("decode", decode, seqs=1), query)
    assert [load.prefill_tokens for load in prefill.asked] == [200, 400, 600, 800, 1000]
    assert decode.asked == [RankLoad(0, 0, 0, 1, 405)]


@pytest.mark.parametrize(("rate", "share"), [(None, 1.0), (float("nan"), 1.0), (-1.0, 1.0), (0.25, 0.75), (2.0, 0.05)])
def test_uncached_share(rate: float | None, share: float) -> None:
    assert uncached_share(rate) == pytest.approx(share)


def test_decode_is_bounded_by_sequences_and_cache() -> None:
    for seqs, kv, batch in ((8, 10_000, 8), (100, 10_000, 9), (100, 1049, None)):
        found = find_capacity(_engine("decode", Linear(10), seqs=seqs, kv=kv), CapacityQuery(isl=1000, osl=100, itl_ms=20))
        assert (found.batch if found else None) == batch


def test_accepted_tokens_shorten_the_interval() -> None:
    found = find_capacity(_engine("decode", Linear(10), seqs=1), CapacityQuery(isl=100, osl=100, itl_ms=5, accept_length=2))
    assert found is not None
    assert (found.itl_ms, found.eligible, found.rps) == (pytest.approx(5), True, pytest.approx(2))


def test_large_batches_are_sampled_with_both_ends() -> None:
    core = Linear(10)
    find_capacity(_engine("decode", core, seqs=1000, kv=10**9), CapacityQuery(isl=100, osl=100))
    tried = [load.decode_requests for load in core.asked]
    assert (len(tried), tried[0], tried[1], tried[-1]) == (128, 1, 1 + 999 // 127, 1000)


def test_unknown_time_of_one_candidate_ends_the_search() -> None:
    assert find_capacity(_engine("decode", Linear(10, known=7), seqs=8), CapacityQuery(isl=100, osl=100)) is None


def test_no_time_is_no_candidate() -> None:
    assert find_capacity(_engine("decode", Linear()), CapacityQuery(isl=100, osl=100)) is None


@pytest.mark.parametrize(
    ("kind", "isl", "osl", "is_told"),
    [
        ("prefill", 100, 0, True),
        ("decode", 100, 0, False),
        ("aggregated", 100, 0, False),
        ("prefill", 0, 100, False),
        ("prefill", float("nan"), 100, False),
        ("decode", 100, float("inf"), False),
    ],
)
def test_lengths_that_are_none(kind: WorkerKind, isl: float, osl: float, is_told: bool) -> None:
    found = find_capacity(_engine(kind, Linear(10, 0.01, 0.01)), CapacityQuery(isl=isl, osl=osl))
    assert (found is not None) is is_told


def test_aggregated_leaves_room_for_the_prefill_that_keeps_the_batch_full() -> None:
    """10 tokens of prompt per token of output: b requests need 10·b tokens of each step of 100, so at most 9 fit beside them."""
    core = Linear(10, 0.1, 0.2)
    found = find_capacity(_engine("aggregated", core, tokens=100), CapacityQuery(isl=100, osl=10))
    assert found is not None
    assert found.batch == 9
    assert found.itl_ms == pytest.approx(10 + 9 + 1.8)
    # 90 tokens of the step and 100 of one prompt more: a full step of 100 and one of 90, both beside 9 requests.
    assert found.ttft_ms == pytest.approx((10 + 10 + 1.8) + (10 + 9 + 1.8))
    assert found.rps == pytest.approx(9 / (10 * 0.0208))
    assert found.e2e_latency_ms == pytest.approx(42.6 + 20.8 * 9)


def test_aggregated_needs_more_than_one_token_per_step() -> None:
    assert find_capacity(_engine("aggregated", Linear(10), tokens=1), CapacityQuery(isl=1, osl=10)) is None


def test_aggregated_without_batch_that_fits() -> None:
    assert find_capacity(_engine("aggregated", Linear(10), tokens=10), CapacityQuery(isl=100, osl=1)) is None


def test_ranks_share_the_batch() -> None:
    core = Linear(10)
    find_capacity(_engine("decode", core, seqs=3, dp=2), CapacityQuery(isl=10, osl=2))
    assert core.asked[-2:] == [RankLoad(0, 0, 0, 2, 17), RankLoad(0, 0, 0, 1, 16)]
