"""The performance model of one role: what Planner asks how long a queue or a step will take.

Planner behaviour: planner.md §14.1, §14.3.
"""

from collections import deque
from collections.abc import Callable, Sequence
from math import ceil
from typing import NamedTuple, TypeVar

from controllers.planner.fpm import Fpm, FpmMap
from controllers.planner.perfmodel.capacity import Capacity, CapacityQuery, find_capacity, uncached_share
from controllers.planner.perfmodel.engine import Core, Engine, MovingAverage, RankQuery, validate_iteration
from controllers.planner.perfmodel.options import U32_MAX, AicIdentity, Limits, ModelDiagnostics, ModelOptions, WorkerKind, check_options
from controllers.planner.perfmodel.regression import Regression
from controllers.planner.types import RoleCapabilities

__all__ = ("CoreFactory", "Group", "PerformanceModel", "limits_of")

T = TypeVar("T")
_DEFAULT_LIMITS = Limits(max_num_tokens=8192, max_batch_size=512, max_kv_tokens=2_000_000)


class Group(NamedTuple):
    """The ranks that one estimate is made for: one, or all of a worker with attention data parallelism."""

    worker_id: str
    ranks: tuple[Fpm, ...]


CoreFactory = Callable[[WorkerKind, ModelOptions, Limits, AicIdentity | None, RoleCapabilities], Core]
"""Makes the model of single iterations. Raises ValueError for options that are none."""


def regression_core(
    kind: WorkerKind, options: ModelOptions, limits: Limits, aic: AicIdentity | None, capabilities: RoleCapabilities
) -> Core:
    """Without AI Configurator; an engine that was to be modelled by it counts as unsupported until samples are enough."""
    check_options(options, limits)
    return Regression(options, "insufficient_data" if aic is None else "unsupported_config")


def limits_of(capabilities: RoleCapabilities | None) -> Limits | None:
    """Unknown limits have defaults; None if nothing is known, or a limit is none."""
    if capabilities is None:
        return None
    given = (capabilities.max_num_batched_tokens, capabilities.max_num_seqs, capabilities.max_kv_tokens)
    if any(value is not None and not 0 < value <= U32_MAX for value in given):
        return None
    tokens, seqs, kv = given
    return Limits(
        max_num_tokens=_DEFAULT_LIMITS.max_num_tokens if tokens is None else tokens,
        max_batch_size=_DEFAULT_LIMITS.max_batch_size if seqs is None else seqs,
        max_kv_tokens=_DEFAULT_LIMITS.max_kv_tokens if kv is None else kv,
    )


