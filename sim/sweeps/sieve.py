"""Sweeps in the manner of Sieve (OSDI '22): one fault at every place where it can happen. The final state must be that of a clean run."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from sim.apiserver.objects import as_map
from sim.cluster.cluster import Setup
from sim.faults.plan import Fault, FaultKind
from sim.invariants.violation import Violation
from sim.sweeps.runner import WATCHED, Result, run_scenario

__all__ = ("SWEEPS", "WINDOWS", "Clean", "NotClean", "clean_run", "differences", "faults_of", "swept")

WINDOWS = (1, 5, 1000)
"""Events in a row: one, some, all."""
RESTART_S = 0.5
CRASHES, LOST_ANSWERS, FROZEN, SKIPPED = "crashes", "lost-answers", "frozen", "skipped"
SWEEPS = (CRASHES, LOST_ANSWERS, FROZEN, SKIPPED)
"""crashes: a process dies after each of its writes. lost-answers: each write is executed and not answered. frozen: watches hold back events
from each of the first ones on. skipped: they lose them for good, which no API server does without ending the watch."""
FIRST_EVENTS = (1, 4, 12)


class NotClean(Exception):
    """A promise is broken without any fault, so that a sweep has nothing to compare with."""


@dataclass(frozen=True, slots=True)
class Clean:
    """A run without faults, to compare with."""

    setup: Setup
    scenario: str
    seed: int
    result: Result


def clean_run(setup: Setup, scenario: str, seed: int) -> Clean:
    """Raises NotClean."""
    result = run_scenario(setup, scenario, seed, rest_s=0.0)
    if result.violation is not None:
        raise NotClean(f"{scenario} fails without faults: {result.violation}")
    return Clean(setup, scenario, seed, result)


def faults_of(clean: Clean, sweep: str) -> Iterator[Fault]:
    """The faults of a sweep, each for one run."""
    for process, writes in clean.result.writes.items():
        if sweep == CRASHES:
            yield from (Fault(FaultKind.CRASH, process, nth=k, seconds=RESTART_S) for k in range(1, writes + 1))
        elif sweep == LOST_ANSWERS:
            yield from (Fault(FaultKind.TIMEOUT_AFTER, process, nth=k) for k in range(1, writes + 1))
        else:
            for resource in WATCHED:
                yield from _windows(sweep, process, resource)


def _windows(sweep: str, process: str, resource: str) -> Iterator[Fault]:
    for first in FIRST_EVENTS:
        for count in WINDOWS:
            if sweep == SKIPPED:
                yield Fault(FaultKind.DROP, process, resource=resource, nth=first, count=count)
            else:
                yield Fault(FaultKind.FREEZE, process, resource=resource, nth=first, count=count)


def swept(clean: Clean, fault: Fault) -> tuple[Violation | None, Sequence[str]]:
    """Runs the scenario with the fault: what was violated (`SameEnd`: another state than without it), and the log."""
    result = run_scenario(clean.setup, clean.scenario, clean.seed, [fault], rest_s=0.0)
    if result.violation is None and (different := differences(clean.result, result)):
        result.violation = Violation("SameEnd", "; ".join(different), result.seconds)
    return result.violation, result.log


def differences(clean: Result, other: Result) -> list[str]:
    """Names of objects that are not the same, with what they are in both runs."""
    names = sorted(clean.state.keys() | other.state.keys())
    changed = [name for name in names if clean.state.get(name) != other.state.get(name)]
    return [f"{name}: {_delta(clean.state.get(name), other.state.get(name))}" for name in changed]


def _delta(one: object, two: object) -> str:
    before, after = as_map(one), as_map(two)
    if before is not None and after is not None:
        keys = sorted(before.keys() | after.keys())
        return ", ".join(f"{key} {{{_delta(before.get(key), after.get(key))}}}" for key in keys if before.get(key) != after.get(key))
    return f"{one} -> {two}"
