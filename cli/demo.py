"""`grovekeeper demo`: a whole cluster in this process, a model placed on it, and where its pods are."""

import argparse
import signal
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Protocol

import anyio

from api.plan import Manifest
from cli.checking import read_into
from cli.configuration import SHIPPED, load_configuration
from cli.manifests import ManifestError, load
from cli.numbers import seconds, whole_number
from cli.world import World
from controllers.runtime.observability import configure_logging
from sim.apiserver.objects import mapping
from sim.demo.place import PlaceError, occupied
from sim.nodes.specs import uniform_nodes

__all__ = ("add_parser", "run")

FAILED, INVALID, INTERRUPTED = 1, 4, 130
MANIFESTS = Path(__file__).parents[1] / "manifests"
STATE = Path(".grovekeeper")
MAX_NODES, MAX_GPUS, MAX_PORT, MAX_TIMEOUT_S = 5000, 1000, 65535, 86400


class Course(Protocol):
    """See cli.show.Show."""

    is_up: bool

    async def run(self, *, stays: bool) -> int: ...


def add_parser(commands: Any) -> None:
    """Adds the command to the argument parser of `grovekeeper`."""
    parser: argparse.ArgumentParser = commands.add_parser(
        "demo",
        help="run a whole simulated cluster and place a model on it",
        description="Runs an embedded API server, simulated nodes and kubelets, the controllers and the scheduler in one process, applies "
        "a disaggregated model, and shows where its pods are. It stays up for kubectl until Ctrl-C. Nothing outside the folder of --state "
        "is touched. Exit code 1: not everything was placed and ready in time (the reasons are printed), or the demo cannot run here; "
        "4: invalid manifests, the field errors are on standard error.",
    )
    parser.add_argument(
        "-f", "--filename", action="append", metavar="FILE", help="file, folder or - instead of the sample; may be repeated"
    )
    parser.add_argument("--nodes", type=whole_number(MAX_NODES), default=8, metavar="N", help="simulated nodes (default 8)")
    parser.add_argument("--racks", type=whole_number(MAX_NODES), default=2, metavar="N", help="racks that they are split into (default 2)")
    parser.add_argument("--gpus", type=whole_number(MAX_GPUS, 0), default=8, metavar="N", help="GPUs of each node (default 8)")
    parser.add_argument("--once", action="store_true", help="end when all is placed and ready, or after --timeout")
    parser.add_argument(
        "--timeout", type=seconds(MAX_TIMEOUT_S), default=60.0, metavar="SECONDS", help="until the reasons are told (default 60)"
    )
    parser.add_argument(
        "--port", type=whole_number(MAX_PORT, 0), default=0, metavar="PORT", help="of the API server on 127.0.0.1 (default: a free one)"
    )
    parser.add_argument("--state", type=Path, default=STATE, metavar="DIR", help=f"folder of kubeconfig and log (default {STATE})")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Exit code 0, 1 not placed in time or not able to run, 4 invalid manifests, 130 interrupted before all was placed."""
    config = load_configuration(str(SHIPPED))
    samples = MANIFESTS / "samples"
    try:
        inputs = list(load(options.filename or [str(samples / "disaggregated.yaml")]))
        inputs = [*_topology(samples, [m for _, m in inputs]), *inputs]
    except ManifestError as error:
        return _fail(str(error), INVALID)
    checked = read_into(World(config), inputs)
    if checked.errors:
        sys.stderr.write("".join(f"{subject}: {error}\n" for subject, error in checked.errors))
        return INVALID
    from cli.show import Show  # late, because it takes a second: help and mistakes need nothing of it

    specs = uniform_nodes(options.nodes, gpus=options.gpus, racks=min(options.racks, options.nodes))
    crds = [m for _, m in load([str(MANIFESTS / "crds")])]
    try:
        with occupied(options.state) as place, place.log.open("w", encoding="utf-8") as log:
            configure_logging(config.log_level, "text", log)
            show = Show(place, config, specs, crds, [m for _, m in inputs], options.port, options.timeout)
            return anyio.run(_until_stopped, show, not options.once)
    except (PlaceError, OSError) as error:
        return _fail(str(error), FAILED)
    except ExceptionGroup as group:
        failures, others = group.split(OSError)
        if failures is None or others is not None:
            raise
        error = _first(failures)
        if isinstance(error, BrokenPipeError):
            raise error from group  # whoever read the output has enough, and everything has ended in order
        return _fail(str(error), FAILED)


def _first(group: ExceptionGroup[OSError]) -> OSError:
    found = group.exceptions[0]
    return _first(found) if isinstance(found, ExceptionGroup) else found


def _fail(text: str, code: int) -> int:
    sys.stderr.write(f"error: {text}\n")
    return code


def _topology(samples: Path, manifests: Sequence[Manifest]) -> Iterable[tuple[str, Manifest]]:
    """The topology of the simulated nodes, unless the files define one of that name."""
    given = {(m["kind"], mapping(m, "metadata").get("name")) for m in manifests}
    return [(file, m) for file, m in load([str(samples / "topology.yaml")]) if (m["kind"], m["metadata"]["name"]) not in given]


async def _until_stopped(show: Course, stays: bool) -> int:
    """Runs the show; a signal ends it at any moment, in order."""
    with anyio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
        async with anyio.create_task_group() as tasks:

            async def stop() -> None:
                async for _ in signals:
                    tasks.cancel_scope.cancel()

            tasks.start_soon(stop)
            code = await show.run(stays=stays)
            tasks.cancel_scope.cancel()
            return code
    return 0 if show.is_up else INTERRUPTED
