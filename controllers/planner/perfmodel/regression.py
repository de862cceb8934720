"""Times of iterations learned from observed ones alone: one small regression for each kind of work.

Planner behaviour: planner.md §14.4.
"""

from collections.abc import Sequence
from math import isfinite
from typing import Literal, NamedTuple, TypeAlias

from controllers.planner.perfmodel.fit import Fit, fit_bent_line, fit_plane
from controllers.planner.perfmodel.options import ModelDiagnostics, ModelOptions, Readiness
from controllers.planner.perfmodel.samples import SampleStore

__all__ = ("Kind", "RankLoad", "Regression", "Work", "classify", "wall_time_ms")

Kind: TypeAlias = Literal["prefill", "decode", "mixed"]

_SAMPLES_FOR_BEND = 6


class RankLoad(NamedTuple):
    """What one rank of data parallelism does in one iteration; counts of requests and tokens, `wall_time` in seconds (0 if asked about)."""

    prefill_requests: int = 0
    prefill_tokens: int = 0
    prefill_kv_tokens: int = 0
    decode_requests: int = 0
    decode_kv_tokens: int = 0
    wall_time: float = 0.0


class Work(NamedTuple):
    """Kind of work of an iteration and the one or two numbers that its time depends on."""

    kind: Kind
    features: tuple[float, ...]


def _work_of(rank: RankLoad) -> Work | None:
    """Raises ValueError for tokens that belong to no request."""
    if rank.prefill_requests == 0 and (rank.prefill_tokens or rank.prefill_kv_tokens):
        raise ValueError("invalid forward pass metrics: prefill token sums require num_prefill_requests > 0")
    if rank.decode_requests == 0 and rank.decode_kv_tokens:
        raise ValueError("invalid forward pass metrics: decode KV token sum requires num_decode_requests > 0")
    if rank.prefill_tokens > 0:
        if rank.decode_requests > 0:
            return Work("mixed", (float(rank.prefill_tokens), float(rank.decode_kv_tokens)))
        return Work("prefill", (float(rank.prefill_tokens),))
    if rank.decode_requests > 0:
        return Work("decode", (float(rank.decode_requests), float(rank.decode_kv_tokens)))
    return None


def classify(ranks: Sequence[RankLoad]) -> Work | None:
    """The work of the rank that does most, the last of equals: it is what the others wait for. None if no rank works.

    Raises ValueError, with the texts of the original engine.
    """
    if not ranks:
        raise ValueError("invalid forward pass metrics: at least one attention-DP rank metric is required")
    if len(ranks) == 1:
        return _work_of(ranks[0])
    busiest, most = None, -1.0
    for rank in ranks:
        work = _work_of(rank)
        if work is not None and (total := sum(work.features)) >= most:
            busiest, most = work, total
    return busiest


def wall_time_ms(ranks: Sequence[RankLoad]) -> float | None:
    """The longest time that is a time; None if there is none."""
    times = [rank.wall_time * 1000.0 for rank in ranks if isfinite(rank.wall_time) and rank.wall_time > 0]
    return max(times) if times else None


class _KindModel:
    """Samples of one kind and the fit to them, made when asked for."""

    def __init__(self, kind: Kind, options: ModelOptions) -> None:
        self.store = SampleStore(1 if kind == "prefill" else 2, options.max_observations, options.bucket_count)
        self._may_bend = kind == "prefill"
        self._min = options.min_observations
        self._fit: Fit | None = None
        self._is_stale = False

    def add(self, features: tuple[float, ...], target_ms: float) -> None:
        self.store.add(features, target_ms)
        self._is_stale = True

    @property
    def fit(self) -> Fit | None:
        """None with too few samples, or samples that tell nothing."""
        if self._is_stale:
            self._is_stale = False
            self._fit = self._refit()
        return self._fit

    def _refit(self) -> Fit | None:
        columns = self.store.columns
        if self._may_bend and len(self.store) >= max(self._min, _SAMPLES_FOR_BEND):
            bent = fit_bent_line(columns)
            if bent is not None:
                return bent
        return fit_plane(columns) if len(self.store) >= self._min else None


class Regression:
    """Learns from iterations, tells times in milliseconds.

    `unready` is what it says of itself while it has no fit, `warning` why it is used at all.
    """

    def __init__(self, options: ModelOptions, unready: Readiness = "insufficient_data", warning: str | None = None) -> None:
        self._unready: Readiness = unready
        self._warning = warning
        self._models: dict[Kind, _KindModel] = {
            "prefill": _KindModel("prefill", options),
            "decode": _KindModel("decode", options),
            "mixed": _KindModel("mixed", options),
        }

    def tune(self, ranks: Sequence[RankLoad]) -> None:
        """Learns from one iteration; one without work or without a time is ignored. Raises ValueError as `classify`."""
        work = classify(ranks)
        target = wall_time_ms(ranks)
        if work is not None and target is not None:
            self._models[work.kind].add(work.features, target)

    def estimate_ms(self, ranks: Sequence[RankLoad]) -> float | None:
        """0.0 for no work, None for a kind of work without a fit. Raises ValueError as `classify`."""
        work = classify(ranks)
        if work is None:
            return 0.0
        fit = self._models[work.kind].fit
        return None if fit is None else fit.predict_ms(*work.features)

    def diagnostics(self) -> ModelDiagnostics:
        is_ready = any(model.fit is not None for model in self._models.values())
        return ModelDiagnostics(
            readiness="ready" if is_ready else self._unready,
            retained_observations=sum(len(model.store) for model in self._models.values()),
            last_warning=self._warning,
        )
