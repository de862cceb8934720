"""Shared ResourceClaims: templates, who uses them, and filters (grove.md §1.7, §7.1)."""

from collections.abc import Collection, Iterator, Sequence

from api.fielderrors import FieldError, duplicate, invalid, not_found, not_supported, required
from api.grove import PodCliqueScalingGroupConfig, PodCliqueSetTemplate, ResourceSharing
from api.validation.names import duplicates
from api.validation.shape import as_object

__all__ = ("claim_template_errors", "clique_sharing_errors", "group_sharing_errors", "set_sharing_errors")

TEMPLATE = "spec.template"
SCOPES = ("AllReplicas", "PerReplica")


def claim_template_errors(template: PodCliqueSetTemplate) -> Iterator[FieldError]:
    """resourceClaimTemplates: each has a name of its own and asks for devices."""
    path = f"{TEMPLATE}.resourceClaimTemplates"
    for i, entry in enumerate(template.resource_claim_templates or ()):
        if not entry.name:
            yield required(f"{path}[{i}].name", "must be set")
        devices = as_object(as_object(entry.template_spec.get("spec")).get("devices"))
        if not devices.get("requests"):
            yield required(f"{path}[{i}].templateSpec.spec.devices.requests", "a claim must request at least one device")
    if repeated := duplicates(t.name for t in template.resource_claim_templates or () if t.name):
        yield duplicate(f"{path}.name", repeated)


def set_sharing_errors(template: PodCliqueSetTemplate) -> Iterator[FieldError]:
    """resourceSharing of the set; its filter names cliques and scaling groups."""
    path = f"{TEMPLATE}.resourceSharing"
    yield from _entries(path, template.resource_sharing or (), _internal(template))
    cliques = {c.name for c in template.cliques}
    groups = {g.name for g in template.pod_clique_scaling_groups or ()}
    for i, entry in enumerate(template.resource_sharing or ()):
        if entry.filter is None:
            continue
        names, group_names = entry.filter.child_clique_names or (), entry.filter.child_scaling_group_names or ()
        if not names and not group_names:
            yield required(f"{path}[{i}].filter", "must name cliques or scaling groups; leave it out to share with all")
        yield from _unknown(f"{path}[{i}].filter.childCliqueNames", names, cliques)
        yield from _unknown(f"{path}[{i}].filter.childScalingGroupNames", group_names, groups)


def group_sharing_errors(path: str, group: PodCliqueScalingGroupConfig, template: PodCliqueSetTemplate) -> Iterator[FieldError]:
    """resourceSharing of the scaling group at `path`; its filter names members."""
    yield from _entries(f"{path}.resourceSharing", group.resource_sharing or (), _internal(template))
    members = set(group.clique_names)
    for k, entry in enumerate(group.resource_sharing or ()):
        if entry.filter is None:
            continue
        names = entry.filter.child_clique_names or ()
        if not names:
            yield required(f"{path}.resourceSharing[{k}].filter", "must name cliques of the group; leave it out to share with all")
        yield from _unknown(f"{path}.resourceSharing[{k}].filter.childCliqueNames", names, members)


def clique_sharing_errors(path: str, sharing: Sequence[ResourceSharing] | None, template: PodCliqueSetTemplate) -> Iterator[FieldError]:
    """resourceSharing of the clique at `path`."""
    yield from _entries(f"{path}.resourceSharing", sharing or (), _internal(template))


def _internal(template: PodCliqueSetTemplate) -> set[str]:
    return {t.name for t in template.resource_claim_templates or ()}


def _entries(path: str, sharing: Sequence[ResourceSharing], internal: Collection[str]) -> Iterator[FieldError]:
    seen: set[str] = set()
    for i, entry in enumerate(sharing):
        if not entry.name:
            yield required(f"{path}[{i}].name", "must be set")
        elif entry.name in seen:
            yield duplicate(f"{path}[{i}].name", entry.name)
        seen.add(entry.name)
        if entry.namespace and entry.name in internal:
            yield invalid(
                f"{path}[{i}].namespace", entry.namespace, f"must not be set: '{entry.name}' is one of this set's resourceClaimTemplates"
            )
        if entry.scope not in SCOPES:
            yield not_supported(f"{path}[{i}].scope", entry.scope, SCOPES)


def _unknown(path: str, names: Sequence[str], known: Collection[str]) -> Iterator[FieldError]:
    return (not_found(f"{path}[{j}]", name) for j, name in enumerate(names) if name not in known)
