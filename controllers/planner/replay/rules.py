"""The rules of load and throughput scaling on one tick, with their numbers, in words."""

from collections.abc import Iterator

from controllers.planner.engine import PlannerEngine
from controllers.planner.plugins.builtin import LOAD_PREDICT, THROUGHPUT_PROPOSE
from controllers.planner.plugins.records import Context, Observations, StageResponse
from controllers.planner.propose.agg import agg_opinion
from controllers.planner.propose.easy import easy_opinion, easy_reading
from controllers.planner.propose.limits import ready_count
from controllers.planner.propose.reasons import DecisionReason, explain
from controllers.planner.propose.records import LoadInputs
from controllers.planner.propose.sla import Survey, Trial, question_of, sla_opinion, survey_decode, survey_prefill
from controllers.planner.replay.run import Played
from controllers.planner.ticks import LOAD_PROPOSE
from controllers.planner.types import Mode, Role, TickDiagnostics

__all__ = ("counted", "load_rules", "number", "reason_text", "throughput_rules")


_GUARDS = (
    DecisionReason.NO_FPM_DATA,
    DecisionReason.SCALING_IN_PROGRESS,
    DecisionReason.WORKER_COUNT_MISMATCH,
    DecisionReason.WORKER_COUNT_UNKNOWN,
)


def number(value: float) -> str:
    """Four digits, more where there are more before the point."""
    if isinstance(value, int):
        return str(value)
    return f"{value:.4g}" if abs(value) < 1000 or value != value else f"{value:.0f}"


def counted(count: int, thing: str) -> str:
    """Like 2 engines."""
    return f"{count} {thing}" + ("" if count == 1 else "s")


def reason_text(reason: str) -> str:
    """A reason and what it means."""
    return f"{reason}: {explain(DecisionReason(reason))}" if reason in list(DecisionReason) else reason


def throughput_rules(engine: PlannerEngine, played: Played) -> Iterator[str]:
    """Nothing where throughput scaling is off."""
    config, found = engine.config, played.result.effects.diagnostics
    if not config.enable_throughput_scaling:
        return
    is_asked = any(call.plugin.plugin_id in (THROUGHPUT_PROPOSE, LOAD_PREDICT) for call, _ in played.heard)
    if not is_asked and not played.tick.run_throughput_scaling:
        yield "not due"
    else:
        yield from _throughput(engine, played, found)
    if config.enable_load_scaling:
        bounds = {"prefill": found.throughput_lower_bound_prefill, "decode": found.throughput_lower_bound_decode}
        yield "lower bounds of load scaling: " + ", ".join(f"{role} {bounds[role]}" for role in config.roles)


def _throughput(engine: PlannerEngine, played: Played, found: TickDiagnostics) -> Iterator[str]:
    config, traffic, predictions = engine.config, played.given.traffic, played.result.outcome.predictions
    num_req = None if predictions is None else predictions.predicted_num_req
    demand = None if num_req is None or traffic is None or not traffic.duration_s > 0 else num_req / traffic.duration_s
    if demand is not None:
        yield f"demand: {number(num_req or 0.0)} requests in {number(traffic.duration_s if traffic else 0.0)} s = {number(demand)}/s"
    rates = {"prefill": found.engine_rps_prefill, "decode": found.engine_rps_decode}
    for role in config.roles:
        rps = rates[role]
        if rps is not None and demand is not None:
            step = config.max_throughput_scaling_replicas
            limit = "" if step is None else f", at most {step} replicas away from what is ready"
            yield f"{role}: one engine does {number(rps)} requests/s; {number(demand)}/s take {number(demand / rps)}, rounded up{limit}"
    yield from _reasons(found.throughput_decision_reason, found.throughput_decision_reason_prefill, found.throughput_decision_reason_decode)


def load_rules(engine: PlannerEngine, played: Played) -> Iterator[str]:
    """For each role what was held against which threshold."""
    config, found = engine.config, played.result.effects.diagnostics
    if not config.enable_load_scaling:
        yield "switched off"
        return
    if not any(call.plugin.plugin_id == LOAD_PROPOSE for call, _ in played.heard):
        yield "not due"
        return
    if (guard := found.load_decision_reason) is not None and guard in _GUARDS:
        yield f"no rule was applied, {reason_text(guard)}"
        return
    given = played.given
    context = Context(
        observations=Observations(given.traffic, given.fpm_observations, given.worker_counts), predictions=played.result.outcome.predictions
    )
    inputs = engine.scaling.load_inputs(context)
    if found.load_decision_reason == DecisionReason.PENDING_TAKEN_BACK:
        for role in config.roles:
            yield f"{role}: {inputs.counts.ready(role)} ready, {inputs.counts.expected(role)} expected; {_proposed(played, role)} proposed"
        yield f"reason: {reason_text(DecisionReason.PENDING_TAKEN_BACK)}"
        return
    for role in config.roles:
        ready = ready_count(inputs.counts, role)
        if ready is None or not inputs.fpm_of(role):
            yield f"{role}: nothing to hold against a threshold"
            continue
        if config.is_easy:
            yield _easy(inputs, role)
        else:
            yield from _sla(inputs, role, ready)
        yield _chain(inputs, played, role, ready)
    yield from _reasons(found.load_decision_reason, found.load_decision_reason_prefill, found.load_decision_reason_decode)


