"""From PodGang and pods to a gang."""

from typing import Any

import pytest

from api import labels
from api.podgang import PodGang
from api.reasons import Reason
from scheduler.gangs import GangContext, build_gang
from scheduler.model import Gang, MemberState
from tests.sched_builders import NOW, make_pod

CONTEXT = GangContext(topologies={"t": ("zone", "block", "rack")}, has_label_key=lambda key: key in ("zone", "block", "rack", "odd"))


def _pack(**levels: str) -> dict[str, Any]:
    return {"topologyConstraint": {"packConstraint": levels}}


def _podgang(*groups: dict[str, Any], topology: str = "t", **spec: Any) -> PodGang:
    marks = {labels.ANNOTATION_TOPOLOGY_NAME: topology} if topology else {}
    return PodGang.model_validate(
        {
            "metadata": {"name": "g", "namespace": "default", "uid": "u", "annotations": marks, "creationTimestamp": NOW.isoformat()},
            "spec": {"podgroups": list(groups), **spec},
        }
    )


def _group(name: str, *pods: str, minimum: int = 1, **extra: Any) -> dict[str, Any]:
    return {"name": name, "minReplicas": minimum, "podReferences": [{"namespace": "default", "name": p} for p in pods], **extra}


def _pod(name: str, **parts: Any) -> Any:
    parts.setdefault("metadata", {"labels": {labels.PODGANG: "g"}})
    return make_pod(name, **parts)


def _build(podgang: PodGang, *pods: Any, context: GangContext = CONTEXT) -> Gang:
    return build_gang(podgang, pods, context)


def test_scopes_follow_configs_then_other_groups() -> None:
    podgang = _podgang(
        _group("a"),
        _group("b", **_pack(required="rack")),
        _group("c"),
        topologyConstraintGroupConfigs=[
            {"name": "k", "podGroupNames": ["b", "missing"], **_pack(preferred="block")},
            {"name": "empty", "podGroupNames": ["missing"]},
        ],
        **_pack(required="zone", preferred="rack"),
    )
    root = _build(podgang).root
    assert (root.required, root.preferred, root.min_children) == (0, 2, 3)
    assert [(s.name, s.kind, s.required, s.preferred, s.min_children) for s in root.children] == [
        ("k", "config", None, 1, 1),
        ("a", "group", None, None, 0),
        ("c", "group", None, None, 0),
    ]
    assert root.children[0].children[0].required == 2


@pytest.mark.parametrize(
    ("pack", "levels", "n_warnings"),
    [
        ({"required": "rack", "preferred": "rack"}, (2, None), 0),
        ({"required": "rack", "preferred": "zone"}, (2, None), 1),
        ({"required": "zone", "preferred": "rack"}, (0, 2), 0),
    ],
)
def test_preferred_counts_only_below_required(pack: dict[str, str], levels: tuple[int, int | None], n_warnings: int) -> None:
    gang = _build(_podgang(_group("a"), **_pack(**pack)))
    assert ((gang.root.required, gang.root.preferred), len(gang.warnings)) == (levels, n_warnings)


@pytest.mark.parametrize(
    ("topology", "level", "strict", "reason"),
    [
        ("t", "rack", False, None),
        ("t", "odd", False, Reason.LEVEL_MISSING),
        ("other", "rack", False, Reason.TOPOLOGY_MISSING),
        ("", "odd", False, None),
        ("", "nowhere", False, Reason.LEVEL_MISSING),
        ("", "odd", True, Reason.TOPOLOGY_MISSING),
    ],
)
def test_topology_problems(topology: str, level: str, strict: bool, reason: Reason | None) -> None:
    context = GangContext(CONTEXT.topologies, CONTEXT.has_label_key, strict_topology=strict)
    gang = _build(_podgang(_group("a", **_pack(required=level)), topology=topology), context=context)
    assert (gang.problem and gang.problem.reason) == reason
    if reason is None and not topology:
        assert gang.root.children[0].tree == (level,)
        assert gang.warnings[0].reason is Reason.ADVISORY


def test_members_by_state_and_order() -> None:
    names = ["late", "gated", "assumed", "running", "done", "failed", "gone", "missing", "urgent"]
    pods = [
        _pod("late", metadata={"labels": {labels.POD_INDEX: "9"}}),
        _pod("gated", spec={"schedulingGates": [{"name": "x"}]}, metadata={"labels": {labels.POD_INDEX: "1"}}),
        _pod("assumed", metadata={"labels": {labels.POD_INDEX: "2"}}),
        _pod("running", node="n", metadata={"labels": {labels.POD_INDEX: "3"}}),
        _pod("done", node="n", status={"phase": "Succeeded"}, metadata={"labels": {labels.POD_INDEX: "4"}}),
        _pod("failed", node="n", status={"phase": "Failed"}),
        _pod("gone", node="n", metadata={"deletionTimestamp": NOW.isoformat()}),
        _pod("urgent", spec={"priority": 5}),
    ]
    context = GangContext(CONTEXT.topologies, CONTEXT.has_label_key, assumed={"assumed": "m"})
    (group,) = _build(_podgang(_group("a", *names)), *pods, context=context).groups
    assert [(m.name, m.state, m.node) for m in group.members] == [
        ("urgent", MemberState.PENDING, ""),
        ("gated", MemberState.GATED, ""),
        ("assumed", MemberState.PLACED, "m"),
        ("running", MemberState.PLACED, "n"),
        ("done", MemberState.SUCCEEDED, "n"),
        ("late", MemberState.PENDING, ""),
    ]
    assert group.listed == 9


