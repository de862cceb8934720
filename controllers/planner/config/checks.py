"""What fields of a planner configuration ask of each other: planner.md §1.2. Errors are ValueErrors; the first one wins."""

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from controllers.planner.config.model import PlannerConfig

__all__ = ("check_after_target", "check_before_target", "sweeping_notes", "target_notes", "with_tick_base")

LOAD_INTERVAL = ("load_adjustment_interval_seconds", "load_adjustment_interval", 5)
THROUGHPUT_INTERVAL = ("throughput_adjustment_interval_seconds", "throughput_adjustment_interval", 180)
RATIO_TOLERANCE = 1e-9


def with_tick_base(data: Mapping[str, Any]) -> dict[str, Any]:
    """The same settings with `scheduling.scale_interval_seconds` as the greatest common divisor of the intervals in use, unless given."""
    settings = dict(data)
    scheduling = settings.get("scheduling", {})
    if not isinstance(scheduling, Mapping) or "scale_interval_seconds" in scheduling:
        return settings
    names: list[tuple[str, str, int]] = [LOAD_INTERVAL]
    if _is_on(settings.get("enable_throughput_scaling", True)) and settings.get("optimization_target", "throughput") == "sla":
        names.append(THROUGHPUT_INTERVAL)
    intervals = [settings.get(primary, settings.get(alias, default)) for primary, alias, default in names]
    try:
        base = math.gcd(*(round(float(interval) * 1000) for interval in intervals)) / 1000
    except (TypeError, ValueError, OverflowError):
        # Not numbers: validation of the fields says so.
        return settings
    settings["scheduling"] = {**scheduling, "scale_interval_seconds": base}
    return settings


def _is_on(value: object) -> bool:
    return value.strip().lower() in ("1", "true", "yes", "on") if isinstance(value, str) else bool(value)


def check_before_target(config: "PlannerConfig") -> None:
    """Checks that do not depend on which loops run, in the order of Planner."""
    for check in (_service_level, _minimums, _report, _buckets, _power, _global_planner, _thresholds):
        check(config)


def check_after_target(config: "PlannerConfig") -> None:
    """Checks of the loops that run, once the optimisation target has had its say."""
    for check in (_any_loop, _picks, _intervals):
        check(config)


def _service_level(config: "PlannerConfig") -> None:
    if config.ttft_ms <= 0:
        raise ValueError(f"ttft_ms must be greater than 0, is {config.ttft_ms}")


def _minimums(config: "PlannerConfig") -> None:
    foreign = {"prefill": ("decode",), "decode": ("prefill",), "agg": ("prefill", "decode")}.get(config.mode, ())
    for role in foreign:
        if getattr(config, f"{role}_min_endpoint") is not None:
            instead = "min_endpoint" if config.mode == "agg" else f"{config.mode}_min_endpoint"
            raise ValueError(f"{role}_min_endpoint has no meaning in mode {config.mode}: remove it, set {instead} instead")


def _report(config: "PlannerConfig") -> None:
    hours = config.report_interval_hours
    if hours is not None and not (math.isfinite(hours) and hours > 0):
        raise ValueError(f"report_interval_hours must be a finite number greater than 0, or null for no reports; is {hours}")


def _buckets(config: "PlannerConfig") -> None:
    size = config.fpm_sample_bucket_size
    if size < 0 or math.isqrt(size) ** 2 != size:
        raise ValueError(f"fpm_sample_bucket_size must be a perfect square such as 16 or 25, is {size}")


def _power(config: "PlannerConfig") -> None:
    if not config.enable_power_awareness:
        return
    if config.total_gpu_power_limit is None:
        raise ValueError("enable_power_awareness needs total_gpu_power_limit: set it to the watts that all engines may draw")
    if config.environment != "kubernetes":
        raise ValueError(f"enable_power_awareness works only with environment kubernetes, not {config.environment}")
    if config.mode == "agg":
        raise ValueError("enable_power_awareness does not work in mode agg: switch it off, or use another mode")


