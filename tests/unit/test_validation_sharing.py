"""Shared ResourceClaims: templates, entries on each level, filters."""

from typing import Any

import pytest

from tests.admission import clique, created, group, kinds, pcs

TEMPLATE = "spec.template"
DEVICES: dict[str, Any] = {"spec": {"devices": {"requests": [{"name": "gpu"}]}}}
INTERNAL = {"name": "internal", "templateSpec": DEVICES}


def share(name: str = "x", **fields: Any) -> dict[str, Any]:
    return {"name": name, "scope": "AllReplicas", **fields}


@pytest.mark.parametrize(
    ("templates", "expected"),
    [
        pytest.param([INTERNAL, {**INTERNAL, "name": "other"}], [], id="two templates"),
        pytest.param([{**INTERNAL, "name": ""}], [("[0].name", "Required value")], id="no name"),
        pytest.param([{"name": "x", "templateSpec": {}}], [("[0].templateSpec.spec.devices.requests", "Required value")], id="empty spec"),
        pytest.param(
            [{"name": "x", "templateSpec": {"spec": {"devices": {"requests": []}}}}],
            [("[0].templateSpec.spec.devices.requests", "Required value")],
            id="no requests",
        ),
        pytest.param(
            [{"name": "x", "templateSpec": {"spec": {"devices": 3}}}],
            [("[0].templateSpec.spec.devices.requests", "Required value")],
            id="a number for devices",
        ),
        pytest.param([INTERNAL, INTERNAL, INTERNAL], [(".name", "Duplicate value")], id="one name thrice is one error"),
    ],
)
def test_claim_templates(templates: list[dict[str, Any]], expected: list[tuple[str, str]]) -> None:
    errors = created(pcs(resourceClaimTemplates=templates))
    assert kinds(errors) == [(f"{TEMPLATE}.resourceClaimTemplates{path}", kind) for path, kind in expected]


ENTRIES = [
    pytest.param([share("internal"), share("external", namespace="infra", scope="PerReplica")], [], id="inside and outside"),
    pytest.param([share("")], [("[0].name", "Required value")], id="no name"),
    pytest.param([share("x"), share("y"), share("x")], [("[2].name", "Duplicate value")], id="one name twice"),
    pytest.param([share("internal", namespace="infra")], [("[0].namespace", "Invalid value")], id="a namespace for an internal template"),
]


@pytest.mark.parametrize(("entries", "expected"), ENTRIES)
def test_entries_on_every_level(entries: list[dict[str, Any]], expected: list[tuple[str, str]]) -> None:
    levels = {
        f"{TEMPLATE}.resourceSharing": pcs(resourceClaimTemplates=[INTERNAL], resourceSharing=entries),
        f"{TEMPLATE}.cliques[0].resourceSharing": pcs(clique("a", resourceSharing=entries), resourceClaimTemplates=[INTERNAL]),
        f"{TEMPLATE}.podCliqueScalingGroups[0].resourceSharing": pcs(
            clique("a"), resourceClaimTemplates=[INTERNAL], podCliqueScalingGroups=[group("g", "a", resourceSharing=entries)]
        ),
    }
    for path, subject in levels.items():
        assert kinds(created(subject)) == [(f"{path}{rest}", kind) for rest, kind in expected]


@pytest.mark.parametrize(
    ("selection", "expected"),
    [
        pytest.param({"childCliqueNames": ["a"], "childScalingGroupNames": ["g"]}, [], id="known names"),
        pytest.param({"childScalingGroupNames": ["g"]}, [], id="groups only"),
        pytest.param({}, ["filter: Required value"], id="empty"),
        pytest.param({"childCliqueNames": [], "childScalingGroupNames": []}, ["filter: Required value"], id="empty lists"),
        pytest.param({"childCliqueNames": ["a", "ghost"]}, ['filter.childCliqueNames[1]: Not found: "ghost"'], id="unknown clique"),
        pytest.param({"childScalingGroupNames": ["a"]}, ['filter.childScalingGroupNames[0]: Not found: "a"'], id="a clique is no group"),
    ],
)
def test_filter_of_the_set(selection: dict[str, Any], expected: list[str]) -> None:
    subject = pcs(clique("a"), clique("b"), podCliqueScalingGroups=[group("g", "b")], resourceSharing=[share(filter=selection)])
    errors = created(subject)
    assert len(errors) == len(expected)
    assert all(e.startswith(f"{TEMPLATE}.resourceSharing[0].{x}") for e, x in zip(errors, expected, strict=True))


@pytest.mark.parametrize(
    ("selection", "expected"),
    [
        pytest.param({"childCliqueNames": ["b"]}, [], id="a member"),
        pytest.param({}, ["filter: Required value"], id="empty"),
        pytest.param({"childCliqueNames": ["a"]}, ['filter.childCliqueNames[0]: Not found: "a"'], id="a clique outside the group"),
    ],
)
def test_filter_of_a_group(selection: dict[str, Any], expected: list[str]) -> None:
    entry = group("g", "b", resourceSharing=[share("other"), share(filter=selection)])
    errors = created(pcs(clique("a"), clique("b"), podCliqueScalingGroups=[entry]))
    assert len(errors) == len(expected)
    prefix = f"{TEMPLATE}.podCliqueScalingGroups[0].resourceSharing[1]"
    assert all(e.startswith(f"{prefix}.{x}") for e, x in zip(errors, expected, strict=True))
