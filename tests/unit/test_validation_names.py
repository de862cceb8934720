"""Names: syntax, duplicates, and the 45 characters that all names together may have."""

from typing import Any

import pytest

from tests.admission import clique, created, group, kinds, pcs

CLIQUES = "spec.template.cliques"
GROUPS = "spec.template.podCliqueScalingGroups"


@pytest.mark.parametrize("name", ["Chat", "-chat", "chat-", "ch_at", "chät", "a\nb", "x" * 254, "chat..x"])
def test_a_name_that_is_no_dns_subdomain_is_refused_everywhere(name: str) -> None:
    assert ("metadata.name", "Invalid value") in kinds(created(pcs(name=name)))
    assert (f"{CLIQUES}[0].name", "Invalid value") in kinds(created(pcs(clique(name))))
    assert (f"{GROUPS}[0].name", "Invalid value") in kinds(created(pcs(podCliqueScalingGroups=[group(name, "worker")])))


def test_a_missing_name_gives_one_error_only() -> None:
    assert kinds(created(pcs(name=""))) == [("metadata.name", "Required value")]
    assert created(pcs(name="", metadata={"generateName": "chat-"})) == []
    assert kinds(created(pcs(clique("")))) == [(f"{CLIQUES}[0].name", "Required value")]
    assert kinds(created(pcs(podCliqueScalingGroups=[group("", "worker")]))) == [(f"{GROUPS}[0].name", "Required value")]


@pytest.mark.parametrize(("length", "accepted"), [(41, True), (42, False)])
def test_standalone_clique_and_set_have_45_characters_together(length: int, accepted: bool) -> None:
    errors = created(pcs(clique("c" * length), name="chat"))
    if accepted:
        assert errors == []
        return
    text = (
        "combined resource name length 46 exceeds 45-character limit required for pod naming. "
        f"Consider shortening: PodCliqueSet 'chat' or PodClique '{'c' * 42}'"
    )
    assert errors == [
        f'{CLIQUES}[0].name: Invalid value: "{"c" * 42}": {text}',
        f'metadata.name: Invalid value: "chat": {text}',
    ]


@pytest.mark.parametrize(("length", "accepted"), [(35, True), (36, False)])
def test_members_count_with_their_group(length: int, accepted: bool) -> None:
    errors = created(pcs(clique("c" * length), name="chat", podCliqueScalingGroups=[group("prefix", "c" * length)]))
    expected = [] if accepted else [f"{GROUPS}[0].cliqueNames[0].name", f"{GROUPS}[0].name", "metadata.name"]
    assert kinds(errors) == [(path, "Invalid value") for path in expected]
    assert all("PodCliqueSet 'chat', PodCliqueScalingGroup 'prefix', or PodClique 'ccc" in error for error in errors)


def test_duplicate_names_and_roles_are_reported_together() -> None:
    errors = created(pcs(clique("a"), clique("a"), clique("b", spec={"roleName": "a"})))
    assert errors == [f'{CLIQUES}.name: Duplicate value: ["a"]', f'{CLIQUES}.roleName: Duplicate value: ["a"]']


def test_cliques_without_a_role_do_not_share_one() -> None:
    assert created(pcs(clique("a", spec={"roleName": ""}), clique("b", spec={"roleName": ""}))) == []


@pytest.mark.parametrize(
    ("fields", "path"),
    [
        pytest.param({"labels": {"bad key": "x"}}, "labels", id="a space in a key"),
        pytest.param({"labels": {"/x": "x"}}, "labels", id="an empty prefix"),
        pytest.param({"labels": {"UPPER.com/x": "x"}}, "labels", id="a prefix that is no subdomain"),
        pytest.param({"labels": {"": "x"}}, "labels", id="an empty key"),
        pytest.param({"labels": {"x" * 64: "x"}}, "labels", id="a key too long"),
        pytest.param({"labels": {"x": "y" * 64}}, "labels", id="a value too long"),
        pytest.param({"labels": {"x": "a,b in (c)"}}, "labels", id="a selector as value"),
        pytest.param({"labels": {"x": "\x1b[31m"}}, "labels", id="a terminal sequence"),
        pytest.param({"annotations": {"bad key": "x"}}, "annotations", id="a space in an annotation's key"),
    ],
)
def test_labels_and_annotations_follow_their_syntax(fields: dict[str, Any], path: str) -> None:
    assert kinds(created(pcs(clique("worker", **fields)))) == [(f"{CLIQUES}[0].{path}", "Invalid value")]
    assert kinds(created(pcs(metadata=fields))) == [(f"metadata.{path}", "Invalid value")]


def test_ordinary_labels_and_any_annotation_value_are_fine() -> None:
    labels = {"app": "", "example.com/team": "Serving_1.0"}
    assert created(pcs(clique("worker", labels=labels, annotations={"Example.com/Note": "any text\n{}"}))) == []


def test_annotations_may_have_256_kib_in_total() -> None:
    assert created(pcs(clique("worker", annotations={"a": "x" * (256 * 1024 - 1)}))) == []
    errors = created(pcs(clique("worker", annotations={"a": "x" * (256 * 1024)})))
    assert kinds(errors) == [(f"{CLIQUES}[0].annotations", "Too long")]


def test_a_thousand_cliques_are_checked_in_one_go() -> None:
    many = [clique(f"c{i}", spec={"startsAfter": [f"c{i - 1}"] if i else []}) for i in range(1000)]
    assert created(pcs(*many, cliqueStartupType="CliqueStartupTypeExplicit")) == []
