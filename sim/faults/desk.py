"""Decides for each call and each event of a watch which faults of the list meet it, and counts for that what has passed."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from sim.faults.plan import CALLS, STREAMS, Fault, FaultKind

__all__ = ("READS", "UNCOUNTED", "CallFaults", "FaultDesk", "StreamFaults")

READS = frozenset({"get", "list", "watch"})
UNCOUNTED = frozenset({"leases", "events"})


@dataclass(slots=True)
class _Counter:
    """A fault and how many calls or events it could have met so far."""

    fault: Fault
    passed: int = 0

    def hit(self) -> bool:
        self.passed += 1
        # Dying and freezing begin once, whatever `count` says.
        width = 1 if self.fault.kind in (FaultKind.CRASH, FaultKind.FREEZE) else self.fault.count
        width = 1 if self.fault.kind is FaultKind.STALE else width
        return self.fault.nth <= self.passed < self.fault.nth + width


@dataclass(frozen=True, slots=True)
class CallFaults:
    """What meets one call: at most one fault that decides its end, a delay, and whether the process dies of it."""

    ending: Fault | None = None
    delay_s: float = 0.0
    crash: Fault | None = None


@dataclass(slots=True)
class StreamFaults:
    """Faults of one resource's watches in one process. They count events over all streams of that resource."""

    counters: list[_Counter] = field(default_factory=list[_Counter])

    def hits(self) -> list[Fault]:
        """Faults that meet the next event."""
        return [counter.fault for counter in self.counters if counter.hit()]


class FaultDesk:
    """`met`: told of each effect of a fault. Nothing happens any more after `end`."""

    def __init__(self, faults: Sequence[Fault], met: Callable[[Fault], None]) -> None:
        self.met = met
        self._calls = [_Counter(fault) for fault in faults if fault.kind in CALLS]
        self._streams = [fault for fault in faults if fault.kind in STREAMS]
        self._by_stream: dict[tuple[str, str], StreamFaults] = {}
        self._is_over = False

    @property
    def is_over(self) -> bool:
        """Whether nothing goes wrong any more."""
        return self._is_over

    def end(self) -> None:
        """No more faults."""
        self._is_over = True

    def call(self, process: str, verb: str, resource: str) -> CallFaults:
        """Faults of one call that leaves now."""
        if self._is_over:
            return CallFaults()
        ending, delay_s, crash = None, 0.0, None
        for counter in self._calls:
            fault = counter.fault
            if not _matches(fault, process, verb, resource) or not counter.hit():
                continue
            self.met(fault)
            match fault.kind:
                case FaultKind.CRASH:
                    crash = fault
                case FaultKind.SLOW:
                    delay_s += fault.seconds
                case _:
                    ending = fault
        return CallFaults(ending, delay_s, crash)

    def stream(self, process: str, resource: str) -> StreamFaults:
        """Faults of the watches of a resource in a process."""
        key = process, resource
        if key not in self._by_stream:
            chosen = [f for f in self._streams if f.process in ("", process) and f.resource in ("", resource)]
            self._by_stream[key] = StreamFaults([_Counter(fault) for fault in chosen])
        return StreamFaults() if self._is_over else self._by_stream[key]


def _matches(fault: Fault, process: str, verb: str, resource: str) -> bool:
    if fault.process not in ("", process) or fault.resource not in ("", resource):
        return False
    if not fault.resource and resource in UNCOUNTED:
        return False
    if fault.kind is FaultKind.STALE:
        return verb in ("list", "watch") and fault.verb in ("", verb)
    return fault.verb == verb if fault.verb else verb not in READS
