"""Everything that one process runs: informers, leader election, controllers, events, probes and metrics, from start to orderly stop.

Informers run from the start, also in followers. Workers run only in a term, once the caches that their controller watches are synced, and
then begin with every key of their root kind. When stopped: no new keys, keys in work may finish within `drain_s`, then the lease is
released, last of all.
A manager that lost the lease ends, so that nothing of the old term survives; the process may make another one.
"""

import logging
from collections.abc import Callable, Coroutine, Iterable
from dataclasses import dataclass
from random import Random
from typing import Any, Protocol, TypeVar, cast

import anyio

from api.kinds import Kind
from api.plan import Clock, Index, Key, Object
from controllers.runtime.apply import Caller, Executor
from controllers.runtime.controller import Controller, ControllerSpec, ReconcileLoop, Watch, enqueue_all
from controllers.runtime.events import EventRecorder
from controllers.runtime.expectations import Expectations
from controllers.runtime.health import HealthServer
from controllers.runtime.informer import Informer
from controllers.runtime.leader import LeaderElector, LeadershipLost
from controllers.runtime.metrics import Metrics
from controllers.runtime.observability import log_context
from controllers.runtime.reflector import Told, Unreadable
from controllers.runtime.transport import Transport
from controllers.runtime.troubles import Troubles
from controllers.runtime.view import Caches
from controllers.runtime.workqueue import ECHO, WorkQueue

__all__ = ("EXIT_CRASHED", "EXIT_LOST", "EXIT_STOPPED", "CachesByKind", "InformerFactory", "Listen", "Manager", "informer_factory")

EXIT_STOPPED = 0
EXIT_CRASHED = 1
EXIT_LOST = 3
_LAST_EVENTS_S = 2.0
_WAITING_REPORT_S = (30.0, 1800.0)

_LOG = logging.getLogger(__name__)
T = TypeVar("T", bound=Object)


class InformerFactory(Protocol):
    """Makes an informer that does not run yet."""

    def __call__(
        self, model: type[T], namespace: str, label_selector: str, field_selector: str, indexes: tuple[Index, ...], /
    ) -> Informer[T]: ...


def informer_factory(
    transport: Transport, metrics: Metrics, rng: Random, unreadable: Unreadable | None = None, told: Told | None = None
) -> InformerFactory:
    """Informers on an API server. `unreadable`: told of objects that their model refuses. `told`: of resources that cannot be read."""

    def make(model: type[T], namespace: str, label_selector: str, field_selector: str, indexes: tuple[Index, ...], /) -> Informer[T]:
        return Informer(
            transport,
            model,
            namespace,
            label_selector,
            field_selector,
            indexes,
            metrics=metrics,
            rng=rng,
            unreadable=unreadable,
            told=told,
        )

    return make


class CachesByKind:
    """The CacheState of expectations over the informers of a process."""

    def __init__(self, caches: Caches) -> None:
        self._caches = caches

    def seen_rv(self, kind: Kind) -> int | None:
        informer = self._informer(kind)
        return informer.store.seen_rv if informer is not None else None

    def find(self, kind: Kind, key: Key) -> Object | None:
        informer = self._informer(kind)
        return informer.store.get(key) if informer is not None else None

    async def live_get(self, kind: Kind, key: Key) -> Object | None:
        informer = self._informer(kind)
        return await informer.live_get(key) if informer is not None else None

    def _informer(self, kind: Kind) -> Informer[Any] | None:
        return next((i for i in self._caches.informers if kind == i.model.KIND), None)


@dataclass(frozen=True, slots=True)
class Listen:
    """Where probes and metrics are served."""

    host: str = "127.0.0.1"
    port: int = 8080


@dataclass(frozen=True, slots=True)
class _Member:
    """A controller of this manager, what it watches, the keys that it begins a term with, and the delay of echoes in seconds."""

    controller: Controller
    watches: tuple[Watch[Any], ...]
    first_keys: Callable[[], Iterable[Key]]
    echo_delay_s: float = 0.0


