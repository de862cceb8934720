"""The loop of simulations: virtual time, seeded order, what it refuses, and that hash seeds change nothing."""

import asyncio
import gc
import os
import signal
import subprocess
import sys
import threading
import time
from contextvars import copy_context
from pathlib import Path

import anyio
import anyio.to_thread
import pytest
from anyio._backends import _asyncio as backend

from sim.loop.errors import DeadlockError, LeakedTasksError, LivelockError, NotSimulatedError, UnhandledError
from sim.loop.loop import SimLoop
from sim.loop.run import run
from sim.loop.tasks import PROCESS
from tests.calls import counting_calls

SEEDS = (None, 0, 1, 2)


async def race(log: list[str], count: int = 6) -> None:
    async def step(name: str) -> None:
        for i in range(3):
            log.append(f"{name}{i}")
            await anyio.lowlevel.checkpoint()

    async with anyio.create_task_group() as tasks:
        for i in range(count):
            tasks.start_soon(step, "abcdefgh"[i])


def order(seed: int | None) -> list[str]:
    log: list[str] = []
    run(lambda: race(log), seed)
    return log


@pytest.mark.parametrize("seed", SEEDS)
def test_same_seed_same_order(seed: int | None) -> None:
    assert order(seed) == order(seed)


def test_seeds_give_different_orders_and_calm_is_first_in_first_out() -> None:
    assert len({tuple(order(seed)) for seed in range(20)}) > 15
    assert order(None) == [f"{name}{i}" for i in range(3) for name in "abcdef"]


@pytest.mark.parametrize("seed", SEEDS)
def test_time_is_virtual(seed: int | None) -> None:
    async def main() -> list[float]:
        seen: list[float] = []

        async def sleeper(seconds: float) -> None:
            await anyio.sleep(seconds)
            seen.append(anyio.current_time())

        async with anyio.create_task_group() as tasks:
            for seconds in (7200.0, 0.5, 30.0):
                tasks.start_soon(sleeper, seconds)
        return seen

    started = time.perf_counter()
    assert run(main, seed) == [0.5, 30.0, 7200.0]
    assert time.perf_counter() - started < 1.0


@pytest.mark.parametrize("seed", SEEDS)
def test_scopes_limiters_and_events(seed: int | None) -> None:
    async def main() -> tuple[bool, int, float]:
        limiter, most, inside, event = anyio.CapacityLimiter(2), 0, 0, anyio.Event()

        async def work() -> None:
            nonlocal most, inside
            async with limiter:
                inside += 1
                most = max(most, inside)
                await anyio.sleep(1.0)
                inside -= 1

        async with anyio.create_task_group() as tasks:
            for _ in range(5):
                tasks.start_soon(work)
        with anyio.move_on_after(3.0) as scope:
            await event.wait()
        with pytest.raises(TimeoutError):
            with anyio.fail_after(1.0):
                await anyio.sleep_forever()
        return scope.cancelled_caught, most, anyio.current_time()

    assert run(main, seed) == (True, 2, 7.0)


def test_many_cancelled_timers_cost_no_memory() -> None:
    async def main() -> int:
        for _ in range(5000):
            with anyio.move_on_after(3600.0):
                await anyio.lowlevel.checkpoint()
        await anyio.sleep(0.1)
        loop = asyncio.get_running_loop()
        assert isinstance(loop, SimLoop)
        return len(loop._scheduled)

    assert run(main) <= 1


def test_deadlock_lists_who_waits() -> None:
    async def waits_for_nobody() -> None:
        await anyio.Event().wait()

    async def main() -> None:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(waits_for_nobody)

    with pytest.raises(DeadlockError, match=r"waits_for_nobody \(test_loop.py:\d+\)"):
        run(main)


def test_standstill_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sim.loop.loop.STANDSTILL", 5000)

    async def main() -> None:
        while True:  # noqa: ASYNC110
            await asyncio.sleep(0)

    with pytest.raises(LivelockError):
        run(main)


def test_leaked_tasks_fail_the_run() -> None:
    ended: list[str] = []

    async def left() -> None:
        try:
            await anyio.sleep_forever()
        finally:
            ended.append("left")

    async def main() -> None:
        kept.append(asyncio.create_task(left(), name="forgotten"))
        await anyio.sleep(1.0)

    kept: list[asyncio.Task[None]] = []
    with pytest.raises(LeakedTasksError, match="forgotten"):
        run(main)
    assert ended == ["left"]


