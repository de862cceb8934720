"""Plugins that take their time, and plugins in other processes."""

import asyncio
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import grpc
import pytest

from controllers.planner.config.parts import PluginTransport
from controllers.planner.pipeline import PipelineOutcome, Verdict
from controllers.planner.plugins.records import ACCEPT, Call, Failure, FailureKind, Metric, StageRequest, StageResponse
from controllers.planner.plugins.registry import Registry
from controllers.planner.plugins.runner import Caller, run_async
from controllers.planner.plugins.transport import GrpcTransport, channel_options
from controllers.planner.plugins.wire.convert import method_name
from tests.unit.planner.planner_bytes import double, encode, integer, message, text
from tests.unit.planner.planner_plugins import Scripted, Waiting, context, override, registration, registry

DECODE_8 = encode(message(2, message(1, text(1, "decode"), integer(3, 8))))
Handler = Callable[[bytes, Any], bytes]


def caller(timeout_s: float = 5.0, remote: GrpcTransport | None = None) -> Caller:
    return Caller(timeout_s, time.monotonic, remote)


async def tick(made: Registry, asking: Caller, now_s: float = 5.0, limit_s: float = 10.0) -> PipelineOutcome:
    return await run_async(context(), made, now_s, caller=asking, tick_max_duration_s=limit_s)


def decode(outcome: PipelineOutcome) -> int | None:
    return next(target.replicas for target in outcome.targets if target.component == "decode")


def user(made: Registry, plugin_id: str, instance: object, stage: Any = "propose") -> None:
    made.register_internal(plugin_id, stage, 5, instance, 0.0, version="user-in-process")


async def test_builtins_run_here_functions_in_threads_coroutines_as_tasks() -> None:
    seen: list[str] = []

    class Named:
        def propose(self, _request: StageRequest) -> StageResponse:
            seen.append(threading.current_thread().name)
            return ACCEPT

    class Coroutine:
        async def propose(self, _request: StageRequest) -> StageResponse:
            await asyncio.sleep(0)
            seen.append("coroutine")
            return override(("decode", 8))

    made = registry()
    made.register_internal("builtin", "propose", 5, Named(), 0.0)
    user(made, "function", Named())
    user(made, "coroutine", Coroutine())
    outcome = await tick(made, caller())
    assert sorted(seen) == ["MainThread", "coroutine", "plugin"]
    assert decode(outcome) == 8
    assert outcome.notes == ()


async def test_plugins_of_a_stage_are_asked_at_the_same_time() -> None:
    meet = asyncio.Barrier(3)
    made = registry()
    for name in "abc":
        user(made, name, Waiting(meet.wait, ACCEPT))
    outcome = await tick(made, caller())
    assert outcome.notes == ()


async def test_a_coroutine_that_hangs_is_a_failed_call() -> None:
    made = registry()
    user(made, "hangs", Waiting(asyncio.Event().wait, ACCEPT))
    user(made, "fine", Scripted(override(("decode", 8))))
    outcome = await tick(made, caller(0.05))
    assert decode(outcome) == 8
    assert outcome.notes == ("plugin hangs failed in propose: timeout: no answer within 0.05 s",)


async def test_a_coroutine_that_will_not_be_cancelled_holds_nobody_up() -> None:
    go = asyncio.Event()

    async def stubborn() -> None:
        while not go.is_set():
            try:
                await go.wait()
            except asyncio.CancelledError:
                continue

    made = registry()
    user(made, "stubborn", Waiting(stubborn, ACCEPT))
    asking = caller(0.05)
    assert "no answer" in (await tick(made, asking)).notes[0]
    assert "an earlier call has not ended" in (await tick(made, asking)).notes[0]
    go.set()
    await asyncio.sleep(0.01)
    assert (await tick(made, asking)).notes == ()


async def test_a_thread_that_hangs_is_not_joined_by_others() -> None:
    go = threading.Event()
    calls: list[int] = []

    class Hangs:
        def propose(self, _request: StageRequest) -> StageResponse:
            calls.append(1)
            go.wait(10)
            return ACCEPT

    made = registry()
    user(made, "hangs", Hangs())
    asking = caller(0.05)
    before = threading.active_count()
    for _ in range(4):
        assert "timeout" in (await tick(made, asking)).notes[0]
    assert (len(calls), threading.active_count()) == (1, before + 1)
    go.set()
    async with asyncio.timeout(5):
        while (await tick(made, asking)).notes:  # noqa: ASYNC110 - a thread sets nothing of asyncio
            await asyncio.sleep(0.005)


@pytest.mark.parametrize(
    "error", [ValueError("x"), SystemExit(3), KeyboardInterrupt(), StopIteration(1), asyncio.CancelledError()], ids=repr
)
async def test_whatever_a_function_raises_is_a_failed_call(error: BaseException) -> None:
    made = registry()
    user(made, "raises", Scripted(error))
    outcome = await tick(made, caller())
    assert outcome.verdict is Verdict.APPLY
    assert type(error).__name__ in outcome.notes[0]


