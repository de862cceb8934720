"""The status of a pod as a kubelet writes it, and the smallest patch that brings the API server's to it."""

from collections.abc import Callable, Iterable, Sequence

from sim.apiserver.objects import Object, maps
from sim.kubelet.containers import NEVER, Container, Exit, Role, State
from sim.kubelet.lifecycle import PodRun, phase_of

__all__ = ("patch_of", "status_of")

Stamp = Callable[[float], str]
"""From seconds of the loop's clock to RFC 3339."""

READ_BY_EVERY_KUBELET = ("PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady")


def status_of(run: PodRun, pod: Object, now: float, stamp: Stamp) -> Object:
    """The whole status without what others write (PodScheduled, qosClass). Keeps run.conditions up to date."""
    phase = phase_of(run)
    if run.refusal is not None:
        return {
            "phase": phase,
            "reason": run.refusal.reason,
            "message": run.refusal.message,
            "startTime": stamp(run.started_at),
        }
    out: Object = {"phase": phase, "conditions": _conditions(run, pod, phase, now, stamp)}
    out["hostIP"], out["hostIPs"] = run.host_ip, [{"ip": run.host_ip}]
    if run.ip:
        out["podIP"], out["podIPs"] = run.ip, [{"ip": run.ip}]
    out["startTime"] = stamp(run.started_at)
    if run.init:
        out["initContainerStatuses"] = [_container(run, pod, c, now, stamp) for c in run.init]
    out["containerStatuses"] = [_container(run, pod, c, now, stamp) for c in run.main]
    generation = pod["metadata"].get("generation")
    if generation:
        out["observedGeneration"] = generation
    return out


def patch_of(run: PodRun, status: Object) -> Object:
    """What of the status has to be sent: fields, and conditions, that differ from what was sent before. Empty: nothing."""
    sent = run.sent
    out: Object = {k: v for k, v in status.items() if sent.get(k) != v}
    if "conditions" in out:
        known: list[Object] = sent.get("conditions") or []
        out["conditions"] = [c for c in out["conditions"] if c not in known]
    return out


def _conditions(run: PodRun, pod: Object, phase: str, now: float, stamp: Stamp) -> list[Object]:
    waiting = [c.name for c in run.init if not (c.first_started_at <= now if c.role is Role.SIDECAR else c.is_ready(now))]
    unready = [c.name for c in (*_sidecars(run), *run.main) if not c.is_ready(now)]
    if phase in ("Succeeded", "Failed"):
        reason = "PodCompleted" if phase == "Succeeded" else "PodFailed"
        initialized = _says("False", reason) if waiting and phase == "Failed" else _says("True", "PodCompleted" if not waiting else "")
        containers = ready = _says("False", reason)
    else:
        initialized = _incomplete("ContainersNotInitialized", "incomplete", waiting)
        containers = ready = _incomplete("ContainersNotReady", "unready", unready)
        if ready[0] == "True":
            ready = _gates(pod)
    has_sandbox = bool(run.ip) and phase not in ("Succeeded", "Failed")
    found = (_says("True" if has_sandbox else "False"), initialized, ready, containers)
    return [_kept(run, kind, says, now, stamp) for kind, says in zip(READ_BY_EVERY_KUBELET, found, strict=True)]


def _sidecars(run: PodRun) -> Iterable[Container]:
    return (c for c in run.init if c.role is Role.SIDECAR)


def _says(status: str, reason: str = "", message: str = "") -> tuple[str, str, str]:
    return status, reason, message


def _incomplete(reason: str, what: str, names: Sequence[str]) -> tuple[str, str, str]:
    return ("False", reason, f"containers with {what} status: [{' '.join(names)}]") if names else ("True", "", "")


