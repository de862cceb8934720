"""Explicit startup order."""

from typing import Any

import pytest

from api.validation.startup import cycles
from tests.admission import clique, created, pcs

CLIQUES = "spec.template.cliques"
EXPLICIT = "CliqueStartupTypeExplicit"
CYCLE = "clique must not have circular dependencies"


def errors_of(edges: dict[str, list[str]], startup: str = EXPLICIT) -> list[str]:
    cliques = [clique(name, spec={"startsAfter": parents}) for name, parents in edges.items()]
    return created(pcs(*cliques, cliqueStartupType=startup))


@pytest.mark.parametrize(
    ("edges", "expected"),
    [
        pytest.param({"a": [], "b": ["a"], "c": ["a"], "d": ["b", "c"]}, [], id="a diamond"),
        pytest.param({"a": [], "b": []}, [], id="no order at all"),
        pytest.param({"a": ["b"], "b": ["a"]}, [f'{CLIQUES}: Invalid value: [["b","a"]]: {CYCLE}'], id="two wait for each other"),
        pytest.param(
            {"a": ["b"], "b": ["c"], "c": ["a"], "d": ["a"]}, [f'{CLIQUES}: Invalid value: [["c","b","a"]]: {CYCLE}'], id="three in a ring"
        ),
        pytest.param(
            {"a": ["b"], "b": ["a"], "c": ["d"], "d": ["c"]},
            [f'{CLIQUES}: Invalid value: [["b","a"],["d","c"]]: {CYCLE}'],
            id="two rings",
        ),
        pytest.param(
            {"a": ["a"]}, [f'{CLIQUES}[0].spec.startsAfter: Invalid value: "a": a clique cannot start after itself'], id="after itself"
        ),
        pytest.param({"a": [""]}, [f"{CLIQUES}[0].spec.startsAfter: Required value: a clique's name must not be empty"], id="empty name"),
        pytest.param({"a": [], "b": ["a", "a"]}, [f'{CLIQUES}[1].spec.startsAfter: Duplicate value: ["a"]'], id="one parent twice"),
        pytest.param(
            {"a": ["ghost", "spook"]},
            [f'{CLIQUES}.startsAfter: Invalid value: "ghost,spook": unknown cliques; startsAfter must name cliques of this template'],
            id="unknown cliques",
        ),
    ],
)
def test_explicit_order(edges: dict[str, list[str]], expected: list[str]) -> None:
    assert errors_of(edges) == expected


@pytest.mark.parametrize("startup", ["CliqueStartupTypeAnyOrder", "CliqueStartupTypeInOrder"])
def test_starts_after_has_no_meaning_otherwise(startup: str) -> None:
    assert errors_of({"a": ["b", "ghost", "a", ""], "b": ["a"]}, startup) == []


def test_a_long_chain_does_not_exhaust_the_stack() -> None:
    chain: dict[str, list[str]] = {f"c{i}": [f"c{i + 1}"] for i in range(20_000)}
    assert cycles(chain) == []
    chain["c20000"] = ["c0"]
    assert [len(component) for component in cycles(chain)] == [20_001]


def test_components_of_a_tangled_graph() -> None:
    edges: dict[str, Any] = {"a": ["b", "e"], "b": ["c"], "c": ["a", "d"], "d": ["d"], "e": ["f"], "f": ["e"], "g": ["a"]}
    assert sorted(sorted(component) for component in cycles(edges)) == [["a", "b", "c"], ["e", "f"]]
