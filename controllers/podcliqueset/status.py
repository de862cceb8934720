"""Status of a PodCliqueSet (grove.md §1.9, §1.10)."""

from collections.abc import Collection

from api import labels
from api.conditions import Wanted, merged
from api.fielderrors import aggregate
from api.grove import PodClique, PodCliqueScalingGroup
from api.hashes import generation_hash, pod_template_hash
from api.lasterrors import last_errors
from api.limits import bounded
from api.names import clique_name, scaling_group_name
from api.objects.template import standalone_cliques
from api.objects.topology import constraint_domains, level_keys, topology_name
from api.plan import Manifest
from api.reasons import Reason
from controllers.podcliqueset.observe import Observed

__all__ = ("MAX_MESSAGE", "TEMPLATE_NOT_APPLIED", "TEMPLATE_TEXT", "status_of", "template_changed")

MAX_MESSAGE = 1024
TEMPLATE_NOT_APPLIED = "TemplateNotApplied"
TEMPLATE_TEXT = (
    "The pod templates have changed, and running PodCliques keep the ones they were made with. New replicas use the new templates; "
    "delete a PodClique to have it made anew."
)


def status_of(o: Observed, *, synced: bool) -> Manifest:
    """The whole status as data. `synced`: the spec has been carried out completely, so observedGeneration may advance."""
    before = o.pcs.status
    available = updated = 0
    hash_ = (before.current_generation_hash if before else None) or generation_hash(o.pcs)
    template_hashes = {c.name: pod_template_hash(c, o.pcs.spec.template.priority_class_name or "") for c in standalone_cliques(o.pcs)}
    for i in range(bounded(o.pcs.spec.replicas)):
        cliques, groups = _children(o, i, template_hashes)
        if cliques is None or groups is None or not _available(cliques, groups):
            continue
        available += 1
        updated += all(_clique_updated(c, template_hashes[name], hash_) for name, c in cliques.items()) and all(
            g.status is not None and g.status.current_pod_clique_set_generation_hash == hash_ for g in groups
        )
    status: Manifest = {
        "replicas": o.pcs.spec.replicas,
        "availableReplicas": available,
        "updatedReplicas": updated,
        "hpaPodSelector": labels.selector_text(o.pcs.metadata.name),
    }
    observed = o.pcs.metadata.generation if synced else before.observed_generation if before else None
    if observed:
        status["observedGeneration"] = observed
    if not o.validation.errors or (before and before.current_generation_hash):
        status["currentGenerationHash"] = hash_
    if conditions := _conditions(o):
        live = [c.to_manifest() for c in (before.conditions or ())] if before else []
        status["conditions"] = merged(live, conditions, o.now)
    if o.validation.errors:
        text = aggregate(o.validation.errors)
        status["lastErrors"] = last_errors(before.last_errors if before else (), "ERR_VALIDATE_CREATE_PODCLIQUESET", text, o.now)
    return status


def _children(o: Observed, i: int, names: Collection[str]) -> tuple[dict[str, PodClique] | None, list[PodCliqueScalingGroup] | None]:
    """Standalone cliques by template name (all of `names`) and scaling groups of replica i; None where one is missing or terminating."""
    pcs = o.pcs.metadata.name
    cliques = {name: o.cliques.get(clique_name(pcs, i, name)) for name in names}
    groups = [o.groups.get(scaling_group_name(pcs, i, g.name)) for g in o.pcs.spec.template.pod_clique_scaling_groups or ()]
    found = {name: c for name, c in cliques.items() if c is not None and not c.metadata.deleting}
    live = [g for g in groups if g is not None and not g.metadata.deleting]
    return (found if len(found) == len(cliques) else None), (live if len(live) == len(groups) else None)


def _available(cliques: dict[str, PodClique], groups: list[PodCliqueScalingGroup]) -> bool:
    return all(c.status is not None and c.status.ready_replicas >= (c.spec.min_available or 0) for c in cliques.values()) and all(
        g.status is not None and g.status.available_replicas >= g.spec.min_available for g in groups
    )


def _clique_updated(clique: PodClique, template_hash: str, generation: str) -> bool:
    status = clique.status
    return (
        status is not None
        and clique.metadata.labels.get(labels.POD_TEMPLATE_HASH) == template_hash
        and status.current_pod_template_hash == template_hash
        and status.current_pod_clique_set_generation_hash == generation
        and status.updated_replicas >= (clique.spec.min_available or 0)
    )


def template_changed(o: Observed) -> bool:
    """True when the pod templates are not those that the running pods were made from. Rolling them is not built yet, so it is said."""
    before = o.pcs.status.current_generation_hash if o.pcs.status else None
    return before is not None and before != generation_hash(o.pcs)


def _conditions(o: Observed) -> list[Wanted]:
    out: list[Wanted] = []
    generation = o.pcs.metadata.generation
    if o.validation.errors:
        text = aggregate(o.validation.errors)[:MAX_MESSAGE]
        out.append(Wanted("InvalidSpec", "True", Reason.INVALID_SPEC, text, generation))
    if template_changed(o):
        out.append(Wanted(TEMPLATE_NOT_APPLIED, "True", "UpdateNotSupported", TEMPLATE_TEXT, generation))
    if (topology := _topology(o)) is not None:
        out.append(topology)
    return out


def _topology(o: Observed) -> Wanted | None:
    """TopologyLevelsUnavailable; None when topology-aware scheduling is off and nothing asks for it."""
    type_, generation = "TopologyLevelsUnavailable", o.pcs.metadata.generation
    domains = constraint_domains(o.pcs)
    if not o.settings.topology_enabled:
        text = "Topology-aware scheduling is disabled: constraints have no effect"
        return Wanted(type_, "Unknown", "TopologyAwareSchedulingDisabled", text, generation) if domains else None
    if not domains:
        return Wanted(type_, "False", "AllClusterTopologyLevelsAvailable", "No topology constraints defined", generation)
    name = topology_name(o.pcs)
    if not name:
        text = "No constraint names a ClusterTopologyBinding: set topologyName"
        return Wanted(type_, "Unknown", "TopologyNameMissing", text, generation)
    if o.binding is None:
        text = f"ClusterTopologyBinding {name} does not exist: constraints have no effect"
        return Wanted(type_, "Unknown", "ClusterTopologyNotFound", text, generation)
    keys = level_keys(o.binding)
    if missing := [d for d in domains if d not in keys]:
        text = f"Unavailable topology domains: [{', '.join(missing)}]"
        return Wanted(type_, "True", "ClusterTopologyLevelsUnavailable", text, generation)
    return Wanted(type_, "False", "AllClusterTopologyLevelsAvailable", "All topology levels are available", generation)
