"""Takes back replicas that never started once the load that asked for them is gone. Not in Planner 1.5.1."""

from controllers.planner.propose.agg import agg_has_spare
from controllers.planner.propose.easy import Pressure, easy_pressure
from controllers.planner.propose.limits import pair_within, ready_count, single_within
from controllers.planner.propose.reasons import DecisionReason
from controllers.planner.propose.records import Changes, LoadInputs, Proposed, load_reason, load_reasons
from controllers.planner.propose.reports import are_trusted, reports_match
from controllers.planner.propose.sla import sla_has_spare
from controllers.planner.types import Mode, Role, ScalingDecision

__all__ = ("take_back",)


def take_back(inputs: LoadInputs) -> Proposed | None:
    """The decision that is possible although an earlier change is under way. None: none is, so `scaling_in_progress` stands.

    Asked only with `pending_aware_scale_down`, and only where load scaling would otherwise hold for `scaling_in_progress`. Off, that hold
    is all there is, as in Planner 1.5.1.

    For each role, first what it is expected to have is taken as given (it must be known for every role, else nothing is decided: during a
    rollout nobody knows what was asked for). A role has pending replicas if more are expected than are ready, and at least one is ready.
    They are not needed if the metrics of exactly the ready engines are there and
    * easy targets: the load of each ready engine is below the threshold of scaling down;
    * sla: the ready engines, with the load that they have, pass the same test that the others would have to pass before one of them was
      taken away (targets times sensitivity, KV cache), and not all of them miss the target.
    So the gap between the thresholds of growing and shrinking also keeps a request for replicas from being taken back at once, and
    neither "no change" nor missing knowledge is a reason to take back.

    Then the role is decided to have its ready count, never fewer than its minimum and, where throughput scaling is on, its lower bound; the
    engines that are ready are not reduced before the deployment is stable again. Every other role is decided to have what is expected
    of it, so that nothing else changes. Where what remains is not within the minimums and the GPU budget as it is, nothing is taken back.
    """
    if not inputs.config.pending_aware_scale_down:
        return None
    roles = inputs.config.roles
    asked: dict[Role, int] = {}
    for role in roles:
        expected = inputs.counts.expected(role)
        if expected is None or not 0 <= expected < float("inf"):
            return None
        asked[role] = expected
    kept: dict[Role, int] = {role: _kept(inputs, role, asked[role]) for role in roles}
    taken: tuple[Role, ...] = tuple(role for role in roles if kept[role] < asked[role])
    if not taken or _within(inputs, kept) != kept:
        return None
    return Proposed(ScalingDecision(kept.get("prefill"), kept.get("decode")), _reasons(roles, taken), inputs.state, taken_back=taken)


def _kept(inputs: LoadInputs, role: Role, expected: int) -> int:
    """Replicas of the role without pending ones that are not needed."""
    ready = ready_count(inputs.counts, role)
    if ready is None or not 0 < ready < expected or not _has_spare(inputs, role, ready):
        return expected
    floor = inputs.config.effective_min(role)
    if inputs.config.enable_throughput_scaling:
        floor = max(floor, inputs.state.lower_bound(role))
    return min(max(ready, floor), expected)


def _has_spare(inputs: LoadInputs, role: Role, ready: int) -> bool:
    fpms = inputs.fpm_of(role)
    if not fpms or not are_trusted(fpms) or not reports_match(fpms, ready):
        return False
    if inputs.config.is_easy:
        return easy_pressure(inputs, role) is Pressure.BELOW
    return agg_has_spare(inputs, ready) if inputs.config.mode is Mode.AGG else sla_has_spare(inputs, role, ready)


def _within(inputs: LoadInputs, kept: dict[Role, int]) -> dict[Role, int]:
    if inputs.config.mode is Mode.DISAGG:
        num_p, num_d = pair_within(kept["prefill"], kept["decode"], inputs.config, inputs.capabilities)
        return {"prefill": num_p, "decode": num_d}
    return {role: single_within(number, role, inputs.config, inputs.capabilities) for role, number in kept.items()}


def _reasons(roles: tuple[Role, ...], taken: tuple[Role, ...]) -> Changes:
    whole = DecisionReason.PENDING_TAKEN_BACK
    if len(roles) == 1:
        return load_reason(whole)
    waits = DecisionReason.SCALING_IN_PROGRESS
    return load_reasons(whole, whole if "prefill" in taken else waits, whole if "decode" in taken else waits)
