"""Times of whole queues and steps, asked of a model of single iterations.

Planner behaviour: planner.md §14.2. Times are seconds here, milliseconds in the model.
"""

from collections import deque
from collections.abc import Sequence
from itertools import pairwise
from math import ceil, isfinite
from typing import NamedTuple, Protocol

from controllers.planner.fpm import Fpm
from controllers.planner.perfmodel.options import U32_MAX, Limits, ModelDiagnostics, WorkerKind
from controllers.planner.perfmodel.regression import RankLoad

__all__ = ("Core", "Engine", "MovingAverage", "RankQuery", "validate_iteration")


class Core(Protocol):
    """A model of one iteration of all ranks."""

    def tune(self, ranks: Sequence[RankLoad]) -> None:
        """Learns from one iteration. Raises ValueError if it contradicts itself."""
        ...

    def estimate_ms(self, ranks: Sequence[RankLoad]) -> float | None:
        """None if it cannot be told. Raises ValueError if the iteration contradicts itself."""
        ...

    def diagnostics(self) -> ModelDiagnostics: ...


class RankQuery(NamedTuple):
    """What waits at a rank and what it runs."""

    queued_requests: int = 0
    queued_tokens: int = 0
    prefill_requests: int = 0
    prefill_tokens: int = 0
    decode_requests: int = 0
    decode_kv_tokens: int = 0


class MovingAverage:
    """Mean of the last `window` values; starts with the first positive one, 0.0 before."""

    def __init__(self, window: int) -> None:
        self._values: deque[float] = deque(maxlen=window)
        self._sum = 0.0
        self._until_exact = window

    def add(self, value: float) -> None:
        if not self._values and not value > 0:
            return
        if len(self._values) == self._values.maxlen:
            self._sum -= self._values[0]
        self._values.append(value)
        self._sum += value
        self._until_exact -= 1
        if self._until_exact <= 0:
            # Once per window the sum is made anew, so that rounding does not pile up.
            self._sum = sum(self._values)
            self._until_exact = len(self._values)

    @property
    def mean(self) -> float:
        return self._sum / len(self._values) if self._values else 0.0


def validate_iteration(ranks: Sequence[Fpm], attention_dp: int) -> None:
    """Raises ValueError if these are not the ranks of one worker of `attention_dp` ranks."""
    if len(ranks) != attention_dp:
        raise ValueError(f"expected {attention_dp} attention-DP rank metrics, got {len(ranks)}")
    for fpm in ranks:
        if fpm.version not in (0, 1):
            raise ValueError(f"unsupported schema version for ForwardPassMetrics: got {fpm.version}, expected 1")
    if attention_dp > 1:
        seen = {fpm.dp_rank for fpm in ranks}
        if len(seen) != attention_dp or not all(0 <= rank < attention_dp for rank in seen):
            raise ValueError(f"attention-DP ranks must be 0 to {attention_dp - 1}, each once")


def _load_of(fpm: Fpm) -> RankLoad:
    s = fpm.scheduled_requests
    return RankLoad(
        s.num_prefill_requests, s.sum_prefill_tokens, s.sum_prefill_kv_tokens, s.num_decode_requests, s.sum_decode_kv_tokens, fpm.wall_time
    )


