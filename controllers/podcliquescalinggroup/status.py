"""Status of a PodCliqueScalingGroup (grove.md §1.9, §1.10)."""

from collections.abc import Mapping
from dataclasses import dataclass

from api import labels
from api.conditions import Wanted, merged
from api.grove import PodClique
from api.hashes import generation_hash, pod_template_hash
from api.limits import bounded
from api.names import member_clique_name
from api.plan import Manifest
from controllers.podcliquescalinggroup.observe import Observed

__all__ = ("status_of",)


@dataclass(frozen=True, slots=True)
class _Wanted:
    """Hashes of a converged member, computed once per pass: the set's generation, and the pod template of each clique name."""

    generation: str
    templates: Mapping[str, str]


def status_of(o: Observed) -> Manifest:
    """The whole status as data. Only a replica all of whose PodCliques exist counts; updated implies available implies scheduled."""
    group = o.group
    wanted, replicas = _wanted(o), _replicas(o)
    complete = [r for r in replicas if r is not None]
    healthy = sum(not any(_condition(c, "MinAvailableBreached") == "True" for c in r.values()) for r in complete)
    scheduled = [r for r in complete if all(_condition(c, "PodCliqueScheduled") == "True" for c in r.values())]
    available = [r for r in scheduled if all(c.status and c.status.ready_replicas >= (c.spec.min_available or 0) for c in r.values())]
    status: Manifest = {
        "replicas": group.spec.replicas,
        "scheduledReplicas": len(scheduled),
        "availableReplicas": len(available),
        "updatedReplicas": sum(_converged(r, wanted) for r in available),
        "selector": labels.selector_text(group.metadata.labels.get(labels.PART_OF, ""), {labels.PCSG: group.metadata.name}),
        "observedGeneration": group.metadata.generation,
    }
    before = [c.to_manifest() for c in (group.status.conditions or ())] if group.status else []
    status["conditions"] = merged(before, [_breach(healthy, group.spec.min_available)], o.now)
    if wanted is not None and len(complete) == len(replicas) and all(_converged(r, wanted) for r in complete):
        status["currentPodCliqueSetGenerationHash"] = wanted.generation
    elif group.status is not None and group.status.current_pod_clique_set_generation_hash:
        status["currentPodCliqueSetGenerationHash"] = group.status.current_pod_clique_set_generation_hash
    return status


def _breach(healthy: int, minimum: int) -> Wanted:
    if healthy < minimum:
        text = f"PCSG replicas not in breach ({healthy}) below MinAvailable ({minimum})"
        return Wanted("MinAvailableBreached", "True", "InsufficientAvailablePodCliqueScalingGroupReplicas", text)
    text = f"PCSG replicas not in breach ({healthy}) meets MinAvailable ({minimum})"
    return Wanted("MinAvailableBreached", "False", "SufficientAvailablePodCliqueScalingGroupReplicas", text)


def _replicas(o: Observed) -> list[dict[str, PodClique] | None]:
    """The PodCliques of each replica by template name; None where one is missing or terminating."""
    live = {c.metadata.name: c for c in o.cliques if not c.metadata.deleting}
    names = o.group.spec.clique_names
    out: list[dict[str, PodClique] | None] = []
    for j in range(bounded(o.group.spec.replicas)):
        found = {name: live.get(member_clique_name(o.group.metadata.name, j, name)) for name in names}
        whole = {name: clique for name, clique in found.items() if clique is not None}
        out.append(whole if len(whole) == len(names) else None)
    return out


def _wanted(o: Observed) -> _Wanted | None:
    if o.pcs is None:
        return None
    priority_class = o.pcs.spec.template.priority_class_name or ""
    templates = {c.name: pod_template_hash(c, priority_class) for c in o.pcs.spec.template.cliques if c.name in o.group.spec.clique_names}
    return _Wanted(generation_hash(o.pcs), templates)


def _condition(clique: PodClique, type_: str) -> str | None:
    conditions = (clique.status.conditions or ()) if clique.status else ()
    return next((c.status for c in conditions if c.type == type_), None)


def _converged(replica: Mapping[str, PodClique], wanted: _Wanted | None) -> bool:
    """All pods of the replica carry the templates that the PodCliqueSet asks for."""
    return wanted is not None and all(
        clique.status is not None
        and clique.metadata.labels.get(labels.POD_TEMPLATE_HASH) == wanted.templates.get(name)
        and clique.status.current_pod_template_hash == wanted.templates.get(name)
        and clique.status.current_pod_clique_set_generation_hash == wanted.generation
        and clique.status.updated_replicas >= (clique.spec.min_available or 0)
        for name, clique in replica.items()
    )
