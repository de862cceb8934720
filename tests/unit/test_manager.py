"""A whole process without a server: informers that the test fills, a transport that answers, signals by hand."""

import logging
import socket
from collections.abc import AsyncGenerator, Iterable
from contextlib import asynccontextmanager
from datetime import datetime
from functools import partial
from typing import Any, Never, TypeVar

import aiohttp
import anyio
import pytest

from api.core import Pod
from api.grove import PodClique
from api.indexes import BY_NODE, BY_OWNER
from api.plan import CacheView, Delete, Index, Key, Object, Outcome, Plan, Ref
from controllers.runtime import manager as manager_module
from controllers.runtime.clock import SystemClock
from controllers.runtime.controller import ControllerSpec, Watch
from controllers.runtime.errors import TransportError
from controllers.runtime.events import EventRecorder
from controllers.runtime.fence import LeaseFence
from controllers.runtime.informer import Informer
from controllers.runtime.leader import LeaderElector, Timing
from controllers.runtime.manager import EXIT_CRASHED, EXIT_LOST, EXIT_STOPPED, CachesByKind, Listen, Manager
from controllers.runtime.metrics import Metrics
from controllers.runtime.store import Store
from controllers.runtime.troubles import Troubles
from controllers.runtime.workqueue import USER
from tests.runtime_fakes import Call, FakeTransport, HandClock, eventually, pod, ref_of, seeded
from tests.unit.test_leader import LeaseServer

T = TypeVar("T", bound=Object)


# A complete controller: it deletes pods that are on the node "bad".
def keys(old: Pod | None, new: Pod | None) -> Iterable[tuple[Key, int]]:
    return [(Key.of(new), USER)] if new is not None else []


def observe(view: CacheView, key: Key, now: datetime) -> Pod | None:
    return view.get(Pod, key.namespace, key.name)


def plan(seen: Pod) -> Plan:
    if seen.spec.node_name != "bad" or seen.metadata.deleting:
        return Plan()
    return Plan(((Delete(Ref.of(seen), seen.metadata.resource_version),),))


EVICTOR = ControllerSpec(
    name="evictor",
    field_manager="grovekeeper/evictor",
    root=Pod,
    watches=(Watch(Pod, keys, (BY_NODE,)),),
    observe=observe,
    plan=plan,
    workers=2,
)


class FilledInformer(Informer[T]):
    """An informer that the test fills: `sync` says that the first list is complete."""

    def __init__(self, model: type[T], indexes: tuple[Index, ...]) -> None:
        self.model = model
        self.store: Store[T] = Store(model, indexes)
        self.indexes = indexes
        self.synced = anyio.Event()
        self.renewed: list[float] = []
        self.may_renew = anyio.Event()
        self.may_renew.set()
        self.failure: Exception | None = None
        self.fail = anyio.Event()

    @property
    def has_synced(self) -> bool:
        return self.synced.is_set()

    @property
    def trouble(self) -> str:
        return "missing"

    async def renew(self, since: float) -> None:
        self.renewed.append(since)
        await self.may_renew.wait()

    def sync(self, *objects: T) -> None:
        self.store.replace(objects, 100)
        self.synced.set()

    async def run(self) -> Never:
        await self.fail.wait()
        raise RuntimeError("the watch of this test broke")

    async def wait_synced(self) -> None:
        await self.synced.wait()


class Process:
    """One manager with everything it needs."""

    def __init__(self, lease: LeaseServer | None = None, name: str = "one", **options: Any) -> None:
        clock, rng = SystemClock(), seeded()
        self.metrics = Metrics()
        self.informers: dict[type[Any], FilledInformer[Any]] = {}
        self.release = anyio.Event()
        self.release.set()
        self.finished: list[str] = []
        self.transport = FakeTransport(self._answer)
        elector = None
        if lease is not None:
            # A pause of this process, such as for garbage of other tests, must not cost the lease.
            timing = Timing(3.0, 2.0, 0.02)
            fence = LeaseFence(clock, lease_duration_s=3.0, request_budget_s=0.5)
            lease_transport = FakeTransport(lease.answer)
            elector = LeaderElector(lease_transport, fence, clock, rng, namespace="ns", name="one", holder=name, timing=timing)
        self.recorder = EventRecorder(self.transport, "test", clock)
        settings: dict[str, Any] = {"elector": elector, **options}
        self.manager = Manager(self.transport, self._informer, self.recorder, clock, rng, self.metrics, **settings)
        self.code: int | None = None

    def _informer(self, model: type[T], namespace: str, labels: str, fields: str, indexes: tuple[Index, ...], /) -> Informer[T]:
        informer = FilledInformer(model, indexes)
        self.informers[model] = informer
        return informer

    async def _answer(self, call: Call) -> Any:
        await self.release.wait()
        self.finished.append(f"{call.method} {call.path.rsplit('/', 1)[1]}")
        return {}

    async def _run(self) -> None:
        self.code = await self.manager.run()

    @asynccontextmanager
    async def running(self, *pods: Pod) -> AsyncGenerator["Process"]:
        """Runs inside the block, with a synced cache of these pods; the block has to end the process."""
        with anyio.fail_after(5):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(self._run)
                await anyio.wait_all_tasks_blocked()
                if pods:
                    self.informers[Pod].sync(*pods)
                yield self

    async def until(self, *finished: str) -> None:
        await eventually(lambda: self.finished == list(finished))


