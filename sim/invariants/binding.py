"""NoDoubleBind and NoOvercommit."""

from collections.abc import Callable

from sim.apiserver.objects import mapping
from sim.apiserver.resources import Lookup, ObjectKey
from sim.apiserver.storage import Change
from sim.cluster.calls import CallRecord
from sim.invariants.checker import Checker, Report, body_of, is_finished, is_ours, node_of
from sim.kubelet.admission import allocatable_of, requests_of

__all__ = ("NoDoubleBind", "NoOvercommit")


class NoDoubleBind(Checker):
    """A pod uid is bound at most once; a Binding names the uid; no process binds a pod elsewhere while its earlier bind is unanswered."""

    def __init__(self, report: Report, lookup: Lookup, now: Callable[[], float]) -> None:
        super().__init__(report, lookup, now)
        self._open: dict[str, list[tuple[CallRecord, str]]] = {}
        self._accepted: dict[str, str] = {}

    def changed(self, change: Change) -> None:
        if change.resource.plural != "pods" or change.new is None or change.old is None:
            return
        before, after = node_of(change.old.obj), node_of(change.new.obj)
        if before and after != before:
            self.report("NoDoubleBind", f"pod {change.key.name} moved from node {before} to {after or 'none'}")

    def sent(self, record: CallRecord) -> None:
        if record.verb != "bind":
            return
        uid, node = _binding(record)
        if not uid:
            self.report("NoDoubleBind", f"{record.process} binds {record.target.name} without naming its uid")
            return
        still_open = [(r, n) for r, n in self._open.get(uid, ()) if not r.is_settled]
        for other, its_node in still_open:
            same_life = (other.process, other.life) == (record.process, record.life)
            if same_life and its_node != node:
                text = f"{record.process} binds {record.target.name} to {node} while its bind to {its_node} is not answered"
                self.report("NoDoubleBind", text)
        self._open[uid] = [*still_open, (record, node)]

    def done(self, record: CallRecord) -> None:
        if record.verb != "bind" or not record.is_accepted:
            return
        uid, node = _binding(record)
        if uid in self._accepted:
            self.report("NoDoubleBind", f"pod {record.target.name} ({uid}) was bound to {self._accepted[uid]}, then to {node}")
        self._accepted[uid] = node


class NoOvercommit(Checker):
    """After a bind of ours the pods on the node ask for no more than the node has."""

    def __init__(self, report: Report, lookup: Lookup, now: Callable[[], float]) -> None:
        super().__init__(report, lookup, now)
        self._on: dict[str, dict[ObjectKey, dict[str, int]]] = {}
        self._node: dict[ObjectKey, str] = {}

    def changed(self, change: Change) -> None:
        if change.resource.plural != "pods" or change.resource.group:
            return
        pod = change.new.obj if change.new is not None else None
        node = node_of(pod) if pod is not None and not is_finished(pod) else ""
        before = self._node.get(change.key, "")
        if node == before:
            return
        if before:
            del self._on[before][change.key], self._node[change.key]
        if pod is None or not node:
            return
        self._node[change.key] = node
        self._on.setdefault(node, {})[change.key] = requests_of(pod)
        if is_ours(change):
            self._compare(node)

    def _compare(self, name: str) -> None:
        node = self.lookup.get("", "nodes", "", name)
        if node is None:
            return
        allocatable = allocatable_of(node)
        total: dict[str, int] = {}
        for amounts in self._on[name].values():
            for resource, amount in amounts.items():
                total[resource] = total.get(resource, 0) + amount
        over = sorted(r for r, amount in total.items() if amount > allocatable.get(r, 0))
        if over:
            pods = sorted(key.name for key in self._on[name])
            self.report("NoOvercommit", f"node {name} has too little {', '.join(over)} for {', '.join(pods)}")


def _binding(record: CallRecord) -> tuple[str, str]:
    body = body_of(record)
    return mapping(body, "metadata").get("uid", ""), mapping(body, "target").get("name", "")
