"""The model of a role: limits, averages, live metrics, rebuilding, and questions about the next request."""

from math import inf, nan
from typing import Any

import pytest

from controllers.planner.fpm import Fpm, FpmMap, Queued, Scheduled
from controllers.planner.perfmodel import AicIdentity, ModelOptions, PerformanceModel
from controllers.planner.perfmodel.model import limits_of
from controllers.planner.perfmodel.options import Limits
from controllers.planner.types import RoleCapabilities

CAPABILITIES = RoleCapabilities(max_num_batched_tokens=1000, max_num_seqs=8, max_kv_tokens=100_000)
TWO_RANKS = AicIdentity("model", "system", "vllm", dp=2)


def _prefill(
    tokens: Any, wall: float | None = None, *, worker: str = "w", rank: int = 0, queued: tuple[int, int] = (0, 0), version: int = 1
) -> Fpm:
    return Fpm(
        version=version,
        worker_id=worker,
        dp_rank=rank,
        wall_time=(10 + 0.05 * tokens) / 1000 if wall is None else wall,
        scheduled_requests=Scheduled(num_prefill_requests=1, sum_prefill_tokens=tokens),
        queued_requests=Queued(num_prefill_requests=queued[0], sum_prefill_tokens=queued[1]),
    )


def _decode(requests: int, kv: int, *, rank: int = 0, queued: tuple[int, int] = (0, 0), queued_prefill: tuple[int, int] = (0, 0)) -> Fpm:
    return Fpm(
        dp_rank=rank,
        wall_time=(5 + 0.1 * requests + 0.001 * kv) / 1000,
        scheduled_requests=Scheduled(num_decode_requests=requests, sum_decode_kv_tokens=kv),
        queued_requests=Queued(
            num_decode_requests=queued[0],
            sum_decode_kv_tokens=queued[1],
            num_prefill_requests=queued_prefill[0],
            sum_prefill_tokens=queued_prefill[1],
        ),
    )


def _map(*fpms: Fpm) -> FpmMap:
    return {(fpm.worker_id, fpm.dp_rank): fpm for fpm in fpms}


def _prefill_model() -> PerformanceModel:
    model = PerformanceModel("prefill", ModelOptions(), None)
    model.update_capabilities(CAPABILITIES)
    model.bootstrap([_prefill(tokens) for tokens in (100, 200, 400, 700, 900)])
    return model


def _decode_model() -> PerformanceModel:
    model = PerformanceModel("decode", ModelOptions(), None)
    model.update_capabilities(CAPABILITIES)
    model.bootstrap([_decode(*load) for load in ((1, 100), (2, 900), (4, 300), (6, 700), (8, 500))])
    return model


@pytest.mark.parametrize(
    ("capabilities", "limits"),
    [
        (None, None),
        (RoleCapabilities(), Limits(8192, 512, 2_000_000)),
        (RoleCapabilities(max_num_seqs=7), Limits(8192, 7, 2_000_000)),
        (RoleCapabilities(max_num_batched_tokens=0), None),
        (RoleCapabilities(max_kv_tokens=-1), None),
        (RoleCapabilities(max_kv_tokens=2**32), None),
    ],
    ids=["nothing known", "defaults", "one known", "zero", "negative", "above 32 bits"],
)
def test_limits(capabilities: RoleCapabilities | None, limits: Limits | None) -> None:
    assert limits_of(capabilities) == limits


def test_without_limits_nothing_is_told() -> None:
    model = PerformanceModel("prefill", ModelOptions(), None)
    assert model.observe(_map(_prefill(100))) == []
    (group,) = model.groups(_map(_prefill(100)))
    assert not model.ready
    assert model.queued_prefill_time_s(group, kv_hit_rate=None) is None
    assert model.decode_itl_s(group) is None
    assert model.capacity(isl=10, osl=10) is None
    assert model.avg_isl == 100


def test_what_was_seen_before_the_limits_counts() -> None:
    model = PerformanceModel("prefill", ModelOptions(), None)
    model.bootstrap([_prefill(tokens) for tokens in (100, 200, 400, 700, 900)])
    model.update_capabilities(CAPABILITIES)
    assert model.ready
    assert model.diagnostics().retained_observations == 5


def test_lost_limits_and_back() -> None:
    model = _prefill_model()
    model.update_capabilities(None)
    assert not model.ready
    model.update_capabilities(CAPABILITIES)
    assert model.ready


