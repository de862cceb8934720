"""The rules that the CRDs state in CEL, for callers without an API server: same paths, same messages (grove.md §1.5)."""

from collections.abc import Iterator

from api.fielderrors import OMITTED, FieldError, forbidden, invalid, required
from api.grove import PodCliqueSet, TopologyConstraint
from api.validation.places import places_of

__all__ = ("cel_errors",)

NEW_PACK_DOMAIN = "packDomain is deprecated and cannot be used on new workloads; use pack.required"


def cel_errors(new: PodCliqueSet, old: PodCliqueSet | None = None) -> Iterator[FieldError]:
    """Rules on the set as a whole when it is new (`old` is None), then on each constraint, as an API server orders them."""
    places = places_of(new)
    if old is None:
        if _pack_domain(places.root.constraint):
            yield forbidden("spec.template.topologyConstraint.packDomain", NEW_PACK_DOMAIN)
        if any(_pack_domain(p.constraint) for p in places.cliques):
            yield forbidden("spec.template.cliques", NEW_PACK_DOMAIN)
        if any(_pack_domain(p.constraint) for p in places.groups):
            yield forbidden("spec.template.podCliqueScalingGroups", NEW_PACK_DOMAIN)
    for place in places.constrained:
        if place.constraint is not None:
            yield from _constraint(place.path, place.constraint)


def _pack_domain(constraint: TopologyConstraint | None) -> bool:
    return constraint is not None and constraint.pack_domain is not None


def _constraint(path: str, constraint: TopologyConstraint) -> Iterator[FieldError]:
    pack = constraint.pack
    if pack is None and constraint.pack_domain is None:
        yield required(f"{path}.pack", "topologyConstraint must specify pack or deprecated packDomain")
    if pack is None:
        return
    if constraint.pack_domain is not None and pack.required is not None:
        yield invalid(f"{path}.pack.required", OMITTED, "must not set both pack.required and deprecated packDomain")
    if pack.required is None and pack.preferred is None:
        yield required(f"{path}.pack", "pack must specify at least one of required or preferred")