async def test_a_controller_acts_on_what_is_there_and_on_what_comes() -> None:
    process = Process()
    process.manager.add(EVICTOR)
    async with process.running(pod("a", node="bad", rv="3"), pod("b", node="good", rv="4")):
        await process.until("DELETE a")
        process.informers[Pod].store.apply("ADDED", pod("c", uid="v", node="bad", rv="101"))
        await process.until("DELETE a", "DELETE c")
        process.manager.stop()
    assert process.code == EXIT_STOPPED
    assert process.transport.calls[0].body["preconditions"] == {"uid": "u", "resourceVersion": "3"}


async def test_a_controller_begins_when_what_it_watches_is_synced() -> None:
    process = Process()
    process.manager.add(EVICTOR)
    watches = (Watch(PodClique, lambda old, new: ()), Watch(Pod, keys))
    other = ControllerSpec("other", "grovekeeper/other", PodClique, watches, observe, lambda seen: Plan())
    queue = process.manager.add(other).queue
    async with process.running(pod("a", node="bad")):
        await process.until("DELETE a")
        process.informers[Pod].store.apply("ADDED", pod("b", uid="v", node="bad", rv="101"))
        await process.until("DELETE a", "DELETE b")
        assert len(queue) == 0, "who does not work yet takes no keys"
        process.manager.stop()
    assert process.code == EXIT_STOPPED


