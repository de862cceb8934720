"""BoundedWork: nobody repeats itself, and at rest nobody writes."""

from collections import deque
from collections.abc import Callable

from sim.apiserver.resources import Lookup
from sim.cluster.calls import CallRecord
from sim.invariants.checker import Checker, Report

__all__ = ("BoundedWork", "Writes")

WINDOW_S = 60.0
EQUAL_WRITES, EQUAL_READS = 20, 60
"""How often a process may send the same request within the window. Retries with backoff stay below."""
EXEMPT = frozenset({"leases"})


class BoundedWork(Checker):
    """No process sends one and the same request again and again."""

    def __init__(self, report: Report, lookup: Lookup, now: Callable[[], float]) -> None:
        super().__init__(report, lookup, now)
        self._times: dict[tuple[str, str, str, bytes], deque[float]] = {}

    def sent(self, record: CallRecord) -> None:
        if record.target.plural in EXEMPT:
            return
        times = self._times.setdefault((record.process, record.verb, record.path, record.body), deque())
        now = self.now()
        while times and times[0] < now - WINDOW_S:
            times.popleft()
        times.append(now)
        limit = EQUAL_WRITES if record.is_write else EQUAL_READS
        if len(times) > limit:
            times.clear()
            self.report("BoundedWork", f"{record.process} sent the same {record.verb} {record.path} {limit} times in {WINDOW_S:.0f} s")


class Writes(Checker):
    """Counts writes other than those of leases."""

    def __init__(self, report: Report, lookup: Lookup, now: Callable[[], float]) -> None:
        super().__init__(report, lookup, now)
        self.count = 0
        self.last = ""

    def sent(self, record: CallRecord) -> None:
        if record.is_write and record.target.plural not in EXEMPT:
            self.count += 1
            self.last = f"{record.process} {record.verb} {record.path}"
