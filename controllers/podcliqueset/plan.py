"""What to do about one PodCliqueSet. Pure and total: user mistakes become conditions (grove.md §2.2)."""

from collections.abc import Iterable, Sequence
from datetime import timedelta

from api import labels
from api.fielderrors import aggregate
from api.lasterrors import is_news, last_errors
from api.plan import ApplyStatus, Create, Delete, Emit, Op, Outcome, Plan, Ref, SetFinalizers, Why, kind_of
from api.reasons import Reason
from controllers.podcliqueset import children
from controllers.podcliqueset.infra import infrastructure, waits_for_token
from controllers.podcliqueset.observe import Observed
from controllers.podcliqueset.status import MAX_MESSAGE, TEMPLATE_NOT_APPLIED, TEMPLATE_TEXT, status_of, template_changed

__all__ = ("failed", "plan")

TOKEN_PATIENCE = timedelta(seconds=10)
CODES = {
    "ServiceAccount": "ERR_SYNC_SERVICEACCOUNT",
    "Role": "ERR_SYNC_ROLE",
    "RoleBinding": "ERR_SYNC_ROLEBINDING",
    "Secret": "ERR_CREATE_SECRET",
    "Service": "ERR_SYNC_PODCLIQUESET_SERVICE",
    "HorizontalPodAutoscaler": "ERR_SYNC_HPA",
    "ResourceClaim": "ERR_SYNC_PCS_RESOURCE_CLAIM",
    "PodClique": "ERR_CREATE_OR_UPDATE_PODCLIQUE",
    "PodCliqueScalingGroup": "ERR_SYNC_PODCLIQUESCALINGGROUP",
    "PodGang": "ERR_CREATE_PODGANG",
}


def plan(o: Observed) -> Plan:
    """Finalizer, infrastructure and claims, cliques, groups and gangs, status. An invalid set keeps what it has and gets nothing new."""
    if o.pcs.metadata.deleting:
        return _teardown(o)
    if o.validation.errors:
        why = Why(Reason.INVALID_SPEC, aggregate(o.validation.errors))
        return Plan(stages=_stages([_invalid_event(o), _status(o, synced=False)]), why=(why,))
    claims, missing = children.claims(o)
    first: list[Sequence[Op]] = [_finalizer(o), (*infrastructure(o), *claims)]
    if missing:
        return Plan(
            stages=_stages([*first, *_told(o, "ERR_SYNC_PCS_RESOURCE_CLAIM", "ResourceClaimCreateFailed", missing[0].message)]), why=missing
        )
    if waits_for_token(o):
        why = Why(Reason.WAITING_FOR_STARTUP_ORDER, "the token of the startup waiter's service account is not minted yet")
        return Plan(stages=_stages([*first, *_late_token(o, why)]), why=(why,), requeue_at=o.now + TOKEN_PATIENCE)
    cliques, groups, gangs = tuple(children.cliques(o)), tuple(children.groups(o)), tuple(children.gangs(o))
    ops = (*cliques, *groups, *gangs)
    told = _template_event(o)
    return Plan(stages=_stages([*first, cliques, (*groups, *gangs), _events(o, ops), told, _status(o, synced=not template_changed(o))]))


def failed(o: Observed, outcome: Outcome) -> Plan:
    """What to tell the user when the API server refused an operation for good: status.lastErrors and an event, nothing else."""
    op = outcome.failed_op
    if op is None or outcome.result != "blocked" or o.pcs.metadata.deleting:
        return Plan()
    kind = kind_of(op).kind
    code = CODES.get(kind, f"ERR_SYNC_{kind.upper()}")
    return Plan(stages=_stages(_told(o, code, f"{kind}CreateOrUpdateFailed", outcome.error)))


