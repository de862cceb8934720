"""`grovekeeper planner`: plays recorded inputs to Planner and tells what it decides, and why."""

import argparse
import json
import sys
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from api.fielderrors import printable
from controllers.planner.config.strict import late_errors
from controllers.planner.replay.case import Case, parse_case
from controllers.planner.replay.compare import DECISION, differences
from controllers.planner.replay.decode import CaseError, read_object
from controllers.planner.replay.explain import explained
from controllers.planner.replay.run import Played, TraceError, play, record_of, to_json
from controllers.planner.replay.vectors import Outcome, check_vector

__all__ = ("add_parser", "explain", "replay")

DIFFERS, WRONG, INVALID = 1, 2, 4
PROGRESS_S = 0.5
SHOWN = 20


class _Unusable(Exception):
    """A file that cannot be used; the text names it and what is wrong."""


def add_parser(commands: Any) -> None:
    """Adds the command to the argument parser of `grovekeeper`."""
    parser: argparse.ArgumentParser = commands.add_parser(
        "planner",
        help="replay and explain decisions of Planner",
        description="Plays recorded inputs to Planner with a virtual clock: nothing is read from a cluster and nothing is written.",
    )
    tasks = parser.add_subparsers(dest="task", required=True, metavar="TASK")
    _add_replay(tasks)
    _add_explain(tasks)


def _add_replay(tasks: Any) -> None:
    parser: argparse.ArgumentParser = tasks.add_parser(
        "replay",
        help="what Planner decides on a trace",
        description="Prints a JSON line for every tick of a trace: what was decided and why. Exit code 1: something differs from "
        "--expected or from recorded calls, 4: a file cannot be used, with its name, line and field on standard error.",
    )
    parser.add_argument("config", nargs="?", metavar="CONFIG", help="JSON of a case, or of a planner configuration")
    parser.add_argument("trace", nargs="?", metavar="TRACE", help="JSON lines, what is read at each tick; - for standard input")
    _add_set(parser)
    parser.add_argument("--expected", metavar="FILE", help="compare with this output instead of printing")
    parser.add_argument("--decisions-only", action="store_true", help="with --expected: only when, and how many replicas")
    parser.add_argument("--rtol", type=_tolerance, default=1e-6, help="relative tolerance of floats (default 1e-6)")
    vectors_help = "recorded calls of single functions to make again, a line for each; may be repeated; without CONFIG and TRACE"
    parser.add_argument("--vectors", action="append", default=[], metavar="FILE", help=vectors_help)
    parser.set_defaults(run=replay)


def _add_explain(tasks: Any) -> None:
    parser: argparse.ArgumentParser = tasks.add_parser(
        "explain",
        help="why Planner decides as it does on one tick",
        description="Tells in words what one tick of a trace read, which rule and which threshold applied, which bound changed the number, "
        "and what is written. Exit code 4: a file cannot be used, or the trace has no such tick.",
    )
    parser.add_argument("config", metavar="CONFIG", help="JSON of a case, or of a planner configuration")
    parser.add_argument("trace", metavar="TRACE", help="JSON lines, what is read at each tick; - for standard input")
    parser.add_argument("--tick", type=int, required=True, metavar="N", help="number of the tick, from 0; negative: from the end")
    _add_set(parser)
    parser.set_defaults(run=explain)


def _add_set(parser: argparse.ArgumentParser) -> None:
    set_help = "a setting instead of the configuration's; the value as JSON, else as text; may be repeated"
    parser.add_argument("--set", action="append", type=_setting, default=[], metavar="KEY=VALUE", help=set_help)


def replay(options: argparse.Namespace) -> int:
    """0: done, or nothing differs; 1: something differs; 2: wrong arguments; 4: a file cannot be used."""
    if options.vectors and options.config is None:
        return _guarded(lambda: _vectors(options.vectors, options.rtol))
    if options.vectors or options.trace is None:
        sys.stderr.write("error: give CONFIG and TRACE, or --vectors alone\n")
        return WRONG
    if options.expected is not None:
        return _guarded(lambda: _compared(options))
    return _guarded(lambda: _printed(options))


def explain(options: argparse.Namespace) -> int:
    """0, or 4: a file cannot be used, or there is no such tick."""
    return _guarded(lambda: _explained(options))


def _printed(options: argparse.Namespace) -> int:
    played = None
    for played in _played(options):
        print(to_json(record_of(played)))
    if played is None:
        sys.stderr.write(f"note: {options.trace} is empty, so there is no tick\n")
    return 0


