"""AI Configurator's own times of iterations, corrected by what engines report. Optional: needs the package aiconfigurator-core.

Planner behaviour: planner.md §14.1 (identity), §14.5. Without the package, or for an engine that it does not know, iterations are
learned from metrics alone. The package looks a model up on a public hub if it does not ship its configuration.
"""

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from importlib import import_module
from math import isfinite, isqrt
from statistics import median
from typing import Any, Protocol

import msgspec

from controllers.planner.perfmodel.engine import Core
from controllers.planner.perfmodel.model import CoreFactory
from controllers.planner.perfmodel.options import AicIdentity, Limits, ModelDiagnostics, ModelOptions, WorkerKind, check_options
from controllers.planner.perfmodel.regression import Kind, RankLoad, Regression, Work, classify, wall_time_ms
from controllers.planner.types import RoleCapabilities

__all__ = ("AicCore", "NativeEstimator", "NativeFactory", "core_factory", "engine_config", "load_native")

_PACKAGE = "aiconfigurator_core"
_SMALLEST_FACTOR, _LARGEST_FACTOR = 0.5, 2.0


class NativeEstimator(Protocol):
    """What is used of the package: the time in milliseconds of one iteration, given as a JSON list of a map per rank."""

    def estimate_forward_pass_time_ms(self, fpm_json: str) -> float | None: ...


NativeFactory = Callable[[str, str], NativeEstimator]
"""From the engine and the options, both JSON. Raises ValueError for an engine that is not known."""


def load_native() -> NativeFactory | None:
    """None if the package is not installed."""
    try:
        package: Any = import_module(_PACKAGE)
    except ImportError:
        return None
    factory: NativeFactory = package.RustForwardPassPerfModel.from_native
    return factory


def engine_config(kind: WorkerKind, aic: AicIdentity, capabilities: RoleCapabilities) -> Mapping[str, Any]:
    """The engine as the package wants it named."""
    config: dict[str, Any] = {
        "schema_version": 1,
        "model_name": aic.hf_id,
        "system_name": aic.system,
        "backend": aic.backend,
        "backend_version": aic.backend_version,
        "model_arch": aic.model_arch,
        "kv_block_size": capabilities.kv_cache_block_size,
        "tp_size": aic.tp,
        "pp_size": aic.pp,
        "moe_tp_size": aic.moe_tp,
        "moe_ep_size": aic.moe_ep,
        "attention_dp_size": aic.dp,
        "cp_size": None,
        "weight_dtype": aic.weight_dtype,
        "moe_dtype": aic.moe_dtype,
        "activation_dtype": aic.activation_dtype,
        "kv_cache_dtype": aic.kv_cache_dtype,
        "extra": {},
    }
    if kind != "prefill" and (capabilities.speculative_nextn or 0) > 0:
        config["nextn"] = capabilities.speculative_nextn
    return config


def core_factory(load: Callable[[], NativeFactory | None] = load_native) -> CoreFactory:
    """For PerformanceModel: AI Configurator where it knows the engine, else a regression that counts as unsupported until it is ready."""

    def make(kind: WorkerKind, options: ModelOptions, limits: Limits, aic: AicIdentity | None, capabilities: RoleCapabilities) -> Core:
        check_options(options, limits)
        if aic is None:
            return Regression(options)
        native = load()
        if native is None:
            return Regression(options, "unsupported_config", f"AI Configurator is not installed ({_PACKAGE}); learning from metrics alone")
        try:
            estimator = native(_json(engine_config(kind, aic, capabilities)), _json({**asdict(options), **asdict(limits)}))
        except ValueError as err:
            return Regression(
                options, "unsupported_config", f"AI Configurator does not know the engine; learning from metrics alone: {err}"
            )
        return AicCore(estimator, options, limits)

    return make


def _json(value: object) -> str:
    return msgspec.json.encode(value).decode()


