"""Pods for tests of the kubelet, and one pod moved through time by hand."""

from datetime import UTC, datetime, timedelta
from typing import Any

from api.timestamps import rfc3339
from sim.kubelet.behaviour import Behaviour
from sim.kubelet.lifecycle import PodRun, advance, next_at, phase_of, start, waits
from sim.kubelet.status import patch_of, status_of

EPOCH = datetime(2026, 1, 1, tzinfo=UTC)


def stamp(at: float) -> str:
    return rfc3339(EPOCH + timedelta(seconds=at))


def container(name: str = "main", **fields: Any) -> dict[str, Any]:
    return {"name": name, "image": f"{name}:1", **fields}


def pod(*, init: tuple[Any, ...] = (), main: tuple[Any, ...] = (), restart: str = "Always", **fields: Any) -> dict[str, Any]:
    """A bound pod. `fields`: annotations (without their prefix), labels, name, node, and any field of the spec."""
    own = {f"sim.grovekeeper.io/{k}": v for k, v in fields.pop("annotations", {}).items()}
    name = fields.pop("name", "p")
    metadata = {
        "name": name,
        "namespace": "ns",
        "uid": f"uid-{name}",
        "annotations": own,
        "labels": fields.pop("labels", {}),
        "generation": 1,
    }
    spec = {"nodeName": fields.pop("node", "n"), "restartPolicy": restart, "containers": list(main) or [container()], **fields}
    if init:
        spec["initContainers"] = list(init)
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec, "status": {"phase": "Pending"}}


class Life:
    """A pod from second 0 on."""

    def __init__(self, pod: dict[str, Any], defaults: Behaviour | None = None, seed: int = 0) -> None:
        self.pod = pod
        self.now = 0.0
        self.is_released = False
        self.run: PodRun = start(pod, defaults or Behaviour(), seed, ip="10.0.1.1", host_ip="172.16.0.1", now=0.0)
        self.to(0.0)

    def to(self, now: float) -> dict[str, Any]:
        """The status at a time, reached by way of every moment at which something happens."""
        while True:
            advance(self.run, self.now, is_released=self.is_released)
            if waits(self.run) and self.is_released:
                advance(self.run, self.now, is_released=True)
            self.status = status_of(self.run, self.pod, self.now, stamp)
            following = next_at(self.run, self.now)
            if following > now:
                break
            self.now = following
        self.now = now
        return self.status

    def patch(self) -> dict[str, Any]:
        """What would be sent now; counts as sent."""
        out = patch_of(self.run, self.status)
        self.run.sent = self.status
        return out

    @property
    def phase(self) -> str:
        return phase_of(self.run)

    def condition(self, kind: str) -> tuple[str, str]:
        """Status and reason."""
        found = next(c for c in self.status["conditions"] if c["type"] == kind)
        return found["status"], found.get("reason", "")

    def shown(self, name: str = "main") -> str:
        """A container as kubectl shows it: running, a reason, and the restarts."""
        found = next(c for c in (*self.status.get("initContainerStatuses", ()), *self.status["containerStatuses"]) if c["name"] == name)
        ((state, details),) = found["state"].items()
        text = details.get("reason", state)
        return f"{text} {found['restartCount']}" if found["restartCount"] else text
