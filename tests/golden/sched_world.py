"""Turns scheduler acceptance cases (schemas sched-case/v1 and sched-e2e/v1) into nodes, pods and gangs, and runs rounds on them."""

import json
import os
import re
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import msgspec

from api import labels
from api.core import Node, Pod
from api.podgang import PodGang
from scheduler.eligibility import rules_of
from scheduler.gangs import GangContext, build_gang
from scheduler.model import Decision, Gang, Group, Member, MemberState, Plan, Scope, Shape
from scheduler.planner import plan_round
from scheduler.requests import pod_request
from scheduler.snapshot import ClusterState

NOW = datetime(2026, 1, 1, tzinfo=UTC)
GPU = "nvidia.com/gpu"
AFFINITY = "node-affinity"


def shared_cases() -> Path | None:
    """The directory of the cases, None when it is not there."""
    root = Path(os.environ.get("GROVEKEEPER_SHARED", Path(__file__).parents[2].parent / "shared"))
    found = root / "cases" / "scheduler"
    return found if found.is_dir() else None


def load(family: str) -> list[dict[str, Any]]:
    """Cases of one file."""
    directory = shared_cases()
    return [] if directory is None else json.loads((directory / f"{family}.json").read_text())["cases"]


def node(name: str, allocatable: dict[str, Any], node_labels: dict[str, str], *, cordoned: bool = False, ready: bool = True) -> Node:
    """A node object."""
    return msgspec.convert(
        {
            "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name, **node_labels}},
            "spec": {"unschedulable": cordoned},
            "status": {"allocatable": allocatable, "conditions": [{"type": "Ready", "status": "True" if ready else "False"}]},
        },
        Node,
    )


@dataclass
class World:
    """Nodes, pods by name, and how to make gangs of the pods. `round` plans once and carries out what may be bound."""

    state: ClusterState = field(default_factory=ClusterState)
    pods: dict[str, dict[str, Any]] = field(default_factory=dict[str, dict[str, Any]])
    node_labels: dict[str, dict[str, str]] = field(default_factory=dict[str, dict[str, str]])
    reserved: set[str] = field(default_factory=set[str])

    def add_pod(self, manifest: dict[str, Any]) -> None:
        name = manifest["metadata"]["name"]
        manifest["metadata"] |= {"uid": name, "namespace": "default"}
        self.pods[name] = manifest
        self.state.set_pod(self.pod(name))

    def pod(self, name: str) -> Pod:
        return msgspec.convert(self.pods[name], Pod)

    def bind(self, name: str, to: str) -> None:
        self.pods[name]["spec"]["nodeName"] = to
        self.state.set_pod(self.pod(name))

    def round(self, gangs: list[Gang]) -> list[Decision]:
        decisions = plan_round(self.state.snapshot(NOW), gangs)
        self.reserved = set()
        for _, result in decisions:
            if isinstance(result, Plan):
                ready = set(result.ready)
                for a in result.assignments:
                    if a in ready:
                        self.bind(a.name, a.node)
                    else:
                        self.reserved.add(a.name)
        return decisions

    def finish_terminating(self) -> bool:
        """Deleted pods that are not stuck vanish."""
        gone = [n for n, p in self.pods.items() if p["metadata"].get("deletionTimestamp") == NOW.isoformat()]
        for name in gone:
            self.state.remove_pod(name)
            del self.pods[name]
        return bool(gone)


def kai_world(case: dict[str, Any]) -> World:
    """Nodes and pods of a sched-case/v1 case."""
    world = World()
    for n in case["nodes"]:
        allocatable = {GPU: n["gpus"], "cpu": f"{n.get('cpu_m', 20000)}m", "memory": "1Ti", "pods": n.get("max_pods", 110)}
        extra = {AFFINITY: n["name"], **n.get("labels", {})}
        world.node_labels[n["name"]] = extra
        world.state.set_node(node(n["name"], allocatable, extra, cordoned=n.get("cordoned", False), ready=n.get("ready", True)))
    for gang in case["gangs"]:
        for pod in gang["pods"]:
            world.add_pod(_kai_pod(gang, pod))
    return world


