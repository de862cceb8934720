"""Between records and the messages of plugin.proto. Source: planner.md §9.

What a plugin sent is decoded into records or refused with WireError; only the outside of a message is judged here, its numbers by `sanity`.
"""

from collections.abc import Sequence
from typing import TypeAlias, TypeVar

import msgspec
from google.protobuf.message import DecodeError, Message

from controllers.planner.fpm import FpmMap
from controllers.planner.merge import Kind, PluginResult, Target, TargetType
from controllers.planner.plugins.records import (
    STAGES,
    Context,
    HoldPolicy,
    Observations,
    PluginStage,
    Prediction,
    PredictResponse,
    Proposal,
    StageRequest,
    StageResponse,
)
from controllers.planner.plugins.registry import Registration
from controllers.planner.plugins.wire import plugin_pb2 as pb
from controllers.planner.types import FpmObservations, TrafficObservation, WorkerCounts

__all__ = ("PACKAGE", "WireError", "decode_response", "encode_request", "method_name", "parse", "registration")

PACKAGE = "dynamo.planner.plugin.v1"
_MAX_UINT32 = 2**32 - 1
_MOST_CHARACTERS = 256
_MOST_PATHS = 64
_M = TypeVar("_M", bound=Message)
StageMessage: TypeAlias = pb.ProposeStageResponse | pb.ReconcileStageResponse | pb.ConstrainStageResponse
_RESPONSES: dict[PluginStage, type[StageMessage]] = {
    "propose": pb.ProposeStageResponse,
    "reconcile": pb.ReconcileStageResponse,
    "constrain": pb.ConstrainStageResponse,
}
_TYPES = {pb.SET: TargetType.SET, pb.AT_LEAST: TargetType.AT_LEAST, pb.AT_MOST: TargetType.AT_MOST}
_NUMBERS = {kind: number for number, kind in _TYPES.items()}


class WireError(ValueError):
    """Bytes that are no message, or a message that means nothing."""


def method_name(stage: PluginStage) -> str:
    """Path of the call that asks a plugin of the stage."""
    return f"/{PACKAGE}.{stage.capitalize()}Plugin/{stage.capitalize()}"


def parse(kind: type[_M], data: bytes) -> _M:
    """Fields that are not known are ignored. WireError."""
    message = kind()
    try:
        message.ParseFromString(data)
    except DecodeError as error:
        raise WireError(f"not a {kind.DESCRIPTOR.name}: {error}") from None
    return message


def encode_request(stage: PluginStage, request: StageRequest) -> bytes:
    """What is sent to a plugin of the stage."""
    context = _context(request.context)
    match stage:
        case "predict":
            message: Message = pb.PredictStageRequest(context=context)
        case "propose":
            message = pb.ProposeStageRequest(context=context)
        case "reconcile":
            message = pb.ReconcileStageRequest(context=context, proposals=[_propose_result(result) for result in request.proposals])
        case "constrain":
            message = pb.ConstrainStageRequest(context=context)
    return message.SerializeToString(deterministic=True)


def decode_response(stage: PluginStage, data: bytes) -> PredictResponse | StageResponse:
    """What a plugin of the stage answered. A result that is not set is `kind` None; an empty AcceptResult is set. WireError."""
    if stage == "predict":
        answer = parse(pb.PredictStageResponse, data)
        predictions = _prediction(answer.predictions) if answer.HasField("predictions") else None
        return PredictResponse(predictions, answer.reason, answer.final)
    message = parse(_RESPONSES[stage], data)
    match message.WhichOneof("result"):
        case "accept":
            return StageResponse(Kind.ACCEPT, final=message.final)
        case "override":
            targets = tuple(_target(target) for target in message.override.targets)
            return StageResponse(Kind.OVERRIDE, targets, message.override.reason, message.final)
        case "reject":
            return StageResponse(Kind.REJECT, reason=message.reject.reason, final=message.final)
        case _:
            return StageResponse(None, final=message.final)


def registration(message: pb.RegisterRequest) -> Registration:
    """WireError names the field that is wrong. What the registry checks itself is not looked at."""
    stage: PluginStage | None = next((stage for stage in STAGES if stage == message.plugin_type), None)
    if stage is None:
        raise WireError(f"plugin_type must be one of {', '.join(STAGES)}")
    if not message.plugin_id:
        raise WireError("plugin_id must not be empty")
    if not message.endpoint:
        raise WireError("endpoint must not be empty")
    _check_texts(message)
    if not 0 <= message.execution_interval_seconds < float("inf"):
        raise WireError("execution_interval_seconds must be 0 or more")
    if message.hold_policy not in (pb.ACCEPT_WHEN_IDLE, pb.HOLD_LAST):
        raise WireError("hold_policy must be ACCEPT_WHEN_IDLE or HOLD_LAST")
    return Registration(
        plugin_id=message.plugin_id,
        plugin_type=stage,
        priority=message.priority,
        endpoint=message.endpoint,
        version=message.version,
        interval_s=message.execution_interval_seconds,
        hold_policy=HoldPolicy(message.hold_policy),
        needs=tuple(message.needs),
        protocol_version=message.protocol_version,
        auth_token=message.auth_token,
        requires=tuple(message.requires_produced_fields),
        window_s=message.observation_window_seconds,
    )


