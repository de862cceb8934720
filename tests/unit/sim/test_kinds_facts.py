"""Built-in kinds answer as kube-apiserver did."""

import pytest

from tests.unit.sim.kindfacts import answered, facts, normalized
from tests.unit.sim.kindworld import KindWorld

SYSTEM = {"system-node-critical": 2_000_001_000, "system-cluster-critical": 2_000_000_000}


def new_world() -> KindWorld:
    world = KindWorld()
    world.create("namespaces", {"metadata": {"name": "default"}})
    for name, value in SYSTEM.items():
        world.create("priorityclasses", {"metadata": {"name": name}, "value": value}, "scheduling.k8s.io")
    return world


@pytest.mark.parametrize(("name", "least"), [("pods", 80), ("pod_updates", 35), ("pod_actions", 35), ("services", 80), ("workloads", 130)])
def test_answers_are_those_of_the_real_server(name: str, least: int) -> None:
    world, recorded = new_world(), facts(name)
    assert len(recorded) >= least
    different = []
    for method, path, body, status, answer in recorded:
        got, said = answered(world, method, path, body)
        if (got, normalized(said)) != (status, answer):
            different.append((method, path, body, status, answer, got, normalized(said)))
    assert different == []
