"""What field ownership has to know of a schema, made once per schema: which values are leaves and how items of lists are told apart."""

from dataclasses import dataclass, field
from enum import IntEnum
from functools import lru_cache
from typing import Any

from sim.apiserver.fields.fieldset import json_text
from sim.apiserver.objects import Object, is_map
from sim.apiserver.schema.model import ABSENT, ANY, Schema

__all__ = ("FREE", "Kind", "Shape", "item_key", "items_by_key", "keys_and_items", "shape_of", "zero_of")


class Kind(IntEnum):
    """LEAF: scalars, atomic lists and maps. FREE: whatever the value is: maps are granular, all else is a leaf."""

    LEAF = 0
    MAP = 1
    SET = 2
    KEYED = 3
    FREE = 4


@dataclass(slots=True, eq=False)
class Shape:
    """One node. `named`: of the fields that the schema names, path element and shape; `values`: of all others; `items`: of a list.

    `keys`: the keys of items, sorted: name, its JSON text with a colon, and the default or None. `key_names`: as the
    schema orders them. `only_key`: the name where there is one. `scalar`: string, numeric, boolean,
    untyped (any scalar), or "" for no scalar. `is_closed`: fields without a name in the schema are errors.
    """

    kind: Kind
    named: dict[str, tuple[str, "Shape"]] = field(default_factory=dict[str, tuple[str, "Shape"]])
    by_element: dict[str, "Shape"] = field(default_factory=dict[str, "Shape"])
    values: "Shape | None" = None
    items: "Shape | None" = None
    keys: tuple[tuple[str, str, Any], ...] = ()
    key_names: tuple[str, ...] = ()
    only_key: str = ""
    scalar: str = ""
    is_map: bool = False
    is_list: bool = False
    is_closed: bool = False

    def below(self, key: str) -> "Shape":
        """Shape of a field."""
        hit = self.named.get(key)
        return hit[1] if hit else self.values or FREE

    def at(self, element: str) -> "Shape":
        """Shape of what a path element leads to."""
        return self.by_element.get(element) or (self.values if element[0] == "f" else self.items) or FREE


FREE = Shape(Kind.FREE, scalar="untyped", is_map=True, is_list=True)


@lru_cache(maxsize=1024)
def shape_of(schema: Schema) -> Shape:
    """The shape of the root of a schema."""
    return _shape(schema, {}, is_open=False)


def _shape(schema: Schema, made: dict[tuple[int, bool], Shape], *, is_open: bool) -> Shape:
    """`is_open`: something above preserves unknown fields, which holds for all below."""
    if schema is ANY or (not schema.type and not schema.properties and not schema.is_int_or_string):
        return FREE
    is_open = is_open or schema.is_open
    if (mark := (id(schema), is_open)) in made:
        return made[mark]
    made[mark] = out = Shape(Kind.LEAF)
    if schema.type == "array":
        out.is_list = True
        out.items = _shape(schema.items or ANY, made, is_open=is_open)
        if schema.list_type == "set":
            out.kind = Kind.SET
        elif schema.list_type == "map":
            out.kind = Kind.KEYED
            out.keys = tuple((k, json_text(k) + ":", _default(schema, k)) for k in sorted(schema.list_keys))
            out.key_names = schema.list_keys
            out.only_key = schema.list_keys[0] if len(schema.list_keys) == 1 else ""
    elif schema.type == "object" or schema.properties:
        out.is_map = True
        if not schema.is_atomic_map:
            out.kind = Kind.MAP
        out.named = {k: ("f:" + k, _shape(s, made, is_open=is_open)) for k, s in schema.properties.items()}
        out.by_element = dict(out.named.values())
        out.values = _shape(schema.values, made, is_open=is_open) if schema.values else FREE
        out.is_closed = bool(schema.properties) and not is_open and schema.values is None
    else:
        out.scalar = _scalar(schema)
    return out


def _scalar(schema: Schema) -> str:
    if schema.is_int_or_string or (schema.type == "string" and schema.format):
        return "untyped"
    return {"integer": "numeric", "number": "numeric"}.get(schema.type, schema.type)


def _default(schema: Schema, key: str) -> Any:
    """Default of a key of items, or None."""
    found = schema.items.field(key) if schema.items else None
    return None if found is None or found.default is ABSENT else found.default


def item_key(item: Any, shape: Shape) -> str | None:
    """Path element of an item of a granular list; None for an item that cannot be told apart."""
    if shape.kind is Kind.SET:
        return None if item is None or isinstance(item, dict | list) else "v:" + json_text(item)
    if not is_map(item):
        return None
    if shape.only_key and type(value := item.get(shape.only_key)) is str:
        return _element(shape.keys[0][1], value)
    text = ""
    for name, start, default in shape.keys:
        value = item.get(name, default)
        if value is not None or name in item:
            text = f"{text},{start}{json_text(value)}" if text else start + json_text(value)
    return f"k:{{{text}}}" if text else None


@lru_cache(maxsize=16384)
def _element(start: str, value: str) -> str:
    return f"k:{{{start}{json_text(value)}}}"


def keys_and_items(items: list[Any], shape: Shape) -> list[tuple[str, Any]]:
    """Path elements and items, in order, without items that cannot be told apart."""
    return [(key, item) for item in items if (key := item_key(item, shape)) is not None]


def items_by_key(items: list[Any], shape: Shape) -> dict[str, list[Any]]:
    """Items by path element: usually one, several where the list has duplicates."""
    out: dict[str, list[Any]] = {}
    for key, item in keys_and_items(items, shape):
        if key in out:
            out[key].append(item)
        else:
            out[key] = [item]
    return out


@lru_cache(maxsize=1024)
def zero_of(schema: Schema) -> Object:
    """An object before anything is set: of built-in kinds the parts that are there always, such as metadata, spec and status.

    What they hold from the start is not anybody's: who creates a pod does not own spec, and not spec.containers, only their content.
    Custom resources start with nothing; their schemas have no default for metadata.
    """
    metadata = schema.properties.get("metadata")
    return _zero(schema) if metadata is not None and _is_always_there(metadata) else {}


def _zero(schema: Schema) -> Object:
    out: Object = {}
    for name, part in schema.properties.items():
        if _is_always_there(part):
            out[name] = _zero(part)
        elif part.format == "date-time" or (part.default in ("", 0) and part.default is not ABSENT):
            out[name] = None if part.format == "date-time" else part.default
        elif name in schema.required and part.type == "array":
            out[name] = None
    return out


def _is_always_there(part: Schema) -> bool:
    return part.type == "object" and part.default == {}
