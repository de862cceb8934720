"""The course of a demo: start everything, create the objects, tell progress, show the forest, stay up."""

import secrets
import sys
import time
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from random import Random
from typing import Any

import anyio
import msgspec

from api.core import Node, Pod
from api.fielderrors import printable
from api.grove import ClusterTopologyBinding, PodClique, PodCliqueScalingGroup, PodCliqueSet
from api.operatorconfig import OperatorConfiguration
from api.plan import Manifest
from api.podgang import PodGang
from cli.forest import Forest, lines
from cli.programs import PROGRAMS
from controllers.runtime.assembly import Runtime, World, runtime
from controllers.runtime.clock import SystemClock
from sim.apiserver.front.certificate import write_certificate
from sim.apiserver.front.kubeconfig import write_kubeconfig
from sim.apiserver.front.listener import Listener
from sim.apiserver.resources import Lookup
from sim.apiserver.server import ApiServer
from sim.demo.cluster import Cluster, running_cluster
from sim.demo.load import create
from sim.demo.place import Place
from sim.demo.progress import Progress, progress_of
from sim.demo.wire import DirectWire, direct_credentials
from sim.kubelet.behaviour import Behaviour
from sim.kubelet.distributions import Delay
from sim.nodes.specs import NodeSpec

__all__ = ("Show",)

FAILED, INVALID = 1, 4
BEHAVIOUR = Behaviour(start=Delay("uniform", (0.1, 0.5)), ready=Delay("uniform", (0.1, 0.4)))
"""Of containers; slow enough to be seen."""
MANY_GANGS = 20
"""More are not told one by one."""
SETTLE_S = 0.1
"""Changes are gathered for so long before they are looked at."""


def say(text: str = "") -> None:
    """One line, at once."""
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


