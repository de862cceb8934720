"""What may change about an existing set, and what not."""

from typing import Any

import pytest

from api.grove import PodCliqueSet
from api.validation import validate_update
from tests.admission import CONFIG, TOPOLOGIES, clique, group, kinds, paths, pcs, updated

TEMPLATE = "spec.template"
CLIQUES = f"{TEMPLATE}.cliques"
GROUPS = f"{TEMPLATE}.podCliqueScalingGroups"
IN_ORDER = "CliqueStartupTypeInOrder"
EXPLICIT = "CliqueStartupTypeExplicit"
SHARE = {"name": "x", "scope": "AllReplicas"}
CLAIM = {"name": "x", "templateSpec": {"spec": {"devices": {"requests": [{"name": "gpu"}]}}}}


def chat(*cliques: dict[str, Any], **template: Any) -> PodCliqueSet:
    return pcs(*(cliques or (clique("a"), clique("b"))), **template)


@pytest.mark.parametrize(
    "new",
    [
        pytest.param(chat(replicas=5), id="replicas"),
        pytest.param(chat(clique("a", spec={"minAvailable": 2, "replicas": 9}), clique("b")), id="replicas of a clique"),
        pytest.param(chat(clique("a", labels={"x": "y"}, annotations={"x": "y"}), clique("b")), id="labels and annotations"),
        pytest.param(chat(clique("a", pod={"containers": [{"name": "other"}]}), clique("b")), id="the pod spec"),
        pytest.param(chat(clique("a", spec={"autoScalingConfig": {"maxReplicas": 5}}), clique("b")), id="autoscaling"),
        pytest.param(chat(clique("b"), clique("a")), id="order of cliques that start in any order"),
        pytest.param(chat(priorityClassName="gold"), id="priority class"),
        pytest.param(chat(terminationDelay="1m"), id="termination delay"),
        pytest.param(chat(headlessServiceConfig={"publishNotReadyAddresses": False}), id="headless service"),
        pytest.param(chat(resourceSharing=[], resourceClaimTemplates=[]), id="empty lists instead of none"),
        pytest.param(chat(clique("a", pod={"schedulerName": ""}), clique("b")), id="an empty scheduler name instead of none"),
    ],
)
def test_what_may_change(new: PodCliqueSet) -> None:
    assert updated(chat(), new) == []
    assert updated(new, chat()) == []


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        pytest.param(chat(), chat(clique("a")), [(CLIQUES, "Forbidden")], id="a clique removed"),
        pytest.param(chat(), chat(clique("a"), clique("b"), clique("c")), [(CLIQUES, "Forbidden")], id="a clique added"),
        pytest.param(chat(), chat(clique("a"), clique("c")), [(f"{CLIQUES}.name", "Forbidden")], id="a clique renamed"),
        pytest.param(
            chat(cliqueStartupType=IN_ORDER),
            chat(clique("b"), clique("a"), cliqueStartupType=IN_ORDER),
            [(CLIQUES, "Invalid value"), (CLIQUES, "Invalid value")],
            id="order of cliques that start in order",
        ),
        pytest.param(
            chat(cliqueStartupType=EXPLICIT),
            chat(clique("b"), clique("a"), cliqueStartupType=EXPLICIT),
            [(CLIQUES, "Invalid value"), (CLIQUES, "Invalid value")],
            id="order of cliques with explicit order",
        ),
        pytest.param(chat(), chat(cliqueStartupType=IN_ORDER), [(f"{TEMPLATE}.cliqueStartupType", "Invalid value")], id="startup type"),
        pytest.param(
            chat(), chat(clique("a", spec={"roleName": "z"}), clique("b")), [(f"{CLIQUES}.spec.roleName", "Invalid value")], id="role"
        ),
        pytest.param(
            chat(),
            chat(clique("a", spec={"minAvailable": 1}), clique("b")),
            [(f"{CLIQUES}.spec.minAvailable", "Invalid value")],
            id="minAvailable",
        ),
        pytest.param(
            chat(),
            chat(clique("a"), clique("b", spec={"startsAfter": ["a"]})),
            [(f"{CLIQUES}.spec.startsAfter", "Invalid value")],
            id="startsAfter",
        ),
        pytest.param(
            chat(clique("a", pod={"schedulerName": "default-scheduler"})),
            chat(clique("a")),
            [(f"{CLIQUES}.spec.podSpec.schedulerName", "Invalid value")],
            id="scheduler",
        ),
        pytest.param(
            chat(),
            chat(clique("a"), clique("b", resourceSharing=[SHARE])),
            [(f"{CLIQUES}[1].resourceSharing", "Invalid value")],
            id="sharing of a clique",
        ),
        pytest.param(chat(), chat(resourceSharing=[SHARE]), [(f"{TEMPLATE}.resourceSharing", "Invalid value")], id="sharing of the set"),
        pytest.param(
            chat(), chat(resourceClaimTemplates=[CLAIM]), [(f"{TEMPLATE}.resourceClaimTemplates", "Invalid value")], id="claim templates"
        ),
    ],
)
def test_what_may_not_change(old: PodCliqueSet, new: PodCliqueSet, expected: list[tuple[str, str]]) -> None:
    assert kinds(updated(old, new)) == expected


