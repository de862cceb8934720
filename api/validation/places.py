"""Where a PodCliqueSet has topology constraints, and which contains which (grove.md §1.5)."""

from collections.abc import Iterator
from dataclasses import dataclass

from api.grove import PodCliqueSet, TopologyConstraint
from api.objects.topology import effective_required

__all__ = ("Place", "Places", "places_of")

TEMPLATE = "spec.template"


@dataclass(frozen=True, slots=True)
class Place:
    """A level that may have a constraint.

    path: of the constraint. level, name: what it belongs to; the set's name is "". inherited: topologyName that holds here if the
    constraint gives none, "" for none.
    """

    path: str
    level: str
    name: str
    constraint: TopologyConstraint | None
    inherited: str = ""

    @property
    def who(self) -> str:
        """As messages name it."""
        return f"{self.level} '{self.name}'" if self.name else self.level

    @property
    def topology_name(self) -> str:
        """Explicit or inherited, "" when neither."""
        return (self.constraint.topology_name or "" if self.constraint is not None else "") or self.inherited

    @property
    def required(self) -> str:
        """pack.required or the deprecated packDomain."""
        return effective_required(self.constraint) if self.constraint is not None else ""

    @property
    def preferred(self) -> str:
        pack = self.constraint.pack if self.constraint is not None else None
        return (pack.preferred or "") if pack is not None else ""

    def domains(self) -> Iterator[tuple[str, str]]:
        """(path, domain) of every domain named here, also of those that do not count because another one does."""
        if self.constraint is None:
            return
        if self.constraint.pack_domain:
            yield f"{self.path}.packDomain", self.constraint.pack_domain
        if self.constraint.pack is not None and self.constraint.pack.required:
            yield f"{self.path}.pack.required", self.constraint.pack.required
        if self.preferred:
            yield f"{self.path}.pack.preferred", self.preferred


@dataclass(frozen=True, slots=True)
class Places:
    """All levels of one set, in template order, with or without a constraint. members: cliques of each group, same order as groups."""

    root: Place
    cliques: tuple[Place, ...]
    groups: tuple[Place, ...]
    members: tuple[tuple[Place, ...], ...]

    @property
    def constrained(self) -> tuple[Place, ...]:
        return tuple(p for p in (self.root, *self.cliques, *self.groups) if p.constraint is not None)

    def nested(self) -> Iterator[tuple[Place, Place]]:
        """(outer, inner): set and clique, set and group, group and member."""
        yield from ((self.root, c) for c in self.cliques)
        yield from ((self.root, g) for g in self.groups)
        yield from ((g, c) for g, members in zip(self.groups, self.members, strict=True) for c in members)


def places_of(pcs: PodCliqueSet) -> Places:
    """A clique inherits topologyName from its own scaling group if that has a constraint, else from the set."""
    template = pcs.spec.template
    root = Place(f"{TEMPLATE}.topologyConstraint", "PodCliqueSet", "", template.topology_constraint)
    configs = template.pod_clique_scaling_groups or ()
    groups = tuple(
        Place(
            f"{TEMPLATE}.podCliqueScalingGroups[{i}].topologyConstraint",
            "PodCliqueScalingGroup",
            g.name,
            g.topology_constraint,
            root.topology_name,
        )
        for i, g in enumerate(configs)
    )
    inherited = {
        name: place.topology_name
        for config, place in zip(configs, groups, strict=True)
        if place.constraint is not None
        for name in config.clique_names
    }
    cliques = tuple(
        Place(
            f"{TEMPLATE}.cliques[{i}].topologyConstraint",
            "PodClique",
            c.name,
            c.topology_constraint,
            inherited.get(c.name, root.topology_name),
        )
        for i, c in enumerate(template.cliques)
    )
    by_name = {p.name: p for p in cliques}
    members = tuple(tuple(by_name[name] for name in g.clique_names if name in by_name) for g in configs)
    return Places(root, cliques, groups, members)
