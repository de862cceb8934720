"""SingleWriter, and what our controllers leave to others (the part of AtMostOnceActuation that exists without a Planner)."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from sim.apiserver.objects import Object, mapping, maps
from sim.apiserver.storage import Change
from sim.invariants.checker import Checker, is_ours

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
    """SingleWriter: `kind/name path: managers` for each field of an object that several managers of ours own.

    Left out: what the API server itself writes into status when an object is made or bound, which counts as the client's; and the identity
    that an object is created with (docs/adr/0005).
    """
    out: list[str] = []
    for obj in objects:
        owners: dict[str, list[str]] = {}
        for entry in maps(obj, "metadata", "managedFields"):
            fields = mapping(entry, "fieldsV1")
            if entry.get("subresource") != "status":
                left_out = ("f:status",) if entry.get("operation") == "Apply" else ("f:status", "f:metadata")
                fields = {name: inner for name, inner in fields.items() if name not in left_out}
            if entry["manager"].startswith(OUR_MANAGERS):
                for path in _leaves(fields, ""):
                    owners.setdefault(path, []).append(entry["manager"])
        name = f"{obj['kind']}/{obj['metadata']['name']}"
        out += [f"{name} {path}: {', '.join(sorted(who))}" for path, who in sorted(owners.items()) if len(set(who)) > 1]
    return out


def _leaves(fields: Mapping[str, Any], path: str) -> Iterator[str]:
    for name, inner in fields.items():
        if name == ".":
            continue
        if inner:
            yield from _leaves(inner, f"{path}{name}/")
        else:
            yield path + name