def _global_planner(config: "PlannerConfig") -> None:
    if config.environment == "global-planner" and not config.global_planner_namespace:
        raise ValueError("environment global-planner needs global_planner_namespace: set it to the Dynamo namespace of the global planner")


def _thresholds(config: "PlannerConfig") -> None:
    if config.optimization_target != "load":
        return
    pairs = {"prefill": ("prefill_scale_up_queue_tokens", "prefill_scale_down_queue_tokens")}
    pairs["decode"] = ("decode_scale_up_kv_rate", "decode_scale_down_kv_rate")
    for role in config.roles:
        names = pairs[role]
        up, down = (getattr(config, name) for name in names)
        if up is None or down is None:
            raise ValueError(f"optimization_target load needs {names[0]} and {names[1]} in mode {config.mode}: set both")
        if not up > down:
            raise ValueError(f"{names[0]} ({up}) must be greater than {names[1]} ({down})")


def target_notes(config: "PlannerConfig") -> tuple[str, ...]:
    """Warnings about settings that a target other than sla overrules."""
    target = config.optimization_target
    if target == "sla":
        return ()
    notes: list[str] = []
    if target == "load" and config.enable_throughput_scaling:
        notes.append("enable_throughput_scaling has no effect: optimization_target load scales by load only")
    for name, default in (("ttft_ms", 500.0), ("itl_ms", 50.0)):
        if getattr(config, name) != default:
            notes.append(f"{name} has no effect with optimization_target {target}: use optimization_target sla to scale by it")
    return tuple(notes)


def _any_loop(config: "PlannerConfig") -> None:
    if not (config.enable_throughput_scaling or config.enable_load_scaling):
        raise ValueError("nothing would scale: set enable_throughput_scaling or enable_load_scaling to true")


def sweeping_notes(config: "PlannerConfig") -> tuple[str, ...]:
    """Warnings about throughput scaling without performance data at the start."""
    if not config.enable_throughput_scaling:
        return ()
    if config.pre_deployment_sweeping_mode == "none":
        return ("pre_deployment_sweeping_mode none: throughput scaling waits until enough forward passes were observed",)
    if config.pre_deployment_sweeping_mode == "rapid" and config.aic_interpolation is None:
        return ("pre_deployment_sweeping_mode rapid needs aic_interpolation to have an effect: throughput scaling starts without its data",)
    return ()


def _picks(config: "PlannerConfig") -> None:
    if config.aic_perf_model is None:
        return
    for role in config.roles:
        if getattr(config.aic_perf_model, f"{role}_pick") is None:
            raise ValueError(f"aic_perf_model.{role}_pick must be set in mode {config.mode}")


def _intervals(config: "PlannerConfig") -> None:
    load, throughput = config.load_adjustment_interval_seconds, config.throughput_adjustment_interval_seconds
    if config.enable_throughput_scaling and throughput <= 0:
        raise ValueError(f"throughput_adjustment_interval_seconds must be greater than 0, is {throughput}")
    base = config.scheduling.scale_interval_seconds
    used = {"load_adjustment_interval_seconds": load}
    if config.enable_throughput_scaling:
        used["throughput_adjustment_interval_seconds"] = throughput
    for name, interval in used.items():
        if not _is_multiple(interval, base):
            raise ValueError(f"{name} ({interval}) must be a multiple of scheduling.scale_interval_seconds ({base})")
    if config.enable_throughput_scaling and config.enable_load_scaling and load >= throughput:
        raise ValueError(
            f"load_adjustment_interval_seconds ({load}) must be less than throughput_adjustment_interval_seconds ({throughput})"
        )


def _is_multiple(interval: float, base: float) -> bool:
    try:
        ratio = interval / base
    except OverflowError:
        return False
    if not math.isfinite(ratio):
        return False
    nearest = round(ratio)
    return nearest >= 1 and math.isclose(ratio, nearest, rel_tol=RATIO_TOLERANCE, abs_tol=RATIO_TOLERANCE)
