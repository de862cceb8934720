"""Scaling groups: members, sizes, bounds."""

from typing import Any

import pytest

from api.validation import validate_create
from tests.admission import CONFIG, TOPOLOGIES, clique, created, group, kinds, pcs

GROUPS = "spec.template.podCliqueScalingGroups"


def errors_of(*groups: dict[str, Any]) -> list[str]:
    return created(pcs(clique("a"), clique("b"), podCliqueScalingGroups=list(groups)))


def test_groups_of_known_cliques_are_accepted() -> None:
    assert errors_of(group("g", "b"), group("h", "a", replicas=3, minAvailable=2)) == []


def test_unknown_members_are_named_together() -> None:
    assert errors_of(group("g", "a", "ghost", "spook")) == [
        f'{GROUPS}[0].cliqueNames: Invalid value: "ghost,spook": unidentified PodClique names found'
    ]


def test_a_clique_belongs_to_one_group_only() -> None:
    assert errors_of(group("g", "a"), group("h", "a", "b")) == [f'{GROUPS}.cliqueNames: Duplicate value: ["a"]']
    assert errors_of(group("g", "a", "a")) == [f'{GROUPS}.cliqueNames: Duplicate value: ["a"]']


def test_group_names_are_unique() -> None:
    assert errors_of(group("g", "a"), group("g", "b")) == [f'{GROUPS}.name: Duplicate value: ["g"]']


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        pytest.param({"replicas": 3, "minAvailable": 3}, [], id="minAvailable equal to replicas"),
        pytest.param({"replicas": 0}, ["replicas", "minAvailable"], id="no replicas are fewer than the minimum, too"),
        pytest.param({"replicas": -1}, ["replicas", "minAvailable"], id="replicas negative"),
        pytest.param({"minAvailable": 0}, ["minAvailable"], id="minAvailable zero"),
        pytest.param({"replicas": 2, "minAvailable": 3}, ["minAvailable"], id="minAvailable above replicas"),
        pytest.param({"replicas": 2, "minAvailable": 2, "scaleConfig": {"maxReplicas": 4}}, [], id="lower bound follows replicas"),
        pytest.param({"replicas": 2, "scaleConfig": {"minReplicas": 1, "maxReplicas": 4}}, [], id="lower bound equal to minAvailable"),
        pytest.param(
            {"replicas": 3, "minAvailable": 2, "scaleConfig": {"minReplicas": 1, "maxReplicas": 4}},
            ["scaleConfig.minReplicas"],
            id="lower bound below minAvailable",
        ),
    ],
)
def test_sizes(fields: dict[str, Any], expected: list[str]) -> None:
    assert kinds(errors_of(group("g", "a", **fields))) == [(f"{GROUPS}[0].{field}", "Invalid value") for field in expected]


def test_an_upper_bound_below_the_lower_one_is_warned_about() -> None:
    subject = pcs(clique("a"), podCliqueScalingGroups=[group("g", "a", replicas=4, scaleConfig={"maxReplicas": 2})])
    result = validate_create(subject, CONFIG, TOPOLOGIES)
    assert result.errors == ()
    assert result.warnings[-1].startswith(f"{GROUPS}[0].scaleConfig.maxReplicas: 2 is less than minReplicas 4")


def test_annotations_follow_their_syntax() -> None:
    assert kinds(errors_of(group("g", "a", annotations={"bad key": "x"}))) == [(f"{GROUPS}[0].annotations", "Invalid value")]
