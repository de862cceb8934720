"""The event recorder: aggregation, pace, overload, and that nothing it does fails or blocks an emitter."""

from typing import Any

import anyio
import pytest

from api.core import Node
from api.plan import Ref
from controllers.runtime import errors
from controllers.runtime.events import EventRecorder
from controllers.runtime.metrics import Metrics
from controllers.runtime.ratelimit import TokenBucket
from tests.runtime_fakes import Call, FakeTransport, HandClock, ref_of


def recorder(transport: FakeTransport, clock: HandClock, metrics: Metrics | None = None, **options: Any) -> EventRecorder:
    return EventRecorder(transport, "grovekeeper", clock, metrics, **options)


async def test_an_event_says_what_happened_to_whom() -> None:
    transport = FakeTransport()
    events = recorder(transport, HandClock())
    events.emit(ref_of(), "PodsCreated", "made 2 pods", "Warning")
    await events.flush()
    [call] = transport.calls
    assert (call.method, call.path) == ("POST", "/api/v1/namespaces/ns/events")
    body = call.body
    assert body["involvedObject"] == {"apiVersion": "v1", "kind": "Pod", "namespace": "ns", "name": "p", "uid": "u"}
    assert (body["reason"], body["message"], body["type"], body["count"]) == ("PodsCreated", "made 2 pods", "Warning", 1)
    assert body["reportingComponent"] == body["source"]["component"] == "grovekeeper"
    assert body["firstTimestamp"] == body["lastTimestamp"] == "2026-01-01T00:16:40Z"


async def test_equal_events_are_counted_while_they_wait_and_patched_later() -> None:
    transport, clock = FakeTransport(), HandClock()
    events = recorder(transport, clock)
    for _ in range(3):
        events.emit(ref_of(), "R", "m")
    await events.flush()
    clock.advance(60.0)
    events.emit(ref_of(), "R", "m")
    await events.flush()
    post, patch = transport.calls
    assert post.body["count"] == 3
    assert (patch.method, patch.path) == ("PATCH", f"/api/v1/namespaces/ns/events/{post.body['metadata']['name']}")
    assert patch.body == {"count": 4, "lastTimestamp": "2026-01-01T00:17:40Z"}


async def test_a_flush_waits_for_what_is_being_written() -> None:
    """A leader flushes before it closes its fence: nothing that it sent may arrive afterwards."""
    answered = anyio.Event()

    async def answer(call: Call) -> Any:
        await answered.wait()
        return {}

    transport = FakeTransport(answer)
    events = recorder(transport, HandClock())
    events.emit(ref_of(), "R", "m")
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(events.run)
        await anyio.wait_all_tasks_blocked()
        assert transport.running == 1
        with anyio.move_on_after(0.01) as waiting:
            await events.flush()
        assert waiting.cancelled_caught
        answered.set()
        await events.flush()
        assert transport.running == 0
        tasks.cancel_scope.cancel()


@pytest.mark.parametrize("change", [{"reason": "S"}, {"message": "n"}, {"ref": ref_of(uid="v")}], ids=str)
async def test_events_that_differ_are_two(change: dict[str, Any]) -> None:
    transport = FakeTransport()
    events = recorder(transport, HandClock())
    same: dict[str, Any] = {"ref": ref_of(), "reason": "R", "message": "m"}
    events.emit(**same)
    events.emit(**{**same, **change})
    await events.flush()
    assert len({call.body["metadata"]["name"] for call in transport.calls}) == 2


async def test_an_expired_event_is_written_anew() -> None:
    async def answer(call: Call) -> Any:
        if call.method == "PATCH":
            raise errors.NotFound(404, "NotFound")
        return {}

    transport, clock = FakeTransport(answer), HandClock()
    events = recorder(transport, clock)
    for _ in range(2):
        events.emit(ref_of(), "R", "m")
        await events.flush()
        clock.advance(1.0)
    assert [call.method for call in transport.calls] == ["POST", "PATCH", "POST"]


@pytest.mark.parametrize(
    "error", [errors.Forbidden(403), errors.TransportError(), errors.UnknownOutcome(), errors.NotLeader()], ids=lambda e: type(e).__name__
)
async def test_failures_are_counted_and_the_next_event_is_written(error: Exception) -> None:
    async def answer(call: Call) -> Any:
        if call.body["reason"] == "Bad":
            raise error
        return {}

    transport, metrics = FakeTransport(answer), Metrics()
    events = recorder(transport, HandClock(), metrics)
    events.emit(ref_of(), "Bad", "m")
    events.emit(ref_of(), "Good", "m")
    await events.flush()
    value = metrics.registry.get_sample_value
    assert value("grovekeeper_events_dropped_total", {"cause": type(error).__name__}) == 1
    assert value("grovekeeper_events_written_total", {"verb": "create"}) == 1


def test_overload_drops_and_counts() -> None:
    metrics = Metrics()
    events = recorder(FakeTransport(), HandClock(), metrics, limit=10)
    for i in range(10_000):
        events.emit(ref_of(), "R", str(i))
    assert metrics.registry.get_sample_value("grovekeeper_events_dropped_total", {"cause": "overload"}) == 9990


async def test_writing_keeps_to_the_pace_of_the_bucket() -> None:
    transport = FakeTransport()
    events = recorder(transport, HandClock(), bucket=TokenBucket(0.1, 2.0))
    for i in range(5):
        events.emit(ref_of(), "R", str(i))
    with anyio.move_on_after(0.02):
        await events.flush()
    assert len(transport.calls) == 2


async def test_events_emitted_while_running_are_written() -> None:
    transport = FakeTransport()
    events = recorder(transport, HandClock())
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(events.run)
        await anyio.wait_all_tasks_blocked()
        events.emit(ref_of(), "R", "m")
        with anyio.move_on_after(1.0):
            while not transport.calls:
                await anyio.lowlevel.checkpoint()
        tasks.cancel_scope.cancel()
    assert len(transport.calls) == 1


async def test_cluster_scoped_objects_and_long_texts() -> None:
    transport = FakeTransport()
    events = recorder(transport, HandClock())
    events.emit(Ref(Node.KIND, "", "n" * 253, "u"), "R", "x" * 5000)
    await events.flush()
    [call] = transport.calls
    assert call.path == "/api/v1/namespaces/default/events"
    assert "namespace" not in call.body["involvedObject"]
    assert len(call.body["message"]) == 1024
    assert len(call.body["metadata"]["name"]) <= 253
