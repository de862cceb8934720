"""Which names of a definition are its own: the work of kube-apiserver's naming and establishing controllers."""

# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false, reportUnknownMemberType=false
# JSON data is told apart by isinstance, which says nothing about what is inside.

from collections.abc import Iterator, Sequence
from typing import Any, Final

from sim.apiserver.objects import Object, dig

__all__ = ("accepted", "emptied", "is_established", "terminating")

_ORDER: Final = (("plural", "PluralConflict"), ("singular", "SingularConflict"), ("shortNames", "ShortNamesConflict"),
                 ("kind", "KindConflict"), ("listKind", "ListKindConflict"))  # fmt: skip


def is_established(crd: Object) -> bool:
    """Whether the resource is served."""
    return _condition(crd, "Established") == "True"


def accepted(crd: Object, others: Sequence[Object], now: str) -> Object:
    """The definition with the status that the server gives it, knowing the others; the same object if settled. `now`: RFC 3339."""
    wanted: Object = crd["spec"]["names"]
    taken = [dig(o, "status", "acceptedNames") or {} for o in others if dig(o, "spec", "group") == crd["spec"]["group"]]
    before: Object = dig(crd, "status", "acceptedNames") or {}
    names = {k: v for k, v in wanted.items() if k == "categories" or not _conflicts(k, v, taken)}
    names |= {k: before[k] for k in ("plural", "kind") if k not in names and k in before}
    for key in ("plural", "kind"):
        names.setdefault(key, "")
    # The last complaint is the one that is told.
    complaints = [(reason, text) for key, reason in _ORDER for text in _conflicts(key, wanted.get(key), taken)]
    found = complaints[-1] if complaints else None
    conditions = _conditions(crd, found, now)
    status: Object = crd.get("status") or {}
    stored: list[str] = status.get("storedVersions") or [v["name"] for v in crd["spec"]["versions"] if v["storage"]]
    changed = {**status, "acceptedNames": names, "conditions": conditions, "storedVersions": stored}
    return crd if changed == status else {**crd, "status": changed}


def terminating(crd: Object, now: str) -> Object:
    """The definition saying that its objects are being deleted; the same object if it does already, or did."""
    if _condition(crd, "Terminating"):
        return crd
    return _with(crd, _new("Terminating", "True", "InstanceDeletionInProgress", "CustomResource deletion is in progress", now))


def emptied(crd: Object, now: str) -> Object:
    """The definition saying that its objects are gone."""
    return _with(crd, _new("Terminating", "False", "InstanceDeletionCompleted", "removed all instances", now))


def _with(crd: Object, condition: Object) -> Object:
    status: Object = crd.get("status") or {}
    current: list[Object] = status.get("conditions") or []
    out = {c["type"]: c for c in current}
    _put(out, condition)
    return {**crd, "status": {**status, "conditions": list(out.values())}}


def _conflicts(key: str, value: Any, taken: list[Object]) -> list[str]:
    """Complaints about a name, or each of several, that another definition of the group has."""
    if key in ("plural", "singular", "shortNames"):
        used = {name for names in taken for name in _resource_names(names)}
    elif key in ("kind", "listKind"):
        used = {names[k] for names in taken for k in ("kind", "listKind") if names.get(k)}
    else:
        return []
    wanted: list[str] = value if isinstance(value, list) else [value] if value else []
    return [f'"{name}" is already in use' for name in wanted if name in used]


def _resource_names(names: Object) -> Iterator[str]:
    for key in ("plural", "singular"):
        if names.get(key):
            yield names[key]
    yield from names.get("shortNames", ())


def _conditions(crd: Object, conflict: tuple[str, str] | None, now: str) -> list[Object]:
    was_established = is_established(crd)
    if conflict is None:
        names = _new("NamesAccepted", "True", "NoConflicts", "no conflicts found", now)
        established = _new("Established", "True", "InitialNamesAccepted", "the initial names have been accepted", now)
    else:
        names = _new("NamesAccepted", "False", *conflict, now)
        established = _new("Established", "False", "NotAccepted", "not all names are accepted", now)
    current: list[Object] = dig(crd, "status", "conditions") or []
    out = {c["type"]: c for c in current}
    _put(out, names)
    if conflict is None or not was_established:
        _put(out, established)
    return list(out.values())


def _new(kind: str, status: str, reason: str, message: str, now: str) -> Object:
    return {"type": kind, "status": status, "lastTransitionTime": now, "reason": reason, "message": message}


def _put(conditions: dict[str, Object], new: Object) -> None:
    old = conditions.get(new["type"])
    if old is not None and old["status"] == new["status"]:
        new = {**new, "lastTransitionTime": old["lastTransitionTime"]}
    conditions[new["type"]] = new


def _condition(crd: Object, kind: str) -> str:
    current: list[Object] = dig(crd, "status", "conditions") or []
    return next((c["status"] for c in current if c["type"] == kind), "")
