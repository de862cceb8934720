"""`grovekeeper controllers`: the Grove controllers."""

import argparse
from typing import Any

from api.settings import settings_of
from cli.process import add_options, run_process
from controllers.podclique.controller import podclique_controller
from controllers.podcliquescalinggroup.controller import podcliquescalinggroup_controller
from controllers.podcliqueset.controller import podcliqueset_controller
from controllers.podgang.controller import podgang_controller
from controllers.runtime.assembly import Runtime

__all__ = ("add_parser", "build", "run")


def add_parser(commands: Any) -> None:
    """Adds the command to the argument parser of `grovekeeper`."""
    parser: argparse.ArgumentParser = commands.add_parser(
        "controllers",
        help="run the Grove controllers",
        description="Runs the controllers of PodCliqueSet, PodCliqueScalingGroup, PodClique and PodGang until stopped. "
        "Needs the custom resource definitions of manifests/crds.",
    )
    add_options(parser, bind="127.0.0.1:2751", lease="")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """See run_process for exit codes."""
    return run_process(options, "controllers", build)


def build(runtime: Runtime) -> None:
    """Adds the controllers to the manager."""
    manager, config = runtime.manager, runtime.config
    settings, workers = settings_of(config), config.controllers
    manager.add(podcliqueset_controller(manager.caches, config))
    manager.add(podcliquescalinggroup_controller(manager.caches, workers.pod_clique_scaling_group.concurrent_syncs))
    manager.add(podclique_controller(manager.caches, settings, workers.pod_clique.concurrent_syncs))
    manager.add(podgang_controller(manager.caches, settings, workers.pod_gang.concurrent_syncs))