def test_same_limits_keep_the_model_and_new_ones_replay_the_last_iterations() -> None:
    model = PerformanceModel("prefill", ModelOptions(max_observations=6), None)
    model.update_capabilities(CAPABILITIES)
    model.bootstrap([_prefill(tokens) for tokens in range(100, 1000, 100)])
    before = model.diagnostics()
    model.update_capabilities(RoleCapabilities(max_num_batched_tokens=1000, max_num_seqs=8, max_kv_tokens=100_000, num_gpu=4))
    assert model.diagnostics() == before
    model.update_capabilities(RoleCapabilities(max_num_batched_tokens=500))
    assert model.diagnostics().retained_observations == 6
    (group,) = model.groups(_map(_prefill(100, queued=(1, 350))))
    # Average 650 of the last six, with 350 queued: two chunks of 500.
    assert model.queued_prefill_time_s(group, kv_hit_rate=None) == pytest.approx(2 * 0.035)


def test_bad_options_are_told_not_raised() -> None:
    model = PerformanceModel("prefill", ModelOptions(bucket_count=15), None)
    (warning,) = model.update_capabilities(CAPABILITIES)
    assert "bucket_count must be a perfect square" in warning
    assert model.diagnostics().last_warning == warning
    assert not model.ready


def test_averages_take_zeros_once_they_started() -> None:
    model = PerformanceModel("prefill", ModelOptions(), None)
    model.bootstrap([_decode(2, 100), _prefill(300), Fpm(), Fpm()])
    assert model.avg_isl == 100
    assert model.avg_decode_length == 50


def test_next_request_is_in_the_question() -> None:
    model = _prefill_model()
    (group,) = model.groups(_map(_prefill(100, queued=(3, 240))))
    assert model.avg_isl == 460
    ask = model.queued_prefill_time_s
    assert ask(group, kv_hit_rate=None) == pytest.approx((10 + 0.05 * 700) / 1000)
    assert ask(group, kv_hit_rate=None, queue_scale=0) == pytest.approx((10 + 0.05 * 460) / 1000)
    assert ask(group, kv_hit_rate=0.5) == pytest.approx((10 + 0.05 * 350) / 1000)
    # Never less than a twentieth: 35, which in floating point is a little more and is rounded up.
    assert ask(group, kv_hit_rate=1.0) == pytest.approx((10 + 0.05 * 36) / 1000)
    assert ask(group, kv_hit_rate=nan) == ask(group, kv_hit_rate=None) == ask(group, kv_hit_rate=-3)


