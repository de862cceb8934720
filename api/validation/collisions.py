"""Templates that would generate one and the same PodClique name (grove.md §1.12). Upstream lets two controllers fight for it."""

import re
from collections.abc import Iterator

from api.fielderrors import FieldError, invalid
from api.grove import PodCliqueSet

__all__ = ("collision_errors",)


def collision_errors(pcs: PodCliqueSet) -> Iterator[FieldError]:
    """A member clique is named `<group>-<number>-<clique>` behind the set's name and replica; no other clique may come out the same."""
    groups = pcs.spec.template.pod_clique_scaling_groups or ()
    grouped = {name for g in groups for name in g.clique_names}
    cliques = pcs.spec.template.cliques
    members = {f"{g.name}/{name}": re.compile(rf"{re.escape(g.name)}-\d+-{re.escape(name)}") for g in groups for name in g.clique_names}
    for i, clique in enumerate(cliques):
        if clique.name not in grouped:
            yield from _clashes(f"spec.template.cliques[{i}].name", clique.name, clique.name, members)
    for i, group in enumerate(groups):
        for name in group.clique_names:
            # Replica 0 stands for all: the number is free on both sides.
            others = {which: shape for which, shape in members.items() if not which.startswith(f"{group.name}/")}
            yield from _clashes(f"spec.template.podCliqueScalingGroups[{i}].name", group.name, f"{group.name}-0-{name}", others)


def _clashes(path: str, value: str, generated: str, members: dict[str, re.Pattern[str]]) -> Iterator[FieldError]:
    for which, shape in members.items():
        if shape.fullmatch(generated):
            group, _, clique = which.partition("/")
            text = f"generates the same PodClique name as clique '{clique}' of scaling group '{group}'; rename one of them"
            yield invalid(path, value, text)
            return
