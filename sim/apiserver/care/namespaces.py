"""The namespace controller: empties namespaces that are being deleted and lets them go; also the objects that every namespace gets."""

from collections import Counter
from typing import Final

from sim.apiserver.care.client import Client, path_of
from sim.apiserver.care.collector import Host
from sim.apiserver.care.queue import Queue
from sim.apiserver.metadata import timestamp
from sim.apiserver.objects import Object, dig
from sim.apiserver.resources import ObjectKey, Resource
from sim.apiserver.storage import Change, Table

__all__ = ("FIRST_NAMESPACES", "NamespaceController")

FIRST_NAMESPACES = ("default", "kube-system", "kube-public", "kube-node-lease")
NAMESPACES, ACCOUNTS, PODS = ("", "namespaces"), ("", "serviceaccounts"), ("", "pods")
USER = "system:serviceaccount:kube-system:namespace-controller"
HELD: Final = "kubernetes"
"""The finalizer in spec.finalizers that is this controller's."""
FINE: Final = {
    "NamespaceDeletionDiscoveryFailure": ("False", "ResourcesDiscovered", "All resources successfully discovered"),
    "NamespaceDeletionGroupVersionParsingFailure": ("False", "ParsedGroupVersions", "All legacy kube types successfully parsed"),
    "NamespaceDeletionContentFailure": (
        "False",
        "ContentDeleted",
        "All content successfully deleted, may be waiting on finalization",
    ),
}
EMPTIED: Final = ("False", "ContentRemoved", "All content successfully removed")
FREED: Final = ("False", "ContentHasNoFinalizers", "All content-preserving finalizers finished")


class NamespaceController:
    """Watches all changes from the moment it is made; acts while `run` runs.

    Every namespace that is not being deleted has a service account "default", as kube-controller-manager makes it. Pods of one that is
    being deleted go first; when the last has gone, everything else.
    """

    def __init__(self, host: Host) -> None:
        self._storage = host.storage
        self._now = host.now
        self._client = Client(host.handle, USER)
        self._queue = Queue[str]()
        table = self._storage.find(*NAMESPACES)
        for key in table.entries if table is not None else ():
            self._queue.add(key.name)
        self._cancel = self._storage.subscribe(self._on_change)

    async def run(self) -> None:
        """Acts until cancelled."""
        try:
            await self._queue.run(self._settle)
        finally:
            self._cancel()

    def _on_change(self, change: Change) -> None:
        name = change.key.namespace
        if change.resource.place == NAMESPACES:
            self._namespace_changed(change)
        elif change.new is None and name:
            if self._is_leaving(name):
                # Told once per resource, not once per object.
                table = self._storage.find(*change.resource.place)
                if table is None or not table.by_namespace.get(name):
                    self._queue.add(name)
            elif change.resource.place == ACCOUNTS and change.key.name == "default":
                self._queue.add(name)

    def _namespace_changed(self, change: Change) -> None:
        old, new = change.old, change.new
        if new is None:
            return
        is_leaving = bool(new.obj["metadata"].get("deletionTimestamp"))
        if old is None or (is_leaving and not old.obj["metadata"].get("deletionTimestamp")):
            self._queue.add(change.key.name)

    def _namespace(self, name: str) -> Object | None:
        table = self._storage.find(*NAMESPACES)
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
        if HELD not in (dig(namespace, "spec", "finalizers") or ()):
            return True
        done = True
        for is_pods in (True, False):
            for resource, key in self._content(name, is_pods=is_pods):
                options: Object = {"kind": "DeleteOptions", "apiVersion": "v1", "propagationPolicy": "Background"}
                status, _ = await self._client.send("DELETE", path_of(resource, key), options)
                done = done and (status < 300 or status == 404)
            if tables := self._tables(name, is_pods=is_pods):
                # Their going will be told. Of pods nothing is said.
                return await self._report(name, [] if is_pods else tables) and done
        return await self._finalize(name)

    def _tables(self, name: str, *, is_pods: bool) -> list[Table]:
        """Tables with objects in the namespace, in order of their names."""
        found = [t for t in self._storage.tables() if t.by_namespace.get(name) and "delete" in t.resource.verbs]
        return sorted((t for t in found if (t.resource.place == PODS) is is_pods), key=lambda t: t.resource.place)

    def _content(self, name: str, *, is_pods: bool) -> list[tuple[Resource, ObjectKey]]:
        """Objects in a namespace that are not leaving yet."""
        return [
            (table.resource, key)
            for table in self._tables(name, is_pods=is_pods)
            for key, entry in sorted(table.by_namespace[name].items(), key=lambda item: item[0])
            if not entry.obj["metadata"].get("deletionTimestamp")
        ]

    async def _finalize(self, name: str) -> bool:
        namespace = self._namespace(name)
        if namespace is None:
            return True
        finalizers = [f for f in dig(namespace, "spec", "finalizers") or () if f != HELD]
        metadata = {k: v for k, v in namespace["metadata"].items() if k != "resourceVersion"}
        body: Object = {**namespace, "metadata": metadata, "spec": {"finalizers": finalizers}}
        status, _ = await self._client.send("PUT", self._path(name, "finalize"), body)
        return status < 300 or status == 404

    async def _report(self, name: str, left: list[Table]) -> bool:
        """Says in the namespace's conditions what it waits for."""
        namespace = self._namespace(name)
        if namespace is None:
            return True
        before: list[Object] = dig(namespace, "status", "conditions") or []
        conditions = _conditions(name, left, before, timestamp(self._now()))
        if conditions == before:
            return True
        status = await self._client.merge(self._path(name, "status"), {"status": {"conditions": conditions}})
        return status < 300 or status == 404

    async def _furnish(self, name: str) -> bool:
        accounts = self._storage.find(*ACCOUNTS)
        if accounts is None or ObjectKey(name, "default") in accounts.entries:
            return True
        body: Object = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default", "namespace": name}}
        status, _ = await self._client.send("POST", path_of(accounts.resource, ObjectKey(name, "")), body)
        return status < 300 or status in (404, 409) or self._is_leaving(name)

    def _path(self, name: str, subresource: str) -> str:
        table = self._storage.find(*NAMESPACES)
        assert table is not None  # noqa: S101 - a namespace was found in it
        return path_of(table.resource, ObjectKey("", name), subresource)


def _conditions(name: str, left: list[Table], before: list[Object], now: str) -> list[Object]:
    """What a namespace that is being deleted says of its content; `left`: tables that hold some."""
    objects = [entry.obj for table in left for entry in table.by_namespace[name].values()]
    finalizers = Counter(f for obj in objects for f in obj["metadata"].get("finalizers") or ())
    kinds = sorted(f"{t.resource.plural}.{t.resource.group} has {len(t.by_namespace[name])} resource instances" for t in left)
    holders = [f"{finalizer} in {finalizers[finalizer]} resource instances" for finalizer in sorted(finalizers)]
    content = ("True", "SomeResourcesRemain", f"Some resources are remaining: {', '.join(kinds)}") if kinds else EMPTIED
    held = f"Some content in the namespace has finalizers remaining: {', '.join(holders)}"
    said = {
        **FINE,
        "NamespaceContentRemaining": content,
        "NamespaceFinalizersRemaining": ("True", "SomeFinalizersRemain", held) if holders else FREED,
    }
    old = {condition["type"]: condition for condition in before}
    out: list[Object] = []
    for kind, (status, reason, message) in said.items():
        same = old.get(kind, {}).get("status") == status
        since = old[kind]["lastTransitionTime"] if same else now
        out.append({"type": kind, "status": status, "lastTransitionTime": since, "reason": reason, "message": message})
    return out
