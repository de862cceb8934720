"""What to do about one PodClique. Pure and total: the same observation always gives the same plan (grove.md §2.4)."""

from collections.abc import Sequence

from api import labels
from api.core import Pod, ResourceClaim
from api.grove import PodCliqueSet
from api.objects.claims import claim_manifest, claims_of
from api.plan import ApplyStatus, Create, Delete, Emit, Op, Plan, Ref, SetFinalizers, Why
from api.reasons import Reason
from controllers.podclique.gates import blocked_by, ungate
from controllers.podclique.observe import Observed
from controllers.podclique.pods import create_pod, free_indices, surplus
from controllers.podclique.status import status_of

__all__ = ("plan",)


def plan(o: Observed) -> Plan:
    """Claims, then pods, then gates, then status. A clique whose PodCliqueSet is gone is left to the garbage collector."""
    if o.clique.metadata.deleting:
        return _teardown(o)
    if o.pcs is None or o.pcs.metadata.deleting:
        return Plan()
    live = [p for p in o.pods if not p.metadata.deleting and not p.finished]
    claims, missing = _claims(o, o.pcs)
    pods = _pods(o, o.pcs, live) if not missing else ()
    stages: list[Sequence[Op]] = [claims, pods, _events(o, pods), ungate(o, live), _status(o)]
    why = tuple(w for w in (blocked_by(o), *missing) if w is not None)
    return Plan(stages=tuple(tuple(s) for s in stages if s), why=why)


def _teardown(o: Observed) -> Plan:
    """Lets go of the clique; its pods and claims follow by garbage collection."""
    ours = o.clique.metadata.finalizers
    if labels.FINALIZER_PODCLIQUE not in ours:
        return Plan()
    rest = tuple(f for f in ours if f != labels.FINALIZER_PODCLIQUE)
    return Plan(stages=((SetFinalizers(Ref.of(o.clique), rest, o.clique.metadata.resource_version),),))


def _pods(o: Observed, pcs: PodCliqueSet, live: Sequence[Pod]) -> tuple[Op, ...]:
    """Finished pods are replaced: they hold an index but serve nothing."""
    gap = o.clique.spec.replicas - len(live)
    expected = o.clique.metadata.labels.get(labels.POD_TEMPLATE_HASH, "")
    creates = [create_pod(o, pcs, i) for i in free_indices(live, gap)]
    finished = [p for p in o.pods if p.finished and not p.metadata.deleting]
    victims = [*surplus(live, -gap, expected), *finished]
    return (*creates, *(Delete(Ref.of(p), p.metadata.resource_version) for p in victims))


def _claims(o: Observed, pcs: PodCliqueSet) -> tuple[tuple[Op, ...], tuple[Why, ...]]:
    """ResourceClaims of this clique: missing ones, surplus ones, and templates that do not exist."""
    if o.template is None or not o.template.resource_sharing:
        return (), ()
    wanted = claims_of(o.clique.metadata.name, o.template.resource_sharing, range(o.clique.spec.replicas))
    names, existing = {c.name for c in wanted}, {c.metadata.name for c in o.claims}
    level = {labels.PODCLIQUE: o.clique.metadata.name}
    ops: list[Op] = []
    missing: list[Why] = []
    for claim in wanted:
        if claim.name in existing:
            continue
        manifest = claim_manifest(pcs, o.clique, claim, o.claim_template, level, labels.POD_INDEX)
        if manifest is None:
            missing.append(Why(Reason.CLAIM_UNALLOCATABLE, f"ResourceClaimTemplate {claim.template} does not exist"))
        else:
            ops.append(Create(ResourceClaim.KIND, manifest))
    ops += [Delete(Ref.of(c)) for c in o.claims if c.metadata.name not in names and not c.metadata.deleting]
    return tuple(ops), tuple(missing)


def _events(o: Observed, pods: Sequence[Op]) -> tuple[Emit, ...]:
    """One event for all pods made or removed in this pass; they run only after the pods' stage has succeeded."""
    ref = Ref.of(o.clique)
    made = [op.manifest["spec"]["hostname"] for op in pods if isinstance(op, Create)]
    gone = [op.ref.name for op in pods if isinstance(op, Delete)]
    out: list[Emit] = []
    if made:
        out.append(Emit(ref, "PodCreateSuccessful", f"Created {len(made)} pods: {_some(made)}"))
    if gone:
        out.append(Emit(ref, "PodDeleteSuccessful", f"Deleted {len(gone)} pods: {_some(gone)}"))
    return tuple(out)


def _some(names: Sequence[str]) -> str:
    shown = ", ".join(names[:3])
    return shown if len(names) <= 3 else f"{shown} and {len(names) - 3} more"


def _status(o: Observed) -> tuple[Op, ...]:
    live = [p for p in o.pods if not p.metadata.deleting]
    status = status_of(o, live)
    before = o.clique.status
    lost = before is not None and before.scheduled_replicas > 0 and status["scheduledReplicas"] == 0
    ops: list[Op] = []
    if before is None or before.to_manifest() != status:
        ops.append(ApplyStatus(Ref.of(o.clique), status))
        if lost:
            ops.append(Emit(Ref.of(o.clique), "AllScheduledReplicasLost", "No pod has a node any more", "Warning"))
    return tuple(ops)
