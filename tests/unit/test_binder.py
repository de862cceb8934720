"""Rounds and binds: whole gangs or nothing, and binds that fail in every way."""

from collections.abc import Callable
from typing import Any

import anyio
import pytest

from api.core import Node, Pod
from api.plan import Outcome
from api.podgang import PodGang
from controllers.runtime import errors
from scheduler import binder, binding, rounds
from scheduler.binder import ROUND
from tests.runtime_fakes import eventually
from tests.sched_builders import make_node
from tests.unit.binderworld import FORBIDDEN, Scene, held, running

# plans


async def test_a_whole_gang_is_bound_and_announced() -> None:
    async with running(2, 2) as scene:
        scene.gang("a", 4)
        assert await scene.round() == Outcome()
        assert [pod for pod, _ in scene.binds] == ["a-0", "a-1", "a-2", "a-3"]
        assert sorted(node for _, node in scene.binds) == ["n0", "n0", "n1", "n1"]
        uids = {c.body["metadata"]["uid"] for c in scene.transport.calls if c.path.endswith("/binding")}
        assert uids == {f"uid-a-{i}" for i in range(4)}
        await scene.round()
        assert len(scene.binds) == 4
        assert (scene.status("a")["bound"], scene.status("a")["conditions"][0]["reason"]) == (4, "GangBound")
        assert scene.status("a")["placementScore"] == 1.0
        assert scene.events == [("a", "GangBound")]


async def test_a_gang_that_does_not_fit_whole_is_not_bound_at_all_and_says_why() -> None:
    async with running(2) as scene:
        scene.gang("a", 3)
        await scene.round()
        assert scene.binds == []
        assert scene.status("a")["blocked"] == "InsufficientCapacity"
        assert len(scene.calls("PATCH", "/status")) == 4
        assert scene.events == [("a", "InsufficientCapacity")]


async def test_a_settled_cluster_costs_no_request() -> None:
    async with running(4) as scene:
        scene.gang("a", 2)
        await scene.round()
        await scene.round()
        before = len(scene.transport.calls)
        await scene.round()
        assert len(scene.transport.calls) == before


async def test_gangs_of_one_round_do_not_take_the_same_room() -> None:
    async with running(2) as scene:
        scene.gang("a", 2)
        scene.gang("b", 2)
        await scene.round()
        assert [pod for pod, _ in scene.binds] == ["a-0", "a-1"]
        await scene.round()
        assert scene.status("b")["blocked"] == "InsufficientCapacity"


async def test_pods_of_other_schedulers_are_left_to_them_but_take_room() -> None:
    async with running(2) as scene:
        scene.gang("theirs", 2, scheduler="default-scheduler")
        await scene.round()
        assert scene.transport.calls == []
        scene.bound("theirs-0", "n0")
        scene.gang("ours", 2)
        await scene.round()
        assert scene.binds == []
        assert scene.status("ours")["blocked"] == "InsufficientCapacity"


async def test_a_tail_gang_waits_for_its_anchor() -> None:
    async with running(4) as scene:
        scene.gang("base", 2, gate="x")
        scene.gang("tail", 1, base="base")
        await scene.round()
        assert scene.binds == []
        for i in range(2):
            scene.put(scene.pod(f"base-{i}", "base", 1))
        await scene.round()
        assert [pod for pod, _ in scene.binds] == ["base-0", "base-1", "tail-0"]


async def test_a_round_without_a_running_binder_is_a_mistake() -> None:
    scene = Scene(1)
    scene.gang("a", 1)
    with pytest.raises(RuntimeError, match="binds need"):
        await scene.binder.round(ROUND)


# binding


async def test_a_gang_in_flight_is_not_planned_again_and_its_room_is_taken() -> None:
    async with running(2) as scene:
        gate = anyio.Event()
        held(scene, gate)
        scene.gang("a", 2)
        await scene.round()
        tried = len(scene.binds)
        scene.gang("b", 1)
        scene.put(scene.found(PodGang, "a"))
        await scene.round()
        assert len(scene.binds) == tried
        assert scene.nodes("b") == {""}
        assert scene.status("b")["blocked"] == "InsufficientCapacity"
        assert "bound" not in scene.status("a"), "half of the truth is not worth a write"
        gate.set()


