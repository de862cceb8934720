"""Throughput scaling: as many replicas as the expected traffic of the next window needs. Source: planner.md §13."""

from dataclasses import dataclass, replace
from math import ceil

from controllers.planner.config.model import PlannerConfig
from controllers.planner.perfmodel import Capacity
from controllers.planner.propose.limits import pair_within, ready_count, single_within
from controllers.planner.propose.reasons import DecisionReason
from controllers.planner.propose.records import Changes, Proposed, ThroughputInputs, decision_of, finite, is_finite
from controllers.planner.propose.sla import has_token_limit
from controllers.planner.types import Mode, Role, ScalingDecision

__all__ = ("propose_throughput", "stepped")


@dataclass(frozen=True, slots=True)
class _Demand:
    """Requests per second, and the mean lengths in tokens of each."""

    rps: float
    isl: float
    osl: float


@dataclass(frozen=True, slots=True)
class _Need:
    """What one role needs. replicas None: its model cannot tell. rps: of one engine. reaches_target: false if no batch keeps to it."""

    replicas: int | None
    rps: float = 0.0
    reaches_target: bool = True


def propose_throughput(inputs: ThroughputInputs) -> Proposed:
    """Replicas for the expected traffic: decided where load scaling is off, else kept in the new state as lower bounds for it.

    A second call with the same inputs gives the same answer, so it does not matter that both loops ask in the same tick.
    """
    forecast, state = inputs.forecast, inputs.state
    if forecast.num_req is None or forecast.isl is None or forecast.osl is None:
        return Proposed(None, {}, state)
    state = state.noted(forecast.kv_hit_rate, forecast.accept_length)
    inputs = replace(inputs, state=state)
    changes: Changes = {
        "predicted_num_req": forecast.num_req,
        "predicted_isl": forecast.isl,
        "predicted_osl": forecast.osl,
        "predicted_kv_hit_rate": forecast.kv_hit_rate,
    }
    if not (is_finite(inputs.duration_s) and inputs.duration_s > 0):
        return _hold(inputs, changes, DecisionReason.NO_TRAFFIC_DATA)
    if not (is_finite(forecast.num_req) and is_finite(forecast.isl) and is_finite(forecast.osl)):
        return _hold(inputs, changes, DecisionReason.PREDICTION_INVALID)
    demand = _Demand(forecast.num_req / inputs.duration_s, forecast.isl, forecast.osl)
    if inputs.config.mode is Mode.DISAGG:
        return _propose_pair(inputs, demand, changes)
    return _propose_single(inputs, demand, inputs.config.mode.roles[0], changes)


def stepped(wanted: int, ready: int | None, most: int | None) -> int:
    """Limits a step up or down: at most `most` replicas away from those that are ready. None: no limit, or nothing to count from.

    `max_throughput_scaling_replicas`, not in Planner 1.5.1: one mistaken forecast or capacity does not move a deployment far, and steady
    demand is still met within a few windows. It limits the step, not the number, so it neither caps nor shrinks a large deployment.
    Minimums and the GPU budget come after it and may move further.
    """
    if ready is None or most is None:
        return wanted
    return min(max(wanted, ready - most, 0), ready + most)


def _hold(inputs: ThroughputInputs, changes: Changes, reason: DecisionReason) -> Proposed:
    changes["throughput_decision_reason"] = reason
    return Proposed(None, changes, inputs.state)


def _propose_pair(inputs: ThroughputInputs, demand: _Demand, changes: Changes) -> Proposed:
    """If one model is not ready both roles stay as they are, but for the minimums: one alone would only move the queue."""
    config, ready_p, ready_d = inputs.config, ready_count(inputs.counts, "prefill"), ready_count(inputs.counts, "decode")
    need_p, need_d = _need(inputs, demand, "prefill"), _need(inputs, demand, "decode")
    _note_rps(changes, need_p, "prefill")
    _note_rps(changes, need_d, "decode")
    if need_p.replicas is None or need_d.replicas is None:
        whole = DecisionReason.MODEL_NOT_READY
        changes["throughput_decision_reason_prefill"] = whole if need_p.replicas is None else DecisionReason.PARTNER_NOT_READY
        changes["throughput_decision_reason_decode"] = whole if need_d.replicas is None else DecisionReason.PARTNER_NOT_READY
        wanted_p, wanted_d = ready_p, ready_d
    else:
        whole = _reason_when_ready(config)
        changes["throughput_decision_reason_prefill"] = changes["throughput_decision_reason_decode"] = whole
        wanted_p, wanted_d = need_p.replicas, need_d.replicas
    if wanted_p is None or wanted_d is None:
        return _hold(inputs, changes, DecisionReason.WORKER_COUNT_UNKNOWN)
    wanted_p, wanted_d = max(wanted_p, config.effective_min("prefill")), max(wanted_d, config.effective_min("decode"))
    changes["throughput_decision_reason"] = whole
    notes = [*_warnings(need_p, "prefill"), *_warnings(need_d, "decode")]
    if config.enable_load_scaling:
        changes["throughput_lower_bound_prefill"], changes["throughput_lower_bound_decode"] = wanted_p, wanted_d
        state = replace(inputs.state, lower_bound_prefill=wanted_p, lower_bound_decode=wanted_d)
        return Proposed(None, changes, state, notes)
    num_p, num_d = pair_within(wanted_p, wanted_d, config, inputs.capabilities)
    if whole is DecisionReason.MODEL_NOT_READY and (num_p, num_d) == (ready_p, ready_d):
        return Proposed(None, changes, inputs.state, notes)
    return Proposed(ScalingDecision(num_p, num_d), changes, inputs.state, notes)