async def test_what_is_waited_for_is_reported(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    monkeypatch.setattr(manager_module, "_WAITING_REPORT_S", (0.01, 1.0))
    process = Process()
    process.manager.add(EVICTOR)
    async with process.running():
        await eventually(lambda: "waiting for caches" in caplog.messages)
        process.informers[Pod].sync()
        process.manager.stop()
    assert vars(next(r for r in caplog.records if r.message == "waiting for caches"))["resources"] == {"pods": "missing"}


async def test_hooks_run_when_a_term_begins_not_before() -> None:
    server, begun = LeaseServer(), list[str]()
    one, two = Process(server, "one"), Process(server, "two")
    for process, name in ((one, "one"), (two, "two")):
        process.manager.on_term(partial(begun.append, name))
    async with one.running():
        await eventually(lambda: begun == ["one"])
        async with two.running():
            await anyio.sleep(0.05)
            assert begun == ["one"]
            one.manager.stop()
            await eventually(lambda: begun == ["one", "two"])
            two.manager.stop()


async def test_no_worker_runs_before_caches_without_controller_are_synced() -> None:
    process = Process()
    process.manager.add(EVICTOR)
    process.manager.cache(Watch(PodClique, lambda old, new: ()))
    async with process.running(pod("a", node="bad")):
        await anyio.sleep(0.02)
        assert process.finished == []
        assert process.manager.unsynced == ["podcliques.grove.io"]
        process.informers[PodClique].sync()
        await process.until("DELETE a")
        process.manager.stop()


async def test_a_stop_before_the_caches_are_synced_ends_at_once() -> None:
    process = Process()
    process.manager.add(EVICTOR)
    async with process.running():
        process.manager.stop()
    assert process.code == EXIT_STOPPED


async def test_controllers_share_informers_with_all_indexes() -> None:
    process = Process()
    process.manager.add(EVICTOR)
    process.manager.cache(Watch(Pod, keys, (BY_OWNER, BY_NODE)))
    async with process.running(pod("a")):
        process.manager.stop()
    assert process.informers[Pod].indexes == (BY_NODE, BY_OWNER)


def test_what_cannot_work_is_refused_at_once() -> None:
    process = Process()
    process.manager.add(EVICTOR)
    with pytest.raises(ValueError, match="another namespace or selector"):
        process.manager.cache(Watch(Pod, keys, label_selector="a=b"))
    with pytest.raises(ValueError, match="does not watch its root PodClique"):
        process.manager.add(ControllerSpec("x", "x", PodClique, (Watch(Pod, keys),), observe, plan))


async def test_stop_lets_requests_finish_and_releases_the_lease_last() -> None:
    server, trail = LeaseServer(), list[str]()
    process = Process(server)
    process.manager.add(EVICTOR)

    async def note(call: Call) -> None:
        if call.method == "PUT" and call.body["spec"]["holderIdentity"] == "":
            trail.append(f"released after {process.finished}")

    server.after = note
    process.release = anyio.Event()
    async with process.running(pod("a", node="bad")):
        await eventually(lambda: bool(process.transport.calls))
        process.manager.stop()
        await anyio.sleep(0.05)
        assert server.holder == "one"
        process.release.set()
    assert trail == ["released after ['DELETE a']"]
    assert process.code == EXIT_STOPPED


async def test_work_that_does_not_end_is_cancelled_after_the_drain_limit(caplog: pytest.LogCaptureFixture) -> None:
    server = LeaseServer()
    process = Process(server, drain_s=0.05)
    process.manager.add(EVICTOR)
    process.release = anyio.Event()
    async with process.running(pod("a", node="bad")):
        await eventually(lambda: bool(process.transport.calls))
        process.manager.stop()
    assert (process.finished, process.code, server.holder) == ([], EXIT_STOPPED, "")
    assert "not drained in time" in caplog.messages


async def test_a_follower_keeps_caches_warm_and_takes_over_with_everything() -> None:
    server = LeaseServer()
    one, two = Process(server, "one"), Process(server, "two")
    for process in (one, two):
        process.manager.add(EVICTOR)
    async with one.running(pod("a", node="bad")), two.running(pod("a", node="bad")):
        await one.until("DELETE a")
        two.informers[Pod].store.apply("ADDED", pod("b", uid="v", node="bad", rv="101"))
        await anyio.sleep(0.03)
        assert two.finished == []
        one.manager.stop()
        await eventually(lambda: len(two.finished) == 2)
        assert sorted(two.finished) == ["DELETE a", "DELETE b"]
        two.manager.stop()


async def test_a_new_leader_works_only_with_caches_as_new_as_its_term() -> None:
    server = LeaseServer()
    one, two = Process(server, "one"), Process(server, "two")
    for process in (one, two):
        process.manager.add(EVICTOR)
    async with one.running(pod("a", node="bad")), two.running(pod("a", node="bad")):
        await one.until("DELETE a")
        follower = two.informers[Pod]
        follower.may_renew = anyio.Event()
        assert follower.renewed == []
        taken_over_at = anyio.current_time()
        one.manager.stop()
        await eventually(lambda: len(follower.renewed) == 1)
        assert follower.renewed[0] >= taken_over_at
        await anyio.sleep(0.03)
        assert two.finished == []
        follower.may_renew.set()
        await eventually(lambda: two.finished == ["DELETE a"])
        two.manager.stop()


async def test_a_lost_lease_ends_the_process(caplog: pytest.LogCaptureFixture) -> None:
    server = LeaseServer()
    process = Process(server)
    process.manager.add(EVICTOR)
    async with process.running(pod("a", node="bad")):
        await process.until("DELETE a")
        server.edit(holderIdentity="somebody")
    assert process.code == EXIT_LOST
    assert "leadership lost" in caplog.messages


async def test_a_crash_of_any_task_ends_the_process_with_its_reason(caplog: pytest.LogCaptureFixture) -> None:
    server = LeaseServer()
    process = Process(server)
    process.manager.add(EVICTOR)
    with caplog.at_level(logging.CRITICAL):
        async with process.running(pod("a")):
            await eventually(lambda: bool(server.holder))
            process.informers[Pod].fail.set()
    assert (process.code, server.holder) == (EXIT_CRASHED, "")
    [record] = caplog.records
    assert "the watch of this test broke" in vars(record)["reason"]


async def test_background_tasks_run_with_the_process() -> None:
    process, begun = Process(), anyio.Event()

    async def task() -> None:
        begun.set()
        await anyio.sleep_forever()

    process.manager.background(task)
    async with process.running():
        assert begun.is_set()
        process.manager.stop()
    assert process.code == EXIT_STOPPED


async def test_a_second_stop_does_not_wait_for_work() -> None:
    server = LeaseServer()
    process = Process(server)
    process.manager.add(EVICTOR)
    process.release = anyio.Event()
    async with process.running(pod("a", node="bad")):
        await eventually(lambda: bool(process.transport.calls))
        process.manager.stop()
        await anyio.sleep(0.01)
        assert process.code is None
        process.manager.stop()
    assert (process.finished, process.code, server.holder) == ([], EXIT_STOPPED, "")


@pytest.mark.parametrize("times", [1, 2])
async def test_a_stop_before_the_start(times: int) -> None:
    server = LeaseServer()
    process = Process(server)
    process.manager.add(EVICTOR)
    for _ in range(times):
        process.manager.stop()
    async with process.running():
        pass
    assert (process.code, process.manager.epoch, server.holder) == (EXIT_STOPPED, 0, "")


async def test_no_event_is_on_its_way_when_the_lease_is_released(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(manager_module, "_LAST_EVENTS_S", 0.05)
    server, under_way = LeaseServer(), list[int]()
    process = Process(server)
    process.manager.add(EVICTOR)
    process.release = anyio.Event()

    async def released(call: Call) -> None:
        if call.method == "PUT" and call.body["spec"]["holderIdentity"] == "":
            under_way.append(process.transport.running)

    server.before = released
    async with process.running(pod("a")):
        process.recorder.emit(ref_of(), "R", "m")
        await eventually(lambda: process.transport.running == 1)
        process.manager.stop()
    assert (under_way, process.code, server.holder) == ([0], EXIT_STOPPED, "")


async def test_probes_and_metrics(unused_tcp_port: int) -> None:
    process = Process(listen=Listen(port=unused_tcp_port))
    process.manager.add(EVICTOR)

    async def get(path: str) -> tuple[int, str]:
        async with aiohttp.ClientSession() as session, session.get(f"http://127.0.0.1:{unused_tcp_port}{path}") as answer:
            return answer.status, await answer.text()

    async with process.running():
        await eventually(lambda: not _refuses(unused_tcp_port))
        assert await get("/healthz") == (200, "ok\n")
        assert await get("/readyz") == (503, "not synced: pods\n")
        process.informers[Pod].sync(pod("a", node="bad"))
        assert await get("/readyz") == (200, "ok\n")
        await process.until("DELETE a")
        status, text = await get("/metrics")
        assert status == 200
        assert 'controller_runtime_reconcile_total{controller="evictor",result="done"}' in text
        process.manager.stop()


async def test_what_lasts_makes_a_synced_process_unready(unused_tcp_port: int) -> None:
    clock = HandClock()
    troubles = Troubles("https://server", clock)
    process = Process(listen=Listen(port=unused_tcp_port), troubles=troubles)
    process.manager.add(EVICTOR)
    async with process.running(pod("a")):
        assert process.manager.unready == []
        troubles.tell("pods", TransportError("x", "connection refused"))
        assert process.manager.unready == []
        clock.advance(5.0)
        assert process.manager.unready == ["API server https://server cannot be reached: connection refused"]
        troubles.tell("pods", None)
        assert process.manager.unready == []
        process.manager.stop()


async def test_why_it_ended_is_known_when_it_was_not_in_order() -> None:
    process = Process()
    process.manager.add(EVICTOR)
    async with process.running(pod("a")):
        process.informers[Pod].fail.set()
    assert (process.code, process.manager.reason) == (EXIT_CRASHED, "RuntimeError: the watch of this test broke")


def _refuses(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) != 0


async def test_expectations_see_the_caches_by_kind() -> None:
    process = Process()
    process.manager.add(EVICTOR)
    caches = CachesByKind(process.manager.caches)
    async with process.running(pod("a", rv="5")):
        assert caches.seen_rv(Pod.KIND) == 100
        assert caches.seen_rv(PodClique.KIND) is None
        assert caches.find(Pod.KIND, Key("ns", "a")) == pod("a", rv="5")
        assert await caches.live_get(PodClique.KIND, Key("ns", "a")) is None
        process.manager.stop()
    assert Outcome().result == "done"