class PerformanceModel:
    """Learns from forward pass metrics and answers in seconds. Never raises for what engines report; warnings are returned."""

    def __init__(
        self, kind: WorkerKind, options: ModelOptions, aic: AicIdentity | None = None, make_core: CoreFactory = regression_core
    ) -> None:
        self.kind: WorkerKind = kind
        self.options = options
        self._aic = aic
        self._make_core = make_core
        self._attention_dp = 1 if aic is None else aic.dp
        window = max(1, options.max_observations)
        self._avg_isl = MovingAverage(window)
        self._avg_decode_length = MovingAverage(window)
        self._iterations: deque[tuple[Fpm, ...]] = deque(maxlen=window)
        self._engine: Engine | None = None
        self._engine_of: tuple[object, ...] | None = None
        self._last_warning: str | None = None

    @property
    def ready(self) -> bool:
        """Whether some kind of work can be told the time of; others may still be unknown."""
        return self._engine is not None and self._engine.diagnostics().readiness == "ready"

    @property
    def avg_isl(self) -> float:
        """Mean prompt tokens per prefill request seen, 0.0 before the first."""
        return self._avg_isl.mean

    @property
    def avg_decode_length(self) -> float:
        """Mean KV tokens per decode request seen, 0.0 before the first."""
        return self._avg_decode_length.mean

    def diagnostics(self) -> ModelDiagnostics:
        if self._engine is None:
            return ModelDiagnostics(last_warning=self._last_warning)
        found = self._engine.diagnostics()
        return ModelDiagnostics(
            found.readiness,
            found.source,
            found.retained_observations,
            found.correction_ready_buckets,
            self._last_warning or found.last_warning,
        )

    def update_capabilities(self, capabilities: RoleCapabilities | None) -> Sequence[str]:
        """Takes the limits of the engines. If they changed, the model is made anew from the iterations kept; returns warnings."""
        limits = limits_of(capabilities)
        if capabilities is None or limits is None:
            self._engine = self._engine_of = None
            return ()
        identity = (limits, capabilities.kv_cache_block_size, capabilities.speculative_nextn) if self._aic else (limits,)
        if identity == self._engine_of:
            return ()
        self._engine_of = identity
        try:
            core = self._make_core(self.kind, self.options, limits, self._aic, capabilities)
        except ValueError as err:
            self._engine = None
            return self._warn([f"{self.kind} performance model cannot be made: {err}"])
        self._engine = Engine(self.kind, limits, core, attention_dp=self._attention_dp, window=self.options.max_observations)
        kept, self._iterations = self._iterations, deque(maxlen=self._iterations.maxlen)
        return self._warn([text for ranks in kept for text in self._tune(ranks)])

    def observe(self, fpms: FpmMap) -> Sequence[str]:
        """Learns from the latest metrics of each rank; returns warnings."""
        warnings = self._note_all(list(fpms.values()))
        for group in self.groups(fpms):
            if rejected := self._tune(group.ranks):
                return self._warn(warnings + rejected)
        return self._warn(warnings)

    def bootstrap(self, fpms: Sequence[Fpm]) -> Sequence[str]:
        """Learns from measured iterations of single ranks; with attention data parallelism only their averages; returns warnings."""
        warnings = self._note_all(fpms)
        if self._attention_dp > 1:
            return self._warn(warnings)
        for fpm in filter(_is_usable, fpms):
            if rejected := self._tune((fpm,)):
                return self._warn(warnings + rejected)
        return self._warn(warnings)

    def groups(self, fpms: FpmMap) -> Sequence[Group]:
        """By worker and rank, those that cannot be used left out: planner.md §12.3."""
        entries = [(key, fpm) for key, fpm in sorted(fpms.items()) if _is_usable(fpm)]
        if self._attention_dp == 1:
            return [Group(key[0], (fpm,)) for key, fpm in entries]
        workers: dict[str, list[Fpm]] = {}
        for key, fpm in entries:
            workers.setdefault(key[0], []).append(fpm)
        return [Group(worker, tuple(ranks)) for worker, ranks in workers.items()]

    def queued_prefill_time_s(
        self,
        group: Group,
        *,
        kv_hit_rate: float | None,
        queue_scale: float = 1.0,
        decode_scale: float = 1.0,
        include_queued_decode: bool = False,
    ) -> float | None:
        """Time until an average request that comes next, and the scaled queue before it, is prefilled. None if it cannot be told."""
        engine = self._engine
        if engine is None:
            return None
        share, following = uncached_share(kv_hit_rate), self.avg_isl
        queries: list[RankQuery] = []
        for fpm in group.ranks:
            queued = fpm.queued_requests
            requests, kv = _decode_load(fpm, include_queued_decode)
            queries.append(
                RankQuery(
                    queued_requests=_count(queued.num_prefill_requests * queue_scale + (1 if following > 0 else 0)),
                    queued_tokens=_count((queued.sum_prefill_tokens * queue_scale + following) * share),
                    decode_requests=_count(requests * decode_scale),
                    decode_kv_tokens=_count(kv * decode_scale),
                )
            )
        return self._asked(lambda: engine.queued_prefill_s(queries), group)

    def decode_itl_s(
        self,
        group: Group,
        *,
        decode_scale: float = 1.0,
        include_queued_decode: bool = False,
        include_queued_prefill: bool = False,
    ) -> float | None:
        """Time of a step with the scaled decode load and one average request more. None if it cannot be told."""
        engine = self._engine
        if engine is None:
            return None
        length = self.avg_decode_length
        queries: list[RankQuery] = []
        for fpm in group.ranks:
            queued, scheduled = fpm.queued_requests, fpm.scheduled_requests
            requests, kv = _decode_load(fpm, include_queued_decode)
            if include_queued_prefill:
                requests, kv = requests + queued.num_prefill_requests, kv + queued.sum_prefill_tokens
            is_mixed = self.kind == "aggregated"
            queries.append(
                RankQuery(
                    prefill_requests=0 if is_mixed else _count(scheduled.num_prefill_requests),
                    prefill_tokens=0 if is_mixed else _count(scheduled.sum_prefill_tokens),
                    decode_requests=_count(requests * decode_scale + (1 if length > 0 else 0)),
                    decode_kv_tokens=_count(kv * decode_scale + length),
                )
            )
        return self._asked(lambda: engine.decode_itl_s(queries), group)

    def capacity(
        self,
        *,
        isl: float,
        osl: float,
        ttft_ms: float | None = None,
        itl_ms: float | None = None,
        kv_hit_rate: float | None = None,
        accept_length: float | None = None,
    ) -> Capacity | None:
        """Requests per second of one engine: planner.md §15. None if the lengths are none or the model cannot tell."""
        engine = self._engine
        if engine is None:
            return None
        query = CapacityQuery(isl, osl, ttft_ms, itl_ms, kv_hit_rate, 1.0 if accept_length is None else accept_length)
        return self._asked(lambda: find_capacity(engine, query))

    def _asked(self, question: Callable[[], T | None], group: Group | None = None) -> T | None:
        """The answer; None, and a warning, if the ranks of `group` or an iteration of the question cannot be."""
        try:
            if group is not None:
                validate_iteration(group.ranks, self._attention_dp)
            return question()
        except ValueError as err:
            self._warn([f"{self.kind} performance model was asked of an iteration that cannot be: {err}"])
            return None

    def _note_all(self, fpms: Sequence[Fpm]) -> list[str]:
        """Takes the averages; returns a warning for each that cannot be used."""
        warnings: list[str] = []
        for fpm in fpms:
            if not _is_usable(fpm):
                warnings.append(f"forward pass metrics of worker {fpm.worker_id!r} rank {fpm.dp_rank} left out: {_fault_of(fpm)}")
                continue
            work = fpm.scheduled_requests
            self._avg_isl.add(work.sum_prefill_tokens / work.num_prefill_requests if work.num_prefill_requests > 0 else 0.0)
            if work.num_decode_requests > 0:
                self._avg_decode_length.add(work.sum_decode_kv_tokens / work.num_decode_requests)
        return warnings

    def _tune(self, ranks: tuple[Fpm, ...]) -> list[str]:
        """Keeps the iteration for a model made later; a rejected one is not kept, and told."""
        if self._engine is not None:
            try:
                self._engine.tune(ranks)
            except ValueError as err:
                return [f"{self.kind} performance model rejected an iteration of worker {ranks[0].worker_id!r}: {err}"]
        self._iterations.append(ranks)
        return []

    def _warn(self, warnings: list[str]) -> Sequence[str]:
        if warnings:
            self._last_warning = warnings[-1]
        return warnings


