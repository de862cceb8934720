"""Inputs of Planner for measurements: engines whose times follow a simple law, under a load that rises and falls."""

import json
from collections.abc import Iterator, Mapping
from math import pi, sin
from typing import Any

__all__ = ("CAPABILITIES", "case", "trace")

_ENGINE = {
    "max_num_batched_tokens": 8192,
    "max_num_seqs": 256,
    "context_length": 16384,
    "max_kv_tokens": 400_000,
    "kv_cache_block_size": 16,
    "num_gpu": 1,
}
CAPABILITIES: Mapping[str, Any] = {"prefill": _ENGINE, "decode": _ENGINE}
_SLA = {"optimization_target": "sla", "pre_deployment_sweeping_mode": "none", "ttft_ms": 900, "itl_ms": 18, "max_gpu_budget": 64}
_LOOPS = {"throughput_adjustment_interval_seconds": 60, "load_adjustment_interval_seconds": 10}


def _prefill_s(tokens: float) -> float:
    return 0.01 + 45e-6 * tokens


def _decode_s(requests: float, kv_tokens: float) -> float:
    return 0.006 + 2e-5 * requests + 7e-8 * kv_tokens


def case(**settings: Any) -> str:
    """JSON of a case; an sla target unless `optimization_target` says otherwise."""
    easy = settings.get("optimization_target", "sla") != "sla"
    config = {"pending_aware_scale_down": False, **({} if easy else {**_SLA, **_LOOPS}), **settings}
    return json.dumps({"planner_config": config, "capabilities": CAPABILITIES, "bootstrap_fpms": _bootstrap()})


def _bootstrap() -> dict[str, Any]:
    prefill = [_fpm("b", prefill=(1, tokens)) for tokens in range(200, 8000, 800)]
    decode = [_fpm("b", decode=(n, n * length)) for n in (1, 8, 16, 32, 64, 128) for length in (500, 2000, 3000)]
    mixed = [_fpm("b", prefill=(1, tokens), decode=(n, n * 3000)) for tokens in (500, 2000, 4000, 8000) for n in (1, 8, 16, 32, 64)]
    return {"prefill": prefill, "decode": decode, "agg": [*prefill, *decode, *mixed]}


def trace(ticks: int, *, agg: bool = False, engines: int = 2) -> Iterator[str]:
    """Lines that never repeat exactly, but need no random numbers."""
    for tick in range(ticks):
        load = 0.5 + 0.4 * sin(2 * pi * tick / 97) + 0.1 * sin(2 * pi * tick * 0.618)
        roles = ("decode",) if agg else ("prefill", "decode")
        fpm = {role: [_engine(role, tick, engine, load, agg=agg) for engine in range(engines)] for role in roles}
        yield json.dumps(
            {
                "workers": {**dict.fromkeys(roles, engines), "stable": True},
                "traffic": {
                    "num_req": 600 + 500 * load,
                    "isl": 3000 + 40 * load,
                    "osl": 150 + 10 * load,
                    "kv_hit_rate": 0.3 * load,
                    "accept_length": 1.0,
                },
                "fpm": fpm,
            }
        )


def _engine(role: str, tick: int, engine: int, load: float, *, agg: bool) -> dict[str, Any]:
    shift = (tick * 37 + engine * 101) % 1000
    tokens, requests = int(500 + 5000 * load) + shift, 4 + int(60 * load) + shift % 7
    prefill, decode = (2, tokens), (requests, requests * (2800 + shift // 5))
    waiting = int(max(0.0, load - 0.6) * 40_000) + shift
    if agg:
        return _fpm(f"w{engine}", prefill=prefill, decode=decode, waiting=waiting)
    if role == "prefill":
        return _fpm(f"w{engine}", prefill=prefill, waiting=waiting)
    return _fpm(f"w{engine}", decode=decode)


def _fpm(worker: str, prefill: tuple[int, int] = (0, 0), decode: tuple[int, int] = (0, 0), waiting: int = 0) -> dict[str, Any]:
    wall_s = (_prefill_s(prefill[1]) if prefill[1] else 0.0) + (_decode_s(*decode) if decode[0] else 0.0)
    return {
        "worker_id": worker,
        "wall_time": wall_s,
        "scheduled_requests": {
            "num_prefill_requests": prefill[0],
            "sum_prefill_tokens": prefill[1],
            "num_decode_requests": decode[0],
            "sum_decode_kv_tokens": decode[1],
        },
        "queued_requests": {"num_prefill_requests": 1 if waiting else 0, "sum_prefill_tokens": waiting},
    }
