"""Builders of objects: startup order, environment variables, shared claims, schedulers, metadata."""

import copy
from typing import Any

import pytest

from api import labels
from api.core import Pod
from api.grove import PodClique, PodCliqueSet
from api.objects.env import clique_environment, member_environment, with_environment
from api.objects.podclique import standalone_podclique
from api.objects.scheduler import prepare_pod, scheduler_of
from api.objects.startup import has_startup_order, starts_after
from api.objects.template import Membership, clique_template, group_of_clique, standalone_cliques
from api.plan import Manifest
from tests.admission import clique, group, pcs
from tests.unit import worlds
from tests.unit.worlds import change, converge, podcliqueset, settled

# startup order

GROUPS = [group("x", "b", "c", replicas=3, minAvailable=2), group("y", "d", replicas=2, minAvailable=1)]


def started(kind: str, **parents: list[str]) -> PodCliqueSet:
    """Cliques a and e stand alone, b and c are in group x, d is in group y."""
    cliques = [clique(n, spec={"startsAfter": parents[n]} if n in parents else {}) for n in "abcde"]
    return pcs(*cliques, podCliqueScalingGroups=GROUPS, cliqueStartupType=f"CliqueStartupType{kind}")


def parents_of(subject: PodCliqueSet, name: str, replica: int | None = None) -> list[str]:
    """What a clique waits for in replica 0 of the set, as a member of replica `replica` of its group."""
    config = group_of_clique(subject, name)
    member = Membership.of(subject, 0, config, replica or 0) if config is not None else None
    return list(starts_after(subject, 0, name, member))


IN_ORDER = started("InOrder")
EXPLICIT = started("Explicit", b=["a"], c=["b"], d=["b", "c", "e"], e=["a", "b"])

ORDERS: list[tuple[str, PodCliqueSet, str, int | None, list[str]]] = [
    ("any order has no parents", started("AnyOrder", b=["a"]), "b", 0, []),
    ("the first clique has none", IN_ORDER, "a", None, []),
    ("anchor member after a standalone clique", IN_ORDER, "b", 1, ["chat-0-a"]),
    ("anchor member after its own group: all anchor replicas", IN_ORDER, "c", 0, ["chat-0-x-0-b", "chat-0-x-1-b"]),
    ("anchor member after another group: all anchor replicas", IN_ORDER, "d", 0, ["chat-0-x-0-c", "chat-0-x-1-c"]),
    ("standalone clique after a group: all anchor replicas", IN_ORDER, "e", None, ["chat-0-y-0-d"]),
    ("tail member after its own group: its own replica", IN_ORDER, "c", 2, ["chat-0-x-2-b"]),
    ("tail member after a standalone clique: none", IN_ORDER, "b", 2, []),
    ("tail member after another group: none", IN_ORDER, "d", 1, []),
    ("explicit parents in order", EXPLICIT, "e", None, ["chat-0-a", "chat-0-x-0-b", "chat-0-x-1-b"]),
    ("explicit without parents", EXPLICIT, "a", None, []),
    (
        "explicit across groups",
        EXPLICIT,
        "d",
        0,
        ["chat-0-x-0-b", "chat-0-x-1-b", "chat-0-x-0-c", "chat-0-x-1-c", "chat-0-e"],
    ),
    ("explicit in a tail keeps what is in the same gang", EXPLICIT, "c", 2, ["chat-0-x-2-b"]),
    ("explicit in a tail drops the rest", EXPLICIT, "d", 1, []),
    ("a clique that does not exist waits for nothing", IN_ORDER, "zz", None, []),
]


@pytest.mark.parametrize(("subject", "name", "replica", "expected"), [o[1:] for o in ORDERS], ids=[o[0] for o in ORDERS])
def test_what_a_clique_waits_for(subject: PodCliqueSet, name: str, replica: int | None, expected: list[str]) -> None:
    assert parents_of(subject, name, replica) == expected


@pytest.mark.parametrize(
    ("subject", "expected"),
    [
        (IN_ORDER, True),
        (EXPLICIT, True),
        (started("Explicit"), False),
        (started("AnyOrder", b=["a"]), False),
        (pcs(clique("a"), cliqueStartupType="CliqueStartupTypeInOrder"), False),
    ],
    ids=["in order", "explicit", "explicit without parents", "any order", "a single clique"],
)
def test_whether_a_set_has_an_order(subject: PodCliqueSet, expected: bool) -> None:
    assert has_startup_order(subject) is expected