async def test_the_room_stays_taken_between_the_bind_and_the_news_of_it() -> None:
    async with running(2) as scene:
        gate = anyio.Event()
        gate.set()
        held(scene, gate)
        scene.gang("a", 2)
        await scene.round()
        assert len(scene.binds) == 2
        scene.gang("b", 1)
        await scene.round()
        assert len(scene.binds) == 2
        for i in range(2):
            scene.bound(f"a-{i}", "n0")
        await scene.round()
        assert scene.status("a")["bound"] == 2
        assert scene.binder._state.assumed == {}


async def test_a_refused_bind_gives_the_room_back_and_the_gang_sits_out() -> None:
    async with running(2) as scene:
        scene.answers["POST /binding"] = FORBIDDEN
        scene.gang("a", 2)
        await scene.round()
        assert len(scene.binds) == 1, "the first refusal ends the plan"
        assert len(scene.calls("GET", "/a-0") + scene.calls("GET", "/a-1")) == 2
        assert scene.binder._state.assumed == {}
        del scene.answers["POST /binding"]
        outcome = await scene.round()
        assert (outcome.result, outcome.after_s) == ("after", 1.0)
        assert len(scene.binds) == 1
        assert scene.status("a")["blocked"] == "BindRejected"
        assert scene.events == [("a", "BindRejected")]
        scene.clock.advance(1.1)
        await scene.round()
        assert scene.nodes("a") == {"n0"}
        await scene.round()
        assert "blocked" not in scene.status("a")


async def test_a_gang_that_sits_out_leaves_its_turn_to_others() -> None:
    async with running(2) as scene:
        scene.answers["POST /a-0/binding"] = FORBIDDEN
        scene.gang("a", 2)
        scene.gang("b", 2)
        await scene.round()
        await scene.round()
        assert scene.nodes("b") == {"n0"}


async def test_each_refusal_in_a_row_doubles_the_wait_and_a_success_ends_it() -> None:
    async with running(2) as scene:
        scene.answers["POST /binding"] = FORBIDDEN
        scene.gang("a", 1)
        waits: list[float] = []
        for tried in range(1, 9):
            await scene.round()
            assert len(scene.binds) == tried
            waits.append(round((await scene.round()).after_s))
            scene.clock.advance(waits[-1] - 0.01)
            await scene.round()
            assert len(scene.binds) == tried, "not before its time"
            scene.clock.advance(0.02)
        assert waits == [1, 2, 4, 8, 16, 32, 60, 60]
        del scene.answers["POST /binding"]
        await scene.round()
        assert scene.binder._memory["uid-a"].refusals == 0


async def test_what_was_bound_before_the_refusal_stays_and_the_rest_follows() -> None:
    async with running(3) as scene:
        scene.answers["POST /a-2/binding"] = FORBIDDEN
        scene.gang("a", 3)
        await scene.round()
        assert sorted(p.metadata.name for p in scene.caches.list(Pod) if p.spec.node_name) == ["a-0", "a-1"]
        assert scene.binder._state.assumed == {}
        scene.answers.clear()
        scene.clock.advance(2)
        await scene.round()
        assert scene.binds.count(("a-2", "n0")) == 2
        assert scene.binds.count(("a-0", "n0")) == 1


async def test_a_pod_that_somebody_else_bound_keeps_its_node() -> None:
    async with running(1, 1) as scene:

        def elsewhere() -> None:
            if scene.found(Pod, "a-0").spec.node_name == "":
                scene.bound("a-0", "n1")
            raise errors.Conflict(409, "Conflict", "already assigned")

        scene.answers["POST /a-0/binding"] = elsewhere
        scene.gang("a", 1)
        await scene.round()
        await scene.round()
        scene.clock.advance(100)
        await scene.round()
        assert scene.nodes("a") == {"n1"}
        assert scene.status("a")["bound"] == 1
        assert len(scene.binds) == 1


async def test_a_lost_answer_to_a_bind_that_happened_binds_nothing_twice() -> None:
    async with running(1) as scene:

        def lost() -> None:
            scene.bound("a-0", "n0")
            raise errors.UnknownOutcome("timeout")

        scene.answers["POST /binding"] = lost
        scene.gang("a", 1)
        await scene.round()
        for _ in range(2):
            scene.clock.advance(100)
            await scene.round()
        assert len(scene.binds) == 1
        assert scene.status("a")["bound"] == 1