class Manager:
    """See the module. Controllers are added before `run`. `transport` writes, so it has the fence; `elector` None runs without election.

    `troubles`: what informers and elector tell of.
    """

    def __init__(
        self,
        transport: Caller,
        make_informer: InformerFactory,
        recorder: EventRecorder,
        clock: Clock,
        rng: Random,
        metrics: Metrics,
        *,
        elector: LeaderElector | None = None,
        listen: Listen | None = None,
        troubles: Troubles | None = None,
        drain_s: float = 20.0,
    ) -> None:
        self.caches = Caches()
        self.reason = ""
        """After `run`: why the process ended, if not in order."""
        self._transport = transport
        self._make_informer = make_informer
        self._recorder = recorder
        self._clock = clock
        self._rng = rng
        self._metrics = metrics
        self._elector = elector
        self._listen = listen
        self._troubles = troubles or Troubles("", clock)
        self._drain_s = drain_s
        self._watches: dict[type[Any], Watch[Any]] = {}
        self._members: list[_Member] = []
        self._tasks: list[Callable[[], Coroutine[Any, Any, None]]] = []
        self._term_hooks: list[Callable[[], None]] = []
        self._stop = anyio.Event()
        self._running: anyio.CancelScope | None = None
        self._recording: anyio.CancelScope | None = None
        self._working: set[Controller] = set()
        self._waits: list[anyio.CancelScope] = []

    def add(self, spec: ControllerSpec[Any]) -> Controller:
        """Adds a controller. Raises ValueError when its root is not watched, or a model is watched with other selectors already."""
        if all(watch.model is not spec.root for watch in spec.watches):
            raise ValueError(f"{spec.name} does not watch its root {spec.root.__name__}")
        expectations = Expectations(CachesByKind(self.caches), self._clock, self._metrics)
        executor = Executor(self._transport, spec.field_manager, expectations, self._recorder, self._clock, self._metrics)
        loop = ReconcileLoop(spec, self.caches, expectations, executor, self._clock)
        queue: WorkQueue[Key] = WorkQueue(self._clock, self._rng, metrics=self._metrics.queue(spec.name))
        controller = Controller(spec.name, queue, loop, clock=self._clock, rng=self._rng, workers=spec.workers, metrics=self._metrics)
        self.add_controller(controller, spec.watches, lambda: map(Key.of, self.caches.list(spec.root)), spec.echo_delay_s)
        return controller

    def add_controller(
        self, controller: Controller, watches: tuple[Watch[Any], ...], first_keys: Callable[[], Iterable[Key]], echo_delay_s: float = 0.0
    ) -> None:
        """Adds a controller that was made elsewhere. `first_keys`: what it begins a term with, asked when the caches are synced.
        `echo_delay_s`: as in ControllerSpec. A controller reads only what it watches: nothing else has to be synced when it begins.

        Raises ValueError when a model is watched with other selectors already.
        """
        for watch in watches:
            self.cache(watch)
        self._members.append(_Member(controller, watches, first_keys, echo_delay_s))

    def cache(self, watch: Watch[Any]) -> None:
        """Caches a model; indexes of several watches of it are merged. Its `keys` are used only for watches of controllers.

        What no controller watches, all of them wait for.
        """
        known = self._watches.get(watch.model, watch)
        if _scope(known) != _scope(watch):
            raise ValueError(f"{watch.model.__name__} is already cached with another namespace or selector")
        indexes = {index.name: index for index in (*known.indexes, *watch.indexes)}
        self._watches[watch.model] = Watch(watch.model, watch.keys, tuple(indexes.values()), *_scope(watch))

    def background(self, task: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Adds something that runs as long as the process, in followers too. Its failure ends the process."""
        self._tasks.append(task)

    def on_term(self, hook: Callable[[], None]) -> None:
        """Adds something that is called when a term begins: from then on writes are allowed."""
        self._term_hooks.append(hook)

    def stop(self) -> None:
        """Begins an orderly stop. Asked for once more, ends at once, still releasing the lease."""
        if self._stop.is_set() and self._running is not None:
            self._running.cancel()
        self._stop.set()

    @property
    def epoch(self) -> int:
        """Number of the latest term; 0 without one."""
        return self._elector.epoch if self._elector is not None else 0

    @property
    def unsynced(self) -> list[str]:
        """Resources whose caches are not complete yet."""
        return [informer.model.KIND.resource for informer in self.caches.informers if not informer.has_synced]

    @property
    def unready(self) -> list[str]:
        """Why this process could not do its work now, line by line; nothing when it could, as leader or follower."""
        return [*(f"not synced: {resource}" for resource in self.unsynced), *self._troubles.lasting()]

    async def run(self) -> int:
        """Blocks until everything has to end and returns an exit code; why is logged."""
        code = EXIT_STOPPED
        try:
            await self._run()
        except* LeadershipLost as group:
            code = EXIT_LOST
            self.reason = "; ".join(("leadership lost", *(str(e) for e in _leaves(group)), *self._troubles.lasting()))
            _LOG.error("leadership lost", extra={"reason": self.reason})
        except* Exception as group:
            code = EXIT_CRASHED
            self.reason = "; ".join(f"{type(e).__name__}: {e}" for e in _leaves(group))
            _LOG.critical("crashed", exc_info=group, extra={"reason": self.reason})
        return code

    async def _run(self) -> None:
        self._build()
        async with anyio.create_task_group() as tasks:
            self._running = tasks.cancel_scope
            for task in (
                self._record,
                self._report_waiting,
                self._troubles.run,
                *(i.run for i in self.caches.informers),
                *self._tasks,
            ):
                tasks.start_soon(task)
            if self._listen is None:
                await self._elect()
            else:
                async with HealthServer(self._metrics, lambda: self.unready, host=self._listen.host, port=self._listen.port) as server:
                    _LOG.info("serving", extra={"host": self._listen.host, "port": server.port})
                    await self._elect()
            tasks.cancel_scope.cancel()

    def _build(self) -> None:
        for watch in self._watches.values():
            self.caches.add(self._make_informer(watch.model, watch.namespace, watch.label_selector, watch.field_selector, watch.indexes))
        for member in self._members:
            for watch in member.watches:
                self.caches.informer(watch.model).store.subscribe(self._handler(watch, member))

    def _handler(self, watch: Watch[Any], member: _Member) -> Callable[[Any, Any], None]:
        queue = member.controller.queue

        def handle(old: Any, new: Any) -> None:
            # Whoever does not work yet needs no keys: it begins with all of them.
            if member.controller in self._working:
                for key, priority in watch.keys(old, new):
                    if priority <= ECHO and member.echo_delay_s > 0.0:
                        queue.add_after(key, member.echo_delay_s, priority)
                    else:
                        queue.add(key, priority)

        return handle

    async def _elect(self) -> None:
        if self._elector is None:
            await self._lead()
        else:
            await self._elector.run(self._lead, self._stop)

    async def _lead(self) -> None:
        """One term of all controllers; returns after an orderly stop."""
        began = anyio.current_time()
        with log_context(epoch=self.epoch):
            for hook in self._term_hooks:
                hook()
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(self._stop_work, tasks.cancel_scope)
                async with anyio.create_task_group() as workers:
                    for member in self._members:
                        workers.start_soon(self._work, member, began)
                    if not self._members:
                        await self._stop.wait()
                tasks.cancel_scope.cancel()
            with anyio.move_on_after(_LAST_EVENTS_S):
                await self._recorder.flush()
            if self._recording is not None:
                self._recording.cancel()  # what takes longer is given up, before somebody else's term

    async def _record(self) -> None:
        with anyio.CancelScope() as self._recording:
            await self._recorder.run()

    async def _work(self, member: _Member, began: float) -> None:
        """One term of a controller, begun at `began` (loop time): its caches, all its keys, its workers.

        What a follower has cached may be older than what the last leader wrote, so a new leader lists everything once more.
        """
        with anyio.CancelScope() as waiting:
            self._waits.append(waiting)
            for informer in self._awaited(member):
                await informer.wait_synced()
                if self._elector is not None:
                    await informer.renew(began)
        if self._stop.is_set():
            return
        self._working.add(member.controller)
        _LOG.info("working", extra={"controller": member.controller.name})
        enqueue_all(member.controller.queue, member.first_keys())
        await member.controller.run()

    def _awaited(self, member: _Member) -> list[Informer[Any]]:
        """What has to be synced before a controller works: what it watches, and what is cached for nobody in particular."""
        own = {watch.model for watch in member.watches}
        others = {watch.model for other in self._members for watch in other.watches} - own
        return [informer for informer in self.caches.informers if informer.model not in others]

    async def _report_waiting(self) -> None:
        """Says at growing intervals which caches are waited for and how their last try ended, until none is."""
        pause_s, longest_s = _WAITING_REPORT_S
        while self.unsynced:
            await anyio.sleep(pause_s)
            pause_s = min(2 * pause_s, longest_s)
            waiting = {i.model.KIND.resource: i.trouble for i in self.caches.informers if not i.has_synced}
            if waiting:
                _LOG.warning("waiting for caches", extra={"resources": waiting})

    async def _stop_work(self, scope: anyio.CancelScope) -> None:
        await self._stop.wait()
        for member in self._members:
            member.controller.queue.shut_down()
        for waiting in self._waits:
            waiting.cancel()
        if self._working:
            await anyio.sleep(self._drain_s)
            _LOG.warning("not drained in time", extra={"seconds": self._drain_s})
        scope.cancel()


def _scope(watch: Watch[Any]) -> tuple[str, str, str]:
    return watch.namespace, watch.label_selector, watch.field_selector


def _leaves(error: BaseException) -> Iterable[BaseException]:
    if isinstance(error, BaseExceptionGroup):
        for member in cast("tuple[BaseException, ...]", error.exceptions):
            yield from _leaves(member)
    else:
        yield error
