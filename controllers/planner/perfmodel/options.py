"""What a performance model is told and what it tells: options, limits, AI Configurator identity, diagnostics.

Planner behaviour: planner.md §14.1, §14.4.
"""

from dataclasses import dataclass
from math import isqrt
from typing import Literal, TypeAlias

__all__ = (
    "U32_MAX",
    "AicIdentity",
    "Limits",
    "ModelDiagnostics",
    "ModelOptions",
    "Readiness",
    "Source",
    "WorkerKind",
    "check_options",
)

WorkerKind: TypeAlias = Literal["prefill", "decode", "aggregated"]
Readiness: TypeAlias = Literal["ready", "insufficient_data", "unsupported_config"]
Source: TypeAlias = Literal["aic", "aic_with_correction", "fallback_regression"]

U32_MAX = 2**32 - 1


@dataclass(frozen=True, slots=True)
class ModelOptions:
    """Samples kept per kind of work, samples that a fit needs, buckets of the sample store (a perfect square).

    From configuration: max_num_fpm_samples, load_min_observations, fpm_sample_bucket_size.
    """

    max_observations: int = 64
    min_observations: int = 5
    bucket_count: int = 16


@dataclass(frozen=True, slots=True)
class Limits:
    """Tokens of one step, requests of one step, tokens of the KV cache of one engine rank."""

    max_num_tokens: int
    max_batch_size: int
    max_kv_tokens: int


@dataclass(frozen=True, slots=True)
class AicIdentity:
    """The engine as AI Configurator knows it (aic_perf_model and the pick of the role). `dp` is the attention data parallelism."""

    hf_id: str
    system: str
    backend: str
    backend_version: str | None = None
    model_arch: str | None = None
    weight_dtype: str | None = None
    moe_dtype: str | None = None
    activation_dtype: str | None = None
    kv_cache_dtype: str | None = None
    tp: int = 1
    pp: int = 1
    dp: int = 1
    moe_tp: int = 1
    moe_ep: int = 1


@dataclass(frozen=True, slots=True)
class ModelDiagnostics:
    """Field names are those of recorded output. `retained_observations` counts all kinds of work."""

    readiness: Readiness = "insufficient_data"
    source: Source = "fallback_regression"
    retained_observations: int = 0
    correction_ready_buckets: int = 0
    last_warning: str | None = None


def check_options(options: ModelOptions, limits: Limits) -> None:
    """Raises ValueError with the text of the original engine."""
    sizes = (
        ("max_observations", options.max_observations),
        ("min_observations", options.min_observations),
        ("bucket_count", options.bucket_count),
        ("max_num_tokens", limits.max_num_tokens),
        ("max_batch_size", limits.max_batch_size),
        ("max_kv_tokens", limits.max_kv_tokens),
    )
    for name, value in sizes:
        if value < 1:
            raise _invalid(f"{name} must be >= 1")
    if options.min_observations > options.max_observations:
        raise _invalid("min_observations must be <= max_observations")
    if isqrt(options.bucket_count) ** 2 != options.bucket_count:
        raise _invalid("bucket_count must be a perfect square")


def _invalid(text: str) -> ValueError:
    return ValueError(f"invalid engine config: invalid forward pass perf options: {text}")
