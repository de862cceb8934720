"""Crashes in the middle of work: processes killed at random moments, the API server restarted (reliability.md F1, F31)."""

import os
import random
import time
from collections.abc import Iterator
from typing import Any

import pytest

from e2e.cluster import KINDS, Pool, Scene, eventually
from e2e.conftest import POOL_SIZE
from e2e.history import PodHistory, normalised
from e2e.processes import Grovekeeper
from e2e.workloads import wl2

pytestmark = pytest.mark.timeout(150)

KILLS = 5
REPLICAS = KILLS + 1
PODS = 10
# Kills are spread over the time in which a step of the scale-up is carried out.
LONGEST_DELAY_S = 1.2
BASE_SEED = int(os.environ.get("E2E_SEED", "20260819"))


def wait_all(scene: Scene, replicas: int, timeout_s: float = 60.0) -> None:
    wanted = {"pods": PODS * replicas, "placed": PODS * replicas, "pending": 0, "ready": PODS * replicas}
    eventually(lambda: scene.counts() == wanted, lambda: f"wanted {wanted}\n{scene.describe()}", timeout_s)


@pytest.fixture(scope="module")
def undisturbed() -> dict[str, dict[str, Any]]:
    """Filled by the first test that needs it: what is there after the scale-up when nothing is killed."""
    return {}


@pytest.fixture
def expected(undisturbed: dict[str, dict[str, Any]], scene: Scene, pool: Pool) -> dict[str, Any]:
    """Objects of an undisturbed scale-up, made once per module."""
    pool.open(POOL_SIZE)
    if not undisturbed:
        scene.apply(wl2(memory="20Mi"))
        for replicas in range(1, REPLICAS + 1):
            scene.scale("pcs/workload2", replicas)
            wait_all(scene, replicas)
        undisturbed["objects"] = settled(scene)
        scene.clear()
    return undisturbed["objects"]


def settled(scene: Scene) -> dict[str, Any]:
    """The objects once the gangs name all pods."""

    def complete() -> bool:
        gangs = scene.objects("PodGang")
        return sum(len(g.get("podReferences", ())) for gang in gangs for g in gang["spec"]["podgroups"]) == len(scene.pods())

    eventually(complete, scene.describe)
    return normalised(scene)


def assert_same(found: dict[str, Any], expected: dict[str, Any]) -> None:
    assert found.keys() == expected.keys()
    assert {key: value for key, value in found.items() if value != expected[key]} == {}


@pytest.mark.parametrize("seed", [BASE_SEED, BASE_SEED + 1])
@pytest.mark.parametrize("victim", ["controllers", "scheduler"])
def test_killed_during_a_scale_up(
    scene: Scene, grovekeeper: Grovekeeper, expected: dict[str, Any], victim: str, seed: int, capsys: pytest.CaptureFixture[str]
) -> None:
    """Five kills per run, twenty in all four; E2E_SEED chooses other moments."""
    chance = random.Random(seed)  # noqa: S311 - moments, not secrets
    daemon = grovekeeper.controllers if victim == "controllers" else grovekeeper.scheduler
    delays = [chance.uniform(0.0, LONGEST_DELAY_S) for _ in range(KILLS)]
    with capsys.disabled():
        print(f"\nkilling {victim} at {', '.join(f'{d:.2f}' for d in delays)} s, seed {seed}")  # noqa: T201
    with PodHistory(scene.plane.kubeconfig, scene.namespace) as history:
        scene.apply(wl2(memory="20Mi"))
        for step, delay_s in enumerate(delays):
            scene.scale("pcs/workload2", step + 2)
            time.sleep(delay_s)
            daemon.kill()
            daemon.start()
        wait_all(scene, REPLICAS)
        found = settled(scene)
    history.assert_sound()
    assert len(history.nodes) == PODS * REPLICAS, "pods were replaced although nothing was wrong with them"
    assert_same(found, expected)


@pytest.mark.usefixtures("expected")
def test_both_killed_at_once(scene: Scene, grovekeeper: Grovekeeper) -> None:
    with PodHistory(scene.plane.kubeconfig, scene.namespace) as history:
        scene.apply(wl2(memory="20Mi", replicas=3))
        eventually(lambda: scene.counts()["placed"] > 0, scene.describe)
        for daemon in grovekeeper.both:
            daemon.kill()
        grovekeeper.start()
        wait_all(scene, 3)
    history.assert_sound()


def test_term_ends_both_quickly_and_nothing_is_lost(scene: Scene, pool: Pool, grovekeeper: Grovekeeper) -> None:
    pool.open(POOL_SIZE)
    scene.apply(wl2(memory="20Mi"))
    took = {daemon.name: daemon.stop(grace_s=15.0) for daemon in grovekeeper.both}
    grovekeeper.start()
    assert max(took.values()) < 10.0, took
    wait_all(scene, 1)


@pytest.fixture
def restored(scene: Scene) -> Iterator[None]:
    """The API server runs again whatever happens, and garbage is collected without the long waits that follow an outage."""
    yield
    if "kube-apiserver" not in scene.plane.running():
        scene.plane.start_apiserver()
    scene.plane.stop_component("kube-controller-manager")
    scene.plane.start_component("kube-controller-manager")


@pytest.mark.usefixtures("restored")
def test_api_server_restarted_during_a_scale_up(scene: Scene, grovekeeper: Grovekeeper, expected: dict[str, Any]) -> None:
    before = {daemon.name: daemon.pid for daemon in grovekeeper.both}
    with PodHistory(scene.plane.kubeconfig, scene.namespace) as history:
        scene.apply(wl2(memory="20Mi"))
        scene.scale("pcs/workload2", REPLICAS)
        eventually(lambda: scene.counts()["placed"] > 0, scene.describe)
        scene.plane.restart_apiserver()
        back = time.monotonic()
        wait_all(scene, REPLICAS)
        took_s = time.monotonic() - back
        found = settled(scene)
    history.assert_sound()
    assert {daemon.name: daemon.pid for daemon in grovekeeper.both} == before, "a process did not survive the outage"
    assert took_s < 30.0
    assert_same(found, expected)


def test_deleted_during_a_scale_up_with_controllers_down(scene: Scene, pool: Pool, grovekeeper: Grovekeeper) -> None:
    pool.open(POOL_SIZE)
    scene.apply(wl2(memory="20Mi"))
    wait_all(scene, 1)
    grovekeeper.controllers.kill()
    scene.client.request("DELETE", KINDS["PodCliqueSet"].path(scene.namespace, "workload2"))
    grovekeeper.start()
    eventually(lambda: not scene.left(), lambda: str(scene.left()), 30.0)
