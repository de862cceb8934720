"""GS1 to GS12 of the end-to-end tests, unchanged, in simulated clusters: less than two seconds each on a quiet machine."""

import time
from collections.abc import Iterator

import pytest

from e2e.test_gang_scheduling import *  # noqa: F403 - the tests themselves
from e2e.workloads import clique, pcs
from tests.sim.scenes import SimPool, SimScene

pytestmark = pytest.mark.timeout(20)

LIMIT_S = 4.0
"""Twice what is wanted, for machines that do other things too."""


@pytest.fixture(autouse=True)
def quick(scene: SimScene) -> Iterator[None]:
    """The test takes little processor time."""
    del scene
    started = time.process_time()
    yield
    assert time.process_time() - started < LIMIT_S


def engine(name: str) -> dict[str, object]:
    """One service of four pods that is worth nothing with three."""
    return pcs(name, [clique("engine", 4, 4)])


def test_a_service_that_does_not_fit_holds_nothing(scene: SimScene, pool: SimPool) -> None:
    pool.open(3)
    scene.apply(engine("service"))
    scene.wait_counts(0, 4)
    scene.simulation.do(scene.cluster.sleep(600.0))
    assert scene.counts()["placed"] == 0
    pool.uncordon(1)
    scene.wait_counts(4, 0)


def test_of_two_services_one_is_whole_and_one_waits(scene: SimScene, pool: SimPool) -> None:
    pool.open(4)
    scene.apply(engine("a"), engine("b"))
    scene.wait_counts(4, 4)
    assert {pod.clique for pod in scene.pods() if pod.node} in ({"a-0-engine"}, {"b-0-engine"})
    scene.simulation.do(scene.cluster.sleep(600.0))
    scene.wait_counts(4, 4)
    pool.uncordon(4)
    scene.wait_counts(8, 0)
