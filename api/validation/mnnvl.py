"""The annotation that puts pods into a group with a shared NVLink domain (grove.md §1.7, §7.2)."""

from collections.abc import Iterator, Mapping

from api.fielderrors import FieldError, forbidden, invalid
from api.grove import PodCliqueSet
from api.labels import ANNOTATION_MNNVL_GROUP
from api.validation.names import label_problem

__all__ = ("mnnvl_errors", "mnnvl_update_errors")

NONE = "none"


def mnnvl_errors(pcs: PodCliqueSet, *, enabled: bool) -> Iterator[FieldError]:
    """On creation: `none`, or a group name where the feature is on."""
    for path, value in _annotated(pcs):
        if value == NONE:
            continue
        if not enabled:
            yield invalid(path, value, "MNNVL is not enabled here: set network.autoMNNVLEnabled in the operator configuration, or use none")
        elif problem := label_problem(value):
            yield invalid(path, value, f"must be none or a group name: {problem}")


def mnnvl_update_errors(old: PodCliqueSet, new: PodCliqueSet) -> Iterator[FieldError]:
    """On update the annotation stays as it is on each level. Cliques and groups are matched by name, so their order may change."""
    before, after = _by_name(old), _by_name(new)
    for place, (path, value) in after.items():
        if place in before and before[place][1] != value:
            yield forbidden(path, f"annotation {ANNOTATION_MNNVL_GROUP} is immutable: it can be neither added, removed nor changed")


def _annotated(pcs: PodCliqueSet) -> Iterator[tuple[str, str]]:
    return ((path, value) for path, value in _by_name(pcs).values() if value is not None)


def _by_name(pcs: PodCliqueSet) -> dict[tuple[str, str], tuple[str, str | None]]:
    """(level, name) → path and value of the annotation."""
    template = pcs.spec.template
    out = {("set", ""): _entry("metadata", pcs.metadata.annotations)}
    for i, clique in enumerate(template.cliques):
        out["clique", clique.name] = _entry(f"spec.template.cliques[{i}]", clique.annotations)
    for i, group in enumerate(template.pod_clique_scaling_groups or ()):
        out["group", group.name] = _entry(f"spec.template.podCliqueScalingGroups[{i}]", group.annotations)
    return out


def _entry(path: str, annotations: Mapping[str, str] | None) -> tuple[str, str | None]:
    return f"{path}.annotations[{ANNOTATION_MNNVL_GROUP}]", (annotations or {}).get(ANNOTATION_MNNVL_GROUP)
