"""Puts a process together: transport, election, events, metrics, manager. The same for commands, which give it the real world, and for
simulations, which give it a simulated one.
"""

import contextlib
from collections.abc import AsyncGenerator, Awaitable, Callable
from dataclasses import dataclass, field
from random import Random
from typing import Protocol, TypeVar, TypeVarTuple, Unpack

import anyio.to_thread

from api.operatorconfig import WRITE_BUDGET, OperatorConfiguration
from api.plan import Clock, Key, Ref
from api.reasons import Reason
from controllers.runtime.apply import Recorder
from controllers.runtime.events import EventRecorder
from controllers.runtime.fence import LeaseFence, OpenFence
from controllers.runtime.identity import Credentials
from controllers.runtime.leader import LeaderElector, Timing
from controllers.runtime.manager import Listen, Manager, informer_factory
from controllers.runtime.metrics import Metrics
from controllers.runtime.transport import Transport
from controllers.runtime.troubles import Troubles
from controllers.runtime.wire import Wire

__all__ = ("Candidacy", "Offload", "Runtime", "Unreadable", "World", "in_thread", "runtime")

T = TypeVar("T")
Ts = TypeVarTuple("Ts")


class Offload(Protocol):
    """Runs a function that computes for long without holding up the rest of the process."""

    def __call__(self, function: Callable[[Unpack[Ts]], T], /, *args: *Ts) -> Awaitable[T]: ...


def in_thread(function: Callable[[Unpack[Ts]], T], /, *args: *Ts) -> Awaitable[T]:
    """In a thread of this process. Cancelling waits for its end."""
    return anyio.to_thread.run_sync(function, *args)


@dataclass(frozen=True, slots=True)
class World:
    """What a process finds around itself. `wire`: None for HTTP to the credentials' server. `metrics`: of all its lives."""

    credentials: Credentials
    clock: Clock
    rng: Random
    wire: Wire | None = None
    offload: Offload = in_thread
    listen: Listen | None = None
    metrics: Metrics = field(default_factory=Metrics)


@dataclass(frozen=True, slots=True)
class Candidacy:
    """The lease that a process competes for, and the name under which it does. `epoch`: the latest term that it knows of."""

    lease: Key
    holder: str
    epoch: int = 0


@dataclass(frozen=True, slots=True)
class Runtime:
    """What a command builds its controllers on."""

    manager: Manager
    transport: Transport
    recorder: EventRecorder
    metrics: Metrics
    clock: Clock
    rng: Random
    config: OperatorConfiguration
    offload: Offload


@contextlib.asynccontextmanager
async def runtime(component: str, config: OperatorConfiguration, world: World, candidacy: Candidacy | None) -> AsyncGenerator[Runtime]:
    """A process named grovekeeper-`component` that does not run yet; without `candidacy` it runs without election."""
    clock, rng, metrics = world.clock, world.rng, world.metrics
    timing, name = _timing(config), f"grovekeeper-{component}"
    fence = OpenFence()
    if candidacy is not None:
        fence = LeaseFence(clock, lease_duration_s=timing.duration_s, request_budget_s=WRITE_BUDGET.total_seconds())
    client, troubles = metrics.transport(world.credentials.server), Troubles(world.credentials.server, clock)
    async with contextlib.AsyncExitStack() as stack:
        transport = await stack.enter_async_context(
            Transport(world.credentials, fence=fence, metrics=client, user_agent=name, refused=troubles.refused, wire=world.wire)
        )
        elector = None
        if candidacy is not None and isinstance(fence, LeaseFence):
            elector = LeaderElector(
                await stack.enter_async_context(transport.sibling()),
                fence,
                clock,
                rng,
                namespace=candidacy.lease.namespace,
                name=candidacy.lease.name,
                holder=candidacy.holder,
                epoch=candidacy.epoch,
                timing=timing,
                metrics=metrics,
                told=troubles.tell,
            )
        recorder = EventRecorder(transport, name, clock, metrics)
        unreadable = Unreadable(recorder)
        informers = informer_factory(transport, metrics, rng, unreadable.tell, troubles.tell)
        manager = Manager(
            transport,
            informers,
            recorder,
            clock,
            rng,
            metrics,
            elector=elector,
            listen=world.listen,
            troubles=troubles,
        )
        manager.on_term(unreadable.begin)
        yield Runtime(manager, transport, recorder, metrics, clock, rng, config, world.offload)


class Unreadable:
    """An object that was stored before validation existed is left alone, and its owner is told: when a term begins, because followers
    write no events, and the first lists come before that."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._untold: dict[Ref, str] | None = {}

    def tell(self, ref: Ref, why: str) -> None:
        if self._untold is None:
            message = f"Left alone, because it cannot be read: {why}. Correct or delete it."
            self._recorder.emit(ref, Reason.INVALID_SPEC, message, "Warning")
        else:
            self._untold[ref] = why

    def begin(self) -> None:
        untold, self._untold = self._untold or {}, None
        for ref, why in untold.items():
            self.tell(ref, why)


def _timing(config: OperatorConfiguration) -> Timing:
    election = config.leader_election
    return Timing(election.lease_duration.total_seconds(), election.renew_deadline.total_seconds(), election.retry_period.total_seconds())
