"""Topology of a PodCliqueSet: which binding it names, and the translation of domains to node label keys (grove.md §1.5, §2.3)."""

from collections.abc import Iterator, Mapping

from api.grove import ClusterTopologyBinding, PodCliqueSet, TopologyConstraint
from api.plan import Manifest

__all__ = ("constraint_domains", "constraints_of", "effective_required", "level_keys", "pack_constraint", "topology_name")


def constraints_of(pcs: PodCliqueSet) -> Iterator[TopologyConstraint]:
    """Every topology constraint of the set: its own, its cliques', its scaling groups'."""
    template = pcs.spec.template
    parts = (template, *template.cliques, *(template.pod_clique_scaling_groups or ()))
    return (p.topology_constraint for p in parts if p.topology_constraint is not None)


def topology_name(pcs: PodCliqueSet) -> str:
    """The first explicit topologyName, "" when there is none. Validation makes sure that all agree."""
    return next((c.topology_name for c in constraints_of(pcs) if c.topology_name), "")


def effective_required(constraint: TopologyConstraint) -> str:
    """pack.required, else the deprecated packDomain, else ""."""
    if constraint.pack is not None and constraint.pack.required:
        return constraint.pack.required
    return constraint.pack_domain or ""


def _preferred(constraint: TopologyConstraint) -> str:
    return (constraint.pack.preferred or "") if constraint.pack is not None else ""


def constraint_domains(pcs: PodCliqueSet) -> tuple[str, ...]:
    """Domains that the set's constraints name, in order, without repetition."""
    named = (d for c in constraints_of(pcs) for d in (effective_required(c), _preferred(c)) if d)
    return tuple(dict.fromkeys(named))


def level_keys(binding: ClusterTopologyBinding) -> dict[str, str]:
    """Domain → node label key, broad to narrow."""
    return {level.domain: level.key for level in binding.spec.levels}


def pack_constraint(constraint: TopologyConstraint | None, keys: Mapping[str, str] | None) -> Manifest | None:
    """The PodGang form of a constraint. Unknown domains are dropped; None when nothing is left or no topology is in effect (keys None)."""
    if constraint is None or keys is None:
        return None
    pack: Manifest = {}
    if key := keys.get(effective_required(constraint)):
        pack["required"] = key
    if key := keys.get(_preferred(constraint)):
        pack["preferred"] = key
    return {"packConstraint": pack} if pack else None
