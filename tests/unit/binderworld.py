"""A binder with everything around it faked, for the tests of rounds, binds and reports."""

from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from typing import Any

import anyio
import msgspec

from api import labels
from api.core import Condition, Node, Pod, PriorityClass
from api.grove import ClusterTopologyBinding
from api.kinds import Kind
from api.plan import Key, Outcome
from api.podgang import PodGang
from controllers.runtime import errors
from controllers.runtime.informer import Informer
from controllers.runtime.metrics import Metrics
from controllers.runtime.view import Caches
from scheduler.binder import ROUND, Binder, binder_watches
from tests.runtime_fakes import Call, FakeRecorder, FakeTransport, HandClock
from tests.sched_builders import GPU, make_node

MODELS: dict[Kind, type[Any]] = {m.KIND: m for m in (PodGang, Pod, Node, ClusterTopologyBinding, PriorityClass)}


class Scene:
    """A binder, and an API server of which the caches know everything at once. `answers`: by "METHOD path suffix", raised or called."""

    def __init__(self, *gpus: int) -> None:
        self.rv = 100
        self.answers: dict[str, Exception | Callable[[], Any]] = {}
        self.clock = HandClock()
        self.recorder = FakeRecorder()
        self.transport = FakeTransport(self._answer)
        self.caches = Caches()
        self.binder = Binder(self.caches, self.transport, self.recorder, self.clock, Metrics(), ("grovekeeper",))
        self.woken: list[float] = []
        self.keys: list[tuple[Key, int]] = []
        self.binder.wake = self.woken.append
        transport: Any = self.transport
        for watch in binder_watches(self.binder):
            informer = self.caches.add(Informer(transport, watch.model, indexes=watch.indexes))
            informer.store.replace((), self.rv)
            informer.store.subscribe(lambda old, new, watch=watch: self.keys.extend(watch.keys(old, new)))
        for i, count in enumerate(gpus):
            self.put(make_node(f"n{i}", count))

    def put(self, obj: Any) -> None:
        """The object as the watch tells of it."""
        self.rv += 1
        meta = msgspec.structs.replace(obj.metadata, resource_version=str(self.rv))
        changed = obj.model_copy(update={"metadata": meta}) if isinstance(obj, PodGang) else msgspec.structs.replace(obj, metadata=meta)
        self.caches.informer(type(obj)).store.apply("MODIFIED", changed)

    def remove(self, obj: Any) -> None:
        self.rv += 1
        self.caches.informer(type(obj)).store.remove(Key.of(obj), self.rv)

    def gang(self, name: str, pods: int, gpus: int = 1, *, minimum: int | None = None, scheduler: str = "grovekeeper", **pod: Any) -> None:
        """A gang of one group whose pods all exist."""
        references = [{"namespace": "default", "name": f"{name}-{i}"} for i in range(pods)]
        group = {"name": "w", "minReplicas": pods if minimum is None else minimum, "podReferences": references}
        meta = {"name": name, "namespace": "default", "uid": f"uid-{name}", "generation": 1}
        self.put(PodGang.model_validate({"metadata": meta, "spec": {"podgroups": [group]}, "status": {"phase": "Pending"}}))
        for i in range(pods):
            self.put(self.pod(f"{name}-{i}", name, gpus, scheduler, **pod))

    @staticmethod
    def pod(name: str, gang: str, gpus: int, scheduler: str = "grovekeeper", *, base: str = "", gate: str = "", node: str = "") -> Pod:
        found = {labels.PODGANG: gang, **({labels.BASE_PODGANG: base} if base else {})}
        spec = {
            "schedulerName": scheduler,
            "nodeName": node,
            "schedulingGates": [{"name": gate}] if gate else [],
            "containers": [{"resources": {"requests": {GPU: gpus}}}],
        }
        return msgspec.convert(
            {"metadata": {"name": name, "namespace": "default", "uid": f"uid-{name}", "labels": found}, "spec": spec}, Pod
        )

    def found(self, model: type[Any], name: str) -> Any:
        return self.caches.get(model, "" if model is Node else "default", name)

    async def _answer(self, call: Call) -> Any:
        await anyio.lowlevel.checkpoint()
        for line, answer in self.answers.items():
            method, suffix = line.split(" ", 1)
            if call.method == method and call.path.endswith(suffix):
                if isinstance(answer, Exception):
                    raise answer
                result = answer()
                if result is not None:
                    return await result
        return self._carry_out(call)

    def _carry_out(self, call: Call) -> Any:
        *_, plural, name = call.path.removesuffix("/binding").removesuffix("/status").split("/")
        if call.path.endswith("/binding"):
            self.bound(name, call.body["target"]["name"])
            return {}
        model = next(m for kind, m in MODELS.items() if kind.plural == plural)
        live = self.found(model, name)
        if call.method == "GET":
            if live is None:
                raise errors.NotFound(404, "NotFound", name)
            return msgspec.to_builtins(live)
        if model is PodGang:
            status = {"phase": live.status.phase, **call.body["status"]}
            self.put(PodGang.model_validate({**live.to_manifest(), "metadata": live.metadata, "status": status}))
        elif model is Pod:
            said = tuple(msgspec.convert(c, Condition) for c in call.body["status"]["conditions"])
            self.put(msgspec.structs.replace(live, status=msgspec.structs.replace(live.status, conditions=said)))
        return {"metadata": {"resourceVersion": str(self.rv)}}

    def bound(self, name: str, node: str) -> None:
        """The watch shows a pod on its node."""
        pod = self.found(Pod, name)
        self.put(msgspec.structs.replace(pod, spec=msgspec.structs.replace(pod.spec, node_name=node)))

    async def round(self) -> Outcome:
        """A round, and everything that it started as far as it gets."""
        outcome = await self.binder.round(ROUND)
        for _ in range(100):
            await anyio.lowlevel.checkpoint()
        return outcome

    @property
    def binds(self) -> list[tuple[str, str]]:
        """(pod, node) of every bind that was tried."""
        calls = [c for c in self.transport.calls if c.path.endswith("/binding")]
        return sorted((c.path.split("/")[-2], c.body["target"]["name"]) for c in calls)

    def calls(self, method: str, suffix: str) -> list[Call]:
        return [c for c in self.transport.calls if c.method == method and c.path.endswith(suffix)]

    def status(self, gang: str) -> dict[str, Any]:
        return self.found(PodGang, gang).status.to_manifest()

    def nodes(self, gang: str) -> set[str]:
        return {p.spec.node_name for p in self.caches.list(Pod) if p.metadata.labels.get(labels.PODGANG) == gang}

    @property
    def events(self) -> list[tuple[str, str]]:
        return [(ref.name, reason) for ref, reason, _, _ in self.recorder.events]


@asynccontextmanager
async def running(*gpus: int) -> AsyncGenerator[Scene]:
    """A scene whose nodes n0, n1, ... have so many GPUs; its binder runs."""
    scene = Scene(*gpus)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(scene.binder.binding.run, anyio.sleep_forever)
        await anyio.wait_all_tasks_blocked()
        yield scene
        tasks.cancel_scope.cancel()


FORBIDDEN = errors.Forbidden(403, "Forbidden", "no")


def held(scene: Scene, gate: anyio.Event) -> None:
    """Binds are answered when the gate opens, and the watch tells nothing of them."""

    async def waiting() -> Any:
        await gate.wait()
        return {}

    scene.answers["POST /binding"] = waiting
