"""`grovekeeper scheduler`: the gang scheduler."""

import argparse
from typing import Any

from cli.process import Runtime, add_options, run_process
from scheduler.binder import binder_controller

__all__ = ("add_parser", "run")


def add_parser(commands: Any) -> None:
    """Adds the command to the argument parser of `grovekeeper`."""
    parser: argparse.ArgumentParser = commands.add_parser(
        "scheduler",
        help="run the gang scheduler",
        description="Places whole PodGangs. Binder mode binds pods itself; it serves the scheduler names of the configuration's "
        "grovekeeper.schedulerNames. Nodes must not be shared with another scheduler in this mode.",
    )
    parser.add_argument("--mode", choices=["binder"], default="binder", help="how pods get to their nodes (default binder)")
    add_options(parser, bind="127.0.0.1:2761", lease="grovekeeper-scheduler")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """See run_process for exit codes."""
    return run_process(options, "scheduler", _build)


def _build(runtime: Runtime) -> None:
    manager = runtime.manager
    manager.add_controller(
        *binder_controller(
            manager.caches, runtime.transport, runtime.recorder, runtime.metrics, runtime.clock, runtime.config.grovekeeper.scheduler_names
        )
    )
