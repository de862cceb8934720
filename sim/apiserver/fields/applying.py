"""Server-side apply."""

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from sim.apiserver.fields.checking import mistakes
from sim.apiserver.fields.comparing import changes, set_of
from sim.apiserver.fields.fieldset import EMPTY, FieldSet, difference, exclude, intersection, path_text, paths, union
from sim.apiserver.fields.managed import STRIPPED, Manager, Managers, same, updated, without
from sim.apiserver.fields.merging import merged, pruned
from sim.apiserver.objects import Object, dig, is_list, is_map
from sim.apiserver.schema.model import Schema
from sim.apiserver.status import StatusError, bad_request

__all__ = ("BEFORE_FIRST_APPLY", "LAST_APPLIED", "applied")

BEFORE_FIRST_APPLY = "before-first-apply"
LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
KUBECTL = "kubectl"
"""The manager of kubectl apply --server-side: only it takes over what kubectl apply on the client's side has set before."""


class Conflict(NamedTuple):
    """Fields of another manager that an apply would change."""

    manager: Manager
    fields: FieldSet


def applied(
    managers: Managers,
    live: Object | None,
    config: Object,
    schema: Schema,
    *,
    manager: str,
    force: bool,
    subresource: str = "",
    api_version: str,
    now: str,
    reset: FieldSet = EMPTY,
) -> tuple[Object, Managers]:
    """Merges a configuration into an object and deletes what this manager applied before, applies no more and nobody else owns.

    `live`: the stored object; None where there is none. `now`: RFC3339 seconds with Z. `reset`: as in `updated`. Returns the object,
    which is `live` itself when it does not change, and the managers, which are `managers` itself when they do not: an apply may take a
    share in fields without changing the object. Containers that lose their last field become null.
    Raises StatusError: 400 for a configuration with managedFields, 409 for conflicts (never with force), 500 for one that the schema
    does not allow.
    """
    config = without_managers(config)
    if problem := mistakes(config, schema):
        raise StatusError(500, "", f"failed to create typed patch object ({_named(config)}): {problem}")
    before = live or {}
    known = managers
    if not managers and live:
        known = updated(
            (), None, live, schema, manager=BEFORE_FIRST_APPLY, subresource=subresource, api_version=api_version, now=now, reset=reset
        )
    mine = Manager(manager, "Apply", subresource, api_version, fields=exclude(set_of(config, schema), reset))
    previous = next((m for m in known if m.key == mine.key), None)
    others = tuple(m for m in known if m is not previous)
    claims = mine.fields
    for other in others:
        claims = union(claims, other.fields)
    new = merged(before, config, schema)
    new = pruned(new, schema, last=previous.fields if previous else EMPTY, claims=claims)
    removed, modified, added = changes(before, new, schema)
    touched = exclude(union(modified, added), reset)
    conflicts = [Conflict(m, both) for m in others if (both := intersection(m.fields, touched))]
    if conflicts and not force:
        conflicts = disallowed(conflicts, manager, before, schema, api_version)
        if conflicts:
            raise conflict_error(conflicts)
    others = without(others, union(touched, exclude(removed, reset)))
    is_changed = live is None or new != live
    time = now if is_changed else previous.time if previous else ""
    own = difference(mine.fields, STRIPPED)
    after = (*others, replace(mine, fields=own, time=time)) if own else others
    result = new if live is None or is_changed else live
    return _with_last_applied(result, config, manager), managers if same(managers, after) else after


def without_managers(config: Object) -> Object:
    """The configuration without a null for managedFields, the only value that it may have there."""
    metadata = config.get("metadata")
    if not is_map(metadata) or "managedFields" not in metadata:
        return config
    if metadata["managedFields"] is not None:
        raise bad_request("metadata.managedFields must be nil")
    return {**config, "metadata": {k: v for k, v in metadata.items() if k != "managedFields"}}


def disallowed(conflicts: list[Conflict], manager: str, live: Object, schema: Schema, api_version: str) -> list[Conflict]:
    """Conflicts that count. kubectl may take fields that still are as kubectl apply on the client's side has set them."""
    text = dig(live, "metadata", "annotations", LAST_APPLIED)
    if manager != KUBECTL or not text:
        return conflicts
    try:
        last = json.loads(text)
    except ValueError:
        return conflicts
    if not is_map(last) or last.get("apiVersion") != api_version or mistakes(last, schema):
        return conflicts
    allowed = set_of(last, schema)
    for changed in changes(last, live, schema):
        allowed = difference(allowed, changed)
    return [Conflict(m, left) for m, fields in conflicts if (left := difference(fields, allowed))]


def _with_last_applied(obj: Object, config: Object, manager: str) -> Object:
    """kubectl on the client's side goes on from where kubectl on the server's side was."""
    annotations = dig(obj, "metadata", "annotations")
    if manager != KUBECTL or not annotations or not annotations.get(LAST_APPLIED):
        return obj
    stated: Object = config
    if is_map(own := dig(config, "metadata", "annotations")) and LAST_APPLIED in own:
        rest = {k: v for k, v in own.items() if k != LAST_APPLIED}
        stated = {**config, "metadata": {**config["metadata"], "annotations": rest}}
    text = json.dumps(_by_key(stated), separators=(",", ":"), ensure_ascii=False) + "\n"
    if annotations[LAST_APPLIED] == text:
        return obj
    return {**obj, "metadata": {**obj["metadata"], "annotations": {**annotations, LAST_APPLIED: text}}}


def _by_key(value: Any) -> Any:
    if is_map(value):
        return {k: _by_key(v) for k, v in sorted(value.items())}
    return [_by_key(v) for v in value] if is_list(value) else value


def _named(config: Object) -> str:
    """How the server names an object in this message: namespace/name; group/version, Kind=kind."""
    namespace, name = (dig(config, "metadata", field) or "" for field in ("namespace", "name"))
    group, _, version = str(config.get("apiVersion", "")).rpartition("/")
    return f"{namespace}/{name}; {group}/{version}, Kind={config.get('kind', '')}"


def conflict_error(conflicts: Sequence[Conflict]) -> StatusError:
    """409 with a cause for each field."""
    found = [(_described(m), path_text(path)) for m, fields in sorted(conflicts, key=_rank) for path in paths(fields)]
    causes = [{"reason": "FieldManagerConflict", "message": f"conflict with {who}", "field": where} for who, where in found]
    if len(found) == 1:
        who, where = found[0]
        text = f"1 conflict: conflict with {who}: {where}"
    else:
        lines: list[str] = []
        by_manager: dict[str, list[str]] = {}
        for who, where in found:
            by_manager.setdefault(who, []).append(where)
        for who, fields in by_manager.items():
            lines += [f"conflicts with {who}:", *(f"- {where}" for where in fields)]
        text = f"{len(found)} conflicts: " + "\n".join(lines)
    return StatusError(409, "Conflict", f"Apply failed with {text}", {"causes": causes})


def _rank(conflict: Conflict) -> str:
    """The server sorts by the JSON text of a manager's identity."""
    manager = conflict.manager
    identity = {"manager": manager.name, "operation": manager.operation}
    if manager.operation == "Update":
        identity["apiVersion"] = manager.api_version
    if manager.subresource:
        identity["subresource"] = manager.subresource
    return json.dumps(identity, separators=(",", ":"))


def _described(manager: Manager) -> str:
    text = json.dumps(manager.name, ensure_ascii=False)
    if manager.subresource:
        text += f' with subresource "{manager.subresource}"'
    return f"{text} using {manager.api_version}" if manager.operation == "Update" else text
