"""Forward pass metrics: what an engine says about one iteration.

Format: planner.md §25. A msgpack (or JSON) map with the field names below; unknown keys are ignored, missing ones are zero.
"""

from collections.abc import Mapping
from typing import TypeAlias

from msgspec import Struct

__all__ = ("Fpm", "FpmMap", "Queued", "Scheduled", "WorkerRank")


class Scheduled(Struct, frozen=True, kw_only=True):
    """Requests of the iteration itself. Counts of requests and tokens; population variances."""

    num_prefill_requests: int = 0
    sum_prefill_tokens: int = 0
    var_prefill_length: float = 0.0
    sum_prefill_kv_tokens: int = 0
    num_decode_requests: int = 0
    sum_decode_kv_tokens: int = 0
    var_decode_kv_tokens: float = 0.0


class Queued(Struct, frozen=True, kw_only=True):
    """Requests that wait; decode requests that wait were preempted."""

    num_prefill_requests: int = 0
    sum_prefill_tokens: int = 0
    var_prefill_length: float = 0.0
    num_decode_requests: int = 0
    sum_decode_kv_tokens: int = 0
    var_decode_kv_tokens: float = 0.0


class Fpm(Struct, frozen=True, kw_only=True):
    """One message. `wall_time` in seconds; 0 with no work is a heartbeat of an idle engine."""

    version: int = 1
    worker_id: str = ""
    dp_rank: int = 0
    counter_id: int = 0
    wall_time: float = 0.0
    scheduled_requests: Scheduled = Scheduled()
    queued_requests: Queued = Queued()


WorkerRank: TypeAlias = tuple[str, int]
"""Worker id and rank of data parallelism."""

FpmMap: TypeAlias = Mapping[WorkerRank, Fpm]
"""The latest message of each rank of each worker of one role."""
