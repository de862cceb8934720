"""`grovekeeper`: one entry point, one subcommand per process or task."""

import argparse
import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from importlib import import_module
from typing import TextIO

from cli.version import version_line

__all__ = ("COMMANDS", "main", "parser")

COMMANDS = ("controllers", "scheduler", "install", "render", "get", "sim", "initc", "demo", "planner")
"""Modules of cli with add_parser, in the order of help. Imported when asked for: the startup waiter must not load the controllers."""


def parser(names: Sequence[str] = COMMANDS) -> argparse.ArgumentParser:
    """The argument parser of these commands."""
    out = argparse.ArgumentParser(
        prog="grovekeeper",
        description="Grove-compatible controllers and a gang scheduler for LLM inference on Kubernetes.",
    )
    out.add_argument("--version", action="version", version=version_line(), help="show the version and, in an image, its commit")
    commands = out.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for name in names:
        import_module(f"cli.{name}").add_parser(commands)
    return out


def _needed(given: Sequence[str]) -> Sequence[str]:
    """The commands whose modules these arguments are about."""
    if given[:1] == ["--version"]:
        return ()
    return given[:1] if given[:1] and given[0] in COMMANDS else COMMANDS


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs one command.

    Returns its exit code: 0 fine, 2 wrong arguments, 4 invalid input, or output that cannot be written, 5 API server unreachable.
    """
    given = list(sys.argv[1:] if arguments is None else arguments)
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:  # closed by the shell: what is said goes nowhere
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115 - for as long as the process lives
    if given and given[0].partition("=")[0] in ("--podcliques", "-p"):
        given.insert(0, "initc")  # the controllers give the init container arguments only, as Grove does
    try:
        try:
            options = parser(_needed(given)).parse_args(given)
            code = int(options.run(options))
        except SystemExit:  # of argparse: help, version, wrong arguments
            if lost := _flushed(0):
                return lost
            raise
        return _flushed(code)
    except BrokenPipeError:  # whoever read has enough
        _close(sys.stdout)
        _close(sys.stderr)
        return 0
    except OSError:
        # Where output cannot be written now either, that was it.
        if lost := _flushed(0):
            return lost
        raise
    except KeyboardInterrupt:
        return 130


def _flushed(code: int) -> int:
    """The exit code when everything printed has gone out, else 4: only at exit the interpreter would fail, with a code of its own."""
    for name, stream in (("output", sys.stdout), ("error", sys.stderr)):
        try:
            if not stream.closed:
                stream.flush()
        except BrokenPipeError:
            raise
        except OSError as error:
            _close(stream)
            code = 4
            with suppress(OSError, ValueError):  # nobody hears it where neither can be written
                sys.stderr.write(f"error: standard {name}: {error.strerror or error}\n")
    return code


def _close(stream: TextIO) -> None:
    """Nothing is tried again at exit."""
    with suppress(OSError):
        stream.close()


if __name__ == "__main__":
    sys.exit(main())
