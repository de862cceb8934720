"""What to do about one PodGang. Pure and total (grove.md §2.3).

This controller writes the gang's spec and, of its status, phase, ready and the conditions
Initialized, Ready and Unhealthy; the scheduler writes
everything else. Phase moves on with the pods, where upstream leaves it at Pending.
"""

from api import labels
from api.conditions import Wanted, merged
from api.objects.podgang import LAST_APPLIED, podgang_manifest
from api.objects.scheduler import scheduler_of
from api.plan import Apply, ApplyStatus, Manifest, Op, Plan, Ref, Why
from api.podgang import PodGang
from api.reasons import Reason
from controllers.podgang.observe import GroupState, Observed

__all__ = ("plan",)

CREATED = "PodGangPodsCreated"
PENDING = "PodGangPodsCreationPending"


def plan(o: Observed) -> Plan:
    """Spec first, then status."""
    if o.gang.metadata.deleting or o.pcs is None or o.pcs.metadata.deleting or o.shape is None:
        return Plan()
    gang = o.gang.metadata.name
    references = {g.name: [p.metadata.name for p in g.pods if p.metadata.labels.get(labels.PODGANG) == gang] for g in o.groups}
    wanted = podgang_manifest(
        o.pcs,
        o.shape,
        references=references,
        level_keys=o.level_keys,
        scheduler=scheduler_of(o.pcs, o.settings.default_scheduler),
        live_annotations=o.gang.metadata.annotations,
    )
    waiting = _waiting(o)
    stages: list[tuple[Op, ...]] = []
    if not _same(o.gang, wanted):
        stages.append((Apply(PodGang.KIND, wanted, uid=o.gang.metadata.uid),))
    status = _status(o, initialized=not waiting)
    if _ours(o.gang) != status:
        stages.append((ApplyStatus(Ref.of(o.gang), status),))
    why = (Why(Reason.WAITING_FOR_PODS, "; ".join(waiting)),) if waiting else ()
    return Plan(stages=tuple(stages), why=why)


def _same(gang: PodGang, wanted: Manifest) -> bool:
    """True when the live gang says what it should. Labels and annotations of others are not ours to remove; stale mirrored ones are."""
    meta = wanted["metadata"]
    ours = {k: v for k, v in gang.metadata.annotations.items() if k != LAST_APPLIED}
    return (
        gang.spec.to_manifest() == wanted["spec"]
        and all(gang.metadata.labels.get(k) == v for k, v in meta["labels"].items())
        and ours == meta.get("annotations", {})
    )


def _waiting(o: Observed) -> list[str]:
    """What keeps the gang from being initialized: missing cliques, missing pods, pods of another gang."""
    out: list[str] = []
    for group in o.groups:
        if group.clique is None:
            out.append(f"PodClique {group.name} does not exist yet")
            continue
        labelled = sum(1 for p in group.pods if p.metadata.labels.get(labels.PODGANG) == o.gang.metadata.name)
        missing = max(0, group.clique.spec.replicas - labelled)
        if missing:
            out.append(f"{group.name} lacks {missing} of {group.clique.spec.replicas} pods")
    return out


def _status(o: Observed, *, initialized: bool) -> Manifest:
    """Phase and our conditions. Initialized never goes back: replaced pods do not make a gang new."""
    before = {c.type: c for c in (o.gang.status.conditions or ())} if o.gang.status else {}
    was = before.get("Initialized")
    initialized = initialized or (was is not None and was.status == "True")
    if initialized:
        wanted = [Wanted("Initialized", "True", CREATED, "PodGang is fully initialized")]
    else:
        wanted = [Wanted("Initialized", "False", PENDING, "Not all pods of the gang have been created")]
    scheduled = initialized and all(_count(g, "scheduled") >= m for g, m in _minimums(o))
    ready = scheduled and all(_count(g, "ready") >= m for g, m in _minimums(o))
    was_ready = "Unhealthy" in before or ("Ready" in before and before["Ready"].status == "True")
    wanted += _health(o, ready=ready, has_been_ready=ready or was_ready)
    phase = "Running" if ready else "Starting" if scheduled else "Pending"
    live = [c.to_manifest() for c in before.values()]
    n_ready = sum(_count(g, "ready") for g in o.groups)
    return {"phase": phase, "ready": n_ready, "conditions": merged(live, wanted, o.now)}


def _health(o: Observed, *, ready: bool, has_been_ready: bool) -> list[Wanted]:
    """Ready always; Unhealthy only for a gang that has been ready, so that a starting gang is never called unhealthy."""
    if ready:
        text = "Every pod group has its minimum of ready pods"
        first, second = Wanted("Ready", "True", "GangReady", text), Wanted("Unhealthy", "False", "GangReady", text)
    else:
        short = [f"{g.name} {_count(g, 'ready')}/{m}" for g, m in _minimums(o) if _count(g, "ready") < m]
        more = f" and {len(short) - 8} more" if len(short) > 8 else ""
        text = f"Ready pods below the minimum: {', '.join(short[:8])}{more}"
        first, second = Wanted("Ready", "False", Reason.NOT_READY, text), Wanted("Unhealthy", "True", Reason.NOT_READY, text)
    return [first, second] if has_been_ready else [first]


def _minimums(o: Observed) -> list[tuple[GroupState, int]]:
    return [(g, g.clique.spec.min_available or 0) if g.clique is not None else (g, 1) for g in o.groups]


def _count(group: GroupState, what: str) -> int:
    if what == "ready":
        return sum(1 for p in group.pods if p.has("Ready"))
    return sum(1 for p in group.pods if p.spec.node_name)


def _ours(gang: PodGang) -> Manifest | None:
    """The part of the live status that this controller writes."""
    if gang.status is None:
        return None
    mine = ("Initialized", "Ready", "Unhealthy")
    return {
        "phase": gang.status.phase,
        "ready": gang.status.ready,
        "conditions": [c.to_manifest() for c in gang.status.conditions or () if c.type in mine],
    }
