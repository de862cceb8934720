"""A namespace with workloads in it, and what happened to its pods."""

import asyncio
import contextlib
from collections import Counter
from collections.abc import AsyncGenerator, Callable
from dataclasses import dataclass, field

from api.core import Pod as PodModel
from api.grove import PodClique, PodCliqueScalingGroup, PodCliqueSet
from api.kinds import Kind
from api.podgang import PodGang
from e2e.cluster import Pod
from e2e.history import PodLives
from e2e.kind.live import Kubectl, Live, Manifest
from e2e.kind.waiting import UNREACHABLE, until

__all__ = ("Scene",)

POLL_S = 0.2


@dataclass(slots=True)
class Scene:
    """One namespace. Pods are those that are not being deleted."""

    live: Live
    kubectl: Kubectl
    namespace: str

    async def apply(self, *manifests: Manifest) -> None:
        await self.kubectl.apply(*manifests, namespace=self.namespace)

    async def scale(self, what: str, replicas: int) -> None:
        """kubectl scale, e.g. scale("pcsg/chat-0-prefill", 3)."""
        await self.kubectl("scale", what, "-n", self.namespace, f"--replicas={replicas}")

    async def objects(self, kind: Kind) -> list[Manifest]:
        return await self.live.objects(kind, self.namespace)

    async def pods(self, chosen: Callable[[Pod], bool] = lambda pod: True) -> list[Pod]:
        found = map(Pod, await self.objects(PodModel.KIND))
        return sorted((pod for pod in found if pod.live and chosen(pod)), key=lambda pod: (pod.clique, pod.index))

    async def uids(self, chosen: Callable[[Pod], bool] = lambda pod: True) -> set[str]:
        return {pod.uid for pod in await self.pods(chosen)}

    async def ready(self, count: int, what: str, timeout_s: float = 60.0) -> list[Pod]:
        """Wait for exactly so many pods, all of them Ready, each with a place of its own in its clique."""

        async def look() -> list[str]:
            return [state(pod) for pod in await self.pods()]

        await until(
            look, lambda seen: len(seen) == count and all(s.endswith(" ready") for s in seen), f"{what}: {count} ready pods", timeout_s
        )
        pods = await self.pods()
        assert [place for place, n in Counter((pod.clique, pod.index) for pod in pods).items() if n > 1] == []
        return pods

    async def gone(self, timeout_s: float = 60.0) -> None:
        """Wait until no set, nothing made for one and no pod is left."""

        async def look() -> list[str]:
            kinds = (PodCliqueSet.KIND, PodClique.KIND, PodCliqueScalingGroup.KIND, PodGang.KIND, PodModel.KIND)
            return [f"{kind}/{o['metadata']['name']}" for kind in kinds for o in await self.objects(kind)]

        await until(look, lambda left: not left, f"nothing left in {self.namespace}", timeout_s)

    async def remove(self, name: str, *, wait: bool = True) -> None:
        """kubectl delete of a set."""
        await self.kubectl("delete", "pcs", name, "-n", self.namespace, f"--wait={str(wait).lower()}", "--timeout=60s")

    @contextlib.asynccontextmanager
    async def watched(self) -> AsyncGenerator["Watched"]:
        """Follows the pods of the namespace meanwhile. Afterwards no two living pods may have had one place, no pod two nodes."""
        seen = Watched(self)
        task = asyncio.create_task(seen.follow())
        try:
            yield seen
        finally:
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task
        seen.lives.assert_sound()


@dataclass(slots=True)
class Watched:
    """Pods of a scene, looked at five times a second."""

    scene: Scene
    lives: PodLives = field(default_factory=PodLives)

    async def follow(self) -> None:
        """Runs until cancelled; looks away while the API server does."""
        while True:
            with contextlib.suppress(*UNREACHABLE):
                self.lives.replace(await self.scene.objects(PodModel.KIND))
            await asyncio.sleep(POLL_S)


def state(pod: Pod) -> str:
    """One line about a pod, for failure messages."""
    word = "ready" if pod.ready else "gated" if pod.gated else pod.condition("PodScheduled").get("message", "") or "not ready"
    return f"{pod.name} [{pod.gang}] {pod.node or '-'} {word}"
