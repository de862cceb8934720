"""Whatever engines report: no crash, answers are times, state is bounded and a function of what was seen."""

from math import inf, isfinite, nan
from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from controllers.planner.fpm import Fpm, Queued, Scheduled
from controllers.planner.perfmodel import ModelOptions, PerformanceModel
from controllers.planner.perfmodel.fit import fit_bent_line, fit_plane
from controllers.planner.perfmodel.options import WorkerKind
from controllers.planner.perfmodel.samples import SampleStore
from controllers.planner.types import RoleCapabilities

KINDS = st.sampled_from(["prefill", "decode", "aggregated"])
CAPABILITIES = RoleCapabilities(max_num_batched_tokens=512, max_num_seqs=16, max_kv_tokens=10_000)
OPTIONS = ModelOptions(max_observations=12, min_observations=2, bucket_count=4)

counts: st.SearchStrategy[Any] = st.one_of(st.integers(0, 3000), st.integers(0, 2**32 + 1), st.sampled_from([-1, nan, inf, -inf]))
walls = st.one_of(st.floats(1e-6, 10.0), st.floats(), st.just(0.0))
fpms = st.builds(
    Fpm,
    version=st.sampled_from([1, 1, 1, 0, 2]),
    worker_id=st.sampled_from(["a", "b"]),
    dp_rank=st.integers(0, 1),
    wall_time=walls,
    scheduled_requests=st.builds(
        Scheduled,
        num_prefill_requests=counts,
        sum_prefill_tokens=counts,
        sum_prefill_kv_tokens=counts,
        num_decode_requests=counts,
        sum_decode_kv_tokens=counts,
    ),
    queued_requests=st.builds(
        Queued, num_prefill_requests=counts, sum_prefill_tokens=counts, num_decode_requests=counts, sum_decode_kv_tokens=counts
    ),
)
honest = st.builds(
    lambda p, r, kv, wall: Fpm(
        wall_time=wall,
        scheduled_requests=Scheduled(
            num_prefill_requests=min(p, 1), sum_prefill_tokens=p, num_decode_requests=r, sum_decode_kv_tokens=r * kv
        ),
    ),
    st.integers(0, 500),
    st.integers(0, 20),
    st.integers(0, 500),
    st.floats(1e-4, 1.0),
)


def _model(kind: WorkerKind) -> PerformanceModel:
    model = PerformanceModel(kind, OPTIONS, None)
    model.update_capabilities(CAPABILITIES)
    return model


def _is_time(value: float | None) -> bool:
    return value is None or (isfinite(value) and value >= 0)


@given(KINDS, st.lists(fpms, max_size=30), st.lists(honest, max_size=30))
def test_any_metrics(kind: WorkerKind, wild: list[Fpm], tame: list[Fpm]) -> None:
    model = _model(kind)
    model.bootstrap(tame)
    for fpm in wild:
        model.observe({(fpm.worker_id, fpm.dp_rank): fpm})
    model.bootstrap(wild)
    assert isfinite(model.avg_isl)
    assert isfinite(model.avg_decode_length)
    assert model.diagnostics().retained_observations <= 3 * OPTIONS.max_observations
    for fpm in wild:
        for group in model.groups({(fpm.worker_id, fpm.dp_rank): fpm}):
            assert _is_time(
                model.queued_prefill_time_s(group, kv_hit_rate=0.3, queue_scale=1.5, decode_scale=2.0, include_queued_decode=True)
            )
            assert _is_time(model.decode_itl_s(group, decode_scale=2.0, include_queued_decode=True, include_queued_prefill=True))
    found = model.capacity(isl=100, osl=20, ttft_ms=100, itl_ms=10, kv_hit_rate=0.1, accept_length=1.5)
    assert found is None or (isfinite(found.rps) and found.rps > 0 and found.batch >= 1)


@given(KINDS, st.lists(honest, min_size=1, max_size=30))
def test_same_metrics_same_answers(kind: WorkerKind, seen: list[Fpm]) -> None:
    one, other = _model(kind), PerformanceModel(kind, OPTIONS, None)
    for fpm in seen:
        one.bootstrap([fpm])
        # Being asked in between changes nothing.
        assert one.ready in (True, False)
    other.update_capabilities(CAPABILITIES)
    other.bootstrap(seen)
    assert one.diagnostics() == other.diagnostics()
    (group,) = one.groups({("w", 0): seen[-1]})
    assert one.decode_itl_s(group) == other.decode_itl_s(group)
    assert one.queued_prefill_time_s(group, kv_hit_rate=None) == other.queued_prefill_time_s(group, kv_hit_rate=None)


@given(st.integers(1, 2), st.integers(1, 20), st.lists(st.tuples(st.integers(0, 50), st.integers(0, 50)), max_size=80))
def test_store_keeps_the_bound_and_only_what_was_added(dimensions: int, most: int, values: list[tuple[int, int]]) -> None:
    store = SampleStore(dimensions, most, 4)
    for at, value in enumerate(values):
        store.add(tuple(map(float, value[:dimensions])), float(at))
    held = store.columns.T.tolist()
    assert len(held) == min(most, len(values))
    assert [row[1] for row in held] == sorted(row[1] for row in held)
    for row in held:
        assert tuple(row[1:-1]) == tuple(map(float, values[int(row[-1])][:dimensions]))
    assert len({row[-1] for row in held}) == len(held)


xs = st.lists(st.integers(1, 10_000), min_size=6, max_size=60)


@given(xs, st.randoms(use_true_random=False))
def test_bent_line_is_as_good_as_least_squares_at_its_knot(lengths: list[int], random: Any) -> None:
    x = np.array(sorted(map(float, lengths)))
    y = 20 + 0.04 * x + np.array([random.uniform(0, 30) for _ in x])
    fit = fit_bent_line(np.stack([np.ones_like(x), x, y]))
    if fit is None or fit.slope <= 0 or fit.slope + fit.bend <= 0:
        return
    weight = 1 / np.maximum(y, 25)
    design = np.stack([np.ones_like(x), x, np.maximum(0, x - fit.knot)]).T * weight[:, None]
    direct, *_ = np.linalg.lstsq(design, y * weight, rcond=None)
    ours = np.array([fit.intercept, fit.slope, fit.bend])
    best = float(np.sum((design @ direct - y * weight) ** 2))
    assert float(np.sum((design @ ours - y * weight) ** 2)) <= best * (1 + 1e-9) + 1e-12


@given(xs)
def test_plane_never_falls(lengths: list[int]) -> None:
    x = np.array(list(map(float, lengths)))
    z = np.array([float(v * 7919 % 1000) for v in lengths])
    fit = fit_plane(np.stack([np.ones_like(x), x, z, 50 - 0.001 * x + 0.01 * z]))
    assert fit is None or (fit.slope >= 0 and fit.second >= 0)
