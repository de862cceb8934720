"""One tick in words: what was read, which rule applied, what bounds did to the number, what is written.

The text follows from the tick alone, so the same files always give the same text.
"""

from collections.abc import Iterable, Iterator, Sequence

from api.fielderrors import printable
from controllers.planner.budget import bounds_for_total
from controllers.planner.merge import Kind, Target
from controllers.planner.pipeline import Verdict
from controllers.planner.plugins.records import STAGES, Answer, Call, Failure, Metric, PredictResponse, StageResponse
from controllers.planner.plugins.sanity import checked
from controllers.planner.project import PowerReason
from controllers.planner.replay.case import Case
from controllers.planner.replay.rules import counted, load_rules, number, throughput_rules
from controllers.planner.replay.run import Played, Replay, play_on
from controllers.planner.types import Role, ScheduledTick, TickInput

__all__ = ("explain_tick", "explained")


def explained(case: Case, lines: Iterable[str | bytes], wanted: int) -> Iterator[str]:
    """The text of tick `wanted`, from 0; nothing if the trace ends before. CaseError, TraceError."""
    replay = Replay(case)
    for played in play_on(replay, lines):
        if played.index == wanted:
            yield explain_tick(replay, played)
            return


def explain_tick(replay: Replay, played: Played) -> str:
    """`played`: the last tick of `replay`."""
    sections = (
        ("", _head(replay, played)),
        ("read", _read(replay, played.tick, played.given)),
        ("forecast", _forecast(played)),
        ("throughput scaling", throughput_rules(replay.engine, played)),
        ("load scaling", load_rules(replay.engine, played)),
        ("plugins", _plugins(replay, played)),
        ("bounds", _bounds(replay, played)),
        ("decision", _decision(replay, played)),
    )
    text: list[str] = []
    for title, lines in sections:
        body = list(map(printable, lines))
        if body:
            text.extend([title, *(f"  {line}" for line in body)] if title else body)
    return "\n".join(text)


def _head(replay: Replay, played: Played) -> Iterator[str]:
    config, tick = replay.engine.config, played.tick
    due = [name for name, is_due in (("load", tick.run_load_scaling), ("throughput", tick.run_throughput_scaling)) if is_due]
    target = config.optimization_target
    if target == "sla":
        target += f" (TTFT {number(config.ttft_ms)} ms, ITL {number(config.itl_ms)} ms)"
    yield f"tick {played.index} at {number(tick.at_s)} s, mode {config.mode}, target {target}"
    yield f"due: {' and '.join(due)} scaling" if due else "due: neither load nor throughput scaling"


def _read(replay: Replay, tick: ScheduledTick, given: TickInput) -> Iterator[str]:
    counts, config = given.worker_counts, replay.engine.config
    for role in config.roles:
        ready, expected = (None, None) if counts is None else (counts.ready(role), counts.expected(role))
        text = f"{role}: {_known(ready)} ready, {_known(expected)} expected"
        if counts is not None and counts.is_scaling(role):
            text += ", a change is under way"
        fpms = None if given.fpm_observations is None else given.fpm_observations.of(role)
        if tick.need_worker_fpm:
            text += f"; {counted(len(fpms or ()), 'engine rank')} reported"
        yield text
    if not tick.need_worker_fpm:
        yield "metrics of engines: not asked for"
    traffic = given.traffic
    if not tick.need_traffic_metrics:
        yield "traffic: not asked for"
    elif traffic is None:
        yield "traffic: none was there"
    elif tick.use_full_traffic_metrics:
        yield (
            f"traffic of {number(traffic.duration_s)} s: {number(traffic.num_req)} requests, ISL {number(traffic.isl)}, "
            f"OSL {number(traffic.osl)}, {_runtime(traffic.kv_hit_rate, traffic.accept_length)}"
        )
    else:
        yield f"traffic: only {_runtime(traffic.kv_hit_rate, traffic.accept_length)}"


def _runtime(kv_hit_rate: float | None, accept_length: float | None) -> str:
    return f"cache hit rate {_known(kv_hit_rate)}, accept length {_known(accept_length)}"


def _known(value: float | None) -> str:
    return "unknown" if value is None else number(value)


def _forecast(played: Played) -> Iterator[str]:
    for call, answer in played.heard:
        if call.plugin.stage != "predict":
            continue
        result, who = answer.result, call.plugin.plugin_id
        if not isinstance(result, Failure):
            result = checked("predict", result)
        if isinstance(result, Failure):
            yield f"{who}: failed, {result.kind.value}: {result.message}"
        elif isinstance(result, PredictResponse):
            yield f"{who}: {result.reason or 'no reason'}" + (", final" if result.final else "")
    found = played.result.outcome.predictions
    if found is not None:
        yield (
            f"next window: {_known(found.predicted_num_req)} requests, ISL {_known(found.predicted_isl)}, "
            f"OSL {_known(found.predicted_osl)}, {_runtime(found.predicted_kv_hit_rate, found.predicted_accept_length)} "
            f"(first from {found.source or 'nobody'})"
        )


