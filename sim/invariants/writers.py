"""SingleWriter, and what our controllers leave to others (the part of AtMostOnceActuation that exists without a Planner)."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from sim.apiserver.objects import Object
from sim.apiserver.storage import Change
from sim.invariants.checker import Checker, is_ours
from sim.kubelet.parts import mapping

__all__ = ("ReplicasLeftAlone", "shared_fields")

OUR_MANAGERS = "grovekeeper"


class ReplicasLeftAlone(Checker):
    """Our controllers never change what others have asked for: the spec of a PodCliqueSet, the replicas of a scaling group."""

    def changed(self, change: Change) -> None:
        if change.old is None or change.new is None or not is_ours(change):
            return
        before, after = mapping(change.old.obj, "spec"), mapping(change.new.obj, "spec")
        if change.resource.plural == "podcliquesets" and before != after:
            self.report("ReplicasLeftAlone", f"the spec of PodCliqueSet {change.key.name} was changed")
        if change.resource.plural == "podcliquescalinggroups" and before.get("replicas") != after.get("replicas"):
            text = f"replicas of {change.key.name} were changed from {before.get('replicas')} to {after.get('replicas')}"
            self.report("ReplicasLeftAlone", text)


def shared_fields(objects: Iterable[Object]) -> list[str]:
    """SingleWriter: `kind path: managers` for each field path of a kind that several managers of ours own, on one object or on several."""
    owners: dict[str, dict[str, None]] = {}
    for obj in objects:
        for entry in obj["metadata"].get("managedFields") or ():
            if entry["manager"].startswith(OUR_MANAGERS):
                for path in _leaves(entry.get("fieldsV1") or {}, f"{obj['kind']} "):
                    owners.setdefault(path, {})[entry["manager"]] = None
    return [f"{path}: {', '.join(sorted(managers))}" for path, managers in sorted(owners.items()) if len(managers) > 1]


def _leaves(fields: Mapping[str, Any], path: str) -> Iterator[str]:
    for name, inner in fields.items():
        if name == ".":
            continue
        # Keys that are values of one object (uids) would tell objects apart, not fields.
        here = path + ("k:{}" if name.startswith('k:{"uid"') else name)
        if inner:
            yield from _leaves(inner, f"{here}/")
        else:
            yield here
