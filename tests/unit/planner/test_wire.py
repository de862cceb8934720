"""Messages of plugins against bytes written by hand."""

import msgspec
import pytest
from google.protobuf.descriptor_pb2 import DescriptorProto
from google.protobuf.message import Message

from controllers.planner.config.parts import HoldPolicy
from controllers.planner.fpm import Fpm, Scheduled
from controllers.planner.merge import Kind, PluginResult, Target, TargetType
from controllers.planner.plugins.records import (
    ACCEPT,
    Context,
    Observations,
    PluginStage,
    Prediction,
    PredictResponse,
    Proposal,
    StageRequest,
    StageResponse,
)
from controllers.planner.plugins.wire import plugin_pb2 as pb
from controllers.planner.plugins.wire.convert import WireError, decode_response, encode_request, method_name, parse, registration
from controllers.planner.types import FpmObservations, TrafficObservation, WorkerCounts
from hack.codegen import protobuf
from tests.unit.planner.planner_bytes import decode, double, encode, integer, message, single, text
from tests.unit.planner.planner_plugins import override, predicted

ME = (text(1, "p"), text(2, "propose"), text(4, "grpc://h:1"), text(9, "1.0"))
UNKNOWN = (integer(99, 5), text(100, "later"), double(101, 1.0), single(102, 2.0))
RESULT_STAGES: tuple[PluginStage, ...] = ("propose", "reconcile", "constrain")


def test_a_registration_by_numbers() -> None:
    data = encode(
        *(text(1, "p"), text(2, "constrain"), integer(3, 2**32 - 1), text(4, "grpc://h:1"), text(5, "v3"), single(6, 0.1)),
        *(integer(7, 1), text(8, "observations.fpm"), text(8, "predictions"), text(9, "1.0"), text(10, "t0ken")),
        *(text(13, "predictions"), text(13, "proposal"), single(14, 15.0), *UNKNOWN),
    )
    asked = registration(parse(pb.RegisterRequest, data))
    assert (asked.plugin_id, asked.plugin_type, asked.priority) == ("p", "constrain", 2**32 - 1)
    assert (asked.endpoint, asked.version) == ("grpc://h:1", "v3")
    # A tenth in 32 bits is not a tenth.
    assert asked.interval_s == 0.10000000149011612
    assert (asked.hold_policy, asked.needs, asked.requires) == (
        HoldPolicy.HOLD_LAST,
        ("observations.fpm", "predictions"),
        ("predictions", "proposal"),
    )
    assert (asked.protocol_version, asked.auth_token, asked.window_s) == ("1.0", "t0ken", 15.0)


def test_what_a_registration_leaves_out_is_zero() -> None:
    asked = registration(parse(pb.RegisterRequest, encode(*ME)))
    assert (asked.priority, asked.interval_s, asked.hold_policy, asked.window_s) == (0, 0.0, HoldPolicy.ACCEPT_WHEN_IDLE, 0.0)
    assert (asked.needs, asked.requires, asked.auth_token, asked.version) == ((), (), "", "")


def test_reserved_numbers_are_unknown_fields() -> None:
    assert registration(parse(pb.RegisterRequest, encode(*ME, text(11, "x"), integer(12, 3)))).plugin_id == "p"
    # From, and the first that is free again.
    assert _ranges(pb.RegisterRequest) == [(11, 12), (12, 13)]
    assert _ranges(pb.ComponentTarget) == [(2, 3)]


def _ranges(kind: type[Message]) -> list[tuple[int, int]]:
    proto = DescriptorProto()
    kind.DESCRIPTOR.CopyToProto(proto)
    return [(span.start, span.end) for span in proto.reserved_range]


@pytest.mark.parametrize(
    ("fields", "names"),
    [
        ((text(1, ""),), "plugin_id"),
        ((text(2, "Propose"),), "plugin_type"),
        ((text(2, "observe"),), "plugin_type"),
        ((text(4, ""),), "endpoint"),
        ((single(6, -1.0),), "execution_interval_seconds"),
        ((single(6, float("nan")),), "execution_interval_seconds"),
        ((single(6, float("inf")),), "execution_interval_seconds"),
        ((integer(7, 2),), "hold_policy"),
    ],
)
def test_registrations_that_mean_nothing(fields: tuple, names: str) -> None:
    with pytest.raises(WireError, match=names):
        registration(parse(pb.RegisterRequest, encode(*ME, *fields)))


