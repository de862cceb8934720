"""`make bench-sim`: the embedded API server and the simulation, with the same 1,000 pods as `make bench`.

In one process and virtual time; the same over HTTP, with the server and the simulated kubelets in one process and controllers and
scheduler in two others; and one simulated hour of 200 pods with a scale event every minute. Exit code 1 only when something does not
finish.
"""

import argparse
import asyncio
import logging
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

from cli.configuration import SHIPPED, load_configuration
from cli.programs import PROGRAMS
from controllers.runtime.clock import SystemClock
from hack.bench.programs import Programs
from hack.kube.client import Client
from sim.apiserver.front.kubeconfig import write_kubeconfig
from sim.apiserver.front.listener import Listener
from sim.apiserver.objects import dig
from sim.cluster.cluster import Cluster, Setup, definitions
from sim.demo.cluster import running_cluster
from sim.demo.load import create
from sim.loop.run import run
from sim.nodes.specs import uniform_nodes

ROOT = Path(__file__).parents[2]
LIMIT_S = 300.0
GROVE = ("grove.io", "v1alpha1", "podcliquesets")
PATH = "/apis/grove.io/v1alpha1/namespaces/default/podcliquesets"
POD_SPEC: dict[str, Any] = {"containers": [{"name": "c", "image": "registry.local/pause:3.10", "resources": {"requests": {"cpu": "10m"}}}]}


def say(text: str) -> None:
    """One line, at once."""
    print(text, flush=True)


def main() -> int:
    """Exit code 0: measured, 1: something did not finish in time."""
    parser = argparse.ArgumentParser(prog="make bench-sim ARGS=", description=__doc__)
    parser.add_argument("--replicas", type=int, default=500, help="of the PodCliqueSet, two pods each (default 500)")
    parser.add_argument("--serve", type=Path, metavar="FILE", help=argparse.SUPPRESS)
    options = parser.parse_args()
    logging.disable(logging.CRITICAL)
    if options.serve is not None:
        asyncio.run(_serve(options.serve))
        return 0
    pods = 2 * options.replicas
    try:
        say(f"{pods} pods in one process, all ready           {_wall(lambda: _placed(options.replicas)):8.1f} s   (goal: at most 10 s)")
        say(f"{pods} pods over HTTP, all ready               {_over_http(options.replicas):8.1f} s   (goal: at most 30 s)")
        say(f"a virtual hour of 200 pods, 60 scale events  {_wall(_hour):8.1f} s   (goal: at most 5 s)")
    except TimeoutError as error:
        say(f"not finished: {error}")
        return 1
    return 0


def _podcliqueset(replicas: int) -> dict[str, Any]:
    clique = {"name": "w", "spec": {"roleName": "w", "replicas": 2, "podSpec": POD_SPEC}}
    spec = {"replicas": replicas, "template": {"cliques": [clique]}}
    return {"apiVersion": "grove.io/v1alpha1", "kind": "PodCliqueSet", "metadata": {"name": "bench", "namespace": "default"}, "spec": spec}


def _wall(measured: Callable[[], Coroutine[Any, Any, float]]) -> float:
    return run(measured, seed=1)


async def _up(cluster: Cluster, replicas: int) -> None:
    await cluster.apply(_podcliqueset(replicas))

    def is_up() -> bool:
        (found,) = cluster.objects("grove.io", "podcliquesets")
        return dig(found, "status", "availableReplicas") == replicas

    await cluster.until(is_up, f"{replicas} replicas available", LIMIT_S)


async def _placed(replicas: int) -> float:
    """Seconds until all pods of a new set are ready, in a cluster that has been up for a while."""
    async with Cluster(Setup(PROGRAMS, load_configuration(str(SHIPPED)), uniform_nodes(100)), seed=1) as cluster:
        await cluster.sleep(20.0)
        started = time.perf_counter()
        await _up(cluster, replicas)
        return time.perf_counter() - started


async def _hour() -> float:
    """Seconds for an hour in which a set of 200 pods loses and gets back two replicas in turn."""
    async with Cluster(Setup(PROGRAMS, load_configuration(str(SHIPPED)), uniform_nodes(50)), seed=1) as cluster:
        await _up(cluster, 100)
        started = time.perf_counter()
        for minute in range(60):
            await cluster.scale(*GROVE, "bench", 98 if minute % 2 == 0 else 100)
            await cluster.sleep(60.0)
        return time.perf_counter() - started


async def _serve(kubeconfig: Path) -> None:
    """The server's process: serves until it is stopped."""
    async with running_cluster(SystemClock(), random.Random(1), uniform_nodes(100)) as cluster:  # noqa: S311 - names of a benchmark
        await create(cluster.server, definitions())
        async with Listener(cluster.server.handle) as listener:
            write_kubeconfig(kubeconfig, listener.url, "unused")
            await asyncio.Event().wait()


def _over_http(replicas: int) -> float:
    with tempfile.TemporaryDirectory(prefix="grovekeeper-bench-") as text:
        kubeconfig = Path(text) / "kubeconfig"
        server = subprocess.Popen([sys.executable, "-m", "hack.bench.simulation", "--serve", str(kubeconfig)], cwd=ROOT)
        try:
            _until(kubeconfig.exists, "the server")
            with Programs(kubeconfig, Path(text)), Client(kubeconfig, timeout_s=LIMIT_S) as client:
                started = time.perf_counter()
                client.request("POST", PATH, _podcliqueset(replicas))
                _until(lambda: dig(client.request("GET", f"{PATH}/bench"), "status", "availableReplicas") == replicas, "pods")
                return time.perf_counter() - started
        finally:
            server.terminate()
            server.wait()


def _until(done: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + LIMIT_S
    while not done():
        if time.monotonic() > deadline:
            raise TimeoutError(f"{what} within {LIMIT_S:.0f} s")
        time.sleep(0.1)


if __name__ == "__main__":
    sys.exit(main())
