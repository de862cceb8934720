"""Topology constraints of a new PodCliqueSet: the binding they name, its levels, and their order (grove.md §1.5, §1.7)."""

from collections.abc import Iterator, Mapping

from api.fielderrors import FieldError, invalid, required
from api.grove import ClusterTopologyBinding, PodCliqueSet
from api.operatorconfig import OperatorConfiguration
from api.validation.places import Place, Places, places_of

__all__ = ("topology_errors", "topology_warnings")

Ranks = Mapping[str, int]
"""Domain → position of its level, 0 is the broadest."""


def topology_errors(
    pcs: PodCliqueSet, config: OperatorConfiguration, topologies: Mapping[str, ClusterTopologyBinding]
) -> tuple[FieldError, ...]:
    """Asked when a set is created. Each step needs the one before it: one cause gives one error."""
    places = places_of(pcs)
    if not places.constrained:
        return ()
    if not config.topology_aware_scheduling.enabled:
        detail = "topology-aware scheduling is not enabled: set topologyAwareScheduling.enabled in the operator configuration"
        return tuple(invalid(p.path, p.required or p.preferred or p.topology_name, detail) for p in places.constrained)
    if errors := tuple(_names(places.constrained)) or tuple(_existence(places.constrained, topologies)):
        return errors
    binding = topologies[places.constrained[0].topology_name]
    ranks = _ranks(binding)
    return tuple(_unknown_domains(places.constrained, ranks, binding.metadata.name)) or tuple(_order(places, ranks))


def topology_warnings(pcs: PodCliqueSet, topologies: Mapping[str, ClusterTopologyBinding]) -> Iterator[str]:
    """A preference that the requirement already implies."""
    for place in places_of(pcs).constrained:
        binding = topologies.get(place.topology_name)
        if binding is None:
            continue
        ranks = _ranks(binding)
        if place.required in ranks and place.preferred in ranks and ranks[place.preferred] < ranks[place.required]:
            yield f"{place.path}.pack.preferred '{place.preferred}' is coarser than pack.required '{place.required}' and is redundant"


def _ranks(binding: ClusterTopologyBinding) -> Ranks:
    return {level.domain: rank for rank, level in enumerate(binding.spec.levels)}


def _names(constrained: tuple[Place, ...]) -> Iterator[FieldError]:
    """Every constraint has a topologyName, its own or inherited, and all are the same."""
    first = next((p.topology_name for p in constrained if p.topology_name), "")
    for place in constrained:
        path = f"{place.path}.topologyName"
        if not place.topology_name:
            yield required(path, "name a ClusterTopologyBinding here or in the constraint of the PodCliqueSet or scaling group around it")
        elif place.topology_name != first:
            detail = f"all topologyName values of a PodCliqueSet must match in the current implementation; '{first}' is named before"
            yield invalid(path, place.topology_name, detail)


def _existence(constrained: tuple[Place, ...], topologies: Mapping[str, ClusterTopologyBinding]) -> Iterator[FieldError]:
    """Once for all: by now they name the same binding."""
    place = constrained[0]
    if place.topology_name not in topologies:
        yield invalid(f"{place.path}.topologyName", place.topology_name, f'ClusterTopologyBinding "{place.topology_name}" not found')


def _unknown_domains(constrained: tuple[Place, ...], ranks: Ranks, binding: str) -> Iterator[FieldError]:
    for place in constrained:
        for path, domain in place.domains():
            if domain not in ranks:
                levels = ", ".join(ranks)
                yield invalid(
                    path, domain, f"topology domain '{domain}' is no level of ClusterTopologyBinding '{binding}', which has {levels}"
                )


def _order(places: Places, ranks: Ranks) -> Iterator[FieldError]:
    """What contains others may not be packed more narrowly than they are."""
    for outer, inner in places.nested():
        if _narrower(outer.required, inner.required, ranks):
            yield invalid(
                outer.path, outer.required, _narrow_text(outer, inner, "topology constraint domain", outer.required, inner.required)
            )
        if _narrower(outer.preferred, inner.preferred, ranks):
            text = _narrow_text(outer, inner, "preferred topology constraint domain", outer.preferred, inner.preferred)
            yield invalid(f"{outer.path}.pack.preferred", outer.preferred, text)


def _narrower(outer: str, inner: str, ranks: Ranks) -> bool:
    return outer in ranks and inner in ranks and ranks[outer] > ranks[inner]


def _narrow_text(outer: Place, inner: Place, what: str, domain: str, inner_domain: str) -> str:
    return f"{outer.who} {what} '{domain}' is narrower than {inner.who} {what} '{inner_domain}'"