@pytest.mark.parametrize("data", [b"\xff", b"\x0a\x05ab", b"\x0a\x02\xff\xfe", b"\x0b", b"\x00\x00"], ids=repr)
def test_bytes_that_are_no_message(data: bytes) -> None:
    with pytest.raises(WireError, match="not a RegisterRequest"):
        parse(pb.RegisterRequest, data)
    for stage in ("predict", *RESULT_STAGES):
        with pytest.raises(WireError, match="not a"):
            decode_response(stage, data)


def test_a_whole_request_by_numbers() -> None:
    fpm = Fpm(worker_id="w", dp_rank=1, wall_time=0.5, scheduled_requests=Scheduled(num_decode_requests=3))
    context = Context(
        "tick-5.0",
        "d-5.0",
        Observations(
            TrafficObservation(5.0, 7.0, 0.0, 2.5, accept_length=1.5),
            FpmObservations(decode={("w", 1): fpm}),
            WorkerCounts(ready_num_prefill=0, expected_num_decode=4, decode_scaling_in_progress=True),
        ),
        Prediction(1.0, None, 0.0, "q", 0.25),
        Proposal((Target("decode", 6, TargetType.AT_MOST), Target("x", None)), source="merged"),
    )
    results = (
        PluginResult("a", -7, Kind.ACCEPT),
        PluginResult("o", 2**40, Kind.OVERRIDE, (Target("decode", 0),), "why"),
        PluginResult("r", 3, Kind.REJECT, reason="no"),
        PluginResult("e", 4, Kind.OVERRIDE),
    )
    top = decode(encode_request("reconcile", StageRequest(context, results)))
    assert [field[0] for field in top] == [1, 2, 2, 2, 2]
    fields = decode(top[0][2])
    assert fields[:2] == [(1, 2, b"tick-5.0"), (2, 2, b"d-5.0")]
    assert [number for number, _, _ in fields] == [1, 2, 3, 4, 5]
    traffic, seen_fpm, workers = decode(fields[2][2])
    # Zero is left out of isl, but there where presence means something.
    assert (traffic[0], decode(traffic[2])) == (1, [(1, 1, 5.0), (2, 1, 7.0), (4, 1, 2.5), (6, 1, 1.5)])
    assert (workers[0], decode(workers[2])) == (3, [(1, 0, 0), (4, 0, 4), (5, 0, 0), (6, 0, 1)])
    ((number, _, entry),) = decode(seen_fpm[2])
    assert (number, decode(entry)[0]) == (2, (1, 2, b"w/1"))
    packed = msgspec.msgpack.decode(decode(entry)[1][2])
    assert (packed["worker_id"], packed["wall_time"], packed["scheduled_requests"]["num_decode_requests"]) == ("w", 0.5, 3)
    assert decode(fields[3][2]) == [(1, 1, 1.0), (3, 1, 0.0), (4, 2, b"q"), (5, 1, 0.25)]
    targets = [decode(value) for number, _, value in decode(fields[4][2]) if number == 1]
    assert targets == [[(1, 2, b"decode"), (3, 0, 6), (4, 0, 2)], [(1, 2, b"x")]]
    assert decode(fields[4][2])[-1] == (3, 2, b"merged")
    accepted, overridden, rejected, empty = (decode(value) for _, _, value in top[1:])
    # Priorities of the configuration that 32 bits without sign cannot say end at the bounds; 0 is left out.
    assert accepted == [(1, 2, b"a"), (2, 2, b"")]
    assert overridden[0:2] == [(1, 2, b"o"), (3, 2, encode(message(1, text(1, "decode"), integer(3, 0)), text(2, "why")))]
    assert overridden[2] == (5, 0, 2**32 - 1)
    assert rejected == [(1, 2, b"r"), (4, 2, encode(text(1, "no"))), (5, 0, 3)]
    assert empty == [(1, 2, b"e"), (3, 2, b""), (5, 0, 4)]


@pytest.mark.parametrize("stage", ["predict", *RESULT_STAGES])
def test_absent_is_absent(stage: PluginStage) -> None:
    assert encode_request(stage, StageRequest(Context())) == encode(message(1))
    empty = encode_request(stage, StageRequest(Context(observations=Observations(), predictions=Prediction(), proposal=Proposal())))
    assert empty == encode(message(1, message(3), message(4), message(5)))


