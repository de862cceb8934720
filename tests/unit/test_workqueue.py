"""The queue between handlers and workers."""

import anyio
import pytest

from controllers.runtime.clock import SystemClock
from controllers.runtime.metrics import Metrics
from controllers.runtime.ratelimit import Backoff, TokenBucket
from controllers.runtime.workqueue import RESYNC, USER, WorkQueue
from tests.runtime_fakes import HandClock, seeded


@pytest.fixture
def clock() -> HandClock:
    return HandClock()


@pytest.fixture
def queue(clock: HandClock) -> WorkQueue[str]:
    return WorkQueue(clock, seeded(1))


def drain(queue: WorkQueue[str]) -> list[str]:
    out: list[str] = []
    while (key := queue.get_nowait()) is not None:
        out.append(key)
        queue.done(key)
    return out


def test_many_adds_before_work_are_one(queue: WorkQueue[str]) -> None:
    for _ in range(3):
        queue.add("a")
    assert len(queue) == 1
    assert drain(queue) == ["a"]


def test_adds_during_work_are_remembered_once_and_wait_for_done(queue: WorkQueue[str]) -> None:
    queue.add("a")
    assert queue.get_nowait() == "a"
    queue.add("a")
    queue.add("a")
    assert queue.get_nowait() is None
    queue.done("a")
    assert drain(queue) == ["a"]


def test_higher_priority_goes_first_and_equals_in_order_of_arrival(queue: WorkQueue[str]) -> None:
    queue.add("old", RESYNC)
    queue.add("b", USER)
    queue.add("a", USER)
    assert drain(queue) == ["b", "a", "old"]


def test_a_waiting_key_rises_to_the_higher_priority(queue: WorkQueue[str]) -> None:
    for key in ("x", "y", "z"):
        queue.add(key, RESYNC)
    queue.add("z", USER)
    assert drain(queue) == ["z", "x", "y"]


def test_priority_survives_a_delay_decided_during_work(queue: WorkQueue[str], clock: HandClock) -> None:
    queue.add("a", RESYNC)
    assert queue.get_nowait() == "a"
    queue.add_after("a", 1.0)
    queue.done("a")
    clock.advance(1.0)
    queue.add("b", -50)
    assert drain(queue) == ["b", "a"]


@pytest.mark.parametrize("delays", [(5.0, 1.0), (1.0, 5.0)])
def test_add_after_keeps_the_earliest(queue: WorkQueue[str], clock: HandClock, delays: tuple[float, float]) -> None:
    for delay in delays:
        queue.add_after("a", delay)
    clock.advance(0.9)
    assert drain(queue) == []
    clock.advance(0.1)
    assert drain(queue) == ["a"]
    clock.advance(10.0)
    assert drain(queue) == []


def test_add_cancels_a_later_time(queue: WorkQueue[str], clock: HandClock) -> None:
    queue.add_after("a", 5.0)
    queue.add("a")
    assert drain(queue) == ["a"]
    clock.advance(10.0)
    assert drain(queue) == []


def test_rate_limited_delays_double_with_jitter_up_to_the_cap(queue: WorkQueue[str], clock: HandClock) -> None:
    rng = seeded(3)
    delays = [Backoff().delay_s(n, rng) for n in range(20)]
    assert all(0.8 * min(60, 0.01 * 2**n) <= d <= 1.2 * min(60, 0.01 * 2**n) for n, d in enumerate(delays))
    queue.add_rate_limited("a")
    queue.add_rate_limited("a")
    assert queue.failures("a") == 2
    clock.advance(0.012)
    assert drain(queue) == ["a"]
    queue.forget("a")
    assert queue.failures("a") == 0


def test_failures_far_beyond_the_cap_do_not_overflow() -> None:
    assert Backoff().delay_s(100_000, seeded(0)) <= 72.0


