"""What a test sees of the cluster: pods of its namespace, the pool of nodes, waiting for a state and seeing that it stays."""

import contextlib
import http.client
import json
import time
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any

from api import labels
from api.grove import PodClique, PodCliqueScalingGroup, PodCliqueSet
from api.kinds import Kind
from api.podgang import PodGang
from hack.kube import Client, ControlPlane, cordon, uncordon

__all__ = ("KINDS", "Pod", "Pool", "Scene", "eventually", "stays")

POLL_S = 0.1
WAIT_S = 30.0
SETTLE_S = 0.7
CORDONED = "node.kubernetes.io/unschedulable"
CORE = {kind: Kind("", "v1", kind, plural) for kind, plural in (("Pod", "pods"), ("Service", "services"), ("Event", "events"))}
KINDS = {model.KIND.kind: model.KIND for model in (PodCliqueSet, PodClique, PodCliqueScalingGroup, PodGang)} | CORE


def eventually(check: Callable[[], bool], what: Callable[[], str] | str, timeout_s: float = WAIT_S) -> None:
    """Wait until the check holds; the message tells what was seen last."""
    deadline = time.monotonic() + timeout_s
    while not check():
        if time.monotonic() > deadline:
            raise AssertionError(f"not so after {timeout_s:.0f} s: {what if isinstance(what, str) else what()}")
        time.sleep(POLL_S)


def stays(check: Callable[[], bool], what: Callable[[], str] | str, for_s: float = SETTLE_S) -> None:
    """The check holds at every look for a while."""
    end = time.monotonic() + for_s
    while time.monotonic() < end:
        if not check():
            raise AssertionError(f"did not stay: {what if isinstance(what, str) else what()}")
        time.sleep(POLL_S)


@dataclass(frozen=True, slots=True)
class Pod:
    """A pod as the API server shows it."""

    object: dict[str, Any] = field(repr=False)

    @property
    def name(self) -> str:
        return self.object["metadata"]["name"]

    @property
    def uid(self) -> str:
        return self.object["metadata"]["uid"]

    @property
    def labels(self) -> dict[str, str]:
        return self.object["metadata"].get("labels", {})

    @property
    def clique(self) -> str:
        """Name of its PodClique."""
        return self.labels.get(labels.PODCLIQUE, "")

    @property
    def index(self) -> int:
        return int(self.labels.get(labels.POD_INDEX, "-1"))

    @property
    def gang(self) -> str:
        return self.labels.get(labels.PODGANG, "")

    @property
    def node(self) -> str:
        """Name of its node, "" while it has none."""
        return self.object["spec"].get("nodeName", "")

    @property
    def gated(self) -> bool:
        return bool(self.object["spec"].get("schedulingGates"))

    @property
    def live(self) -> bool:
        return not self.object["metadata"].get("deletionTimestamp")

    @property
    def ready(self) -> bool:
        return self.condition("Ready").get("status") == "True"

    def condition(self, kind: str) -> dict[str, Any]:
        return next((c for c in self.object.get("status", {}).get("conditions", ()) if c["type"] == kind), {})

    @property
    def unschedulable(self) -> bool:
        """Whether it says that no place was found, and why."""
        seen = self.condition("PodScheduled")
        return (seen.get("status"), seen.get("reason")) == ("False", "Unschedulable") and bool(seen.get("message"))


class Pool:
    """Equal nodes made once per session. A test opens as many as it needs; the others are cordoned."""

    def __init__(self, plane: ControlPlane, names: tuple[str, ...]) -> None:
        self.plane = plane
        self.names = names
        self.at_once: Callable[[], AbstractContextManager[None]] = contextlib.nullcontext
        """Entered around a change of several nodes: the scheduler is to see the change as one."""
        self._open = 0

    def open(self, count: int) -> None:
        """Exactly the first `count` nodes take pods."""
        with self.at_once():
            if count > self._open:
                uncordon(self.plane.kubeconfig, self.names[self._open : count])
            else:
                cordon(self.plane.kubeconfig, self.names[count : self._open])
            # Until this taint has followed, node by node and in any order, a node does not take pods.
            closed = set(self.names[count:])
            eventually(lambda: self._tainted() == closed, lambda: f"tainted are {sorted(self._tainted())}, not {sorted(closed)}")
        self._open = count

    def _tainted(self) -> set[str]:
        """Nodes of the pool that kube-controller-manager has marked as cordoned."""
        with self.plane.client() as client:
            nodes = client.request("GET", "/api/v1/nodes")["items"]
        tainted = {n["metadata"]["name"] for n in nodes if any(t["key"] == CORDONED for t in n["spec"].get("taints", ()))}
        return tainted & set(self.names)

    def uncordon(self, more: int) -> None:
        """Open that many further nodes."""
        assert self._open + more <= len(self.names), f"the pool has {len(self.names)} nodes"
        self.open(self._open + more)


