"""Recorded calls of pure functions, made again. A line of a file is {"fn", "in", "out"}."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum
from math import nan
from typing import Any

import msgspec
from pydantic import ValidationError

from controllers.planner.budget import bounds_for_total, clamp_pair, clamp_single
from controllers.planner.config.load import ConfigError, parse_config
from controllers.planner.config.model import PlannerConfig
from controllers.planner.fpm import Fpm, Queued, Scheduled
from controllers.planner.merge import Kind, PluginResult, Target, TargetType, merge
from controllers.planner.perfmodel import ModelOptions, PerformanceModel
from controllers.planner.perfmodel.options import Limits, check_options
from controllers.planner.perfmodel.regression import RankLoad, Regression
from controllers.planner.power import PowerLoad, PowerReason, apply_power_budget
from controllers.planner.predict.base import PredictError
from controllers.planner.predict.traffic import new_predictor
from controllers.planner.replay.compare import differences
from controllers.planner.replay.decode import CaseError, read_object
from controllers.planner.types import RoleCapabilities

__all__ = ("FUNCTIONS", "Check", "Outcome", "call_again", "check_vector")

_OPTIMISED = ("arima", "prophet")
_OPTIMISED_RTOL = 1e-4
"""Fits end where their optimiser stops, which rounding moves a little."""
_LATER = ("max_throughput_scaling_replicas", "pending_aware_scale_down")
"""Settings that the recorded version had not."""
_ASKED = {0: (0, 0), 4: (4, 7000), 40: (30, 7000)}
"""Of recorded estimates, by "reqs": decode requests, and KV tokens that wait. The recording does not name them."""


class Outcome(StrEnum):
    """SKIPPED: a package is missing. UNKNOWN: there is no such function here."""

    OK = "ok"
    DIFFERS = "differs"
    SKIPPED = "skipped"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Check:
    """One call. `detail`: the first differences, or why it was not made."""

    function: str
    outcome: Outcome
    detail: str = ""


class Skip(Exception):
    """What is recorded cannot be made here."""


def check_vector(text: str | bytes, rtol: float) -> Check:
    """Makes the recorded call. CaseError for a line that is none."""
    vector = read_object(text)
    if not vector.keys() >= {"fn", "in", "out"}:
        raise CaseError("must have fn, in and out")
    name = str(vector["fn"])
    if name not in FUNCTIONS:
        return Check(name, Outcome.UNKNOWN, "no such function here")
    try:
        actual = call_again(name, vector["in"], vector["out"])
    except Skip as reason:
        return Check(name, Outcome.SKIPPED, str(reason))
    except (LookupError, TypeError, AttributeError, ValueError, OverflowError, msgspec.MsgspecError) as error:
        raise CaseError(f"in: {type(error).__name__}: {error}") from None
    if name == "predictor" and vector["in"]["config"].get("load_predictor") in _OPTIMISED:
        rtol = max(rtol, _OPTIMISED_RTOL)
    found = list(differences(vector["out"], actual, rtol, "out"))
    return Check(name, Outcome.DIFFERS, "; ".join(found[:3])) if found else Check(name, Outcome.OK)


def _predictor(given: Mapping[str, Any]) -> list[list[float]]:
    try:
        predictor = new_predictor(parse_config(given["config"], {}))
    except ConfigError as error:
        raise CaseError(f"in.config: {error}") from None
    predictions: list[list[float]] = []
    for index, value in enumerate(given["values"]):
        if index == given["reset_idle_skip_before"]:
            predictor.restart()
        predictor.add(nan if value is None else float(value))
        try:
            predictions.append([predictor.predict(), predictor.predict()])
        except PredictError as error:
            if "needs the extra" in str(error):
                raise Skip(str(error)) from None
            raise
    return predictions


def _configuration(given: object) -> dict[str, Any]:
    try:
        config = PlannerConfig.model_validate(given)
    except ValidationError as error:
        errors = [{"loc": [str(part) for part in item["loc"]], "type": item["type"]} for item in error.errors()]
        return {"ok": False, "errors": errors}
    minimums = config.active_minimums()
    return {
        "ok": True,
        "config": {name: value for name, value in config.model_dump(mode="json").items() if name not in _LATER},
        "active_min_endpoints": [minimums.get("prefill"), minimums.get("decode")],
        "scale_interval_seconds": config.scheduling.scale_interval_seconds,
    }


def _pair(given: Mapping[str, Any]) -> list[int]:
    renamed = {"prefill_min_endpoint": "prefill_min", "decode_min_endpoint": "decode_min"}
    return list(clamp_pair(**{renamed.get(name, name): value for name, value in given.items()}))


def _power(given: Mapping[str, Any]) -> list[Any] | str:
    least_p, least_d = given["prefill_min_endpoint"], given["decode_min_endpoint"]
    verdict = apply_power_budget(
        PowerLoad(given["proposed_p"], given["current_p"], given["p_watts"], least_p),
        PowerLoad(given["proposed_d"], given["current_d"], given["d_watts"], least_p if least_d is None else least_d),
        given["total_budget"],
    )
    return "RuntimeError" if verdict.reason is PowerReason.MINIMUM_INFEASIBLE else list(verdict)


def _merge(given: Mapping[str, Any]) -> dict[str, Any]:
    outcome = merge([_result(result) for result in given["results"]], dict(given["baseline"]), set_allowed=given["set_allowed"])
    stopped = outcome.short_circuited
    return {
        "clamped": [list(clamp) for clamp in outcome.clamped],
        "set_dropped": list(outcome.set_dropped),
        "short_circuit_reason": outcome.short_circuit_reason,
        "short_circuited": stopped,
        "source": None if stopped else outcome.source,
        "targets": None if stopped else [[target.component, target.replicas] for target in outcome.targets],
        "used_final_from": outcome.used_final_from,
    }


def _result(given: Mapping[str, Any]) -> PluginResult:
    targets = [Target(t["component"], t["replicas"], TargetType(t["type"])) for t in given.get("targets", ())]
    return PluginResult(given["plugin_id"], given["priority"], Kind(given["kind"]), targets, given.get("reason", ""), given["final"])


def _options(given: Mapping[str, int]) -> tuple[ModelOptions, Limits]:
    return (
        ModelOptions(given["max_observations"], given["min_observations"], given["bucket_count"]),
        Limits(given["max_num_tokens"], given["max_batch_size"], given["max_kv_tokens"]),
    )


def _regression(given: Mapping[str, Any]) -> list[dict[str, Any]]:
    options, _ = _options(given["options"])
    core = Regression(options)
    steps: list[dict[str, Any]] = []
    for step in given["steps"]:
        error = _tuned(core, step)
        steps.append(
            {
                "error": error,
                "diagnostics": msgspec.to_builtins(core.diagnostics()),
                "estimates": [core.estimate_ms(_loads(probe)) for probe in given["probes"]],
            }
        )
    return steps


def _tuned(core: Regression, step: Sequence[Any]) -> str | None:
    try:
        for iteration in step:
            core.tune(_loads(iteration))
    except ValueError as error:
        return f"ValueError: {error}"
    return None


def _loads(iteration: Sequence[Mapping[str, Any]]) -> list[RankLoad]:
    ranks = [msgspec.convert(rank, Fpm) for rank in iteration]
    return [
        RankLoad(
            rank.scheduled_requests.num_prefill_requests,
            rank.scheduled_requests.sum_prefill_tokens,
            rank.scheduled_requests.sum_prefill_kv_tokens,
            rank.scheduled_requests.num_decode_requests,
            rank.scheduled_requests.sum_decode_kv_tokens,
            rank.wall_time,
        )
        for rank in ranks
    ]


def _regression_options(given: Mapping[str, int]) -> str | None:
    """What is wrong with options, None if nothing is."""
    try:
        check_options(*_options(given))
    except ValueError as error:
        return f"ValueError: {error}"
    return None


def _capacity(given: Mapping[str, Any], recorded: Mapping[str, Any]) -> dict[str, Any]:
    model = PerformanceModel(given["worker_type"], ModelOptions(4096, 5, 16))
    model.update_capabilities(RoleCapabilities(**given["capabilities"]))
    model.bootstrap(msgspec.convert(given["bootstrap"], list[Fpm]))
    return {
        "avg_isl": model.avg_isl,
        "avg_decode_length": model.avg_decode_length,
        "capacity": [{"q": search["q"], "out": _search(model, search["q"])} for search in recorded["capacity"]],
        "estimates": [_estimate(model, asked) for asked in recorded["estimates"]],
    }


def _search(model: PerformanceModel, asked: Mapping[str, Any]) -> dict[str, Any] | None:
    found = model.capacity(
        isl=asked["isl"],
        osl=asked["osl"],
        ttft_ms=asked["ttft_sla_ms"],
        itl_ms=asked["itl_sla_ms"],
        kv_hit_rate=asked["kv_hit_rate"],
        accept_length=asked["accept_length"],
    )
    return None if found is None else {name: value for name, value in asdict(found).items() if name != "batch"}


def _estimate(model: PerformanceModel, asked: Mapping[str, Any]) -> dict[str, Any]:
    requests, waiting_kv = _ASKED[asked["reqs"]]
    rest = min(requests, 1)
    scheduled = Scheduled(num_decode_requests=rest, sum_decode_kv_tokens=asked["kv"])
    queued = Queued(
        num_prefill_requests=max(requests - 2, 0),
        sum_prefill_tokens=asked["queued"],
        num_decode_requests=rest,
        sum_decode_kv_tokens=waiting_kv,
    )
    (group,) = model.groups({("w", 0): Fpm(worker_id="w", scheduled_requests=scheduled, queued_requests=queued)})
    scale = asked["scale"]
    prefill_s = model.queued_prefill_time_s(group, kv_hit_rate=0.25, queue_scale=scale, decode_scale=scale, include_queued_decode=True)
    decode_s = model.decode_itl_s(group, decode_scale=scale, include_queued_decode=True, include_queued_prefill=True)
    return {**asked, "prefill_s": prefill_s, "decode_s": decode_s}


_FUNCTIONS: Mapping[str, Callable[[Any], object]] = {
    "predictor": _predictor,
    "PlannerConfig.model_validate": _configuration,
    "regression": _regression,
    "proportional_clamp_pair": _pair,
    "proportional_clamp_single": lambda given: clamp_single(**given),
    "bounds_for_total": lambda given: list(bounds_for_total(**given)),
    "apply_power_budget": _power,
    "type_aware_merge": _merge,
}


def call_again(name: str, given: Any, recorded: Any) -> object:
    """What the function of this name makes of `given`. Of two functions the recording says more than what was given."""
    if name == "find_engine_capacity_rps":
        return _capacity(given, recorded)
    if name == "regression_options":
        # Accepted options were recorded in some form that says no more than that.
        return _regression_options(given) or (None if isinstance(recorded, str) else recorded)
    return _FUNCTIONS[name](given)


FUNCTIONS = frozenset({*_FUNCTIONS, "find_engine_capacity_rps", "regression_options"})
