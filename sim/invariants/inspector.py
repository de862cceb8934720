"""All checkers together."""

from collections.abc import Callable, Mapping

from api.plan import Key
from sim.apiserver.resources import Lookup
from sim.apiserver.storage import Change
from sim.cluster.calls import CallRecord
from sim.invariants.binding import NoDoubleBind, NoOvercommit
from sim.invariants.fencing import FencedWrites
from sim.invariants.gangs import GangAtomicity
from sim.invariants.restarts import DeleteWithPrecondition, PodsFollowReplicas
from sim.invariants.violation import Violation
from sim.invariants.work import BoundedWork, Writes
from sim.invariants.writers import ReplicasLeftAlone

__all__ = ("Inspector",)

LIMIT = 100
"""Violations that are kept of one run."""


class Inspector:
    """Feeds every change and request to every checker. `violations`: in the order in which they happened."""

    def __init__(self, lookup: Lookup, now: Callable[[], float]) -> None:
        self.violations: list[Violation] = []
        self._now = now
        self._fences = FencedWrites(self._report, lookup, now)
        self._writes = Writes(self._report, lookup, now)
        makers = (NoDoubleBind, NoOvercommit, GangAtomicity, PodsFollowReplicas, DeleteWithPrecondition, ReplicasLeftAlone, BoundedWork)
        self._checkers = [*(make(self._report, lookup, now) for make in makers), self._fences, self._writes]

    def begin(self, leases: Mapping[str, Key]) -> None:
        """`leases`: that each process competes for, by its name."""
        self._fences.leases = leases

    @property
    def writes(self) -> int:
        """Writes of our processes so far, without those of leases."""
        return self._writes.count

    @property
    def last_write(self) -> str:
        return self._writes.last

    def add(self, invariant: str, text: str) -> None:
        """Notes a violation that was found elsewhere."""
        self._report(invariant, text)

    def changed(self, change: Change) -> None:
        """See Checker."""
        for checker in self._checkers:
            checker.changed(change)

    def sent(self, record: CallRecord) -> None:
        for checker in self._checkers:
            checker.sent(record)

    def done(self, record: CallRecord) -> None:
        for checker in self._checkers:
            checker.done(record)

    def disturbed(self) -> None:
        for checker in self._checkers:
            checker.disturbed()

    def _report(self, invariant: str, text: str) -> None:
        if len(self.violations) < LIMIT:
            self.violations.append(Violation(invariant, text, self._now()))
