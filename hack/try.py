"""`make try`: a control plane with simulated nodes, controllers, scheduler, and a disaggregated model placed on them."""

import argparse
import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from hack.kube.control_plane import ControlPlane
from hack.kube.nodes import create_nodes, uniform_nodes
from hack.kube.process import Lifetime, Process

ROOT = Path(__file__).parents[1]
STATE = Path(".grovekeeper")
CONFIG = ROOT / "manifests" / "config" / "controllers.yaml"
SAMPLES = ROOT / "manifests" / "samples"
TIMEOUT_S = 120.0


def say(text: str = "") -> None:
    """One line, at once."""
    print(text, flush=True)


def main() -> int:
    """Exit code: 0 placed, 1 not placed in time (the reasons are printed)."""
    options = _parser().parse_args()
    plane = ControlPlane(STATE / "kube", report=say)
    processes = [_process(name) for name in ("controllers", "scheduler")]
    if options.down:
        return _down(plane, processes)
    if not plane.running():
        say("starting etcd, kube-apiserver, kube-controller-manager, kube-scheduler and KWOK")
        plane.start()
    create_nodes(plane.kubeconfig, uniform_nodes(options.nodes, gpus=options.gpus, racks=options.racks))
    say(f"{options.nodes} simulated nodes with {options.gpus} GPUs each in {options.racks} racks")
    _kubectl(plane, "apply", "--server-side", "--force-conflicts", "-f", str(ROOT / "manifests" / "crds"))
    for process in processes:
        if process.pid is None:
            process.start(_command(process.name, plane.kubeconfig), Lifetime.DETACHED)
            say(f"started grovekeeper {process.name} (log: {process.log_file})")
    for file in ("topology.yaml", "disaggregated.yaml"):
        say(_kubectl(plane, "apply", "-f", str(SAMPLES / file)).strip())
    placed = _wait_placed(plane, processes)
    say()
    say(_kubectl(plane, "get", "pcs,pcsg,pclq,pg"))
    subprocess.run([sys.executable, "-m", "cli.main", "get", "--kubeconfig", str(plane.kubeconfig)], cwd=ROOT, check=False)
    if options.once:
        _down(plane, processes)
    else:
        say(f"\nIt stays up. Look around:  export KUBECONFIG={plane.kubeconfig.resolve()}")
        say(f"kubectl of the same version:  {plane.kubectl.absolute()}")
        say("Stop it with:  make try ARGS=--down")
    return 0 if placed else 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="make try ARGS=", description="Places a disaggregated model on a local control plane")
    parser.add_argument("--once", action="store_true", help="stop everything afterwards")
    parser.add_argument("--down", action="store_true", help="stop what an earlier run left up")
    parser.add_argument("--nodes", type=int, default=8, help="default 8")
    parser.add_argument("--gpus", type=int, default=8, help="per node, default 8")
    parser.add_argument("--racks", type=int, default=2, help="default 2")
    return parser


def _process(name: str) -> Process:
    return Process(name, STATE / "pids" / f"{name}.json", STATE / "logs" / f"{name}.log")


def _command(name: str, kubeconfig: Path) -> list[str]:
    mode = ["--mode", "binder"] if name == "scheduler" else []
    common = ["--kubeconfig", str(kubeconfig.resolve()), "--config", str(CONFIG), "--bind", "127.0.0.1:0"]
    return [sys.executable, "-m", "cli.main", name, *mode, *common]


def _kubectl(plane: ControlPlane, *arguments: str) -> str:
    done = subprocess.run(
        [str(plane.kubectl), "--kubeconfig", str(plane.kubeconfig), *arguments], capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        raise SystemExit(f"kubectl {' '.join(arguments)}: {done.stderr.strip()}")
    return done.stdout


def _wait_placed(plane: ControlPlane, processes: list[Process]) -> bool:
    """Prints each change until every gang runs; prints why not when that takes too long or a process dies."""
    deadline, shown = time.monotonic() + TIMEOUT_S, ""
    gangs: list[dict[str, Any]] = []
    while time.monotonic() < deadline:
        gangs = json.loads(_kubectl(plane, "get", "pg", "-o", "json"))["items"]
        phases = {g["metadata"]["name"]: g.get("status", {}).get("phase", "-") for g in gangs}
        line = "  ".join(f"{name}: {phase}" for name, phase in sorted(phases.items()))
        if line != shown:
            say(line)
            shown = line
        if phases and all(phase == "Running" for phase in phases.values()) and _available(plane):
            return True
        for process in processes:
            if process.pid is None:
                say(f"grovekeeper {process.name} ended:\n{process.log_tail()}")
                return False
        time.sleep(0.2)
    say("not placed in time:")
    for gang in gangs:
        conditions = gang.get("status", {}).get("conditions", [])
        say(f"  {gang['metadata']['name']}: " + "; ".join(f"{c['type']}={c['status']} {c['message']}" for c in conditions))
    return False


def _available(plane: ControlPlane) -> bool:
    """The sets say so themselves; their status follows the gangs' within a second."""
    sets: list[dict[str, Any]] = json.loads(_kubectl(plane, "get", "pcs", "-o", "json"))["items"]
    return all(s.get("status", {}).get("availableReplicas", 0) >= s["spec"]["replicas"] for s in sets)


def _down(plane: ControlPlane, processes: list[Process]) -> int:
    for process in processes:
        process.stop()
    plane.remove()
    say("stopped")
    return 0


if __name__ == "__main__":
    sys.exit(main())
