"""What the binder writes about gangs, and what wakes gangs that wait."""

import anyio
import msgspec
import pytest

from api.core import Node, Pod, PriorityClass
from api.podgang import PodGang
from scheduler.binder import ROUND
from tests.runtime_fakes import eventually
from tests.sched_builders import GPU, make_node
from tests.unit.binderworld import FORBIDDEN, held, running


@pytest.mark.parametrize(("base", "patience_s", "reason"), [("", 15.0, "WaitingForGates"), ("base", 2.0, "WaitingForBaseGang")])
async def test_ordinary_waits_are_shown_when_they_last(base: str, patience_s: float, reason: str) -> None:
    async with running(4) as scene:
        if base:
            scene.gang("base", 1, gate="x")
        scene.gang("a", 1, base=base, gate="" if base else "x")
        outcome = await scene.round()
        assert (outcome.result, outcome.after_s) == ("after", patience_s)
        assert "blocked" not in scene.status("a")
        scene.clock.advance(patience_s - 1)
        assert (await scene.round()).after_s == 1.0
        scene.clock.advance(1.5)
        await scene.round()
        assert scene.status("a")["blocked"] == reason
        assert scene.events == []


async def test_a_report_that_is_refused_is_tried_again_and_keeps_no_other_from_its_own() -> None:
    async with running(1) as scene:
        scene.answers["PATCH /a/status"] = FORBIDDEN
        scene.gang("a", 2)
        scene.gang("b", 2)
        outcome = await scene.round()
        assert scene.status("b")["blocked"] == "InsufficientCapacity"
        assert "blocked" not in scene.status("a")
        assert outcome.after_s == 10.0
        scene.answers.clear()
        scene.clock.advance(10.1)
        await scene.round()
        assert scene.status("a")["blocked"] == "InsufficientCapacity"


async def test_a_gang_without_phase_is_bound_but_not_reported() -> None:
    async with running(1) as scene:
        scene.gang("a", 1)
        live = scene.found(PodGang, "a")
        scene.put(live.model_copy(update={"status": None}))
        await scene.round()
        await scene.round()
        assert scene.nodes("a") == {"n0"}
        assert scene.calls("PATCH", "/a/status") == []
        scene.put(live)
        assert scene.keys[-1][0] == ROUND, "the phase asks for a round"
        await scene.round()
        assert scene.status("a")["bound"] == 1


# what wakes whom


async def test_a_new_node_wakes_gangs_that_wait() -> None:
    async with running(1) as scene:
        scene.gang("a", 2)
        await scene.round()
        assert scene.binds == []
        scene.keys.clear()
        scene.put(make_node("n9", 8))
        assert [key for key, _ in scene.keys] == [ROUND]
        await scene.round()
        assert scene.nodes("a") <= {"n0", "n9"}


async def test_news_of_nodes_that_change_nothing_wake_nobody() -> None:
    async with running(1) as scene:
        scene.gang("a", 2)
        await scene.round()
        scene.keys.clear()
        scene.put(scene.found(Node, "n0"))
        assert scene.keys == []


async def test_nothing_wakes_while_no_gang_waits() -> None:
    async with running(4) as scene:
        scene.gang("a", 2)
        await scene.round()
        await scene.round()
        scene.keys.clear()
        scene.put(make_node("n9", 8))
        scene.put(msgspec.convert({"metadata": {"name": "gold"}, "value": 7}, PriorityClass))
        scene.put(msgspec.convert({"metadata": {"name": "other", "namespace": "default", "uid": "other"}}, Pod))
        assert scene.keys == []


async def test_room_that_another_pod_gives_back_wakes_gangs_that_wait() -> None:
    async with running(2) as scene:
        other = msgspec.convert(
            {
                "metadata": {"name": "other", "namespace": "default", "uid": "other"},
                "spec": {"nodeName": "n0", "containers": [{"resources": {"requests": {GPU: 1}}}]},
            },
            Pod,
        )
        scene.put(other)
        scene.gang("a", 2)
        await scene.round()
        assert scene.binds == []
        scene.keys.clear()
        scene.remove(other)
        assert [key for key, _ in scene.keys] == [ROUND]
        await scene.round()
        assert scene.nodes("a") == {"n0"}


async def test_a_removed_node_is_not_used_any_more() -> None:
    async with running(2) as scene:
        scene.remove(scene.found(Node, "n0"))
        scene.gang("a", 1)
        await scene.round()
        assert scene.binds == []


async def test_own_status_writes_ask_for_no_round() -> None:
    async with running(1) as scene:
        scene.gang("a", 2)
        scene.keys.clear()
        await scene.round()
        assert scene.status("a")["blocked"] == "InsufficientCapacity"
        assert scene.keys == []


async def test_a_new_term_begins_with_what_the_caches_hold() -> None:
    async with running(2) as scene:
        gate = anyio.Event()
        held(scene, gate)
        scene.gang("a", 2)
        await scene.round()
        assert scene.binder._state.assumed
        assert tuple(scene.binder.first_keys()) == (ROUND,)
        assert scene.binder._state.assumed == {}
        gate.set()
        await eventually(lambda: not scene.binder.binding.is_busy("uid-a"))
        scene.answers.clear()
        await scene.round()
        assert scene.nodes("a") == {"n0"}


async def test_room_behind_a_pod_that_goes_is_reserved_and_used_when_it_is_gone() -> None:
    async with running(1) as scene:
        going = scene.pod("other", "", 1, "default-scheduler", node="n0")
        at = scene.clock.now()
        scene.put(msgspec.structs.replace(going, metadata=msgspec.structs.replace(going.metadata, deletion_timestamp=at)))
        scene.gang("a", 1)
        await scene.round()
        assert scene.binds == []
        assert scene.status("a")["blocked"] == "QueuedBehind"
        assert scene.events == []
        scene.remove(going)
        await scene.round()
        assert scene.nodes("a") == {"n0"}