def test_the_bucket_bounds_retries_of_all_keys(clock: HandClock) -> None:
    bucket = TokenBucket(rate_per_s=10.0, burst=2.0)
    assert [bucket.reserve(0.0) for _ in range(4)] == pytest.approx([0.0, 0.0, 0.1, 0.2])
    assert bucket.reserve(100.0) == 0.0
    queue: WorkQueue[str] = WorkQueue(clock, seeded(1), bucket=TokenBucket(1.0, 1.0))
    for key in ("a", "b", "c"):
        queue.add_rate_limited(key)
    clock.advance(1.0)
    assert drain(queue) == ["a", "b"]
    clock.advance(1.0)
    assert drain(queue) == ["c"]


def test_shut_down_stops_intake_and_hand_out(queue: WorkQueue[str]) -> None:
    queue.add("a")
    queue.add("b")
    assert queue.get_nowait() == "a"
    queue.shut_down()
    queue.add("c")
    queue.done("a")
    assert queue.get_nowait() is None


async def test_drained_waits_for_work_in_progress(queue: WorkQueue[str]) -> None:
    queue.add("a")
    assert await queue.get() == "a"
    queue.shut_down()
    assert await queue.get() is None
    with anyio.move_on_after(0.01) as scope:
        await queue.drained()
    assert scope.cancelled_caught
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(queue.drained)
        await anyio.lowlevel.checkpoint()
        queue.done("a")


async def test_get_wakes_at_the_time_of_a_delayed_key_and_for_an_earlier_one() -> None:
    queue: WorkQueue[str] = WorkQueue(SystemClock(), seeded(1))
    queue.add_after("late", 30.0)
    got: list[str | None] = []

    async def work() -> None:
        got.append(await queue.get())

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(work)
        await anyio.lowlevel.checkpoint()
        queue.add_after("soon", 0.02)
    assert got == ["soon"]


async def test_a_cancelled_worker_passes_its_wake_up_on() -> None:
    queue: WorkQueue[str] = WorkQueue(SystemClock(), seeded(1))
    got: list[str | None] = []

    async def work(scope: anyio.CancelScope) -> None:
        with scope:
            got.append(await queue.get())

    first, second = anyio.CancelScope(), anyio.CancelScope()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(work, first)
        await anyio.lowlevel.checkpoint()
        tasks.start_soon(work, second)
        await anyio.lowlevel.checkpoint()
        queue.add("a")  # wakes the first
        first.cancel()
        with anyio.move_on_after(1.0):
            while not got:
                await anyio.lowlevel.checkpoint()
        second.cancel()
    assert got == ["a"]


def test_metrics_have_the_names_and_values_of_client_go(clock: HandClock) -> None:
    metrics = Metrics()
    queue: WorkQueue[str] = WorkQueue(clock, seeded(1), metrics=metrics.queue("pods"))
    queue.add("a")
    queue.add("b")
    queue.add("a")
    queue.add_after("c", 1.0)
    clock.advance(0.5)
    assert queue.get_nowait() == "a"
    clock.advance(2.0)

    def value(name: str) -> float | None:
        return metrics.registry.get_sample_value(name, {"name": "pods"})

    assert value("workqueue_depth") == 1
    assert value("workqueue_adds_total") == 2
    assert value("workqueue_retries_total") == 0
    assert value("workqueue_unfinished_work_seconds") == 2.0
    assert value("workqueue_longest_running_processor_seconds") == 2.0
    assert value("workqueue_queue_duration_seconds_sum") == 0.5
    queue.done("a")
    assert value("workqueue_work_duration_seconds_sum") == 2.0
    assert value("workqueue_unfinished_work_seconds") == 0.0


def test_only_keys_that_are_given_back_count_as_retries(clock: HandClock) -> None:
    metrics = Metrics()
    queue: WorkQueue[str] = WorkQueue(clock, seeded(1), metrics=metrics.queue("pods"))
    queue.add_after("echo", 0.2)
    queue.requeue_after("a", 9.0)
    queue.add_rate_limited("b")
    assert metrics.registry.get_sample_value("workqueue_retries_total", {"name": "pods"}) == 2
