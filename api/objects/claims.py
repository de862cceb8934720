"""ResourceClaims shared by the pods of a set, a scaling group or a clique (grove.md §7.1).

A claim belongs to an owner (PodCliqueSet, PodCliqueScalingGroup or PodClique): scope AllReplicas makes one per owner, PerReplica one per
replica index of that level. Its spec comes from a template inside the set, or from a ResourceClaimTemplate in the cluster.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from api import labels
from api.core import ResourceClaim, ResourceClaimTemplate
from api.grove import PodCliqueSet, PodCliqueTemplate, ResourceSharing, SetResourceSharing
from api.objects.metadata import metadata
from api.objects.template import Membership
from api.plan import Create, Delete, Manifest, Object, Op, Ref, Why
from api.reasons import Reason

__all__ = ("Claim", "TemplateLookup", "claim_changes", "claim_manifest", "claims_of", "pod_claims", "template_lookup", "with_claims")

TemplateLookup = Callable[[str, str], Manifest | None]
"""(namespace, name) → spec of a ResourceClaimTemplate ({metadata?, spec}) of the cluster, None when it does not exist."""

ALL_REPLICAS = "AllReplicas"


@dataclass(frozen=True, slots=True)
class Claim:
    """One expected ResourceClaim: its name, where its spec comes from, and the replica index (None for AllReplicas)."""

    name: str
    template: str
    template_namespace: str
    index: int | None


def claims_of(owner: str, sharing: Iterable[ResourceSharing] | None, indices: Sequence[int]) -> tuple[Claim, ...]:
    """Claims of one owner (its full name) for the replica indices of its level."""
    out: list[Claim] = []
    for entry in sharing or ():
        namespace = entry.namespace or ""
        if entry.scope == ALL_REPLICAS:
            out.append(Claim(f"{owner}-all-{entry.name}", entry.name, namespace, None))
        else:
            out += [Claim(f"{owner}-{i}-{entry.name}", entry.name, namespace, i) for i in indices]
    return tuple(out)


def claim_manifest(
    pcs: PodCliqueSet, owner: Object, claim: Claim, lookup: TemplateLookup, level_labels: dict[str, str], index_label: str
) -> Manifest | None:
    """The ResourceClaim object; None when its template does not exist (yet)."""
    template = _template(pcs, claim, lookup)
    if template is None:
        return None
    found = {**labels.default_labels(pcs.metadata.name), labels.COMPONENT: "resource-claim", **level_labels}
    if claim.index is not None:
        found[index_label] = str(claim.index)
    return {
        "apiVersion": ResourceClaim.KIND.api_version,
        "kind": "ResourceClaim",
        "metadata": metadata(claim.name, owner, found),
        "spec": template.get("spec") or {},
    }


def claim_changes(
    pcs: PodCliqueSet,
    owner: Object,
    wanted: Sequence[Claim],
    live: Iterable[ResourceClaim],
    lookup: TemplateLookup,
    level: tuple[dict[str, str], str],
) -> tuple[tuple[Op, ...], tuple[Why, ...]]:
    """Creates of missing claims, deletes of those not wanted any more, and what could not be made because its template does not exist.

    level: labels of the owner's level, and the label that holds the replica index.
    """
    existing = {c.metadata.name: c for c in live}
    ops: list[Op] = []
    missing: list[Why] = []
    for claim in wanted:
        if claim.name in existing:
            continue
        manifest = claim_manifest(pcs, owner, claim, lookup, *level)
        if manifest is None:
            where = claim.template_namespace or pcs.metadata.namespace
            text = f"ResourceClaimTemplate {where}/{claim.template} does not exist: create it, or correct resourceSharing"
            missing.append(Why(Reason.CLAIM_UNALLOCATABLE, text))
        else:
            ops.append(Create(ResourceClaim.KIND, manifest))
    names = {c.name for c in wanted}
    ops += [Delete(Ref.of(c)) for n, c in existing.items() if n not in names and not c.metadata.deleting]
    return tuple(ops), tuple({w.message: w for w in missing}.values())


def template_lookup(templates: Iterable[ResourceClaimTemplate]) -> TemplateLookup:
    """Looks templates of the cluster up by namespace and name."""
    specs = {(t.metadata.namespace, t.metadata.name): t.spec for t in templates}
    return lambda namespace, name: specs.get((namespace, name))


def _template(pcs: PodCliqueSet, claim: Claim, lookup: TemplateLookup) -> Manifest | None:
    if not claim.template_namespace:
        for internal in pcs.spec.template.resource_claim_templates or ():
            if internal.name == claim.template:
                return internal.template_spec
    return lookup(claim.template_namespace or pcs.metadata.namespace, claim.template)


def pod_claims(
    pcs: PodCliqueSet, pcs_replica: int, template: PodCliqueTemplate, member: Membership | None, clique: str, pod_index: int
) -> tuple[str, ...]:
    """Names of the claims that a pod uses, broadest level first. `clique` is the full PodClique name."""
    pcs_name = pcs.metadata.name
    out = [c.name for c in claims_of(pcs_name, _matching(pcs, template, member), (pcs_replica,))]
    if member is not None:
        shared = [
            s for s in member.config.resource_sharing or () if s.filter is None or template.name in (s.filter.child_clique_names or ())
        ]
        out += [c.name for c in claims_of(member.group, shared, (member.replica,))]
    out += [c.name for c in claims_of(clique, template.resource_sharing, (pod_index,))]
    return tuple(out)


def _matching(pcs: PodCliqueSet, template: PodCliqueTemplate, member: Membership | None) -> list[SetResourceSharing]:
    """The set's sharing entries that reach this clique: no filter reaches all."""
    group = member.config.name if member is not None else None
    return [
        s
        for s in pcs.spec.template.resource_sharing or ()
        if s.filter is None
        or template.name in (s.filter.child_clique_names or ())
        or (group is not None and group in (s.filter.child_scaling_group_names or ()))
    ]


def with_claims(pod_spec: Manifest, claims: Sequence[str]) -> Manifest:
    """`pod_spec` (changed in place and returned) with every claim, referenced from every container and init container."""
    if not claims:
        return pod_spec
    pod_spec["resourceClaims"] = [
        *(pod_spec.get("resourceClaims") or ()),
        *({"name": name, "resourceClaimName": name} for name in claims),
    ]
    for container in [*(pod_spec.get("containers") or ()), *(pod_spec.get("initContainers") or ())]:
        resources = dict(container.get("resources") or {})
        resources["claims"] = [*(resources.get("claims") or ()), *({"name": name} for name in claims)]
        container["resources"] = resources
    return pod_spec
