"""Which plugins of a stage are asked on a tick, and whose last override stands in. Source: planner.md §7."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from controllers.planner.merge import Kind, PluginResult
from controllers.planner.plugins.breaker import CircuitState
from controllers.planner.plugins.records import Context, HoldPolicy, Metric, MetricEvent, Plugin, PluginStage
from controllers.planner.types import FpmObservations, WorkerCounts

__all__ = ("ActiveSet", "active_set", "is_due", "resolve")

# Paths are those of plugin.proto; these records are named otherwise.
_WORKER_NAMES: Mapping[str, str] = {
    "ready_prefill": "ready_num_prefill",
    "ready_decode": "ready_num_decode",
    "expected_prefill": "expected_num_prefill",
    "expected_decode": "expected_num_decode",
    "prefill_scaling_in_progress": "prefill_scaling_in_progress",
    "decode_scaling_in_progress": "decode_scaling_in_progress",
}
_FPM_NAMES: Mapping[str, str] = {"prefill_engines": "prefill", "decode_engines": "decode"}


@dataclass(slots=True)
class ActiveSet:
    """`due` to be asked, and results that are `inherited`; both in order of registration."""

    due: list[Plugin] = field(default_factory=list[Plugin])
    inherited: list[PluginResult] = field(default_factory=list[PluginResult])


def is_due(plugin: Plugin, now_s: float) -> bool:
    """Since its last successful call, else its registration, the interval has passed."""
    if plugin.interval_s <= 0:
        return True
    anchor = plugin.registered_at if plugin.last_call_at is None else plugin.last_call_at
    return now_s - anchor >= plugin.interval_s


def active_set(
    plugins: Iterable[Plugin], stage: PluginStage, context: Context, now_s: float, clock_s: float, events: list[MetricEvent]
) -> ActiveSet:
    """now_s: the scheduled time of the tick. clock_s: now, on the clock of breakers. Both are seconds of the monotonic clock."""
    active = ActiveSet()
    for plugin in plugins:
        if plugin.stage != stage or not plugin.enabled or plugin.breaker.state(clock_s) is CircuitState.OPEN:
            continue
        if not is_due(plugin, now_s):
            events.append(MetricEvent(Metric.SKIPPED, (plugin.plugin_id,)))
            if plugin.held is not None and plugin.hold_policy is HoldPolicy.HOLD_LAST:
                held = plugin.held
                active.inherited.append(PluginResult(plugin.plugin_id, plugin.priority, Kind.OVERRIDE, held.targets, held.reason))
        elif (missing := _missing(plugin, context)) is not None:
            events.append(MetricEvent(Metric.REQUIRES_UNSATISFIED, (plugin.plugin_id, missing)))
        else:
            events.append(MetricEvent(Metric.LAG, (plugin.plugin_id,), _lag(plugin, now_s)))
            active.due.append(plugin)
    return active


def resolve(context: Context, path: str) -> object:
    """What stands at a dotted path such as observations.traffic; None where there is nothing, or no such field."""
    value: object = context
    for name in path.split("."):
        if value is None:
            return None
        value = _step(value, name)
    return value


def _step(value: object, name: str) -> object:
    if isinstance(value, Mapping):
        return None
    if isinstance(value, WorkerCounts):
        name = _WORKER_NAMES.get(name, "")
    elif isinstance(value, FpmObservations):
        name = _FPM_NAMES.get(name, "")
        # On the wire a map is never absent.
        return (getattr(value, name) or {}) if name else None
    fields: Mapping[str, object] = getattr(type(value), "__dataclass_fields__", {})
    return getattr(value, name) if name in fields else None


def _missing(plugin: Plugin, context: Context) -> str | None:
    return next((path for path in plugin.requires if resolve(context, path) is None), None)


def _lag(plugin: Plugin, now_s: float) -> float:
    if plugin.last_call_at is None or plugin.interval_s <= 0:
        return 0.0
    return max(0.0, now_s - (plugin.last_call_at + plugin.interval_s))