def _check_texts(message: pb.RegisterRequest) -> None:
    """Bounds what is kept of a plugin, and what of it comes into logs."""
    for name, text in (("plugin_id", message.plugin_id), ("endpoint", message.endpoint), ("version", message.version)):
        if len(text) > _MOST_CHARACTERS or not text.isprintable():
            raise WireError(f"{name} must be printable and have at most {_MOST_CHARACTERS} characters")
    for name, paths in (("needs", message.needs), ("requires_produced_fields", message.requires_produced_fields)):
        if len(paths) > _MOST_PATHS or any(len(path) > _MOST_CHARACTERS for path in paths):
            raise WireError(f"{name} must be at most {_MOST_PATHS} paths of at most {_MOST_CHARACTERS} characters")


def _context(context: Context) -> pb.PipelineContext:
    return pb.PipelineContext(
        request_id=context.request_id,
        decision_id=context.decision_id,
        observations=None if context.observations is None else _observations(context.observations),
        predictions=None if context.predictions is None else _prediction_message(context.predictions),
        proposal=None if context.proposal is None else _proposal(context.proposal),
        constrained=None if context.constrained is None else _proposal(context.constrained),
    )


def _observations(seen: Observations) -> pb.ObservationData:
    return pb.ObservationData(
        traffic=None if seen.traffic is None else _traffic(seen.traffic),
        fpm=None if seen.fpm is None else _fpm(seen.fpm),
        workers=None if seen.workers is None else _workers(seen.workers),
    )


def _traffic(traffic: TrafficObservation) -> pb.TrafficMetrics:
    return pb.TrafficMetrics(
        duration_s=traffic.duration_s,
        num_req=traffic.num_req,
        isl=traffic.isl,
        osl=traffic.osl,
        kv_hit_rate=traffic.kv_hit_rate,
        accept_length=traffic.accept_length,
    )


def _fpm(fpm: FpmObservations) -> pb.FpmData:
    return pb.FpmData(prefill_engines=_engines(fpm.prefill), decode_engines=_engines(fpm.decode))


def _engines(engines: FpmMap | None) -> dict[str, bytes]:
    return {f"{worker}/{rank}": msgspec.msgpack.encode(fpm) for (worker, rank), fpm in (engines or {}).items()}


def _workers(counts: WorkerCounts) -> pb.WorkerState:
    return pb.WorkerState(
        ready_prefill=counts.ready_num_prefill,
        ready_decode=counts.ready_num_decode,
        expected_prefill=counts.expected_num_prefill,
        expected_decode=counts.expected_num_decode,
        prefill_scaling_in_progress=counts.prefill_scaling_in_progress,
        decode_scaling_in_progress=counts.decode_scaling_in_progress,
    )


def _prediction_message(prediction: Prediction) -> pb.PredictionData:
    return pb.PredictionData(
        predicted_num_req=prediction.predicted_num_req,
        predicted_isl=prediction.predicted_isl,
        predicted_osl=prediction.predicted_osl,
        source=prediction.source,
        predicted_kv_hit_rate=prediction.predicted_kv_hit_rate,
        predicted_accept_length=prediction.predicted_accept_length,
    )


def _prediction(message: pb.PredictionData) -> Prediction:
    return Prediction(
        message.predicted_num_req if message.HasField("predicted_num_req") else None,
        message.predicted_isl if message.HasField("predicted_isl") else None,
        message.predicted_osl if message.HasField("predicted_osl") else None,
        message.source,
        message.predicted_kv_hit_rate if message.HasField("predicted_kv_hit_rate") else None,
        message.predicted_accept_length if message.HasField("predicted_accept_length") else None,
    )


def _proposal(proposal: Proposal) -> pb.ScalingProposal:
    return pb.ScalingProposal(targets=_targets(proposal.targets), reason=proposal.reason, source=proposal.source)


def _targets(targets: Sequence[Target]) -> list[pb.ComponentTarget]:
    return [
        pb.ComponentTarget(
            sub_component_type=target.component,
            replicas=target.replicas,
            type=_NUMBERS[target.type],
        )
        for target in targets
    ]


def _target(message: pb.ComponentTarget) -> Target:
    kind = _TYPES.get(message.type)
    if kind is None:
        raise WireError(f"type of a target is {message.type}, which is no OverrideType")
    return Target(message.sub_component_type, message.replicas if message.HasField("replicas") else None, kind)


def _propose_result(result: PluginResult) -> pb.ProposeResult:
    # The configuration allows any integer, the wire does not.
    message = pb.ProposeResult(plugin_id=result.plugin_id, priority=max(0, min(result.priority, _MAX_UINT32)))
    match result.kind:
        case Kind.ACCEPT:
            message.accept.SetInParent()
        case Kind.OVERRIDE:
            message.override.SetInParent()
            message.override.targets.extend(_targets(result.targets))
            message.override.reason = result.reason
        case Kind.REJECT:
            message.reject.SetInParent()
            message.reject.reason = result.reason
    return message
