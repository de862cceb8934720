"""Which fields two values have, and how they differ."""

from typing import Any, NamedTuple

from sim.apiserver.fields.fieldset import EMPTY, HERE, MEMBER, FieldSet
from sim.apiserver.fields.shapes import FREE, Kind, Shape, items_by_key, shape_of
from sim.apiserver.objects import Object, is_list, is_map
from sim.apiserver.schema.model import Schema

__all__ = ("Changes", "changes", "set_of")


class Changes(NamedTuple):
    """Fields that only the old value has, that both have with different values, and that only the new value has."""

    removed: FieldSet
    modified: FieldSet
    added: FieldSet


LEAF, FREE_KIND = Kind.LEAF, Kind.FREE
MAPS = (Kind.MAP, Kind.FREE)
LISTS = (Kind.SET, Kind.KEYED)
SAME = Changes(EMPTY, EMPTY, EMPTY)


def set_of(value: Object, schema: Schema) -> FieldSet:
    """All fields that a configuration states: leaves, items of lists, values of maps, empty maps, nulls."""
    return _stated(value, shape_of(schema)) or EMPTY


def _stated(value: Any, shape: Shape) -> FieldSet | None:
    """None: nothing at all."""
    kind = shape.kind
    if kind is LEAF:
        return MEMBER
    if is_map(value):
        if kind not in MAPS:
            return None
        return _stated_map(value, shape)
    if is_list(value) and kind in LISTS:
        return _stated_list(value, shape)
    return MEMBER if kind is FREE_KIND and value is not None else None


def _stated_map(value: Object, shape: Shape) -> FieldSet | None:
    out: FieldSet = {}
    named, values = shape.named, shape.values or FREE
    for key, item in value.items():
        hit = named.get(key)
        if hit is None:
            out["f:" + key] = _member(_stated(item, values))
        elif item is None or item == {}:
            out[hit[0]] = MEMBER
        elif (node := _stated(item, hit[1])) is not None:
            out[hit[0]] = node
    return out or None


def _stated_list(value: list[Any], shape: Shape) -> FieldSet | None:
    items = shape.items or FREE
    found = items_by_key(value, shape)
    return {k: MEMBER if len(same) > 1 else _member(_stated(same[0], items)) for k, same in found.items()} or None


def _member(node: FieldSet | None) -> FieldSet:
    if not node:
        return MEMBER
    return node if HERE in node else {HERE: MEMBER, **node}


def changes(old: Any, new: Any, schema: Schema) -> Changes:
    """How the new value differs from the old one. Values that are the same Python object are not looked into."""
    return SAME if old is new or old == new else _changes(old, new, shape_of(schema))


def _changes(old: Any, new: Any, shape: Shape) -> Changes:
    """Of values that differ."""
    kind = shape.kind
    if kind is LEAF:
        return Changes(EMPTY, MEMBER, EMPTY)
    if old or new:
        # Null is an empty container.
        if kind in LISTS:
            if (old is None or is_list(old)) and (new is None or is_list(new)):
                return _list_changes(old or [], new or [], shape)
        elif (old is None or is_map(old)) and (new is None or is_map(new)):
            return _map_changes(old or {}, new or {}, shape)
    # The type of the value has changed: the field itself is modified, and what was or is below goes or comes.
    removed, added = _present(old, shape), _present(new, shape)
    return Changes({k: v for k, v in removed.items() if k != HERE}, MEMBER, {k: v for k, v in added.items() if k != HERE})


def _map_changes(old: Object, new: Object, shape: Shape) -> Changes:
    removed: FieldSet = {}
    modified: FieldSet = {}
    added: FieldSet = {}
    named, values = shape.named, shape.values or FREE
    for key, value in new.items():
        hit = named.get(key)
        element, below = hit if hit else ("f:" + key, values)
        if key not in old:
            added[element] = MEMBER if below.kind is LEAF else _present(value, below)
            continue
        before = old[key]
        if before is value or before == value:
            continue
        if below.kind is LEAF:
            modified[element] = MEMBER
        else:
            _put(element, before, value, below, removed, modified, added)
    for key, value in old.items():
        if key not in new:
            hit = named.get(key)
            element, below = hit if hit else ("f:" + key, values)
            removed[element] = _present(value, below)
    return Changes(removed, modified, added)


def _put(element: str, before: Any, value: Any, shape: Shape, removed: FieldSet, modified: FieldSet, added: FieldSet) -> None:
    """Compares what is below an element and enters the differences."""
    gone, other, come = _changes(before, value, shape)
    if gone:
        removed[element] = gone
    if other or other is MEMBER:
        modified[element] = other
    if come:
        added[element] = come


def _list_changes(old: list[Any], new: list[Any], shape: Shape) -> Changes:
    removed: FieldSet = {}
    modified: FieldSet = {}
    added: FieldSet = {}
    items = shape.items or FREE
    before, after = items_by_key(old, shape), items_by_key(new, shape)
    for element in {**before, **after}:
        was, now = before.get(element, []), after.get(element, [])
        if was == now:
            continue
        if len(was) > 1 or len(now) > 1:
            # Duplicates are one field together.
            if len(was) > 1 and len(now) > 1:
                modified[element] = MEMBER
                continue
            if was:
                removed[element] = MEMBER if len(was) > 1 else _present(was[0], items)
            if now:
                added[element] = MEMBER if len(now) > 1 else _present(now[0], items)
        elif not was:
            added[element] = _present(now[0], items)
        elif not now:
            removed[element] = _present(was[0], items)
        else:
            _put(element, was[0], now[0], items, removed, modified, added)
    return Changes(removed, modified, added)


def _present(value: Any, shape: Shape) -> FieldSet:
    """The node of a value that the other side does not have at all: containers are fields too."""
    kind = shape.kind
    if kind is LEAF or not value:
        return MEMBER
    if is_map(value):
        if kind not in MAPS:
            return MEMBER
        return _present_map(value, shape)
    if is_list(value) and kind in LISTS:
        items = shape.items or FREE
        out: FieldSet = {HERE: MEMBER}
        for element, same in items_by_key(value, shape).items():
            out[element] = MEMBER if len(same) > 1 else _present(same[0], items)
        return out if len(out) > 1 else MEMBER
    return MEMBER


def _present_map(value: Object, shape: Shape) -> FieldSet:
    out: FieldSet = {HERE: MEMBER}
    named, values = shape.named, shape.values or FREE
    for key, item in value.items():
        hit = named.get(key)
        if hit is None:
            out["f:" + key] = MEMBER if values.kind is LEAF else _present(item, values)
        else:
            element, below = hit
            out[element] = MEMBER if below.kind is LEAF else _present(item, below)
    return out