def test_failures_that_nobody_sees_fail_the_run() -> None:
    async def main() -> None:
        asyncio.get_running_loop().call_soon(lambda: 1 / 0)
        await anyio.sleep(1.0)

    with pytest.raises(UnhandledError, match="ZeroDivisionError"):
        run(main)


async def executor() -> None:
    await asyncio.get_running_loop().run_in_executor(None, print)


async def thread() -> None:
    await anyio.to_thread.run_sync(threading.get_ident)


async def sleep() -> None:
    time.sleep(0.001)  # noqa: ASYNC251


async def connection() -> None:
    await asyncio.open_connection("127.0.0.1", 1)


async def process() -> None:
    await asyncio.create_subprocess_exec("true")


async def signals() -> None:
    with anyio.open_signal_receiver(signal.SIGTERM):
        pass


@pytest.mark.parametrize("main", [executor, thread, sleep, connection, process, signals])
def test_the_outside_world_is_refused(main: object) -> None:
    with pytest.raises(NotSimulatedError):
        run(main)  # pyright: ignore[reportArgumentType]


def test_libraries_are_as_before_after_a_run() -> None:
    before = backend.CancelScope, backend.WorkerThread, time.sleep, gc.isenabled()
    run(lambda: anyio.sleep(1.0))
    assert (backend.CancelScope, backend.WorkerThread, time.sleep, gc.isenabled()) == before


def test_a_frozen_process_stands_still_while_others_run() -> None:
    async def main() -> list[tuple[str, float]]:
        log: list[tuple[str, float]] = []
        loop = asyncio.get_running_loop()
        assert isinstance(loop, SimLoop)

        async def ticks(name: str) -> None:
            for _ in range(4):
                await anyio.sleep(1.0)
                log.append((name, anyio.current_time()))

        tasks: list[asyncio.Task[None]] = []
        for name in ("a", "b"):
            context = copy_context()
            context.run(PROCESS.set, name)
            tasks.append(loop.create_task(ticks(name), context=context))
        await anyio.sleep(1.5)
        loop.freeze("a")
        await anyio.sleep(10.0)
        assert log == [("a", 1.0), ("b", 1.0), ("b", 2.0), ("b", 3.0), ("b", 4.0)]
        loop.thaw("a")
        await asyncio.gather(*tasks)
        return log[5:]

    # The timer that was due during the pause fires at its end.
    assert run(main, None) == [("a", 11.5), ("a", 12.5), ("a", 13.5)]


SCENARIO = """
import sys
import anyio
from sim.loop.run import run

log = []

async def member(name, depth):
    try:
        with anyio.CancelScope():
            if depth:
                async with anyio.create_task_group() as tasks:
                    for i in range(4):
                        tasks.start_soon(member, f"{name}.{i}", depth - 1)
            else:
                with anyio.move_on_after(50.0):
                    await anyio.Event().wait()
    finally:
        log.append(f"{name} ended")

async def main():
    for round in range(20):
        with anyio.move_on_after(1.0):
            async with anyio.create_task_group() as tasks:
                for name in "abcd":
                    tasks.start_soon(member, f"{round}{name}", 2)
        await anyio.sleep(0.5)

junk = [object() for _ in range(int(sys.argv[2]))]
run(main, None if sys.argv[1] == "calm" else int(sys.argv[1]))
print("\\n".join(log))
"""


@pytest.mark.parametrize("seed", ["calm", "7"])
def test_cancellation_order_depends_on_no_hash_seed_and_no_address(seed: str) -> None:
    outputs = set[bytes]()
    for hash_seed in range(5):
        environment = {**os.environ, "PYTHONHASHSEED": str(hash_seed), "PYTHONPATH": str(Path(__file__).parents[2])}
        arguments = [sys.executable, "-c", SCENARIO, seed, str(hash_seed * 1013)]
        outputs.add(subprocess.run(arguments, env=environment, capture_output=True, check=True).stdout)  # noqa: S603 - ourselves
    assert len(outputs) == 1
    assert len(outputs.pop().splitlines()) == 20 * 4 * (1 + 4 + 16)


def test_a_callback_costs_little() -> None:
    async def main() -> None:
        async def spin() -> None:
            for _ in range(2000):
                await asyncio.sleep(0)

        async with anyio.create_task_group() as tasks:
            for _ in range(50):
                tasks.start_soon(spin)

    with counting_calls() as calls:
        run(main)
    assert calls.count / 100_000 < 30
