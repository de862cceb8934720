"""A simulated cluster and what a test does to it."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from random import Random
from types import TracebackType
from typing import Any, Self

import anyio
import msgspec
import yaml

from api.operatorconfig import LeaderElection, OperatorConfiguration
from api.plan import Key
from controllers.runtime.manager import EXIT_CRASHED
from sim.apiserver.bootstrap import bootstrap
from sim.apiserver.care.controllers import Controllers
from sim.apiserver.objects import Object
from sim.apiserver.requests import Request, Stream
from sim.apiserver.server import ApiServer
from sim.apiserver.storage import Change
from sim.cluster.calls import CallRecord
from sim.cluster.clock import SimClock
from sim.cluster.network import Network
from sim.cluster.process import ProcessKind, Program, SimProcess
from sim.faults.desk import UNCOUNTED, FaultDesk
from sim.faults.plan import CLUSTER, Fault, FaultKind
from sim.invariants.inspector import Inspector
from sim.invariants.violation import InvariantViolated
from sim.kubelet.behaviour import Behaviour
from sim.kubelet.kubelet import Kubelet
from sim.nodes.actions import Nodes
from sim.nodes.lifecycle import NodeLifecycle
from sim.nodes.specs import NodeSpec

__all__ = ("NAMESPACE", "Cluster", "RequestRefused", "Setup")

NAMESPACE = "default"
CRDS = Path(__file__).parents[2] / "manifests" / "crds"
LEASES = {"scheduler": "grovekeeper-scheduler"}
RESTART_S = 1.0
POLL_S = 0.1
APPLY, MERGE = "application/apply-patch+yaml", "application/merge-patch+json"


class RequestRefused(Exception):
    """The API server did not do what a test asked for."""


@dataclass(frozen=True, slots=True)
class Setup:
    """What a cluster consists of. `programs`: of our processes by component; `replicas`: how many of each."""

    programs: Mapping[str, Program]
    config: OperatorConfiguration
    nodes: Sequence[NodeSpec] = ()
    replicas: int = 1
    behaviour: Behaviour = field(default_factory=Behaviour)


class Cluster:
    """Use as an async context manager on a SimLoop. `seed` decides uids, latencies and jitter. `log`: one line for each request of our
    processes, each change of an object and each fault. `writes`: answered ones by process, without those of leases and events.
    `ongoing`: faults that last, and processes that are about to be started again.
    """

    def __init__(self, setup: Setup, seed: int = 0, faults: Sequence[Fault] = ()) -> None:
        self._loop = asyncio.get_running_loop()
        self.setup = setup
        self.clock = SimClock(self._loop)
        self.server = ApiServer(self.clock, Random(f"{seed}/server"))  # noqa: S311 - uids of a simulation
        self.desk = FaultDesk(faults, self._disturbed)
        self.log: list[str] = []
        self.writes: dict[str, int] = {}
        self.ongoing = 0
        self.inspector = Inspector(self.server.lookup, self._loop.time)
        rng = Random(f"{seed}/network")  # noqa: S311 - latencies of a simulation
        self.network = Network(self.server, self.desk, rng, self._crash, self.inspector.sent, self._done, self.inspector.disturbed)
        self.kubelet = Kubelet(self.server, self.clock, defaults=setup.behaviour, seed=seed)
        lifecycle = NodeLifecycle(self.server, self.clock)
        self.nodes = Nodes(self.server, self.clock, self.kubelet, lifecycle)
        self._care = (self.kubelet, lifecycle, Controllers(self.server))
        self._faults = faults
        self._stack = AsyncExitStack()
        self._is_closing = False
        self.processes = {p.name: p for p in self._make(seed)}
        self.server.subscribe(self._changed)

    def _make(self, seed: int) -> list[SimProcess]:
        election = self.setup.config.leader_election
        out: list[SimProcess] = []
        for component, program in self.setup.programs.items():
            name = LEASES.get(component) or election.resource_name or LeaderElection().resource_name
            kind = ProcessKind(component, program, self.setup.config, Key(election.resource_namespace or NAMESPACE, name))
            out += [SimProcess(kind, number, self.network, self.clock, seed, self._ended) for number in range(self.setup.replicas)]
        return out

    async def __aenter__(self) -> Self:
        for care in self._care:
            self.network.spawn(care.run, type(care).__name__)
        await bootstrap(self.server)
        for definition in definitions():
            await self.request("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", definition)
        await self.nodes.create(self.setup.nodes)
        self.inspector.begin({p.name: p.lease for p in self.processes.values()})
        for process in self.processes.values():
            process.start()
        for fault in self._faults:
            if fault.kind in CLUSTER:
                self.network.spawn(lambda fault=fault: self._happen(fault), "fault")
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._is_closing = True
        for process in self.processes.values():
            await process.kill()
        await self.network.close()

    # what happens

    def _changed(self, change: Change) -> None:
        what = "deleted" if change.new is None else "created" if change.old is None else "changed"
        self._note(
            f"{change.resource.plural} {change.key.namespace}/{change.key.name} {what} @{change.revision} {change.author.user_agent}"
        )
        self.inspector.changed(change)

    def _done(self, record: CallRecord) -> None:
        self._note(f"{record.process} {record.verb} {record.path} -> {record.status}")
        if record.is_write and record.target.plural not in UNCOUNTED:
            self.writes[record.process] = self.writes.get(record.process, 0) + 1
        self.inspector.done(record)

    def _disturbed(self, fault: Fault) -> None:
        self._note(f"fault: {fault}")
        self.inspector.disturbed()

    def _note(self, text: str) -> None:
        self.log.append(f"{self._loop.time():.6f} {text}")

    def _crash(self, name: str, life: int, fault: Fault) -> None:
        process = self.processes[name]
        if process.life != life or not process.is_running:
            return
        process.sever()
        self.network.spawn(lambda: self._restart(process, fault.seconds), "restart")

    def _ended(self, process: SimProcess, code: int) -> None:
        """A process that ended by itself is started again, as a kubelet would."""
        self._note(f"{process.name} ended with code {code}")
        if code == EXIT_CRASHED:
            self.inspector.add("ProcessCrashed", f"{process.name} ended with an exception")
        if not self._is_closing:
            self.network.spawn(lambda: self._restart(process, RESTART_S), "restart")

    async def _restart(self, process: SimProcess, seconds: float) -> None:
        await process.kill()
        self.ongoing += 1
        await anyio.sleep(seconds)
        self.ongoing -= 1
        if not process.is_running and not self._is_closing:
            process.start()
        self.inspector.disturbed()

    async def _happen(self, fault: Fault) -> None:
        await anyio.sleep(max(0.0, fault.at - self._loop.time()))
        if self.desk.is_over:
            return
        self._disturbed(fault)
        self.ongoing += 1
        match fault.kind:
            case FaultKind.COMPACT:
                self.compact()
            case FaultKind.OUTAGE:
                await self.outage(fault.seconds)
            case FaultKind.PAUSE if fault.process in self.processes:
                await self.pause(fault.process, fault.seconds)
            case _:
                pass
        self.ongoing -= 1
        self.inspector.disturbed()

    # what tests do

    def check(self) -> None:
        """Raises InvariantViolated for the first violation so far."""
        if self.inspector.violations:
            raise InvariantViolated(self.inspector.violations[0])

    async def until(self, holds: Callable[[], bool], what: Callable[[], str] | str, timeout_s: float = 120.0) -> None:
        """Waits in virtual time; an invariant that is violated meanwhile ends it. Raises TimeoutError."""
        deadline = self._loop.time() + timeout_s
        while not holds():
            self.check()
            if self._loop.time() > deadline:
                raise TimeoutError(f"not so after {timeout_s:.0f} s: {what if isinstance(what, str) else what()}")
            await anyio.sleep(POLL_S)
        self.check()

    async def sleep(self, seconds: float) -> None:
        """Lets time pass."""
        await anyio.sleep(seconds)
        self.check()

    async def pause(self, name: str, seconds: float) -> None:
        """A process stands still."""
        process = self.processes[name]
        process.freeze()
        await anyio.sleep(seconds)
        process.thaw()

    async def crash(self, name: str, restart_s: float = 0.0) -> None:
        """A process is killed and started again."""
        self._note(f"crash of {name}")
        await self._restart(self.processes[name], restart_s)

    async def outage(self, seconds: float) -> None:
        """The API server cannot be reached."""
        self.network.go_down()
        await anyio.sleep(seconds)
        self.network.come_up()

    def compact(self) -> None:
        """History is forgotten and all watches end."""
        self.server.storage.compact()
        self.server.watches.end()

    async def apply(self, *manifests: Object) -> None:
        """Server-side apply, as kubectl does it."""
        for manifest in manifests:
            group, _, version = manifest["apiVersion"].rpartition("/")
            resource = next(r for r in self.server.resources if (r.group, r.kind) == (group, manifest["kind"]))
            metadata = manifest["metadata"]
            if resource.is_namespaced:
                metadata = {"namespace": NAMESPACE, **metadata}
            path = path_of(group, version, resource.plural, metadata.get("namespace", ""), metadata["name"])
            query = {"fieldManager": "kubectl", "force": "true"}
            await self.request("PATCH", path, {**manifest, "metadata": metadata}, APPLY, query)

    async def scale(self, group: str, version: str, plural: str, name: str, replicas: int) -> None:
        """Sets spec.replicas through the scale subresource."""
        path = path_of(group, version, plural, NAMESPACE, name)
        await self.request("PATCH", f"{path}/scale", {"spec": {"replicas": replicas}}, MERGE)

    async def delete(self, group: str, version: str, plural: str, name: str) -> None:
        """As kubectl delete --wait=false."""
        await self.request("DELETE", path_of(group, version, plural, NAMESPACE, name), {"propagationPolicy": "Background"})

    async def request(
        self, method: str, path: str, body: object = None, content_type: str = "application/json", query: Mapping[str, str] | None = None
    ) -> Any:
        """A request of the user; raises RequestRefused."""
        data = msgspec.json.encode(body) if body is not None else b""
        answer = await self.server.handle(Request(method, path, query or {}, data, content_type, "application/json", "kubectl"))
        if isinstance(answer, Stream):
            raise TypeError(f"{path} answered with a stream")
        if answer.status >= 300:
            raise RequestRefused(f"{method} {path}: {answer.status} {answer.body.decode()}")
        return msgspec.json.decode(answer.body)

    async def listed(self, group: str, version: str, plural: str) -> Sequence[Object]:
        """Objects as a client gets them, with managedFields."""
        answer = await self.request("GET", path_of(group, version, plural, NAMESPACE, "").rstrip("/"))
        kind = answer["kind"].removesuffix("List")
        return [{"kind": kind, **item} for item in answer["items"]]

    def objects(self, group: str, plural: str, namespace: str = NAMESPACE) -> Sequence[Object]:
        """Stored objects, by name. Not to be changed."""
        return sorted(self.server.lookup.list(group, plural, namespace), key=lambda obj: obj["metadata"]["name"])

    def pods(self) -> Sequence[Object]:
        """Pods that are not being deleted."""
        return [pod for pod in self.objects("", "pods") if not pod["metadata"].get("deletionTimestamp")]


@lru_cache(maxsize=1)
def definitions() -> tuple[Object, ...]:
    """The CRDs that we ship."""
    return tuple(yaml.safe_load(path.read_text(encoding="utf-8")) for path in sorted(CRDS.glob("*.yaml")))


def path_of(group: str, version: str, plural: str, namespace: str, name: str) -> str:
    """Path of an object."""
    root = f"/apis/{group}/{version}" if group else f"/api/{version}"
    return f"{root}/namespaces/{namespace}/{plural}/{name}" if namespace else f"{root}/{plural}/{name}"
