"""Owners of the replicas of an object, as its scale subresource shows them, and back."""

from collections.abc import Mapping
from dataclasses import replace

from sim.apiserver.fields.fieldset import MEMBER, FieldSet, contains, difference
from sim.apiserver.fields.managed import Manager, Managers

__all__ = ("Places", "parent_managers", "replicas_place", "scale_managers")

Places = Mapping[str, FieldSet | None]
"""By version (apps/v1) the set that is the field of the replicas alone; None: a version without scale."""
REPLICAS: FieldSet = {"f:spec": {"f:replicas": MEMBER}}


def replicas_place(path: str) -> FieldSet:
    """The set of one field, from its path: .spec.replicas."""
    place: FieldSet = MEMBER
    for key in reversed(path.removeprefix(".").split(".")):
        place = {f"f:{key}": place}
    return place


def scale_managers(managers: Managers, places: Places, api_version: str) -> Managers:
    """Managers of the Scale: those of the object that own its replicas. `api_version`: of the Scale."""
    owners = (m for m in managers if (place := places.get(m.api_version)) is not None and contains(m.fields, place))
    return tuple(replace(m, api_version=api_version, fields=REPLICAS) for m in owners)


def parent_managers(managers: Managers, scale: Managers, places: Places, api_version: str) -> Managers:
    """Managers of the object after those of its Scale became `scale`. `api_version`: in which the object was scaled.

    Updates of the object do not keep their share in the replicas, not even when nothing changed, since an update of a Scale is another
    version; it comes back as an entry without time. Applies keep theirs, and versions that nobody knows are dropped.
    """
    left = {m.key: m for m in scale}
    out: list[Manager] = []
    for manager in managers:
        if manager.api_version not in places:
            continue
        place = places[manager.api_version]
        if place is None or not contains(manager.fields, place) or left.pop(manager.key, None) is not None:
            out.append(manager)
        elif rest := difference(manager.fields, place):
            out.append(replace(manager, fields=rest))
    own = places[api_version] or REPLICAS
    new = (m for m in left.values() if contains(m.fields, REPLICAS))
    return (*out, *(replace(m, api_version=api_version, time="", fields=own) for m in new))
