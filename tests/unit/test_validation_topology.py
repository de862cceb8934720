"""Topology constraints of new sets: names, levels, order; the CRD's rules; warnings."""

from typing import Any

import pytest

from api.grove import PodCliqueSet
from api.validation import cel_errors, validate_create
from tests.admission import CONFIG, TOPOLOGIES, binding, clique, config, created, group, kinds, pcs, texts

SET = "spec.template.topologyConstraint"
CLIQUE = "spec.template.cliques[0].topologyConstraint"
GROUP = "spec.template.podCliqueScalingGroups[0].topologyConstraint"
NAME = "grove-topology"


def packed(required: str = "", preferred: str = "", name: str = "", domain: str = "") -> dict[str, Any]:
    pack = {k: v for k, v in (("required", required), ("preferred", preferred)) if v}
    constraint: dict[str, Any] = {"pack": pack} if pack else {}
    if domain:
        constraint["packDomain"] = domain
    return {**constraint, "topologyName": name} if name else constraint


def subject(at_set: Any = None, at_clique: Any = None, at_group: Any = None) -> PodCliqueSet:
    """One standalone clique `a`; without `at_group` nothing else, with it the clique is the group's member."""
    template = {"topologyConstraint": at_set} if at_set is not None else {}
    member = clique("a", **({"topologyConstraint": at_clique} if at_clique is not None else {}))
    groups = [group("g", "a", topologyConstraint=at_group)] if at_group is not None else []
    return pcs(member, podCliqueScalingGroups=groups, **template)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        pytest.param((packed("rack", name=NAME),), [], id="the set names it"),
        pytest.param((packed("block", name=NAME), packed("rack")), [], id="a clique inherits from the set"),
        pytest.param((packed("zone", name=NAME), packed("host"), packed("rack")), [], id="a member inherits through its group"),
        pytest.param((None, packed("host"), packed("rack", name=NAME)), [], id="a member inherits from its group"),
        pytest.param((None, packed("rack", name=NAME)), [], id="a clique names it itself"),
        pytest.param((packed("rack"),), [(f"{SET}.topologyName", "Required value")], id="nobody names it"),
        pytest.param(
            (None, packed("host"), packed("rack")),
            [(f"{CLIQUE}.topologyName", "Required value"), (f"{GROUP}.topologyName", "Required value")],
            id="neither member nor group names it",
        ),
        pytest.param(
            (packed("zone", name=NAME), packed("rack", name="other")),
            [(f"{CLIQUE}.topologyName", "Invalid value")],
            id="two different ones",
        ),
        pytest.param((packed("rack", name="ghost"),), [(f"{SET}.topologyName", "Invalid value")], id="it does not exist"),
        pytest.param((packed("aisle", name=NAME),), [(f"{SET}.pack.required", "Invalid value")], id="no such required level"),
        pytest.param((packed("", "aisle", NAME),), [(f"{SET}.pack.preferred", "Invalid value")], id="no such preferred level"),
        pytest.param((packed(domain="aisle", name=NAME),), [(f"{SET}.packDomain", "Invalid value")], id="no such packDomain"),
        pytest.param(
            (packed("host", name=NAME), packed("aisle")),
            [(f"{CLIQUE}.pack.required", "Invalid value")],
            id="unknown levels come before order",
        ),
    ],
)
def test_names_and_levels(given: tuple[Any, ...], expected: list[tuple[str, str]]) -> None:
    assert kinds(created(subject(*given), config(topology=True))) == expected


def test_texts_that_upstream_users_know() -> None:
    assert f'{SET}.topologyName: Invalid value: "ghost": ClusterTopologyBinding "ghost" not found' in created(
        subject(packed("rack", name="ghost"))
    )
    both = {**TOPOLOGIES, "other": binding("other")}
    mixed = subject(packed("zone", name=NAME), packed("rack", name="other"))
    assert "must match in the current implementation" in texts(validate_create(mixed, CONFIG, both))[0]


def test_a_clique_does_not_inherit_from_a_group_it_is_not_in() -> None:
    template = [clique("a", topologyConstraint=packed("rack")), clique("b")]
    errors = created(pcs(*template, podCliqueScalingGroups=[group("g", "b", topologyConstraint=packed("rack", name=NAME))]))
    assert kinds(errors) == [(f"{CLIQUE}.topologyName", "Required value")]


def test_nothing_is_asked_of_sets_without_constraints() -> None:
    assert created(pcs(), config(topology=False)) == []


def test_constraints_are_refused_where_the_feature_is_off() -> None:
    errors = created(subject(packed("zone", name=NAME), packed("host"), packed("rack")), config(topology=False))
    assert kinds(errors) == [(path, "Invalid value") for path in (SET, CLIQUE, GROUP)]


