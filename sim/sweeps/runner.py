"""Runs one scenario with one seed and one list of faults, and says what broke first."""

import gc
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from hashlib import sha256
from random import Random
from typing import Any

from sim.cluster.cluster import Cluster, RequestRefused, Setup
from sim.faults.plan import Fault, FaultKind, draw
from sim.invariants.violation import InvariantViolated, Violation
from sim.invariants.writers import shared_fields
from sim.kubelet.behaviour import Behaviour
from sim.kubelet.distributions import parse_delay
from sim.loop.errors import SimulationError
from sim.loop.run import Simulation
from sim.nodes.specs import NodeSpec, uniform_nodes
from sim.sweeps.normal import normalised
from sim.sweeps.scenarios import SCENARIOS, Scenario
from sim.workloads import POOL

__all__ = ("REST_S", "WATCHED", "Result", "drawn", "run_scenario", "shrunk")

QUIET_S, SETTLE_S, REST_S = 100.0, 1000.0, 600.0
"""Frozen watches are given up after 90 s. Nothing is written for QUIET_S within SETTLE_S after the last step, and then for REST_S."""
WATCHED = ("pods", "podcliques", "podcliquesets", "podcliquescalinggroups", "podgangs", "nodes")
MANAGED = (
    *(("grove.io", "v1alpha1", plural) for plural in ("podcliquesets", "podcliquescalinggroups", "podcliques")),
    ("scheduler.grove.io", "v1alpha1", "podgangs"),
    ("", "v1", "pods"),
)
PODS = Behaviour(start=parse_delay("uniform(0.2s, 3s)"), ready=parse_delay("uniform(0.2s, 5s)"), stop=parse_delay("uniform(0.1s, 4s)"))
"""So that the steps of pods take time, and faults meet them half-way."""
MAX_TRIES = 80
"""Runs that making a list of faults shorter may cost."""


@dataclass(slots=True)
class Result:
    """How a run ended. `violation`: the first one, None when all was well. `writes`: of our processes, by name, without leases and events.
    `state`: see normalised."""

    violation: Violation | None = None
    log: list[str] = field(default_factory=list[str])
    state: dict[str, Any] = field(default_factory=dict[str, Any])
    writes: dict[str, int] = field(default_factory=dict[str, int])
    seconds: float = 0.0

    @property
    def digest(self) -> str:
        """Of the event log."""
        return sha256("\n".join(self.log).encode()).hexdigest()


def pool(count: int) -> list[NodeSpec]:
    """Nodes with room for one pod of the workloads each."""
    return list(uniform_nodes(count, cpu="4", memory="150Mi", name="agent-{i}", labels=lambda i: {POOL: "agent"}))


def drawn(setup: Setup, scenario: Scenario, seed: int, kinds: Iterable[FaultKind], count: int) -> list[Fault]:
    """The faults of a seed."""
    processes = [f"{component}-{i}" for component in setup.programs for i in range(setup.replicas)]
    return draw(Random(f"{seed}/faults"), processes, WATCHED, kinds, count=count, span_s=scenario.span_s)  # noqa: S311 - reproducible


def run_scenario(setup: Setup, name: str, seed: int | None, faults: Sequence[Fault] = (), *, rest_s: float = REST_S) -> Result:
    """`seed` None: calm, in order of readiness. `rest_s`: how long nothing may be written at the end.

    Never raises for what the program under test does.
    """
    gc.collect()  # the run before is garbage by now, and during a run nothing is collected
    scenario, result = SCENARIOS[name], Result()
    setup = replace(setup, nodes=pool(scenario.nodes), behaviour=PODS)
    number = 0 if seed is None else seed
    try:
        with Simulation(seed) as simulation:
            simulation.do(_run(setup, scenario, number, faults, result, rest_s))
            result.seconds = simulation.loop.time()
    except InvariantViolated as error:
        result.violation = error.violation
    except (TimeoutError, RequestRefused, SimulationError) as error:
        kind = "Liveness" if isinstance(error, TimeoutError) else type(error).__name__
        result.violation = result.violation or Violation(kind, str(error))
    return result


async def _run(setup: Setup, scenario: Scenario, seed: int, faults: Sequence[Fault], result: Result, rest_s: float) -> None:
    cluster = Cluster(setup, seed, faults)
    result.log = cluster.log
    async with cluster:
        try:
            await scenario.act(cluster, Random(f"{seed}/user"))  # noqa: S311 - reproducible
            cluster.desk.end()
            await _rest(cluster, rest_s)
        finally:
            result.writes = dict(cluster.writes)
        cluster.check()
        if len(cluster.pods()) != scenario.pods:
            raise TimeoutError(f"{len(cluster.pods())} pods at the end instead of {scenario.pods}")
        managed = [o for kind in MANAGED for o in await cluster.listed(*kind)]
        if shared := shared_fields(managed):
            raise InvariantViolated(Violation("SingleWriter", "; ".join(shared), cluster.clock.monotonic()))
        result.state = normalised(cluster)


async def _rest(cluster: Cluster, rest_s: float) -> None:
    """The end of a run: writes stop, and no more come (L1)."""
    await cluster.until(lambda: cluster.ongoing == 0, "a fault goes on", SETTLE_S)
    waited, last = 0.0, -1
    while (now := cluster.inspector.writes) != last:
        if waited > SETTLE_S:
            raise TimeoutError(f"writes go on, the last one is {cluster.inspector.last_write}")
        last = now
        waited += QUIET_S
        await cluster.sleep(QUIET_S)
    await cluster.sleep(rest_s)
    if cluster.inspector.writes != last:
        count = cluster.inspector.writes - last
        raise TimeoutError(f"{count} writes at rest, the last one is {cluster.inspector.last_write}")


def shrunk(faults: Sequence[Fault], fails: Callable[[Sequence[Fault]], bool]) -> list[Fault]:
    """A shorter list of faults that fails too (delta debugging). `fails` is asked at most MAX_TRIES times."""
    best, parts, tries = list(faults), 2, 0
    while best and tries < MAX_TRIES:
        size = max(1, len(best) // parts)
        for start in range(0, len(best), size):
            rest = best[:start] + best[start + size :]
            tries += 1
            if fails(rest):
                best, parts = rest, max(2, parts - 1)
                break
            if tries >= MAX_TRIES:
                return best
        else:
            if size == 1:
                return best
            parts = min(len(best), parts * 2)
    return best
