"""python -m hack.docs PAGE...: run the commands of pages on a copy of the checkout, as the tests do.

Pages run in the order in which they are given, those for the same environment on the same machine."""

import argparse
import contextlib
import sys
import tempfile
from pathlib import Path

from hack.codegen.files import ROOT
from hack.docs.machine import reader
from hack.docs.pages import ENVIRONMENTS, PageError, sessions
from hack.docs.run import Machine, PageFailed, run
from hack.kube.binaries import BinariesMissing


def main() -> int:
    """Exit code: 0 all ran, 1 a block failed or a page cannot be read, 2 wrong arguments."""
    options = _parser().parse_args()
    try:
        with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as stack:
            machines: dict[str, Machine] = {}
            for page in options.pages:
                for session in sessions(Path(page).resolve(), ROOT):
                    here = session.environment
                    if options.on and here not in options.on:
                        continue
                    if here not in machines:
                        machines[here] = stack.enter_context(reader(Path(folder) / here, here))
                    for place, seconds in run(session, machines[here], timeout_s=options.timeout):
                        print(f"{place:40} {seconds:6.1f} s", flush=True)
                    if options.verbose:
                        print((machines[here].work / "output").read_text(errors="replace"))
    except (BinariesMissing, PageError, PageFailed) as error:
        print(error, file=sys.stderr)
        return 1
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m hack.docs", description="Runs the commands of pages of the documentation")
    parser.add_argument("pages", nargs="+", metavar="PAGE")
    parser.add_argument("--on", action="append", choices=ENVIRONMENTS, help="only blocks for this environment; may be repeated")
    parser.add_argument("--timeout", type=float, default=900.0, metavar="SECONDS", help="for each block (default 900)")
    parser.add_argument("-v", "--verbose", action="store_true", help="also print what the commands printed")
    return parser


if __name__ == "__main__":
    sys.exit(main())
