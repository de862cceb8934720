"""e2e.cluster.Scene and Pool over a simulated cluster: what tests see and do is the same, and waiting takes no time."""

from collections.abc import Mapping
from typing import Any

from e2e.cluster import KINDS, WAIT_S, Pool, Scene
from sim.cluster.cluster import Cluster
from sim.loop.run import Simulation

__all__ = ("SimPool", "SimScene")

SETTLE_S = 5.0
ALIASES = {"pcs": "PodCliqueSet", "pcsg": "PodCliqueScalingGroup", "pclq": "PodClique"}


class SimScene(Scene):
    """Runs the simulation while it waits."""

    def __init__(self, simulation: Simulation, cluster: Cluster) -> None:
        self.simulation = simulation
        self.cluster = cluster
        self.namespace = "default"

    def apply(self, *manifests: Mapping[str, Any]) -> None:
        self.simulation.do(self.cluster.apply(*map(dict, manifests)))

    def scale(self, what: str, replicas: int) -> None:
        alias, _, name = what.partition("/")
        kind = KINDS[ALIASES[alias]]
        self.simulation.do(self.cluster.scale(kind.group, kind.version, kind.plural, name, replicas))

    def delete(self, kind: str, name: str) -> None:
        known = KINDS[kind]
        self.simulation.do(self.cluster.delete(known.group, known.version, known.plural, name))

    def objects(self, kind: str) -> list[dict[str, Any]]:
        return list(self.cluster.objects(KINDS[kind].group, KINDS[kind].plural))

    def object(self, kind: str, name: str) -> dict[str, Any]:
        return next(o for o in self.objects(kind) if o["metadata"]["name"] == name)

    def wait_counts(self, placed: int, pending: int, *, timeout_s: float = WAIT_S) -> None:
        wanted = {"pods": placed + pending, "placed": placed, "pending": pending, "ready": placed}

        async def wait() -> None:
            await self.cluster.until(lambda: self.counts() == wanted, lambda: f"wanted {wanted}\n{self.describe()}", timeout_s)
            await self.cluster.until(lambda: not self.unexplained(), lambda: f"without a reason: {self.unexplained()}\n{self.describe()}")
            await self.cluster.sleep(SETTLE_S)

        self.simulation.do(wait())
        assert self.counts() == wanted, self.describe()

    def tails_text(self) -> str:
        return "\n".join(self.cluster.log[-30:])

    def describe(self) -> str:
        lines = [f"{self.counts()} after {self.simulation.loop.time():.1f} s"]
        for pod in sorted(self.pods(), key=lambda p: (p.clique, p.index)):
            state = "ready" if pod.ready else "gated" if pod.gated else pod.condition("PodScheduled").get("message", "")
            lines.append(f"  {pod.name} [{pod.gang}] {pod.node or '-'} {state}")
        return "\n".join([*lines, self.tails_text()])


class SimPool(Pool):
    """Cordons and uncordons; the scheduler sees the change as one, as in the end-to-end tests."""

    def __init__(self, scene: SimScene, names: tuple[str, ...]) -> None:
        self.names = names
        self._scene = scene
        self._open = 0

    def open(self, count: int) -> None:
        schedulers = [p for p in self._scene.cluster.processes.values() if p.kind.component == "scheduler"]

        async def change() -> None:
            for process in schedulers:
                process.freeze()
            for name in self.names[self._open : count]:
                await self._scene.cluster.nodes.uncordon(name)
            for name in self.names[count : self._open]:
                await self._scene.cluster.nodes.cordon(name)
            await self._scene.cluster.sleep(0.1)
            for process in schedulers:
                process.thaw()

        self._scene.simulation.do(change())
        self._open = count