async def test_a_coroutine_that_cancels_itself_is_a_failed_call() -> None:
    async def give_up() -> None:
        raise asyncio.CancelledError

    made = registry()
    user(made, "quits", Waiting(give_up, ACCEPT))
    assert "the plugin cancelled its own call" in (await tick(made, caller())).notes[0]


async def test_a_tick_that_takes_too_long_is_cut() -> None:
    made = registry()
    made.register_internal("done", "propose", 5, Scripted(ACCEPT), 0.0)
    cancelled = asyncio.Event()

    async def wait() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.set()

    user(made, "slow", Waiting(wait, ACCEPT), "constrain")
    outcome = await tick(made, caller(), limit_s=0.05)
    assert (outcome.verdict, outcome.reason) == (Verdict.TICK_TIMEOUT, "tick_max_duration_seconds=0.05")
    assert (outcome.targets, outcome.audit_events) == ((), ("tick_timeout_total",))
    assert any(event.metric is Metric.TICK_TIMEOUT for event in outcome.events)
    await asyncio.wait_for(cancelled.wait(), 1)
    assert [plugin.last_call_at for plugin in made.plugins] == [5.0, None]
    assert made.plugins[1].breaker.failures == 0


async def test_cancelling_a_tick_is_no_timeout() -> None:
    made = registry()
    user(made, "slow", Waiting(asyncio.Event().wait, ACCEPT))
    task = asyncio.create_task(tick(made, caller()))
    await asyncio.sleep(0.02)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


class Server(grpc.GenericRpcHandler):
    """Serves methods with bytes, so that it can say what no honest plugin says. In threads, as plugins may be written."""

    def __init__(self, port: int = 0) -> None:
        self.server = grpc.server(ThreadPoolExecutor(4), options=(("grpc.so_reuseport", 0),))
        self.handlers: dict[str, Handler] = {}
        self.port = self.server.add_insecure_port(f"127.0.0.1:{port}")
        self.server.add_generic_rpc_handlers((self,))
        self.called, self.leave = threading.Event(), threading.Event()
        self.server.start()

    def service(self, handler_call_details: grpc.HandlerCallDetails) -> grpc.RpcMethodHandler | None:
        handler = self.handlers.get(handler_call_details.method)
        return None if handler is None else grpc.unary_unary_rpc_method_handler(handler)

    def answers(self, answer: bytes | Handler, stage: Any = "propose") -> None:
        self.handlers[method_name(stage)] = (lambda _data, _context: answer) if isinstance(answer, bytes) else answer

    def hang(self, _data: bytes, _context: Any) -> bytes:
        self.called.set()
        self.leave.wait(10)
        return b""

    def stop(self) -> None:
        self.server.stop(None).wait(5)
        self.leave.set()

    @property
    def endpoint(self) -> str:
        return f"grpc://127.0.0.1:{self.port}"


@pytest.fixture
def server() -> Iterator[Server]:
    made = Server()
    yield made
    made.stop()


@pytest.fixture
async def remote() -> AsyncIterator[GrpcTransport]:
    made = GrpcTransport(PluginTransport(request_timeout_seconds=0.3, max_message_size_bytes=4096))
    yield made
    await made.aclose()


def outside(server: Server, stage: Any = "propose") -> Registry:
    made = registry()
    assert made.register(registration(plugin_type=stage, endpoint=server.endpoint), 0.0).accepted
    return made


async def test_a_plugin_elsewhere_is_asked_and_heard(server: Server, remote: GrpcTransport) -> None:
    server.answers(DECODE_8)
    assert decode(await tick(outside(server), caller(remote=remote))) == 8


async def test_a_prediction_from_elsewhere(server: Server, remote: GrpcTransport) -> None:
    server.answers(encode(message(1, double(1, 12.0))), "predict")
    outcome = await tick(outside(server, "predict"), caller(remote=remote))
    assert outcome.predictions is not None
    assert outcome.predictions.predicted_num_req == 12.0


def crash(_data: bytes, _context: Any) -> bytes:
    raise ValueError("out of order")


def aborts(code: grpc.StatusCode) -> Handler:
    def abort(_data: bytes, context: Any) -> bytes:
        context.abort(code, "because")
        return b""

    return abort


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        (b"\xff\xff", FailureKind.SERIALIZATION),
        (encode(message(2, message(1, text(1, "decode"), integer(3, 8), integer(4, 9)))), FailureKind.SERIALIZATION),
        (crash, FailureKind.CALL),
        (encode(message(2, text(2, "x" * 5000))), FailureKind.CALL),
        (aborts(grpc.StatusCode.UNAVAILABLE), FailureKind.CONNECTION),
        (aborts(grpc.StatusCode.UNIMPLEMENTED), FailureKind.UNKNOWN_METHOD),
        (aborts(grpc.StatusCode.INTERNAL), FailureKind.SERIALIZATION),
        (aborts(grpc.StatusCode.DATA_LOSS), FailureKind.SERIALIZATION),
        (aborts(grpc.StatusCode.DEADLINE_EXCEEDED), FailureKind.TIMEOUT),
        (aborts(grpc.StatusCode.PERMISSION_DENIED), FailureKind.CALL),
    ],
)
async def test_what_goes_wrong_elsewhere_is_a_failed_call(
    server: Server, remote: GrpcTransport, answer: bytes | Handler, kind: FailureKind
) -> None:
    server.answers(answer)
    made = outside(server)
    outcome = await tick(made, caller(remote=remote))
    assert (outcome.verdict, decode(outcome)) == (Verdict.APPLY, 3)
    assert f"plugin p failed in propose: {kind.value}: " in outcome.notes[0]
    assert made.plugins[0].breaker.failures == 1


