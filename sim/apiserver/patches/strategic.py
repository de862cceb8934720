"""Strategic merge patch: lists of maps merge by a key, lists of primitives as sets, and directives delete, replace and order."""

from typing import Any, cast

from sim.apiserver.objects import Json, Object, is_list, is_map
from sim.apiserver.patches.failures import broken, go_text, json_type, unprocessable
from sim.apiserver.patches.merging import without_nulls
from sim.apiserver.schema.model import ANY, Schema
from sim.apiserver.status import bad_request

__all__ = ("strategic_patch",)

PATCH = "$patch"
RETAIN = "$retainKeys"
ORDER = "$setElementOrder"
DELETE_FROM = "$deleteFromPrimitiveList"


def strategic_patch(obj: Object, patch: Json, schema: Schema) -> Object:
    """The object merged with the patch under the patch strategies of the schema; `obj` itself stays, what did not change is shared.

    Raises StatusError: 400 for malformed directives and a patch that is no map, 422 for lists of lists, 500 for everything else that
    the server cannot apply (missing merge keys, unknown directives).
    """
    if not is_map(patch):
        raise bad_request(f"json: cannot unmarshal {json_type(patch)} into Go value of type map[string]interface {{}}")
    return merged_map(obj, patch, schema)


def merged_map(original: Object, patch: Object, schema: Schema) -> Object:
    """One level of maps."""
    if PATCH in patch:
        if patch[PATCH] == "replace":
            return {k: v for k, v in patch.items() if k != PATCH}
        if patch[PATCH] == "delete":
            return {}
        raise unknown_directive(patch)
    out = dict(original)
    rest = patch
    if RETAIN in patch:
        rest = {k: v for k, v in patch.items() if k != RETAIN}
        out = retained(out, patch[RETAIN], rest)
    ordered: set[str] = set()
    for key in patch:
        if key.startswith(ORDER):
            ordered |= {key, order_list(out, rest, key, schema)}
    for key, value in rest.items():
        if key in ordered:
            continue
        if key.startswith(DELETE_FROM):
            delete_from(out, key, value)
        elif value is None:
            out.pop(key, None)
        else:
            merge_field(out, key, value, schema)
    return out


def merge_field(out: Object, key: str, value: Any, schema: Schema) -> None:
    """Merges one value into a map that is a copy already."""
    current = out.get(key)
    field = schema.field(key) or ANY
    if is_list(current) and is_list(value):
        out[key] = merged_list(current, value, field) if _strategy(field) == "merge" else value
    elif is_map(current) and is_map(value):
        out[key] = value if _strategy(field) == "replace" else merged_map(current, value, field)
    elif is_map(value) and PATCH in value:
        out.pop(key, None)
    else:
        out[key] = cleaned(value)


def merged_list(original: list[Any], patch: list[Any], field: Schema) -> list[Any]:
    """A list with strategy merge."""
    if not original and not patch:
        return original
    if element_type(original, patch) is not dict:
        both = list(dict.fromkeys([*original, *patch]))
        return in_order(both, patch, original, "")
    if not (key := field.patch_key):
        raise broken("cannot merge lists without merge key for struct")
    original, patch = directed(original, patch, key)
    items = field.items or ANY
    both = list(original)
    for item in patch:
        if key not in item:
            raise no_merge_key(item, key)
        at = find(both, key, item[key])
        if at is None:
            both.append(cleaned(item))
        else:
            both[at] = merged_map(both[at], item, items)
    return in_order(both, patch, original, key)


def directed(original: list[Any], patch: list[Any], key: str) -> tuple[list[Any], list[Any]]:
    """Obeys items with $patch: what is left of the original, and of the patch."""
    plain: list[Any] = []
    is_replaced = False
    for item in patch:
        match item.get(PATCH):
            case None if PATCH not in item:
                plain.append(item)
            case "delete":
                if key not in item:
                    raise no_merge_key(item, key)
                original = [o for o in original if key not in o or o[key] != item[key]]
            case "replace":
                is_replaced = True
            case "merge":
                raise broken("merging lists cannot yet be specified in the patch")
            case _:
                raise unknown_directive(item)
    return ([cleaned(item) for item in plain], []) if is_replaced else (original, plain)


def order_list(out: Object, patch: Object, key: str, schema: Schema) -> str:
    """Merges a list and brings it into the order that a directive wants; returns the name of the list, which is done with."""
    wanted, name = patch[key], key.partition("/")[2]
    if not is_list(wanted):
        raise wrong_type(wanted)
    if "/" not in key or not key.startswith(ORDER + "/"):
        raise bad_request("invalid patch format of setElementOrder list")
    original, changes = out.get(name), patch.get(name)
    for value in (original, changes):
        if not isinstance(value, list | None):
            raise wrong_type(value)
    field = schema.field(name)
    if field is None:
        raise broken(f'unable to find api field in struct {schema.source.get("title", "")} for the json field "{name}"')
    order: list[Any] = list(wanted)
    check_order(changes or [], order, field.patch_key)
    if name not in out and name not in patch:
        return name
    if changes is None:
        merged: list[Any] = original or []
    elif original is None:
        merged = [cleaned(item) for item in changes if not (is_map(item) and PATCH in item)]
    else:
        merged = merged_list(original, changes, field) if _strategy(field) == "merge" else changes
    element_type(original or [], changes or [])
    out[name] = in_order(merged, order, left_behind(original or [], changes or [], field.patch_key), field.patch_key)
    return name