@dataclass(slots=True)
class Scene:
    """One namespace of one test."""

    plane: ControlPlane
    namespace: str
    client: Client
    kubectl: Callable[..., str]
    tails: Callable[[], str]

    def apply(self, *manifests: Mapping[str, Any]) -> None:
        """kubectl apply of the manifests in this namespace."""
        self.kubectl(
            "apply",
            "--server-side",
            "--force-conflicts",
            "-n",
            self.namespace,
            "-f",
            "-",
            stdin="\n---\n".join(json.dumps(m) for m in manifests),
        )

    def refusal(self, text: str) -> str:
        """What kubectl create says when the text is not accepted, "" when it is. (An apply names paths in another way.)"""
        try:
            self.kubectl("create", "-n", self.namespace, "-f", "-", stdin=text)
        except AssertionError as refused:
            return str(refused)
        return ""

    def scale(self, what: str, replicas: int) -> None:
        """kubectl scale, e.g. scale("pcsg/workload1-0-sg-x", 3)."""
        self.kubectl("scale", "-n", self.namespace, what, f"--replicas={replicas}")

    def objects(self, kind: str) -> list[dict[str, Any]]:
        """Live data of a kind (a key of KINDS). A lost connection is tried again: a test may restart the API server."""
        for attempt in range(100):
            with contextlib.suppress(OSError, http.client.HTTPException):
                return self.client.request("GET", KINDS[kind].path(self.namespace))["items"]
            time.sleep(POLL_S * (attempt > 0))
        raise AssertionError("the API server does not answer")

    def object(self, kind: str, name: str) -> dict[str, Any]:
        return self.client.request("GET", KINDS[kind].path(self.namespace, name))

    def names(self, kind: str) -> set[str]:
        return {o["metadata"]["name"] for o in self.objects(kind)}

    def pods(self) -> list[Pod]:
        """Pods that are not being deleted."""
        return [pod for pod in map(Pod, self.objects("Pod")) if pod.live]

    def condition(self, kind: str, name: str, wanted: str) -> dict[str, Any]:
        """One condition of an object, {} while it has none of that type."""
        status = self.object(kind, name).get("status", {})
        return next((c for c in status.get("conditions", ()) if c["type"] == wanted), {})

    def by_clique(self, chosen: Callable[[Pod], bool] = lambda pod: True) -> Counter[str]:
        """Number of chosen pods per PodClique."""
        return Counter(pod.clique for pod in self.pods() if chosen(pod))

    def placed(self) -> Counter[str]:
        """Number of pods that have a node, per PodClique."""
        return self.by_clique(lambda pod: bool(pod.node))

    def counts(self) -> dict[str, int]:
        pods = self.pods()
        placed = sum(bool(pod.node) for pod in pods)
        return {"pods": len(pods), "placed": placed, "pending": len(pods) - placed, "ready": sum(pod.ready for pod in pods)}

    def wait_counts(self, placed: int, pending: int, *, timeout_s: float = WAIT_S) -> None:
        """Wait for so many placed and pending pods, all placed ones Ready and all others explained, and see that it stays so."""
        wanted = {"pods": placed + pending, "placed": placed, "pending": pending, "ready": placed}
        eventually(lambda: self.counts() == wanted, lambda: f"wanted {wanted}\n{self.describe()}", timeout_s)
        eventually(lambda: not self.unexplained(), lambda: f"pending without a reason: {self.unexplained()}\n{self.describe()}")
        stays(lambda: self.counts() == wanted, lambda: f"wanted {wanted}\n{self.describe()}")

    def unexplained(self) -> list[str]:
        """Pending pods that neither wait behind a gate for their Anchor gang nor say that they are unschedulable."""
        pods = self.pods()
        placed_anchors = self.gangs_placed(pods)
        out: list[str] = []
        for pod in pods:
            if pod.node:
                continue
            anchor = pod.labels.get(labels.BASE_PODGANG)
            waits = pod.gated and anchor is not None and anchor not in placed_anchors
            if not waits and not pod.unschedulable:
                out.append(f"{pod.name}: gated={pod.gated} anchor={anchor} {pod.condition('PodScheduled')}")
        return out

    def gangs_placed(self, pods: list[Pod]) -> set[str]:
        """Gangs whose every pod group has its minimum on nodes."""
        on_nodes = Counter(pod.clique for pod in pods if pod.node)
        gangs = self.objects("PodGang")
        return {
            g["metadata"]["name"] for g in gangs if all(on_nodes[group["name"]] >= group["minReplicas"] for group in g["spec"]["podgroups"])
        }

    def clear(self) -> None:
        """Delete every PodCliqueSet and wait until nothing of them is left."""
        for name in self.names("PodCliqueSet"):
            self.client.raw("DELETE", KINDS["PodCliqueSet"].path(self.namespace, name))
        eventually(lambda: not self.left(), lambda: f"still there: {self.left()}\n{self.tails()}", 80.0)

    def left(self) -> list[str]:
        """Sets and everything made for sets."""
        found = ((kind, o["metadata"]) for kind in KINDS if kind != "Event" for o in self.objects(kind))
        return [f"{kind}/{m['name']}" for kind, m in found if kind == "PodCliqueSet" or labels.PART_OF in m.get("labels", {})]

    def describe(self) -> str:
        """All pods in a few lines, and the ends of the logs."""
        lines = [f"{self.counts()} in {self.namespace}"]
        for pod in sorted(self.pods(), key=lambda p: (p.clique, p.index)):
            state = "ready" if pod.ready else "gated" if pod.gated else pod.condition("PodScheduled").get("message", "")
            lines.append(f"  {pod.name} [{pod.gang}] {pod.node or '-'} {state}")
        return "\n".join([*lines, self.tails()])
