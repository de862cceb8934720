"""Queues in chunks, ranks of attention data parallelism, the typical prefill of aggregated workers."""

from collections.abc import Sequence

import pytest

from controllers.planner.fpm import Fpm, Scheduled
from controllers.planner.perfmodel.engine import Engine, MovingAverage, RankQuery, validate_iteration
from controllers.planner.perfmodel.options import Limits, ModelDiagnostics, WorkerKind
from controllers.planner.perfmodel.regression import RankLoad


class Told:
    """Remembers what it is asked; each iteration takes as many ms as its largest rank has tokens and requests."""

    def __init__(self) -> None:
        self.asked: list[tuple[RankLoad, ...]] = []
        self.answer: float | None = None

    def tune(self, ranks: Sequence[RankLoad]) -> None:
        if any(rank.prefill_tokens and not rank.prefill_requests for rank in ranks):
            raise ValueError("rejected")

    def estimate_ms(self, ranks: Sequence[RankLoad]) -> float | None:
        self.asked.append(tuple(ranks))
        if self.answer is not None:
            return self.answer
        return float(max(rank.prefill_tokens + rank.decode_requests for rank in ranks))

    def diagnostics(self) -> ModelDiagnostics:
        return ModelDiagnostics()


def _engine(kind: WorkerKind, dp: int = 1) -> tuple[Engine, Told]:
    core = Told()
    return Engine(kind, Limits(100, 8, 1000), core, attention_dp=dp), core


def test_queue_is_cut_into_chunks() -> None:
    engine, core = _engine("prefill")
    assert engine.queued_prefill_s([RankQuery(queued_requests=3, queued_tokens=230)]) == pytest.approx(0.230)
    assert core.asked == [(RankLoad(3, 100),), (RankLoad(3, 30),)]


def test_empty_queue_takes_no_time() -> None:
    engine, core = _engine("prefill")
    assert engine.queued_prefill_s([RankQuery(queued_requests=3)]) == 0.0
    assert core.asked == []


def test_tokens_without_requests_count_as_one_request() -> None:
    engine, core = _engine("prefill")
    engine.queued_prefill_s([RankQuery(queued_tokens=5)])
    assert core.asked == [(RankLoad(1, 5),)]


def test_ranks_end_at_different_steps() -> None:
    """Full chunks 2 and 0 with tails 30 and 40: steps 0, 1 and 2, the second rank idle after its tail."""
    engine, core = _engine("prefill", dp=2)
    found = engine.queued_prefill_s([RankQuery(1, 230), RankQuery(1, 40)])
    assert found == pytest.approx(0.1 + 0.1 + 0.03)
    assert core.asked == [
        (RankLoad(1, 100), RankLoad(1, 40)),
        (RankLoad(1, 100), RankLoad()),
        (RankLoad(1, 30), RankLoad()),
    ]


def test_only_aggregated_prefill_runs_beside_decode() -> None:
    query = [RankQuery(queued_requests=1, queued_tokens=10, decode_requests=4, decode_kv_tokens=400)]
    cases: list[tuple[WorkerKind, RankLoad]] = [("prefill", RankLoad(1, 10)), ("aggregated", RankLoad(1, 10, 0, 4, 400))]
    for kind, expected in cases:
        engine, core = _engine(kind)
        engine.queued_prefill_s(query)
        assert core.asked == [(expected,)]


def test_questions_that_a_worker_has_no_answer_to() -> None:
    assert _engine("decode")[0].queued_prefill_s([RankQuery(queued_tokens=5)]) is None
    assert _engine("prefill")[0].decode_itl_s([RankQuery(decode_requests=1)]) is None


@pytest.mark.parametrize(("answer", "seconds"), [(float("nan"), None), (float("inf"), None), (-3.0, 0.0), (5.0, 0.005)])
def test_answers_that_are_no_times(answer: float, seconds: float | None) -> None:
    engine, core = _engine("decode")
    core.answer = answer
    assert engine.decode_itl_s([RankQuery(decode_requests=1)]) == seconds


def _fpm(rank: int = 0, prefill: tuple[int, int] = (0, 0), decode: tuple[int, int] = (0, 0), version: int = 1) -> Fpm:
    return Fpm(
        version=version,
        dp_rank=rank,
        wall_time=0.1,
        scheduled_requests=Scheduled(
            num_prefill_requests=prefill[0], sum_prefill_tokens=prefill[1], num_decode_requests=decode[0], sum_decode_kv_tokens=decode[1]
        ),
    )


def test_typical_prefill_joins_decode_of_aggregated_workers() -> None:
    engine, core = _engine("aggregated")
    for prefill in ((0, 0), (2, 100), (1, 51), (0, 0)):
        engine.tune([_fpm(prefill=prefill, decode=(1, 10))])
    engine.decode_itl_s([RankQuery(decode_requests=3, decode_kv_tokens=30)])
    engine.decode_itl_s([RankQuery(prefill_requests=1, prefill_tokens=7, decode_requests=3, decode_kv_tokens=30)])
    # Means of 2, 1, 0 and of 100, 51, 0, rounded up; the zero before the first does not count.
    assert core.asked == [(RankLoad(1, 51, 0, 3, 30),), (RankLoad(1, 7, 0, 3, 30),)]


def test_typical_prefill_is_that_of_the_busiest_rank() -> None:
    engine, core = _engine("aggregated", dp=2)
    engine.tune([_fpm(0, prefill=(1, 50)), _fpm(1, decode=(4, 200))])
    engine.decode_itl_s([RankQuery(decode_requests=1, decode_kv_tokens=9), RankQuery()])
    assert core.asked == [(RankLoad(0, 0, 0, 1, 9), RankLoad())]


def test_rejected_iteration_leaves_the_typical_prefill() -> None:
    engine, core = _engine("aggregated")
    with pytest.raises(ValueError, match="rejected"):
        engine.tune([_fpm(prefill=(0, 50))])
    engine.decode_itl_s([RankQuery(decode_requests=1)])
    assert core.asked == [(RankLoad(0, 0, 0, 1, 0),)]


@pytest.mark.parametrize(
    ("ranks", "dp"),
    [
        ([_fpm(0), _fpm(1)], 1),
        ([_fpm(0)], 2),
        ([_fpm(0), _fpm(0)], 2),
        ([_fpm(0), _fpm(2)], 2),
        ([_fpm(0), _fpm(-1)], 2),
        ([_fpm(version=2)], 1),
    ],
    ids=["one too many", "one missing", "twice", "out of range", "negative", "version"],
)
def test_iterations_of_another_worker(ranks: list[Fpm], dp: int) -> None:
    with pytest.raises(ValueError, match=r"expected|must be"):
        validate_iteration(ranks, dp)


def test_iterations_of_this_worker() -> None:
    validate_iteration([_fpm(5, version=0)], 1)
    validate_iteration([_fpm(1), _fpm(0)], 2)


def test_totals_are_spread_with_the_rest_on_the_first_ranks() -> None:
    engine, core = _engine("aggregated", dp=3)
    engine.split_step_s(2, 4, 100)
    assert core.asked == [(RankLoad(1, 1, 0, 2, 34), RankLoad(1, 1, 0, 1, 33), RankLoad(0, 0, 0, 1, 33))]


def test_average_starts_with_the_first_positive_value() -> None:
    average = MovingAverage(3)
    for value in (0.0, 0.0, 6.0, 0.0):
        average.add(value)
    assert average.mean == 3.0


def test_average_forgets_without_drift() -> None:
    average = MovingAverage(3)
    for value in [1e17, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0]:
        average.add(value)
    assert average.mean == 1.0
