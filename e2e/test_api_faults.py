"""An API server that cuts watches, forgets, conflicts, throttles, refuses and loses answers (reliability.md F2, F8 to F10)."""

import asyncio
import threading
import time
from collections import Counter
from collections.abc import Callable, Coroutine, Iterator
from typing import Any

import pytest

from e2e.cluster import KINDS, Pool, Scene, eventually, stays
from e2e.conftest import POOL_SIZE
from e2e.faultproxy import DropResponse, FaultProxy, GoneEvent, Recorded, Respond, Rule
from e2e.history import PodHistory
from e2e.processes import Grovekeeper
from e2e.workloads import clique, pcs, wl2
from hack.kube import ControlPlane

pytestmark = pytest.mark.timeout(120)


class Between:
    """A fault proxy in a thread of its own, so that tests may block."""

    def __init__(self, proxy: FaultProxy) -> None:
        self.proxy = proxy
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)

    def start(self) -> None:
        self._thread.start()
        self._do(self.proxy.__aenter__())

    def stop(self) -> None:
        self._do(self.proxy.__aexit__(None, None, None))
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(timeout=10.0)
        self._loop.close()

    def cut_watches(self, path: str = "") -> int:
        async def cut() -> int:
            return self.proxy.cut_watches(path)

        return self._do(cut())

    def seen(self, chosen: Callable[[Recorded], bool]) -> list[Recorded]:
        return [r for r in list(self.proxy.requests) if chosen(r)]

    def _do(self, work: Coroutine[Any, Any, Any]) -> Any:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(timeout=20.0)


@pytest.fixture(scope="module")
def between(control_plane: ControlPlane, grovekeeper: Grovekeeper, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Between]:
    """Both processes reach the API server through a fault proxy; tests themselves do not."""
    out = Between(FaultProxy(control_plane.kubeconfig, control_plane.layout.certs))
    out.start()
    kubeconfig = tmp_path_factory.mktemp("proxy") / "kubeconfig"
    out.proxy.write_kubeconfig(kubeconfig)
    try:
        with grovekeeper.replaced(kubeconfig=kubeconfig):
            yield out
    finally:
        out.stop()


@pytest.fixture
def faulty(between: Between, scene: Scene, pool: Pool) -> Iterator[Between]:
    """The proxy without rules, and room for pods."""
    pool.open(POOL_SIZE)
    between.proxy.requests.clear()
    yield between
    between.proxy.rules.clear()


def wait_ready(scene: Scene, pods: int, timeout_s: float = 40.0) -> None:
    wanted = {"pods": pods, "placed": pods, "pending": 0, "ready": pods}
    eventually(lambda: scene.counts() == wanted, lambda: f"wanted {wanted}\n{scene.describe()}", timeout_s)


def settle(scene: Scene, pods: int) -> None:
    stays(lambda: scene.counts()["ready"] == len(scene.pods()) == pods, scene.describe, 1.5)


def test_watches_cut_during_a_scale_up(scene: Scene, faulty: Between) -> None:
    with PodHistory(scene.plane.kubeconfig, scene.namespace) as history:
        scene.apply(wl2(memory="20Mi"))
        for replicas in (1, 2, 3, 4):
            scene.scale("pcs/workload2", replicas)
            eventually(lambda: len(faulty.proxy.live_watches()) > 10, "the watches do not come back")
            assert faulty.cut_watches() > 10
        wait_ready(scene, 40)
        settle(scene, 40)
    history.assert_sound()
    assert len(history.nodes) == 40


def test_history_gone(scene: Scene, faulty: Between) -> None:
    """410 on every watch: one new list per kind, and nothing is written because of it."""
    scene.apply(wl2(memory="20Mi"))
    wait_ready(scene, 10)
    settle(scene, 10)
    kinds = {r.path.split("?")[0] for r in faulty.proxy.live_watches()}
    assert len(kinds) > 5
    for path in kinds:
        faulty.proxy.add(Rule(GoneEvent(), path=f"^{path}\\?.*watch="))
    faulty.proxy.requests.clear()
    faulty.cut_watches()
    eventually(lambda: all(r.times == 0 for r in faulty.proxy.rules), lambda: str([r for r in faulty.proxy.rules if r.times]))
    eventually(lambda: {r.path.split("?")[0] for r in faulty.proxy.live_watches()} == kinds, "not all watches are back")
    time.sleep(1.0)
    lists = Counter(r.path.split("?")[0] for r in faulty.seen(lambda r: r.method == "GET" and not r.is_watch and "limit=" in r.path))
    watchers = Counter(r.path.split("?")[0] for r in faulty.proxy.live_watches())
    # Two processes watch some kinds both; each may list once more when its new watch is cut by the rule for the other.
    assert {path: n for path, n in lists.items() if n > 3 * watchers[path]} == {}
    writes = faulty.seen(lambda r: r.is_write and "/leases/" not in r.path and "/events" not in r.path)
    assert [f"{r.method} {r.path}" for r in writes] == []
    scene.scale("pcs/workload2", 2)
    wait_ready(scene, 20)


