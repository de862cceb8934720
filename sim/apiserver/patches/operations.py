"""JSON Patch (RFC 6902) with the leniences of kube-apiserver: negative indices, `replace` of a key that is missing."""

import re
from collections.abc import Callable
from typing import Any

import msgspec

from sim.apiserver.objects import Json, Object, is_list, is_map
from sim.apiserver.patches.failures import json_type, unprocessable
from sim.apiserver.requests import MAX_BODY
from sim.apiserver.status import bad_request, too_large

__all__ = ("MAX_OPERATIONS", "json_patch")

MAX_OPERATIONS = 10_000
INDEX = re.compile(r"[+-]?\d+")


def json_patch(obj: Json, operations: Json) -> Json:
    """The object after all operations; `obj` itself stays, and what did not change is shared.

    Raises StatusError: 400 for operations of a wrong type, 413 for more than MAX_OPERATIONS, 422 for one that fails, and when all that is
    copied is larger than a body may be.
    """
    copied = 0
    for operation in checked(operations):
        if operation.get("op") == "copy":
            # Copies of copies double with each operation.
            copied += len(msgspec.json.encode(found(obj, _path(operation, "from"))))
            if copied > MAX_BODY:
                raise unprocessable()
        obj = applied(obj, operation)
    return obj


def checked(operations: Json) -> list[Object]:
    """Operations of the right types."""
    if operations is None:
        return []
    if not is_list(operations):
        raise bad_request(
            f"error decoding patch: json: cannot unmarshal {json_type(operations)} into Go value of type []handlers.jsonPatchOp"
        )
    items: list[Any] = operations
    for item in items:
        if item is None:
            continue
        if not is_map(item):
            raise bad_request(f"error decoding patch: json: cannot unmarshal {json_type(item)} into Go value of type handlers.jsonPatchOp")
        fields: Object = item
        for name in ("op", "path", "from"):
            if (value := fields.get(name)) is not None and not isinstance(value, str):
                where = f"Go struct field jsonPatchOp.{name} of type string"
                raise bad_request(f"error decoding patch: json: cannot unmarshal {json_type(value)} into {where}")
    if len(items) > MAX_OPERATIONS:
        text = f"The allowed maximum operations in a JSON patch is {MAX_OPERATIONS}, got {len(items)}"
        raise too_large(text)
    return [item or {} for item in items]


def applied(doc: Json, operation: Object) -> Json:
    """The document after one operation."""
    value = operation.get("value")
    match operation.get("op"):
        case "add":
            return edited(doc, _path(operation, "path"), lambda container, key: added(container, key, value))
        case "remove":
            return edited(doc, _path(operation, "path"), removed)
        case "replace":
            return replaced(doc, _path(operation, "path"), value)
        case "test":
            return tested(doc, _path(operation, "path"), value)
        case "move":
            source = _path(operation, "from")
            moved = found(doc, source)
            doc = edited(doc, source, removed)
            return edited(doc, _path(operation, "path"), lambda container, key: added(container, key, moved))
        case "copy":
            twin = found(doc, _path(operation, "from"))
            return edited(doc, _path(operation, "path"), lambda container, key: added(container, key, twin))
        case _:
            raise unprocessable()


def replaced(doc: Json, path: str, value: Json) -> Json:
    """`replace`: also of the whole document, and of keys that are not there."""
    if path == "":
        if is_map(value) or is_list(value):
            return value
        raise unprocessable()

    def put(container: Json, key: str) -> Json:
        if is_map(container):
            return {**container, key: value}
        items = _items(container)
        items[_index(key, len(items))] = value
        return items

    return edited(doc, path, put)


def tested(doc: Json, path: str, value: Json) -> Json:
    """`test`: a key that is missing equals null."""
    actual = doc if path == "" else found(doc, path)
    if not same(actual, value):
        raise unprocessable()
    return doc


def found(doc: Json, path: str) -> Json:
    """The value at a path; None for a missing key of a map."""
    here = doc
    *parents, key = _parts(path)
    for part in parents:
        here = _child(here, part)
        if here is None:
            raise unprocessable()
    return _child(here, key)


def edited(doc: Json, path: str, edit: Callable[[Json, str], Json]) -> Json:
    """The document with the container of a path replaced by what `edit` makes of it and the last key."""
    return _edited(doc, _parts(path), 0, edit)


def _edited(here: Json, parts: list[str], at: int, edit: Callable[[Json, str], Json]) -> Json:
    key = parts[at]
    if at == len(parts) - 1:
        return edit(here, key)
    child = _child(here, key)
    if child is None:
        raise unprocessable()
    changed = _edited(child, parts, at + 1, edit)
    if is_list(here):
        items: list[Any] = list(here)
        items[int(key)] = changed
        return items
    return {**here, key: changed}


def added(container: Json, key: str, value: Json) -> Json:
    """A map with a key set, or a list with an item inserted: `-` appends, -1 does too."""
    if is_map(container):
        return {**container, key: value}
    items = _items(container)
    if key == "-":
        return [*items, value]
    index = _index(key, len(items) + 1)
    return [*items[:index], value, *items[index:]]


def removed(container: Json, key: str) -> Json:
    """A container without a key or item, which has to be there."""
    if is_map(container):
        fields: Object = container
        if key not in fields:
            raise unprocessable()
        return {k: v for k, v in fields.items() if k != key}
    items = _items(container)
    index = _index(key, len(items))
    return [*items[:index], *items[index + 1 :]]


def same(a: Json, b: Json) -> bool:
    """Equality of JSON: unlike Python's, true is not 1 and 1 is not 1.0."""
    if type(a) is not type(b):
        return False
    if is_map(a):
        left, right = _fields(a), _fields(b)
        return left.keys() == right.keys() and all(same(v, right[k]) for k, v in left.items())
    if is_list(a):
        return len(_items(a)) == len(_items(b)) and all(map(same, _items(a), _items(b)))
    return a == b


def _path(operation: Object, name: str) -> str:
    path = operation.get(name)
    if path is None:
        raise unprocessable()
    return path


def _parts(path: str) -> list[str]:
    """Keys of a pointer. Whatever stands before the first slash is ignored, as the server does."""
    parts = path.split("/")[1:]
    if not parts:
        raise unprocessable()
    return [part.replace("~1", "/").replace("~0", "~") for part in parts]


def _child(container: Json, key: str) -> Json:
    if is_map(container):
        return _fields(container).get(key)
    items = _items(container)
    return items[_index(key, len(items))]


def _index(key: str, size: int) -> int:
    """A list index below `size`; negative ones count from the end."""
    if not INDEX.fullmatch(key):
        raise unprocessable()
    index = int(key)
    if not -size <= index < size:
        raise unprocessable()
    return index + size if index < 0 else index


def _items(value: Json) -> list[Any]:
    if not is_list(value):
        raise unprocessable()
    return list(value)


def _fields(value: Any) -> Object:
    return value