class Engine:
    """A worker of one kind with its limits, and the core that knows its iterations."""

    def __init__(self, kind: WorkerKind, limits: Limits, core: Core, *, attention_dp: int = 1, window: int = 64) -> None:
        self.kind: WorkerKind = kind
        self.limits = limits
        self.attention_dp = attention_dp
        self._core = core
        self._typical_requests = MovingAverage(window)
        self._typical_tokens = MovingAverage(window)

    def tune(self, ranks: Sequence[Fpm]) -> None:
        """Learns from one iteration. Raises ValueError if it is none of this worker."""
        validate_iteration(ranks, self.attention_dp)
        loads = [_load_of(fpm) for fpm in ranks]
        self._core.tune(loads)
        if self.kind == "aggregated":
            busiest = max(loads, key=lambda load: load.prefill_tokens + load.decode_kv_tokens + load.decode_requests)
            self._typical_requests.add(busiest.prefill_requests)
            self._typical_tokens.add(busiest.prefill_tokens)

    def diagnostics(self) -> ModelDiagnostics:
        return self._core.diagnostics()

    def step_s(self, loads: Sequence[RankLoad]) -> float | None:
        """One iteration. None if it cannot be told, or would be no number."""
        ms = self._core.estimate_ms(loads)
        if ms is None or not isfinite(ms):
            return None
        return max(ms, 0.0) / 1000.0

    def split_step_s(self, prefill_tokens: int, decode_requests: int, decode_kv_tokens: int) -> float | None:
        """One iteration with these totals spread evenly over the ranks, the first ones taking what is left."""
        n = self.attention_dp
        if n == 1:
            return self.step_s((RankLoad(min(prefill_tokens, 1), prefill_tokens, 0, decode_requests, decode_kv_tokens),))
        shares = [_shares(total, n) for total in (prefill_tokens, decode_requests, decode_kv_tokens)]
        return self.step_s([RankLoad(min(tokens, 1), tokens, 0, requests, kv) for tokens, requests, kv in zip(*shares, strict=True)])

    def queued_prefill_s(self, ranks: Sequence[RankQuery]) -> float | None:
        """Until all queued prefill is done, in chunks as large as a step allows. None for decode workers, or if it cannot be told."""
        if self.kind == "decode":
            return None
        chunk = self.limits.max_num_tokens
        if len(ranks) == 1:
            return self._queued_prefill_of_one_s(ranks[0], chunk)
        parts = [divmod(rank.queued_tokens, chunk) for rank in ranks]
        ends = {0}
        for full, tail in parts:
            ends.update((full, full + 1) if tail else (full,))
        total = 0.0
        steps = sorted(ends)
        for start, end in pairwise(steps):
            loads = [
                self._chunk(rank, chunk if start < full else tail if start == full else 0)
                for rank, (full, tail) in zip(ranks, parts, strict=True)
            ]
            step = self.step_s(loads)
            if step is None:
                return None
            total += step * (end - start)
        return total

    def _queued_prefill_of_one_s(self, rank: RankQuery, chunk: int) -> float | None:
        full, tail = divmod(rank.queued_tokens, chunk)
        total = 0.0
        for tokens, steps in ((chunk, full), (tail, 1 if tail else 0)):
            step = self.step_s((self._chunk(rank, tokens),)) if steps else 0.0
            if step is None:
                return None
            total += step * steps
        return total

    def _chunk(self, rank: RankQuery, tokens: int) -> RankLoad:
        requests = max(1, rank.queued_requests) if tokens else 0
        if self.kind == "aggregated":
            return RankLoad(requests, tokens, 0, rank.decode_requests, rank.decode_kv_tokens)
        return RankLoad(requests, tokens)

    def decode_itl_s(self, ranks: Sequence[RankQuery]) -> float | None:
        """One step of decode. None for prefill workers, or if it cannot be told."""
        if self.kind == "prefill":
            return None
        typical = self._typical_prefill() if self.kind == "aggregated" else (0, 0)
        loads: list[RankLoad] = []
        for rank in ranks:
            requests, tokens = rank.prefill_requests, rank.prefill_tokens
            if self.kind == "aggregated" and not (requests or tokens):
                requests, tokens = typical
            loads.append(RankLoad(requests, tokens, 0, rank.decode_requests, rank.decode_kv_tokens))
        return self.step_s(loads)

    def _typical_prefill(self) -> tuple[int, int]:
        tokens = min(ceil(self._typical_tokens.mean), U32_MAX)
        return max(min(ceil(self._typical_requests.mean), U32_MAX), 1 if tokens else 0), tokens


def _shares(total: int, n: int) -> list[int]:
    each, left = divmod(total, n)
    return [each + 1] * left + [each] * (n - left)
