"""How many requests per second one engine can serve within its targets.

Planner behaviour: planner.md §15. The search tries up to 128 batch sizes and keeps the best.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from math import ceil, inf, isfinite

from controllers.planner.perfmodel.engine import Engine
from controllers.planner.perfmodel.options import U32_MAX

__all__ = ("Capacity", "CapacityQuery", "find_capacity")

_MOST_CANDIDATES = 128


@dataclass(frozen=True, slots=True)
class CapacityQuery:
    """Mean lengths in tokens, targets in milliseconds (None: no target), share of prompts found in cache, tokens per decode step."""

    isl: float
    osl: float
    ttft_ms: float | None = None
    itl_ms: float | None = None
    kv_hit_rate: float | None = None
    accept_length: float = 1.0


@dataclass(frozen=True, slots=True)
class Capacity:
    """The best batch. `eligible`: it meets the targets. Times in milliseconds, None where the kind of worker has none."""

    rps: float
    eligible: bool
    batch: int
    ttft_ms: float | None = None
    itl_ms: float | None = None
    e2e_latency_ms: float | None = None


@dataclass(frozen=True, slots=True)
class _Ask:
    isl: int
    osl: int
    context: int
    prefill_isl: int
    ttft_ms: float
    itl_ms: float
    accept: float


class _Unknown(Exception):
    """The engine cannot tell the time of a candidate."""


def uncached_share(kv_hit_rate: float | None) -> float:
    """Share of prompt tokens that must be computed, at least 0.05; all if the rate is unknown."""
    if kv_hit_rate is None or not isfinite(kv_hit_rate):
        return 1.0
    return 1.0 - min(max(kv_hit_rate, 0.0), 0.95)


def find_capacity(engine: Engine, query: CapacityQuery) -> Capacity | None:
    """None for lengths that are no lengths, if no batch fits, or if the engine cannot tell the time of some batch."""
    ask = _ask_of(engine, query)
    if ask is None:
        return None
    search = {"prefill": _prefill, "decode": _decode, "aggregated": _aggregated}[engine.kind]
    best: Capacity | None = None
    try:
        for found in search(engine, ask):
            if best is None or (found.eligible, found.rps) > (best.eligible, best.rps):
                best = found
    except _Unknown:
        return None
    return best


def _ask_of(engine: Engine, query: CapacityQuery) -> _Ask | None:
    isl, osl = _whole(query.isl), _whole(query.osl)
    if isl is None or (osl is None and engine.kind != "prefill"):
        return None
    osl = osl or 1
    accept = 1.0 if engine.kind == "prefill" or not isfinite(query.accept_length) else max(1.0, query.accept_length)
    return _Ask(
        isl=isl,
        osl=osl,
        context=max(1, min(isl + osl // 2, U32_MAX)),
        prefill_isl=max(1, ceil(isl * uncached_share(query.kv_hit_rate))),
        ttft_ms=inf if query.ttft_ms is None else query.ttft_ms,
        itl_ms=inf if query.itl_ms is None else query.itl_ms,
        accept=accept,
    )


def _whole(length: float) -> int | None:
    """Tokens, rounded up; None if it is no positive length."""
    return min(ceil(length), U32_MAX) if 0 < length < inf else None


def _candidates(most: int) -> Iterator[int]:
    if most <= _MOST_CANDIDATES:
        return iter(range(1, most + 1))
    return (1 + i * (most - 1) // (_MOST_CANDIDATES - 1) for i in range(_MOST_CANDIDATES))


def _step_s(engine: Engine, tokens: int, requests: int, kv: int) -> float:
    """Raises _Unknown."""
    step = engine.split_step_s(tokens, requests, kv)
    if step is None:
        raise _Unknown
    return step


def _chunked_s(engine: Engine, tokens: int, requests: int = 0, kv: int = 0) -> float:
    """Prefill of so many tokens beside a decode load that stays. Raises _Unknown."""
    chunk = engine.limits.max_num_tokens
    full, tail = divmod(tokens, chunk)
    total = full * _step_s(engine, chunk, requests, kv) if full else 0.0
    return total + _step_s(engine, tail, requests, kv) if tail else total


def _prefill(engine: Engine, ask: _Ask) -> Iterator[Capacity]:
    limits = engine.limits
    most = 1 if ask.prefill_isl > limits.max_num_tokens else min(limits.max_batch_size, limits.max_num_tokens // ask.prefill_isl)
    for batch in _candidates(most):
        time_s = _chunked_s(engine, min(ask.prefill_isl * batch, U32_MAX))
        if time_s > 0:
            ms = time_s * 1000.0
            yield Capacity(rps=batch / time_s, eligible=ms <= ask.ttft_ms, batch=batch, ttft_ms=ms, e2e_latency_ms=ms)


def _decode(engine: Engine, ask: _Ask) -> Iterator[Capacity]:
    for batch in _candidates(_largest_batch(engine, ask)):
        itl = _step_s(engine, 0, batch, min(batch * ask.context, U32_MAX)) / ask.accept
        if itl > 0:
            yield Capacity(rps=batch / (ask.osl * itl), eligible=itl * 1000.0 <= ask.itl_ms, batch=batch, itl_ms=itl * 1000.0)


def _aggregated(engine: Engine, ask: _Ask) -> Iterator[Capacity]:
    budget = engine.limits.max_num_tokens
    if budget <= 1:
        return
    for batch in _candidates(min(_largest_batch(engine, ask), max(1, budget - 1))):
        need = ceil(batch * ask.accept * ask.prefill_isl / ask.osl)
        if need > budget - batch:
            continue
        tokens, kv = min(budget, need), min(batch * ask.context, U32_MAX)
        itl = _step_s(engine, tokens, batch, kv) / ask.accept
        ttft = _chunked_s(engine, min(tokens + ask.prefill_isl, U32_MAX), batch, kv)
        if itl > 0 and ttft > 0:
            yield Capacity(
                rps=batch / (ask.osl * itl),
                eligible=ttft * 1000.0 <= ask.ttft_ms and itl * 1000.0 <= ask.itl_ms,
                batch=batch,
                ttft_ms=ttft * 1000.0,
                itl_ms=itl * 1000.0,
                e2e_latency_ms=(ttft + itl * (ask.osl - 1)) * 1000.0,
            )


def _largest_batch(engine: Engine, ask: _Ask) -> int:
    return min(engine.limits.max_batch_size, engine.limits.max_kv_tokens // ask.context)
