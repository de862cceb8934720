"""Small cases and traces, and what comes of them."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from controllers.planner.replay.case import parse_case, parse_line
from controllers.planner.replay.run import Played, Replay, record_of, to_json

ENGINE = {
    "max_num_batched_tokens": 8192,
    "max_num_seqs": 256,
    "context_length": 10_000,
    "max_kv_tokens": 100_000,
    "kv_cache_block_size": 16,
    "num_gpu": 1,
}
BOTH = {"prefill": ENGINE, "decode": ENGINE}
SLA = {"optimization_target": "sla", "throughput_adjustment_interval_seconds": 60, "load_adjustment_interval_seconds": 10}
MEASURED = {
    "prefill": [
        {"wall_time": 0.01 + tokens * 1e-4, "scheduled_requests": {"num_prefill_requests": 1, "sum_prefill_tokens": tokens}}
        for tokens in range(500, 8000, 500)
    ],
    "decode": [
        {"wall_time": 0.005 + n * 1e-4, "scheduled_requests": {"num_decode_requests": n, "sum_decode_kv_tokens": n * length}}
        for n in (1, 4, 16, 64)
        for length in (500, 1000, 1500)
    ],
}
MIXED = [
    {
        "wall_time": 0.01 + tokens * 1e-4 + kv * 1e-7,
        "scheduled_requests": {
            "num_prefill_requests": 1,
            "sum_prefill_tokens": tokens,
            "num_decode_requests": 1 + kv // 1000,
            "sum_decode_kv_tokens": kv,
        },
    }
    for tokens in (500, 2000, 4000, 8000)
    for kv in (1000, 10_000, 40_000, 90_000)
]


def case_text(config: Mapping[str, Any], **fields: Any) -> str:
    """Of a configuration without GPU ceiling and as Planner 1.5.1 behaves, unless it says otherwise."""
    plain = {"max_gpu_budget": -1, "max_throughput_scaling_replicas": None}
    return json.dumps({"planner_config": {**plain, **config}, "capabilities": BOTH, **fields})


def started(config: Mapping[str, Any], **fields: Any) -> Replay:
    return Replay(parse_case(case_text(config, **fields), {}))


def ticks(replay: Replay, lines: Sequence[Mapping[str, Any]]) -> list[Played]:
    return [replay.play(parse_line(json.dumps(line))) for line in lines]


def records(config: Mapping[str, Any], lines: Sequence[Mapping[str, Any]], **fields: Any) -> list[dict[str, Any]]:
    """Lines of output, as a reader sees them."""
    return [json.loads(to_json(record_of(played))) for played in ticks(started(config, **fields), lines)]


def prefills(*queued: int) -> list[dict[str, Any]]:
    """A prefill engine for each number of prompt tokens that wait."""
    return [
        {
            "worker_id": f"p{i}",
            # As long as the measured ones are on average, so that the model's idea of the next request stays.
            "scheduled_requests": {"num_prefill_requests": 1, "sum_prefill_tokens": 4000},
            "queued_requests": {"num_prefill_requests": int(tokens > 0), "sum_prefill_tokens": tokens},
        }
        for i, tokens in enumerate(queued)
    ]


def decodes(*kv: int) -> list[dict[str, Any]]:
    """A decode engine for each number of KV tokens in use."""
    return [
        {"worker_id": f"d{i}", "scheduled_requests": {"num_decode_requests": int(tokens > 0), "sum_decode_kv_tokens": tokens}}
        for i, tokens in enumerate(kv)
    ]


def line(prefill: Any = None, decode: Any = None, fpm: Mapping[str, Any] | None = None, **fields: Any) -> dict[str, Any]:
    return {"workers": {"prefill": prefill, "decode": decode, **fields.pop("workers", {})}, **({"fpm": fpm} if fpm else {}), **fields}


def idle(prefill: int | None, decode: int | None, **fields: Any) -> dict[str, Any]:
    """All engines report a load between the thresholds of the target `throughput`."""
    fpm = {"prefill": prefills(*[5000] * (prefill or 0)), "decode": decodes(*[80_000] * (decode or 0))}
    return line(prefill, decode, fpm, **fields)


def scaled(record: Mapping[str, Any]) -> tuple[int | None, int | None] | None:
    scale_to = record["scale_to"]
    return None if scale_to is None else (scale_to["prefill"], scale_to["decode"])
