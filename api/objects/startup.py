"""Startup order: which PodCliques a PodClique waits for (grove.md §3)."""

from api.grove import PodCliqueSet
from api.names import clique_name, member_clique_name, scaling_group_name
from api.objects.template import Membership, clique_template, group_of_clique

__all__ = ("has_startup_order", "starts_after")

IN_ORDER = "CliqueStartupTypeInOrder"
EXPLICIT = "CliqueStartupTypeExplicit"


def has_startup_order(pcs: PodCliqueSet) -> bool:
    """True when some clique may have to wait for another, so that the waiter needs its token."""
    startup = pcs.spec.template.clique_startup_type
    if startup == EXPLICIT:
        return any(c.spec.starts_after for c in pcs.spec.template.cliques)
    return startup == IN_ORDER and len(pcs.spec.template.cliques) > 1


def starts_after(pcs: PodCliqueSet, pcs_replica: int, clique: str, member: Membership | None) -> tuple[str, ...]:
    """Full names of the PodCliques that template clique `clique` waits for.

    In the anchor gang a parent in a scaling group stands for that clique in all anchor replicas. A tail gang replica waits only for
    parents of its own scaling group replica: order is enforced inside one gang, never across gangs.
    """
    out: list[str] = []
    for parent in _parents(pcs, clique):
        config = group_of_clique(pcs, parent)
        if member is not None and member.scaled:
            if config is not None and config.name == member.config.name:
                out.append(member_clique_name(member.group, member.replica, parent))
        elif config is None:
            out.append(clique_name(pcs.metadata.name, pcs_replica, parent))
        else:
            group = scaling_group_name(pcs.metadata.name, pcs_replica, config.name)
            out += [member_clique_name(group, j, parent) for j in range(config.min_available)]
    return tuple(out)


def _parents(pcs: PodCliqueSet, clique: str) -> tuple[str, ...]:
    """Template names of the direct parents."""
    startup = pcs.spec.template.clique_startup_type
    if startup == EXPLICIT:
        template = clique_template(pcs, clique)
        return tuple(template.spec.starts_after or ()) if template else ()
    if startup == IN_ORDER:
        names = [c.name for c in pcs.spec.template.cliques]
        at = names.index(clique) if clique in names else 0
        return (names[at - 1],) if at > 0 else ()
    return ()
