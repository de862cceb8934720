"""Merging a configuration into an object, and taking fields out of it."""

from typing import Any

from sim.apiserver.fields.comparing import set_of
from sim.apiserver.fields.fieldset import HERE, MEMBER, FieldSet, contains, difference, intersection, union
from sim.apiserver.fields.shapes import FREE, Kind, Shape, item_key, shape_of
from sim.apiserver.objects import Object, is_list, is_map
from sim.apiserver.schema.model import Schema

__all__ = ("merged", "pruned")


def merged(live: Object, config: Object, schema: Schema) -> Object:
    """The object with everything that the configuration states. `live` itself when that changes nothing."""
    return _merged(live, config, shape_of(schema))


def _merged(live: Any, config: Any, shape: Shape) -> Any:
    kind = shape.kind
    if kind == Kind.LEAF:
        return live if live == config else config
    if kind in (Kind.MAP, Kind.FREE):
        if is_map(live) and live and (config is None or is_map(config)):
            # Null does not empty a map that has something in it.
            return _merged_map(live, config or {}, shape)
    elif is_list(live) and live and (config is None or is_list(config)):
        return _merged_list(live, config or [], shape)
    return live if live == config else config


def _merged_map(live: Object, config: Object, shape: Shape) -> Object:
    out: Object | None = None
    for key, value in config.items():
        if key in live:
            before = live[key]
            if before == value:
                continue
            value = _merged(before, value, shape.below(key))
            if value is before:
                continue
        if out is None:
            out = dict(live)
        out[key] = value
    return live if out is None else out


def _merged_list(live: list[Any], config: list[Any], shape: Shape) -> list[Any]:
    """Items in the order of the configuration, with those that it lacks where they stood relative to the shared ones."""
    if live == config:
        return live
    left = [item_key(item, shape) or f"i:{at}" for at, item in enumerate(live)]
    right = [item_key(item, shape) or f"i:{at}" for at, item in enumerate(config)]
    mine, theirs = dict(zip(left, live, strict=True)), dict(zip(right, config, strict=True))
    if len(mine) < len(left):
        # The server does not merge with items of the same key, it replaces them.
        mine = {key: item if left.count(key) == 1 else None for key, item in mine.items()}
    shared = [key for key in right if key in mine]
    upcoming = iter(shared)
    awaited = next(upcoming, None)
    items = shape.items or FREE

    def joined(key: str) -> Any:
        return _merged(mine[key], theirs[key], items) if mine.get(key) is not None else theirs[key]

    out: list[Any] = []
    done: set[str] = set()
    at = to = 0
    while at < len(left) or to < len(right):
        if at < len(left):
            key = left[at]
            if to < len(right):
                if key == right[to]:
                    out.append(joined(key))
                    done.add(key)
                    at, to = at + 1, to + 1
                    awaited = next(upcoming, None)
                    continue
                if key in theirs and awaited is not None and awaited != key:
                    at += 1
                    continue
            if key not in theirs:
                out.append(live[at])
                at += 1
                continue
            if key in done:
                at += 1
        if to < len(right):
            key = right[to]
            out.append(joined(key))
            done.add(key)
            to += 1
            if key == awaited:
                awaited = next(upcoming, None)
    return live if len(out) == len(live) and all(a is b for a, b in zip(out, live, strict=True)) else out


def pruned(obj: Object, schema: Schema, *, last: FieldSet, claims: FieldSet) -> Object:
    """The object without what the applier stated last time and nobody claims any more. `claims`: the fields of all managers now."""
    if not last or contains(claims, last):
        return obj
    shape = shape_of(schema)
    before = set_of(obj, schema)
    last = _with_named(last, shape)
    whole = _with_named(before, shape)
    # What is below a removed field stays when somebody claims it, and then so does all above it.
    kept = _with_named(set_of(_removed(obj, last, shape), schema), shape)
    rest = _removed(obj, difference(whole, union(kept, _with_named(claims, shape))), shape)
    left = _with_named(set_of(rest, schema), shape)
    return _removed(obj, intersection(difference(whole, left), last), shape)


def _with_named(fields: FieldSet, shape: Shape) -> FieldSet:
    """The set with every field that the schema names and that has something below it: normally, containers are nobody's."""
    out: FieldSet = {}
    for element, node in fields.items():
        if not node or element == HERE:
            out[element] = node
            continue
        below = _with_named(node, shape.at(element))
        out[element] = {HERE: MEMBER, **below} if element in shape.by_element else below
    return out


def _removed(value: Any, fields: FieldSet, shape: Shape) -> Any:
    """The value without the members of a set; containers in which nothing is left become null."""
    if not fields or shape.kind == Kind.LEAF:
        return value
    if is_map(value):
        out: Object = {}
        for key, item in value.items():
            node = fields.get("f:" + key)
            if node is None:
                out[key] = item
            elif node and HERE not in node:
                out[key] = _removed(item, node, shape.below(key))
        return out or None
    if is_list(value) and shape.kind in (Kind.SET, Kind.KEYED):
        items: list[Any] = []
        for item in value:
            node = fields.get(item_key(item, shape) or "")
            if node is None:
                items.append(item)
            elif node and HERE not in node:
                items.append(_removed(item, node, shape.items or FREE))
        return items or None
    return value
