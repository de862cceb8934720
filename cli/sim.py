"""`grovekeeper sim`: runs the whole system in a simulated cluster with faults, many times, and reports the first broken promise."""

import argparse
import logging
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from cli.configuration import SHIPPED, ConfigurationError, load_configuration
from cli.numbers import seconds, whole_number
from cli.programs import PROGRAMS
from sim.cluster.cluster import Setup
from sim.faults.plan import DEFAULT_KINDS, Fault, FaultKind, parse
from sim.sweeps.runner import REST_S, Result, drawn, run_scenario, shrunk
from sim.sweeps.scenarios import SCENARIOS
from sim.sweeps.sieve import SWEEPS, NotClean, clean_run, faults_of, swept

__all__ = ("add_parser", "run")

FAILED, INVALID = 1, 4
MAX_SEED, MAX_FAULTS, MAX_REPLICAS, MAX_REST_S = 10**9, 10_000, 20, 86_400
SWEPT = ("create", "scale-up", "scale-down", "delete")
EVENTS = 50
LEASES = "leases"
"""Renewals are left out of the events that are shown."""
PROGRESS_S = 10.0


def add_parser(commands: Any) -> None:
    """Adds the command to the argument parser of `grovekeeper`."""
    parser: argparse.ArgumentParser = commands.add_parser(
        "sim",
        help="run everything in a simulated cluster with faults",
        description="Runs controllers and scheduler with an embedded API server, simulated nodes and virtual time, once for each seed, and "
        "checks the invariants after every step. The same arguments always give the same run. Exit code 1 when a promise was broken.",
    )
    parser.add_argument("--config", metavar="FILE", help="OperatorConfiguration; that of manifests/config without it")
    parser.add_argument("--scenario", action="append", choices=sorted(SCENARIOS), help="may be repeated (default: all, in turn)")
    parser.add_argument("--seed", type=whole_number(MAX_SEED, 0), default=0, help="the first seed (default 0)")
    parser.add_argument("--seeds", type=whole_number(MAX_SEED), default=1, help="how many (default 1)")
    kinds_help = f"comma-separated kinds to draw from, `all` or `none` (default: {','.join(DEFAULT_KINDS)})"
    parser.add_argument("--faults", default="", metavar="KINDS", help=kinds_help)
    parser.add_argument("--count", type=whole_number(MAX_FAULTS, 0), default=6, help="faults drawn for each seed (default 6)")
    fault_help = "one fault, such as 'crash process=controllers-0 nth=3'; may be repeated; then none are drawn"
    parser.add_argument("--fault", action="append", default=[], metavar="FAULT", help=fault_help)
    parser.add_argument("--replicas", type=whole_number(MAX_REPLICAS), default=2, help="processes of each component (default 2)")
    parser.add_argument("--sweep", choices=SWEEPS, help="instead of seeds: one fault at each place where it can happen, one process each")
    parser.add_argument("--every", type=whole_number(MAX_SEED), default=1, help="with --sweep: only each n-th place (default 1)")
    rest_help = f"virtual seconds at the end in which nothing may be written (default {REST_S:.0f})"
    parser.add_argument("--rest", type=seconds(MAX_REST_S), default=REST_S, metavar="SECONDS", help=rest_help)
    parser.add_argument("--log", action="store_true", help="print the event log of each run")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """0: all seeds went well; 1: one did not; 4: the arguments cannot be used."""
    try:
        config = load_configuration(options.config or str(SHIPPED))
        kinds = kinds_of(options.faults)
        given = [_known(parse(text), options.replicas) for text in options.fault]
    except (ConfigurationError, ValueError) as error:
        sys.stderr.write(f"error: {error}\n")
        return INVALID
    setup = Setup(PROGRAMS, config, replicas=options.replicas)
    logging.disable(logging.CRITICAL)
    try:
        return sweep(options, setup) if options.sweep else seeds(options, setup, kinds, given)
    except NotClean as error:
        sys.stderr.write(f"error: {error}\n")
        return FAILED
    finally:
        logging.disable(logging.NOTSET)


