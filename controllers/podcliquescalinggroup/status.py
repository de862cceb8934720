"""Status of a PodCliqueScalingGroup (grove.md §1.9, §1.10)."""

from api import labels
from api.conditions import Wanted, merged
from api.grove import PodClique
from api.hashes import generation_hash, pod_template_hash
from api.names import member_clique_name
from api.objects.template import clique_template
from api.plan import Manifest
from controllers.podcliquescalinggroup.observe import Observed

__all__ = ("status_of",)


def status_of(o: Observed) -> Manifest:
    """The whole status as data. Only a replica all of whose PodCliques exist counts; updated implies available implies scheduled."""
    group, replicas = o.group, o.group.spec.replicas
    scheduled = available = updated = healthy = 0
    for j in range(replicas):
        cliques = _replica(o, j)
        if cliques is None:
            continue
        healthy += not any(_condition(c, "MinAvailableBreached") == "True" for c in cliques)
        if not all(_condition(c, "PodCliqueScheduled") == "True" for c in cliques):
            continue
        scheduled += 1
        if not all(c.status and c.status.ready_replicas >= (c.spec.min_available or 0) for c in cliques):
            continue
        available += 1
        updated += all(_converged(o, c) for c in cliques)
    status: Manifest = {
        "replicas": replicas,
        "scheduledReplicas": scheduled,
        "availableReplicas": available,
        "updatedReplicas": updated,
        "selector": labels.selector_text(group.metadata.labels.get(labels.PART_OF, ""), {labels.PCSG: group.metadata.name}),
        "observedGeneration": group.metadata.generation,
    }
    before = [c.to_manifest() for c in (group.status.conditions or ())] if group.status else []
    status["conditions"] = merged(before, [_breach(healthy, group.spec.min_available)], o.now)
    return {**status, **_hash(o)}


def _breach(healthy: int, minimum: int) -> Wanted:
    if healthy < minimum:
        text = f"PCSG replicas not in breach ({healthy}) below MinAvailable ({minimum})"
        return Wanted("MinAvailableBreached", "True", "InsufficientAvailablePodCliqueScalingGroupReplicas", text)
    text = f"PCSG replicas not in breach ({healthy}) meets MinAvailable ({minimum})"
    return Wanted("MinAvailableBreached", "False", "SufficientAvailablePodCliqueScalingGroupReplicas", text)


def _replica(o: Observed, j: int) -> list[PodClique] | None:
    """The PodCliques of replica j; None while one is missing or terminating."""
    live = {c.metadata.name: c for c in o.cliques if not c.metadata.deleting}
    names = [member_clique_name(o.group.metadata.name, j, name) for name in o.group.spec.clique_names]
    found = [live[n] for n in names if n in live]
    return found if len(found) == len(names) else None


def _condition(clique: PodClique, type_: str) -> str | None:
    conditions = (clique.status.conditions or ()) if clique.status else ()
    return next((c.status for c in conditions if c.type == type_), None)


def _converged(o: Observed, clique: PodClique) -> bool:
    """All pods of the clique carry the template that the PodCliqueSet asks for."""
    template_name = clique.metadata.name.removeprefix(f"{o.group.metadata.name}-").split("-", 1)[-1]
    template = clique_template(o.pcs, template_name) if o.pcs is not None else None
    if o.pcs is None or template is None or clique.status is None:
        return False
    wanted = pod_template_hash(template, o.pcs.spec.template.priority_class_name or "")
    return (
        clique.metadata.labels.get(labels.POD_TEMPLATE_HASH) == wanted
        and clique.status.current_pod_template_hash == wanted
        and clique.status.current_pod_clique_set_generation_hash == generation_hash(o.pcs)
        and clique.status.updated_replicas >= (clique.spec.min_available or 0)
    )


def _hash(o: Observed) -> Manifest:
    """currentPodCliqueSetGenerationHash: set once every expected PodClique has converged, kept until then."""
    replicas = [_replica(o, j) for j in range(o.group.spec.replicas)]
    if o.pcs is not None and all(r is not None and all(_converged(o, c) for c in r) for r in replicas):
        return {"currentPodCliqueSetGenerationHash": generation_hash(o.pcs)}
    before = o.group.status.current_pod_clique_set_generation_hash if o.group.status else None
    return {"currentPodCliqueSetGenerationHash": before} if before else {}