class Show:
    """`is_up`: all was placed and it waits for the user's commands. Times in seconds."""

    def __init__(
        self,
        place: Place,
        config: OperatorConfiguration,
        specs: Sequence[NodeSpec],
        crds: Sequence[Manifest],
        inputs: Sequence[Manifest],
        port: int,
        timeout_s: float,
    ) -> None:
        self.is_up = False
        self._place = place
        self._config = config
        self._specs = specs
        self._crds = crds
        self._inputs = inputs
        self._port = port
        self._timeout_s = timeout_s
        self._ended: list[str] = []

    async def run(self, *, stays: bool) -> int:
        """Exit code: 0 placed, 1 not, 4 the API server refuses the manifests."""
        begun = time.monotonic()
        self._news = anyio.Event()
        async with running_cluster(SystemClock(), Random(), self._specs, BEHAVIOUR) as cluster:  # noqa: S311 - simulation
            token = secrets.token_urlsafe(24)
            tls, trusted = write_certificate(self._place.folder)
            listener = Listener(cluster.server.handle, port=self._port, token=token, tls=tls)
            try:
                await listener.__aenter__()
            except OSError as error:
                sys.stderr.write(f"error: cannot listen on 127.0.0.1:{self._port} ({error.strerror}); leave --port out for a free one\n")
                return FAILED
            try:
                write_kubeconfig(self._place.kubeconfig, listener.url, token, ca=trusted)
                say(f"embedded API server: {listener.url}")
                say(_described(self._specs))
                return await self._place_model(cluster, begun, stays=stays)
            finally:
                await listener.__aexit__(None, None, None)

    async def _place_model(self, cluster: Cluster, begun: float, *, stays: bool) -> int:
        if not await self._create(cluster.server, self._crds, shown=False):
            return FAILED
        cancel = cluster.server.subscribe(lambda change: self._news.set())
        try:
            async with self._processes(cluster.server):
                if not await self._create(cluster.server, self._inputs, shown=True):
                    return INVALID
                code = await self._told(cluster.server.lookup, begun)
                if stays and not self._ended:
                    self.is_up = code == 0
                    self._invite(cluster.server.lookup)
                    while not self._ended:
                        await self._changed(None)
                return FAILED if self._ended else code
        finally:
            cancel()

    async def _create(self, server: ApiServer, manifests: Sequence[Manifest], *, shown: bool) -> bool:
        loaded = await create(server, manifests)
        for one in loaded:
            for error in one.errors:
                sys.stderr.write(f"{printable(one.subject)}: {printable(error)}\n")
        if shown:
            say("created " + ", ".join(printable(one.subject) for one in loaded if not one.errors))
        return not any(one.errors for one in loaded)

    @asynccontextmanager
    async def _processes(self, server: ApiServer) -> AsyncGenerator[None]:
        """Controllers and scheduler, as their commands run them, without election and ports."""
        async with anyio.create_task_group() as tasks:
            for name, build in PROGRAMS.items():
                tasks.start_soon(self._process, server, name, build)
            yield
            tasks.cancel_scope.cancel()

    async def _process(self, server: ApiServer, name: str, build: Callable[[Runtime], None]) -> None:
        world = World(direct_credentials(), SystemClock(), Random(), DirectWire(server.handle, name))  # noqa: S311 - jitter
        async with runtime(name, self._config, world, None) as process:
            build(process)
            code = await process.manager.run()
        self._ended.append(f"grovekeeper {name} ended with code {code}; its log is {self._place.log}")
        self._news.set()

    async def _changed(self, timeout_s: float | None) -> None:
        """Waits for the next change, and a little for those that come with it."""
        with anyio.move_on_after(timeout_s):
            await self._news.wait()
            await anyio.sleep(SETTLE_S)
        self._news = anyio.Event()

    async def _told(self, lookup: Lookup, begun: float) -> int:
        """Tells each change until all is placed and ready; else why not, and exit code 1."""
        told: dict[str, str] = {}
        until = time.monotonic() + self._timeout_s
        while True:
            progress = progress_of(lookup)
            for name, step, text in _steps(progress):
                if told.get(name) != step:
                    told[name] = step
                    say(f"{time.monotonic() - begun:5.1f} s  {text}")
            left_s = until - time.monotonic()
            if progress.is_complete or self._ended or left_s <= 0:
                break
            await self._changed(left_s)
        say()
        for line in lines(_forest(lookup)):
            say(line)
        say()
        if progress.is_complete and not progress.gangs:
            say("there is nothing to place")
            return 0
        if progress.is_complete and not self._ended:
            say(f"all gangs are placed and ready after {time.monotonic() - begun:.1f} s")
            return 0
        self._explain(progress)
        return FAILED

    def _explain(self, progress: Progress) -> None:
        for text in self._ended:
            sys.stderr.write(f"error: {text}\n")
        sys.stderr.write(f"not all was placed and ready within {self._timeout_s:g} s:\n")
        for gang in progress.gangs:
            if gang.why:
                sys.stderr.write(f"  gang {gang.name} waits: {gang.why}\n")
        for text in progress.unfinished:
            sys.stderr.write(f"  {text}\n")

    def _invite(self, lookup: Lookup) -> None:
        """What to try."""
        say("It stays up until Ctrl-C. In another terminal:")
        say(f"  export KUBECONFIG={self._place.kubeconfig.resolve()}")
        say("  kubectl get pcs,pcsg,pclq,pg -o wide")
        for plural, group, command in (
            ("podgangs", "scheduler.grove.io", "kubectl describe pg {}"),
            ("podcliquescalinggroups", "grove.io", "kubectl scale pcsg {} --replicas=2"),
            ("podcliquesets", "grove.io", "kubectl delete pcs {}"),
        ):
            found = sorted((o["metadata"]["namespace"], o["metadata"]["name"]) for o in lookup.list(group, plural))
            if found:
                namespace, name = found[0]
                say("  " + command.format(name) + (f" -n {namespace}" if namespace != "default" else ""))
        say("  kubectl cordon " + self._specs[0].name)
        say("  grovekeeper get")


def _steps(progress: Progress) -> list[tuple[str, str, str]]:
    """What is told when its second part changes, under its first: each gang, or figures when there are many."""
    if len(progress.gangs) <= MANY_GANGS:
        return [(gang.name, gang.step, str(gang)) for gang in progress.gangs]
    running, bound = sum(not g.why for g in progress.gangs), sum(g.bound for g in progress.gangs)
    text = f"{running} of {len(progress.gangs)} gangs run, {bound} pods are bound"
    return [("", text, text)]


def _described(specs: Sequence[NodeSpec]) -> str:
    racks = len({s.labels["kubernetes.io/rack"] for s in specs})
    gpus = specs[0].allocatable.get("nvidia.com/gpu", "no")
    return f"{len(specs)} simulated node{'s' if len(specs) > 1 else ''} in {racks} rack{'s' if racks > 1 else ''}, {gpus} GPUs each"


def _forest(lookup: Lookup) -> Forest:
    """Everything that `grovekeeper get` would read."""

    def read(model: Any) -> list[Any]:
        return [model.decode(msgspec.json.encode(o)) for o in lookup.list(model.KIND.group, model.KIND.plural)]

    return Forest(
        sets=read(PodCliqueSet),
        groups=read(PodCliqueScalingGroup),
        cliques=read(PodClique),
        gangs=read(PodGang),
        pods=read(Pod),
        nodes={n.metadata.name: n for n in read(Node)},
        topologies={t.metadata.name: t for t in read(ClusterTopologyBinding)},
    )
