"""Status of pods: what the server itself writes, and the printed form of what kubelets write."""

from datetime import datetime
from typing import Any, Final

from api.quantity import nano
from sim.apiserver.builtin.parts import items, part
from sim.apiserver.metadata import timestamp
from sim.apiserver.objects import Object

__all__ = ("SCHEDULED", "completed_status", "gated_condition", "initial_status", "qos_class", "scheduled_condition", "with_condition")

SCHEDULED: Final = "PodScheduled"
_COUNTED: Final = ("cpu", "memory")
_STATUSES: Final = ("containerStatuses", "initContainerStatuses", "ephemeralContainerStatuses")


def initial_status(spec: Object, now: datetime) -> Object:
    """Status of a new pod."""
    out: Object = {"phase": "Pending", "qosClass": qos_class(spec)}
    if spec.get("schedulingGates"):
        out["conditions"] = [gated_condition(now)]
    return out


def gated_condition(now: datetime) -> Object:
    """PodScheduled of a pod with scheduling gates."""
    return {
        "type": SCHEDULED,
        "status": "False",
        "lastProbeTime": None,
        "lastTransitionTime": timestamp(now),
        "reason": "SchedulingGated",
        "message": "Scheduling is blocked due to non-empty scheduling gates",
    }


def scheduled_condition(now: datetime) -> Object:
    """PodScheduled of a bound pod."""
    return {"type": SCHEDULED, "status": "True", "lastProbeTime": None, "lastTransitionTime": timestamp(now)}


def with_condition(status: Object, condition: Object) -> Object:
    """A status with the condition in the place of the one of its type, or at the end. Equal status keeps its transition time."""
    conditions: list[Object] = list(status.get("conditions") or ())
    for i, old in enumerate(conditions):
        if old.get("type") == condition["type"]:
            if old.get("status") == condition["status"]:
                condition = {**condition, "lastTransitionTime": old.get("lastTransitionTime")}
            conditions[i] = condition
            break
    else:
        conditions.append(condition)
    return {**status, "conditions": conditions}


def qos_class(spec: Object) -> str:
    """Guaranteed, Burstable or BestEffort, from requests and limits of cpu and memory; a pod's own resources win over its containers'."""
    own: Object | None = spec.get("resources")
    if own and (own.get("requests") or own.get("limits")):
        parts: list[Object] = [own]
    else:
        parts = [c["resources"] for key in ("containers", "initContainers") for c in items(spec, key)]
    is_any, is_guaranteed = False, bool(parts)
    for resources in parts:
        limits, requests = part(resources, "limits"), part(resources, "requests")
        for name in _COUNTED:
            limit: Any = limits.get(name)
            request: Any = requests.get(name)
            has_limit, has_request = _is_positive(limit), _is_positive(request)
            is_any = is_any or has_limit or has_request
            is_guaranteed = is_guaranteed and has_limit and (not has_request or request == limit or nano(request) == nano(limit))
    if not is_any:
        return "BestEffort"
    return "Guaranteed" if is_guaranteed else "Burstable"


def _is_positive(quantity: Any) -> bool:
    return quantity is not None and nano(quantity) > 0


def completed_status(status: Object) -> Object:
    """A status as a client wrote it, with the fields that are printed even when nobody set them."""
    out = dict(status)
    if conditions := out.get("conditions"):
        out["conditions"] = [
            {**c, "lastProbeTime": c.get("lastProbeTime"), "lastTransitionTime": c.get("lastTransitionTime")} for c in conditions
        ]
    address = out.get("podIP")
    addresses: list[Object] = out.get("podIPs") or []
    if address and (not addresses or addresses[0].get("ip") != address):
        out["podIPs"] = [{"ip": address}]
    elif addresses and not address:
        out["podIP"] = addresses[0].get("ip")
    for key in _STATUSES:
        if listed := out.get(key):
            out[key] = [_container(c) for c in listed]
    return out


def _container(status: Object) -> Object:
    out: Object = {"state": {}, "lastState": {}, "ready": False, "restartCount": 0, "image": "", "imageID": "", **status}
    for key in ("state", "lastState"):
        out[key] = {kind: _state(kind, value) for kind, value in part(out, key).items() if value is not None}
    return out


def _state(kind: str, value: Object) -> Object:
    """A container state with the times that are always printed."""
    if kind == "running":
        return {"startedAt": None, **value}
    if kind == "terminated":
        return {"exitCode": 0, "startedAt": None, "finishedAt": None, **value}
    return value