class AicCore:
    """Times of the package, times the median of what engines took in comparison, by kind and amount of work."""

    def __init__(self, native: NativeEstimator, options: ModelOptions, limits: Limits) -> None:
        self._native = native
        tokens, kv = limits.max_num_tokens, limits.max_kv_tokens
        self._corrections: dict[Kind, _Corrections] = {
            "prefill": _Corrections((tokens,), options),
            "decode": _Corrections((limits.max_batch_size, kv), options),
            "mixed": _Corrections((tokens, kv), options),
        }

    def tune(self, ranks: Sequence[RankLoad]) -> None:
        """Raises ValueError for an iteration that contradicts itself."""
        work, observed = classify(ranks), wall_time_ms(ranks)
        if work is None or observed is None:
            return
        expected = self._native_ms(ranks)
        if expected is not None and expected > 0:
            self._corrections[work.kind].add(work, observed / expected)

    def estimate_ms(self, ranks: Sequence[RankLoad]) -> float | None:
        """0.0 for no work. Raises ValueError for an iteration that contradicts itself."""
        work = classify(ranks)
        if work is None:
            return 0.0
        expected = self._native_ms(ranks)
        return None if expected is None else expected * self._corrections[work.kind].factor(work)

    def diagnostics(self) -> ModelDiagnostics:
        buckets = sum(correction.ready_buckets for correction in self._corrections.values())
        return ModelDiagnostics(
            readiness="ready",
            source="aic_with_correction" if buckets else "aic",
            retained_observations=sum(correction.size for correction in self._corrections.values()),
            correction_ready_buckets=buckets,
        )

    def _native_ms(self, ranks: Sequence[RankLoad]) -> float | None:
        found = self._native.estimate_forward_pass_time_ms(_json([_metrics(rank, load) for rank, load in enumerate(ranks)]))
        return found if found is not None and isfinite(found) else None


def _metrics(rank: int, load: RankLoad) -> Mapping[str, Any]:
    return {
        "version": 1,
        "worker_id": "planner",
        "dp_rank": rank,
        "scheduled_requests": {
            "num_prefill_requests": load.prefill_requests,
            "sum_prefill_tokens": load.prefill_tokens,
            "sum_prefill_kv_tokens": load.prefill_kv_tokens,
            "num_decode_requests": load.decode_requests,
            "sum_decode_kv_tokens": load.decode_kv_tokens,
        },
    }


class _Corrections:
    """Observed over expected time on a fixed grid from 0 to the limit of each axis; bounded as SampleStore is."""

    def __init__(self, ends: tuple[int, ...], options: ModelOptions) -> None:
        self._ends = ends
        self._per_axis = options.bucket_count if len(ends) == 1 else isqrt(options.bucket_count)
        self._max, self._min = options.max_observations, options.min_observations
        self._buckets: dict[int, deque[tuple[int, float]]] = {}
        self._next_age = 0
        self.size = 0

    @property
    def ready_buckets(self) -> int:
        """Buckets that correct; none before there are samples enough."""
        return len(self._buckets) if self.size >= self._min else 0

    def add(self, work: Work, ratio: float) -> None:
        """Takes a ratio; work beyond the grid is ignored."""
        bucket = self._bucket_of(work)
        if bucket is None:
            return
        clamped = min(max(ratio, _SMALLEST_FACTOR), _LARGEST_FACTOR)
        self._buckets.setdefault(bucket, deque()).append((self._next_age, clamped))
        self._next_age += 1
        self.size += 1
        if self.size > self._max:
            key, fullest = min(self._buckets.items(), key=lambda item: (-len(item[1]), item[1][0][0]))
            fullest.popleft()
            self.size -= 1
            if not fullest:
                del self._buckets[key]

    def factor(self, work: Work) -> float:
        """1.0 where nothing is known."""
        if self.size < self._min:
            return 1.0
        bucket = self._bucket_of(work)
        ratios = None if bucket is None else self._buckets.get(bucket)
        return median(ratio for _, ratio in ratios) if ratios else 1.0

    def _bucket_of(self, work: Work) -> int | None:
        bucket = 0
        for value, end in zip(work.features, self._ends, strict=True):
            if value > end:
                return None
            bucket = bucket * self._per_axis + min(int(value / end * self._per_axis), self._per_axis - 1)
        return bucket
