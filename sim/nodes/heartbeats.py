"""Leases of living nodes, renewed as kubelets do. They cost a write a node every ten seconds, so a cluster has them only if asked."""

import anyio

from api.plan import Clock
from sim.apiserver.objects import Object
from sim.kubelet.host import MERGE, Caller, Host
from sim.kubelet.kubelet import Kubelet
from sim.nodes.lifecycle import LEASE_NAMESPACE, LEASES

__all__ = ("Heartbeats",)

PATH = f"/apis/coordination.k8s.io/v1/namespaces/{LEASE_NAMESPACE}/leases"
RENEW_S = 10.0
DURATION_S = 40
MICRO_TIME = "%Y-%m-%dT%H:%M:%S.%fZ"


class Heartbeats:
    """Renews the Lease of every node whose machine is alive, while `run` runs."""

    def __init__(self, host: Host, clock: Clock, kubelet: Kubelet) -> None:
        self._host = host
        self._calls = Caller(host, "system:node:simulated", ("system:nodes", "system:authenticated"), "kubelet/simulated")
        self._clock = clock
        self._kubelet = kubelet

    async def run(self) -> None:
        """Renews until cancelled."""
        while True:
            for node in list(self._host.lookup.list("", "nodes")):
                if self._kubelet.is_alive(node["metadata"]["name"]):
                    await self._renew(node)
            await anyio.sleep(RENEW_S)

    async def _renew(self, node: Object) -> None:
        name, now = node["metadata"]["name"], self._clock.now().strftime(MICRO_TIME)
        if self._host.lookup.get(*LEASES, LEASE_NAMESPACE, name) is not None:
            await self._calls.send("PATCH", f"{PATH}/{name}", {"spec": {"renewTime": now}}, MERGE)
            return
        owner = {"apiVersion": "v1", "kind": "Node", "name": name, "uid": node["metadata"]["uid"]}
        body: Object = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease"}
        body["metadata"] = {"name": name, "namespace": LEASE_NAMESPACE, "ownerReferences": [owner]}
        body["spec"] = {"holderIdentity": name, "leaseDurationSeconds": DURATION_S, "renewTime": now}
        await self._calls.send("POST", PATH, body)