def _compared(options: argparse.Namespace) -> int:
    """Tells the first differences on standard output, and how many there are."""
    expected = list(_records(options.expected))
    found: list[str] = []
    ticks = 0
    for played in _played(options):
        ticks += 1
        if played.index >= len(expected):
            continue
        wanted = expected[played.index]
        if options.decisions_only:
            wanted = {key: value for key, value in wanted.items() if key in DECISION}
        found.extend(f"tick {played.index}{text}" for text in differences(wanted, _plain(played), options.rtol))
    if ticks != len(expected):
        found.append(f"{len(expected)} ticks != {ticks}")
    print("".join(f"{printable(text)}\n" for text in found[:SHOWN]) + f"{ticks} ticks, {len(found)} differences")
    return DIFFERS if found else 0


def _plain(played: Played) -> dict[str, Any]:
    """As a reader of the output would see it."""
    return json.loads(to_json(record_of(played)))


def _explained(options: argparse.Namespace) -> int:
    wanted: int = options.tick
    if wanted < 0:
        if options.trace == "-":
            raise _Unusable("--tick: standard input is read once only, so count from the start of it")
        wanted += sum(1 for _ in _played(options))
    case = _case(options)
    with _naming(options):
        for text in explained(case, _lines(options.trace), wanted):
            print(text)
            return 0
    raise _Unusable(f"{options.trace}: there is no tick {options.tick}")


def _vectors(names: list[str], rtol: float) -> int:
    counts = dict.fromkeys(Outcome, 0)
    for name in names:
        for number, text in _numbered(name):
            try:
                check = check_vector(text, rtol)
            except CaseError as error:
                raise _Unusable(f"{name}:{number}: {error}") from None
            counts[check.outcome] += 1
            text = f"{name}:{number}: {check.function}: {check.outcome}" + (f": {check.detail}" if check.detail else "")
            print(printable(text))
    sys.stderr.write(", ".join(f"{count} {outcome}" for outcome, count in counts.items()) + "\n")
    return DIFFERS if counts[Outcome.DIFFERS] or counts[Outcome.UNKNOWN] else 0


def _played(options: argparse.Namespace) -> Iterator[Played]:
    """Ticks of the trace. Notes go to standard error, progress too if that is a terminal."""
    case = _case(options)
    is_terminal, told = sys.stderr.isatty(), time.monotonic()
    try:
        with _naming(options):
            for played in play(case, _lines(options.trace)):
                yield played
                if is_terminal and time.monotonic() - told > PROGRESS_S:
                    told = time.monotonic()
                    sys.stderr.write(f"\r{played.index + 1} ticks, {played.given.now_s / 3600:.1f} simulated hours\x1b[K")
                    sys.stderr.flush()
    finally:
        if is_terminal:
            sys.stderr.write("\r\x1b[K")


@contextmanager
def _naming(options: argparse.Namespace) -> Generator[None]:
    """Errors of a replay with the file that they are in, and its line."""
    try:
        yield
    except TraceError as error:
        raise _Unusable(f"{options.trace}:{error.number}: {error}") from None
    except CaseError as error:
        raise _Unusable(f"{options.config}: {error}") from None


def _case(options: argparse.Namespace) -> Case:
    try:
        case = parse_case(Path(options.config).read_bytes(), dict(options.set))
    except CaseError as error:
        raise _Unusable(f"{options.config}: {error}") from None
    except OSError as error:
        raise _Unusable(f"{options.config}: {error.strerror}") from None
    for note in (*case.config.notes, *(f"outside a replay this is refused: {problem}" for problem in late_errors(case.config))):
        sys.stderr.write(f"note: {printable(note)}\n")
    return case


def _records(name: str) -> Iterator[dict[str, Any]]:
    for number, text in _numbered(name):
        try:
            yield read_object(text)
        except CaseError as error:
            raise _Unusable(f"{name}:{number}: {error}") from None


def _numbered(name: str) -> Iterator[tuple[int, bytes]]:
    return ((number, text) for number, text in enumerate(_lines(name), 1) if text.strip())


def _lines(name: str) -> Iterator[bytes]:
    """Of a file, one by one; `-` is standard input."""
    try:
        if name == "-":
            if sys.stdin is None:
                raise _Unusable("standard input is closed")
            yield from sys.stdin.buffer
            return
        with open(name, "rb") as lines:
            yield from lines
    except OSError as error:
        raise _Unusable(f"{name}: {error.strerror}") from None


def _guarded(task: Callable[[], int]) -> int:
    """What was printed before an error stays printed."""
    code, problem = _attempted(task)
    sys.stdout.flush()
    if problem is not None:
        sys.stderr.write("\n".join(map(printable, f"error: {problem}".split("\n"))) + "\n")
    return code


def _attempted(task: Callable[[], int]) -> tuple[int, str | None]:
    try:
        return task(), None
    except _Unusable as error:
        return INVALID, str(error)


def _setting(text: str) -> tuple[str, Any]:
    key, found, value = text.partition("=")
    if not found or not key:
        raise argparse.ArgumentTypeError(f"{text!r} is not KEY=VALUE")
    try:
        return key, json.loads(value)
    except ValueError:
        return key, value


def _tolerance(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number from 0 to below 1")
    return value
