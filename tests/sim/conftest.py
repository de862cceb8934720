"""Scenes of a simulated cluster for tests that are written for a real one as well."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from api.operatorconfig import OperatorConfiguration
from cli.configuration import load_configuration
from cli.programs import PROGRAMS
from e2e import workloads
from sim.cluster.cluster import Cluster, Setup
from sim.loop.run import Simulation
from sim.nodes.specs import NodeSpec, uniform_nodes
from tests.sim.scenes import SimPool, SimScene

POOL_SIZE = 28
TAINT = {"key": workloads.POOL, "value": "agent", "effect": "NoSchedule"}


@pytest.fixture(scope="session")
def config() -> OperatorConfiguration:
    """The configuration that we ship."""
    return load_configuration(str(Path(__file__).parents[2] / "manifests" / "config" / "controllers.yaml"))


@pytest.fixture(scope="session")
def setup(config: OperatorConfiguration) -> Setup:
    """The pool of the end-to-end tests: 28 nodes with room for one pod of 80Mi each."""
    specs = uniform_nodes(POOL_SIZE, cpu="4", memory="150Mi", name="agent-{i}", labels=lambda i: {workloads.POOL: "agent"})
    return Setup(PROGRAMS, config, [NodeSpec(s.name, s.allocatable, s.labels, (TAINT,)) for s in specs])


@pytest.fixture(params=[1])
def scene(setup: Setup, request: pytest.FixtureRequest) -> Iterator[SimScene]:
    """A cluster whose nodes are all cordoned. Every invariant holds until the end of the test."""
    with Simulation(request.param) as simulation:

        async def begin() -> Cluster:
            cluster = Cluster(setup, request.param)
            await cluster.__aenter__()
            for spec in setup.nodes:
                await cluster.nodes.cordon(spec.name)
            return cluster

        cluster = simulation.do(begin())
        try:
            yield SimScene(simulation, cluster)
            cluster.check()
        finally:
            simulation.do(cluster.__aexit__(None, None, None))


@pytest.fixture
def pool(scene: SimScene) -> SimPool:
    """The nodes of the scene."""
    return SimPool(scene, tuple(spec.name for spec in scene.cluster.setup.nodes))
