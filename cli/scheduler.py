"""`grovekeeper scheduler`: the gang scheduler."""

import argparse
from typing import Any

from api.plan import Key
from cli.process import Runtime, add_options, run_process
from controllers.runtime.controller import Controller
from controllers.runtime.workqueue import WorkQueue
from scheduler.binder import ROUND, Binder, binder_watches

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
    manager, clock, rng, metrics = runtime.manager, runtime.clock, runtime.rng, runtime.metrics
    names = runtime.config.grovekeeper.scheduler_names
    binder = Binder(manager.caches, runtime.transport, runtime.recorder, clock, metrics, names)
    queue = WorkQueue[Key](clock, rng, metrics=metrics.queue("binder"))
    binder.wake = lambda delay_s: queue.add_after(ROUND, delay_s)
    controller = Controller("binder", queue, binder.round, clock=clock, rng=rng, workers=1, metrics=metrics)
    manager.add_controller(controller, binder_watches(binder), binder.first_keys)
    manager.background(binder.run)
