"""PodCliques, scaling groups, gangs and set-level claims: which are missing, which are surplus (grove.md §2.2, §2.3)."""

from collections.abc import Iterator

from api import labels
from api.grove import PodClique, PodCliqueScalingGroup, PodCliqueScalingGroupConfig
from api.limits import bounded
from api.names import clique_name, scaling_group_name
from api.objects.claims import claim_changes, claims_of, template_lookup
from api.objects.metadata import metadata
from api.objects.podclique import standalone_podclique
from api.objects.podgang import gang_shapes, podgang_identity
from api.objects.scheduler import scheduler_of
from api.objects.template import standalone_cliques
from api.plan import Apply, Create, Delete, Manifest, Op, Ref, Why
from api.podgang import PodGang
from api.subset import contains
from controllers.podcliqueset.observe import Observed

__all__ = ("claims", "cliques", "gangs", "groups")


def claims(o: Observed) -> tuple[tuple[Op, ...], tuple[Why, ...]]:
    """Set-level ResourceClaims, and the templates that do not exist."""
    wanted = claims_of(o.pcs.metadata.name, o.pcs.spec.template.resource_sharing, range(bounded(o.pcs.spec.replicas)))
    lookup = template_lookup(o.claim_templates)
    return claim_changes(o.pcs, o.pcs, wanted, o.claims.values(), lookup, ({}, labels.PCS_REPLICA_INDEX))


def cliques(o: Observed) -> Iterator[Op]:
    """Standalone PodCliques. Existing ones keep their replicas: scaling by others is never reverted."""
    expected: set[str] = set()
    templates = standalone_cliques(o.pcs)
    for i in range(bounded(o.pcs.spec.replicas)):
        for template in templates:
            name = clique_name(o.pcs.metadata.name, i, template.name)
            expected.add(name)
            if name not in o.cliques:
                yield Create(PodClique.KIND, standalone_podclique(o.pcs, i, template))
    yield from (Delete(Ref.of(c)) for n, c in o.cliques.items() if n not in expected and not c.metadata.deleting)


def groups(o: Observed) -> Iterator[Op]:
    """Scaling groups. Replicas are given at creation only; annotations follow the template."""
    expected: set[str] = set()
    for i in range(bounded(o.pcs.spec.replicas)):
        for config in o.pcs.spec.template.pod_clique_scaling_groups or ():
            name = scaling_group_name(o.pcs.metadata.name, i, config.name)
            expected.add(name)
            live = o.groups.get(name)
            if live is None:
                yield Create(PodCliqueScalingGroup.KIND, _group(o, i, name, config, at_creation=True))
            elif not live.metadata.deleting and not contains(live.metadata.annotations, _annotations(o, config)):
                yield Apply(PodCliqueScalingGroup.KIND, _group(o, i, name, config, at_creation=False), uid=live.metadata.uid)
    yield from (Delete(Ref.of(g)) for n, g in o.groups.items() if n not in expected and not g.metadata.deleting)


def _annotations(o: Observed, config: PodCliqueScalingGroupConfig) -> dict[str, str]:
    inherited = o.pcs.metadata.annotations.get(labels.ANNOTATION_MNNVL_GROUP)
    base = {labels.ANNOTATION_MNNVL_GROUP: inherited} if inherited else {}
    return {**base, **(config.annotations or {})}


def _group(o: Observed, i: int, name: str, config: PodCliqueScalingGroupConfig, *, at_creation: bool) -> Manifest:
    """`at_creation` adds what is ours only then: replicas and the finalizer belong to scalers and to the group's controller later."""
    found = {
        **labels.default_labels(o.pcs.metadata.name),
        labels.NAME: name,
        labels.COMPONENT: "pcs-podcliquescalinggroup",
        labels.PCS_REPLICA_INDEX: str(i),
    }
    finalizers = (labels.FINALIZER_PODCLIQUESCALINGGROUP,) if at_creation else ()
    spec: Manifest = {"minAvailable": config.min_available, "cliqueNames": list(config.clique_names)}
    if at_creation:
        spec["replicas"] = config.replicas
    return {
        "apiVersion": PodCliqueScalingGroup.KIND.api_version,
        "kind": "PodCliqueScalingGroup",
        "metadata": metadata(name, o.pcs, found, _annotations(o, config), finalizers),
        "spec": spec,
    }


def gangs(o: Observed) -> Iterator[Op]:
    """Missing gangs are created empty; what is in them is the PodGang controller's. Surplus ones are deleted first."""
    shapes = {shape.name: shape for shape in gang_shapes(o.pcs, o.groups)}
    yield from (Delete(Ref.of(g)) for n, g in o.gangs.items() if n not in shapes and not g.metadata.deleting)
    scheduler = scheduler_of(o.pcs, o.settings.default_scheduler)
    for name in shapes:
        if name not in o.gangs:
            yield Create(PodGang.KIND, podgang_identity(o.pcs, name, scheduler))
