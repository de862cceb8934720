"""Keeps proposals within GPU budgets. Counts are replicas, costs GPUs of one replica. Source: planner.md §17.1."""

import math
from typing import NamedTuple

from controllers.planner.config.model import PlannerConfig
from controllers.planner.types import Capabilities

__all__ = ("Bounds", "bounds_for_total", "clamp_pair", "clamp_single", "fill_ceiling", "footprint_error", "scaled_down", "scaled_up")

# Above this a product with a float might overflow; there exact arithmetic takes over.
FLOAT_BITS = 900


class Bounds(NamedTuple):
    """Whether a total is within bounds, and if not, why."""

    ok: bool
    reason: str = ""


def bounds_for_total(total: int, min_gpus: int, max_gpus: int, tolerance: int) -> Bounds:
    """Negative bounds do not bind. Only the floor has a tolerance; the ceiling is never relaxed."""
    if max_gpus >= 0 and total > max_gpus:
        return Bounds(False, f"total {total} exceeds ceiling ({max_gpus})")
    if min_gpus >= 0 and total < min_gpus - tolerance:
        floor = f"{min_gpus} - tol {tolerance}" if tolerance else f"{min_gpus}"
        return Bounds(False, f"total {total} below floor ({floor})")
    return Bounds(True)


def clamp_pair(
    num_p: int, num_d: int, p_gpu: int, d_gpu: int, min_gpus: int, max_gpus: int, prefill_min: int, decode_min: int | None = None
) -> tuple[int, int]:
    """Prefill and decode replicas in about the same proportion within the bounds; (0, 0) where the minimums alone exceed the ceiling.

    `decode_min` None: as `prefill_min`. GPUs left under a ceiling go to decode, which may so get more than asked for. A floor that cannot
    be met without passing the ceiling is left unmet. Costs of 0 or less: unchanged.
    """
    least_d = prefill_min if decode_min is None else decode_min
    if (min_gpus < 0 and max_gpus < 0) or p_gpu <= 0 or d_gpu <= 0:
        return num_p, num_d
    total = num_p * p_gpu + num_d * d_gpu
    tolerance = max(p_gpu, d_gpu) if min_gpus >= 0 and max_gpus >= 0 else 0
    if bounds_for_total(total, min_gpus, max_gpus, tolerance).ok:
        return num_p, num_d
    if max_gpus >= 0 and total > max_gpus:
        if prefill_min * p_gpu + least_d * d_gpu > max_gpus:
            return 0, 0
        return fill_ceiling((num_p, total), (p_gpu, d_gpu), max_gpus, (prefill_min, least_d))
    wanted_p = _half(min_gpus, p_gpu) if total <= 0 else scaled_up(num_p, min_gpus, total)
    raised_p = max(prefill_min, wanted_p)
    raised_d = max(least_d, -(-max(0, min_gpus - raised_p * p_gpu) // d_gpu))
    if max_gpus >= 0 and raised_p * p_gpu + raised_d * d_gpu > max_gpus:
        return num_p, num_d
    return raised_p, raised_d


def fill_ceiling(asked: tuple[int, int], costs: tuple[int, int], ceiling: int, least: tuple[int, int]) -> tuple[int, int]:
    """Prefill in proportion, what is left to decode. asked: prefill replicas and the total cost, which is above `ceiling`."""
    (num_p, total), (p_cost, d_cost), (least_p, least_d) = asked, costs, least
    replicas_p = max(least_p, min((ceiling - least_d * d_cost) // p_cost, scaled_down(num_p, ceiling, total)))
    return replicas_p, max(least_d, (ceiling - replicas_p * p_cost) // d_cost)


def clamp_single(desired: int, engine_gpu: int, min_gpus: int, max_gpus: int, min_endpoint: int) -> int:
    """Replicas of the only role within the bounds; 0 where the minimum alone exceeds the ceiling."""
    if (min_gpus < 0 and max_gpus < 0) or engine_gpu <= 0:
        return desired
    total = desired * engine_gpu
    tolerance = engine_gpu if min_gpus >= 0 and max_gpus >= 0 else 0
    if bounds_for_total(total, min_gpus, max_gpus, tolerance).ok:
        return desired
    if max_gpus >= 0 and total > max_gpus:
        return 0 if min_endpoint * engine_gpu > max_gpus else max(min_endpoint, max_gpus // engine_gpu)
    return max(min_endpoint, -(-min_gpus // engine_gpu))


def scaled_down(count: int, part: int, whole: int) -> int:
    """floor(count × (part / whole)), rounded as the quotient in floating point is."""
    if max(abs(count), abs(part), abs(whole)).bit_length() > FLOAT_BITS:
        return count * part // whole
    return math.floor(count * (part / whole))


def scaled_up(count: int, part: int, whole: int) -> int:
    """ceil(count × (part / whole)), likewise."""
    if max(abs(count), abs(part), abs(whole)).bit_length() > FLOAT_BITS // 2:
        return -(-count * part // whole)
    return math.ceil(count * (part / whole))


def _half(gpus: int, cost: int) -> int:
    """Replicas of which half the GPUs are used up, rounded up."""
    return -(-gpus // (2 * cost))


def footprint_error(config: PlannerConfig, capabilities: Capabilities) -> str | None:
    """Why the minimums cannot be met at all: they alone exceed the GPU budget or the power limit. Unknown costs count as none."""
    minimums = config.active_minimums()
    known = [(least, facts) for role, least in minimums.items() if (facts := capabilities.of(role)) is not None]
    gpus = sum(least * (facts.gpu_cost or 0) for least, facts in known)
    text = " + ".join(f"{least} {role}" for role, least in minimums.items())
    if 0 <= config.max_gpu_budget < gpus:
        return f"the minimum of {text} takes {gpus} GPUs, max_gpu_budget is {config.max_gpu_budget}: raise it or lower the minimums"
    watts = sum(least * (facts.power_watts_per_replica or 0) for least, facts in known)
    limit = config.total_gpu_power_limit
    if config.enable_power_awareness and limit is not None and watts > limit:
        return f"the minimum of {text} draws {watts} W, total_gpu_power_limit is {limit}: raise it or lower the minimums"
    return None
