"""What may change about topology constraints of an existing PodCliqueSet: almost nothing (grove.md §1.8)."""

from collections.abc import Iterator, Mapping

from api.fielderrors import FieldError, forbidden
from api.grove import ClusterTopologyBinding, PodCliqueSet
from api.operatorconfig import OperatorConfiguration
from api.validation.places import Place, Places, places_of
from api.validation.topology import topology_errors

__all__ = ("deprecation_warnings", "topology_update_errors")

Shape = tuple[str, str, str, str]
"""topologyName, pack.required, pack.preferred, packDomain; "" for absent."""


def topology_update_errors(
    old: PodCliqueSet, new: PodCliqueSet, config: OperatorConfiguration, topologies: Mapping[str, ClusterTopologyBinding]
) -> Iterator[FieldError]:
    """Two changes are allowed: the missing topologyName of a set made before it was required, after which everything is checked as on
    creation; and packDomain rewritten as pack.required."""
    repaired = False
    before = {(p.level, p.name): p for p in _all(places_of(old))}
    for place in _all(places_of(new)):
        was = before.get((place.level, place.name))
        if was is None or _shape(was) == _shape(place) or _is_migration(was, place):
            continue
        if _is_repair(was, place):
            repaired = True
        else:
            yield _refusal(was, place)
    if repaired:
        yield from topology_errors(new, config, topologies)


def deprecation_warnings(pcs: PodCliqueSet) -> Iterator[str]:
    """Constraints that still use packDomain."""
    for place in places_of(pcs).constrained:
        if place.constraint is not None and place.constraint.pack_domain:
            yield f"{place.path}.packDomain is deprecated; use pack.required"


def _all(places: Places) -> tuple[Place, ...]:
    return (places.root, *places.cliques, *places.groups)


def _shape(place: Place) -> Shape | None:
    constraint = place.constraint
    if constraint is None:
        return None
    required = (constraint.pack.required or "") if constraint.pack is not None else ""
    return (constraint.topology_name or "", required, place.preferred, constraint.pack_domain or "")


def _is_migration(was: Place, now: Place) -> bool:
    before, after = _shape(was), _shape(now)
    if before is None or after is None:
        return False
    name, required, preferred, domain = before
    return bool(domain) and not required and after == (name, domain, preferred, "")


def _is_repair(was: Place, now: Place) -> bool:
    before, after = _shape(was), _shape(now)
    return (
        before is not None
        and after is not None
        and bool(before[3])
        and not was.topology_name
        and bool(after[0])
        and before[1:] == after[1:]
    )


def _refusal(was: Place, now: Place) -> FieldError:
    before, after = _shape(was), _shape(now)
    detail = "a topologyConstraint cannot be changed; create a new PodCliqueSet instead"
    if before is None or after is None:
        verb = "added to" if before is None else "removed from"
        return forbidden(now.path, f"a topologyConstraint cannot be {verb} an existing PodCliqueSet; create a new one instead")
    only_name = before[1:] == after[1:]
    return forbidden(f"{now.path}.topologyName" if only_name and not now.name else now.path, detail)
