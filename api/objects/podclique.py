"""PodClique objects: standalone ones (owned by the PodCliqueSet) and members of a scaling group (owned by the group)."""

from api import labels
from api.grove import PodCliqueScalingGroup, PodCliqueSet, PodCliqueTemplate
from api.hashes import pod_template_hash
from api.names import base_gang_name, clique_name, member_clique_name
from api.objects.env import member_environment, with_environment
from api.objects.metadata import metadata
from api.objects.startup import starts_after
from api.objects.template import Membership, template_pods
from api.plan import Manifest

__all__ = ("member_podclique", "standalone_podclique")


def standalone_podclique(pcs: PodCliqueSet, pcs_replica: int, template: PodCliqueTemplate) -> Manifest:
    """PodClique `<pcs>-<i>-<clique>` of a (defaulted) PodCliqueSet."""
    name = clique_name(pcs.metadata.name, pcs_replica, template.name)
    gang = base_gang_name(pcs.metadata.name, pcs_replica)
    computed = _computed_labels(pcs, pcs_replica, template, name, gang, "pcs-podclique")
    spec = _spec(template, starts_after(pcs, pcs_replica, template.name, None))
    return _manifest(name, pcs, template, {**labels.default_labels(pcs.metadata.name), **computed}, spec)


def member_podclique(
    pcs: PodCliqueSet, pcs_replica: int, owner: PodCliqueScalingGroup, member: Membership, template: PodCliqueTemplate
) -> Manifest:
    """PodClique `<group>-<j>-<clique>`, with the scaling group's variables in its pod spec."""
    name = member_clique_name(member.group, member.replica, template.name)
    gang = member.gang(pcs.metadata.name, pcs_replica)
    computed = {
        **labels.default_labels(pcs.metadata.name),
        **_computed_labels(pcs, pcs_replica, template, name, gang, "pcsg-podclique"),
        labels.PCSG: member.group,
        labels.PCSG_REPLICA_INDEX: str(member.replica),
    }
    if member.scaled:
        computed[labels.BASE_PODGANG] = base_gang_name(pcs.metadata.name, pcs_replica)
    spec = _spec(template, starts_after(pcs, pcs_replica, template.name, member))
    spec["podSpec"] = with_environment(template.spec.pod_spec, member_environment(template_pods(pcs, member.config)))
    return _manifest(name, owner, template, computed, spec)


def _computed_labels(
    pcs: PodCliqueSet, pcs_replica: int, template: PodCliqueTemplate, name: str, gang: str, component: str
) -> dict[str, str]:
    return {
        labels.NAME: name,
        labels.COMPONENT: component,
        labels.PCS_REPLICA_INDEX: str(pcs_replica),
        labels.PODGANG: gang,
        labels.POD_TEMPLATE_HASH: pod_template_hash(template, pcs.spec.template.priority_class_name or ""),
    }


def _spec(template: PodCliqueTemplate, parents: tuple[str, ...]) -> Manifest:
    spec = template.spec.to_manifest()
    spec.setdefault("roleName", "")  # optional in a PodCliqueSet, required in a PodClique
    spec.pop("startsAfter", None)
    if parents:
        spec["startsAfter"] = list(parents)
    return spec


def _manifest(
    name: str, owner: PodCliqueSet | PodCliqueScalingGroup, template: PodCliqueTemplate, computed: dict[str, str], spec: Manifest
) -> Manifest:
    annotations = {k: v for k, v in (template.annotations or {}).items() if k != labels.ANNOTATION_TOPOLOGY_NAME}
    return {
        "apiVersion": "grove.io/v1alpha1",
        "kind": "PodClique",
        "metadata": metadata(name, owner, {**(template.labels or {}), **computed}, annotations, (labels.FINALIZER_PODCLIQUE,)),
        "spec": spec,
    }
