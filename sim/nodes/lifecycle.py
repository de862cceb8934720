"""What a cluster does about its nodes: taints, conditions of lost nodes, eviction of what does not tolerate it, and orphaned pods.

The part of kube-controller-manager that simulated clusters need, with its default times.
"""

import heapq
import logging
from datetime import timedelta

import anyio

from api.plan import Clock
from api.timestamps import rfc3339
from sim.apiserver.objects import Object, dig, maps
from sim.apiserver.resources import ObjectKey
from sim.apiserver.storage import Change
from sim.kubelet.host import MERGE, STRATEGIC, Caller, Host, pod_path
from sim.nodes.taints import OUT_OF_SERVICE, evicted_at, readiness_of, wanted_taints

__all__ = ("GRACE_S", "LEASES", "LEASE_NAMESPACE", "ORPHAN_S", "NodeLifecycle")

_LOG = logging.getLogger(__name__)

PODS, NODES, LEASES = ("", "pods"), ("", "nodes"), ("coordination.k8s.io", "leases")
LEASE_NAMESPACE = "kube-node-lease"
GRACE_S = 40.0
"""Silence of a kubelet until its node counts as lost."""
ORPHAN_S = 40.0
"""How long pods of a node that does not exist are kept."""
RETRY_S = 1.0

Subject = tuple[str, ObjectKey]
"""("node", its key) or ("pod", its key)."""


