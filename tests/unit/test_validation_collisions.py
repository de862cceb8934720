"""Templates whose generated PodClique names would be the same are refused; similar names are not."""

import pytest

from api.grove import PodCliqueSet
from api.validation.collisions import collision_errors
from tests.unit.worlds import clique, podcliqueset


def errors(cliques: list[str], groups: dict[str, list[str]]) -> list[str]:
    configs = [{"name": name, "cliqueNames": members} for name, members in groups.items()]
    manifest = podcliqueset(*(clique(name) for name in cliques), podCliqueScalingGroups=configs)
    return [e.path for e in collision_errors(PodCliqueSet.model_validate(manifest))]


@pytest.mark.parametrize(
    ("cliques", "groups", "paths"),
    [
        (["x-0-b", "b"], {"x": ["b"]}, ["spec.template.cliques[0].name"]),
        (["x-17-b", "b"], {"x": ["b"]}, ["spec.template.cliques[0].name"]),
        (["x-b", "b"], {"x": ["b"]}, []),
        (["x-0-ab", "b"], {"x": ["b"]}, []),
        (["0-b", "b"], {"x": ["0-b"], "x-0": ["b"]}, [f"spec.template.podCliqueScalingGroups[{i}].name" for i in (0, 1)]),
        (["a", "b"], {"x": ["a"], "x-0": ["b"]}, []),
        (["a", "b"], {"x": ["a"], "y": ["b"]}, []),
    ],
    ids=["replica 0", "a later replica", "no number", "another clique", "two groups", "groups that only look alike", "ordinary"],
)
def test_generated_names_must_differ(cliques: list[str], groups: dict[str, list[str]], paths: list[str]) -> None:
    assert errors(cliques, groups) == paths
