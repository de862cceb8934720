"""The adapter of AI Configurator, with a stand-in for its package: corrections, falling back, how the engine is named."""

import json
from typing import Any

import pytest

from controllers.planner.perfmodel import AicIdentity, ModelOptions, PerformanceModel
from controllers.planner.perfmodel.aic import AicCore, core_factory, engine_config
from controllers.planner.perfmodel.options import Limits
from controllers.planner.perfmodel.regression import RankLoad
from controllers.planner.types import RoleCapabilities

LIMITS = Limits(1600, 16, 16_000)
IDENTITY = AicIdentity("model", "system", "vllm", "1.0", tp=2, dp=1)


class TenMs:
    """Every iteration takes 10 ms."""

    def __init__(self) -> None:
        self.asked: list[Any] = []
        self.answer: float | None = 10.0

    def estimate_forward_pass_time_ms(self, fpm_json: str) -> float | None:
        self.asked.append(json.loads(fpm_json))
        return self.answer


def _core(**options: int) -> tuple[AicCore, TenMs]:
    native = TenMs()
    return AicCore(native, ModelOptions(**{"max_observations": 64, "min_observations": 3, "bucket_count": 16, **options}), LIMITS), native


def _prefill(tokens: int, ms: float = 0.0) -> list[RankLoad]:
    return [RankLoad(1, tokens, wall_time=ms / 1000)]


def test_ready_at_once() -> None:
    core, native = _core()
    assert core.estimate_ms(_prefill(100)) == 10.0
    assert core.diagnostics().readiness == "ready"
    assert core.diagnostics().source == "aic"
    assert native.asked == [
        [
            {
                "version": 1,
                "worker_id": "planner",
                "dp_rank": 0,
                "scheduled_requests": {
                    "num_prefill_requests": 1,
                    "sum_prefill_tokens": 100,
                    "sum_prefill_kv_tokens": 0,
                    "num_decode_requests": 0,
                    "sum_decode_kv_tokens": 0,
                },
            }
        ]
    ]


def test_corrects_by_the_median_of_the_bucket_once_there_are_enough() -> None:
    core, _ = _core()
    for ms in (12.0, 13.0):
        core.tune(_prefill(10, ms))
    assert core.estimate_ms(_prefill(10)) == 10.0
    core.tune(_prefill(99, 19.0))
    assert core.estimate_ms(_prefill(50)) == pytest.approx(13.0)
    core.tune(_prefill(99, 15.0))
    assert core.estimate_ms(_prefill(50)) == pytest.approx(14.0)
    assert core.estimate_ms(_prefill(100)) == 10.0
    assert core.diagnostics().source == "aic_with_correction"
    assert core.diagnostics().correction_ready_buckets == 1
    assert core.diagnostics().retained_observations == 4


@pytest.mark.parametrize(("observed", "corrected"), [(1000.0, 20.0), (0.1, 5.0)])
def test_corrections_are_bounded(observed: float, corrected: float) -> None:
    core, _ = _core(min_observations=1)
    core.tune(_prefill(10, observed))
    assert core.estimate_ms(_prefill(10)) == corrected


def test_work_beyond_the_limits_is_not_corrected() -> None:
    core, _ = _core(min_observations=1)
    core.tune(_prefill(1601, 20.0))
    core.tune(_prefill(1600, 20.0))
    assert core.diagnostics().retained_observations == 1
    assert core.estimate_ms(_prefill(1601)) == 10.0
    assert core.estimate_ms(_prefill(1501)) == 20.0


def test_kinds_are_corrected_apart() -> None:
    core, _ = _core(min_observations=1)
    core.tune([RankLoad(0, 0, 0, 1, 100, 0.02)])
    assert core.estimate_ms([RankLoad(0, 0, 0, 2, 100)]) == 20.0
    assert core.estimate_ms([RankLoad(1, 5, 0, 2, 100)]) == 10.0


def test_corrections_are_bounded_in_number() -> None:
    core, _ = _core(max_observations=4, min_observations=1)
    for _ in range(10):
        core.tune(_prefill(10, 12.0))
    core.tune(_prefill(1000, 15.0))
    assert core.diagnostics().retained_observations == 4
    assert core.estimate_ms(_prefill(1000)) == pytest.approx(15.0)


@pytest.mark.parametrize("answer", [None, float("nan"), 0.0])
def test_native_answers_that_cannot_be_used(answer: float | None) -> None:
    core, native = _core(min_observations=1)
    native.answer = answer
    core.tune(_prefill(10, 12.0))
    assert core.diagnostics().retained_observations == 0
    assert core.estimate_ms(_prefill(10)) == (0.0 if answer == 0.0 else None)


def test_no_work_takes_no_time() -> None:
    core, native = _core()
    assert core.estimate_ms([RankLoad()]) == 0.0
    assert native.asked == []


def test_engine_is_named_with_speculation_only_where_it_decodes() -> None:
    capabilities = RoleCapabilities(kv_cache_block_size=16, speculative_nextn=2)
    config = engine_config("decode", IDENTITY, capabilities)
    assert config["nextn"] == 2
    assert (config["model_name"], config["tp_size"], config["attention_dp_size"], config["kv_block_size"]) == ("model", 2, 1, 16)
    assert "nextn" not in engine_config("prefill", IDENTITY, capabilities)
    assert "nextn" not in engine_config("decode", IDENTITY, RoleCapabilities(speculative_nextn=0))


def test_model_uses_the_package() -> None:
    asked: list[tuple[Any, Any]] = []

    def native(config: str, options: str) -> TenMs:
        asked.append((json.loads(config), json.loads(options)))
        return TenMs()

    model = PerformanceModel("prefill", ModelOptions(), IDENTITY, core_factory(lambda: native))
    assert model.update_capabilities(RoleCapabilities(max_num_batched_tokens=1000)) == []
    assert model.ready
    found = model.capacity(isl=100, osl=1)
    assert found is not None
    assert (found.batch, found.rps) == (10, pytest.approx(1000.0))
    assert asked[0][1]["max_num_tokens"] == 1000
    assert asked[0][1]["max_observations"] == 64
    model.update_capabilities(RoleCapabilities(max_num_batched_tokens=1000, kv_cache_block_size=32))
    assert [config["kv_block_size"] for config, _ in asked] == [None, 32]


def _refuses(config: str, options: str) -> TenMs:
    raise ValueError("no such model")


@pytest.mark.parametrize(
    ("load", "reason"), [(lambda: None, "not installed"), (lambda: _refuses, "no such model")], ids=["no package", "unknown engine"]
)
def test_falls_back_to_regression(load: Any, reason: str) -> None:
    model = PerformanceModel("prefill", ModelOptions(), IDENTITY, core_factory(load))
    model.update_capabilities(RoleCapabilities())
    told = model.diagnostics()
    assert (told.readiness, told.source) == ("unsupported_config", "fallback_regression")
    assert told.last_warning is not None
    assert reason in told.last_warning
