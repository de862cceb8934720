"""Parts of the demo: its folder, what it says of gangs, how it loads manifests, how processes reach the embedded server."""

import os
import subprocess
import sys
from collections.abc import AsyncGenerator, Sequence
from pathlib import Path
from typing import Any

import anyio
import pytest

from controllers.runtime.errors import StreamIdle, UnknownOutcome
from controllers.runtime.transport import Transport
from sim.apiserver.objects import Object
from sim.apiserver.requests import Answer, Request, Stream
from sim.demo.place import PlaceError, occupied
from sim.demo.progress import progress_of
from sim.demo.wire import DirectWire, direct_credentials

ROOT = Path(__file__).parents[3]


# The folder.


def test_a_folder_is_made_and_what_leads_to_a_dead_server_goes_with_the_demo(tmp_path: Path) -> None:
    with occupied(tmp_path / "a" / "b") as place:
        place.kubeconfig.write_text("x")
        place.key.write_text("x")
        place.log.write_text("x")
    assert sorted(p.name for p in place.folder.iterdir()) == ["demo.lock", "demo.log"]


def test_files_of_an_earlier_demo_do_not_matter(tmp_path: Path) -> None:
    (tmp_path / "kubeconfig").write_text("stale")
    (tmp_path / "demo.lock").write_text("99999\n")
    with occupied(tmp_path) as place:
        assert not place.kubeconfig.exists()
        assert place.lock.read_text() == f"{os.getpid()}\n"


