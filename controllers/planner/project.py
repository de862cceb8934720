"""From what the pipeline agreed on to what is written: floors, GPU budget, power. Source: planner.md §17.3.

Nothing here remembers anything: a tick's decision is a function of targets, counts, configuration and capabilities.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from controllers.planner.budget import clamp_single
from controllers.planner.config.model import PlannerConfig
from controllers.planner.merge import Target
from controllers.planner.power import PowerLoad, PowerReason, apply_power_budget
from controllers.planner.propose.limits import gpu_cost, pair_within, single_within
from controllers.planner.types import Capabilities, Mode, Role, ScalingDecision, WorkerCounts

__all__ = ("Projection", "project")

Proposal: TypeAlias = dict[Role, int | None]
ROLES: tuple[Role, Role] = ("prefill", "decode")


@dataclass(frozen=True, slots=True)
class Projection:
    """decision None: leave all as it is. power_reason: what power did to the proposal. repaired: roles that were below their minimum.

    With PowerReason.MINIMUM_INFEASIBLE there is never a decision: the minimums alone would draw more than the limit.
    """

    decision: ScalingDecision | None
    power_reason: PowerReason | None = None
    repaired: tuple[Role, ...] = ()


@dataclass(frozen=True, slots=True)
class _Facts:
    """What projection reads of a tick. proposed: roles that a plugin of PROPOSE named. short: ready, but fewer than the minimum."""

    counts: WorkerCounts
    config: PlannerConfig
    capabilities: Capabilities
    proposed: frozenset[Role]
    short: frozenset[Role]

    @property
    def mends_pair(self) -> bool:
        return self.config.mode is Mode.DISAGG and bool(self.short)

    def watts(self, role: Role) -> int | None:
        facts = self.capabilities.of(role)
        return None if facts is None else facts.power_watts_per_replica


def project(
    targets: Sequence[Target],
    proposed: Collection[str],
    counts: WorkerCounts,
    config: PlannerConfig,
    capabilities: Capabilities,
    *,
    taken_back: Collection[Role] = (),
) -> Projection:
    """Targets of CONSTRAIN as a decision. `proposed`: components that overrides of PROPOSE named. Roles outside the mode are left out.

    taken_back: roles of which requested replicas are given up (`propose.pending`): for them the news is what differs from the request.
    """
    roles = config.roles
    repaired: tuple[Role, ...] = tuple(role for role in roles if _is_short(role, counts, config))
    named: frozenset[Role] = frozenset(role for role in roles if role in proposed)
    facts = _Facts(counts, config, capabilities, named, frozenset(repaired))
    wanted: Proposal = dict.fromkeys(ROLES)
    for target in targets:
        for role in roles:
            if target.component == role and target.replicas is not None:
                wanted[role] = target.replicas
    for role in repaired:
        wanted[role] = max(wanted[role] or 0, config.effective_min(role))
    if config.enable_power_awareness:
        return _with_power(wanted, facts, repaired)
    if _is_unchanged(wanted, counts, taken_back):
        return Projection(None)
    mended = _without_echoes(_clamp(wanted, facts), facts)
    return Projection(None if _is_unchanged(mended, counts, taken_back) else _decision(mended), repaired=repaired)


def _is_short(role: Role, counts: WorkerCounts, config: PlannerConfig) -> bool:
    """Whether the minimum is to be restored; not while anything is under way."""
    ready = counts.ready(role)
    return ready is not None and ready < config.effective_min(role) and not any(_is_scaling(each, counts) for each in config.roles)


def _is_scaling(role: Role, counts: WorkerCounts) -> bool:
    ready, expected = counts.ready(role), counts.expected(role)
    return counts.is_scaling(role) or (ready is not None and expected is not None and ready != expected)


def _is_unchanged(wanted: Proposal, counts: WorkerCounts, taken_back: Collection[Role]) -> bool:
    return all(
        number is None or number == (counts.expected(role) if role in taken_back else counts.ready(role)) for role, number in wanted.items()
    )


def _decision(wanted: Proposal) -> ScalingDecision | None:
    return None if wanted["prefill"] is None and wanted["decode"] is None else ScalingDecision(wanted["prefill"], wanted["decode"])


def _without_echoes(wanted: Proposal, facts: _Facts) -> Proposal:
    """While a minimum is restored, a role that nobody spoke of and that stays as it is, is not written."""
    if not facts.mends_pair:
        return wanted
    return {
        role: None if number == facts.counts.ready(role) and role not in facts.proposed | facts.short else number
        for role, number in wanted.items()
    }


def _with_power(wanted: Proposal, facts: _Facts, repaired: tuple[Role, ...]) -> Projection:
    """The same where power counts: only roles that somebody spoke of, and compared with what is expected, not with what is ready."""
    if not facts.mends_pair:
        wanted = {role: number if role in facts.proposed | facts.short else None for role, number in wanted.items()}
    if _decision(wanted) is None:
        return Projection(None)
    within = _hold_growth(_clamp(wanted, facts), facts)
    prefill, decode = (
        PowerLoad(within[role], facts.counts.ready(role), facts.watts(role), facts.config.effective_min(role)) for role in ROLES
    )
    limit = facts.config.total_gpu_power_limit
    if limit is None:
        raise AssertionError("the configuration has checked that there is a limit")
    verdict = apply_power_budget(prefill, decode, limit)
    if verdict.reason is PowerReason.MINIMUM_INFEASIBLE:
        return Projection(None, verdict.reason, repaired)
    fitting = _without_echoes({"prefill": verdict.num_p, "decode": verdict.num_d}, facts)
    news: Proposal = {role: None if number == facts.counts.expected(role) else number for role, number in fitting.items()}
    return Projection(_decision(news), verdict.reason, repaired)


def _hold_growth(wanted: Proposal, facts: _Facts) -> Proposal:
    """During a rollout nobody knows what draws power, so nothing grows."""
    rolling = any(
        facts.counts.ready(role) is not None and facts.counts.expected(role) is None and (facts.watts(role) or 0) > 0 for role in ROLES
    )
    if not rolling:
        return wanted
    return {role: None if number is not None and number > (facts.counts.ready(role) or 0) else number for role, number in wanted.items()}


def _clamp(wanted: Proposal, facts: _Facts) -> Proposal:
    """Within the GPU budget. A role without proposal gets none."""
    num_p, num_d = (facts.counts.ready(role) if wanted[role] is None else wanted[role] for role in ROLES)
    if facts.config.mode is not Mode.DISAGG or num_p is None or num_d is None:
        return {role: _alone(number, role, facts) for role, number in wanted.items()}
    p_gpu, d_gpu = gpu_cost(facts.capabilities, "prefill"), gpu_cost(facts.capabilities, "decode")
    if facts.config.enable_power_awareness and None in wanted.values() and p_gpu is not None and d_gpu is not None:
        return _residual(wanted, {"prefill": p_gpu, "decode": d_gpu}, facts)
    pair = pair_within(num_p, num_d, facts.config, facts.capabilities)
    return {role: None if wanted[role] is None else number for role, number in zip(ROLES, pair, strict=True)}


def _at_least(number: int | None, role: Role, facts: _Facts) -> int | None:
    return None if number is None else max(number, facts.config.effective_min(role))


def _alone(number: int | None, role: Role, facts: _Facts) -> int | None:
    """As if the role were the only one. Its minimum counts even if its cost is unknown."""
    raised = _at_least(number, role, facts)
    return None if raised is None else single_within(raised, role, facts.config, facts.capabilities)


def _residual(wanted: Proposal, costs: dict[Role, int], facts: _Facts) -> Proposal:
    """One role within what the other, which stays as it is, leaves of the budget."""
    role, other = ROLES if wanted["prefill"] is not None else ROLES[::-1]
    config, cost, least = facts.config, costs[role], facts.config.effective_min(role)
    desired, ready = _at_least(wanted[role], role, facts), facts.counts.ready(role)
    if desired is None:
        return wanted
    fixed = (facts.counts.ready(other) or 0) * costs[other]
    room = max(0, config.max_gpu_budget - fixed) if config.max_gpu_budget >= 0 else -1
    lacking = config.min_gpu_budget - fixed
    floor = -1 if config.min_gpu_budget < 0 or lacking <= 0 else lacking
    if 0 <= room < least * cost:
        return {**wanted, role: None if ready is None else min(desired, ready)}
    return {**wanted, role: clamp_single(desired, cost, floor, room, least)}
