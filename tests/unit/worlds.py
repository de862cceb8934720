"""Small PodCliqueSets and a world in memory for tests of observations and plans."""

from collections.abc import Iterator
from typing import Any, TypeVar

from api.core import Pod
from api.defaulting import default_podcliqueset
from api.grove import PodCliqueSet
from api.operatorconfig import OperatorConfiguration
from api.plan import Apply, ApplyStatus, Create, Delete, Emit, Key, Manifest, Op, Plan, SetFinalizers, Ungate
from api.podgang import PodGang
from cli.world import World

O = TypeVar("O")  # noqa: E741 - an operation

POD_SPEC: Manifest = {"containers": [{"name": "engine", "image": "registry.local/engine:1"}]}


def clique(name: str, replicas: int = 1, **spec: Any) -> Manifest:
    """A clique template."""
    return {"name": name, "spec": {"roleName": name, "replicas": replicas, "podSpec": POD_SPEC, **spec}}


def podcliqueset(*cliques: Manifest, name: str = "chat", replicas: int = 1, **template: Any) -> Manifest:
    """A PodCliqueSet manifest with defaults written out."""
    manifest = {
        "apiVersion": "grove.io/v1alpha1",
        "kind": "PodCliqueSet",
        "metadata": {"name": name, "namespace": "serving"},
        "spec": {"replicas": replicas, "template": {"cliques": list(cliques), **template}},
    }
    return default_podcliqueset(PodCliqueSet.model_validate(manifest)).to_manifest()


def settled(*manifests: Manifest, config: OperatorConfiguration | None = None) -> World:
    """A world with these objects in which every controller has run until nothing changed."""
    world = World(config or OperatorConfiguration())
    for manifest in manifests:
        world.put(manifest)
    world.settle()
    return world


def named(world: World, model: type[Any], name: str) -> Manifest:
    """The one object of that model and name."""
    return next(m for m in world.of_kind(model.KIND) if m["metadata"]["name"] == name)


def names(world: World, model: type[Any]) -> list[str]:
    """Names of all objects of a model, sorted."""
    return sorted(m["metadata"]["name"] for m in world.of_kind(model.KIND))


def change(world: World, model: type[Any], name: str, /, **parts: Any) -> Manifest:
    """Writes an object again with `metadata`, `spec` and `status` changed in the keys that are given; returns it."""
    live = named(world, model, name)
    changed = {**live, **{part: {**live.get(part, {}), **value} for part, value in parts.items()}}
    world.put(changed)
    return changed


def deleting(world: World, model: type[Any], name: str) -> None:
    """The object as it is while its deletion waits for something."""
    change(world, model, name, metadata={"deletionTimestamp": "2026-01-01T00:00:00Z"})


def chosen(plan: Plan, type_: type[O]) -> list[O]:
    """The plan's operations of one type."""
    return [op for op in plan.ops if isinstance(op, type_)]


def created(plan: Plan, model: type[Any]) -> list[str]:
    """Names of the objects of a model that a plan creates, in order."""
    return [op.manifest["metadata"]["name"] for op in chosen(plan, Create) if op.kind == model.KIND]


def deleted(plan: Plan, model: type[Any]) -> list[str]:
    """Names of the objects of a model that a plan deletes, in order."""
    return [op.ref.name for op in chosen(plan, Delete) if op.ref.kind == model.KIND]


def status_in(plan: Plan) -> dict[str, Any]:
    """The status that a plan writes."""
    (op,) = chosen(plan, ApplyStatus)
    return op.status


def condition_in(plan: Plan, type_: str) -> dict[str, Any]:
    """One condition of the status that a plan writes."""
    return next(c for c in status_in(plan)["conditions"] if c["type"] == type_)


def plans(world: World) -> Iterator[tuple[Key, Plan]]:
    """What every controller would do about every object now; the next plan is made when it is asked for."""
    for model, step in world._controllers():
        for key in [Key.of(o) for o in world.list(model)]:
            plan = step(key) if world.get(model, *key) is not None else None
            if plan is not None:
                yield key, plan


def carry_out(world: World, op: Op) -> None:
    """Does what an API server with garbage collection would make of an operation."""
    match op:
        case Create():
            world.put(op.manifest)
        case Apply():
            live = world.manifests[op.kind, Key(op.manifest["metadata"].get("namespace", ""), op.manifest["metadata"]["name"])]
            kept = {} if op.kind == PodGang.KIND else live.get("spec", {})
            meta = {**live["metadata"], **op.manifest["metadata"]}
            world.put({**live, **op.manifest, "metadata": meta, "spec": {**kept, **op.manifest["spec"]}})
        case ApplyStatus():
            world.put({**world.manifests[op.ref.kind, op.ref.key], "status": op.status})
        case SetFinalizers():
            live = world.manifests[op.ref.kind, op.ref.key]
            world.put({**live, "metadata": {**live["metadata"], "finalizers": list(op.finalizers)}})
        case Ungate():
            live = world.manifests[op.ref.kind, op.ref.key]
            gates = [g for g in live["spec"]["schedulingGates"] if g["name"] != op.gate]
            world.put({**live, "spec": {**live["spec"], "schedulingGates": gates}})
        case Delete():
            _collect(world, op.ref.uid)
        case _:
            pass


def _collect(world: World, uid: str) -> None:
    """Removes an object and everything that it owns."""
    for (kind, key), manifest in list(world.manifests.items()):
        meta = manifest["metadata"]
        if meta["uid"] == uid:
            world.remove(world._models[kind], key)
        elif any(o["uid"] == uid for o in meta.get("ownerReferences", ())):
            _collect(world, meta["uid"])


def converge(world: World) -> World:
    """Runs every controller, statuses and gates too, until no plan has an operation that writes."""
    for _ in range(30):
        writes = [op for _, plan in plans(world) for op in plan.ops if not isinstance(op, Emit) and not carry_out(world, op)]
        if not writes:
            return world
    raise AssertionError("the plans do not converge")


def start_pods(world: World) -> World:
    """Every pod without gates gets a node and becomes ready."""
    for pod in world.of_kind(Pod.KIND):
        if not pod["spec"].get("schedulingGates"):
            conditions = [{"type": "PodScheduled", "status": "True"}, {"type": "Ready", "status": "True"}]
            world.put({**pod, "spec": {**pod["spec"], "nodeName": "n"}, "status": {"phase": "Running", "conditions": conditions}})
    return world


def running(*manifests: Manifest, config: OperatorConfiguration | None = None) -> World:
    """A world in which everything that was asked for runs, Tail gangs too."""
    world = converge(settled(*manifests, config=config))
    while any(pod["spec"].get("nodeName") is None for pod in world.of_kind(Pod.KIND)):
        converge(start_pods(world))
    return world