def grouped(*groups: dict[str, Any]) -> PodCliqueSet:
    return pcs(clique("a"), clique("b"), clique("c"), podCliqueScalingGroups=list(groups))


G, H = group("g", "a", "b", replicas=3, minAvailable=2), group("h", "c")


@pytest.mark.parametrize(
    ("new", "expected"),
    [
        pytest.param(grouped(G, H), [], id="nothing"),
        pytest.param(grouped(H, G), [], id="order of groups"),
        pytest.param(grouped({**G, "replicas": 7}, H), [], id="replicas"),
        pytest.param(grouped({**G, "scaleConfig": {"maxReplicas": 7}}, H), [], id="autoscaling"),
        pytest.param(grouped({**G, "annotations": {"x": "y"}}, H), [], id="annotations"),
        pytest.param(grouped({**G, "resourceSharing": []}, H), [], id="an empty list instead of none"),
        pytest.param(grouped(G), [(GROUPS, "Forbidden")], id="a group removed"),
        pytest.param(grouped(G, {**H, "name": "i"}), [(f"{GROUPS}.name", "Forbidden")], id="a group renamed"),
        pytest.param(grouped({**G, "cliqueNames": ["a"]}, H), [(f"{GROUPS}[0].cliqueNames", "Invalid value")], id="a member removed"),
        pytest.param(grouped({**G, "cliqueNames": ["b", "a"]}, H), [(f"{GROUPS}[0].cliqueNames", "Invalid value")], id="order of members"),
        pytest.param(grouped({**G, "minAvailable": 1}, H), [(f"{GROUPS}[0].minAvailable", "Invalid value")], id="minAvailable"),
        pytest.param(
            grouped(H, {**G, "resourceSharing": [SHARE]}),
            [(f"{GROUPS}[1].resourceSharing", "Invalid value")],
            id="sharing, matched by name",
        ),
    ],
)
def test_scaling_groups(new: PodCliqueSet, expected: list[tuple[str, str]]) -> None:
    assert kinds(updated(grouped(G, H), new)) == expected


def test_an_invalid_set_is_not_asked_what_has_changed() -> None:
    new = chat(clique("a", spec={"roleName": "z", "minAvailable": 9}), clique("b"))
    assert paths(updated(chat(), new)) == [f"{CLIQUES}[0].spec.minAvailable"]


SET = f"{TEMPLATE}.topologyConstraint"
CLIQUE = f"{CLIQUES}[0].topologyConstraint"
GROUP = f"{GROUPS}[0].topologyConstraint"
NAME = "grove-topology"
RACK: dict[str, Any] = {"topologyName": NAME, "pack": {"required": "rack"}}


