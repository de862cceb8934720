"""Keeps proposals within the power that all engines may draw. Counts are replicas, powers watts. Source: planner.md §17.2."""

from enum import StrEnum
from typing import NamedTuple

from controllers.planner.budget import fill_ceiling

__all__ = ("PowerLoad", "PowerReason", "PowerVerdict", "apply_power_budget")


class PowerReason(StrEnum):
    """Why power changed a proposal."""

    REBALANCE_STAGED = "power_rebalance_staged"
    BUDGET_CLAMPED = "power_budget_clamped"
    SCALE_UP_SUPPRESSED = "power_budget_scale_up_suppressed"
    MINIMUM_INFEASIBLE = "power_minimum_infeasible"


class PowerLoad(NamedTuple):
    """One role. proposed None: is not to be changed; current None: unknown, counts as none; watts of a replica, None or 0: unknown."""

    proposed: int | None
    current: int | None
    watts: int | None
    least: int

    @property
    def is_adjustable(self) -> bool:
        return self.proposed is not None and self.watts is not None and self.watts > 0

    @property
    def present(self) -> int:
        return 0 if self.current is None else self.current

    @property
    def effective(self) -> int:
        """Replicas that there would be."""
        return self.present if self.proposed is None else self.proposed

    @property
    def draw(self) -> int:
        """Watts of one replica."""
        return self.watts or 0

    @property
    def held(self) -> int | None:
        """No more than there are now."""
        return None if self.proposed is None else min(self.proposed, self.present)


class PowerVerdict(NamedTuple):
    """Proposals that fit. MINIMUM_INFEASIBLE: the minimums alone draw too much, the proposals are as they came and must not be used."""

    num_p: int | None
    num_d: int | None
    reason: PowerReason | None = None


def apply_power_budget(prefill: PowerLoad, decode: PowerLoad, budget: int) -> PowerVerdict:
    """Proposals such that neither the end nor the way there draws more than `budget`, as far as the minimums and what runs allow."""
    unchanged = PowerVerdict(prefill.proposed, decode.proposed)
    both = prefill.is_adjustable and decode.is_adjustable
    if both and _is_risky_swap(prefill, decode, budget) and (held := _hold(prefill, decode)) != unchanged:
        return held
    if prefill.effective * prefill.draw + decode.effective * decode.draw <= budget:
        return unchanged
    if both:
        return _shrink_pair(prefill, decode, budget)
    if prefill.is_adjustable:
        num_p, reason = _shrink_one(prefill, budget - decode.effective * decode.draw)
        return PowerVerdict(num_p, decode.proposed, reason)
    if decode.is_adjustable:
        num_d, reason = _shrink_one(decode, budget - prefill.effective * prefill.draw)
        return PowerVerdict(prefill.proposed, num_d, reason)
    return unchanged


def _is_risky_swap(prefill: PowerLoad, decode: PowerLoad, budget: int) -> bool:
    """Whether one role grows while the other shrinks, and both at their larger count draw too much."""
    change_p, change_d = prefill.effective - prefill.present, decode.effective - decode.present
    if not (change_p > 0 > change_d or change_d > 0 > change_p):
        return False
    peak = max(prefill.present, prefill.effective) * prefill.draw + max(decode.present, decode.effective) * decode.draw
    return peak > budget


def _hold(prefill: PowerLoad, decode: PowerLoad) -> PowerVerdict:
    """First what shrinks; what grows waits for a later tick."""
    held = PowerVerdict(prefill.held, decode.held)
    return held._replace(reason=PowerReason.REBALANCE_STAGED) if held[:2] != (prefill.proposed, decode.proposed) else held


def _shrink_pair(prefill: PowerLoad, decode: PowerLoad, budget: int) -> PowerVerdict:
    if prefill.least * prefill.draw + decode.least * decode.draw > budget:
        return PowerVerdict(prefill.proposed, decode.proposed, PowerReason.MINIMUM_INFEASIBLE)
    total = prefill.effective * prefill.draw + decode.effective * decode.draw
    num_p, num_d = fill_ceiling((prefill.effective, total), (prefill.draw, decode.draw), budget, (prefill.least, decode.least))
    lesser_p = prefill._replace(proposed=min(prefill.effective, num_p))
    lesser_d = decode._replace(proposed=min(decode.effective, num_d))
    if _is_risky_swap(lesser_p, lesser_d, budget):
        return PowerVerdict(lesser_p.held, lesser_d.held, PowerReason.REBALANCE_STAGED)
    return PowerVerdict(lesser_p.proposed, lesser_d.proposed, PowerReason.BUDGET_CLAMPED)


def _shrink_one(role: PowerLoad, available: int) -> tuple[int, PowerReason | None]:
    if available < role.least * role.draw:
        num, reason = min(role.effective, role.present), PowerReason.SCALE_UP_SUPPRESSED
    else:
        num, reason = max(role.least, min(role.effective, available // role.draw)), PowerReason.BUDGET_CLAMPED
    return num, reason if num != role.effective else None