def left_behind(original: list[Any], changes: list[Any], key: str) -> list[Any]:
    """The live list as the server compares places with it: items move up when others are deleted, and new ones take the room."""
    out, used = list(original), len(original)
    gone = [item[key] for item in changes if is_map(item) and item.get(PATCH) == "delete" and key in item]
    if not gone:
        return out
    for value in gone:
        while (at := find(out[:used], key, value)) is not None:
            out[at : used - 1] = out[at + 1 : used]
            used -= 1
    for item in changes:
        if PATCH not in item and find(out[:used], key, item.get(key)) is None:
            if used == len(out):
                break
            out[used] = item
            used += 1
    return out


def check_order(changes: list[Any], order: list[Any], key: str) -> None:
    """The items of a patch list have to stand in the directive, in the same order."""
    if not changes or not order:
        return
    wanted = iter(order)
    for item in changes:
        if is_map(item) and PATCH in item:
            continue
        if not any(_key_of(item, key) == _key_of(other, key) for other in wanted):
            raise broken(f"The order in patch list:\n{go_text(changes)}\n doesn't match {ORDER} list:\n{go_text(order)}\n")


def in_order(merged: list[Any], order: list[Any], server_order: list[Any], key: str) -> list[Any]:
    """Items that `order` names in that order; others before the first of those that stood behind them on the server."""
    ranks = _ranks(order, key, for_order=True)
    places = _ranks(server_order, key, for_order=False)
    named: list[tuple[int, Any]] = []
    others: list[tuple[int, Any]] = []
    for item in merged:
        value = _key_of(item, key)
        if value in ranks:
            named.append((ranks[value], item))
        else:
            others.append((places.get(value, -1), item))
    named.sort(key=_first)
    others.sort(key=_first)
    out: list[Any] = []
    at = 0
    for place, item in others:
        # Whoever has no place on the server yields to everybody.
        while at < len(named) and not 0 <= place < places.get(_key_of(named[at][1], key), -1):
            out.append(named[at][1])
            at += 1
        out.append(item)
    return out + [item for _, item in named[at:]]


def _ranks(items: list[Any], key: str, *, for_order: bool) -> dict[Any, int]:
    out: dict[Any, int] = {}
    for at, item in enumerate(items):
        if key and for_order and not is_map(item):
            raise broken(f"value for key {at} is not a map")
        out.setdefault(_key_of(item, key), at)
    return out


def retained(out: Object, keep: Any, patch: Object) -> Object:
    """Only the keys that $retainKeys lists; the patch may set no others."""
    if not is_list(keep):
        raise bad_request("invalid patch format of retainKeys")
    kept: list[Any] = keep
    for key, value in patch.items():
        if value is not None and not key.startswith((DELETE_FROM, ORDER)) and key not in kept:
            raise bad_request("invalid patch format of retainKeys")
    return {k: v for k, v in out.items() if k in kept}


def delete_from(out: Object, key: str, values: Any) -> None:
    """Takes values out of a list of primitives."""
    if not key.startswith(DELETE_FROM + "/"):
        raise bad_request("invalid patch format of primitive list")
    name = key.partition("/")[2]
    current = out.get(name)
    if values is None:
        out.pop(name, None)
    elif is_list(current) and is_list(values):
        items, gone = list(current), list(values)
        if element_type(items, gone) is dict:
            raise broken("cannot merge lists without merge key for struct")
        out[name] = [item for item in items if item not in gone]


def element_type(*lists: list[Any]) -> type:
    """The common type of all items."""
    kind: type[Any] | None = None
    for items in lists:
        for item in items:
            if kind is None:
                kind = cast("type[Any]", type(item))
                if is_list(item):
                    raise unprocessable()
            elif type(item) is not kind:
                raise broken(f"list element types are not identical: {go_text(list(lists))}")
    if kind is None:
        raise broken("no elements in any of the given slices")
    return kind


def cleaned(value: Any) -> Any:
    """A new value as it is stored: without nulls, directives and what directives delete."""
    return _without_directives(without_nulls(value))


def _without_directives(value: Any) -> Any:
    if is_map(value):
        fields: Object = value
        return {
            k: _without_directives(v)
            for k, v in fields.items()
            if not (k == RETAIN or k.startswith((ORDER, DELETE_FROM)) or (is_map(v) and PATCH in v))
        }
    if is_list(value):
        items: list[Any] = value
        return [_without_directives(item) for item in items if not (is_map(item) and PATCH in item)]
    return value


def find(items: list[Any], key: str, value: Any) -> int | None:
    """Index of the first item with a merge key of this value."""
    for at, item in enumerate(items):
        if key in item and item[key] == value:
            return at
    return None


def no_merge_key(item: Object, key: str) -> Exception:
    return broken(f"map: {go_text(item)} does not contain declared merge key: {key}")


def unknown_directive(item: Object) -> Exception:
    return broken(f"unknown patch type: {go_text(item[PATCH])} in map: {go_text(item)}")


def wrong_type(value: Any) -> Exception:
    names = {"object": "map[string]interface {}", "array": "[]interface {}", "number": "int64"}
    return broken(f"expected a []interface {{}}, but received a {names.get(json_type(value), json_type(value))}")


def _key_of(item: Any, key: str) -> Any:
    """What tells an item apart: a primitive itself, a map by its merge key. Refuses what cannot be compared."""
    value = item
    if key:
        if not is_map(item):
            return None
        fields: Object = item
        if key not in fields:
            raise no_merge_key(fields, key)
        value = fields[key]
    if is_map(value) or is_list(value):
        raise unprocessable()
    return value


def _strategy(field: Schema) -> str:
    """The strategy without retainKeys, which matters only to who makes patches."""
    return next((s for s in field.patch_strategy.split(",") if s != "retainKeys"), "")


def _first(pair: tuple[int, Any]) -> int:
    return pair[0]