def constrained(at_set: Any = None, at_clique: Any = None, at_group: Any = None) -> PodCliqueSet:
    def fields(constraint: Any) -> dict[str, Any]:
        return {} if constraint is None else {"topologyConstraint": constraint}

    return pcs(clique("a", **fields(at_clique)), podCliqueScalingGroups=[group("g", "a", **fields(at_group))], **fields(at_set))


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        pytest.param((RACK,), (RACK,), [], id="unchanged"),
        pytest.param((None,), (RACK,), [SET], id="added to the set"),
        pytest.param((RACK,), (None,), [SET], id="removed from the set"),
        pytest.param((RACK,), ({**RACK, "pack": {"required": "host"}},), [SET], id="another level"),
        pytest.param((RACK,), ({**RACK, "pack": {"required": "rack", "preferred": "host"}},), [SET], id="a preference added"),
        pytest.param((RACK,), ({**RACK, "topologyName": "other"},), [f"{SET}.topologyName"], id="another topology"),
        pytest.param((RACK, None), (RACK, {"pack": {"required": "host"}}), [CLIQUE], id="added to a clique"),
        pytest.param((RACK, {"pack": {"required": "host"}}), (RACK, None), [CLIQUE], id="removed from a clique"),
        pytest.param((None, None, RACK), (None, None, {**RACK, "topologyName": "other"}), [GROUP], id="another topology of a group"),
        pytest.param(({"topologyName": NAME, "packDomain": "rack"},), (RACK,), [], id="migration: packDomain becomes pack.required"),
        pytest.param(
            ({"topologyName": NAME, "packDomain": "rack", "pack": {"preferred": "host"}},),
            ({"topologyName": NAME, "pack": {"required": "rack", "preferred": "host"}},),
            [],
            id="migration with the same preference",
        ),
        pytest.param(({"topologyName": NAME, "packDomain": "block"},), (RACK,), [SET], id="migration to another level"),
        pytest.param(
            ({"topologyName": NAME, "packDomain": "rack"},),
            ({**RACK, "pack": {"required": "rack", "preferred": "host"}},),
            [SET],
            id="and more",
        ),
        pytest.param((RACK,), ({"topologyName": NAME, "packDomain": "rack"},), [SET], id="migration backwards"),
        pytest.param(({"packDomain": "rack"},), ({"topologyName": NAME, "packDomain": "rack"},), [], id="repair: the name is added"),
        pytest.param((None, {"packDomain": "rack"}), (None, {"topologyName": NAME, "packDomain": "rack"}), [], id="repair of a clique"),
        pytest.param(
            ({"packDomain": "rack"},),
            ({"topologyName": "ghost", "packDomain": "rack"},),
            [f"{SET}.topologyName"],
            id="repair by a missing one",
        ),
        pytest.param(
            ({"packDomain": "aisle"},),
            ({"topologyName": NAME, "packDomain": "aisle"},),
            [f"{SET}.packDomain"],
            id="repair of an unknown level",
        ),
        pytest.param(({"packDomain": "rack"},), (RACK,), [SET], id="repair and migration at once"),
        pytest.param(({"pack": {"required": "rack"}},), (RACK,), [f"{SET}.topologyName"], id="no repair without packDomain"),
    ],
)
def test_topology(old: tuple[Any, ...], new: tuple[Any, ...], expected: list[str]) -> None:
    assert paths(updated(constrained(*old), constrained(*new))) == expected


def test_every_change_of_topology_is_forbidden_by_name() -> None:
    assert kinds(updated(constrained(RACK), constrained(None))) == [(SET, "Forbidden")]


def test_a_deleted_binding_does_not_stop_an_existing_set() -> None:
    subject = constrained(RACK)
    assert validate_update(subject, subject, CONFIG, {}).errors == ()


def test_pack_domain_is_warned_about_as_long_as_it_stays() -> None:
    subject = constrained({"topologyName": NAME, "packDomain": "rack"})
    result = validate_update(subject, subject, CONFIG, TOPOLOGIES)
    assert result.errors == ()
    assert result.warnings[-1] == f"{SET}.packDomain is deprecated; use pack.required"
