"""FencedWrites: who does not hold the lease of its kind of process writes nothing."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from api.plan import Key
from sim.apiserver.objects import mapping
from sim.apiserver.resources import Lookup
from sim.apiserver.storage import Change
from sim.cluster.calls import CallRecord
from sim.invariants.checker import Checker, Report

__all__ = ("FencedWrites",)


@dataclass(frozen=True, slots=True)
class _Term:
    """A lease as the server has it. Seconds of virtual time."""

    holder: str
    renewed_at: float
    duration_s: float


class FencedWrites(Checker):
    """No write leaves a process after the deadline of its lease, or while another one holds it.

    Judged when it leaves, by what the server has stored by then: that is when the fence promises something. A lease that was deleted by
    hand is respected for as long as it would have lasted.
    """

    def __init__(self, report: Report, lookup: Lookup, now: Callable[[], float]) -> None:
        super().__init__(report, lookup, now)
        self.leases: Mapping[str, Key] = {}
        self._terms: dict[Key, _Term] = {}

    def changed(self, change: Change) -> None:
        if change.resource.plural != "leases" or change.new is None:
            return
        spec = mapping(change.new.obj, "spec")
        term = _Term(spec.get("holderIdentity") or "", self.now(), float(spec.get("leaseDurationSeconds") or 0))
        self._terms[Key(change.key.namespace, change.key.name)] = term

    def sent(self, record: CallRecord) -> None:
        lease = self.leases.get(record.process)
        if not record.is_write or record.target.plural == "leases" or lease is None:
            return
        holder, term = f"{record.process}_{record.life}", self._terms.get(lease)
        what = f"{holder} sends {record.method} {record.path}"
        if term is None or term.holder != holder:
            self.report("FencedWrites", f"{what} while {term.holder if term is not None and term.holder else 'nobody'} holds the lease")
        elif self.now() >= term.renewed_at + term.duration_s:
            self.report("FencedWrites", f"{what} {self.now() - term.renewed_at:.3f} s after its last renewal")
