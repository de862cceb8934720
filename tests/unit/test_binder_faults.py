"""The binder when things go wrong or change under it, and what it does not do when nothing changed."""

import logging
from collections.abc import Callable, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

import anyio
import msgspec
import pytest

from api import labels
from api.core import Node, Pod
from api.plan import Key, Outcome
from api.podgang import PodGang
from cli import scheduler
from cli.main import main
from controllers.runtime import errors
from controllers.runtime.workqueue import ECHO, USER, WorkQueue
from scheduler import binder, rounds
from scheduler.binder import PACE_S, ROUND, BinderController
from scheduler.model import Gang
from scheduler.rounds import Planned, plan_all
from scheduler.snapshot import STUCK_AFTER, Snapshot
from tests.runtime_fakes import HandClock, eventually, seeded
from tests.sched_builders import make_node
from tests.unit.binderworld import FORBIDDEN, Scene, held, running


def changed(obj: Any, **metadata: Any) -> Any:
    """The same object with other metadata."""
    meta = msgspec.structs.replace(obj.metadata, **metadata)
    return obj.model_copy(update={"metadata": meta}) if isinstance(obj, PodGang) else msgspec.structs.replace(obj, metadata=meta)


def counted(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The number of gangs of each planning from now on."""
    plannings: list[int] = []

    def counting(snapshot: Snapshot, gangs: Sequence[Gang]) -> Planned:
        plannings.append(len(gangs))
        return plan_all(snapshot, gangs)

    monkeypatch.setattr(binder, "plan_all", counting)
    return plannings


# gangs that cannot be handled


@pytest.mark.parametrize("function", ["build_gang", "plan_round"])
async def test_a_gang_that_raises_is_refused_and_the_others_are_placed(
    function: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    genuine = getattr(rounds, function)

    def raising(first: Any, second: Any, *rest: Any) -> Any:
        names = [first.metadata.name] if function == "build_gang" else [g.name for g in second]
        if "a" in names:
            raise IndexError("out of range")
        return genuine(first, second, *rest)

    monkeypatch.setattr(rounds, function, raising)
    async with running(2) as scene:
        scene.gang("a", 1)
        scene.gang("b", 1)
        await scene.round()
        await scene.round()
        assert (scene.nodes("a"), scene.nodes("b")) == ({""}, {"n0"})
        assert scene.status("a")["blocked"] == "SolverFallback"
        scene.put(make_node("n1", 1))
        await scene.round()
    traced = [r for r in caplog.records if r.levelno == logging.ERROR and r.__dict__.get("uid") == "uid-a"]
    assert len(traced) == 1
    assert traced[0].exc_info is not None


async def test_a_scaled_gang_is_planned_next_to_its_placed_base_when_another_gang_raises(monkeypatch: pytest.MonkeyPatch) -> None:
    genuine = rounds.plan_round

    def raising(snapshot: Snapshot, gangs: Sequence[Gang]) -> Any:
        if any(g.name == "bad" for g in gangs):
            raise IndexError("out of range")
        return genuine(snapshot, gangs)

    monkeypatch.setattr(rounds, "plan_round", raising)
    async with running(4) as scene:
        scene.gang("bad", 1)
        scene.gang("base", 1)
        scene.gang("tail", 1, base="base")
        await scene.round()
        assert (scene.nodes("base"), scene.nodes("tail")) == ({"n0"}, {""})
        scene.put(make_node("n1", 0))
        await scene.round()
        assert scene.nodes("tail") == {"n0"}


async def test_a_round_that_raises_loses_no_gang(monkeypatch: pytest.MonkeyPatch) -> None:
    async with running(1) as scene:
        with monkeypatch.context() as broken:
            broken.setattr(binder, "plan_all", lambda *_: 1 / 0)
            scene.gang("a", 1)
            with pytest.raises(ZeroDivisionError):
                await scene.round()
        await scene.round()
        assert scene.nodes("a") == {"n0"}


# binds that fail


async def test_rounds_for_other_reasons_do_not_forget_when_a_gang_is_due() -> None:
    async with running(2) as scene:
        scene.answers["POST /binding"] = FORBIDDEN
        scene.gang("a", 1)
        await scene.round()
        assert (await scene.round()).after_s == 1.0
        scene.clock.advance(0.4)
        assert (await scene.round()).after_s == pytest.approx(0.6)
        scene.answers.clear()
        scene.clock.advance(0.6)
        await scene.round()
        assert scene.nodes("a") == {"n0"}


@pytest.mark.parametrize("error", [errors.NotLeader("closed"), RuntimeError("defect")], ids=["not the leader", "defect"])
async def test_what_a_bind_raises_costs_that_gang_its_turn_and_nothing_else(error: Exception) -> None:
    async with running(2) as scene:
        scene.answers["POST /a-0/binding"] = error
        scene.gang("a", 1)
        scene.gang("b", 1)
        await scene.round()
        assert (scene.nodes("a"), scene.nodes("b")) == ({""}, {"n0"})
        assert scene.binder._state.assumed == {}
        scene.answers.clear()
        scene.clock.advance(1.1)
        await scene.round()
        assert scene.nodes("a") == {"n0"}


async def test_a_gang_whose_binds_are_unknown_keeps_its_room_and_is_not_planned(monkeypatch: pytest.MonkeyPatch) -> None:
    waits: list[float] = []
    genuine = anyio.sleep

    async def noting(seconds: float) -> None:
        waits.append(seconds)
        await genuine(0)

    async with running(1) as scene:
        monkeypatch.setattr(anyio, "sleep", noting)
        scene.answers["POST /binding"] = errors.UnknownOutcome("timeout")
        scene.answers["GET /a-0"] = errors.TransportError("refused")
        scene.gang("a", 1)
        await scene.binder.round(ROUND)
        await eventually(lambda: len(waits) >= 6)
        scene.gang("b", 1)
        await scene.binder.round(ROUND)
        assert len(scene.binds) == 1
        assert waits[:6] == [1, 2, 4, 8, 10, 10]
        scene.answers.clear()
        await eventually(lambda: not scene.binder.binding.is_busy("uid-a"))
        assert scene.binder._state.assumed == {}


async def test_an_outage_is_not_called_a_refusal() -> None:
    async with running(1) as scene:
        scene.answers["POST /binding"] = errors.TransportError("connection refused")
        scene.gang("a", 1)
        await scene.round()
        assert (await scene.round()).after_s == 3.0
        assert scene.status("a")["blocked"] == "BindUnknown"
        assert "could not be reached" in scene.status("a")["conditions"][0]["message"]


async def test_binds_that_happened_although_their_answers_were_lost_are_no_refusal() -> None:
    async with running(1) as scene:

        def lost() -> None:
            scene.bound("a-0", "n0")
            raise errors.UnknownOutcome("timeout")

        scene.answers["POST /binding"] = lost
        scene.gang("a", 1)
        for _ in range(4):
            await scene.round()
            scene.clock.advance(0.1)
        assert scene.nodes("a") == {"n0"}
        assert scene.status("a").get("blocked") is None
        assert (scene.status("a")["bound"], scene.status("a")["conditions"][0]["status"]) == (1, "True")


# the end of a term


async def test_the_term_lasts_until_binds_in_flight_have_ended() -> None:
    scene, gate = Scene(1), anyio.Event()
    held(scene, gate)
    queue = WorkQueue(HandClock(), seeded())
    controller = BinderController(scene.binder, queue, clock=scene.clock, rng=seeded())
    ended = anyio.Event()

    async def term() -> None:
        await controller.run()
        ended.set()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(term)
        scene.gang("a", 1)
        queue.add(ROUND)
        await eventually(lambda: len(scene.binds) == 1)
        queue.shut_down()
        await anyio.wait_all_tasks_blocked()
        assert not ended.is_set()
        gate.set()
        await eventually(ended.is_set)


async def test_the_end_of_a_term_does_not_wait_for_answers_that_do_not_come() -> None:
    scene = Scene(1)
    scene.answers |= {"POST /binding": errors.UnknownOutcome("timeout"), "GET /a-0": errors.TransportError("refused")}
    scene.gang("a", 1)

    async def one_round() -> None:
        await scene.binder.round(ROUND)

    with anyio.fail_after(0.9):
        await scene.binder.binding.run(one_round)
    assert scene.binder.binding.is_busy("uid-a")


# changes while the planner works


def cordoned(scene: Scene) -> None:
    node = scene.found(Node, "n0")
    scene.put(msgspec.structs.replace(node, spec=msgspec.structs.replace(node.spec, unschedulable=True)))


def node_gone(scene: Scene) -> None:
    scene.remove(scene.found(Node, "n0"))


def room_gone(scene: Scene) -> None:
    scene.put(scene.pod("other", "none", 1, node="n0"))


def pod_gone(scene: Scene) -> None:
    scene.remove(scene.found(Pod, "a-0"))


def pod_another(scene: Scene) -> None:
    scene.put(changed(scene.found(Pod, "a-0"), uid="uid-second-life"))


def pod_gated(scene: Scene) -> None:
    scene.put(scene.pod("a-0", "a", 1, gate="x"))


def gang_deleting(scene: Scene) -> None:
    scene.put(changed(scene.found(PodGang, "a"), deletion_timestamp=scene.clock.now()))


def gang_changed(scene: Scene) -> None:
    scene.put(changed(scene.found(PodGang, "a"), generation=2))


CHANGES = [cordoned, node_gone, room_gone, pod_gone, pod_another, pod_gated, gang_deleting, gang_changed]


@pytest.mark.parametrize("change", CHANGES)
async def test_a_plan_that_does_not_hold_any_more_is_dropped_whole(
    change: Callable[[Scene], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    async with running(2) as scene:

        def late(snapshot: Snapshot, gangs: Sequence[Gang]) -> Planned:
            planned = plan_all(snapshot, gangs)
            anyio.from_thread.run_sync(change, scene)
            return planned

        scene.gang("a", 2)
        with monkeypatch.context() as patched:
            patched.setattr(binder, "plan_all", late)
            await scene.round()
        assert scene.binds == []
        assert scene.binder._state.assumed == {}
        assert scene.woken == [0.0]
        assert scene.calls("PATCH", "/a/status") == [], "nothing is known about it yet"
        plannings = counted(monkeypatch)
        await scene.round()
        assert len(plannings) == (0 if change is gang_deleting else 1)


async def test_a_plan_that_still_holds_is_bound_although_the_cluster_changed(monkeypatch: pytest.MonkeyPatch) -> None:
    async with running(2) as scene:

        def late(snapshot: Snapshot, gangs: Sequence[Gang]) -> Planned:
            planned = plan_all(snapshot, gangs)
            anyio.from_thread.run_sync(scene.put, make_node("n1", 8))
            return planned

        monkeypatch.setattr(binder, "plan_all", late)
        scene.gang("a", 2)
        await scene.round()
        assert scene.nodes("a") == {"n0"}


async def test_pods_that_come_while_the_planner_works_are_not_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    async with running(1) as scene:

        def late(snapshot: Snapshot, gangs: Sequence[Gang]) -> Planned:
            planned = plan_all(snapshot, gangs)
            anyio.from_thread.run_sync(scene.put, scene.pod("a-0", "a", 1))
            return planned

        scene.gang("a", 1)
        scene.remove(scene.found(Pod, "a-0"))
        scene.put(scene.pod("done", "a", 1, node="n9"))
        with monkeypatch.context() as patched:
            patched.setattr(binder, "plan_all", late)
            await scene.round()
        await scene.round()
        assert scene.found(Pod, "a-0").spec.node_name == "n0"


# whom it serves


async def test_a_gang_with_pods_of_two_schedulers_is_refused_and_only_its_own_pods_are_marked() -> None:
    async with running(2) as scene:
        scene.gang("a", 2)
        scene.put(scene.pod("a-1", "a", 1, "default-scheduler"))
        await scene.round()
        assert scene.binds == []
        assert scene.status("a")["blocked"] == "Conflict"
        assert "a-1 (default-scheduler)" in scene.status("a")["conditions"][0]["message"]
        assert (len(scene.calls("PATCH", "/a-0/status")), len(scene.calls("PATCH", "/a-1/status"))) == (1, 0)
        scene.put(scene.pod("a-1", "a", 1))
        await scene.round()
        assert scene.nodes("a") == {"n0"}


@pytest.mark.parametrize("flags", [[], ["--serve-default-scheduler"]], ids=["refused", "wanted"])
def test_default_scheduler_is_served_only_on_demand(
    flags: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scheduler, "run_process", lambda *_: 0)
    config = tmp_path / "config.yaml"
    config.write_text(
        "apiVersion: operator.config.grove.io/v1alpha1\nkind: OperatorConfiguration\ngrovekeeper: {schedulerNames: [default-scheduler]}\n"
    )
    assert main(["scheduler", "--config", str(config), *flags]) == (0 if flags else 4)
    assert ("--serve-default-scheduler if no kube-scheduler" in capsys.readouterr().err) == (not flags)


# waits and reports


async def test_a_gang_behind_terminating_pods_says_so_and_is_looked_at_again_when_they_are_stuck() -> None:
    async with running(1) as scene:
        old = changed(scene.pod("old", "none", 1, node="n0"), deletion_timestamp=scene.clock.now())
        scene.put(old)
        scene.gang("a", 1)
        outcome = await scene.round()
        assert scene.binds == []
        assert scene.status("a")["blocked"] == "QueuedBehind"
        assert scene.events == []
        assert outcome.after_s == STUCK_AFTER.total_seconds() + 1
        scene.clock.advance(outcome.after_s)
        await scene.round()
        assert scene.status("a")["blocked"] == "InsufficientCapacity"


async def test_a_gang_behind_terminating_pods_is_bound_when_they_are_gone() -> None:
    async with running(1) as scene:
        old = changed(scene.pod("old", "none", 1, node="n0"), deletion_timestamp=scene.clock.now() + timedelta(seconds=30))
        scene.put(old)
        scene.gang("a", 1)
        await scene.round()
        scene.remove(old)
        await scene.round()
        assert scene.nodes("a") == {"n0"}


async def test_a_base_gang_in_flight_is_context_for_its_scaled_gangs() -> None:
    async with running(2) as scene:
        gate = anyio.Event()
        gate.set()
        held(scene, gate)
        scene.gang("base", 1)
        await scene.round()
        scene.gang("tail", 1, base="base")
        await scene.round()
        assert [pod for pod, _ in scene.binds] == ["base-0", "tail-0"]


async def test_a_base_gang_that_sits_out_with_its_minimum_lets_its_scaled_gangs_go() -> None:
    async with running(4) as scene:
        scene.gang("base", 2, minimum=1)
        scene.answers["POST /base-1/binding"] = FORBIDDEN
        await scene.round()
        assert scene.nodes("base") == {"n0", ""}
        scene.gang("tail", 1, base="base")
        await scene.round()
        assert scene.nodes("tail") == {"n0"}
        assert scene.binds.count(("base-1", "n0")) == 1


async def test_one_status_is_written_of_a_gang_that_is_placed_at_once() -> None:
    async with running(4) as scene:
        gate = anyio.Event()
        gate.set()
        held(scene, gate)
        scene.gang("a", 4)
        await scene.round()
        for i in range(4):
            scene.bound(f"a-{i}", "n0")
            await scene.round()
        scene.clock.advance(1)
        await scene.round()
        assert len(scene.calls("PATCH", "/status")) == 1
        assert scene.status("a")["bound"] == 4


async def test_a_report_is_not_repeated_before_the_cache_shows_it() -> None:
    async def answered() -> Any:
        return {"metadata": {"resourceVersion": "9999"}}

    async with running(1) as scene:
        scene.answers["PATCH /a/status"] = lambda: answered()
        scene.gang("a", 2)
        await scene.round()
        scene.clock.advance(2)
        scene.put(make_node("n1", 0))
        outcome = await scene.round()
        assert len(scene.calls("PATCH", "/a/status")) == 1
        assert outcome.result == "after"
        scene.caches.informer(PodGang).store.advance(9999)
        scene.clock.advance(0.1)
        await scene.round()
        assert len(scene.calls("PATCH", "/a/status")) == 2


async def test_news_of_the_same_reason_are_told_once_a_second() -> None:
    async with running(1) as scene:
        scene.gang("a", 9)
        await scene.round()
        assert len(scene.calls("PATCH", "/a-0/status")) == 1
        for i in range(1, 4):
            scene.clock.advance(0.1)
            scene.put(make_node(f"n{i}", 1))
            assert (await scene.round()).after_s == pytest.approx(1.0 - 0.1 * i)
        assert len(scene.calls("PATCH", "/a-0/status")) == 1
        scene.clock.advance(0.7)
        await scene.round()
        assert len(scene.calls("PATCH", "/a-0/status")) == 2
        assert "takes 4" in scene.status("a")["conditions"][0]["message"]


async def test_another_reason_is_told_at_once() -> None:
    async with running(1) as scene:
        scene.gang("a", 2)
        await scene.round()
        cordoned(scene)
        scene.put(scene.pod("a-1", "a", 1, "default-scheduler"))
        await scene.round()
        assert scene.status("a")["blocked"] == "Conflict"


# what makes a round plan


async def test_nothing_is_planned_when_nothing_changed(monkeypatch: pytest.MonkeyPatch) -> None:
    async with running(2) as scene:
        scene.gang("waits", 5)
        scene.gang("a", 2)
        gate = anyio.Event()
        gate.set()
        held(scene, gate)
        await scene.round()
        plannings = counted(monkeypatch)
        for i in range(2):
            scene.bound(f"a-{i}", "n0")
            await scene.round()
        pod = scene.found(Pod, "a-0")
        scene.put(msgspec.structs.replace(pod, status=msgspec.structs.replace(pod.status, nominated_node_name="x")))
        scene.clock.advance(5)
        await scene.round()
        assert plannings == []
        scene.put(make_node("n1", 1))
        await scene.round()
        assert plannings == [1]


async def test_news_of_pods_come_as_echoes_and_news_of_gangs_and_nodes_at_once() -> None:
    async with running(1) as scene:
        scene.gang("a", 2)
        scene.keys.clear()
        scene.put(scene.pod("a-0", "a", 2))
        scene.put(make_node("n1", 1))
        scene.put(changed(scene.found(PodGang, "a"), generation=2))
        assert scene.keys == [(ROUND, ECHO), (ROUND, USER), (ROUND, USER)]


@pytest.mark.parametrize("field", ["annotations", "labels"])
async def test_a_change_of_a_gangs_metadata_is_looked_at(field: str) -> None:
    async with running(1) as scene:
        scene.gang("a", 1)
        await scene.round()
        await scene.round()
        scene.keys.clear()
        scene.put(changed(scene.found(PodGang, "a"), **{field: {labels.ANNOTATION_TOPOLOGY_NAME: "t"}}))
        assert scene.keys == [(ROUND, USER)]


async def test_rounds_that_are_asked_for_all_the_time_keep_a_distance() -> None:
    scene, rounds = Scene(1), list[float]()
    queue = WorkQueue(scene.clock, seeded())
    controller = BinderController(scene.binder, queue, clock=scene.clock, rng=seeded())

    async def note(key: Key) -> Outcome:
        rounds.append(scene.clock.monotonic())
        return Outcome()

    scene.binder.round = note
    outcomes = [await controller._round(ROUND)]
    for _ in range(10):
        outcomes.append(await controller._round(ROUND))
        scene.clock.advance(PACE_S / 5)
    assert len(rounds) == 2
    assert rounds[1] - rounds[0] >= PACE_S * 0.99
    assert [o.result for o in outcomes].count("after") == 9
    assert all(0.0 < o.after_s <= PACE_S for o in outcomes if o.result == "after")
