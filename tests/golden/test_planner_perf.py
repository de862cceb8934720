"""The performance model against recorded answers of the original: fits, readiness, errors, capacity, queries."""

from typing import Any

import msgspec
import pytest

from controllers.planner.fpm import Fpm
from controllers.planner.perfmodel import ModelOptions, PerformanceModel
from controllers.planner.perfmodel.options import Limits, check_options
from controllers.planner.perfmodel.regression import RankLoad, Regression
from controllers.planner.types import RoleCapabilities
from tests.golden.planner_vectors import vectors

REGRESSION = vectors("perf", "regression")
OPTIONS = vectors("perf", "regression_options")
CAPACITY = vectors("capacity", "find_engine_capacity_rps")


def _options(given: dict[str, int]) -> tuple[ModelOptions, Limits]:
    return (
        ModelOptions(given["max_observations"], given["min_observations"], given["bucket_count"]),
        Limits(given["max_num_tokens"], given["max_batch_size"], given["max_kv_tokens"]),
    )


def _loads(iteration: list[dict[str, Any]]) -> list[RankLoad]:
    fields = ("num_prefill_requests", "sum_prefill_tokens", "sum_prefill_kv_tokens", "num_decode_requests", "sum_decode_kv_tokens")
    return [RankLoad(*[rank["scheduled_requests"][name] for name in fields], wall_time=rank["wall_time"]) for rank in iteration]


def _close(value: float | None) -> Any:
    return None if value is None else pytest.approx(value, rel=1e-9)


@pytest.mark.parametrize("call", REGRESSION, ids=lambda c: c["in"]["tag"])
def test_regression(call: dict[str, Any]) -> None:
    options, _ = _options(call["in"]["options"])
    core = Regression(options)
    for step, expected in zip(call["in"]["steps"], call["out"], strict=True):
        for iteration in step:
            core.tune(_loads(iteration))
        assert msgspec.to_builtins(core.diagnostics()) == expected["diagnostics"]
        assert [core.estimate_ms(_loads(probe)) for probe in call["in"]["probes"]] == [_close(value) for value in expected["estimates"]]


@pytest.mark.parametrize("call", OPTIONS, ids=lambda c: c["out"] if isinstance(c["out"], str) else "accepted")
def test_options(call: dict[str, Any]) -> None:
    options, limits = _options(call["in"])
    if not isinstance(call["out"], str):
        check_options(options, limits)
        return
    with pytest.raises(ValueError, match=f"^{call['out'].removeprefix('ValueError: ')}$"):
        check_options(options, limits)


def _model(call: dict[str, Any]) -> PerformanceModel:
    model = PerformanceModel(call["in"]["worker_type"], ModelOptions(4096, 5, 16), None)
    assert model.update_capabilities(RoleCapabilities(**call["in"]["capabilities"])) == []
    assert model.bootstrap([msgspec.convert(fpm, Fpm) for fpm in call["in"]["bootstrap"]]) == []
    return model


def _case_id(call: dict[str, Any]) -> str:
    return "-".join([call["in"]["worker_type"], *map(str, call["in"]["capabilities"].values())])


@pytest.mark.parametrize("call", CAPACITY, ids=_case_id)
def test_capacity(call: dict[str, Any]) -> None:
    model = _model(call)
    assert model.avg_isl == _close(call["out"]["avg_isl"])
    assert model.avg_decode_length == _close(call["out"]["avg_decode_length"])
    for search in call["out"]["capacity"]:
        q, expected = search["q"], search["out"]
        found = model.capacity(
            isl=q["isl"],
            osl=q["osl"],
            ttft_ms=q["ttft_sla_ms"],
            itl_ms=q["itl_sla_ms"],
            kv_hit_rate=q["kv_hit_rate"],
            accept_length=q["accept_length"],
        )
        if expected is None:
            assert found is None, q
            continue
        assert found is not None, q
        assert found.eligible is expected["eligible"], q
        for name in ("rps", "ttft_ms", "itl_ms", "e2e_latency_ms"):
            assert getattr(found, name) == _close(expected[name]), (q, name)


@pytest.mark.parametrize("call", CAPACITY, ids=_case_id)
def test_queries(call: dict[str, Any]) -> None:
    """The recording does not name the requests of its query; its totals follow from the recorded times of decode workers."""
    model = _model(call)
    totals = {0: (0, 0), 4: (4, 7000), 40: (30, 7000)}
    for asked in call["out"]["estimates"]:
        requests, queued_kv = totals[asked["reqs"]]
        fpm = {
            "worker_id": "w",
            "scheduled_requests": {"num_decode_requests": requests and 1, "sum_decode_kv_tokens": asked["kv"]},
            "queued_requests": {
                "num_prefill_requests": requests and requests - 2,
                "sum_prefill_tokens": asked["queued"],
                "num_decode_requests": requests and 1,
                "sum_decode_kv_tokens": queued_kv,
            },
        }
        (group,) = model.groups({("w", 0): msgspec.convert(fpm, Fpm)})
        scale = asked["scale"]
        prefill = model.queued_prefill_time_s(group, kv_hit_rate=0.25, queue_scale=scale, decode_scale=scale, include_queued_decode=True)
        decode = model.decode_itl_s(group, decode_scale=scale, include_queued_decode=True, include_queued_prefill=True)
        assert (prefill, decode) == (_close(asked["prefill_s"]), _close(asked["decode_s"])), asked
