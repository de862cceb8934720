"""`grovekeeper scheduler`: the gang scheduler."""

import argparse
from typing import Any

from api.operatorconfig import DEFAULT_SCHEDULER
from api.plan import Key
from cli.configuration import ConfigurationError, load_configuration
from cli.process import INVALID, add_options, fail, run_process
from controllers.runtime.assembly import Runtime
from controllers.runtime.workqueue import WorkQueue
from scheduler.binder import ECHO_DELAY_S, Binder, BinderController, binder_watches

__all__ = ("add_parser", "build", "run")


def add_parser(commands: Any) -> None:
    """Adds the command to the argument parser of `grovekeeper`."""
    parser: argparse.ArgumentParser = commands.add_parser(
        "scheduler",
        help="run the gang scheduler",
        description="Places whole PodGangs. Binder mode binds pods itself; it serves the scheduler names of the configuration's "
        "grovekeeper.schedulerNames. Nodes must not be shared with another scheduler in this mode.",
    )
    parser.add_argument("--mode", choices=["binder"], default="binder", help="how pods get to their nodes (default binder)")
    parser.add_argument(
        "--serve-default-scheduler",
        action="store_true",
        help=f"serve {DEFAULT_SCHEDULER} too if schedulerNames lists it; only for clusters without kube-scheduler",
    )
    add_options(parser, bind="127.0.0.1:2761", lease="grovekeeper-scheduler")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """See run_process for exit codes."""
    try:
        names = load_configuration(options.config).grovekeeper.scheduler_names
    except ConfigurationError:
        names = ()  # run_process tells
    if DEFAULT_SCHEDULER in names and not options.serve_default_scheduler:
        return fail(
            INVALID,
            f"grovekeeper.schedulerNames lists {DEFAULT_SCHEDULER}, whose pods kube-scheduler binds. Remove it, "
            "or pass --serve-default-scheduler if no kube-scheduler runs in this cluster.",
        )
    return run_process(options, "scheduler", build)


def build(runtime: Runtime) -> None:
    """Adds the binder to the manager."""
    manager, clock, rng, metrics = runtime.manager, runtime.clock, runtime.rng, runtime.metrics
    names = runtime.config.grovekeeper.scheduler_names
    binder = Binder(manager.caches, runtime.transport, runtime.recorder, clock, metrics, names, runtime.offload)
    queue = WorkQueue[Key](clock, rng, metrics=metrics.queue("binder"))
    controller = BinderController(binder, queue, clock=clock, rng=rng, metrics=metrics)
    manager.add_controller(controller, binder_watches(binder), binder.first_keys, ECHO_DELAY_S)
