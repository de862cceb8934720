"""The columns of pods."""

from datetime import datetime
from typing import NamedTuple

from sim.apiserver.front.ages import age
from sim.apiserver.front.cells import AGE, NAME, NONE, column, timed
from sim.apiserver.objects import Object, dig, maps

__all__ = ("POD_COLUMNS", "completion")


class Summary(NamedTuple):
    """Of one pod: ready and all containers, the word for its state, restarts and the time of the last one."""

    ready: int
    total: int
    reason: str
    restarts: int
    restarted_at: str


def summary(pod: Object) -> Summary:
    """A later cause overrides an earlier one: phase, scheduling gates, init containers, containers, deletion."""
    status: Object = pod.get("status") or {}
    phase = status.get("phase", "")
    reason = status.get("reason") or phase
    if any(c["type"] == "PodScheduled" and c.get("reason") == "SchedulingGated" for c in maps(status, "conditions")):
        reason = "SchedulingGated"
    init = {one["name"]: one for one in maps(pod, "spec", "initContainers")}
    sidecars = {name for name, one in init.items() if one.get("restartPolicy") == "Always"}
    ready = 0
    init_reason = ""
    seen: list[Object] = []
    for at, container in enumerate(maps(status, "initContainerStatuses")):
        seen.append(container)
        if container["name"] in sidecars and container.get("started") and dig(container, "state", "terminated", "exitCode") != 0:
            ready += bool(container.get("ready"))
        elif init_reason := _init_reason(container, at, len(init)):
            break
    counted = seen
    if not init_reason or _is_true(status, "Initialized"):
        counted = [one for one in seen if one["name"] in sidecars] + maps(status, "containerStatuses")
        found, running = _container_reason(status)
        ready += running
        reason = found or init_reason or reason
        if reason == "Completed" and running:
            reason = "Running" if _is_true(status, "Ready") else "NotReady"
    else:
        reason = init_reason
    if pod["metadata"].get("deletionTimestamp"):
        if status.get("reason") == "NodeLost":
            reason = "Unknown"
        elif phase not in ("Succeeded", "Failed"):
            reason = "Terminating"
    total = len(maps(pod, "spec", "containers")) + len(sidecars)
    return Summary(ready, total, reason, sum(one.get("restartCount", 0) for one in counted), _last_restart(counted))


def completion(pod: Object) -> list[Object]:
    """Row conditions of pods that have ended."""
    phase = dig(pod, "status", "phase")
    messages = {"Succeeded": "The pod has completed successfully.", "Failed": "The pod failed."}
    if phase not in messages:
        return []
    return [{"type": "Completed", "status": "True", "reason": phase, "message": messages[phase]}]


def _init_reason(container: Object, at: int, total: int) -> str:
    """Why the pod still initializes, "" when this container has ended well."""
    state: Object = container.get("state") or {}
    if (terminated := state.get("terminated")) is not None:
        return "" if terminated.get("exitCode", 0) == 0 else f"Init:{_terminated(terminated)}"
    waiting = dig(state, "waiting", "reason")
    return f"Init:{waiting}" if waiting and waiting != "PodInitializing" else f"Init:{at}/{total}"


def _terminated(terminated: Object) -> str:
    if terminated.get("reason"):
        return terminated["reason"]
    return f"Signal:{terminated['signal']}" if terminated.get("signal") else f"ExitCode:{terminated.get('exitCode', 0)}"


def _container_reason(status: Object) -> tuple[str, int]:
    """What the first container that waits or has ended says, and how many containers run and are ready."""
    reason, running = "", 0
    for container in reversed(maps(status, "containerStatuses")):
        state: Object = container.get("state") or {}
        if waiting := dig(state, "waiting", "reason"):
            reason = waiting
        elif (terminated := state.get("terminated")) is not None:
            reason = _terminated(terminated)
        elif container.get("ready") and "running" in state:
            running += 1
    return reason, running


def _last_restart(statuses: list[Object]) -> str:
    """Times of the API are UTC to the second, so they sort as texts."""
    return max((dig(one, "lastState", "terminated", "finishedAt") or "" for one in statuses), default="")


def _is_true(status: Object, condition: str) -> bool:
    return any(c["type"] == condition and c["status"] == "True" for c in maps(status, "conditions"))


def _ready(pod: Object) -> str:
    found = summary(pod)
    return f"{found.ready}/{found.total}"


def _restarts(pod: Object, now: datetime) -> str:
    found = summary(pod)
    if found.restarts and found.restarted_at:
        return f"{found.restarts} ({age(found.restarted_at, now)} ago)"
    return str(found.restarts)


def _address(pod: Object) -> str:
    addresses = maps(pod, "status", "podIPs")
    return addresses[0].get("ip") or NONE if addresses else NONE


def _gates(pod: Object) -> str:
    gates = [gate["conditionType"] for gate in maps(pod, "spec", "readinessGates")]
    passed = sum(_is_true(pod.get("status") or {}, gate) for gate in gates)
    return f"{passed}/{len(gates)}" if gates else NONE


POD_COLUMNS = (
    NAME,
    column("Ready", _ready),
    column("Status", lambda pod: summary(pod).reason),
    timed("Restarts", _restarts),
    AGE,
    column("IP", _address, wide=1),
    column("Node", lambda pod: pod["spec"].get("nodeName") or NONE, wide=1),
    column("Nominated Node", lambda pod: dig(pod, "status", "nominatedNodeName") or NONE, wide=1),
    column("Readiness Gates", _gates, wide=1),
)
