"""When ticks are, and what they read."""

import json
from typing import Any

import pytest

from controllers.planner.config.load import load_config
from controllers.planner.plugins.registry import Registry
from controllers.planner.ticks import TickScheduler
from controllers.planner.types import ScheduledTick
from tests.unit.planner.planner_plugins import registry

TRAFFIC, FPM = ("observations.traffic",), ("observations.fpm", "observations.workers")


def scheduler(**settings: Any) -> tuple[TickScheduler, Registry]:
    config = load_config(json.dumps({"optimization_target": "sla", "load_predictor": "constant"} | settings), {})
    return TickScheduler(config), registry(config.scheduling.scale_interval_seconds)


def ticks(made: TickScheduler, plugins: Registry, count: int, start_s: float = 1000.0, late_s: float = 0.0) -> list[ScheduledTick]:
    """Each run `late_s` after it was planned; the monotonic clock is 990 behind."""
    found: list[ScheduledTick] = [made.initial_tick(start_s, start_s - 990.0, plugins)]
    for _ in range(count - 1):
        now = found[-1].at_s + late_s
        made.ran(found[-1], now, now - 990.0)
        found.append(made.next_tick(plugins))
    return found


def test_loops_run_on_those_ticks_by_which_their_interval_has_passed() -> None:
    made, plugins = scheduler(enable_load_scaling=True)
    found = ticks(made, plugins, 73)
    assert (found[0].at_s, found[0].at_monotonic_s, found[1].at_s) == (1005.0, 15.0, 1010.0)
    assert all(tick.run_load_scaling for tick in found)
    assert [n for n, tick in enumerate(found, 1) if tick.run_throughput_scaling] == [36, 72]


def test_the_base_is_what_both_intervals_share() -> None:
    made, plugins = scheduler(enable_load_scaling=True, load_adjustment_interval_seconds=10, throughput_adjustment_interval_seconds=15)
    found = ticks(made, plugins, 6)
    assert [tick.at_s for tick in found[:3]] == [1005.0, 1010.0, 1015.0]
    assert [(tick.run_load_scaling, tick.run_throughput_scaling) for tick in found] == [
        *((False, False), (True, False), (False, True), (True, False), (False, False), (True, True))
    ]


def test_a_late_tick_delays_those_after_it() -> None:
    made, plugins = scheduler(enable_load_scaling=True)
    assert [tick.at_s for tick in ticks(made, plugins, 3, late_s=2.0)] == [1005.0, 1012.0, 1019.0]


def test_a_billionth_of_a_second_early_is_in_time() -> None:
    made, plugins = scheduler(enable_load_scaling=True)
    first = made.initial_tick(0.0, 0.0, plugins)
    made.ran(first, 5.0, 5.0 + 5e-10)
    made.last_tick_mono_s = 5.0
    assert made.next_tick(plugins).run_load_scaling


def test_the_load_loop_is_due_even_if_load_scaling_is_off() -> None:
    # The base is five seconds even so: the load interval always counts.
    made, plugins = scheduler()
    assert all(tick.run_load_scaling and tick.need_worker_fpm and tick.need_worker_states for tick in ticks(made, plugins, 3))


def test_throughput_is_never_due_when_it_is_off() -> None:
    made, plugins = scheduler(enable_throughput_scaling=False, enable_load_scaling=True)
    assert not any(tick.run_throughput_scaling for tick in ticks(made, plugins, 40))


def test_builtins_count_from_the_start() -> None:
    made, plugins = scheduler(enable_load_scaling=True)
    builtin = plugins.register_internal("builtin_load_predict", "predict", 0, None, 3.0, interval_s=180.0, needs=TRAFFIC, window_s=180.0)
    found = ticks(made, plugins, 36)
    assert builtin.registered_at == 10.0
    assert [n for n, tick in enumerate(found, 1) if tick.need_traffic_metrics] == [36]
    assert (found[35].traffic_metrics_duration_s, found[35].use_full_traffic_metrics) == (180.0, True)
    assert found[0].traffic_metrics_duration_s == 0.0


@pytest.mark.parametrize(("throughput", "full"), [(False, False), (True, True)])
def test_the_load_plugin_alone_wants_little_of_traffic(*, throughput: bool, full: bool) -> None:
    made, plugins = scheduler(enable_throughput_scaling=throughput, enable_load_scaling=True)
    plugins.register_internal("builtin_load_propose", "propose", 10, None, 0.0, interval_s=5.0, needs=(*FPM, *TRAFFIC), window_s=5.0)
    (tick,) = ticks(made, plugins, 1)
    assert (tick.need_traffic_metrics, tick.use_full_traffic_metrics, tick.traffic_metrics_duration_s) == (True, full, 5.0)
    plugins.register_internal("other", "propose", 10, None, 0.0, needs=("observations.traffic.isl",), window_s=60.0, version="user")
    tick = made.next_tick(plugins)
    assert (tick.use_full_traffic_metrics, tick.traffic_metrics_duration_s) == (True, 60.0)


def test_a_reader_without_window_reads_one_base_interval() -> None:
    made, plugins = scheduler(enable_load_scaling=True)
    plugins.register_internal("other", "propose", 10, None, 0.0, needs=TRAFFIC, version="user-in-process")
    assert ticks(made, plugins, 1)[0].traffic_metrics_duration_s == 5.0


@pytest.mark.parametrize(
    ("need", "traffic", "fpm"),
    [
        ("observations.fpm", False, True),
        ("observations.fpm.decode_engines", False, True),
        ("observations.fpmx", False, False),
        ("observations.trafficking", False, False),
        ("observations", False, False),
        ("observations.traffic.isl", True, False),
    ],
)
def test_needs_are_paths(need: str, *, traffic: bool, fpm: bool) -> None:
    made, plugins = scheduler(optimization_target="throughput")
    plugins.register_internal("other", "propose", 10, None, 0.0, needs=(need,), version="user-in-process")
    tick = ticks(made, plugins, 1)[0]
    assert (tick.need_traffic_metrics, tick.need_worker_fpm) == (traffic, fpm)


def test_plugins_that_are_not_due_need_nothing() -> None:
    made, plugins = scheduler(optimization_target="throughput")
    plugins.register_internal("other", "propose", 10, None, 0.0, interval_s=20.0, needs=(*TRAFFIC, *FPM))
    assert [(tick.need_traffic_metrics, tick.need_worker_fpm) for tick in ticks(made, plugins, 4)] == [*[(False, False)] * 3, (True, True)]
