"""The cluster of a demo: embedded API server and what a cluster has around it, in one task group."""

from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from random import Random

import anyio

from api.plan import Clock
from sim.apiserver.bootstrap import bootstrap
from sim.apiserver.care.controllers import Controllers
from sim.apiserver.care.webhooks import Webhooks
from sim.apiserver.server import ApiServer
from sim.kubelet.behaviour import Behaviour
from sim.kubelet.kubelet import Kubelet
from sim.nodes.actions import Nodes
from sim.nodes.heartbeats import Heartbeats
from sim.nodes.lifecycle import NodeLifecycle
from sim.nodes.specs import NodeSpec

__all__ = ("Cluster", "running_cluster")

HEARTBEATS_UP_TO = 100
"""Nodes; their renewals would be most of the writes of a larger cluster."""


@dataclass(frozen=True, slots=True)
class Cluster:
    """What can be used while it runs."""

    server: ApiServer
    kubelet: Kubelet
    nodes: Nodes


@asynccontextmanager
async def running_cluster(
    clock: Clock, rng: Random, specs: Sequence[NodeSpec], behaviour: Behaviour | None = None
) -> AsyncGenerator[Cluster]:
    """A bootstrapped cluster with nodes that are Ready. `behaviour`: of pods without annotations."""
    server = ApiServer(clock, rng, webhooks=Webhooks)
    await bootstrap(server)
    lifecycle = NodeLifecycle(server, clock)
    kubelet = Kubelet(server, clock, defaults=behaviour, seed=rng.getrandbits(32))
    nodes = Nodes(server, clock, kubelet, lifecycle)
    async with anyio.create_task_group() as tasks:
        for run in (
            Controllers(server).run,
            lifecycle.run,
            kubelet.run,
        ):
            tasks.start_soon(run)
        await nodes.create(specs)
        if len(specs) <= HEARTBEATS_UP_TO:
            tasks.start_soon(Heartbeats(server, clock, kubelet).run)
        try:
            yield Cluster(server, kubelet, nodes)
        finally:
            tasks.cancel_scope.cancel()