async def test_a_lost_answer_to_a_bind_that_never_happened_is_found_out_even_when_the_server_is_away(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(binding, "ASK_AGAIN_S", (0.01, 0.01))
    async with running(1) as scene:
        scene.answers["POST /binding"] = errors.UnknownOutcome("timeout")
        scene.answers["GET /a-0"] = errors.TransportError("refused")
        scene.gang("a", 1)
        await scene.round()
        assert scene.binder._state.assumed == {"uid-a-0": "n0"}, "nobody knows yet"
        scene.answers.clear()
        await eventually(lambda: not scene.binder._state.assumed)
        scene.clock.advance(2)
        await scene.round()
        assert scene.nodes("a") == {"n0"}


async def test_a_pod_that_vanished_meanwhile_is_no_longer_counted() -> None:
    async with running(1) as scene:

        def gone() -> None:
            scene.remove(scene.found(Pod, "a-0"))
            raise errors.NotFound(404, "NotFound", "a-0")

        scene.answers["POST /a-0/binding"] = gone
        scene.gang("a", 1)
        await scene.round()
        assert scene.binder._state.assumed == {}
        scene.gang("b", 1)
        await scene.round()
        assert scene.nodes("b") == {"n0"}


async def test_nothing_is_remembered_of_what_is_done() -> None:
    async def answered() -> Any:
        return {"metadata": {"resourceVersion": "9999"}}

    def ahead() -> Any:
        return answered()

    async with running(4) as scene:
        scene.gang("a", 2)
        await scene.round()
        await scene.round()
        # The watch is behind what was answered, as it always is.
        scene.answers["PATCH /status"] = ahead
        scene.gang("b", 3)
        await scene.round()
        assert len(scene.calls("PATCH", "/b/status")) == 1
        for i in range(2):
            scene.remove(scene.found(Pod, f"a-{i}"))
        scene.remove(scene.found(PodGang, "a"))
        scene.remove(scene.found(PodGang, "b"))
        await scene.round()
        assert scene.binder._memory == {}
        assert scene.binder._pending == set()
        assert scene.binder._expectations._lives == {}


# plans that do not hold any more


def meanwhile(monkeypatch: pytest.MonkeyPatch, happens: Callable[[], None]) -> list[int]:
    """Something happens while the planner works, once; returns how many gangs were planned each time."""
    planned: list[int] = []
    plan_all = binder.plan_all

    def planning(snapshot: Any, gangs: Any) -> Any:
        planned.append(len(gangs))
        result = plan_all(snapshot, gangs)
        if len(planned) == 1:
            happens()
        return result

    monkeypatch.setattr(binder, "plan_all", planning)
    return planned


async def test_a_plan_for_a_pod_that_went_meanwhile_is_dropped_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    async with running(2) as scene:
        scene.gang("a", 2)
        meanwhile(monkeypatch, lambda: scene.remove(scene.found(Pod, "a-1")))
        await scene.round()
        assert scene.binds == []
        assert scene.woken == [0.0], "the gang is planned again at once"
        scene.put(scene.pod("a-1", "a", 1))
        await scene.round()
        assert scene.nodes("a") == {"n0"}


async def test_a_plan_for_a_node_that_went_meanwhile_is_dropped_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    async with running(1, 1) as scene:
        scene.gang("a", 2)
        meanwhile(monkeypatch, lambda: scene.remove(scene.found(Node, "n1")))
        await scene.round()
        assert scene.binds == []


async def test_room_that_was_taken_meanwhile_is_not_given_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    async with running(1) as scene:
        scene.gang("a", 1)
        meanwhile(monkeypatch, lambda: scene.put(scene.pod("other", "", 1, "default-scheduler", node="n0")))
        await scene.round()
        assert scene.binds == []


async def test_nothing_is_planned_while_nothing_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    async with running(1) as scene:
        scene.gang("a", 2)
        planned = meanwhile(monkeypatch, lambda: None)
        for _ in range(3):
            await scene.round()
        assert planned == [1]
        scene.put(make_node("n9", 8))
        await scene.round()
        assert planned == [1, 1]


async def test_a_gang_that_cannot_be_planned_keeps_no_other_from_its_nodes(monkeypatch: pytest.MonkeyPatch) -> None:
    build_gang = rounds.build_gang

    def building(podgang: PodGang, *rest: Any) -> Any:
        if podgang.metadata.name == "bad":
            raise ZeroDivisionError("oh")
        return build_gang(podgang, *rest)

    monkeypatch.setattr(rounds, "build_gang", building)
    async with running(4) as scene:
        scene.gang("bad", 1)
        scene.gang("good", 2)
        await scene.round()
        await scene.round()
        assert scene.nodes("good") == {"n0"}
        assert "ZeroDivisionError: oh" in scene.status("bad")["conditions"][0]["message"]
