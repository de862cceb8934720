"""What can be done to nodes: made, cordoned, drained, lost, restored, replaced, deleted."""

from collections.abc import Iterable

import anyio
import msgspec

from api.plan import Clock
from api.timestamps import rfc3339
from sim.apiserver.objects import Object, dig, mapping, maps
from sim.apiserver.resources import ObjectKey
from sim.kubelet.host import MERGE, STRATEGIC, Caller, Host, pod_path
from sim.kubelet.kubelet import Kubelet
from sim.nodes.lifecycle import NodeLifecycle
from sim.nodes.specs import NodeSpec, node_manifest, ready_conditions

__all__ = ("NodeError", "Nodes")

EVICTION_RETRY_S = 5.0


class NodeError(Exception):
    """The API server refused an action."""


class Nodes:
    """Actions on the nodes of one simulated cluster, as an administrator (or a power cut) would do them."""

    def __init__(self, host: Host, clock: Clock, kubelet: Kubelet, lifecycle: NodeLifecycle) -> None:
        self._host = host
        self._calls = Caller(host, "admin", ("system:masters", "system:authenticated"), "nodes/simulated")
        self._clock = clock
        self._kubelet = kubelet
        self._lifecycle = lifecycle

    async def create(self, specs: Iterable[NodeSpec]) -> None:
        """Makes nodes that are Ready at once; those that exist are left alone."""
        now = rfc3339(self._clock.now())
        for spec in specs:
            manifest = node_manifest(spec, now)
            code, answer = await self._calls.send("POST", "/api/v1/nodes", manifest)
            if code == 201 and "allocatable" not in mapping(msgspec.json.decode(answer), "status"):
                await self._send("PATCH", f"/api/v1/nodes/{spec.name}/status", {"status": manifest["status"]}, STRATEGIC)
            elif code not in (201, 409):
                raise NodeError(f"node {spec.name}: {code} {msgspec.json.decode(answer).get('message', '')}")

    async def cordon(self, name: str) -> None:
        """Makes a node unschedulable."""
        await self._send("PATCH", f"/api/v1/nodes/{name}", {"spec": {"unschedulable": True}}, MERGE)

    async def uncordon(self, name: str) -> None:
        """Makes a node schedulable again."""
        await self._send("PATCH", f"/api/v1/nodes/{name}", {"spec": {"unschedulable": None}}, MERGE)

    async def drain(self, name: str, timeout_s: float = 300.0) -> None:
        """Cordons a node and evicts its pods; disruption budgets are waited for. Returns when none is left. Raises TimeoutError."""
        await self.cordon(name)
        with anyio.fail_after(timeout_s):
            while pods := self._pods_on(name):
                refused = False
                for pod in pods:
                    if not pod["metadata"].get("deletionTimestamp"):
                        refused |= not await self._evict(pod)
                gone = anyio.Event()

                def changed(change: object, gone: anyio.Event = gone) -> None:
                    gone.set()

                unsubscribe = self._host.subscribe(changed)
                try:
                    with anyio.move_on_after(EVICTION_RETRY_S if refused else None):
                        if self._pods_on(name):
                            await gone.wait()
                finally:
                    unsubscribe()

    async def lose(self, name: str) -> None:
        """The machine is gone without a word: the node turns Unknown after a while, its pods stay Terminating when they are deleted."""
        self._kubelet.lose(name)
        self._lifecycle.silence(name)

    async def restore(self, name: str) -> None:
        """A lost machine is back as the same node: its kubelet posts that it is ready, pods that are still bound to it start again."""
        self._kubelet.restore(name)
        self._lifecycle.hear(name)
        status = {"conditions": ready_conditions(rfc3339(self._clock.now()))}
        await self._send("PATCH", f"/api/v1/nodes/{name}/status", {"status": status}, STRATEGIC)

    async def replace(self, name: str) -> None:
        """The node is deleted and comes back at once under the same name with another uid, as an autoscaler replaces machines."""
        node = self._host.lookup.get("", "nodes", "", name)
        if node is None:
            raise NodeError(f"there is no node {name}")
        await self.delete(name)
        allocatable = mapping(node, "status", "allocatable")
        await self.create([NodeSpec(name, allocatable, node["metadata"].get("labels") or {})])
        self._lifecycle.hear(name)
        self._kubelet.restore(name)

    async def delete(self, name: str) -> None:
        """The machine and its node are gone; pods that were bound to it are collected after a while."""
        self._kubelet.lose(name)
        await self._send("DELETE", f"/api/v1/nodes/{name}", allowed=(404,))

    def _pods_on(self, name: str) -> list[Object]:
        """Pods that a drain is about: not those of DaemonSets, not static ones, not those that are over."""
        return [
            pod
            for pod in self._host.lookup.list("", "pods")
            if pod["spec"].get("nodeName") == name
            and dig(pod, "status", "phase") not in ("Succeeded", "Failed")
            and not any(o.get("kind") in ("DaemonSet", "Node") for o in maps(pod, "metadata", "ownerReferences"))
        ]

    async def _evict(self, pod: Object) -> bool:
        """False: a disruption budget does not allow it now."""
        meta = pod["metadata"]
        key = ObjectKey(meta["namespace"], meta["name"])
        body: Object = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": key.name, "namespace": key.namespace}}
        body["deleteOptions"] = {"preconditions": {"uid": meta["uid"]}}
        return await self._send("POST", pod_path(key, "eviction"), body, allowed=(404, 409, 429)) != 429

    async def _send(
        self, method: str, path: str, body: Object | None = None, content_type: str = "application/json", allowed: tuple[int, ...] = ()
    ) -> int:
        code, answer = await self._calls.send(method, path, body, content_type)
        if code >= 300 and code not in allowed:
            raise NodeError(f"{method} {path}: {code} {msgspec.json.decode(answer).get('message', '')}")
        return code