def _propose_single(inputs: ThroughputInputs, demand: _Demand, role: Role, changes: Changes) -> Proposed:
    config, ready, need = inputs.config, ready_count(inputs.counts, role), _need(inputs, demand, role)
    _note_rps(changes, need, role)
    if config.mode is Mode.AGG:
        _note_rps(changes, need, "prefill")
    whole = DecisionReason.MODEL_NOT_READY if need.replicas is None else _reason_when_ready(config)
    wanted = ready if need.replicas is None else need.replicas
    if wanted is None:
        return _hold(inputs, changes, DecisionReason.WORKER_COUNT_UNKNOWN)
    wanted, notes = max(wanted, config.effective_min(role)), _warnings(need, role)
    changes["throughput_decision_reason"] = whole
    if config.enable_load_scaling:
        if role == "prefill":
            changes["throughput_lower_bound_prefill"] = wanted
            return Proposed(None, changes, replace(inputs.state, lower_bound_prefill=wanted), notes)
        changes["throughput_lower_bound_decode"] = wanted
        return Proposed(None, changes, replace(inputs.state, lower_bound_decode=wanted), notes)
    replicas = single_within(wanted, role, config, inputs.capabilities)
    if whole is DecisionReason.MODEL_NOT_READY and replicas == ready:
        return Proposed(None, changes, inputs.state, notes)
    return Proposed(decision_of(role, replicas), changes, inputs.state, notes)


def _need(inputs: ThroughputInputs, demand: _Demand, role: Role) -> _Need:
    """Before minimums; within the step from what is ready."""
    capacity = _capacity(inputs, demand, role)
    if capacity is None or not 0 < capacity.rps < float("inf"):
        return _Need(None)
    engines = demand.rps / capacity.rps
    if not is_finite(engines):
        return _Need(None)
    replicas = stepped(ceil(engines), ready_count(inputs.counts, role), inputs.config.max_throughput_scaling_replicas)
    return _Need(replicas, capacity.rps, capacity.eligible)


def _capacity(inputs: ThroughputInputs, demand: _Demand, role: Role) -> Capacity | None:
    """Requests per second of one engine within its targets. Hits in the KV cache shorten prefill only, accepted drafts decode only."""
    model, config, forecast = inputs.models.of(role), inputs.config, inputs.forecast
    if model is None:
        return None
    if config.mode is Mode.AGG:
        if not has_token_limit(inputs.capabilities, role):
            return None
        return model.capacity(
            isl=demand.isl,
            osl=demand.osl,
            ttft_ms=config.ttft_ms,
            itl_ms=config.itl_ms,
            kv_hit_rate=finite(forecast.kv_hit_rate),
            accept_length=finite(forecast.accept_length),
        )
    if role == "prefill":
        return model.capacity(isl=demand.isl, osl=demand.osl, ttft_ms=config.ttft_ms, kv_hit_rate=finite(forecast.kv_hit_rate))
    return model.capacity(isl=demand.isl, osl=demand.osl, itl_ms=config.itl_ms, accept_length=finite(forecast.accept_length))


def _reason_when_ready(config: PlannerConfig) -> DecisionReason:
    return DecisionReason.SET_LOWER_BOUND if config.enable_load_scaling else DecisionReason.SCALE


def _note_rps(changes: Changes, need: _Need, role: Role) -> None:
    if need.replicas is not None:
        changes["engine_rps_prefill" if role == "prefill" else "engine_rps_decode"] = need.rps


def _warnings(need: _Need, role: Role) -> list[str]:
    if need.replicas is None or need.reaches_target:
        return []
    return [f"no batch of the {role} engines keeps to its target for the expected lengths; {need.rps:.4g} requests/s is the most they do"]