def _decode_load(fpm: Fpm, include_queued: bool) -> tuple[int, int]:
    """Requests and KV tokens of the decode work that goes on, or with what waits."""
    queued, scheduled = fpm.queued_requests, fpm.scheduled_requests
    if not include_queued:
        return scheduled.num_decode_requests, scheduled.sum_decode_kv_tokens
    return scheduled.num_decode_requests + queued.num_decode_requests, scheduled.sum_decode_kv_tokens + queued.sum_decode_kv_tokens


def _count(value: float) -> int:
    return min(ceil(value), U32_MAX) if value > 0 else 0


def _is_usable(fpm: Fpm) -> bool:
    return fpm.version == 1 and not _counts_are_wrong(fpm)


def _counts_are_wrong(fpm: Fpm) -> bool:
    """Counts that no engine can have: negative, not a number, or above 32 bits (the original refuses those)."""
    s, q = fpm.scheduled_requests, fpm.queued_requests
    return not (
        0 <= s.num_prefill_requests <= U32_MAX
        and 0 <= s.sum_prefill_tokens <= U32_MAX
        and 0 <= s.sum_prefill_kv_tokens <= U32_MAX
        and 0 <= s.num_decode_requests <= U32_MAX
        and 0 <= s.sum_decode_kv_tokens <= U32_MAX
        and 0 <= q.num_prefill_requests <= U32_MAX
        and 0 <= q.sum_prefill_tokens <= U32_MAX
        and 0 <= q.num_decode_requests <= U32_MAX
        and 0 <= q.sum_decode_kv_tokens <= U32_MAX
    )


def _fault_of(fpm: Fpm) -> str:
    return f"version {fpm.version} is not 1" if fpm.version != 1 else "a count is negative, no number or above 32 bits"