async def test_the_response_of_another_stage_has_no_result(server: Server, remote: GrpcTransport) -> None:
    # predictions 1 of PREDICT is accept 1 of PROPOSE, and reason 2 there is no message here.
    server.answers(encode(message(1, double(1, 3.0)), text(2, "predicted")))
    outcome = await tick(outside(server), caller(remote=remote))
    assert "serialization" in outcome.notes[0]


async def test_numbers_that_are_none_are_a_failed_call(server: Server, remote: GrpcTransport) -> None:
    server.answers(encode(message(1, double(1, float("nan")))), "predict")
    outcome = await tick(outside(server, "predict"), caller(remote=remote))
    assert outcome.predictions is None
    assert "predicted_num_req is nan, not a finite number" in outcome.notes[0]


async def test_a_plugin_without_the_method(server: Server, remote: GrpcTransport) -> None:
    assert "unknown_method" in (await tick(outside(server), caller(remote=remote))).notes[0]


async def test_a_plugin_elsewhere_that_hangs(server: Server, remote: GrpcTransport) -> None:
    server.answers(server.hang)
    assert "timeout: DEADLINE_EXCEEDED" in (await tick(outside(server), caller(remote=remote))).notes[0]


async def test_a_plugin_that_is_gone_and_comes_back(server: Server, remote: GrpcTransport) -> None:
    server.answers(DECODE_8)
    made, asking = outside(server), caller(remote=remote)
    assert decode(await tick(made, asking)) == 8
    server.stop()
    assert "connection" in (await tick(made, asking)).notes[0]
    again = Server(server.port)
    try:
        again.answers(DECODE_8)
        async with asyncio.timeout(10):
            while (await tick(made, asking)).notes:
                # The circuit is not what is tested.
                made.plugins[0].breaker.succeeded()
                await asyncio.sleep(0.1)
        assert decode(await tick(made, asking)) == 8
    finally:
        again.stop()


async def test_a_plugin_that_dies_in_the_middle_of_a_call(server: Server) -> None:
    server.answers(server.hang)
    made, patient = outside(server), GrpcTransport(PluginTransport())
    running = asyncio.create_task(tick(made, caller(remote=patient)))
    assert await asyncio.to_thread(server.called.wait, 5)
    await asyncio.to_thread(server.stop)
    outcome = await running
    assert decode(outcome) == 3
    assert made.plugins[0].breaker.failures == 1
    await patient.aclose()


async def test_a_request_that_is_too_large_is_a_failed_call(server: Server, remote: GrpcTransport) -> None:
    server.answers(DECODE_8)
    made = outside(server)
    seen = Call(made.plugins[0], StageRequest(context()))
    large = Call(seen.plugin, StageRequest(type(seen.request.context)(request_id="x" * 5000)))
    assert not isinstance(await remote.call(seen), Failure)
    result = await remote.call(large)
    assert isinstance(result, Failure)
    assert result.kind is FailureKind.CALL
    broken = await remote.call(Call(seen.plugin, StageRequest(type(seen.request.context)(request_id="\ud800"))))
    assert isinstance(broken, Failure)
    assert broken.kind is FailureKind.SERIALIZATION


async def test_a_new_registration_has_a_channel_of_its_own(server: Server, remote: GrpcTransport) -> None:
    server.answers(DECODE_8)
    made, asking = outside(server), caller(remote=remote)
    await tick(made, asking)
    old = made.remove("p")
    assert old is not None
    assert made.register(registration(endpoint="grpc://127.0.0.1:1"), 0.0).accepted
    assert "connection" in (await tick(made, asking)).notes[0]
    # Late, and no longer of the plugin of that name.
    await asking.close(old)
    assert len(remote._channels) == 1
    await asking.close(made.plugins[0])
    assert remote._channels == {}


def test_channel_options_are_those_of_the_configuration() -> None:
    options = dict(channel_options(PluginTransport(keepalive_time_ms=7, max_message_size_bytes=9)))
    assert (options["grpc.keepalive_time_ms"], options["grpc.keepalive_timeout_ms"]) == (7, 10_000)
    assert (options["grpc.keepalive_permit_without_calls"], options["grpc.http2.max_pings_without_data"]) == (1, 0)
    assert (options["grpc.max_send_message_length"], options["grpc.max_receive_message_length"]) == (9, 9)
