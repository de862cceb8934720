"""Random clusters with running pods, host anti-affinity, several resources and PodGangs: plans always pass the independent checker.

A plan that fails the check is dropped with reason SolverFallback, so that reason must never appear.
"""

import random
from collections import Counter
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from api import labels
from api.podgang import PodGang
from api.reasons import Reason
from scheduler.gangs import GangContext, build_gang
from scheduler.model import Decision, Gang, Plan
from scheduler.planner import plan_round
from scheduler.snapshot import ClusterState
from tests.sched_builders import GPU, NOW, TREE, cluster, make_node, make_pod


class _World:
    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)  # noqa: S311
        per_rack, n = self.rng.choice((1, 2, 4)), self.rng.randint(2, 24)
        self.nodes = [
            make_node(
                f"n{i:02}",
                self.rng.choice((0, 4, 8, 8)),
                {"rack": f"r{i // per_rack}", "block": f"b{i // per_rack // 3}"} if self.rng.random() < 0.9 else {},
                cpu=self.rng.choice((4, 16, 64)),
            )
            for i in range(n)
        ]
        self.pods = [make_pod("daemon", node=self.nodes[0].metadata.name)]
        self.podgangs = [self._podgang(f"g{i}") for i in range(self.rng.randint(1, 7))]
        self.pods += [
            make_pod(f"other{i}", gpus=self.rng.randint(0, 3), node=self.rng.choice(self.nodes).metadata.name, **self._deleting())
            for i in range(n // 2)
        ]

    def _deleting(self) -> dict[str, Any]:
        return {"metadata": {"deletionTimestamp": NOW.isoformat()}} if self.rng.random() < 0.3 else {}

    def _podgang(self, name: str) -> PodGang:
        rng = self.rng
        groups: list[dict[str, Any]] = []
        for j in range(rng.randint(1, 4)):
            count = rng.randint(1, 5)
            refs = [{"namespace": "default", "name": f"{name}-{j}-{i}"} for i in range(count)]
            self._pods(name, j, count)
            groups.append({"name": f"x{j}", "minReplicas": rng.randint(0, count), "podReferences": refs, **self._pack()})
        configs = [{"name": "c", "podGroupNames": ["x0", "x1", "unknown"], **self._pack()}] if rng.random() < 0.5 else []
        return PodGang.model_validate(
            {
                "metadata": {"name": name, "namespace": "default", "uid": name, "annotations": {labels.ANNOTATION_TOPOLOGY_NAME: "t"}},
                "spec": {"podgroups": groups, "topologyConstraintGroupConfigs": configs, **self._pack()},
            }
        )

    def _pack(self) -> dict[str, Any]:
        pack = {k: self.rng.choice(TREE) for k in ("required", "preferred") if self.rng.random() < 0.35}
        return {"topologyConstraint": {"packConstraint": pack}} if pack else {}

    def _pods(self, gang: str, group: int, count: int) -> None:
        rng = self.rng
        gpus, cpu = rng.choice((0, 1, 2, 4, 8)), rng.choice((0, 1, 3))
        running = rng.random() < 0.25
        spec: dict[str, Any] = {"containers": [{"resources": {"requests": {k: v for k, v in ((GPU, gpus), ("cpu", cpu)) if v}}}]}
        if rng.random() < 0.3:
            match = {"app": rng.choice((f"{gang}-{group}", f"{gang}-0"))}
            terms = [{"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": match}}]
            spec["affinity"] = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}
        for i in range(count):
            node = rng.choice(self.nodes).metadata.name if running and rng.random() < 0.5 else ""
            marks = {labels.PODGANG: gang, "app": f"{gang}-{group}", labels.POD_INDEX: str(i)}
            gates = {"schedulingGates": [{"name": "g"}]} if rng.random() < 0.05 and not node else {}
            self.pods.append(make_pod(f"{gang}-{group}-{i}", metadata={"labels": marks}, spec={**spec, "nodeName": node, **gates}))

    def state(self) -> ClusterState:
        return cluster(self.nodes, self.pods)

    def gangs(self) -> list[Gang]:
        keys = {k for n in self.nodes for k in n.metadata.labels}
        context = GangContext({"t": TREE}, lambda key: key in keys)
        return [build_gang(g, self.pods, context) for g in self.podgangs]


def _fallbacks(decisions: list[Decision]) -> list[str]:
    return [r.why.message for _, r in decisions if not isinstance(r, Plan) and r.why is not None and r.why.reason is Reason.SOLVER_FALLBACK]


@given(st.integers(0, 10**9))
@settings(max_examples=80, deadline=None)
def test_no_plan_fails_the_check(seed: int) -> None:
    world = _World(seed)
    decisions = plan_round(world.state().snapshot(NOW), world.gangs())
    assert _fallbacks(decisions) == []
    for _, result in decisions:
        why = result.notes if isinstance(result, Plan) else (result.why,)
        for w in why:
            assert w is None or (w.message.endswith(".") and len(w.message.encode()) <= 1024)


@given(st.integers(0, 10**9))
@settings(max_examples=30, deadline=None)
def test_nodes_are_never_overcommitted_by_ready_pods(seed: int) -> None:
    world = _World(seed)
    state = world.state()
    snapshot = state.snapshot(NOW)
    shapes = {m.uid: m.shape for g in world.gangs() for x in g.groups for m in x.members}
    used: Counter[tuple[str, str]] = Counter()
    for _, result in plan_round(snapshot, world.gangs()):
        for a in result.ready if isinstance(result, Plan) else ():
            for name, amount in shapes[a.uid].request:
                used[a.node, name] += amount
    for (node, name), amount in used.items():
        assert amount <= snapshot.free[snapshot.table.row_of[node], snapshot.columns[name]]


@given(st.integers(0, 10**9))
@settings(max_examples=30, deadline=None)
def test_the_next_round_places_no_pod_again(seed: int) -> None:
    world = _World(seed)
    state = world.state()
    by_name = {p.metadata.name: p for p in world.pods}
    context = GangContext({"t": TREE}, lambda _: True)
    gangs = [build_gang(g, world.pods, context) for g in world.podgangs]
    ready = [a for _, r in plan_round(state.snapshot(NOW), gangs) if isinstance(r, Plan) for a in r.ready]
    for a in ready:
        state.assume(by_name[a.name], a.node)
    context = GangContext({"t": TREE}, lambda _: True, assumed=state.assumed)
    gangs = [build_gang(g, world.pods, context) for g in world.podgangs]
    again = {a.name for _, r in plan_round(state.snapshot(NOW), gangs) if isinstance(r, Plan) for a in r.ready}
    assert not again & {a.name for a in ready}
