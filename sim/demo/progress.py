"""How far the gangs of a cluster are, read from its API server, and why those wait that do."""

from collections.abc import Sequence
from dataclasses import dataclass

from sim.apiserver.objects import Object, dig, maps
from sim.apiserver.resources import Lookup

__all__ = ("GangState", "Progress", "progress_of")


@dataclass(frozen=True, slots=True)
class GangState:
    """One PodGang. `step`: its phase, bound pods and reason, without what changes all the time; `text`: that with all figures; `why`: what
    it waits for, "" when it runs. `bound`: pods with a node."""

    name: str
    step: str
    text: str
    why: str
    bound: int = 0

    def __str__(self) -> str:
        return f"gang {self.name}: {self.text}"


@dataclass(frozen=True, slots=True)
class Progress:
    """`unfinished`: what besides gangs is not there yet, for people."""

    gangs: Sequence[GangState]
    unfinished: Sequence[str]

    @property
    def is_complete(self) -> bool:
        """All sets and groups are available, every gang runs, every bound pod is ready."""
        return not self.unfinished and not any(g.why for g in self.gangs)


def progress_of(lookup: Lookup) -> Progress:
    """The state of everything now."""
    gangs = [_gang(g) for g in sorted(lookup.list("scheduler.grove.io", "podgangs"), key=_name)]
    unfinished = [
        f"{kind} {_name(obj)}: {text}"
        for kind, plural in (("PodCliqueSet", "podcliquesets"), ("PodCliqueScalingGroup", "podcliquescalinggroups"))
        for obj in sorted(lookup.list("grove.io", plural), key=_name)
        if (text := _unavailable(obj))
    ]
    unready = (p for p in lookup.list("", "pods") if p["spec"].get("nodeName") and not _has(p, "Ready"))
    unfinished += [f"Pod {_name(pod)}: {_pod(pod)}" for pod in sorted(unready, key=_name) if not pod["metadata"].get("deletionTimestamp")]
    return Progress(gangs, unfinished)


def _name(obj: Object) -> str:
    return f"{obj['metadata'].get('namespace', '')}/{obj['metadata']['name']}"


def _gang(gang: Object) -> GangState:
    phase, blocked = dig(gang, "status", "phase") or "Pending", dig(gang, "status", "blocked") or ""
    pods, bound, ready = (dig(gang, "status", key) or 0 for key in ("pods", "bound", "ready"))
    text = f"{phase}, {bound}/{pods} pods bound, {ready} ready" if pods else phase
    domain = dig(gang, "status", "domain")
    if domain and phase == "Running":
        text += f", in {domain}"
    why = ""
    if phase != "Running":
        told = [c for c in maps(gang, "status", "conditions") if c.get("status") == "False" and c.get("message")]
        told = [c for c in told if c["type"] == "Scheduled"] or told  # what is not placed cannot be ready either
        why = "; ".join(f"{c['type']}: {c.get('reason', '')}: {c['message']}" for c in told) or blocked or "nobody has placed it yet"
    if blocked:
        text += f" ({blocked})"
    return GangState(_name(gang), f"{phase} {bound}/{pods} {blocked}", text, why, bound)


def _unavailable(obj: Object) -> str:
    """What is wrong with a set or a group; "" nothing."""
    invalid = next((c for c in maps(obj, "status", "conditions") if c["type"] == "InvalidSpec" and c["status"] == "True"), None)
    if invalid is not None:
        return f"InvalidSpec: {invalid.get('message', '')}"
    wanted, available = dig(obj, "spec", "replicas") or 0, dig(obj, "status", "availableReplicas") or 0
    seen = dig(obj, "status", "observedGeneration") or 0
    if available >= wanted and seen >= obj["metadata"].get("generation", 0):
        return ""
    errors = [e.get("description", "") for e in maps(obj, "status", "lastErrors")]
    return "; ".join([f"{available} of {wanted} replicas available", *errors])


def _has(pod: Object, kind: str) -> bool:
    return any(c["type"] == kind and c["status"] == "True" for c in maps(pod, "status", "conditions"))


def _pod(pod: Object) -> str:
    """Why a bound pod is not ready."""
    if dig(pod, "status", "reason"):
        return f"{pod['status']['reason']}: {pod['status'].get('message', '')}"
    for container in (*maps(pod, "status", "initContainerStatuses"), *maps(pod, "status", "containerStatuses")):
        waiting = dig(container, "state", "waiting")
        if waiting:
            return f"container {container['name']} waits: {waiting.get('reason', '')} {waiting.get('message', '')}".rstrip()
        if container["name"] == "grove-initc" and dig(container, "state", "running") is not None:
            return "waits for its parents to be ready"
    return f"not ready yet ({dig(pod, 'status', 'phase') or 'Pending'})"
