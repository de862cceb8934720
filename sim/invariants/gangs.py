"""GangAtomicity: a gang that begins to be placed is placed at least to its minimum, soon."""

from collections import Counter
from collections.abc import Callable

from api.labels import PODGANG
from sim.apiserver.objects import Object, mapping
from sim.apiserver.resources import Lookup
from sim.apiserver.storage import Change
from sim.cluster.calls import CallRecord
from sim.invariants.checker import Checker, Report, clique_of, is_finished, is_leaving, node_of

__all__ = ("T_GANG_S", "GangAtomicity")

T_GANG_S = 30.0

Gang = tuple[str, str]
"""Namespace and name."""


class GangAtomicity(Checker):
    """No gang that was never whole has some bound pods, but fewer than its minimum, for longer than T_gang after the latest fault.

    Today nothing keeps a journal of placements and nothing takes a half-bound gang back: a gang that has lost a pod, or whose minimum was
    raised, before it was whole is not judged.
    """

    def __init__(self, report: Report, lookup: Lookup, now: Callable[[], float]) -> None:
        super().__init__(report, lookup, now)
        self._bound: dict[Gang, dict[str, str]] = {}
        self._partial_since: dict[Gang, float] = {}
        self._excused: set[str] = set()
        self._disturbed_at = float("-inf")

    def disturbed(self) -> None:
        self._disturbed_at = self.now()

    def changed(self, change: Change) -> None:
        if change.resource.plural == "podgangs":
            gang = change.key.namespace, change.key.name
            if change.new is None:
                self._partial_since.pop(gang, None)
            else:
                self._judge(gang)
        elif change.resource.plural == "pods" and not change.resource.group:
            self._pod(change)
        self._tick()

    def sent(self, record: CallRecord) -> None:
        self._tick()

    def _pod(self, change: Change) -> None:
        pod, before = change.new.obj if change.new is not None else None, change.old.obj if change.old is not None else None
        known = pod or before
        name = mapping(known, "metadata", "labels").get(PODGANG, "") if known is not None else ""
        if known is None or not name:
            return
        gang = change.key.namespace, name
        bound = self._bound.setdefault(gang, {})
        uid = known["metadata"]["uid"]
        counts = pod is not None and node_of(pod) != "" and not is_leaving(pod) and not is_finished(pod)
        if counts == (uid in bound):
            return
        if counts:
            bound[uid] = clique_of(known)
        else:
            del bound[uid]
            self._excuse(gang)
        self._judge(gang)

    def _excuse(self, gang: Gang) -> None:
        found = self._gang(gang)
        if found is not None:
            self._excused.add(found["metadata"]["uid"])

    def _gang(self, gang: Gang) -> Object | None:
        return self.lookup.get("scheduler.grove.io", "podgangs", *gang)

    def _judge(self, gang: Gang) -> None:
        found, bound = self._gang(gang), Counter(self._bound.get(gang, {}).values())
        if found is None:
            return
        uid = found["metadata"]["uid"]
        minimums = {group["name"]: group.get("minReplicas", 0) for group in found["spec"].get("podgroups", ())}
        # A gang is made without groups; they are filled in later.
        if minimums and all(bound[name] >= least for name, least in minimums.items()):
            self._excused.add(uid)
        if not bound or uid in self._excused:
            self._partial_since.pop(gang, None)
        else:
            self._partial_since.setdefault(gang, self.now())

    def _tick(self) -> None:
        now = self.now()
        for gang, since in list(self._partial_since.items()):
            if now > max(since, self._disturbed_at) + T_GANG_S:
                del self._partial_since[gang]
                self.report("GangAtomicity", f"gang {gang[1]} has only a part of its minimum on nodes since {since:.3f} s")
