"""What to do about one PodClique. Pure and total: the same observation always gives the same plan (grove.md §2.4)."""

from collections.abc import Sequence
from datetime import datetime, timedelta

from api import labels
from api.core import Pod
from api.grove import PodCliqueSet
from api.lasterrors import MAX_DESCRIPTION, is_news, last_errors
from api.limits import bounded, excess_text
from api.objects.claims import claim_changes, claims_of, template_lookup
from api.plan import ApplyStatus, Create, Delete, Emit, Manifest, Op, Outcome, Plan, Ref, SetFinalizers, Why
from controllers.podclique.gates import blocked_by, ungate
from controllers.podclique.observe import Observed
from controllers.podclique.pods import create_pods, free_indices, surplus
from controllers.podclique.status import status_of

__all__ = ("failed", "plan")

CREATES_PER_PASS = 500
"""The news of these pods starts the next pass, which sees what has become of the replica count meanwhile."""
FIRST_STATUS_AFTER = timedelta(seconds=15)
FIRST_TAIL_STATUS_AFTER = timedelta(seconds=5)


def plan(o: Observed) -> Plan:
    """Gates, claims, pods, status. A clique whose PodCliqueSet is gone is left to the garbage collector."""
    if o.clique.metadata.deleting:
        return _teardown(o)
    if o.pcs is None or o.pcs.metadata.deleting:
        return Plan()
    live = [p for p in o.pods if not p.metadata.deleting and not p.finished]
    claims, missing = _claims(o, o.pcs)
    pods = _pods(o, o.pcs, live) if not missing else ()
    excess = excess_text(o.clique.spec.replicas)
    error = ("ERR_SYNC_PCLQ_RESOURCE_CLAIM", missing[0].message) if missing else ("ERR_CREATE_POD", excess) if excess else None
    told = _told(o, *error) if error else _status(o)
    young_until = _young_until(o, live)
    if young_until is not None and not missing:
        told = ()
    # Gates before pods: pods that exist must not wait for others that the API server refuses.
    stages: list[Sequence[Op]] = [ungate(o, live), claims, pods, _events(o, pods), told]
    why = tuple(w for w in (blocked_by(o), *missing) if w is not None)
    return Plan(stages=tuple(tuple(s) for s in stages if s), why=why, requeue_at=young_until)


def _young_until(o: Observed, live: Sequence[Pod]) -> datetime | None:
    """Until when a new clique says nothing: its pods are all gated, as they always are at first, and the next status says more.

    In a large set this first status would be a fifth of all writes. None when there is something to say.
    """
    created = o.clique.metadata.creation_timestamp
    if created is None or (o.clique.status is not None and o.clique.status.replicas) or any(labels.GATE not in p.gates for p in live):
        return None
    until = created + (FIRST_TAIL_STATUS_AFTER if o.base_name else FIRST_STATUS_AFTER)
    return until if o.now < until else None


def failed(o: Observed, outcome: Outcome) -> Plan:
    """Status is written whatever happens to the pods; a refusal is told in status.lastErrors and by an event."""
    if o.clique.metadata.deleting or o.pcs is None:
        return Plan()
    told = _told(o, "ERR_CREATE_POD", outcome.error) if outcome.result == "blocked" else _status(o)
    return Plan(stages=(told,) if told else ())


def _teardown(o: Observed) -> Plan:
    """Deletes the pods and lets go of the clique; claims follow by garbage collection.

    The garbage collector would delete the pods too, but it works through all dependents of the cluster at a low rate, and until it comes
    to them the pods hold their nodes. Whoever deletes the clique with cascade=orphan wants to keep them.
    """
    ours = o.clique.metadata.finalizers
    if labels.FINALIZER_PODCLIQUE not in ours:
        return Plan()
    kept = "orphan" in ours
    pods = tuple(Delete(Ref.of(p)) for p in o.pods if not p.metadata.deleting and not kept)
    rest = tuple(f for f in ours if f != labels.FINALIZER_PODCLIQUE)
    release = (SetFinalizers(Ref.of(o.clique), rest, o.clique.metadata.resource_version),)
    return Plan(stages=(pods, release) if pods else (release,))


def _pods(o: Observed, pcs: PodCliqueSet, live: Sequence[Pod]) -> tuple[Op, ...]:
    """Finished pods are replaced: they hold an index but serve nothing."""
    gap = bounded(o.clique.spec.replicas) - len(live)
    expected = o.clique.metadata.labels.get(labels.POD_TEMPLATE_HASH, "")
    creates = create_pods(o, pcs, free_indices(live, min(gap, CREATES_PER_PASS)))
    finished = [p for p in o.pods if p.finished and not p.metadata.deleting]
    victims = [*surplus(live, -gap, expected), *finished]
    return (*creates, *(Delete(Ref.of(p), p.metadata.resource_version) for p in victims))


def _claims(o: Observed, pcs: PodCliqueSet) -> tuple[tuple[Op, ...], tuple[Why, ...]]:
    if o.template is None or not o.template.resource_sharing:
        return (), ()
    wanted = claims_of(o.clique.metadata.name, o.template.resource_sharing, range(bounded(o.clique.spec.replicas)))
    level = ({labels.PODCLIQUE: o.clique.metadata.name}, labels.POD_INDEX)
    return claim_changes(pcs, o.clique, wanted, o.claims, template_lookup(o.claim_templates), level)


def _events(o: Observed, pods: Sequence[Op]) -> tuple[Emit, ...]:
    """One event for all pods made or removed in this pass; they run only after the pods' stage has succeeded.

    The first pods of a clique are announced by the clique's own creation.
    """
    ref = Ref.of(o.clique)
    made = [op.manifest["spec"]["hostname"] for op in pods if isinstance(op, Create)]
    gone = [op.ref.name for op in pods if isinstance(op, Delete)]
    out: list[Emit] = []
    if made and o.pods:
        out.append(Emit(ref, "PodCreateSuccessful", f"Created {len(made)} pods: {_some(made)}"))
    if gone:
        out.append(Emit(ref, "PodDeleteSuccessful", f"Deleted {len(gone)} pods: {_some(gone)}"))
    return tuple(out)


def _some(names: Sequence[str]) -> str:
    shown = ", ".join(names[:3])
    return shown if len(names) <= 3 else f"{shown} and {len(names) - 3} more"


def _told(o: Observed, code: str, description: str) -> tuple[Op, ...]:
    """The status with an error, and an event when the error is new."""
    before = (o.clique.status.last_errors or ()) if o.clique.status else ()
    errors = last_errors(before, code, description, o.now)
    event = (Emit(Ref.of(o.clique), "PodCreateFailed", description[:MAX_DESCRIPTION], "Warning"),) if is_news(before, errors) else ()
    return (*_status(o, errors), *event)


def _status(o: Observed, errors: Sequence[Manifest] = ()) -> tuple[Op, ...]:
    live = [p for p in o.pods if not p.metadata.deleting]
    status = status_of(o, live)
    if errors:
        status["lastErrors"] = list(errors)
    before = o.clique.status
    lost = before is not None and before.scheduled_replicas > 0 and status["scheduledReplicas"] == 0
    ops: list[Op] = []
    if before is None or before.to_manifest() != status:
        ops.append(ApplyStatus(Ref.of(o.clique), status))
        if lost:
            ops.append(Emit(Ref.of(o.clique), "AllScheduledReplicasLost", "No pod has a node any more", "Warning"))
    return tuple(ops)