def test_parents_of_a_template_without_explicit_order_do_not_reach_the_clique() -> None:
    subject = started("AnyOrder", e=["a"])
    template = clique_template(subject, "e")
    assert template is not None
    assert "startsAfter" not in standalone_podclique(subject, 0, template)["spec"]


def test_the_waiter_takes_the_minimum_of_the_right_template() -> None:
    """Names that end alike must not be confused: ab and b, and a member whose full name ends in another clique's name."""
    cliques = (
        worlds.clique("ab", 5, minAvailable=4),
        worlds.clique("b", 3, minAvailable=2),
        worlds.clique("x-1-ab", 4, minAvailable=3),
        worlds.clique("z", 1, startsAfter=["ab", "b", "x-1-ab"]),
    )
    config = {"name": "x", "cliqueNames": ["b"], "replicas": 2, "minAvailable": 2}
    startup: dict[str, Any] = {"cliqueStartupType": "CliqueStartupTypeExplicit", "podCliqueScalingGroups": [config]}
    pods = settled(podcliqueset(*cliques, **startup)).of_kind(Pod.KIND)
    pod = next(p for p in pods if p["spec"]["hostname"] == "chat-0-z-0")
    waiter = pod["spec"]["initContainers"][-1]
    parents = ["chat-0-ab:4", "chat-0-x-0-b:2", "chat-0-x-1-b:2", "chat-0-x-1-ab:3"]
    assert waiter["args"] == [f"--podcliques={parent}" for parent in parents]


@pytest.mark.parametrize("name", ["chat-0-x-²-b", "chat-0-x--b", "chat-0-x-9999999999-b", "", "chat-0-x-", "-", "other-0-x-0-b"])
def test_a_parent_that_somebody_wrote_by_hand_stops_nothing(name: str) -> None:
    config = {"name": "x", "cliqueNames": ["b"]}
    world = settled(podcliqueset(worlds.clique("a"), worlds.clique("b", 2), podCliqueScalingGroups=[config]))
    change(world, PodClique, "chat-0-a", spec={"startsAfter": [name], "replicas": 2})
    converge(world)
    made = [p for p in world.of_kind(Pod.KIND) if p["spec"]["hostname"] == "chat-0-a-1"]
    assert len(made) == 1


# environment


CONTAINERS: Manifest = {
    "containers": [
        {"name": "one", "env": [{"name": "GROVE_PCS_NAME", "value": "mine"}, {"name": "MODEL", "value": "$(GROVE_PCS_NAME)"}]},
        {"name": "two"},
    ],
    "initContainers": [{"name": "warm", "env": [{"name": "A", "value": "1"}]}],
}


def test_our_variables_come_first_and_replace_those_of_the_same_name() -> None:
    before = copy.deepcopy(CONTAINERS)
    out = with_environment(CONTAINERS, clique_environment("chat", 2, "chat-2-w", "serving"))
    assert before == CONTAINERS, "the template is never changed"
    ours = ["GROVE_PCS_NAME", "GROVE_PCS_INDEX", "GROVE_PCLQ_NAME", "GROVE_HEADLESS_SERVICE", "GROVE_PCLQ_POD_INDEX"]
    found = {c["name"]: [v["name"] for v in c["env"]] for c in (*out["containers"], *out["initContainers"])}
    assert found == {"one": [*ours, "MODEL"], "two": ours, "warm": [*ours, "A"]}
    values = {v["name"]: v.get("value", v.get("valueFrom")) for v in out["containers"][0]["env"]}
    assert values["GROVE_PCS_NAME"] == "chat"
    assert values["GROVE_PCS_INDEX"] == "2"
    assert values["GROVE_HEADLESS_SERVICE"] == "chat-2.serving.svc.cluster.local"
    assert values["GROVE_PCLQ_POD_INDEX"] == {"fieldRef": {"fieldPath": f"metadata.labels['{labels.POD_INDEX}']"}}


def test_variables_are_not_shared_between_containers() -> None:
    out = with_environment(CONTAINERS, member_environment(7))
    first, second = out["containers"]
    assert first["env"][1] == second["env"][1] == {"name": "GROVE_PCSG_TEMPLATE_NUM_PODS", "value": "7"}
    assert first["env"][1] is not second["env"][1]