def test_next_decode_request_is_in_the_question() -> None:
    model = _decode_model()
    length = model.avg_decode_length
    (group,) = model.groups(_map(_decode(4, 400, queued=(1, 100), queued_prefill=(2, 50))))

    def told(requests: float, kv: float) -> Any:
        return pytest.approx((5 + 0.1 * (requests + 1) + 0.001 * -(-(kv + length) // 1)) / 1000)

    assert model.decode_itl_s(group) == told(4, 400)
    assert model.decode_itl_s(group, include_queued_decode=True) == told(5, 500)
    assert model.decode_itl_s(group, include_queued_decode=True, include_queued_prefill=True) == told(7, 550)
    assert model.decode_itl_s(group, decode_scale=1.5) == told(6, 600)


def test_aggregated_is_ready_by_decode_alone_yet_cannot_tell_mixed() -> None:
    model = PerformanceModel("aggregated", ModelOptions(), None)
    model.update_capabilities(CAPABILITIES)
    model.bootstrap([_decode(*load) for load in ((1, 100), (2, 900), (4, 300), (6, 700), (8, 500))])
    (group,) = model.groups(_map(_decode(4, 400, queued_prefill=(1, 100))))
    assert model.ready
    assert model.decode_itl_s(group) is not None
    assert model.queued_prefill_time_s(group, kv_hit_rate=None) is None


def test_groups_are_in_order_and_leave_out_what_cannot_be_used() -> None:
    fpms = [_prefill(1, worker="b"), _prefill(2, worker="a", rank=1), _prefill(3, worker="a"), _prefill(4, worker="c", version=2)]
    one = PerformanceModel("prefill", ModelOptions(), None)
    assert [(group.worker_id, [fpm.dp_rank for fpm in group.ranks]) for group in one.groups(_map(*fpms))] == [
        ("a", [0]),
        ("a", [1]),
        ("b", [0]),
    ]
    two = PerformanceModel("prefill", ModelOptions(), TWO_RANKS)
    assert [(group.worker_id, [fpm.dp_rank for fpm in group.ranks]) for group in two.groups(_map(*fpms))] == [("a", [0, 1]), ("b", [0])]


def test_ranks_of_a_worker_are_one_iteration() -> None:
    model = PerformanceModel("prefill", ModelOptions(), TWO_RANKS)
    model.update_capabilities(CAPABILITIES)
    assert model.bootstrap([_prefill(100)] * 9) == []
    assert model.diagnostics().retained_observations == 0
    assert model.observe(_map(_prefill(100), _prefill(200, rank=1))) == []
    assert model.diagnostics().retained_observations == 1
    (warning,) = model.observe(_map(_prefill(100)))
    assert "expected 2" in warning


@pytest.mark.parametrize("ranks", [(0,), (0, 2)], ids=["one missing", "out of range"])
def test_nothing_is_told_of_a_worker_without_all_its_ranks(ranks: tuple[int, ...]) -> None:
    model = PerformanceModel("prefill", ModelOptions(), TWO_RANKS)
    model.update_capabilities(CAPABILITIES)
    for tokens in (100, 200, 400, 700, 900):
        model.observe(_map(_prefill(tokens), _prefill(tokens, rank=1)))
    (whole,) = model.groups(_map(_prefill(100), _prefill(100, rank=1)))
    assert model.queued_prefill_time_s(whole, kv_hit_rate=None) is not None
    (part,) = model.groups(_map(*(_prefill(100, rank=rank) for rank in ranks)))
    assert model.queued_prefill_time_s(part, kv_hit_rate=None) is None
    assert "attention-DP rank" in (model.diagnostics().last_warning or "")


def test_no_capacity_where_a_batch_leaves_ranks_without_requests() -> None:
    """A batch of one on two ranks: half of its KV cache stands beside no request, which the regression refuses."""
    model = PerformanceModel("decode", ModelOptions(), TWO_RANKS)
    model.update_capabilities(CAPABILITIES)
    for load in ((1, 100), (2, 900), (4, 300), (6, 700), (8, 500)):
        model.observe({("w", rank): _decode(*load, rank=rank) for rank in (0, 1)})
    assert model.ready
    assert model.capacity(isl=100, osl=10) is None
    assert "num_decode_requests" in (model.diagnostics().last_warning or "")


def test_unsupported_until_samples_are_enough() -> None:
    model = PerformanceModel("prefill", ModelOptions(), AicIdentity("model", "system", "vllm"))
    model.update_capabilities(CAPABILITIES)
    assert model.diagnostics().readiness == "unsupported_config"
    model.bootstrap([_prefill(tokens) for tokens in (100, 200, 400, 700, 900)])
    assert model.diagnostics().readiness == "ready"


def test_rejected_iteration_ends_the_call_and_keeps_what_came_before() -> None:
    model = PerformanceModel("prefill", ModelOptions(), None)
    model.update_capabilities(CAPABILITIES)
    orphan = Fpm(worker_id="b", wall_time=0.1, scheduled_requests=Scheduled(sum_prefill_tokens=5))
    (warning,) = model.observe(_map(_prefill(1, worker="a"), orphan, _prefill(1, worker="c")))
    assert "'b'" in warning
    assert "num_prefill_requests" in warning
    assert model.diagnostics().retained_observations == 1
    assert model.diagnostics().last_warning == warning


@pytest.mark.parametrize("tokens", [-1, nan, inf, 2**32], ids=str)
def test_counts_that_no_engine_has_are_left_out(tokens: Any) -> None:
    model = _prefill_model()
    before, average = model.diagnostics().retained_observations, model.avg_isl
    (warning,) = model.observe(_map(_prefill(tokens, 0.1)))
    assert "left out" in warning
    assert model.groups(_map(_prefill(tokens, 0.1))) == []
    assert (model.diagnostics().retained_observations, model.avg_isl) == (before, average)


def test_other_version_is_left_out() -> None:
    model = _prefill_model()
    (warning,) = model.observe(_map(_prefill(100, version=2)))
    assert "version 2" in warning
    assert model.diagnostics().retained_observations == 5


@pytest.mark.parametrize("wall", [0.0, -1.0, nan, inf], ids=str)
def test_times_that_are_none_teach_nothing(wall: float) -> None:
    model = _prefill_model()
    assert model.observe(_map(_prefill(100, wall))) == []
    assert model.diagnostics().retained_observations == 5


def test_question_that_contradicts_itself_has_no_answer() -> None:
    model = PerformanceModel("decode", ModelOptions(), None)
    model.update_capabilities(CAPABILITIES)
    (group,) = model.groups(_map(Fpm(worker_id="w", scheduled_requests=Scheduled(sum_decode_kv_tokens=5))))
    assert model.decode_itl_s(group) is None
    assert "num_decode_requests" in (model.diagnostics().last_warning or "")
