"""Load scaling: guards, what the roles ask for, floors and budget, and the reason that is told. Source: planner.md §12.1."""

from typing import TypeVar

from controllers.planner.propose.agg import AggOpinion, agg_opinion
from controllers.planner.propose.easy import easy_opinion
from controllers.planner.propose.limits import is_scaling, pair_within, ready_count, single_within
from controllers.planner.propose.pending import take_back
from controllers.planner.propose.reasons import LOAD_STRENGTH, DecisionReason
from controllers.planner.propose.records import Changes, LoadInputs, Opinion, Proposed, decision_of, load_reason, load_reasons
from controllers.planner.propose.reports import are_trusted, reports_match
from controllers.planner.propose.sla import sla_opinion
from controllers.planner.types import Mode, Role, ScalingDecision

__all__ = ("propose_load",)

T = TypeVar("T")


def propose_load(inputs: LoadInputs) -> Proposed:
    """What the load of this moment asks for. The same inputs give the same answer; the state is never changed by it.

    With two roles both counts are decided or neither; a role without metrics stays as it is. With one role, a count that equals the
    current one is a decision too. While an earlier change is under way there is none, but see `pending.take_back`.
    """
    if inputs.config.mode is Mode.DISAGG:
        return _propose_pair(inputs)
    role = inputs.config.mode.roles[0]
    held = _guard_single(inputs, role)
    if held is DecisionReason.SCALING_IN_PROGRESS and (taken := take_back(inputs)) is not None:
        return taken
    ready = ready_count(inputs.counts, role)
    if held is not None or ready is None:
        return Proposed(None, load_reason(held or DecisionReason.WORKER_COUNT_UNKNOWN), inputs.state)
    if inputs.config.mode is Mode.AGG and not inputs.config.is_easy:
        return _propose_agg(inputs, ready)
    return _propose_single(inputs, role, ready)


def _guard_single(inputs: LoadInputs, role: Role) -> DecisionReason | None:
    """Of aggregated engines, missing metrics are told before a change under way, of a single role the other way round."""
    is_empty, is_moving = not inputs.fpm_of(role), is_scaling(inputs.counts, role)
    if is_empty and (inputs.config.mode is Mode.AGG or not is_moving):
        return DecisionReason.NO_FPM_DATA
    if is_moving:
        return DecisionReason.SCALING_IN_PROGRESS
    return None if reports_match(inputs.fpm_of(role), inputs.counts.ready(role)) else DecisionReason.WORKER_COUNT_MISMATCH


def _guard_pair(inputs: LoadInputs) -> DecisionReason | None:
    """Only of those roles that report, numbers must match."""
    reporting: list[Role] = [role for role in inputs.config.roles if inputs.fpm_of(role)]
    if not reporting:
        return DecisionReason.NO_FPM_DATA
    if any(is_scaling(inputs.counts, role) for role in inputs.config.roles):
        return DecisionReason.SCALING_IN_PROGRESS
    if not all(reports_match(inputs.fpm_of(role), inputs.counts.ready(role)) for role in reporting):
        return DecisionReason.WORKER_COUNT_MISMATCH
    return None


def _propose_pair(inputs: LoadInputs) -> Proposed:
    held = _guard_pair(inputs)
    if held is DecisionReason.SCALING_IN_PROGRESS and (taken := take_back(inputs)) is not None:
        return taken
    ready_p, ready_d = ready_count(inputs.counts, "prefill"), ready_count(inputs.counts, "decode")
    if held is not None or ready_p is None or ready_d is None:
        reason = held or DecisionReason.WORKER_COUNT_UNKNOWN
        return Proposed(None, load_reasons(reason, reason, reason), inputs.state)
    opinion_p, opinion_d = _opinion(inputs, "prefill", ready_p), _opinion(inputs, "decode", ready_d)
    raw_p, raw_d = _or(opinion_p.replicas, ready_p), _or(opinion_d.replicas, ready_d)
    floored_p, floored_d = _floored(raw_p, "prefill", inputs), _floored(raw_d, "decode", inputs)
    num_p, num_d = pair_within(floored_p, floored_d, inputs.config, inputs.capabilities)
    reason_p = _reason_of(num_p, ready_p, is_capped=raw_p < ready_p and floored_p > raw_p)
    reason_d = _reason_of(num_d, ready_d, is_capped=raw_d < ready_d and floored_d > raw_d)
    whole = min(reason_p, reason_d, key=LOAD_STRENGTH.index)
    is_changed = (num_p, num_d) != (ready_p, ready_d)
    if not is_changed:
        reason_p, reason_d = _or(_telling(opinion_p), reason_p), _or(_telling(opinion_d), reason_d)
        whole = _or(_or(_telling(opinion_p), _telling(opinion_d)), whole)
    changes = load_reasons(whole, reason_p, reason_d)
    _note_estimate(changes, opinion_p, "prefill")
    _note_estimate(changes, opinion_d, "decode")
    return Proposed(ScalingDecision(num_p, num_d) if is_changed else None, changes, inputs.state)