def _chain(inputs: LoadInputs, played: Played, role: Role, ready: int) -> str:
    """From what the load of a role asks for to what the plugin proposes."""
    if inputs.config.is_easy:
        asked = easy_opinion(inputs, role, ready).replicas
    elif inputs.config.mode is Mode.AGG:
        asked = agg_opinion(inputs, ready).replicas
    else:
        asked = sla_opinion(inputs, role, ready).replicas
    number_of = ready if asked is None else asked
    text = f"{role}: {ready} ready, " + ("as many asked for" if asked is None or asked == ready else f"{asked} asked for")
    bound = inputs.state.lower_bound(role) if inputs.config.enable_throughput_scaling else 0
    if bound > number_of:
        number_of = bound
        text += f", lower bound {bound}"
    proposed = _proposed(played, role)
    if proposed is None:
        return f"{text}; nothing is proposed"
    return f"{text}; {proposed} proposed" + ("" if proposed == number_of else ", because of minimums and GPU budget")


def _proposed(played: Played, role: Role) -> int | None:
    """What load scaling answered to the pipeline."""
    for call, answer in played.heard:
        if call.plugin.plugin_id == LOAD_PROPOSE and isinstance(answer.result, StageResponse):
            return next((target.replicas for target in answer.result.targets if target.component == role), None)
    return None


def _easy(inputs: LoadInputs, role: Role) -> str:
    reading = easy_reading(inputs, role)
    if isinstance(reading, DecisionReason):
        return f"{role}: {reason_text(reading)}"
    if role == "prefill":
        what = "queued prompt tokens" + ("" if reading.whole == 1 else f" of context_length {reading.whole}")
    else:
        what = f"KV tokens, used and asked for, of max_kv_tokens {reading.whole}"
    band = reading.band
    up, down = (">=" if band.up_inclusive else ">"), ("<=" if band.down_inclusive else "<")
    pressure = band.pressure(reading.loads)
    return (
        f"{role}: highest of {counted(len(reading.loads), 'engine')} {number(max(reading.loads))} ({what}): {pressure.value} thresholds "
        f"(more if any {up} {number(band.up)}, fewer if all {down} {number(band.down)})"
    )


def _sla(inputs: LoadInputs, role: Role, ready: int) -> Iterator[str]:
    question = question_of(inputs, role, ready, leaving=1)
    if isinstance(question, DecisionReason):
        yield f"{role}: {reason_text(question)}"
        return
    if inputs.config.mode is Mode.AGG or role == "prefill":
        yield from _survey(f"{role}, TTFT", survey_prefill(question), ready)
    if inputs.config.mode is Mode.AGG or role == "decode":
        yield from _survey(f"{role}, ITL", survey_decode(question), ready)


def _survey(what: str, survey: Survey, ready: int) -> Iterator[str]:
    estimates, target = survey.estimates_ms, number(survey.target_ms)
    if not estimates:
        yield f"{what}: the model cannot tell"
        return
    shortest, longest = number(min(estimates)), number(max(estimates))
    span = shortest if shortest == longest else f"{shortest} to {longest}"
    span = f"{span} ms estimated for {counted(len(estimates), 'engine')}, target {target} ms"
    yield f"{what}: {span}: " + ("missed by all, so one more" if survey.is_missed else "not missed by all")
    if survey.is_missed:
        return
    if ready <= 1:
        yield f"{what}: there is no engine to take away"
    elif survey.trials:
        failed = next((trial for trial in survey.trials if not trial.value < trial.limit), None)
        if failed is not None:
            yield f"{what}: with one less, {_trial(failed)}: too much"
        elif survey.may_shrink:
            closest = max(survey.trials, key=lambda trial: trial.value / trial.limit)
            yield f"{what}: with one less, at most {_trial(closest)}: the others can take the load"


def _trial(trial: Trial) -> str:
    if trial.of == "kv":
        return f"{number(trial.value)} of {number(trial.limit)} KV tokens at {trial.worker_id}"
    return f"{number(trial.value)} ms of {number(trial.limit)} ms that may be used at {trial.worker_id}"


def _reasons(whole: str | None, prefill: str | None, decode: str | None) -> Iterator[str]:
    for role, reason in (("prefill", prefill), ("decode", decode)):
        if reason is not None and not whole == prefill == decode:
            yield f"reason of {role}: {reason_text(reason)}"
    if whole is not None:
        yield f"reason: {reason_text(whole)}"
