"""Workers: what each outcome does to the key, what an exception does, and the shared loop around observe and plan."""

import logging
from datetime import datetime, timedelta
from typing import Any

import anyio
import pytest

from api.core import Pod
from api.plan import Delete, Emit, Key, Outcome, Plan, Ref
from controllers.runtime import errors
from controllers.runtime.apply import Executor
from controllers.runtime.controller import Controller, ControllerSpec, ReconcileLoop, Watch
from controllers.runtime.expectations import Expectations
from controllers.runtime.metrics import Metrics
from controllers.runtime.workqueue import WorkQueue
from tests.runtime_fakes import EPOCH, FakeCaches, FakeRecorder, FakeTransport, HandClock, pod, ref_of, seeded

KEY = Key("ns", "p")


class Bench:
    """One controller whose reconcile answers from a list; `turn` lets it handle what is ready."""

    def __init__(self, *answers: Outcome | Exception) -> None:
        self.answers = list(answers)
        self.clock = HandClock()
        self.metrics = Metrics()
        self.queue: WorkQueue[Key] = WorkQueue(self.clock, seeded())
        self.controller = Controller("c", self.queue, self.reconcile, clock=self.clock, rng=seeded(), workers=1, metrics=self.metrics)

    async def reconcile(self, key: Key) -> Outcome:
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    async def turn(self) -> None:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self.controller.run)
            while len(self.queue) or self._is_busy():
                await anyio.lowlevel.checkpoint()
            tasks.cancel_scope.cancel()

    def _is_busy(self) -> bool:
        value = self.metrics.registry.get_sample_value
        handled = sum(value("controller_runtime_reconcile_total", {"controller": "c", "result": r}) or 0 for r in RESULTS)
        return handled < self.expected

    expected = 1


RESULTS = ("done", "after", "conflict", "backoff", "blocked", "error", "not_leader")

CASES: list[tuple[Outcome | Exception, str, float | None, int]] = [
    (Outcome(), "done", None, 0),
    (Outcome("after", 5.0), "after", 5.0, 0),
    (Outcome("blocked", 60.0), "blocked", 60.0, 0),
    (Outcome("conflict"), "conflict", 0.02, 1),
    (Outcome("backoff"), "backoff", 0.02, 1),
    (ValueError("bug"), "error", 0.02, 1),
    (errors.NotLeader("closed"), "not_leader", 0.02, 1),
]


@pytest.mark.parametrize(("answer", "result", "back_after_s", "failures"), CASES, ids=[case[1] for case in CASES])
async def test_what_an_outcome_does_to_the_key(answer: Outcome | Exception, result: str, back_after_s: float | None, failures: int) -> None:
    bench = Bench(answer)
    bench.queue.add(KEY)
    await bench.turn()
    labels = {"controller": "c", "result": result}
    assert bench.metrics.registry.get_sample_value("controller_runtime_reconcile_total", labels) == 1
    assert bench.queue.failures(KEY) == failures
    assert bench.queue.get_nowait() is None
    bench.clock.advance(back_after_s or 1000.0)
    assert bench.queue.get_nowait() == (KEY if back_after_s is not None else None)


async def test_a_bug_is_traced_once_and_api_errors_never(caplog: pytest.LogCaptureFixture) -> None:
    bench = Bench(ValueError("bug"), ValueError("bug"), errors.Forbidden(403, "Forbidden", "no"))
    bench.expected = 3
    for name in "abc":
        bench.queue.add(Key("ns", name))
    with caplog.at_level(logging.ERROR):
        await bench.turn()
    assert [bool(record.exc_info) for record in caplog.records] == [True, False, False]


async def test_shut_down_lets_keys_in_work_finish() -> None:
    clock, release = HandClock(), anyio.Event()
    finished: list[Key] = []
    queue: WorkQueue[Key] = WorkQueue(clock, seeded())

    async def reconcile(key: Key) -> Outcome:
        await release.wait()
        finished.append(key)
        return Outcome()

    controller = Controller("c", queue, reconcile, clock=clock, rng=seeded(), workers=2)
    for name in "abc":
        queue.add(Key("ns", name))
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(controller.run)
        await anyio.wait_all_tasks_blocked()
        queue.shut_down()
        release.set()
    assert sorted(key.name for key in finished) == ["a", "b"]


