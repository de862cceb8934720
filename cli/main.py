"""`grovekeeper`: one entry point, one subcommand per process or task."""

import argparse
import sys
from collections.abc import Sequence

from cli import controllers, get, render, scheduler

__all__ = ("main",)


def parser() -> argparse.ArgumentParser:
    """The argument parser of all commands."""
    out = argparse.ArgumentParser(
        prog="grovekeeper",
        description="Grove-compatible controllers and a gang scheduler for LLM inference on Kubernetes.",
    )
    commands = out.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for command in (controllers, scheduler, render, get):
        command.add_parser(commands)
    return out


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs one command and returns its exit code: 0 fine, 2 wrong arguments, 4 invalid input, 5 API server unreachable."""
    options = parser().parse_args(arguments)
    try:
        return int(options.run(options))
    except BrokenPipeError:
        sys.stderr.close()
        return 0
    except KeyboardInterrupt:
        return 130


if __name__ == "__main__":
    sys.exit(main())
