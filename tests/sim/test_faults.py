"""Faults as data: their text, drawing, counting, and what each does to a call or a stream."""

from random import Random

import pytest

from sim.faults.desk import FaultDesk
from sim.faults.plan import DEFAULT_KINDS, Fault, FaultKind, draw, parse
from sim.sweeps.runner import shrunk

K = FaultKind
PROCESSES, RESOURCES = ("controllers-0", "scheduler-0"), ("pods", "podgangs")


def rng(seed: int) -> Random:
    return Random(seed)  # noqa: S311 - reproducible


def test_faults_survive_as_text() -> None:
    faults = draw(rng(1), PROCESSES, RESOURCES, K, count=300, span_s=50.0)
    assert {f.kind for f in faults} == set(K)
    assert [parse(str(f)) for f in faults] == faults


BAD = ("", "nothing", "crash nth", "crash when=3", "crash nth=x", "crash nth=0", "crash nth=-1", "crash nth=3 nth=4",
       f"crash nth={'9' * 5000}",
       "pause at=nan", "pause seconds=inf", "pause seconds=-1")  # fmt: skip


@pytest.mark.parametrize("text", BAD, ids=range(len(BAD)))
def test_bad_texts_are_refused(text: str) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - several texts
        parse(text)


def test_drawing_is_a_matter_of_the_seed() -> None:
    one, same, other = (draw(rng(seed), PROCESSES, RESOURCES, DEFAULT_KINDS, count=9, span_s=5.0) for seed in (4, 4, 5))
    assert one == same != other
    assert {K.DROP, K.STALE, K.REORDER}.isdisjoint(DEFAULT_KINDS)


def met_by(fault: Fault, *calls: tuple[str, str, str]) -> list[bool]:
    """Which of the calls the fault meets."""
    desk = FaultDesk([fault], lambda fault: None)
    found = [desk.call(*call) for call in calls]
    return [f.ending is not None or f.crash is not None or f.delay_s > 0 for f in found]


WRITE, READ, OTHER = ("controllers-0", "patch", "pods"), ("controllers-0", "get", "pods"), ("scheduler-0", "bind", "pods")
LEASE = ("controllers-0", "update", "leases")


def test_a_fault_counts_the_calls_that_it_could_meet() -> None:
    assert met_by(Fault(K.CONFLICT, nth=2, count=2), WRITE, READ, LEASE, OTHER, WRITE, WRITE) == [False, False, False, True, True, False]
    assert met_by(Fault(K.CONFLICT, "scheduler-0"), WRITE, OTHER) == [False, True]
    assert met_by(Fault(K.CONFLICT, verb="get"), WRITE, READ) == [False, True]
    assert met_by(Fault(K.CONFLICT, resource="leases"), WRITE, LEASE) == [False, True]


def test_a_process_dies_once() -> None:
    assert met_by(Fault(K.CRASH, nth=2, count=5), WRITE, WRITE, WRITE) == [False, True, False]


def test_slowness_adds_up_and_nothing_happens_after_the_end() -> None:
    seen: list[Fault] = []
    desk = FaultDesk([Fault(K.SLOW, seconds=1.0, count=9), Fault(K.SLOW, seconds=2.0, count=9)], seen.append)
    assert desk.call(*WRITE).delay_s == 3.0
    assert len(seen) == 2
    desk.end()
    assert desk.call(*WRITE).delay_s == 0.0


def test_events_are_counted_over_all_streams_of_a_resource() -> None:
    desk = FaultDesk([Fault(K.DROP, resource="pods", nth=2, count=2)], lambda fault: None)
    first, second, nodes = desk.stream("a", "pods"), desk.stream("a", "pods"), desk.stream("a", "nodes")
    assert [len(s.hits()) for s in (first, second, nodes, first, second)] == [0, 1, 0, 1, 0]


def test_shrinking_finds_what_is_needed() -> None:
    faults = [Fault(K.COMPACT, at=float(i)) for i in range(20)]
    needed = {faults[3], faults[17]}
    assert set(shrunk(faults, lambda some: needed <= set(some))) == needed
    assert shrunk(faults, lambda some: True) == []
    assert shrunk(faults[:2], lambda some: len(some) == 2) == faults[:2]