def test_a_pods_label_decides_which_gang_it_is_of() -> None:
    gang = _build(_podgang(_group("a", "x")), _pod("x", metadata={"labels": {labels.PODGANG: "other"}}))
    assert gang.groups[0].members == ()
    assert gang.warnings[0].reason is Reason.CONFLICT


def test_foreign_references_are_refused() -> None:
    group = {"name": "a", "minReplicas": 1, "podReferences": [{"namespace": "elsewhere", "name": "x"}]}
    problem = _build(_podgang(group)).problem
    assert problem is not None
    assert problem.reason is Reason.INVALID_SPEC


def _owned(name: str, kind: str = "PodClique", **spec: Any) -> Any:
    owners = [{"apiVersion": "x/v1", "kind": kind, "name": "o", "uid": "o", "controller": True}]
    return _pod(name, metadata={"labels": {labels.PODGANG: "g"}, "ownerReferences": owners}, spec=spec)


def test_an_ungated_pod_that_is_not_listed_tells_that_the_podgang_is_old() -> None:
    assert _build(_podgang(_group("a", "x")), _pod("x"), _owned("y")).stale is not None
    assert _build(_podgang(_group("a", "x")), _pod("x"), _owned("y", schedulingGates=[{"name": "x"}])).stale is None


@pytest.mark.parametrize("stray", [_pod("y"), _owned("y", "ReplicaSet"), _owned("y", schedulerName="other")])
def test_a_pod_that_will_never_be_listed_does_not_block_the_gang(stray: Any) -> None:
    assert _build(_podgang(_group("a", "x")), _pod("x"), stray).stale is None


def test_a_pod_with_a_malformed_quantity_is_refused_by_name() -> None:
    bad = _pod("x", spec={"containers": [{"resources": {"requests": {"cpu": "lots"}}}]})
    problem = _build(_podgang(_group("a", "x")), bad).problem
    assert problem is not None
    assert problem.reason is Reason.INVALID_SPEC
    assert problem.message.startswith("Pod x asks for cpu: 'lots' is not a quantity")


def test_priority_base_and_age() -> None:
    pod = _pod("x", spec={"priority": 3}, metadata={"labels": {labels.PODGANG: "g", labels.BASE_PODGANG: "base"}})
    gang = _build(_podgang(_group("a", "x")), pod)
    assert (gang.priority, gang.base, gang.created) == (3, "base", NOW.isoformat())
    context = GangContext({}, lambda _: True, priorities={"high": 7})
    assert _build(_podgang(_group("a", "x"), priorityClassName="high"), pod, context=context).priority == 7
    assert _build(_podgang(_group("a", "x"), priorityClassName="gone"), pod, context=context).priority == 3


def _anti(key: str = "kubernetes.io/hostname", kind: str = "podAntiAffinity", **term: Any) -> dict[str, Any]:
    body = {"topologyKey": key, "labelSelector": {"matchLabels": {"app": "a"}}, **term}
    return {"affinity": {kind: {"requiredDuringSchedulingIgnoredDuringExecution": [body]}}}


@pytest.mark.parametrize(
    ("spec", "feature"),
    [
        ({"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "c"}}]}, "persistent volume claim"),
        ({"volumes": [{"name": "v", "ephemeral": {}}]}, "persistent volume claim"),
        ({"resourceClaims": [{"name": "c"}]}, "resource claim"),
        ({"containers": [{"ports": [{"hostPort": 80}]}]}, "host port"),
        (_anti(kind="podAffinity"), "required pod affinity"),
        (_anti("zone"), "anti-affinity"),
        (_anti(namespaceSelector={}), "anti-affinity"),
        ({"topologySpreadConstraints": [{"topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"}]}, "spread"),
        ({"topologySpreadConstraints": [{"topologyKey": "zone", "whenUnsatisfiable": "ScheduleAnyway"}]}, ""),
        (_anti(), ""),
        ({"volumes": [{"name": "v"}]}, ""),
    ],
)
def test_unsupported_features_are_refused_by_name(spec: dict[str, Any], feature: str) -> None:
    problem = _build(_podgang(_group("a", "x")), _pod("x", spec=spec)).problem
    assert (problem is not None) == bool(feature)
    if problem is not None:
        assert feature in problem.message
        assert "x" in problem.message
        extender = GangContext(CONTEXT.topologies, CONTEXT.has_label_key, mode="extender")
        assert _build(_podgang(_group("a", "x")), _pod("x", spec=spec), context=extender).problem is None


def test_groups_that_may_not_share_a_node() -> None:
    def pod(name: str, app: str, **spec: Any) -> Any:
        return _pod(name, metadata={"labels": {labels.PODGANG: "g", "app": app}}, spec=spec)

    podgang = _podgang(_group("a", "x"), _group("b", "y"), _group("c", "z"))
    gang = _build(podgang, pod("x", "a", **_anti()), pod("y", "b", **_anti()), pod("z", "c"))
    assert [sorted(g.apart) for g in gang.groups] == [["a", "b"], ["a"], []]
