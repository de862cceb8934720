"""The namespace controller: empties namespaces that are being deleted and lets them go; also the objects that every namespace gets."""

import asyncio

from sim.apiserver.care.client import Client, path_of
from sim.apiserver.care.collector import Host
from sim.apiserver.objects import Object, dig
from sim.apiserver.resources import ObjectKey, Resource
from sim.apiserver.storage import Change

__all__ = ("FIRST_NAMESPACES", "NamespaceController")

FIRST_NAMESPACES = ("default", "kube-system", "kube-public", "kube-node-lease")
RETRY_S = 1.0


class NamespaceController:
    """Watches all changes from the moment it is made; acts while `run` runs.

    Every namespace that is not being deleted has a service account "default", as kube-controller-manager makes it.
    """

    def __init__(self, host: Host) -> None:
        self._storage = host.storage
        self._client = Client(host.handle, "system:serviceaccount:kube-system:namespace-controller")
        self._due: dict[str, None] = {}
        self._wake = asyncio.Event()
        table = self._storage.find("", "namespaces")
        for key in table.entries if table is not None else ():
            self._enqueue(key.name)
        self._cancel = self._storage.subscribe(self._on_change)

    async def run(self) -> None:
        """Acts until cancelled."""
        try:
            while True:
                await self._wake.wait()
                self._wake.clear()
                while self._due:
                    name = next(iter(self._due))
                    del self._due[name]
                    if not await self._settle(name):
                        asyncio.get_running_loop().call_later(RETRY_S, self._enqueue, name)
        finally:
            self._cancel()

    def _on_change(self, change: Change) -> None:
        if change.resource.place == ("", "namespaces"):
            self._enqueue(change.key.name)
        elif change.new is None and change.key.namespace:
            lost_account = change.resource.place == ("", "serviceaccounts") and change.key.name == "default"
            if lost_account or self._is_leaving(change.key.namespace):
                self._enqueue(change.key.namespace)

    def _enqueue(self, name: str) -> None:
        self._due[name] = None
        self._wake.set()

    def _namespace(self, name: str) -> Object | None:
        table = self._storage.find("", "namespaces")
        entry = table.entries.get(ObjectKey("", name)) if table is not None else None
        return entry.obj if entry is not None else None

    def _is_leaving(self, name: str) -> bool:
        namespace = self._namespace(name)
        return namespace is not None and bool(namespace["metadata"].get("deletionTimestamp"))

    async def _settle(self, name: str) -> bool:
        """Brings one namespace to where it should be; False to look again later."""
        namespace = self._namespace(name)
        if namespace is None:
            return True
        if not namespace["metadata"].get("deletionTimestamp"):
            return await self._furnish(name)
        left = False
        for resource, key in self._content(name):
            left = True
            options: Object = {"kind": "DeleteOptions", "apiVersion": "v1", "propagationPolicy": "Background"}
            await self._client.send("DELETE", path_of(resource, key), options)
        if left and self._content(name):
            return True  # their going will be told
        finalizers = [f for f in dig(namespace, "spec", "finalizers") or () if f != "kubernetes"]
        body = {**namespace, "spec": {"finalizers": finalizers}}
        metadata = {k: v for k, v in namespace["metadata"].items() if k != "resourceVersion"}
        path = path_of(self._table_resource(), ObjectKey("", name), "finalize")
        status, _ = await self._client.send("PUT", path, {**body, "metadata": metadata})
        return status < 300 or status == 404

    def _content(self, name: str) -> list[tuple[Resource, ObjectKey]]:
        """Objects in a namespace that are not leaving yet, pods first."""
        found = [
            (table.resource, key)
            for table in self._storage.tables()
            for key in table.by_namespace.get(name, {})
            if name and "delete" in table.resource.verbs
        ]
        return sorted(found, key=lambda one: (one[0].plural != "pods", one[0].group, one[0].plural, one[1]))

    async def _furnish(self, name: str) -> bool:
        accounts = self._storage.find("", "serviceaccounts")
        if accounts is None or ObjectKey(name, "default") in accounts.entries:
            return True
        body: Object = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default", "namespace": name}}
        status, _ = await self._client.send("POST", path_of(accounts.resource, ObjectKey(name, "")), body)
        return status < 300 or status in (404, 409)

    def _table_resource(self) -> Resource:
        table = self._storage.find("", "namespaces")
        assert table is not None  # noqa: S101 - a namespace was found in it
        return table.resource
