"""Counts that can be trusted, and the floors and GPU budget that every decision keeps to."""

from controllers.planner.budget import clamp_pair, clamp_single
from controllers.planner.config.model import PlannerConfig
from controllers.planner.types import Capabilities, Role, WorkerCounts

__all__ = ("gpu_cost", "is_scaling", "pair_within", "ready_count", "single_within")


def ready_count(counts: WorkerCounts, role: Role) -> int | None:
    """None if it is missing or no number of replicas."""
    ready = counts.ready(role)
    return ready if ready is not None and 0 <= ready < float("inf") else None


def is_scaling(counts: WorkerCounts, role: Role) -> bool:
    """Whether an earlier change of the role is under way. Source: planner.md §12."""
    expected = counts.expected(role)
    return counts.is_scaling(role) or (expected is not None and expected != counts.ready(role))


def pair_within(num_p: int, num_d: int, config: PlannerConfig, capabilities: Capabilities) -> tuple[int, int]:
    """Both roles raised to their minimums, then within the GPU budget if both costs are known."""
    least_p, least_d = config.effective_min("prefill"), config.effective_min("decode")
    raised_p, raised_d = max(num_p, least_p), max(num_d, least_d)
    p_gpu, d_gpu = gpu_cost(capabilities, "prefill"), gpu_cost(capabilities, "decode")
    if p_gpu is None or d_gpu is None:
        return raised_p, raised_d
    return clamp_pair(raised_p, raised_d, p_gpu, d_gpu, config.min_gpu_budget, config.max_gpu_budget, least_p, least_d)


def single_within(replicas: int, role: Role, config: PlannerConfig, capabilities: Capabilities) -> int:
    """The only role, raised to its minimum, within the GPU budget; unchanged, even below the minimum, if the cost is unknown."""
    cost, least = gpu_cost(capabilities, role), config.effective_min(role)
    if cost is None:
        return replicas
    return clamp_single(max(replicas, least), cost, config.min_gpu_budget, config.max_gpu_budget, least)


def gpu_cost(capabilities: Capabilities, role: Role) -> int | None:
    facts = capabilities.of(role)
    return None if facts is None else facts.gpu_cost
