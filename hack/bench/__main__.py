"""`make bench`: 1,000 pods as 500 PodCliqueSet replicas of 2, beside a plain Deployment of 1,000 such pods, in one run.

Prints the time until all pods are ready, writes at rest, CPU and peak memory. Exit code 1 only when something does not finish.
"""

import argparse
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from hack.bench.programs import Programs, install_crds
from hack.kube.client import Client
from hack.kube.control_plane import ControlPlane
from hack.kube.nodes import create_nodes, uniform_nodes
from hack.kube.process import Lifetime

ROOT = Path(__file__).parents[2]
LIMIT_S = 300.0
SETTLE_S = 60.0
REST_S = 60.0
POD_SPEC: dict[str, Any] = {"containers": [{"name": "c", "image": "registry.local/pause:3.10", "resources": {"requests": {"cpu": "10m"}}}]}


def say(text: str) -> None:
    """One line, at once."""
    print(text, flush=True)


def main() -> int:
    """Exit code 0: measured, 1: something did not finish in time."""
    parser = argparse.ArgumentParser(prog="make bench ARGS=", description=__doc__)
    parser.add_argument("--replicas", type=int, default=500, help="of the PodCliqueSet, two pods each (default 500)")
    parser.add_argument("--nodes", type=int, default=100, help="simulated nodes (default 100)")
    parser.add_argument(
        "--controller-manager-qps", type=int, default=0, help="client rate of kube-controller-manager (default: its own, 20)"
    )
    parser.add_argument("--rest", type=float, default=REST_S, help=f"seconds at rest in which writes are counted (default {REST_S:.0f})")
    options = parser.parse_args()
    qps = options.controller_manager_qps
    flags = {"kube-controller-manager": {"kube-api-qps": str(qps), "kube-api-burst": str(2 * qps)}} if qps else {}
    with tempfile.TemporaryDirectory(prefix="grovekeeper-bench-") as folder:
        plane = ControlPlane(Path(folder) / "kube", flags=flags, lifetime=Lifetime.WITH_PARENT)
        plane.start()
        try:
            return _measure(plane, Path(folder), options)
        except TimeoutError as error:
            say(f"not finished: {error}")
            return 1
        finally:
            plane.remove()


def _measure(plane: ControlPlane, folder: Path, options: argparse.Namespace) -> int:
    create_nodes(plane.kubeconfig, uniform_nodes(options.nodes))
    say(f"{options.nodes} nodes; {2 * options.replicas} pods")
    with Client(plane.kubeconfig, timeout_s=LIMIT_S) as client:
        plain_s = _deployment(client, 2 * options.replicas)
        say(f"plain Deployment, all ready                 {plain_s:8.1f} s")
        install_crds(plane.kubeconfig)
        with Programs(plane.kubeconfig, folder) as programs:
            ours_s = _podcliqueset(client, options.replicas)
            say(f"PodCliqueSet, all ready                     {ours_s:8.1f} s   (goal: at most 60 s)")
            say(f"PodCliqueSet / Deployment                   {ours_s / plain_s:8.2f}     (goal: at most 2)")
            _report(programs, options.rest)
    return 0


def _deployment(client: Client, pods: int) -> float:
    labels = {"app": "plain"}
    spec = {"replicas": pods, "selector": {"matchLabels": labels}, "template": {"metadata": {"labels": labels}, "spec": POD_SPEC}}
    body = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "plain"}, "spec": spec}
    path = "/apis/apps/v1/namespaces/default/deployments"
    started = time.monotonic()
    client.request("POST", path, body)
    took = _until(lambda: client.request("GET", f"{path}/plain").get("status", {}).get("readyReplicas", 0) == pods, started, "Deployment")
    # The garbage collector would need minutes for so many pods: let go of them and delete them in one request.
    orphan = {"apiVersion": "v1", "kind": "DeleteOptions", "propagationPolicy": "Orphan"}
    client.request("DELETE", f"{path}/plain", orphan)
    client.request("DELETE", "/apis/apps/v1/namespaces/default/replicasets", orphan)
    now = {"apiVersion": "v1", "kind": "DeleteOptions", "gracePeriodSeconds": 0}
    pods_path = "/api/v1/namespaces/default/pods"
    client.request("DELETE", pods_path, now)
    _until(lambda: not client.request("GET", f"{pods_path}?limit=1")["items"], time.monotonic(), "deletion of the Deployment")
    return took


def _podcliqueset(client: Client, replicas: int) -> float:
    clique = {"name": "w", "spec": {"roleName": "w", "replicas": 2, "podSpec": POD_SPEC}}
    body = {
        "apiVersion": "grove.io/v1alpha1",
        "kind": "PodCliqueSet",
        "metadata": {"name": "bench"},
        "spec": {"replicas": replicas, "template": {"cliques": [clique]}},
    }
    path = "/apis/grove.io/v1alpha1/namespaces/default/podcliquesets"
    started = time.monotonic()
    client.request("POST", path, body)
    return _until(
        lambda: client.request("GET", f"{path}/bench").get("status", {}).get("availableReplicas", 0) == replicas, started, "PodCliqueSet"
    )


def _until(done: Callable[[], bool], started: float, what: str) -> float:
    """Seconds since `started` when `done` first holds. Raises TimeoutError."""
    while not done():
        if time.monotonic() - started > LIMIT_S:
            raise TimeoutError(f"{what} within {LIMIT_S:.0f} s")
        time.sleep(0.1)
    return time.monotonic() - started


def _report(programs: Programs, rest_s: float) -> None:
    say(f"writes until then                           {programs.writes():8d}")
    time.sleep(SETTLE_S)  # events are written at a bounded rate
    before, cpu_before = programs.writes(), programs.cpu_s()
    time.sleep(rest_s)
    say(f"writes in {rest_s:.0f} s at rest                      {programs.writes() - before:8d}     (goal: 0)")
    for name, used in programs.cpu_s().items():
        idle = (used - cpu_before[name]) / rest_s * 100 if rest_s else 0.0
        peak = programs.peak_mib(name)
        say(f"{name:<12} CPU {used:6.1f} s, at rest {idle:4.1f} % of a core, peak memory {peak:4.0f} MiB")


if __name__ == "__main__":
    sys.exit(main())
