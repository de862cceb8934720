"""A world for checkers: objects that are put into it become changes, requests become records."""

from collections.abc import Sequence
from typing import Any

import msgspec

from api.labels import POD_INDEX, PODCLIQUE, PODGANG
from api.plan import Key
from sim.apiserver.fields.lazy import Ledger
from sim.apiserver.objects import Object
from sim.apiserver.resources import ObjectKey, Resource, Version
from sim.apiserver.storage import Author, Change, Entry
from sim.cluster.calls import CallRecord, target_for, verb_of
from sim.invariants.inspector import Inspector

__all__ = ("World", "clique", "gang", "lease", "node", "pod")

GROUPS = {
    **dict.fromkeys(("podcliques", "podcliquesets", "podcliquescalinggroups"), "grove.io"),
    "podgangs": "scheduler.grove.io",
    "leases": "coordination.k8s.io",
}
CONTROLLERS, SCHEDULER, USER = "grovekeeper-controllers", "grovekeeper-scheduler", "kubectl"


class World:
    """Is a Lookup. `names`: the invariants that were violated, in order."""

    def __init__(self) -> None:
        self.time = 0.0
        self._objects: dict[tuple[str, str, str], Object] = {}
        self._revision = 0
        self.inspector = Inspector(self, lambda: self.time)

    @property
    def names(self) -> list[str]:
        return [violation.invariant for violation in self.inspector.violations]

    def get(self, group: str, plural: str, namespace: str, name: str) -> Object | None:
        return self._objects.get((plural, namespace, name))

    def list(self, group: str, plural: str, namespace: str = "") -> Sequence[Object]:
        return [o for (p, ns, _), o in self._objects.items() if p == plural and namespace in ("", ns)]

    def put(self, plural: str, obj: Object, agent: str = CONTROLLERS) -> None:
        """Creates or replaces an object."""
        self._change(plural, ObjectKey(obj["metadata"].get("namespace", ""), obj["metadata"]["name"]), obj, agent)

    def remove(self, plural: str, name: str, agent: str = CONTROLLERS) -> None:
        self._change(plural, ObjectKey("default", name), None, agent)

    def _change(self, plural: str, key: ObjectKey, obj: Object | None, agent: str) -> None:
        place = plural, key.namespace, key.name
        old = self._objects.pop(place, None)
        if obj is not None:
            self._objects[place] = obj
        self._revision += 1
        resource = Resource(GROUPS.get(plural, ""), plural, plural.title(), (Version("v1"),), "v1")
        wrapped = [Entry(o, Ledger(), self._revision) if o is not None else None for o in (old, obj)]
        self.inspector.changed(Change(resource, key, wrapped[0], wrapped[1], self._revision, Author(user_agent=agent)))

    def send(
        self, process: str, method: str, path: str, body: object = None, *, status: int = 200, life: int = 1, answered: bool = True
    ) -> CallRecord:
        """A request; unless it is to stay open it is answered at once."""
        target = target_for(path)
        data = msgspec.json.encode(body) if body is not None else b""
        record = CallRecord(process, life, method, path, verb_of(method, target), target, data, self.time)
        self.inspector.sent(record)
        if answered:
            record.status, record.is_settled = status, True
            self.inspector.done(record)
        return record

    def bind(self, name: str, uid: str, to: str, **options: Any) -> CallRecord:
        body = {"metadata": {"name": name, "uid": uid}, "target": {"kind": "Node", "name": to}}
        return self.send("scheduler-0", "POST", f"/api/v1/namespaces/default/pods/{name}/binding", body, **options)

    def leading(self, process: str = "controllers-0", life: int = 1) -> None:
        """The process competes for the lease `lead` and holds it."""
        self.inspector.begin({"controllers-0": Key("default", "lead"), "controllers-1": Key("default", "lead")})
        self.put("leases", lease(f"{process}_{life}"))


def lease(holder: str) -> Object:
    return {"metadata": {"name": "lead", "namespace": "default"}, "spec": {"holderIdentity": holder, "leaseDurationSeconds": 15}}


def node(name: str = "n", memory: str = "150Mi") -> Object:
    return {"metadata": {"name": name}, "status": {"allocatable": {"memory": memory, "pods": "110"}}}


def clique(replicas: int, uid: str = "c-uid", **metadata: object) -> Object:
    return {"metadata": {"name": "c", "namespace": "default", "uid": uid, **metadata}, "spec": {"replicas": replicas}}


def gang(minimum: int) -> Object:
    groups = [{"name": "c", "minReplicas": minimum}]
    return {"metadata": {"name": "g", "namespace": "default", "uid": "g-uid"}, "spec": {"podgroups": groups}}


def pod(index: int, on: str = "", *, leaving: bool = False, phase: str = "Running", name: str = "", memory: str = "80Mi") -> Object:
    metadata: Object = {
        "name": name or f"c-{index}",
        "namespace": "default",
        "uid": f"uid-{name or index}",
        "labels": {PODCLIQUE: "c", PODGANG: "g", POD_INDEX: str(index)},
        "ownerReferences": [{"kind": "PodClique", "name": "c", "uid": "c-uid", "controller": True}],
    }
    if leaving:
        metadata["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    spec: Object = {"containers": [{"name": "main", "resources": {"requests": {"memory": memory}}}]}
    if on:
        spec["nodeName"] = on
    return {"metadata": metadata, "spec": spec, "status": {"phase": phase}}
