"""`make bench-planner`: process CPU of Planner's ticks by kind, import time, memory, and memory over many ticks.

The figures beside are those of Planner 1.5.1 on recorded traces of the same kinds, on two busy cores.
"""

import argparse
import gc
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

from controllers.planner.replay.case import Line, parse_case, parse_line
from controllers.planner.replay.run import Replay
from hack.bench.planner_cases import case, trace

TICKS = 180
ROOT = Path(__file__).parents[2]
IMPORT = """
import time
started = time.process_time()
from controllers.planner.replay.case import parse_case, parse_line
from controllers.planner.replay.run import Replay
imported = time.process_time() - started
from hack.bench.planner_cases import case, trace
replay = Replay(parse_case(case(load_predictor={predictor!r}), {{}}))
for line in trace(60):
    replay.play(parse_line(line))
from hack.bench.planner import resident_mib
print(imported, resident_mib())
"""


class Kind(NamedTuple):
    """Ticks of one sort. them: CPU of Planner 1.5.1 in microseconds, median and 90th percentile. goal_us: of the median."""

    name: str
    settings: dict[str, Any]
    throughput: bool
    them: tuple[int, int] | None
    goal_us: int | None = None
    agg: bool = False


LOAD_ONLY: dict[str, Any] = {"enable_load_scaling": True, "enable_throughput_scaling": False}
BOTH: dict[str, Any] = {"enable_load_scaling": True, "load_predictor": "constant"}
AGG = {"mode": "agg"}
KINDS = (
    Kind("easy, load loop, disagg", {"optimization_target": "throughput"}, False, (590, 730)),
    Kind("sla, load loop, disagg", LOAD_ONLY, False, (1_720, 2_780), 800),
    Kind("sla, throughput and load loop, disagg", BOTH, True, (14_500, 16_100), 7_000),
    Kind("sla, load loop, agg", {**LOAD_ONLY, **AGG}, False, (6_310, 8_820), agg=True),
    Kind("sla, throughput and load loop, agg", {**BOTH, **AGG}, True, (30_000, 37_500), 7_000, agg=True),
    Kind("throughput only, constant: throughput tick", {"load_predictor": "constant"}, True, (4_610, 5_920)),
    Kind("throughput only, constant: other tick", {"load_predictor": "constant"}, False, (660, 1_010)),
    Kind("throughput only, arima: throughput tick", {"load_predictor": "arima"}, True, (73_700, 91_700), 35_000),
)


def resident_mib() -> float:
    """Of this process."""
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return pages * 4096 / 2**20


def main() -> int:
    """Exit code 0: measured; whether goals are reached stands beside the figures."""
    parser = argparse.ArgumentParser(prog="make bench-planner ARGS=", description=__doc__)
    parser.add_argument("--samples", type=int, default=64, help="max_num_fpm_samples (default 64, as configurations have it)")
    parser.add_argument("--ticks", type=int, default=100_000, help="ticks over which memory is measured (default 100000; 0: none)")
    options = parser.parse_args()
    print(f"{'CPU of a tick, microseconds':<46} {'median':>8} {'p90':>8} {'max':>9}   {'1.5.1':>7} {'p90':>7}")
    for kind in KINDS:
        _print_kind(kind, options.samples)
    for predictor in ("constant", "arima"):
        imported, resident = _fresh(predictor)
        print(f"import {imported:.2f} s of CPU (goal: 1 s), {resident:.0f} MiB after 60 ticks with {predictor}")
    if options.ticks:
        _print_memory(options.ticks)
    return 0


def _print_kind(kind: Kind, samples: int) -> None:
    times = _times(kind, samples)
    first, rest = times[0], sorted(times[5:])
    them = "" if kind.them is None else f"{kind.them[0]:>7} {kind.them[1]:>7}"
    goal = "" if kind.goal_us is None else f"   goal {kind.goal_us}: " + ("reached" if median(rest) <= kind.goal_us else "NOT reached")
    print(f"{kind.name:<46} {median(rest):>8.0f} {rest[int(0.9 * len(rest))]:>8.0f} {rest[-1]:>9.0f}   {them}{goal}")
    if kind.settings.get("load_predictor") == "arima":
        print(f"{'  first tick with a fit':<46} {max(first, *times[:5]):>8.0f} {'':>18}   {1_757_000:>7}")


def _times(kind: Kind, samples: int) -> list[float]:
    """Of the ticks of this kind, in order, microseconds of process CPU."""
    replay = Replay(parse_case(case(max_num_fpm_samples=samples, **kind.settings), {}))
    lines = _decoded(TICKS * (6 if kind.throughput else 1), agg=kind.agg)
    times: list[float] = []
    gc.collect()
    for line in lines:
        started = time.process_time_ns()
        played = replay.play(line)
        took = time.process_time_ns() - started
        if played.tick.run_throughput_scaling is kind.throughput:
            times.append(took / 1000)
    return times


def _decoded(ticks: int, *, agg: bool) -> Sequence[Line]:
    return [parse_line(text) for text in trace(ticks, agg=agg)]


def _fresh(predictor: str) -> tuple[float, float]:
    """CPU seconds of importing and MiB after some ticks, of a process of its own."""
    done = subprocess.run([sys.executable, "-c", IMPORT.format(predictor=predictor)], cwd=ROOT, check=True, capture_output=True, text=True)
    imported, resident = map(float, done.stdout.split())
    return imported, resident


def _print_memory(ticks: int) -> None:
    """With the settings that keep most: both loops, ARIMA, a plugin's worth of samples for each kind of work."""
    replay = Replay(parse_case(case(enable_load_scaling=True, load_predictor="kalman", load_adjustment_interval_seconds=5), {}))
    lines = _decoded(1000, agg=False)
    step = max(1, ticks // 5)
    started = time.process_time()
    for tick in range(ticks):
        replay.play(lines[tick % len(lines)])
        if (tick + 1) % step == 0:
            gc.collect()
            used = time.process_time() - started
            print(f"after {tick + 1:>7} ticks {resident_mib():7.1f} MiB, {used / (tick + 1) * 1e6:.0f} us of CPU per tick", flush=True)


if __name__ == "__main__":
    sys.exit(main())
