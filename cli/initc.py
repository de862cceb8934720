"""`grovekeeper initc`: the startup waiter. The program parses its arguments itself, so that running it imports nothing else of ours."""

import argparse
from typing import Any

from controllers.initc.program import main

__all__ = ("add_parser", "run")


def add_parser(commands: Any) -> None:
    """Adds the command to the argument parser of `grovekeeper`."""
    parser: argparse.ArgumentParser = commands.add_parser(
        "initc",
        help="wait inside a pod until its parents are ready",
        description="Waits until every named PodClique has enough ready pods in this pod's own PodGang, then ends. Runs as the init "
        "container grove-initc of pods whose PodClique starts after others; `grovekeeper --podcliques=...` means the same. "
        "Exit codes: 0 all parents are ready, 2 wrong arguments, 5 files or environment of the pod are missing, 143 stopped.",
    )
    help_ = "full name of a PodClique and how many of its pods have to be ready; may be repeated"
    parser.add_argument("-p", "--podcliques", action="append", default=[], metavar="NAME:MINIMUM", help=help_)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Exit codes: see the program."""
    return main([f"--podcliques={value}" for value in options.podcliques])