ORDER = [
    pytest.param(("zone", "rack", "block"), [], id="ever narrower"),
    pytest.param(("rack", "rack", "rack"), [], id="all the same"),
    pytest.param(("zone", "", "host"), [], id="a level without a constraint is skipped"),
    pytest.param(("rack", "block", ""), [("set", "clique")], id="set narrower than clique"),
    pytest.param(("rack", "", "block"), [("set", "group")], id="set narrower than group"),
    pytest.param(("zone", "block", "rack"), [("group", "clique")], id="group narrower than member"),
    pytest.param(("host", "rack", "block"), [("set", "clique"), ("set", "group")], id="set narrower than both"),
    pytest.param(("host", "zone", "rack"), [("set", "clique"), ("set", "group"), ("group", "clique")], id="all upside down"),
]
WHO = {"set": "PodCliqueSet", "clique": "PodClique 'a'", "group": "PodCliqueScalingGroup 'g'"}
PATHS = {"set": SET, "group": GROUP}


@pytest.mark.parametrize(("levels", "violations"), ORDER)
def test_order_of_required_levels(levels: tuple[str, str, str], violations: list[tuple[str, str]]) -> None:
    at_set, at_clique, at_group = levels
    given = subject(packed(at_set, name=NAME), packed(at_clique) if at_clique else None, packed(at_group) if at_group else None)
    domain: dict[str, str] = dict(zip(("set", "clique", "group"), levels, strict=True))
    assert created(given) == [
        f"{PATHS[outer]}: Invalid value: \"{domain[outer]}\": {WHO[outer]} topology constraint domain '{domain[outer]}' "
        f"is narrower than {WHO[inner]} topology constraint domain '{domain[inner]}'"
        for outer, inner in violations
    ]


@pytest.mark.parametrize(("levels", "violations"), ORDER)
def test_order_of_preferred_levels(levels: tuple[str, str, str], violations: list[tuple[str, str]]) -> None:
    at_set, at_clique, at_group = (packed("", level) for level in levels)
    given = subject({**at_set, "topologyName": NAME}, at_clique or None, at_group or None)
    assert kinds(created(given)) == [(f"{PATHS[outer]}.pack.preferred", "Invalid value") for outer, _ in violations]


def test_required_and_preferred_do_not_mix() -> None:
    assert created(subject(packed("", "host", NAME), packed("zone"))) == []


@pytest.mark.parametrize(
    ("constraint", "warned"),
    [(packed("rack", "host", NAME), False), (packed("rack", "rack", NAME), False), (packed("rack", "zone", NAME), True)],
)
def test_a_preference_that_is_implied_is_warned_about(constraint: dict[str, Any], warned: bool) -> None:
    result = validate_create(subject(constraint), CONFIG, TOPOLOGIES)
    assert result.errors == ()
    assert any("is coarser than" in w and w.endswith("and is redundant") for w in result.warnings) is warned


NEW = "packDomain is deprecated and cannot be used on new workloads; use pack.required"
ABSENT = "topologyConstraint must specify pack or deprecated packDomain"
EMPTY = "pack must specify at least one of required or preferred"
BOTH = "must not set both pack.required and deprecated packDomain"


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        pytest.param((packed("rack", name=NAME), packed("", "host")), [], id="required or preferred alone"),
        pytest.param(({"topologyName": NAME},), [f"{SET}.pack: Required value: {ABSENT}"], id="a name alone"),
        pytest.param((None, {"pack": {}}), [f"{CLIQUE}.pack: Required value: {EMPTY}"], id="an empty pack"),
        pytest.param((packed(domain="rack"),), [f"{SET}.packDomain: Forbidden: {NEW}"], id="packDomain on the set"),
        pytest.param((None, packed(domain="rack")), [f"spec.template.cliques: Forbidden: {NEW}"], id="packDomain on a clique"),
        pytest.param((None, None, packed(domain="rack")), [f"spec.template.podCliqueScalingGroups: Forbidden: {NEW}"], id="on a group"),
        pytest.param(
            (packed("rack", domain="rack"),),
            [f"{SET}.packDomain: Forbidden: {NEW}", f"{SET}.pack.required: Invalid value: {BOTH}"],
            id="both forms",
        ),
    ],
)
def test_rules_of_the_crd(given: tuple[Any, ...], expected: list[str]) -> None:
    assert [str(error) for error in cel_errors(subject(*given))] == expected


def test_existing_sets_may_keep_pack_domain() -> None:
    old = subject(packed(domain="rack"), packed(domain="host"), packed(domain="rack"))
    assert list(cel_errors(old, old)) == []
