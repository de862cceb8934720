"""Taints that follow from a node's state, and when they drive which pods away, as Kubernetes' own controllers do it."""

from collections.abc import Sequence
from datetime import datetime, timedelta

from sim.apiserver.objects import Object, dig, maps
from sim.kubelet.admission import tolerates

__all__ = ("NOT_READY", "OUT_OF_SERVICE", "UNREACHABLE", "UNSCHEDULABLE", "evicted_at", "readiness_of", "wanted_taints")

NOT_READY = "node.kubernetes.io/not-ready"
UNREACHABLE = "node.kubernetes.io/unreachable"
UNSCHEDULABLE = "node.kubernetes.io/unschedulable"
OUT_OF_SERVICE = "node.kubernetes.io/out-of-service"

MANAGED = (NOT_READY, UNREACHABLE, UNSCHEDULABLE)
OF_READY = {"False": NOT_READY, "Unknown": UNREACHABLE}


def readiness_of(node: Object) -> str:
    """Status of the condition Ready; Unknown where it is missing."""
    return next((c["status"] for c in maps(node, "status", "conditions") if c["type"] == "Ready"), "Unknown")


def wanted_taints(node: Object, now: str) -> list[Object]:
    """All taints that the node should have: others' as they are, ours as its state says. `now`: RFC 3339, when new ones are added."""
    found = maps(node, "spec", "taints")
    out = [t for t in found if t["key"] not in MANAGED]
    key = OF_READY.get(readiness_of(node))
    wanted = [(key, "NoSchedule"), (key, "NoExecute")] if key else []
    if dig(node, "spec", "unschedulable"):
        wanted.append((UNSCHEDULABLE, "NoSchedule"))
    known = {(t["key"], t["effect"]): t for t in found}
    return out + [known.get((key, effect)) or {"key": key, "effect": effect, "timeAdded": now} for key, effect in wanted]


def evicted_at(pod: Object, taints: Sequence[Object], now: datetime) -> datetime | None:
    """When the pod has to go; None: it may stay. A tolerated taint counts from when it was added."""
    earliest: datetime | None = None
    tolerations = maps(pod, "spec", "tolerations")
    for taint in taints:
        if taint.get("effect") != "NoExecute":
            continue
        matching = [t for t in tolerations if tolerates(t, taint)]
        if not matching:
            return now
        limits = [t["tolerationSeconds"] for t in matching if t.get("tolerationSeconds") is not None]
        if not limits:
            continue
        added = datetime.fromisoformat(taint["timeAdded"]) if taint.get("timeAdded") else now
        leaves = added + timedelta(seconds=max(0, min(limits)))
        earliest = leaves if earliest is None else min(earliest, leaves)
    return earliest
