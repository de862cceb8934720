"""NoSpuriousRestart, NoSurplusPod and DeleteWithPrecondition."""

from collections.abc import Callable, Sequence

from api.labels import POD_INDEX
from sim.apiserver.objects import Object, mapping
from sim.apiserver.resources import Lookup
from sim.apiserver.storage import Change
from sim.cluster.calls import CallRecord
from sim.invariants.checker import Checker, Report, body_of, clique_of, is_finished, is_leaving, is_ours

__all__ = ("DeleteWithPrecondition", "PodsFollowReplicas")

WINDOW_S = 100.0
"""How long a replica count of the past explains what a controller does: it may not have heard of the newer one (a watch may be silent for
90 seconds before it is given up)."""

Clique = tuple[str, str]


class PodsFollowReplicas(Checker):
    """NoSpuriousRestart: our processes delete a pod only when it has ended, when its clique is gone or going, or when there are more
    pods than the clique wants. NoSurplusPod: they never make more, and no second one for an index."""

    def __init__(self, report: Report, lookup: Lookup, now: Callable[[], float]) -> None:
        super().__init__(report, lookup, now)
        self._wanted: dict[Clique, list[tuple[float, int]]] = {}
        self._pods: dict[Clique, dict[str, Object]] = {}
        self._counts: dict[Clique, list[tuple[float, int]]] = {}

    def changed(self, change: Change) -> None:
        if change.resource.place == ("", "pods"):
            self._note(change)
        if change.resource.plural == "podcliques":
            self._clique(change)
        elif change.resource.plural == "pods" and not change.resource.group and is_ours(change):
            if change.old is None and change.new is not None:
                self._created(change.key.namespace, change.new.obj)
            elif change.old is not None and not is_leaving(change.old.obj) and (change.new is None or is_leaving(change.new.obj)):
                self._deleted(change.key.namespace, change.old.obj)

    def _note(self, change: Change) -> None:
        """Keeps the pods of each clique by name, as they are now, and how many of them counted since when."""
        namespace, name = change.key
        if change.old is not None:
            self._pods.get((namespace, clique_of(change.old.obj)), {}).pop(name, None)
        if change.new is not None:
            self._pods.setdefault((namespace, clique_of(change.new.obj)), {})[name] = change.new.obj
        entry = change.new or change.old
        if entry is not None:
            key, owner = (namespace, clique_of(entry.obj)), _owner(entry.obj)
            self._counts.setdefault(key, []).append((self.now(), len(self._living(key, owner))))

    def _clique(self, change: Change) -> None:
        key = change.key.namespace, change.key.name
        if change.new is None:
            self._wanted.pop(key, None)
            return
        replicas = int(change.new.obj["spec"].get("replicas", 1))
        history = self._wanted.setdefault(key, [])
        if not history or history[-1][1] != replicas:
            history.append((self.now(), replicas))

    def _recent(self, history: Sequence[tuple[float, int]]) -> Sequence[int]:
        """Numbers of a history that held within the window: what caches may still show."""
        since = self.now() - WINDOW_S
        ends = [at for at, _ in history[1:]] + [float("inf")]
        return [count for (_, count), end in zip(history, ends, strict=True) if end >= since]

    def _living(self, key: Clique, owner: str) -> list[Object]:
        """Pods of a clique that count."""
        pods = self._pods.get(key, {}).values()
        return [p for p in pods if _owner(p) == owner and not is_leaving(p) and not is_finished(p)]

    def _created(self, namespace: str, pod: Object) -> None:
        clique = self.lookup.get("grove.io", "podcliques", namespace, clique_of(pod))
        if clique is None or _owner(pod) != clique["metadata"]["uid"]:
            return
        key = namespace, clique_of(pod)
        siblings, recent = self._living(key, _owner(pod)), self._recent(self._wanted.get(key, ()))
        if recent and len(siblings) > max(recent):
            self.report("NoSurplusPod", f"{len(siblings)} pods of {clique_of(pod)}, which wants {max(recent)}")
        index = _index(pod)
        if sum(_index(p) == index for p in siblings) > 1:
            self.report("NoSurplusPod", f"two pods of {clique_of(pod)} have index {index}")

    def _deleted(self, namespace: str, pod: Object) -> None:
        name = clique_of(pod)
        clique = self.lookup.get("grove.io", "podcliques", namespace, name)
        if is_finished(pod) or clique is None or is_leaving(clique) or _owner(pod) != clique["metadata"]["uid"]:
            return
        # Watches are at different points: replicas of now may meet the pods of a moment ago.
        wanted, there = self._recent(self._wanted.get((namespace, name), ())), self._recent(self._counts.get((namespace, name), ()))
        if wanted and max(there, default=0) <= min(wanted):
            self.report("NoSpuriousRestart", f"pod {pod['metadata']['name']} was deleted though {name} wants all of its {max(there)} pods")


class DeleteWithPrecondition(Checker):
    """Every delete of our processes names the uid of what it deletes."""

    def sent(self, record: CallRecord) -> None:
        if record.verb == "delete" and not mapping(body_of(record), "preconditions").get("uid"):
            self.report("DeleteWithPrecondition", f"{record.process} deletes {record.path} whatever its uid is")


def _owner(pod: Object) -> str:
    owners = pod["metadata"].get("ownerReferences") or ()
    return next((o["uid"] for o in owners if o.get("controller")), "")


def _index(pod: Object) -> str:
    return mapping(pod, "metadata", "labels").get(POD_INDEX, "")
