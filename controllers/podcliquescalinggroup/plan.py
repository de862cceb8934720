"""What to do about one PodCliqueScalingGroup. Pure and total (grove.md §2.6).

Each live index is compared with the replica count: victims are not derived from a count of indices, so a hole never hides a leak.
"""

from collections.abc import Sequence

from api import labels
from api.grove import PodClique, PodCliqueScalingGroupConfig, PodCliqueSet
from api.lasterrors import MAX_DESCRIPTION, is_news, last_errors
from api.limits import bounded, excess_text
from api.names import member_clique_name
from api.objects.claims import claim_changes, claims_of, template_lookup
from api.objects.podclique import member_podclique
from api.objects.template import Membership, clique_template
from api.plan import ApplyStatus, Create, Delete, Emit, Manifest, Op, Outcome, Plan, Ref, SetFinalizers, Why
from api.reasons import Reason
from controllers.podcliquescalinggroup.observe import Observed
from controllers.podcliquescalinggroup.status import status_of

__all__ = ("failed", "plan")

CREATES_PER_PASS = 500
"""The news of these PodCliques starts the next pass, which sees what has become of the replica count meanwhile."""


def plan(o: Observed) -> Plan:
    """Claims, then PodCliques, then status."""
    if o.group.metadata.deleting:
        return _teardown(o)
    if o.pcs is None or o.pcs.metadata.deleting:
        return Plan()
    if o.config is None:
        return Plan(why=(Why(Reason.CONFLICT, f"PodCliqueSet {o.pcs.metadata.name} has no scaling group for {o.group.metadata.name}"),))
    claims, missing = _claims(o, o.pcs, o.config)
    cliques = _cliques(o, o.pcs, o.config) if not missing else ()
    excess = excess_text(o.group.spec.replicas)
    error = ("ERR_SYNC_PCSG_RESOURCE_CLAIM", missing[0].message) if missing else ("ERR_CREATE_PODCLIQUES", excess) if excess else None
    told = _told(o, *error) if error else _status(o)
    stages: list[Sequence[Op]] = [claims, cliques, _events(o, cliques), told]
    return Plan(stages=tuple(tuple(s) for s in stages if s), why=missing)


def failed(o: Observed, outcome: Outcome) -> Plan:
    """Status is written whatever happens to the members; a refusal is told in status.lastErrors and by an event."""
    if o.group.metadata.deleting or o.pcs is None:
        return Plan()
    told = _told(o, "ERR_CREATE_PODCLIQUES", outcome.error) if outcome.result == "blocked" else _status(o)
    return Plan(stages=(told,) if told else ())


def _told(o: Observed, code: str, description: str) -> tuple[Op, ...]:
    """The status with an error, and an event when the error is new."""
    before = (o.group.status.last_errors or ()) if o.group.status else ()
    errors = last_errors(before, code, description, o.now)
    event = (Emit(Ref.of(o.group), "PodCliqueCreateFailed", description[:MAX_DESCRIPTION], "Warning"),) if is_news(before, errors) else ()
    return (*_status(o, errors), *event)


def _teardown(o: Observed) -> Plan:
    ours = o.group.metadata.finalizers
    if labels.FINALIZER_PODCLIQUESCALINGGROUP not in ours:
        return Plan()
    rest = tuple(f for f in ours if f != labels.FINALIZER_PODCLIQUESCALINGGROUP)
    return Plan(stages=((SetFinalizers(Ref.of(o.group), rest, o.group.metadata.resource_version),),))


def _cliques(o: Observed, pcs: PodCliqueSet, config: PodCliqueScalingGroupConfig) -> tuple[Op, ...]:
    """Missing members are created, others deleted. A terminating one keeps its name until it is gone; its deletion wakes this group."""
    existing = {c.metadata.name for c in o.cliques}
    expected: set[str] = set()
    creates: list[Op] = []
    for j in range(bounded(o.group.spec.replicas)):
        member = Membership.of(pcs, o.pcs_replica, config, j)
        for name in o.group.spec.clique_names:
            full = member_clique_name(o.group.metadata.name, j, name)
            expected.add(full)
            template = clique_template(pcs, name)
            if full not in existing and template is not None:
                creates.append(Create(PodClique.KIND, member_podclique(pcs, o.pcs_replica, o.group, member, template)))
    deletes = [Delete(Ref.of(c)) for c in o.cliques if c.metadata.name not in expected and not c.metadata.deleting]
    return (*deletes, *creates[:CREATES_PER_PASS])


def _claims(o: Observed, pcs: PodCliqueSet, config: PodCliqueScalingGroupConfig) -> tuple[tuple[Op, ...], tuple[Why, ...]]:
    wanted = claims_of(o.group.metadata.name, config.resource_sharing, range(bounded(o.group.spec.replicas)))
    level = ({labels.PCSG: o.group.metadata.name}, labels.PCSG_REPLICA_INDEX)
    return claim_changes(pcs, o.group, wanted, o.claims, template_lookup(o.claim_templates), level)


def _events(o: Observed, cliques: Sequence[Op]) -> tuple[Emit, ...]:
    made = sum(isinstance(op, Create) for op in cliques)
    gone = len(cliques) - made
    out: list[Emit] = []
    if made:
        out.append(Emit(Ref.of(o.group), "PodCliqueCreateSuccessful", f"Created {made} PodCliques"))
    if gone and o.pcs is not None:
        text = f"Deleted {gone} PodCliques of {o.group.metadata.name}"
        out.append(Emit(Ref.of(o.pcs), "PodCliqueScalingGroupReplicaDeleteSuccessful", text))
    return tuple(out)


def _status(o: Observed, errors: Sequence[Manifest] = ()) -> tuple[Op, ...]:
    status = status_of(o)
    if errors:
        status["lastErrors"] = list(errors)
    before = o.group.status
    if before is not None and before.to_manifest() == status:
        return ()
    ops: list[Op] = [ApplyStatus(Ref.of(o.group), status)]
    if before is not None and before.scheduled_replicas > 0 and status["scheduledReplicas"] == 0:
        ops.append(Emit(Ref.of(o.group), "AllScheduledReplicasLost", "No replica is scheduled any more", "Warning"))
    return tuple(ops)