@pytest.mark.parametrize("stage", RESULT_STAGES)
def test_results_by_numbers(stage: PluginStage) -> None:
    target = message(1, text(1, "decode"), integer(3, 4), integer(4, 1))
    assert decode_response(stage, encode(message(1))) == ACCEPT
    assert decode_response(stage, b"") == StageResponse(None)
    assert decode_response(stage, encode(integer(4, 1), *UNKNOWN)) == StageResponse(None, final=True)
    assert decode_response(stage, encode(message(2, target, text(2, "why"), *UNKNOWN), integer(4, 1))) == override(
        ("decode", 4, TargetType.AT_LEAST), reason="why", final=True
    )
    assert decode_response(stage, encode(message(2))) == override()
    assert decode_response(stage, encode(message(3, text(1, "no")))) == StageResponse(Kind.REJECT, reason="no")
    assert decode_response(stage, encode(message(3))) == StageResponse(Kind.REJECT)
    # The last of a oneof counts.
    assert decode_response(stage, encode(message(3), message(1))) == ACCEPT


def test_replicas_by_numbers() -> None:
    def target(*fields: tuple) -> Target:
        response = decode_response("propose", encode(message(2, message(1, *fields))))
        assert isinstance(response, StageResponse)
        return response.targets[0]

    assert target(text(1, "x")) == Target("x", None)
    assert target(text(1, "x"), integer(3, 0)) == Target("x", 0)
    assert target(text(1, "x"), integer(3, -5), integer(2, 7), integer(4, 2)) == Target("x", -5, TargetType.AT_MOST)
    assert target(integer(3, 2**31 - 1)) == Target("", 2**31 - 1)
    with pytest.raises(WireError, match="type of a target is 3"):
        target(text(1, "x"), integer(4, 3))


def test_predictions_by_numbers() -> None:
    assert decode_response("predict", b"") == PredictResponse()
    assert decode_response("predict", encode(message(1))) == PredictResponse(Prediction())
    data = encode(message(1, double(1, 0.0), double(3, 9.0), text(4, "q"), double(5, 0.5), *UNKNOWN), text(2, "why"), integer(3, 1))
    assert decode_response("predict", data) == predicted(0.0, None, 9.0, 0.5, source="q", reason="why", final=True)
    assert decode_response("predict", encode(message(1, double(2, 1.0), double(6, 2.0)))) == predicted(None, 1.0, None, None, 2.0)


def test_numbers_of_the_other_messages() -> None:
    numbers = {
        "RegisterResponse": "accepted reject_reason negotiated_protocol_version",
        "HeartbeatRequest": "plugin_id auth_token",
        "HeartbeatResponse": "ok",
        "UnregisterRequest": "plugin_id reason auth_token",
        "UnregisterResponse": "ok",
        "ListPluginsRequest": "stage_filter include_disabled",
        "ListPluginsResponse": "plugins",
        "PluginInfo": "plugin_id plugin_type priority version protocol_version enabled is_builtin transport circuit_state evaluations_total"
        " last_call_at_seconds_ago cache_age_seconds",
        "PipelineContext": "request_id decision_id observations predictions proposal constrained",
        "BootstrapRequest": "bootstrap_data hints",
        "BootstrapResponse": "ok message",
        "ResetRequest": "reason",
        "ResetResponse": "ok message",
    }
    found = {name: " ".join(field.name for field in getattr(pb, name).DESCRIPTOR.fields) for name in numbers}
    assert found == numbers
    for name in numbers:
        assert [field.number for field in getattr(pb, name).DESCRIPTOR.fields] == list(range(1, len(numbers[name].split()) + 1))


def test_services_have_the_names_that_plugins_serve() -> None:
    found = {name: [method.name for method in service.methods] for name, service in pb.DESCRIPTOR.services_by_name.items()}
    assert found == {
        "PluginRegistry": ["Register", "Heartbeat", "Unregister", "ListPlugins"],
        "PredictPlugin": ["Predict"],
        "ProposePlugin": ["Propose"],
        "ReconcilePlugin": ["Reconcile"],
        "ConstrainPlugin": ["Constrain"],
        "PluginLifecycle": ["Bootstrap", "Reset"],
    }
    assert method_name("reconcile") == "/dynamo.planner.plugin.v1.ReconcilePlugin/Reconcile"


def test_the_code_is_made_from_the_published_file() -> None:
    assert protobuf.stale() == []