def _kai_pod(gang: dict[str, Any], pod: dict[str, Any]) -> dict[str, Any]:
    requests: dict[str, Any] = {}
    if gpu := pod.get("gpu", gang["gpu"]):
        requests[GPU] = gpu
    if cpu := gang.get("cpu_m"):
        requests["cpu"] = f"{cpu}m"
    spec: dict[str, Any] = {"containers": [{"name": "c", "resources": {"requests": requests}}], "priority": pod.get("prio", 0)}
    if pod.get("affinity"):
        terms = [{"matchExpressions": [{"key": AFFINITY, "operator": "In", "values": pod["affinity"]}]}]
        spec["affinity"] = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}}
    if "selector" in pod:
        spec["nodeSelector"] = pod["selector"]
    if "node" in pod:
        spec["nodeName"] = pod["node"]
    metadata: dict[str, Any] = {"name": pod["name"], "labels": {"test/group": pod["group"]}}
    if pod["state"] == "evicting":
        metadata["deletionTimestamp"] = NOW.isoformat()
    if pod["state"] == "stuck-evicting":
        metadata["deletionTimestamp"] = (NOW - timedelta(minutes=10)).isoformat()
    phase = {"succeeded": "Succeeded", "failed": "Failed", "running": "Running"}.get(pod["state"], "Pending")
    return {"metadata": metadata, "spec": spec, "status": {"phase": phase}}


def kai_gangs(case: dict[str, Any], world: World) -> list[Gang]:
    """Gangs of the case as the world stands."""
    levels = {t["name"]: tuple(t["levels"]) for t in case.get("topologies", ())}
    gangs: list[Gang] = []
    for index, g in enumerate(case["gangs"]):
        minimums: dict[str, int] = {}
        root = _scope(g["tree"], levels, minimums, "root")
        groups: list[Group] = []
        for name, minimum in minimums.items():
            pods = [world.pod(p["name"]) for p in g["pods"] if p["group"] == name and p["name"] in world.pods]
            live = [p for p in pods if not p.metadata.deleting and p.status.phase != "Failed"]
            members = sorted((_member(p, name) for p in live), key=lambda m: (-m.priority, m.name))
            groups.append(Group(name, "default", minimum, tuple(members)))
        gangs.append(Gang(g["name"], "default", g["name"], root, tuple(groups), 1, g["priority"], f"{index:04}", g.get("after", "")))
    return gangs


def _member(pod: Pod, group: str) -> Member:
    state = MemberState.PENDING
    if pod.status.phase == "Succeeded":
        state = MemberState.SUCCEEDED
    elif pod.spec.node_name:
        state = MemberState.PLACED
    shape = Shape(group, pod_request(pod), rules_of(pod))
    return Member(pod.metadata.uid, pod.metadata.name, shape, state, pod.spec.node_name, pod.spec.priority)


def _scope(tree: dict[str, Any], levels: dict[str, tuple[str, ...]], minimums: dict[str, int], kind: Any) -> Scope:
    keys = levels.get(tree.get("topology", ""), ())
    required = keys.index(tree["required"]) if "required" in tree else None
    preferred = keys.index(tree["preferred"]) if "preferred" in tree else None
    if required is not None and preferred is not None and preferred <= required:
        preferred = None
    if "min" in tree:
        minimums[tree["name"]] = tree["min"]
        return Scope(tree["name"], "group", keys, required, preferred, group=tree["name"])
    sets = [_scope(s, levels, minimums, "config") for s in tree.get("sets", ())]
    leaves = [_scope(x, levels, minimums, "group") for x in tree.get("groups", ())]
    children = (*sets, *leaves)
    return Scope(tree["name"], kind, keys, required, preferred, tree.get("min_children", len(children)), children)


