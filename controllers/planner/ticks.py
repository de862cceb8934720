"""When to look again, and what to read then. Source: planner.md §3."""

from dataclasses import dataclass

from controllers.planner.config.model import PlannerConfig
from controllers.planner.plugins.records import Plugin
from controllers.planner.plugins.registry import Registry
from controllers.planner.plugins.schedule import is_due
from controllers.planner.types import ScheduledTick

__all__ = ("LOAD_PROPOSE", "TickScheduler")

LOAD_PROPOSE = "builtin_load_propose"
_TOLERANCE_S = 1e-9


@dataclass(slots=True)
class TickScheduler:
    """One tick per base interval, counted from when the last one ran. Loops run on those ticks by which their interval has passed.

    Attributes with `mono` in their name are seconds of the monotonic clock, `last_tick_s` is epoch or simulated time.
    """

    config: PlannerConfig
    last_tick_s: float = 0.0
    last_tick_mono_s: float = 0.0
    last_load_mono_s: float = 0.0
    last_throughput_mono_s: float = 0.0

    def initial_tick(self, start_s: float, monotonic_s: float, registry: Registry) -> ScheduledTick:
        """Everything counts from here, intervals of built-in plugins too."""
        self.last_tick_s = start_s
        self.last_tick_mono_s = self.last_load_mono_s = self.last_throughput_mono_s = monotonic_s
        registry.start_builtins(monotonic_s)
        return self.next_tick(registry)

    def ran(self, tick: ScheduledTick, now_s: float, monotonic_s: float) -> None:
        """`tick` runs now; a late one delays those after it."""
        self.last_tick_s, self.last_tick_mono_s = now_s, monotonic_s
        if tick.run_load_scaling:
            self.last_load_mono_s = monotonic_s
        if tick.run_throughput_scaling:
            self.last_throughput_mono_s = monotonic_s

    def next_tick(self, registry: Registry) -> ScheduledTick:
        """Reads are planned for those plugins that will be due."""
        config = self.config
        base_s = config.scheduling.scale_interval_seconds
        at_mono_s = self.last_tick_mono_s + base_s
        load = at_mono_s - self.last_load_mono_s >= config.load_adjustment_interval_seconds - _TOLERANCE_S
        throughput = config.enable_throughput_scaling and (
            at_mono_s - self.last_throughput_mono_s >= config.throughput_adjustment_interval_seconds - _TOLERANCE_S
        )
        due = [plugin for plugin in registry.plugins if is_due(plugin, at_mono_s)]
        readers = [plugin for plugin in due if _needs(plugin, "observations.traffic")]
        windows = [plugin.window_s for plugin in readers if plugin.window_s > 0]
        return ScheduledTick(
            at_s=self.last_tick_s + base_s,
            at_monotonic_s=at_mono_s,
            run_load_scaling=load,
            run_throughput_scaling=throughput,
            need_traffic_metrics=bool(readers),
            use_full_traffic_metrics=any(config.enable_throughput_scaling or plugin.plugin_id != LOAD_PROPOSE for plugin in readers),
            traffic_metrics_duration_s=max(windows, default=base_s) if readers else 0.0,
            need_worker_states=True,
            need_worker_fpm=(config.optimization_target == "sla" and load) or any(_needs(plugin, "observations.fpm") for plugin in due),
        )


def _needs(plugin: Plugin, path: str) -> bool:
    return any(need == path or need.startswith(f"{path}.") for need in plugin.needs)