class NodeLifecycle:
    """Hears changes from the moment it is made; acts while `run` runs."""

    def __init__(self, host: Host, clock: Clock) -> None:
        self._calls = Caller(
            host, "system:serviceaccount:kube-system:node-controller", ("system:authenticated",), "node-controller/simulated"
        )
        self._clock = clock
        self._nodes: dict[str, Object] = {}
        self._pods: dict[ObjectKey, Object] = {}
        self._on: dict[str, dict[ObjectKey, None]] = {}
        self._silent_since: dict[str, float] = {}
        self._heard_at: dict[str, float] = {}
        self._gone_since: dict[str, float] = {}
        self._due: list[tuple[float, int, Subject]] = []
        self._due_of: dict[Subject, float] = {}
        self._serial = 0
        self._dirty: dict[Subject, None] = {}
        self._wake = anyio.Event()
        for node in host.lookup.list(*NODES):
            self._see_node(node["metadata"]["name"], node)
        for pod in host.lookup.list(*PODS):
            self._see_pod(ObjectKey(pod["metadata"].get("namespace", ""), pod["metadata"]["name"]), pod)
        self._unsubscribe = host.subscribe(self._changed)

    def silence(self, node: str) -> None:
        """The node's kubelet is heard of no more."""
        self._silent_since.setdefault(node, anyio.current_time())
        self._mark(("node", ObjectKey("", node)))

    def hear(self, node: str) -> None:
        """The node's kubelet is heard of again."""
        self._silent_since.pop(node, None)
        if node in self._heard_at:
            self._heard_at[node] = anyio.current_time()
        self._mark(("node", ObjectKey("", node)))

    def _changed(self, change: Change) -> None:
        if change.resource.place == PODS:
            self._see_pod(change.key, change.new.obj if change.new is not None else None)
        elif change.resource.place == NODES:
            self._see_node(change.key.name, change.new.obj if change.new is not None else None)
        elif change.resource.place == LEASES and change.new is not None and change.key.namespace == LEASE_NAMESPACE:
            self._see_lease(change.key.name)

    def _see_lease(self, name: str) -> None:
        """Whoever has renewed a Lease once counts as silent when it does so no more."""
        is_first = name not in self._heard_at
        self._heard_at[name] = anyio.current_time()
        if name in self._silent_since or is_first:
            self.hear(name)

    def _see_node(self, name: str, node: Object | None) -> None:
        if node is None:
            self._nodes.pop(name, None)
            self._heard_at.pop(name, None)
            self._gone_since[name] = anyio.current_time()
        else:
            self._nodes[name] = node
            self._gone_since.pop(name, None)
        self._mark(("node", ObjectKey("", name)))
        for key in self._on.get(name, {}):
            self._mark(("pod", key))

    def _see_pod(self, key: ObjectKey, pod: Object | None) -> None:
        before = self._pods.pop(key, None)
        if before is not None and (pod is None or pod["metadata"]["uid"] != before["metadata"]["uid"]):
            self._on.get(before["spec"]["nodeName"], {}).pop(key, None)
        name = pod["spec"].get("nodeName") if pod is not None else None
        if pod is None or not name:
            return
        self._pods[key] = pod
        self._on.setdefault(name, {})[key] = None
        node = self._nodes.get(name)
        if node is None:
            self._gone_since.setdefault(name, anyio.current_time())
        # Nothing drives a pod off a node without taints: the usual case costs nothing.
        if node is None or dig(node, "spec", "taints"):
            self._mark(("pod", key))

    def _mark(self, subject: Subject) -> None:
        self._dirty[subject] = None
        self._wake.set()

    def _look_again(self, subject: Subject, at: float) -> None:
        """Not later than `at`."""
        if at < self._due_of.get(subject, float("inf")):
            self._due_of[subject] = at
            self._serial += 1
            heapq.heappush(self._due, (at, self._serial, subject))

    async def run(self) -> None:
        """Acts until cancelled."""
        try:
            while True:
                self._wake = anyio.Event()
                self._collect_due()
                while self._dirty:
                    subject = next(iter(self._dirty))
                    del self._dirty[subject]
                    await (self._settle_node(subject) if subject[0] == "node" else self._settle_pod(subject))
                    self._collect_due()
                pause_s = max(0.0, self._due[0][0] - anyio.current_time()) if self._due else None
                with anyio.move_on_after(pause_s):
                    await self._wake.wait()
        finally:
            self._unsubscribe()

    def _collect_due(self) -> None:
        while self._due and self._due[0][0] <= anyio.current_time():
            at, _, subject = heapq.heappop(self._due)
            if self._due_of.get(subject) == at:
                del self._due_of[subject]
                self._dirty[subject] = None

    async def _settle_node(self, subject: Subject) -> None:
        name = subject[1].name
        node = self._nodes.get(name)
        if node is None:
            return
        since, now = self._silent_since.get(name), anyio.current_time()
        heard_at = self._heard_at.get(name)
        if since is None and heard_at is not None:
            if now < heard_at + GRACE_S:
                self._look_again(subject, heard_at + GRACE_S)
            else:
                since = self._silent_since[name] = heard_at
        if since is not None and readiness_of(node) != "Unknown":
            if now >= since + GRACE_S:
                await self._call_lost(subject, node)
                return  # the taints follow when the new condition is heard of
            self._look_again(subject, since + GRACE_S)
        wanted = wanted_taints(node, rfc3339(self._clock.now()))
        if wanted != maps(node, "spec", "taints"):
            meta = {"uid": node["metadata"]["uid"], "resourceVersion": node["metadata"]["resourceVersion"]}
            await self._send(subject, "PATCH", f"/api/v1/nodes/{name}", {"metadata": meta, "spec": {"taints": wanted or None}}, MERGE)

    async def _call_lost(self, subject: Subject, node: Object) -> None:
        """Nobody knows how the node is; its pods count as not ready."""
        now, name = rfc3339(self._clock.now()), node["metadata"]["name"]
        lost = {
            "status": "Unknown",
            "reason": "NodeStatusUnknown",
            "message": "Kubelet stopped posting node status.",
            "lastTransitionTime": now,
        }
        conditions = [{**c, **lost} for c in maps(node, "status", "conditions")]
        body: Object = {"metadata": {"uid": node["metadata"]["uid"]}, "status": {"conditions": conditions}}
        await self._send(subject, "PATCH", f"/api/v1/nodes/{name}/status", body, STRATEGIC)
        not_ready = {"type": "Ready", "status": "False", "lastTransitionTime": now}
        for key in list(self._on.get(name, {})):
            pod = self._pods.get(key)
            if pod is not None and any(c["type"] == "Ready" and c["status"] == "True" for c in maps(pod, "status", "conditions")):
                change: Object = {"metadata": {"uid": pod["metadata"]["uid"]}, "status": {"conditions": [not_ready]}}
                await self._send(subject, "PATCH", pod_path(key, "status"), change, STRATEGIC)

    async def _settle_pod(self, subject: Subject) -> None:
        pod = self._pods.get(subject[1])
        if pod is None:
            return
        name, now = pod["spec"]["nodeName"], anyio.current_time()
        node = self._nodes.get(name)
        if node is None:
            ends_at = self._gone_since.get(name, now) + ORPHAN_S
            if now < ends_at:
                self._look_again(subject, ends_at)
            else:
                await self._delete(subject, pod, 0)
            return
        taints = maps(node, "spec", "taints")
        if pod["metadata"].get("deletionTimestamp"):
            if any(t["key"] == OUT_OF_SERVICE for t in taints) and readiness_of(node) != "True":
                await self._delete(subject, pod, 0)
            return
        wall = self._clock.now()
        leaves_at = evicted_at(pod, taints, wall)
        if leaves_at is None:
            return
        if leaves_at <= wall:
            await self._delete(subject, pod, None)
        else:
            self._look_again(subject, now + max((leaves_at - wall) / timedelta(seconds=1), 0.001))

    async def _delete(self, subject: Subject, pod: Object, grace_s: int | None) -> None:
        body: Object = {"kind": "DeleteOptions", "apiVersion": "v1", "preconditions": {"uid": pod["metadata"]["uid"]}}
        if grace_s is not None:
            body["gracePeriodSeconds"] = grace_s
        await self._send(subject, "DELETE", pod_path(subject[1]), body, "application/json")

    async def _send(self, subject: Subject, method: str, path: str, body: Object, content_type: str) -> None:
        code, _ = await self._calls.send(method, path, body, content_type)
        if code >= 300 and code not in (404, 409):  # gone or changed: the news is on its way
            _LOG.warning("node lifecycle: not written", extra={"path": path, "code": code})
            self._look_again(subject, anyio.current_time() + RETRY_S)
