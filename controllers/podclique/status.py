"""Status of a PodClique (grove.md §1.9, §1.10).

Terminating pods are left out of the ready and scheduled counts: a pod on its way out serves nobody.
"""

from collections.abc import Sequence

from api import labels
from api.conditions import Wanted, merged
from api.core import ContainerStatus, Pod
from api.grove import PodClique
from api.hashes import generation_hash, pod_template_hash
from api.plan import Manifest
from controllers.podclique.observe import Observed

__all__ = ("breached", "status_of")


def status_of(o: Observed, live: Sequence[Pod]) -> Manifest:
    """The whole status as data. `live`: pods that are not terminating."""
    clique, hash_ = o.clique, o.clique.metadata.labels.get(labels.POD_TEMPLATE_HASH, "")
    scheduled = [p for p in live if p.spec.node_name]
    gated = sum(1 for p in live if p.gates)
    updated = sum(1 for p in live if p.metadata.labels.get(labels.POD_TEMPLATE_HASH) == hash_)
    status: Manifest = {
        "replicas": len(live),
        "readyReplicas": sum(1 for p in live if p.has("Ready")),
        "scheduledReplicas": len(scheduled),
        "scheduleGatedReplicas": gated,
        "updatedReplicas": updated,
    }
    if labels.PCSG not in clique.metadata.labels:
        part_of = clique.metadata.labels.get(labels.PART_OF, "")
        status["hpaPodSelector"] = labels.selector_text(part_of, {labels.PODCLIQUE: clique.metadata.name})
    settled = len(live) == clique.spec.replicas and not any(labels.GATE in p.gates for p in live)
    observed = clique.metadata.generation if settled else clique.status.observed_generation if clique.status else None
    if observed:
        status["observedGeneration"] = observed
        live_conditions = [c.to_manifest() for c in (clique.status.conditions or ())] if clique.status else []
        status["conditions"] = merged(live_conditions, _conditions(clique, live, len(scheduled)), o.now)
    return {**status, **_hashes(o, hash_, converged=settled and updated == len(live))}


def _hashes(o: Observed, hash_: str, *, converged: bool) -> Manifest:
    """Hashes advance once every pod carries the template that the PodCliqueSet asks for; until then they stay."""
    if converged and o.pcs is not None and o.template is not None:
        wanted = pod_template_hash(o.template, o.pcs.spec.template.priority_class_name or "")
        if wanted == hash_:
            return {"currentPodTemplateHash": hash_, "currentPodCliqueSetGenerationHash": generation_hash(o.pcs)}
    before = o.clique.status
    if before is None or before.current_pod_template_hash is None:
        return {}
    kept = {"currentPodTemplateHash": before.current_pod_template_hash}
    if before.current_pod_clique_set_generation_hash is not None:
        kept["currentPodCliqueSetGenerationHash"] = before.current_pod_clique_set_generation_hash
    return kept


def _conditions(clique: PodClique, live: Sequence[Pod], scheduled: int) -> tuple[Wanted, Wanted]:
    minimum = clique.spec.min_available or 0
    expected = f"expected at least: {minimum}, found: "
    if scheduled >= minimum:
        text = f"Sufficient scheduled pods found. {expected}{scheduled}"
        first = Wanted("PodCliqueScheduled", "True", "SufficientScheduledPods", text)
    else:
        text = f"Insufficient scheduled pods found. {expected}{scheduled}"
        first = Wanted("PodCliqueScheduled", "False", "InsufficientScheduledPods", text)
    return first, breached(live, scheduled, minimum)


def breached(live: Sequence[Pod], scheduled: int, minimum: int) -> Wanted:
    """MinAvailableBreached. Pods that are still starting count as good; crashed or started-but-unready ones do not."""
    expected = f"expected at least: {minimum}, found: "
    if scheduled < minimum:
        text = f"Insufficient scheduled pods. {expected}{scheduled}"
        return Wanted("MinAvailableBreached", "True", "ScheduledReplicasBelowMinAvailable", text)
    good = scheduled - sum(1 for p in live if p.spec.node_name and _unhealthy(p))
    if good < minimum:
        return Wanted("MinAvailableBreached", "True", "InsufficientReadyPods", f"Insufficient ready or starting pods. {expected}{good}")
    text = f"Either sufficient ready or starting pods found. {expected}{good}"
    return Wanted("MinAvailableBreached", "False", "SufficientReadyPods", text)


def _unhealthy(pod: Pod) -> bool:
    """Not ready, and a container has crashed before or runs without being ready."""
    if pod.has("Ready"):
        return False
    containers = (*pod.status.init_container_statuses, *pod.status.container_statuses)
    return any(_crashed(c) for c in containers) or any(c.started and not c.ready for c in pod.status.container_statuses)


def _crashed(container: ContainerStatus) -> bool:
    terminated = container.last_state.terminated
    return terminated is not None and terminated.exit_code != 0
