"""One pod on its node: from the pod, a Behaviour and the time to what runs. Pure; the shell in kubelet.py moves it and writes the result.

Init containers go one after another, sidecars until they run, grove-initc until the parents are ready; then all app containers at once.
"""

from dataclasses import dataclass, field
from typing import Any, Literal

from sim.apiserver.objects import Object
from sim.kubelet.behaviour import Behaviour, BehaviourError, behaviour_of
from sim.kubelet.containers import NEVER, Container, Draws, Role, State, begin, finish, run_until

__all__ = ("WAITER", "Phase", "PodRun", "Refusal", "advance", "end", "is_over", "next_at", "phase_of", "start", "stop", "waits")

WAITER = "grove-initc"
"""Name of the init container whose program is controllers/initc."""

Phase = Literal["Pending", "Running", "Succeeded", "Failed"]
RESTARTS: dict[str, Literal["Always", "OnFailure", "Never"]] = {"Always": "Always", "OnFailure": "OnFailure", "Never": "Never"}


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why the kubelet does not run a pod: status.reason and message."""

    reason: str
    message: str


@dataclass(slots=True)
class PodRun:
    """`conditions` and `sent`: what status.py wrote last. `mistake`: an annotation that cannot be used; such a pod never starts."""

    uid: str
    node: str
    ip: str
    host_ip: str
    started_at: float
    draws: Draws
    init: list[Container]
    main: list[Container]
    refusal: Refusal | None = None
    mistake: str = ""
    initialized_at: float | None = None
    stopping_at: float = NEVER
    conditions: dict[str, Object] = field(default_factory=dict[str, Object])
    sent: Object = field(default_factory=dict[str, Any])


def start(pod: Object, defaults: Behaviour, seed: int, *, ip: str, host_ip: str, now: float) -> PodRun:
    """The run of a pod that its node has admitted."""
    metadata, spec = pod["metadata"], pod["spec"]
    mistake = ""
    try:
        behaviour = behaviour_of(metadata.get("annotations"), defaults)
    except BehaviourError as error:
        behaviour, mistake = defaults, str(error)
    policy = RESTARTS.get(spec.get("restartPolicy", ""), "Always")
    init = [_init_container(c, policy) for c in spec.get("initContainers") or ()]
    main = [Container(c["name"], c.get("image", ""), Role.MAIN, policy) for c in spec["containers"]]
    draws = Draws(behaviour, f"{seed}/{metadata['uid']}")
    return PodRun(metadata["uid"], spec["nodeName"], ip, host_ip, now, draws, init, main, mistake=mistake)


def _init_container(container: Object, policy: Literal["Always", "OnFailure", "Never"]) -> Container:
    name, image = container["name"], container.get("image", "")
    if container.get("restartPolicy") == "Always":
        return Container(name, image, Role.SIDECAR, "Always")
    role = Role.WAITER if name == WAITER else Role.INIT
    return Container(name, image, role, policy)


def waits(run: PodRun) -> bool:
    """Whether the waiter is running, so that its parents matter."""
    return any(c.role is Role.WAITER and c.state is State.RUNNING for c in run.init)


def advance(run: PodRun, now: float, *, is_released: bool) -> None:
    """Everything that happens up to now. `is_released`: the parents are ready, so a waiter ends."""
    if run.refusal is not None or run.mistake or is_over(run):
        return
    at = _advance_init(run, now, is_released)
    if at is None:
        return
    if run.initialized_at is None:
        run.initialized_at = at
    for container in run.main:
        if container.state is State.WAITING:
            begin(container, at, run.draws)
        run_until(container, now, run.draws)
    if all(c.state is State.ENDED for c in run.main):
        ended_at = max(c.since for c in run.main)
        for container in run.init:
            if container.state is not State.ENDED:
                finish(container, ended_at, 0)


def _advance_init(run: PodRun, now: float, is_released: bool) -> float | None:
    """When the last init container was through; None while one is not."""
    at = run.started_at
    for container in run.init:
        if container.state is State.WAITING:
            begin(container, at, run.draws)
        run_until(container, now, run.draws)
        if container.role is Role.WAITER and is_released and container.state is State.RUNNING:
            finish(container, now, 0)
        if container.role is Role.SIDECAR:
            if container.first_started_at > now:
                return None
            at = max(at, container.first_started_at)
        elif container.is_ready(now):
            at = max(at, container.since)
        else:
            return None
    return at


def next_at(run: PodRun, now: float) -> float:
    """When the run changes by itself; NEVER if it does not."""
    found = NEVER
    for container in (*run.init, *run.main):
        for moment in (container.due, container.ready_at if container.state is State.RUNNING else NEVER):
            if now < moment < found:
                found = moment
    return found


def phase_of(run: PodRun) -> Phase:
    """The phase as the kubelet computes it from containers and restart policy."""
    if run.refusal is not None or any(_has_failed(c) for c in run.init):
        return "Failed"
    if run.initialized_at is None:
        return "Pending"
    if all(c.state is State.ENDED for c in run.main):
        return "Succeeded" if all(c.last is not None and c.last.code == 0 for c in run.main) else "Failed"
    if any(c.first_started_at == NEVER for c in run.main):
        return "Pending"
    return "Running"


def _has_failed(container: Container) -> bool:
    """An init container that ended badly and is not restarted ends its pod."""
    return container.role is not Role.SIDECAR and container.state is State.ENDED and not container.is_ready(NEVER)


def is_over(run: PodRun) -> bool:
    """Whether nothing runs any more and nothing will."""
    return phase_of(run) in ("Succeeded", "Failed")


def stop(run: PodRun, now: float, grace_left_s: float) -> float:
    """The pod is to end: when its containers have stopped, at the latest when the grace period is over."""
    if run.stopping_at == NEVER:
        runs = any(c.state is State.RUNNING for c in (*run.init, *run.main))
        run.stopping_at = now + (run.draws.draw(run.draws.behaviour.stop) if runs else 0.0)
    run.stopping_at = min(run.stopping_at, now + max(0.0, grace_left_s))
    return run.stopping_at


def end(run: PodRun, at: float) -> None:
    """All containers are stopped, those that ran with the exit code of SIGTERM."""
    for container in (*run.init, *run.main):
        if container.state is not State.ENDED:
            finish(container, at, 143)