def _propose_single(inputs: LoadInputs, role: Role, ready: int) -> Proposed:
    """Also of aggregated engines with an easy target, whose minimum counts whether or not their GPU cost is known."""
    opinion = _opinion(inputs, role, ready)
    if opinion.replicas is None:
        changes = load_reason(opinion.reason or DecisionReason.NO_CHANGE)
        _note_estimate(changes, opinion, role)
        return Proposed(None, changes, inputs.state)
    least = inputs.config.effective_min(role) if inputs.config.mode is Mode.AGG else 0
    floored = _floored(max(opinion.replicas, least), role, inputs)
    replicas = single_within(floored, role, inputs.config, inputs.capabilities)
    changes = load_reason(_reason_of(replicas, ready, is_capped=opinion.replicas < replicas < ready))
    _note_estimate(changes, opinion, role)
    return Proposed(decision_of(role, replicas), changes, inputs.state)


def _propose_agg(inputs: LoadInputs, ready: int) -> Proposed:
    opinion = agg_opinion(inputs, ready) if are_trusted(inputs.fpm_of("decode")) else AggOpinion(None, reason=DecisionReason.FPM_INVALID)
    changes: Changes = {}
    if opinion.estimated_ttft_ms is not None:
        changes["estimated_ttft_ms"] = opinion.estimated_ttft_ms
    if opinion.estimated_itl_ms is not None:
        changes["estimated_itl_ms"] = opinion.estimated_itl_ms
    if opinion.replicas is None:
        changes["load_decision_reason"] = opinion.reason or DecisionReason.NO_CHANGE
        return Proposed(None, changes, inputs.state)
    floored = _floored(max(opinion.replicas, inputs.config.effective_min("decode")), "decode", inputs)
    replicas = single_within(floored, "decode", inputs.config, inputs.capabilities)
    is_capped = opinion.replicas < ready and replicas > opinion.replicas
    reason = _reason_of(replicas, ready, is_capped=is_capped)
    if replicas == ready and opinion.is_refused and not is_capped:
        reason = DecisionReason.SCALE_DOWN_REFUSED_CONSOLIDATION
    changes["load_decision_reason"] = reason
    return Proposed(None if replicas == ready else decision_of("decode", replicas), changes, inputs.state)


def _opinion(inputs: LoadInputs, role: Role, ready: int) -> Opinion:
    """Nothing of a role without metrics."""
    fpms = inputs.fpm_of(role)
    if not fpms:
        return Opinion(None)
    if not are_trusted(fpms):
        return Opinion(None, DecisionReason.FPM_INVALID)
    return easy_opinion(inputs, role, ready) if inputs.config.is_easy else sla_opinion(inputs, role, ready)


def _floored(replicas: int, role: Role, inputs: LoadInputs) -> int:
    return max(replicas, inputs.state.lower_bound(role)) if inputs.config.enable_throughput_scaling else replicas


def _reason_of(replicas: int, ready: int, *, is_capped: bool) -> DecisionReason:
    if replicas > ready:
        return DecisionReason.SCALE_UP
    if is_capped:
        return DecisionReason.SCALE_DOWN_CAPPED_BY_THROUGHPUT
    return DecisionReason.SCALE_DOWN if replicas < ready else DecisionReason.NO_CHANGE


def _telling(opinion: Opinion) -> DecisionReason | None:
    """Why a role asked for nothing, if there is more to say than that."""
    return None if opinion.reason is DecisionReason.NO_CHANGE else opinion.reason


def _or(value: T | None, other: T) -> T:
    return other if value is None else value


def _note_estimate(changes: Changes, opinion: Opinion, role: Role) -> None:
    if opinion.estimate_ms is not None:
        changes["estimated_ttft_ms" if role == "prefill" else "estimated_itl_ms"] = opinion.estimate_ms
