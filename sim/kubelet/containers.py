"""One container as a state machine: what happens when the time of a state is up, as a table. Times are seconds of the loop's clock."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from random import Random
from typing import Literal

from sim.kubelet.behaviour import Behaviour
from sim.kubelet.distributions import Delay

__all__ = ("NEVER", "Container", "Draws", "Exit", "Role", "State", "begin", "finish", "kill", "run_until")

NEVER = float("inf")
FIRST_BACKOFF_S, LONGEST_BACKOFF_S = 10.0, 300.0
FORGIVEN_AFTER_S = 2 * LONGEST_BACKOFF_S
"""A container that ran for so long starts again without a pause (kubelet behaviour)."""
PULL_ERROR_SHOWN_S = 1.0
"""ErrImagePull is shown for so long, then ImagePullBackOff."""


class State(Enum):
    """Where a container is. WAITING: its turn has not come."""

    WAITING = "waiting"
    PULLING = "pulling"
    PULL_FAILED = "pull failed"
    PULL_BACKOFF = "pull backoff"
    STARTING = "starting"
    RUNNING = "running"
    CRASH_BACKOFF = "crash backoff"
    ENDED = "ended"


class Role(Enum):
    """INIT ends before the next begins, SIDECAR is an init container that stays, WAITER is grove-initc, MAIN an app container."""

    INIT = "init"
    SIDECAR = "sidecar"
    WAITER = "waiter"
    MAIN = "main"


@dataclass(frozen=True, slots=True)
class Exit:
    """One run that is over."""

    code: int
    started_at: float
    finished_at: float
    restart: int


@dataclass(slots=True)
class Container:
    """`since`: when the state was entered; `due`: when its time is up; `ready_at`: when a running one becomes ready; `started_at`: of the
    present run. `restart`: Always, OnFailure or Never. `killed_with`: exit code of a run that somebody else ends."""

    name: str
    image: str
    role: Role
    restart: Literal["Always", "OnFailure", "Never"]
    state: State = State.WAITING
    since: float = 0.0
    due: float = NEVER
    ready_at: float = NEVER
    started_at: float = NEVER
    first_started_at: float = NEVER
    restarts: int = 0
    backoff_s: float = 0.0
    failed_pulls: int = 0
    killed_with: int | None = None
    last: Exit | None = None

    def is_ready(self, now: float) -> bool:
        """Init containers are ready when they have done what they are for."""
        if self.role in (Role.INIT, Role.WAITER):
            return self.state is State.ENDED and self.last is not None and self.last.code == 0
        return self.state is State.RUNNING and self.ready_at <= now


@dataclass(slots=True)
class Draws:
    """The behaviour of a pod and its own source of chance, made when first needed: a pod's draws do not depend on other pods."""

    behaviour: Behaviour
    seed: str
    _rng: Random | None = field(default=None, init=False)

    def draw(self, delay: Delay) -> float:
        if not delay.is_random:
            return delay.parameters[0]
        if self._rng is None:
            self._rng = Random(self.seed)  # noqa: S311 - simulated delays
        return delay.draw(self._rng)


def begin(container: Container, at: float, draws: Draws) -> None:
    """Its turn has come."""
    _enter(container, State.PULLING, at, draws.draw(draws.behaviour.pull))


def run_until(container: Container, now: float, draws: Draws) -> None:
    """Everything that happens up to now, each at its own time."""
    while container.due <= now:
        AT_THE_END_OF[container.state](container, container.due, draws)


def kill(container: Container, at: float, code: int) -> None:
    """The present run ends at that time with an exit code, as if the program had died."""
    if container.state is State.RUNNING:
        container.due, container.killed_with = at, code


def finish(container: Container, at: float, code: int) -> None:
    """The present run ends for good: the waiter's, or any container's when its pod ends."""
    if container.state is State.RUNNING:
        container.last = Exit(code, container.started_at, at, container.restarts)
    _enter(container, State.ENDED, at, NEVER)


def _enter(container: Container, state: State, at: float, for_s: float) -> None:
    container.state, container.since, container.due = state, at, at + for_s


def _pulled(container: Container, at: float, draws: Draws) -> None:
    wanted = draws.behaviour
    if wanted.is_about(container.name, container.role is not Role.MAIN) and container.failed_pulls < wanted.pull_errors:
        container.failed_pulls += 1
        _enter(container, State.PULL_FAILED, at, PULL_ERROR_SHOWN_S)
    else:
        _enter(container, State.STARTING, at, draws.draw(wanted.start))


def _pull_failed(container: Container, at: float, draws: Draws) -> None:
    pause_s = min(FIRST_BACKOFF_S * 2 ** min(container.failed_pulls - 1, 10), LONGEST_BACKOFF_S)
    _enter(container, State.PULL_BACKOFF, at, pause_s - PULL_ERROR_SHOWN_S)


def _started(container: Container, at: float, draws: Draws) -> None:
    _enter(container, State.RUNNING, at, _run_time(container, draws))
    container.started_at = at
    container.first_started_at = min(container.first_started_at, at)
    container.ready_at = at + draws.draw(draws.behaviour.ready)


def _run_time(container: Container, draws: Draws) -> float:
    wanted = draws.behaviour
    if container.role is Role.WAITER:
        return NEVER
    if wanted.is_about(container.name, container.role is not Role.MAIN) and wanted.run_time is not None:
        stays_up = wanted.crashes > 0 and container.restarts >= wanted.crashes
        if not stays_up:
            return draws.draw(wanted.run_time)
    return draws.draw(wanted.init) if container.role is Role.INIT else NEVER


def _exited(container: Container, at: float, draws: Draws) -> None:
    code = _exit_code(container, draws.behaviour) if container.killed_with is None else container.killed_with
    container.killed_with = None
    container.last = Exit(code, container.started_at, at, container.restarts)
    container.ready_at = NEVER
    is_over = container.restart == "Never" or (code == 0 and (container.restart == "OnFailure" or container.role is Role.INIT))
    if is_over:
        _enter(container, State.ENDED, at, NEVER)
        return
    pause_s = 0.0 if at - container.started_at >= FORGIVEN_AFTER_S else container.backoff_s
    container.backoff_s = min(max(FIRST_BACKOFF_S, 2 * pause_s), LONGEST_BACKOFF_S)
    if pause_s:
        _enter(container, State.CRASH_BACKOFF, at, pause_s)
    else:
        _restarted(container, at, draws)


def _exit_code(container: Container, wanted: Behaviour) -> int:
    if not wanted.is_about(container.name, container.role is not Role.MAIN):
        return 0
    crashes = container.restarts < wanted.crashes
    if wanted.crashes and not crashes:
        return 0
    return wanted.exit_code if wanted.exit_code is not None else int(crashes)


def _restarted(container: Container, at: float, draws: Draws) -> None:
    container.restarts += 1
    _enter(container, State.STARTING, at, draws.draw(draws.behaviour.start))


AT_THE_END_OF: Mapping[State, Callable[[Container, float, Draws], None]] = {
    State.PULLING: _pulled,
    State.PULL_FAILED: _pull_failed,
    State.PULL_BACKOFF: begin,
    State.STARTING: _started,
    State.RUNNING: _exited,
    State.CRASH_BACKOFF: _restarted,
}
"""What follows a state whose time is up. WAITING and ENDED have no time."""