def test_a_second_demo_is_refused_with_the_process_of_the_first(tmp_path: Path) -> None:
    program = (
        "import sys, pathlib; from sim.demo.place import *\nwith occupied(pathlib.Path(sys.argv[1])): print('in', flush=True); input()"
    )
    first = subprocess.Popen(  # noqa: S603 - our own program
        [sys.executable, "-c", program, str(tmp_path)], cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    try:
        assert first.stdout is not None
        assert first.stdout.readline() == b"in\n"
        (tmp_path / "kubeconfig").write_text("of the first")
        with pytest.raises(PlaceError, match=f"process {first.pid}"), occupied(tmp_path):
            pass
        assert (tmp_path / "kubeconfig").read_text() == "of the first"
    finally:
        first.communicate(b"\n", timeout=10)
    with occupied(tmp_path):
        pass


def test_a_folder_that_cannot_be_written_is_named() -> None:
    with pytest.raises(PlaceError, match="/proc/x cannot be written"), occupied(Path("/proc/x")):
        pass


def test_a_file_in_the_way_is_named(tmp_path: Path) -> None:
    (tmp_path / "x").write_text("")
    with pytest.raises(PlaceError, match="--state"), occupied(tmp_path / "x"):
        pass


# Progress.


class Objects:
    """A lookup over lists by plural."""

    def __init__(self, **lists: list[Object]) -> None:
        self.lists = lists

    def get(self, group: str, plural: str, namespace: str, name: str) -> Object | None:
        return None

    def list(self, group: str, plural: str, namespace: str = "") -> Sequence[Object]:
        return self.lists.get(plural, [])


def thing(name: str, spec: Any = None, generation: int = 1, **status: Any) -> Object:
    return {"metadata": {"namespace": "ns", "name": name, "generation": generation}, "spec": spec or {}, "status": status}


def test_nothing_at_all_is_complete() -> None:
    assert progress_of(Objects()).is_complete


def test_a_running_gang_tells_where_it_is() -> None:
    (gang,) = progress_of(Objects(podgangs=[thing("g", phase="Running", pods=3, bound=3, ready=3, domain="rack-0")])).gangs
    assert (str(gang), gang.why) == ("gang ns/g: Running, 3/3 pods bound, 3 ready, in rack-0", "")


@pytest.mark.parametrize(
    ("status", "why"),
    [
        ({}, "nobody has placed it yet"),
        ({"phase": "Pending", "blocked": "InsufficientGPUs"}, "InsufficientGPUs"),
        (
            {
                "phase": "Pending",
                "blocked": "InsufficientGPUs",
                "conditions": [
                    {"type": "Initialized", "status": "True", "message": "fine"},
                    {"type": "Scheduled", "status": "False", "reason": "InsufficientGPUs", "message": "needs 16, rack-0 has 8"},
                ],
            },
            "Scheduled: InsufficientGPUs: needs 16, rack-0 has 8",
        ),
    ],
)
def test_a_gang_that_waits_says_why(status: dict[str, Any], why: str) -> None:
    found = progress_of(Objects(podgangs=[thing("g", **status)]))
    assert found.gangs[0].why == why
    assert not found.is_complete


@pytest.mark.parametrize(
    ("found", "text"),
    [
        (thing("s", {"replicas": 2}, availableReplicas=1, observedGeneration=1), "PodCliqueSet ns/s: 1 of 2 replicas available"),
        (thing("s", {"replicas": 1}, 2, availableReplicas=1, observedGeneration=1), "PodCliqueSet ns/s: 1 of 1 replicas available"),
        (
            thing("s", {"replicas": 1}, conditions=[{"type": "InvalidSpec", "status": "True", "message": "spec.x: bad"}]),
            "PodCliqueSet ns/s: InvalidSpec: spec.x: bad",
        ),
        (thing("s", {"replicas": 1}, availableReplicas=1, observedGeneration=1), ""),
    ],
)
def test_sets_that_are_not_available_are_unfinished(found: Object, text: str) -> None:
    assert list(progress_of(Objects(podcliquesets=[found])).unfinished) == ([text] if text else [])


@pytest.mark.parametrize(
    ("status", "text"),
    [
        ({"phase": "Failed", "reason": "OutOfcpu", "message": "no"}, "OutOfcpu: no"),
        (
            {"containerStatuses": [{"name": "m", "state": {"waiting": {"reason": "ImagePullBackOff", "message": "not found"}}}]},
            "container m waits: ImagePullBackOff not found",
        ),
        ({"initContainerStatuses": [{"name": "grove-initc", "state": {"running": {}}}]}, "waits for its parents to be ready"),
        ({"phase": "Running"}, "not ready yet (Running)"),
    ],
)
def test_bound_pods_that_are_not_ready_are_unfinished(status: dict[str, Any], text: str) -> None:
    bound, unbound = thing("p", {"nodeName": "n"}, **status), thing("q", {}, phase="Pending")
    assert list(progress_of(Objects(pods=[bound, unbound])).unfinished) == [f"Pod ns/p: {text}"]


# The wire.


async def test_calls_reach_the_server_without_sockets() -> None:
    seen: list[Request] = []

    async def handle(request: Request) -> Answer:
        seen.append(request)
        return Answer(200, b"{}")

    async with Transport(direct_credentials(), wire=DirectWire(handle, "controllers")) as transport:
        assert await transport.call("PATCH", "/x", query={"force": "true"}, body=b"1", content_type="text/plain") == b"{}"
    (request,) = seen
    assert (request.method, request.path, dict(request.query), request.body) == ("PATCH", "/x", {"force": "true"}, b"1")
    assert (request.content_type, request.user_agent) == ("text/plain", "grovekeeper-controllers")


async def test_a_write_without_an_answer_has_an_unknown_outcome() -> None:
    async def handle(request: Request) -> Answer:
        await anyio.sleep_forever()
        raise AssertionError

    async with Transport(direct_credentials(), wire=DirectWire(handle, "x")) as transport:
        with pytest.raises(UnknownOutcome):
            await transport.call("POST", "/x", timeout_s=0.05)


async def test_a_watch_is_read_line_by_line_and_closed_when_it_is_left() -> None:
    closed = anyio.Event()

    async def lines() -> AsyncGenerator[bytes]:
        try:
            for i in range(1000):
                yield b'{"n": %d}\n' % i
                await anyio.lowlevel.checkpoint()
        finally:
            closed.set()

    async def handle(request: Request) -> Stream:
        return Stream(lines())

    async with Transport(direct_credentials(), wire=DirectWire(handle, "x")) as transport, transport.stream("/x") as found:
        assert [await anext(found) for _ in range(2)] == [b'{"n": 0}', b'{"n": 1}']
    assert closed.is_set()


async def test_a_silent_watch_is_given_up() -> None:
    async def lines() -> AsyncGenerator[bytes]:
        await anyio.sleep_forever()
        yield b""

    async def handle(request: Request) -> Stream:
        return Stream(lines())

    async with Transport(direct_credentials(), wire=DirectWire(handle, "x")) as transport:
        with pytest.raises(StreamIdle):
            async with transport.stream("/x", inactivity_s=0.05) as found:
                await anext(found)
