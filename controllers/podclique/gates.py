"""When a pod's scheduling gate is removed (grove.md §2.5)."""

from collections.abc import Sequence

from api import labels
from api.core import Pod
from api.plan import Ref, Ungate, Why
from api.reasons import Reason
from controllers.podclique.observe import Observed

__all__ = ("blocked_by", "ungate")


def ungate(o: Observed, live: Sequence[Pod]) -> tuple[Ungate, ...]:
    """Gate removals that are due now: the pod is referenced by its gang, and the Anchor gang (if it waits for one) is placed."""
    if blocked_by(o) is not None or o.gang is None:
        return ()
    mine = next((g for g in o.gang.spec.podgroups if g.name == o.clique.metadata.name), None)
    referenced = {r.name for r in mine.pod_references} if mine is not None else set[str]()
    return tuple(Ungate(Ref.of(p), labels.GATE) for p in live if labels.GATE in p.gates and p.metadata.name in referenced)


def blocked_by(o: Observed) -> Why | None:
    """Why the gates of this clique stay closed; None when the Anchor gang is placed or the clique belongs to it."""
    if not o.base_name:
        return None
    if o.base is None:
        return Why(Reason.WAITING_FOR_BASE_GANG, f"base gang {o.base_name} does not exist yet")
    for group in o.base:
        if group.scheduled < group.minimum:
            text = f"base gang {o.base_name}: {group.clique} has {group.scheduled} of {group.minimum} pods scheduled"
            return Why(Reason.WAITING_FOR_BASE_GANG, text, {"need": group.minimum, "have": group.scheduled})
    return None
