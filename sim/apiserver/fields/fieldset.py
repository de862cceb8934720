"""Sets of fields in the nested form of FieldsV1: path element -> node, for example {"f:spec": {"f:replicas": {}}}.

Elements: `f:` a field, `k:` an item of a list by its keys, `v:` an item of a set, `i:` an index. A node is a member of the set when it is
empty or has the key "."; other keys are its children. Nodes are shared between sets and never changed in place. The set {} is empty.
"""

import json
import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Any, Final, TypeAlias

from sim.apiserver.objects import Object, is_map

__all__ = (
    "EMPTY",
    "HERE",
    "MEMBER",
    "FieldSet",
    "contains",
    "difference",
    "element_text",
    "exclude",
    "from_v1",
    "intersection",
    "json_text",
    "path_text",
    "paths",
    "to_v1",
    "union",
)

FieldSet: TypeAlias = dict[str, Any]
EMPTY: Final[FieldSet] = {}
MEMBER: Final[FieldSet] = {}
"""The node of a field without children."""
HERE = "."
PLAIN = re.compile(r"[\w.:/ -]*", re.ASCII)
ESCAPES = {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\u2028": "\\u2028", "\u2029": "\\u2029"}


@lru_cache(maxsize=16384)
def _string_text(value: str) -> str:
    if PLAIN.fullmatch(value):
        return f'"{value}"'
    text = json.dumps(value, ensure_ascii=False)
    for char, escape in ESCAPES.items():
        text = text.replace(char, escape)
    return text


def json_text(value: Any) -> str:
    """JSON as the server writes it into path elements."""
    if isinstance(value, str):
        return _string_text(value)
    return str(value) if type(value) is int else json.dumps(value, separators=(",", ":"))


def union(a: FieldSet, b: FieldSet) -> FieldSet:
    """What is in either."""
    if not a or a is b:
        return b
    if not b:
        return a
    out = dict(a)
    for key, node in b.items():
        mine = out.get(key)
        out[key] = node if mine is None else _joined(mine, node)
    return out


def _joined(a: FieldSet, b: FieldSet) -> FieldSet:
    if a is b or (not a and HERE in b):
        return b
    if not a or not b:
        rest = a or b
        return rest if HERE in rest or not rest else {HERE: MEMBER, **rest}
    return union(a, b)


def difference(a: FieldSet, b: FieldSet) -> FieldSet:
    """What is in `a` and not in `b`; children of what `b` has are not in `b` for that."""
    if not b:
        return a
    out: FieldSet = {}
    for key, node in a.items():
        other = b.get(key)
        if other is None:
            out[key] = node
        elif key != HERE and (left := _without(node, other)) is not None:
            out[key] = left
    return out


def _without(node: FieldSet, other: FieldSet) -> FieldSet | None:
    is_gone = not other or HERE in other
    if not node:
        return None if is_gone else node
    if node == other:
        return None
    left = difference(node, other) if other else {k: v for k, v in node.items() if k != HERE}
    if len(left) == 1 and HERE in left:
        return MEMBER
    return left or None


def exclude(a: FieldSet, b: FieldSet) -> FieldSet:
    """What is in `a` and neither in `b` nor below anything in `b`."""
    if not b:
        return a
    out: FieldSet = {}
    for key, node in a.items():
        other = b.get(key)
        if other is None:
            out[key] = node
        elif other and HERE not in other:
            left = exclude(node, other)
            if left or not node:
                out[key] = MEMBER if len(left) == 1 and HERE in left else left
    return out


def intersection(a: FieldSet, b: FieldSet) -> FieldSet:
    """What is in both."""
    if not a or not b:
        return EMPTY
    if len(b) < len(a):
        a, b = b, a
    out: FieldSet = {}
    for key, node in a.items():
        other = b.get(key)
        if other is None or key == HERE:
            continue
        both = intersection(node, other)
        if (not node or HERE in node) and (not other or HERE in other):
            out[key] = {HERE: MEMBER, **both} if both else MEMBER
        elif both:
            out[key] = both
    return out


def contains(a: FieldSet, b: FieldSet) -> bool:
    """Whether all of `b` is in `a`."""
    return not difference(b, a)


def paths(fields: FieldSet) -> Iterator[tuple[str, ...]]:
    """Every member as its path elements: those of one level first, then what is below each, in the order of the server."""
    keys = _sorted(fields)
    for key in keys:
        if key != HERE and (not fields[key] or HERE in fields[key]):
            yield (key,)
    for key in keys:
        for rest in paths(fields[key]):
            yield (key, *rest)


def path_text(path: tuple[str, ...]) -> str:
    """A path as messages show it: .spec.containers[name="a"].image."""
    return "".join(map(element_text, path))


def element_text(element: str) -> str:
    """One element as messages show it."""
    kind, text = element[:2], element[2:]
    if kind == "f:":
        return "." + text
    if kind == "k:":
        return "[" + ",".join(f"{k}={_shown(v)}" for k, v in json.loads(text).items()) + "]"
    return f"[={_shown(json.loads(text))}]" if kind == "v:" else f"[{text}]"


def _shown(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False) if isinstance(value, str | bool) else str(value)


def to_v1(fields: FieldSet) -> Object:
    """The FieldsV1 object, its keys in the order of the server."""
    return {key: to_v1(node) if (node := fields[key]) else {} for key in _sorted(fields)}


def from_v1(fields: Object) -> FieldSet:
    """Reads a FieldsV1 object. Raises ValueError for anything that is none."""
    out: FieldSet = {}
    for key, value in fields.items():
        if not is_map(value):
            raise ValueError(f"the value of {key} must be an object")
        if key == HERE:
            out[HERE] = MEMBER
            continue
        node = from_v1(value)
        out[_canonical(key)] = MEMBER if len(node) == 1 and HERE in node else node
    return out


def _canonical(key: str) -> str:
    kind, text = key[:2], key[2:]
    match kind:
        case "f:":
            return key
        case "i:":
            return f"i:{int(text)}"
        case "v:":
            return "v:" + json_text(json.loads(text))
        case "k:":
            value = json.loads(text)
            if not is_map(value):
                raise ValueError(f"{key} must hold an object")
            fields: Object = value
            return "k:{" + ",".join(f"{json_text(k)}:{json_text(v)}" for k, v in sorted(fields.items())) + "}"
        case _:
            raise ValueError(f"unknown path element: {key}")


def _sorted(fields: FieldSet) -> list[str]:
    """Keys in the order of the server: fields by name, items by the values of their keys."""
    keys = sorted(fields)
    return keys if not keys or keys[-1][0] in ".f" else sorted(keys, key=_rank)


@lru_cache(maxsize=4096)
def _rank(key: str) -> tuple[Any, ...]:
    kind, text = key[:1], key[2:]
    match kind:
        case ".":
            return (0,)
        case "f":
            return (1, text)
        case "k":
            return (2, tuple((k, _value_rank(v)) for k, v in json.loads(text).items()))
        case "v":
            return (3, _value_rank(json.loads(text)))
        case _:
            return (4, int(text))


def _value_rank(value: Any) -> tuple[int, Any]:
    """Numbers, then strings, then booleans."""
    if isinstance(value, bool):
        return (2, value)
    return (1, value) if isinstance(value, str) else (0, value or 0)
