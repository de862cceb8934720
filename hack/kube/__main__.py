"""python -m hack.kube up|down|status|build"""

import argparse
import sys
from pathlib import Path

from hack.kube.binaries import COMPONENTS, BinariesMissing, build, find_program
from hack.kube.client import ApiError
from hack.kube.components import Ports
from hack.kube.control_plane import DEFAULT_DIRECTORY, ControlPlane
from hack.kube.nodes import create_nodes, uniform_nodes
from hack.kube.process import AlreadyRunning, ComponentFailed, PortInUse
from hack.kube.programs import NAMES


def say(line: str) -> None:
    """One line on standard output, at once."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def main() -> int:
    """Exit code: 0 fine, 1 failed or not running, 2 wrong arguments."""
    options = _parser().parse_args()
    commands = {"up": _up, "down": _down, "status": _status, "build": _build}
    try:
        return commands[options.command](options)
    except (AlreadyRunning, ApiError, BinariesMissing, ComponentFailed, PortInUse, TimeoutError) as error:
        sys.stderr.write(f"error: {error}\n")
        return 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m hack.kube", description="A Kubernetes control plane on loopback with simulated nodes")
    commands = parser.add_subparsers(dest="command", required=True)
    up = commands.add_parser("up", help="start; safe to repeat")
    up.add_argument("--port", type=int, default=0, help="of the API server; a free one by default")
    up.add_argument("--without", action="append", default=[], choices=COMPONENTS, help="leave a component out; may be repeated")
    up.add_argument("--nodes", type=int, default=0, help="simulated nodes to have")
    up.add_argument("--gpus", type=int, default=0, help="nvidia.com/gpu per node")
    up.add_argument("--cpu", default="64", help="per node")
    up.add_argument("--memory", default="512Gi", help="per node")
    up.add_argument("--pods", default="110", help="per node")
    for level in ("racks", "blocks", "zones"):
        up.add_argument(f"--{level}", type=int, default=0, help=f"split the nodes evenly into so many {level}")
    up.add_argument(
        "--controller-manager-qps", type=int, default=0, help="client rate of kube-controller-manager; its own default (20) if left out"
    )
    down = commands.add_parser("down", help="stop everything and delete data, logs and keys")
    down.add_argument("--keep", action="store_true", help="stop only: the next up finds the same objects")
    status = commands.add_parser("status", help="what runs")
    for command in (up, down, status):
        command.add_argument("--directory", type=Path, default=DEFAULT_DIRECTORY, help=f"default {DEFAULT_DIRECTORY}")
    build_one = commands.add_parser("build", help="build the control plane from source into the cache, or find or build single programs")
    build_one.add_argument("program", nargs="*", choices=NAMES, default=[], help="all of the control plane if none is named")
    return parser


def _up(options: argparse.Namespace) -> int:
    components = [c for c in COMPONENTS if c not in options.without]
    qps = int(options.controller_manager_qps)
    flags = {"kube-controller-manager": {"kube-api-qps": str(qps), "kube-api-burst": str(2 * qps)}} if qps else {}
    plane = ControlPlane(options.directory, ports=Ports(apiserver=options.port), components=components, flags=flags, report=say)
    alive = plane.running()
    if set(alive) == set(components) and all(plane.ready().values()):
        say("runs already")
    else:
        if alive:
            for name in plane.dead():
                say(f"{name} is dead; end of its log:\n{plane.processes[name].log_tail()}")
            say(f"restarting, because only {', '.join(alive)} run")
            plane.stop()
        say(f"ready in {sum(plane.start().values()):.1f} s")
    if options.nodes:
        specs = uniform_nodes(
            options.nodes,
            cpu=options.cpu,
            memory=options.memory,
            pods=options.pods,
            gpus=options.gpus,
            racks=options.racks,
            blocks=options.blocks,
            zones=options.zones,
        )
        create_nodes(plane.kubeconfig, specs)
        say(f"{options.nodes} nodes Ready")
    say(f"export KUBECONFIG={plane.kubeconfig}\nexport PATH={plane.layout.bin}:$PATH")
    return 0


def _down(options: argparse.Namespace) -> int:
    plane = ControlPlane(options.directory)
    if not plane.layout.root.exists():
        say("nothing to stop")
        return 0
    alive = plane.running()
    if options.keep:
        plane.stop()
    else:
        plane.remove()
    say(f"stopped {', '.join(alive)}" if alive else "nothing ran")
    return 0


def _status(options: argparse.Namespace) -> int:
    plane = ControlPlane(options.directory)
    alive, ready, dead = plane.running(), plane.ready(), plane.dead()
    for name in COMPONENTS:
        state = "ready" if ready.get(name) else "not ready" if name in alive else "dead" if name in dead else "not running"
        say(f"{name:<24} {state:<12} {f'pid {alive[name]}' if name in alive else ''}".rstrip())
    if alive:
        say(f"{plane.server}  KUBECONFIG={plane.kubeconfig}")
    for name in dead:
        say(f"end of the log of {name}:\n{plane.processes[name].log_tail()}")
    return 0 if alive and not dead and all(ready.values()) else 1


def _build(options: argparse.Namespace) -> int:
    for name in options.program:
        say(str(find_program(name, say)))
    if not options.program:
        say(f"built into {build(say).folder}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