def _gates(pod: Object) -> tuple[str, str, str]:
    """Ready needs the conditions that readiness gates name; others write those."""
    gates = maps(pod, "spec", "readinessGates")
    if not gates:
        return "True", "", ""
    found = {c["type"]: c["status"] for c in maps(pod, "status", "conditions")}
    missing = [
        f'corresponding condition of pod readiness gate "{g["conditionType"]}" does not exist.'
        if g["conditionType"] not in found
        else f'the status of pod readiness gate "{g["conditionType"]}" is not "True", but {found[g["conditionType"]]}'
        for g in gates
        if found.get(g["conditionType"]) != "True"
    ]
    return ("False", "ReadinessGatesNotReady", ", ".join(missing)) if missing else ("True", "", "")


def _kept(run: PodRun, kind: str, says: tuple[str, str, str], now: float, stamp: Stamp) -> Object:
    """The condition, with the time of its last transition carried on while its status stays."""
    status, reason, message = says
    before = run.conditions.get(kind)
    if before is not None and before["status"] == status:
        since = before["lastTransitionTime"]
        if before.get("reason", "") == reason and before.get("message", "") == message:
            return before
    else:
        since = stamp(now)
    out: Object = {"type": kind, "status": status, "lastTransitionTime": since}
    if reason:
        out["reason"] = reason
    if message:
        out["message"] = message
    run.conditions[kind] = out
    return out


def _container(run: PodRun, pod: Object, container: Container, now: float, stamp: Stamp) -> Object:
    runs = container.state is State.RUNNING
    image_id = f"simulated@{container.image}" if container.first_started_at != NEVER else ""
    out: Object = {"name": container.name, "image": container.image, "imageID": image_id, "restartCount": container.restarts}
    out["ready"], out["started"] = container.is_ready(now), runs
    out["state"] = _state(run, pod, container, stamp)
    shows_last = container.state is not State.ENDED and container.last is not None
    out["lastState"] = {"terminated": _exit(run, container, container.last, stamp)} if shows_last and container.last else {}
    if runs or container.last is not None:
        out["containerID"] = _id(run, container, container.restarts if runs or container.last is None else container.last.restart)
    return out


def _state(run: PodRun, pod: Object, container: Container, stamp: Stamp) -> Object:
    if run.mistake:
        return _waiting("CreateContainerConfigError", run.mistake)
    match container.state:
        case State.RUNNING:
            return {"running": {"startedAt": stamp(container.started_at)}}
        case State.ENDED if container.last is not None:
            return {"terminated": _exit(run, container, container.last, stamp)}
        case State.PULL_FAILED:
            return _waiting("ErrImagePull", f'failed to pull and unpack image "{container.image}": not found')
        case State.PULL_BACKOFF:
            return _waiting("ImagePullBackOff", f'Back-off pulling image "{container.image}": ErrImagePull: not found')
        case State.CRASH_BACKOFF:
            meta = pod["metadata"]
            place = f"{meta['name']}_{meta.get('namespace', '')}({run.uid})"
            pause_s = round(container.due - container.since)
            pause = "5m0s" if pause_s == 300 else f"{pause_s // 60}m{pause_s % 60}s" if pause_s >= 60 else f"{pause_s}s"
            return _waiting("CrashLoopBackOff", f"back-off {pause} restarting failed container={container.name} pod={place}")
        case _:
            return _waiting("PodInitializing" if run.init else "ContainerCreating")


def _waiting(reason: str, message: str = "") -> Object:
    return {"waiting": {"reason": reason, "message": message} if message else {"reason": reason}}


def _exit(run: PodRun, container: Container, last: Exit, stamp: Stamp) -> Object:
    return {
        "exitCode": last.code,
        "reason": "Completed" if last.code == 0 else "Error",
        "startedAt": stamp(last.started_at),
        "finishedAt": stamp(last.finished_at),
        "containerID": _id(run, container, last.restart),
    }


def _id(run: PodRun, container: Container, restart: int) -> str:
    return f"simulated://{run.uid}/{container.name}/{restart}"
