"""Whether a response is one: of its stage, with numbers that are numbers. What is none counts as a failed call."""

import math
from types import UnionType

from controllers.planner.merge import Kind, Target, TargetType
from controllers.planner.plugins.records import Failure, FailureKind, PluginStage, Prediction, PredictResponse, StageResponse

__all__ = ("MAX_REPLICAS", "MIN_REPLICAS", "checked")

# What an int32 can say. Smaller bounds are for merging, floors and budgets.
MIN_REPLICAS, MAX_REPLICAS = -(2**31), 2**31 - 1
# More than any deployment has components, and than anybody reads.
MOST_TARGETS, LONGEST_REASON = 256, 10_000
NUMBERS = ("predicted_num_req", "predicted_isl", "predicted_osl", "predicted_kv_hit_rate", "predicted_accept_length")


def checked(stage: PluginStage, response: object) -> PredictResponse | StageResponse | Failure:
    """The response itself, or what is wrong with it."""
    problem: str | None
    if stage == "predict":
        if not isinstance(response, PredictResponse):
            return _wrong(f"predict answers PredictResponse, not {type(response).__name__}")
        problem = None if response.predictions is None else _prediction(response.predictions)
    else:
        if not isinstance(response, StageResponse):
            return _wrong(f"{stage} answers StageResponse, not {type(response).__name__}")
        problem = _stage(response)
    if problem is None and not (_is(response.reason, str) and len(response.reason) <= LONGEST_REASON):
        problem = f"reason is no text of at most {LONGEST_REASON} characters"
    return response if problem is None else _wrong(problem)


def _wrong(message: str) -> Failure:
    return Failure(FailureKind.SERIALIZATION, message)


def _is(value: object, kind: type | UnionType) -> bool:
    """Says nothing to a type checker, which trusts what a plugin's author declared."""
    return isinstance(value, kind)


def _prediction(prediction: Prediction) -> str | None:
    if not _is(prediction, Prediction):
        return f"predictions is a {type(prediction).__name__}"
    for name in NUMBERS:
        value: object = getattr(prediction, name)
        if value is not None and not (isinstance(value, float | int) and math.isfinite(value)):
            return f"{name} is {value!r:.40}, not a finite number"
    return None if _is(prediction.source, str) else "source is no text"


def _stage(response: StageResponse) -> str | None:
    if response.kind is not None and not _is(response.kind, Kind):
        return f"kind is {response.kind!r:.40}"
    if not _is(response.targets, list | tuple):
        return f"targets is a {type(response.targets).__name__}"
    if len(response.targets) > MOST_TARGETS:
        return f"{len(response.targets)} targets are more than {MOST_TARGETS}"
    return next((problem for target in response.targets if (problem := _target(target)) is not None), None)


def _target(target: Target) -> str | None:
    if not _is(target, Target):
        return f"a target is a {type(target).__name__}"
    component, replicas = target.component, target.replicas
    if not _is(component, str):
        return f"a target's component is a {type(component).__name__}"
    if replicas is not None and not (type(replicas) is int and MIN_REPLICAS <= replicas <= MAX_REPLICAS):
        return f"{component:.40}: replicas is {replicas!r:.40}, not an integer of 32 bits"
    return None if _is(target.type, TargetType) else f"{component:.40}: type is {target.type!r:.40}"