class Meddler:
    """Another controller: annotates everything of a namespace again and again, so that every resourceVersion is soon out of date."""

    def __init__(self, scene: Scene) -> None:
        self._scene = scene
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self.writes = 0

    def __enter__(self) -> "Meddler":
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._ended.set()
        self._thread.join(timeout=10.0)

    def _run(self) -> None:
        with self._scene.plane.client() as client:
            while not self._ended.is_set():
                for kind in ("PodCliqueSet", "PodClique", "PodCliqueScalingGroup", "PodGang"):
                    for o in client.request("GET", KINDS[kind].path(self._scene.namespace))["items"]:
                        path = KINDS[kind].path(self._scene.namespace, o["metadata"]["name"])
                        note = {"metadata": {"annotations": {"meddler": str(self.writes)}}}
                        self.writes += client.raw("PATCH", path, note, "application/merge-patch+json")[0] == 200
                        self._ended.wait(0.01)


def test_conflicts(scene: Scene, faulty: Between) -> None:
    """Someone else writes all the time, and every kind of write is answered 409 at first."""
    kinds = ("podcliquesets", "podcliques", "podcliquescalinggroups", "podgangs", "pods")
    for plural in kinds:
        faulty.proxy.add(Rule(Respond(409), method="PATCH|PUT", path=f"/{plural}/", times=2))
        faulty.proxy.add(Rule(Respond(409), method="POST", path=f"/{plural}[^/]*$", times=2))
    with Meddler(scene) as meddler:
        scene.apply(wl2(memory="20Mi"))
        scene.scale("pcs/workload2", 2)
        wait_ready(scene, 20, 60.0)
        eventually(lambda: meddler.writes > 20, "the meddler does not get through", 30.0)
    assert len(faulty.seen(lambda r: r.status == 409)) >= 10, "no conflict happened"
    settle(scene, 20)
    writes = Counter((r.method, r.path.split("?")[0]) for r in faulty.seen(lambda r: r.is_write and "/events" not in r.path))
    assert max(writes.values()) <= 100, writes.most_common(5)


def test_throttled_with_retry_after(scene: Scene, faulty: Between) -> None:
    rule = faulty.proxy.add(Rule(Respond(429, retry_after_s=1), method="POST", path="/pods", times=6))
    scene.apply(wl2(memory="20Mi"))
    wait_ready(scene, 10)
    assert rule.times == 0
    settle(scene, 10)
    # Who asks again before the second is over gets more than these six.
    assert len(faulty.seen(lambda r: r.method == "POST" and r.path.split("?")[0].endswith("/pods"))) <= 10 + 6


def test_refused_creation_hurts_nobody_else(scene: Scene, faulty: Between) -> None:
    """A quota-like 403 on the pods of one set: few attempts, a reason, and other sets come up."""
    faulty.proxy.add(Rule(Respond(403), method="POST", path=f"/namespaces/{scene.namespace}/pods", times=None))
    scene.apply(pcs("refused", (clique("worker", 2, memory="20Mi"),)))
    eventually(lambda: len(faulty.seen(lambda r: r.status == 403)) > 0, scene.tails)
    other = Scene(scene.plane, f"{scene.namespace}-b", scene.client, scene.kubectl, scene.tails)
    scene.kubectl("create", "namespace", other.namespace)
    try:
        other.apply(wl2(memory="20Mi"))
        wait_ready(other, 10)
        assert scene.pods() == []
        attempts = len(faulty.seen(lambda r: r.status == 403))
        assert attempts <= 10

        def explained() -> bool:
            errors = scene.object("PodClique", "refused-0-worker").get("status", {}).get("lastErrors", [])
            return bool(errors) or any(e["involvedObject"]["kind"] != "Pod" and e["type"] == "Warning" for e in scene.objects("Event"))

        eventually(explained, lambda: f"neither the PodClique nor an event says why there are no pods\n{scene.tails()}", 10.0)
    finally:
        other.clear()
        scene.kubectl("delete", "namespace", other.namespace, "--wait=false")


LOST = {"pods": r"/pods(\?|$)", "cliques": r"/podcliques(\?|$)", "gangs": r"/podgangs", "bindings": r"/binding"}


@pytest.mark.parametrize("path", LOST.values(), ids=LOST.keys())
def test_answer_lost_after_the_write(scene: Scene, faulty: Between, path: str) -> None:
    rule = faulty.proxy.add(Rule(DropResponse(), method="POST|PATCH", path=path, times=4))
    with PodHistory(scene.plane.kubeconfig, scene.namespace) as history:
        scene.apply(wl2(memory="20Mi"))
        wait_ready(scene, 10)
        settle(scene, 10)
    assert rule.times is not None
    assert rule.times < 4, "no answer was lost"
    history.assert_sound()
    assert len(history.nodes) == 10
    assert sorted(Counter(pod.clique for pod in scene.pods()).values()) == [1, 1, 2, 3, 3]
