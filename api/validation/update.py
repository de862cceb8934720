"""What cannot change once a PodCliqueSet exists (grove.md §1.8)."""

from collections.abc import Iterator, Sequence

from api.fielderrors import FieldError, forbidden, invalid
from api.grove import PodCliqueScalingGroupConfig, PodCliqueSet, PodCliqueSetTemplate, PodCliqueTemplate
from api.meta import CustomModel

__all__ = ("immutability_errors",)

TEMPLATE = "spec.template"
CLIQUES = f"{TEMPLATE}.cliques"
GROUPS = f"{TEMPLATE}.podCliqueScalingGroups"
ANY_ORDER = "CliqueStartupTypeAnyOrder"
IMMUTABLE = "field is immutable"


def immutability_errors(old: PodCliqueSet, new: PodCliqueSet) -> Iterator[FieldError]:
    """Everything but topology and MNNVL, which have rules of their own. Asked only of a set that is valid in itself."""
    before, after = old.spec.template, new.spec.template
    if before.clique_startup_type != after.clique_startup_type:
        yield invalid(f"{TEMPLATE}.cliqueStartupType", after.clique_startup_type, IMMUTABLE)
    yield from _lists_equal(f"{TEMPLATE}.resourceClaimTemplates", before.resource_claim_templates, after.resource_claim_templates)
    yield from _lists_equal(f"{TEMPLATE}.resourceSharing", before.resource_sharing, after.resource_sharing)
    yield from _clique_changes(before, after)
    yield from _group_changes(before.pod_clique_scaling_groups or (), after.pod_clique_scaling_groups or ())


def _clique_changes(before: PodCliqueSetTemplate, after: PodCliqueSetTemplate) -> Iterator[FieldError]:
    if len(before.cliques) != len(after.cliques):
        yield forbidden(CLIQUES, "cliques cannot be added to or removed from an existing PodCliqueSet; create a new one instead")
        return
    old = {c.name: (i, c) for i, c in enumerate(before.cliques)}
    for i, clique in enumerate(after.cliques):
        if clique.name not in old:
            yield forbidden(f"{CLIQUES}.name", f"'{clique.name}' is new; cliques of an existing PodCliqueSet cannot be renamed or replaced")
            continue
        index, was = old[clique.name]
        if after.clique_startup_type != ANY_ORDER and index != i:
            yield invalid(
                CLIQUES, clique.name, f"the order of cliques is immutable with {after.clique_startup_type}; it was at index {index}"
            )
        yield from _clique_fields(i, was, clique)


def _clique_fields(i: int, was: PodCliqueTemplate, now: PodCliqueTemplate) -> Iterator[FieldError]:
    path = f"{CLIQUES}.spec"
    if was.spec.role_name != now.spec.role_name:
        yield invalid(f"{path}.roleName", now.spec.role_name, IMMUTABLE)
    if was.spec.min_available != now.spec.min_available:
        yield invalid(f"{path}.minAvailable", now.spec.min_available, IMMUTABLE)
    yield from _names_equal(f"{path}.startsAfter", was.spec.starts_after, now.spec.starts_after)
    scheduler = now.spec.pod_spec.get("schedulerName") or ""
    if (was.spec.pod_spec.get("schedulerName") or "") != scheduler:
        yield invalid(f"{path}.podSpec.schedulerName", scheduler, IMMUTABLE)
    yield from _lists_equal(f"{CLIQUES}[{i}].resourceSharing", was.resource_sharing, now.resource_sharing)


def _group_changes(before: Sequence[PodCliqueScalingGroupConfig], after: Sequence[PodCliqueScalingGroupConfig]) -> Iterator[FieldError]:
    if len(before) != len(after):
        yield forbidden(GROUPS, "scaling groups cannot be added to or removed from an existing PodCliqueSet; create a new one instead")
        return
    old = {g.name: g for g in before}
    for i, group in enumerate(after):
        was = old.get(group.name)
        if was is None:
            yield forbidden(
                f"{GROUPS}.name", f"'{group.name}' is new; scaling groups of an existing PodCliqueSet cannot be renamed or replaced"
            )
            continue
        path = f"{GROUPS}[{i}]"
        yield from _names_equal(f"{path}.cliqueNames", was.clique_names, group.clique_names)
        if was.min_available != group.min_available:
            yield invalid(f"{path}.minAvailable", group.min_available, IMMUTABLE)
        yield from _lists_equal(f"{path}.resourceSharing", was.resource_sharing, group.resource_sharing)


def _names_equal(path: str, before: Sequence[str] | None, after: Sequence[str] | None) -> Iterator[FieldError]:
    """Absent and empty are the same."""
    if tuple(before or ()) != tuple(after or ()):
        yield invalid(path, list(after or ()), IMMUTABLE)


def _lists_equal(path: str, before: Sequence[CustomModel] | None, after: Sequence[CustomModel] | None) -> Iterator[FieldError]:
    """Absent and empty are the same."""
    if tuple(before or ()) != tuple(after or ()):
        yield invalid(path, [item.to_manifest() for item in after or ()], IMMUTABLE)