def _plugins(replay: Replay, played: Played) -> Iterator[str]:
    held = {event.labels: None for event in played.result.outcome.events if event.metric is Metric.HELD_OVER}
    for stage in STAGES[1:]:
        for call, answer in played.heard:
            if call.plugin.stage == stage:
                yield f"{stage}: {call.plugin.plugin_id} (priority {call.plugin.priority}): {_answer(call, answer)}"
        for plugin_id, at in held:
            plugin = replay.engine.registry.get(plugin_id)
            if at == stage and plugin is not None and plugin.held is not None:
                yield f"{stage}: {plugin_id} (priority {plugin.priority}): not asked, still {_targets(plugin.held.targets)}"
    outcome = played.result.outcome
    if outcome.verdict is Verdict.APPLY:
        yield f"agreed: {_targets(outcome.targets)}"
    for event in outcome.events:
        if event.metric is Metric.REQUIRES_UNSATISFIED:
            yield f"{event.labels[0]} is due but not asked: {event.labels[1]} is missing"


def _answer(call: Call, answer: Answer) -> str:
    result = answer.result if isinstance(answer.result, Failure) else checked(call.plugin.stage, answer.result)
    if isinstance(result, Failure):
        return f"failed, {result.kind.value}: {result.message}"
    if not isinstance(result, StageResponse) or result.kind is None:
        return "set no result, which counts as accept"
    text = _targets(result.targets) if result.kind is Kind.OVERRIDE else result.kind.value
    is_final = result.final and call.plugin.stage != "constrain" and result.kind is Kind.OVERRIDE
    return text + (f", {result.reason}" if result.reason else "") + (", final" if is_final else "")


def _targets(targets: Sequence[Target]) -> str:
    words = {"SET": "", "AT_LEAST": "at least ", "AT_MOST": "at most "}
    named = [f"{target.component} {words[target.type]}{_opinion(target.replicas)}" for target in targets]
    return ", ".join(named) or "no targets"


def _opinion(replicas: int | None) -> str:
    return "no opinion" if replicas is None else str(replicas)


def _bounds(replay: Replay, played: Played) -> Iterator[str]:
    config, capabilities, result = replay.engine.config, replay.engine.capabilities, played.result
    for role, least in config.active_minimums().items():
        yield f"minimum of {role}: {least}" + (", restored on this tick" if role in result.projection.repaired else "")
    costs: dict[Role, int | None] = {role: None if (facts := capabilities.of(role)) is None else facts.gpu_cost for role in config.roles}
    ceiling = "no ceiling" if config.max_gpu_budget < 0 else f"at most {config.max_gpu_budget}"
    floor = "no floor" if config.min_gpu_budget < 0 else f"at least {config.min_gpu_budget}"
    each = ", ".join(f"{role} {_known(cost)}" for role, cost in costs.items())
    yield f"GPU budget: {ceiling}, {floor}; GPUs of a replica: {each}"
    asked = _asked(played, config.roles)
    known = [(asked[role], cost) for role, cost in costs.items() if cost is not None and asked[role] is not None]
    if len(known) == len(costs):
        total = sum((count or 0) * cost for count, cost in known)
        tolerance = max(cost for _, cost in known) if config.min_gpu_budget >= 0 and config.max_gpu_budget >= 0 else 0
        found = bounds_for_total(total, config.min_gpu_budget, config.max_gpu_budget, max(0, tolerance))
        yield f"what plugins agreed on takes {total} GPUs: " + (found.reason or "within the budget")
    if config.enable_power_awareness:
        reason = result.projection.power_reason
        yield f"power: at most {config.total_gpu_power_limit} W" + (f", {_power(reason)}" if reason else "")


def _power(reason: PowerReason) -> str:
    texts = {
        PowerReason.REBALANCE_STAGED: "what shrinks goes first, what grows waits",
        PowerReason.BUDGET_CLAMPED: "the proposal is cut to fit",
        PowerReason.SCALE_UP_SUPPRESSED: "nothing may grow",
        PowerReason.MINIMUM_INFEASIBLE: "the minimums alone draw more, so nothing is written",
    }
    return f"{texts[reason]} ({reason.value})"


def _asked(played: Played, roles: Sequence[Role]) -> dict[Role, int | None]:
    """What plugins agreed on, else what is ready."""
    counts = played.given.worker_counts
    agreed = {target.component: target.replicas for target in played.result.outcome.targets if target.replicas is not None}
    return {role: agreed.get(role, None if counts is None else counts.ready(role)) for role in roles}


def _decision(replay: Replay, played: Played) -> Iterator[str]:
    result, roles = played.result, replay.engine.config.roles
    outcome, decision = result.outcome, result.effects.scale_to
    if outcome.verdict is Verdict.SHORT_CIRCUIT:
        yield f"nothing is written: a plugin rejected, {outcome.reason}"
    elif outcome.verdict is Verdict.NO_TARGETS:
        yield "nothing is written: nobody proposed anything and no replica count is known"
    elif decision is None:
        yield "nothing is written: what was agreed on is what is there"
    else:
        asked, counts = _asked(played, roles), played.given.worker_counts
        for role in roles:
            number_of, ready = decision.of(role), None if counts is None else counts.ready(role)
            expected = None if counts is None else counts.expected(role)
            if number_of is None:
                yield f"{role}: is left as it is"
                continue
            bound = "" if number_of == asked[role] else f", not {_known(asked[role])} as agreed, because of the bounds"
            if expected is not None and expected != ready:
                change = f"{_known(ready)} ready, {expected} expected ->"
            else:
                change = "stays" if number_of == ready else f"{_known(ready)} ready ->"
            yield f"{role}: {change} {number_of}{bound}"
    for event in outcome.audit_events:
        yield f"audit: {event}"
    for note in played.notes:
        yield f"note: {note}"
    yield f"next tick at {number(result.effects.next_tick.at_s)} s"
