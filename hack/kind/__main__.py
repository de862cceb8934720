"""python -m hack.kind up|down|load IMAGE|status"""

import argparse
import sys
import time

from hack.kind.cluster import KindCluster
from hack.kind.failures import KindFailed, MachineUnfit

UNFIT = 3


def say(line: str) -> None:
    """One line on standard output, at once."""
    print(line, flush=True)


def main() -> int:
    """Exit code: 0 fine, 1 failed or not whole, 2 wrong arguments, 3 not possible on this machine, 130 interrupted."""
    options = _parser().parse_args()
    cluster = KindCluster(report=say)
    began = time.monotonic()
    try:
        if options.command == "status":
            return _status(cluster)
        if options.command == "up":
            cluster.up()
            say(f"up in {time.monotonic() - began:.0f} s\nexport KUBECONFIG={cluster.kubeconfig}")
        elif options.command == "down":
            cluster.down()
            say(f"down in {time.monotonic() - began:.0f} s")
        else:
            cluster.load(options.image)
            say(f"loaded {options.image} in {time.monotonic() - began:.1f} s")
    except KindFailed as error:
        print(f"error: {error}", file=sys.stderr)
        return UNFIT if isinstance(error, MachineUnfit) else 1
    except KeyboardInterrupt:
        print("interrupted; `up` or `down` tidies", file=sys.stderr)
        return 130
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m hack.kind", description="A Kubernetes cluster of three nodes in containers")
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("up", help="make or mend the cluster; safe to repeat")
    commands.add_parser("down", help="remove it; safe to repeat")
    commands.add_parser("load", help="copy an image from the Docker daemon to all nodes").add_argument("image")
    commands.add_parser("status", help="what is there; exit code 0 if it is whole")
    return parser


def _status(cluster: KindCluster) -> int:
    faults = cluster.faults()
    for fault in faults:
        say(fault)
    if not faults:
        say(f"whole: {', '.join(cluster.nodes())}\nexport KUBECONFIG={cluster.kubeconfig}")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