@pytest.mark.parametrize("spec", [{}, {"containers": None}, {"containers": [{"name": "c", "env": None}], "initContainers": None}])
def test_pod_specs_without_containers_or_variables(spec: Manifest) -> None:
    out = with_environment(spec, member_environment(1))
    assert all(len(c["env"]) == 3 for c in out.get("containers") or ())


def test_the_order_of_variables_of_a_member_pod() -> None:
    spec = {"containers": [{"name": "c", "image": "i", "env": [{"name": "GROVE_PCSG_INDEX", "value": "x"}, {"name": "B", "value": "1"}]}]}
    config = {"name": "g", "cliqueNames": ["lead", "work"]}
    cliques = (worlds.clique("lead", podSpec=spec), worlds.clique("work", 4))
    world = settled(podcliqueset(*cliques, podCliqueScalingGroups=[config]))
    pod = next(p for p in world.of_kind(Pod.KIND) if p["spec"]["hostname"] == "chat-0-g-0-lead-0")
    env = {v["name"]: v.get("value") for v in pod["spec"]["containers"][0]["env"]}
    assert list(env) == [
        "GROVE_PCS_NAME",
        "GROVE_PCS_INDEX",
        "GROVE_PCLQ_NAME",
        "GROVE_HEADLESS_SERVICE",
        "GROVE_PCLQ_POD_INDEX",
        "GROVE_PCSG_NAME",
        "GROVE_PCSG_TEMPLATE_NUM_PODS",
        "GROVE_PCSG_INDEX",
        "B",
    ]
    assert env["GROVE_PCSG_TEMPLATE_NUM_PODS"] == "5"


# labels and annotations of cliques


def test_computed_labels_win_over_those_of_the_template() -> None:
    mine = {labels.PART_OF: "somebody", labels.PODGANG: "somebody", "team": "serving"}
    subject = pcs(clique("w", labels=mine, annotations={"note": "x", labels.ANNOTATION_TOPOLOGY_NAME: "dc"}))
    meta = standalone_podclique(subject, 0, subject.spec.template.cliques[0])["metadata"]
    assert meta["labels"].items() >= {labels.PART_OF: "chat", labels.PODGANG: "chat-0", "team": "serving"}.items()
    assert meta["annotations"] == {"note": "x"}


def test_standalone_cliques_are_those_in_no_group() -> None:
    assert [c.name for c in standalone_cliques(IN_ORDER)] == ["a", "e"]


# schedulers


@pytest.mark.parametrize(
    ("scheduler", "found_labels", "found_annotations"),
    [
        (
            "kai-scheduler",
            {labels.KAI_SUBGROUP: "chat-0-w"},
            {labels.ANNOTATION_KAI_SKIP_PODGROUPER: "true", labels.ANNOTATION_KAI_POD_GROUP: "chat-0"},
        ),
        ("volcano", {}, {labels.ANNOTATION_VOLCANO_GROUP: "chat-0", labels.ANNOTATION_VOLCANO_GROUP_LEGACY: "chat-0"}),
        ("default-scheduler", {}, {}),
        ("anything", {}, {}),
    ],
)
def test_what_a_scheduler_expects_of_a_pod(scheduler: str, found_labels: dict[str, str], found_annotations: dict[str, str]) -> None:
    template: Manifest = {"note": "x"}
    pod: Manifest = {"metadata": {"labels": {"team": "a"}, "annotations": template}, "spec": {}}
    prepare_pod(pod, scheduler, "chat-0", "chat-0-w")
    assert pod["spec"]["schedulerName"] == scheduler
    assert pod["metadata"] == {"labels": {"team": "a", **found_labels}, "annotations": {"note": "x", **found_annotations}}
    assert template == {"note": "x"}, "annotations of the template are copied, never written to"


def test_the_scheduler_of_a_set_is_the_first_that_is_named_else_the_default() -> None:
    assert scheduler_of(pcs(clique("a"), clique("b", pod={"schedulerName": "volcano"})), "kai-scheduler") == "volcano"
    assert scheduler_of(pcs(clique("a", pod={"schedulerName": ""})), "kai-scheduler") == "kai-scheduler"
