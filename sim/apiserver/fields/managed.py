"""Who owns which fields: entries of metadata.managedFields, and what a write by Update makes of them."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypeAlias

from sim.apiserver.fields.comparing import changes
from sim.apiserver.fields.fieldset import EMPTY, MEMBER, FieldSet, difference, exclude, from_v1, to_v1, union
from sim.apiserver.fields.shapes import zero_of
from sim.apiserver.objects import Object, dig, is_list
from sim.apiserver.schema.model import Schema

__all__ = ("MAX_UPDATERS", "STRIPPED", "Manager", "Managers", "claimed", "decode", "encode", "same", "settled", "updated")

Operation: TypeAlias = Literal["Apply", "Update"]
MAX_UPDATERS = 10
"""More entries of operation Update than this are merged, the oldest first."""
ANCIENT = "ancient-changes"

STRIPPED: FieldSet = {
    "f:apiVersion": MEMBER,
    "f:kind": MEMBER,
    "f:metadata": {
        ".": MEMBER,
        **{
            f"f:{name}": MEMBER
            for name in (
                "name",
                "namespace",
                "creationTimestamp",
                "selfLink",
                "uid",
                "clusterName",
                "generation",
                "managedFields",
                "resourceVersion",
            )
        },
    },
}
"""Fields that nobody owns."""


@dataclass(frozen=True, slots=True)
class Manager:
    """One entry. `time`: RFC3339 seconds with Z, or "" for an entry whose write never changed the object."""

    name: str
    operation: Operation
    subresource: str = ""
    api_version: str = ""
    time: str = ""
    fields: FieldSet = field(default_factory=dict[str, Any])

    @property
    def key(self) -> tuple[str, str, str, str]:
        """Identity: an applier stays the same one when it changes to another version."""
        return (self.name, self.operation, self.subresource, "" if self.operation == "Apply" else self.api_version)


Managers: TypeAlias = tuple[Manager, ...]


def encode(managers: Managers) -> list[Object]:
    """The value of metadata.managedFields: Apply before Update, then by time, name, version and subresource."""
    return [_entry(manager) for manager in ordered(managers)]


def ordered(managers: Managers) -> list[Manager]:
    """Managers as they are listed."""
    return sorted(managers, key=lambda m: (m.operation, m.time, m.name, m.api_version, m.subresource))


def _entry(manager: Manager) -> Object:
    out: Object = {"manager": manager.name, "operation": manager.operation, "apiVersion": manager.api_version}
    if manager.time:
        out["time"] = manager.time
    out["fieldsType"] = "FieldsV1"
    out["fieldsV1"] = to_v1(manager.fields)
    if manager.subresource:
        out["subresource"] = manager.subresource
    return out


def decode(entries: Sequence[Object] | None) -> Managers:
    """Reads metadata.managedFields. Raises ValueError for entries that the server does not accept."""
    found: dict[tuple[str, str, str, str], Manager] = {}
    for at, entry in enumerate(entries or ()):
        operation = entry.get("operation")
        if operation not in ("Apply", "Update"):
            raise ValueError("operation must be `Apply` or `Update`")
        if not entry.get("apiVersion"):
            raise ValueError("apiVersion must not be empty")
        if (kind := entry.get("fieldsType")) != "FieldsV1":
            problem = f'invalid fieldsType "{kind}"' if kind else "missing fieldsType"
            raise ValueError(f"{problem} in managed fields entry {at}")
        manager = Manager(
            name=entry.get("manager") or "",
            operation=operation,
            subresource=entry.get("subresource") or "",
            api_version=entry["apiVersion"],
            time=entry.get("time") or "",
            fields=from_v1(entry.get("fieldsV1") or {}),
        )
        found[manager.key] = manager
    return tuple(found.values())


def claimed(live: Managers, sent: Any, *, subresource: str) -> Managers:
    """Managers that a write starts from. `sent`: metadata.managedFields of the object that a client wrote.

    Clients may edit the entries, and reset them by an empty list or one empty entry; entries that are missing or wrong, and those sent to
    a subresource, do not count.
    """
    if subresource or not is_list(sent):
        return live
    entries: list[Any] = sent
    if not entries or entries == [{}]:
        return ()
    try:
        return decode(entries) or live
    except (ValueError, AttributeError, TypeError):
        return live


def updated(
    managers: Managers,
    old: Object | None,
    new: Object,
    schema: Schema,
    *,
    manager: str,
    subresource: str = "",
    api_version: str,
    now: str,
    reset: FieldSet = EMPTY,
) -> Managers:
    """Managers after a create, update or patch that is no apply: what it changed is its own now, and nobody owns what it removed.

    `old`: the stored object, None for a create. Both objects as they are stored, without empty metadata. `now`: RFC3339 seconds with Z.
    `reset`: fields that the endpoint ignores, for example status on the main resource. Returns `managers` itself when nothing changed.
    An object that came without managers (a reset) stays without, until somebody applies.
    """
    if not managers and old is not None and dig(old, "metadata", "uid"):
        return managers
    removed, modified, added = changes(zero_of(schema) if old is None else old, new, schema)
    taken = union(modified, added)
    if reset:
        removed, taken = exclude(removed, reset), exclude(taken, reset)
    if not removed and not taken:
        return managers
    out = without(managers, union(removed, taken))
    own = difference(taken, STRIPPED)
    if not own:
        return out
    mine = Manager(manager or "unknown", "Update", subresource, api_version, now, own)
    previous = next((m for m in out if m.key == mine.key), None)
    if previous is not None:
        mine = replace(mine, fields=union(own, previous.fields))
    return capped((*(m for m in out if m is not previous), mine))


def settled(before: Managers, after: Managers) -> Managers:
    """For writes that leave the object as it was: `before` itself where only times differ (and do not change the order of entries), so
    that there is nothing to store."""
    if before is after:
        return before
    timeless = [replace(m, time="") for m in ordered(before)]
    return before if timeless == [replace(m, time="") for m in ordered(after)] else after


def same(a: Managers, b: Managers) -> bool:
    """Whether two states of an object's managers are equal; their order means nothing."""
    return a is b or (len(a) == len(b) and {m.key: m for m in a} == {m.key: m for m in b})


def without(managers: Managers, fields: FieldSet) -> Managers:
    """Managers without fields; those that have none left are gone. The same tuple when nothing changes."""
    out: list[Manager] = []
    is_same = True
    for manager in managers:
        left = difference(manager.fields, fields)
        if left == manager.fields and left:
            out.append(manager)
            continue
        is_same = False
        if left:
            out.append(replace(manager, fields=left))
    return managers if is_same else tuple(out)


def capped(managers: Managers) -> Managers:
    """At most MAX_UPDATERS entries of operation Update: the oldest become one per version."""
    updaters = sorted((m for m in managers if m.operation == "Update"), key=lambda m: (m.time, m.name, m.api_version, m.subresource))
    excess = len(updaters) - MAX_UPDATERS
    if excess <= 0:
        return managers
    kept = {m.key: m for m in managers}
    first: dict[str, Manager] = {}
    for manager in updaters:
        if excess <= 0:
            break
        if manager.api_version not in first:
            first[manager.api_version] = manager
            continue
        bucket = Manager(ANCIENT, "Update", "", manager.api_version)
        old = kept.get(bucket.key) or kept.pop(first[manager.api_version].key)
        del kept[manager.key]
        kept[bucket.key] = replace(bucket, time=manager.time, fields=union(manager.fields, old.fields))
        excess -= 1
    return tuple(kept.values())