def seeds(options: argparse.Namespace, setup: Setup, kinds: Sequence[FaultKind], given: Sequence[Fault]) -> int:
    """One run for each seed, until one fails."""
    names = options.scenario or list(SCENARIOS)
    started = told = time.monotonic()
    virtual_s = 0.0
    for done, seed in enumerate(range(options.seed, options.seed + options.seeds), 1):
        name = names[seed % len(names)]
        faults = given or drawn(setup, SCENARIOS[name], seed, kinds, options.count)
        result = run_scenario(setup, name, seed, faults, rest_s=options.rest)
        virtual_s += result.seconds
        if options.log:
            print("\n".join(result.log))
        if result.violation is not None:
            report(options, setup, name, seed, faults, result)
            return FAILED
        if time.monotonic() - told > PROGRESS_S:
            told = time.monotonic()
            progress = f"{done} of {options.seeds} seeds, {virtual_s / 3600:.1f} simulated hours in {told - started:.0f} s"
            print(
                progress, file=sys.stderr, flush=True
            )  # what is printed on standard output is a function of the seed, but for its last line
    print(f"{options.seeds} seeds, {virtual_s / 3600:.1f} simulated hours in {time.monotonic() - started:.1f} s: every promise was kept")
    return 0


def sweep(options: argparse.Namespace, setup: Setup) -> int:
    """Every fault of a sweep, one at a time; all that fail are told."""
    setup, failed, done = replace(setup, replicas=1), 0, 0
    for name in options.scenario or SWEPT:
        clean = clean_run(setup, name, options.seed)
        for fault in list(faults_of(clean, options.sweep))[:: options.every]:
            violation, _ = swept(clean, fault)
            done += 1
            if violation is not None:
                failed += 1
                print(f"scenario {name}, seed {options.seed}, --fault '{fault}': {str(violation)[:1000]}", flush=True)
        print(f"{options.sweep} of {name}: {done} runs so far, {failed} failed", flush=True)
    return FAILED if failed else 0


def _known(fault: Fault, replicas: int) -> Fault:
    """A fault that can happen. Raises ValueError where it names a process that there is not."""
    names = [f"{component}-{number}" for component in PROGRAMS for number in range(replicas)]
    if fault.process and fault.process not in names:
        raise ValueError(f"fault {fault}: there is no process {fault.process}; there are {', '.join(names)}")
    return fault


def kinds_of(text: str) -> tuple[FaultKind, ...]:
    """Raises ValueError."""
    if text in ("", "all", "none"):
        return {"": DEFAULT_KINDS, "all": tuple(FaultKind), "none": ()}[text]
    return tuple(FaultKind(kind) for kind in text.split(","))


def report(options: argparse.Namespace, setup: Setup, name: str, seed: int, faults: Sequence[Fault], result: Result) -> None:
    """Prints what broke, with as few faults as show it."""
    assert result.violation is not None  # noqa: S101 - the caller has looked
    broken = result.violation.invariant
    print(f"seed {seed}, scenario {name}: {result.violation}", flush=True)

    def fails(some: Sequence[Fault]) -> bool:
        again = run_scenario(setup, name, seed, some, rest_s=options.rest)
        return again.violation is not None and again.violation.invariant == broken

    needed = shrunk(faults, fails)
    last = run_scenario(setup, name, seed, needed, rest_s=options.rest)
    print(f"\nwith {len(needed)} of {len(faults)} faults: {last.violation}\n\nthe last {EVENTS} events:")
    print("\n".join(f"  {line}" for line in [line for line in last.log if LEASES not in line][-EVENTS:]))
    flags = " ".join(f"--fault '{fault}'" for fault in needed) or "--faults none"
    config = f" --config {options.config}" if options.config else ""
    chosen = f"--scenario {name} --seed {seed} --replicas {options.replicas} --rest {options.rest:g} {flags}"
    print(f"\nto run this again:\n  grovekeeper sim{config} {chosen}")