def _told(o: Observed, code: str, reason: str, description: str) -> tuple[Sequence[Op], ...]:
    """An error in status.lastErrors, and an event when it is new."""
    before = o.pcs.status.last_errors if o.pcs.status else ()
    errors = last_errors(before, code, description, o.now)
    status = {**status_of(o, synced=False), "lastErrors": errors}
    if o.pcs.status is not None and o.pcs.status.to_manifest() == status:
        return ()
    event = (Emit(Ref.of(o.pcs), reason, description[:MAX_MESSAGE], "Warning"),) if is_news(before, errors) else ()
    return (ApplyStatus(Ref.of(o.pcs), status),), event


def _late_token(o: Observed, why: Why) -> tuple[Sequence[Op], ...]:
    """Tokens are minted at once where a token controller runs; where none does, the user has to be told."""
    created = o.pcs.metadata.creation_timestamp
    if created is None or o.now - created < TOKEN_PATIENCE:
        return (_status(o, synced=False),)
    text = f"{why.message}: kube-controller-manager's token controller has to run, or set grovekeeper.token to projected"
    return _told(o, "ERR_GET_SECRET", "SecretNotReady", text)


def _template_event(o: Observed) -> tuple[Emit, ...]:
    said = any(c.type == TEMPLATE_NOT_APPLIED for c in (o.pcs.status.conditions or ())) if o.pcs.status else False
    if said or not template_changed(o):
        return ()
    return (Emit(Ref.of(o.pcs), TEMPLATE_NOT_APPLIED, TEMPLATE_TEXT, "Warning"),)


def _stages(stages: Iterable[Sequence[Op]]) -> tuple[tuple[Op, ...], ...]:
    return tuple(tuple(s) for s in stages if s)


def _teardown(o: Observed) -> Plan:
    """Lets go of the set; everything it owns follows by garbage collection."""
    if labels.FINALIZER_PODCLIQUESET not in o.pcs.metadata.finalizers:
        return Plan()
    rest = tuple(f for f in o.pcs.metadata.finalizers if f != labels.FINALIZER_PODCLIQUESET)
    return Plan(stages=((SetFinalizers(Ref.of(o.pcs), rest, o.pcs.metadata.resource_version),),))


def _finalizer(o: Observed) -> tuple[Op, ...]:
    if labels.FINALIZER_PODCLIQUESET in o.pcs.metadata.finalizers:
        return ()
    finalizers = (*o.pcs.metadata.finalizers, labels.FINALIZER_PODCLIQUESET)
    return (SetFinalizers(Ref.of(o.pcs), finalizers, o.pcs.metadata.resource_version),)


def _status(o: Observed, *, synced: bool) -> tuple[Op, ...]:
    status = status_of(o, synced=synced)
    if o.pcs.status is not None and o.pcs.status.to_manifest() == status:
        return ()
    return (ApplyStatus(Ref.of(o.pcs), status),)


def _invalid_event(o: Observed) -> tuple[Emit, ...]:
    """Once per distinct message: a set that stays invalid in the same way is not announced again."""
    text = aggregate(o.validation.errors)[:MAX_MESSAGE]
    conditions = (o.pcs.status.conditions or ()) if o.pcs.status else ()
    said = next((c.message for c in conditions if c.type == "InvalidSpec"), "")
    return () if text == said else (Emit(Ref.of(o.pcs), Reason.INVALID_SPEC, text, "Warning"),)


def _events(o: Observed, ops: Sequence[Op]) -> tuple[Emit, ...]:
    """One event per kind made or removed in this pass, named as upstream names them."""
    out: list[Emit] = []
    made = {
        "PodClique": "PodCliqueCreateOrUpdate",
        "PodCliqueScalingGroup": "PodCliqueScalingGroupCreate",
        "PodGang": "PodGangCreateOrUpdate",
    }
    for kind, reason in made.items():
        created = sum(1 for op in ops if isinstance(op, Create) and op.kind.kind == kind)
        deleted = sum(1 for op in ops if isinstance(op, Delete) and op.ref.kind.kind == kind)
        if created:
            out.append(Emit(Ref.of(o.pcs), f"{reason}Successful", f"Created {created} {kind}s"))
        if deleted:
            out.append(Emit(Ref.of(o.pcs), f"{kind}DeleteSuccessful", f"Deleted {deleted} {kind}s"))
    return tuple(out)
