"""One of our processes in a simulated cluster. Its program is the real one; only what is around it is simulated."""

import asyncio
from collections.abc import Callable
from contextvars import copy_context
from dataclasses import dataclass
from random import Random
from typing import TypeVar, TypeVarTuple, Unpack

import anyio

from api.operatorconfig import OperatorConfiguration
from api.plan import Clock, Key
from controllers.runtime.assembly import Candidacy, Runtime, World, runtime
from controllers.runtime.identity import Credentials, FileSource, Trust
from sim.cluster.network import Network
from sim.cluster.wire import SimWire
from sim.loop.run import running
from sim.loop.tasks import PROCESS

__all__ = ("ProcessKind", "Program", "SimProcess", "inline")

T = TypeVar("T")
Ts = TypeVarTuple("Ts")

Program = Callable[[Runtime], None]
"""Adds the controllers of a command to a runtime that does not run yet."""


PLANNING_S = 0.005
"""What a plan takes on an ordinary machine."""


async def inline(function: Callable[[Unpack[Ts]], T], /, *args: *Ts) -> T:
    """An Offload that computes here, and takes as long as elsewhere."""
    result = function(*args)
    await anyio.sleep(PLANNING_S)
    return result


@dataclass(frozen=True, slots=True)
class ProcessKind:
    """A command and how it is configured. `lease`: that its processes compete for."""

    component: str
    program: Program
    config: OperatorConfiguration
    lease: Key


class SimProcess:
    """`name` is component-number, e.g. controllers-0. Each start is a new life with caches, queue and lease holder of its own.

    `exits`: exit codes of lives that ended by themselves; `ended` is told of them.
    """

    def __init__(
        self, kind: ProcessKind, number: int, network: Network, clock: Clock, seed: int, ended: Callable[["SimProcess", int], None]
    ) -> None:
        self.kind = kind
        self.name = f"{kind.component}-{number}"
        self.lease = kind.lease
        self.life = 0
        self.exits: list[int] = []
        self.runtime: Runtime | None = None
        self._network = network
        self._clock = clock
        self._seed = seed
        self._ended = ended
        self._wire: SimWire | None = None
        self._task: asyncio.Task[None] | None = None

    @property
    def is_running(self) -> bool:
        return self._task is not None and not self._task.done()

    @property
    def holder(self) -> str:
        """As which the present life competes for the lease."""
        return f"{self.name}_{self.life}"

    def start(self) -> None:
        """Begins a new life."""
        if self.is_running:
            raise RuntimeError(f"{self.name} runs already")
        self.life += 1
        context = copy_context()
        context.run(PROCESS.set, self.name)
        self._task = asyncio.get_running_loop().create_task(self._run(), name=self.name, context=context)

    async def kill(self) -> None:
        """Ends the life at once: nothing that it does from now on reaches anybody."""
        self.sever()
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
            self._task = None

    def sever(self) -> None:
        """From now on nothing reaches the process, and nothing leaves it."""
        self.thaw()
        if self._wire is not None:
            self._wire.cut()
        self._network.break_off(self.name, self.life)

    async def stop(self) -> None:
        """As by SIGTERM: waits for the orderly end."""
        if self.runtime is not None and self._task is not None:
            self.runtime.manager.stop()
            await asyncio.gather(self._task, return_exceptions=True)

    def freeze(self) -> None:
        """Nothing of the process runs until `thaw`."""
        running().freeze(self.name)

    def thaw(self) -> None:
        running().thaw(self.name)

    async def _run(self) -> None:
        rng = Random(f"{self._seed}/{self.name}/{self.life}")  # noqa: S311 - jitter and ids, no secrets
        self._wire = SimWire(self._network, self.name, self.life, f"grovekeeper-{self.kind.component}")
        credentials = Credentials("http://simulated", FileSource(), Trust())
        world = World(credentials, self._clock, rng, wire=self._wire, offload=inline)
        async with runtime(self.kind.component, self.kind.config, world, Candidacy(self.lease, self.holder)) as made:
            self.kind.program(made)
            self.runtime = made
            code = await made.manager.run()
        self.exits.append(code)
        self._ended(self, code)