class LoopWorld:
    """The shared loop with a plan that the test sets; the only cached object is pod ns/p."""

    def __init__(self, answer: Any = None) -> None:
        self.clock = HandClock()
        self.caches = FakeCaches(Pod.KIND)
        self.expectations = Expectations(self.caches, self.clock)
        self.transport = FakeTransport(answer)
        self.recorder = FakeRecorder()
        self.next = Plan()
        self.observed: list[datetime] = []
        watch = Watch(Pod, lambda old, new: ())
        spec = ControllerSpec[Pod]("c", "m", Pod, (watch,), self.observe, lambda seen: self.next, self.failed)
        executor = Executor(self.transport, "m", self.expectations, self.recorder, self.clock)
        self.reconcile = ReconcileLoop(spec, self, self.expectations, executor, self.clock)
        self.hold(pod())

    def hold(self, obj: Pod) -> None:
        self.caches.held[(Pod.KIND, Key.of(obj))] = obj

    def failed(self, seen: Pod, outcome: Outcome) -> Plan:
        return Plan(((Emit(Ref.of(seen), "Refused", outcome.error, "Warning"),),))

    def observe(self, view: Any, key: Key, now: datetime) -> Pod | None:
        self.observed.append(now)
        return view.get(Pod, *key)

    def get(self, model: type[Any], namespace: str, name: str) -> Any:
        return self.caches.find(model.KIND, Key(namespace, name))

    def list(self, model: type[Any], namespace: str = "") -> Any:
        return tuple(self.caches.held.values())

    def by_index(self, model: type[Any], index: Any, value: str) -> Any:
        return ()


async def test_the_key_waits_while_the_cache_is_behind_its_own_writes() -> None:
    world = LoopWorld()
    world.next = Plan(((Delete(ref_of()),),))
    assert await world.reconcile(KEY) == Outcome()
    again = await world.reconcile(KEY)
    assert (again.result, 0 < again.after_s <= 1) == ("after", True)
    assert len(world.observed) == 1
    world.hold(pod(deleting=True))
    world.next = Plan()
    assert await world.reconcile(KEY) == Outcome()
    assert len(world.observed) == 2


async def test_a_cache_that_stays_behind_costs_one_live_read_and_then_the_key_continues() -> None:
    world = LoopWorld()
    world.next = Plan(((Delete(ref_of()),),))
    await world.reconcile(KEY)
    world.clock.advance(30.0)
    world.next = Plan()
    assert await world.reconcile(KEY) == Outcome()
    assert len(world.caches.live_reads) == 1
    assert len(world.observed) == 2


async def test_a_live_read_that_fails_is_tried_again_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    async def refuse(kind: object, key: object) -> None:
        raise errors.TransportError("refused")

    world = LoopWorld()
    world.expectations.unknown(KEY, ref_of())
    monkeypatch.setattr(world.caches, "live_get", refuse)
    assert await world.reconcile(KEY) == Outcome("after", 3.0, "refused")
    assert world.observed == []
    assert world.expectations.behind(KEY) == 0.0


async def test_a_refused_plan_is_told_to_the_user() -> None:
    async def answer(call: Any) -> Any:
        if call.method == "DELETE":
            raise errors.Forbidden(403, "Forbidden", "no")
        return {}

    world = LoopWorld(answer)
    world.next = Plan(((Delete(ref_of()),),))
    outcome = await world.reconcile(KEY)
    assert (outcome.result, outcome.after_s) == ("blocked", 60.0)
    assert world.recorder.events == [(ref_of(), "Refused", outcome.error, "Warning")]


async def test_an_object_that_is_gone_is_forgotten() -> None:
    world = LoopWorld()
    world.caches.held.clear()
    world.expectations.wrote(KEY, Ref(Pod.KIND, "ns", "child"), "10")
    world.caches.seen[Pod.KIND] = 10
    assert await world.reconcile(KEY) == Outcome()
    assert world.expectations.behind(KEY) is None


@pytest.mark.parametrize(("ahead_s", "after_s"), [(90.0, 90.0), (-5.0, 0.05)], ids=["future", "past"])
async def test_a_plan_says_when_to_look_again(ahead_s: float, after_s: float) -> None:
    world = LoopWorld()
    world.next = Plan(((Emit(ref_of(), "R", "m"),),), requeue_at=EPOCH + timedelta(seconds=world.clock.t + ahead_s))
    outcome = await world.reconcile(KEY)
    assert outcome.result == "after"
    assert outcome.after_s == pytest.approx(after_s)
