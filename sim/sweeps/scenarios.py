"""What users do in a run, and what has to be there at its end whatever went wrong on the way."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from random import Random

from sim.apiserver.objects import Object, mapping, maps
from sim.cluster.cluster import NAMESPACE, Cluster
from sim.workloads import clique, pcs, wl1, wl2

__all__ = ("SCENARIOS", "Scenario", "ready_pods")

GROVE, V1ALPHA1 = "grove.io", "v1alpha1"
SETS, GROUPS, CLIQUES = "podcliquesets", "podcliquescalinggroups", "podcliques"
LIMIT_S = 900.0
"""How long a scenario waits for one step while faults go on."""


@dataclass(frozen=True, slots=True)
class Scenario:
    """`nodes`: of how many the pool consists. `act`: the user's part; the random numbers are the seed's. `pods`: ready ones at the end.
    `span_s`: within which faults that have a time are drawn."""

    nodes: int
    act: Callable[[Cluster, Random], Awaitable[None]]
    pods: int
    span_s: float = 15.0


def ready_pods(cluster: Cluster) -> int:
    """Pods that are ready and stay."""
    return sum(is_ready(pod) for pod in cluster.pods())


def is_ready(pod: Object) -> bool:
    return any(c["type"] == "Ready" and c["status"] == "True" for c in maps(pod, "status", "conditions"))


async def ready(cluster: Cluster, count: int) -> None:
    """Waits until there are so many pods and all are ready."""

    def seen() -> str:
        return f"wanted {count} ready pods, there are {len(cluster.pods())} of which {ready_pods(cluster)} are ready"

    await cluster.until(lambda: ready_pods(cluster) == count == len(cluster.pods()), seen, LIMIT_S)


async def scale(cluster: Cluster, plural: str, name: str, replicas: int) -> None:
    """Waits for the object, then scales it."""
    await cluster.until(lambda: cluster.server.lookup.get(GROVE, plural, NAMESPACE, name) is not None, f"no {plural} {name}", LIMIT_S)
    await cluster.scale(GROVE, V1ALPHA1, plural, name, replicas)


async def create(cluster: Cluster, rng: Random) -> None:
    await cluster.apply(wl1())
    await ready(cluster, 10)


async def scale_up(cluster: Cluster, rng: Random) -> None:
    await cluster.apply(wl2())
    await ready(cluster, 10)
    await scale(cluster, GROUPS, "workload2-0-sg-x", 3)
    await scale(cluster, CLIQUES, "workload2-0-pc-a", 3)
    await ready(cluster, 15)


async def scale_down(cluster: Cluster, rng: Random) -> None:
    await cluster.apply(wl2())
    await ready(cluster, 10)
    await scale(cluster, GROUPS, "workload2-0-sg-x", 1)
    await scale(cluster, CLIQUES, "workload2-0-pc-a", 1)
    await ready(cluster, 5)


async def delete(cluster: Cluster, rng: Random) -> None:
    await cluster.apply(wl1())
    await ready(cluster, 10)
    await cluster.delete(GROVE, V1ALPHA1, SETS, "workload1")
    await cluster.until(lambda: not left(cluster), lambda: f"left: {', '.join(left(cluster))}", LIMIT_S)


def left(cluster: Cluster) -> list[str]:
    """What belongs to PodCliqueSets and is there still."""
    kinds = ((GROVE, SETS), (GROVE, GROUPS), (GROVE, CLIQUES), ("scheduler.grove.io", "podgangs"), ("", "pods"), ("", "services"))
    found = [(plural, o) for group, plural in kinds for o in cluster.objects(group, plural)]
    return [
        f"{p}/{o['metadata']['name']}" for p, o in found if p == SETS or mapping(o, "metadata", "labels").get("app.kubernetes.io/part-of")
    ]


async def scarce(cluster: Cluster, rng: Random) -> None:
    """Two services that need four nodes each, and room for one of them at first."""
    for spec in cluster.setup.nodes[4:]:
        await cluster.nodes.cordon(spec.name)
    for name in ("a", "b"):
        await cluster.apply(pcs(name, [clique("engine", 4, 4)]))
    await cluster.until(lambda: ready_pods(cluster) == 4, lambda: f"{ready_pods(cluster)} of 4 ready", LIMIT_S)
    for spec in cluster.setup.nodes[4:]:
        await cluster.nodes.uncordon(spec.name)
    await ready(cluster, 8)


async def churn(cluster: Cluster, rng: Random) -> None:
    """Somebody scales, deletes pods and cordons nodes without waiting, and wants wl2 with its first replica counts in the end."""
    await cluster.apply(wl2())
    for _ in range(12):
        await cluster.sleep(rng.choice((0.0, 0.05, 0.5, 5.0, 20.0)))
        await _disturb(cluster, rng)
    await cluster.sleep(rng.choice((0.0, 1.0, 30.0)))
    for spec in cluster.setup.nodes:
        await cluster.nodes.uncordon(spec.name)
    await scale(cluster, SETS, "workload2", 1)
    await scale(cluster, GROUPS, "workload2-0-sg-x", 2)
    await scale(cluster, CLIQUES, "workload2-0-pc-a", 2)
    await ready(cluster, 10)


async def _disturb(cluster: Cluster, rng: Random) -> None:
    match rng.randrange(5):
        case 0:
            await cluster.scale(GROVE, V1ALPHA1, SETS, "workload2", rng.randint(1, 2))
        case 1:
            await scale(cluster, GROUPS, "workload2-0-sg-x", rng.randint(1, 3))
        case 2:
            await scale(cluster, CLIQUES, "workload2-0-pc-a", rng.randint(1, 4))
        case 3 if pods := cluster.pods():
            pod = rng.choice(pods)["metadata"]["name"]
            await cluster.delete("", "v1", "pods", pod)
        case _:
            node = rng.choice(cluster.setup.nodes).name
            await (cluster.nodes.cordon if rng.random() < 0.5 else cluster.nodes.uncordon)(node)


SCENARIOS: Mapping[str, Scenario] = {
    "create": Scenario(10, create, 10),
    "scale-up": Scenario(15, scale_up, 15),
    "scale-down": Scenario(10, scale_down, 5),
    "delete": Scenario(10, delete, 0),
    "scarce": Scenario(8, scarce, 8),
    "churn": Scenario(28, churn, 10, 150.0),
}