class GroveWorld(World):
    """Nodes of a generator and gangs in the shape of PodGangs (sched-e2e/v1)."""

    gangs: dict[str, dict[str, Any]]

    def __init__(self, case: dict[str, Any]) -> None:
        super().__init__()
        self.gangs = {}
        self.topologies = case.get("topologies", [])
        generator = case["nodes"]["generator"]
        self.nodes = [self._node(generator, i) for i in range(generator["count"])]
        self.cordoned = case.get("cordoned", 0)
        for i, (name, extra) in enumerate(self.nodes):
            self.node_labels[name] = extra
            self._set_node(i, cordoned=i < self.cordoned, capacity=generator["capacity"])
        self.capacity = generator["capacity"]

    def _set_node(self, index: int, *, cordoned: bool, capacity: int) -> None:
        name, extra = self.nodes[index]
        self.state.set_node(node(name, {"memory": capacity, "pods": 110, "cpu": 4}, extra, cordoned=cordoned))

    def uncordon(self, count: int) -> None:
        for i in range(self.cordoned - count, self.cordoned):
            self._set_node(i, cordoned=False, capacity=self.capacity)
        self.cordoned -= count

    def add(self, gang: dict[str, Any]) -> None:
        self.gangs[gang["name"]] = {**gang, "index": len(self.gangs)}
        for group in gang["groups"]:
            for i in range(group["pods"]):
                self.add_pod(self._pod(gang, group, i))

    def plan(self) -> list[Decision]:
        return self.round([self._gang(g) for g in self.gangs.values()])

    def placed(self) -> dict[str, str]:
        return {n: p["spec"]["nodeName"] for n, p in self.pods.items() if "nodeName" in p["spec"]}

    def levels_of(self, gang: dict[str, Any]) -> dict[str, str]:
        topology = self._topology(gang)
        return dict(zip(topology["domains"], topology["levels"], strict=True)) if topology else {}

    def _topology(self, gang: dict[str, Any]) -> dict[str, Any] | None:
        named = [t for t in self.topologies if t["name"].split("-")[0] == gang["name"].split("-")[0]]
        return (named or self.topologies or [None])[0]

    def _gang(self, gang: dict[str, Any]) -> Gang:
        topology = self._topology(gang)
        keys = self.levels_of(gang)
        groups = [
            {
                "name": g["name"],
                "minReplicas": g["min"],
                "podReferences": [{"namespace": "default", "name": _pod_name(gang, g, i)} for i in range(g["pods"])],
                **_constraint(g, keys),
            }
            for g in gang["groups"]
        ]
        configs = [{"name": c["name"], "podGroupNames": c["groups"], **_constraint(c, keys)} for c in gang.get("configs", ())]
        manifest = {
            "metadata": {
                "name": gang["name"],
                "namespace": "default",
                "uid": f"gang-{gang['name']}",
                "creationTimestamp": (NOW + timedelta(seconds=gang["index"])).isoformat(),
                "annotations": {labels.ANNOTATION_TOPOLOGY_NAME: topology["name"]} if topology else {},
            },
            "spec": {"podgroups": groups, "topologyConstraintGroupConfigs": configs, **_constraint(gang, keys)},
        }
        context = GangContext(
            topologies={t["name"]: tuple(t["levels"]) for t in self.topologies},
            has_label_key=lambda key: any(key in extra for extra in self.node_labels.values()),
        )
        return build_gang(PodGang.model_validate(manifest), [self.pod(n) for n in self.pods], context)

    def _pod(self, gang: dict[str, Any], group: dict[str, Any], index: int) -> dict[str, Any]:
        extra = {labels.PODGANG: gang["name"], labels.PODCLIQUE: f"{gang['name']}.{group['name']}", labels.POD_INDEX: str(index)}
        if "after" in gang:
            extra[labels.BASE_PODGANG] = gang["after"]
        spec: dict[str, Any] = {"containers": [{"name": "c", "resources": {"requests": {"memory": group["size"]}}}]}
        if group.get("anti_affinity") == "host":
            term = {
                "topologyKey": "kubernetes.io/hostname",
                "labelSelector": {"matchLabels": {labels.PODCLIQUE: extra[labels.PODCLIQUE]}},
            }
            spec["affinity"] = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
        return {"metadata": {"name": _pod_name(gang, group, index), "labels": extra}, "spec": spec, "status": {}}

    @staticmethod
    def _node(generator: dict[str, Any], i: int) -> tuple[str, dict[str, str]]:
        extra = {key: text for key, template in generator.get("labels", {}).items() if (text := _label(template, i)) is not None}
        return generator["name"].replace("{i}", str(i)), extra


def _pod_name(gang: dict[str, Any], group: dict[str, Any], index: int) -> str:
    return f"{gang['name']}.{group['name']}.{index}"


def _constraint(part: dict[str, Any], keys: dict[str, str]) -> dict[str, Any]:
    pack = {k: keys[part[k]] for k in ("required", "preferred") if k in part}
    return {"topologyConstraint": {"packConstraint": pack}} if pack else {}


def _label(template: str, i: int) -> str | None:
    """Label value for node i: "{i//7}" is an expression of i, " if i<14" limits it to some nodes."""
    text, _, condition = template.partition(" if ")
    if condition:
        op, right = re.fullmatch(r"i(<|>=)(\d+)", condition).groups()  # type: ignore[union-attr]
        if not (i < int(right) if op == "<" else i >= int(right)):
            return None

    def value(match: re.Match[str]) -> str:
        expression = match[1]
        if expression == "i":
            return str(i)
        found = re.fullmatch(r"\(?i(?:-(\d+)\))?//(\d+)", expression)
        return str((i - int(found[1] or 0)) // int(found[2])) if found else str(i // 7)

    return re.sub(r"\{([^}]*)\}", value, text)
