"""Duplicates in lists that are sets or maps."""

# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false, reportUnknownMemberType=false
# JSON data is told apart by isinstance, which says nothing about what is inside.

import json
from collections.abc import Iterator
from typing import Any

from api.fielderrors import FieldError, duplicate, invalid
from sim.apiserver.objects import Object  # noqa: TC001 - annotates a local
from sim.apiserver.schema.correlation import list_key
from sim.apiserver.schema.model import Schema

__all__ = ("check_lists",)


def check_lists(value: Any, schema: Schema, path: str = "") -> Iterator[FieldError]:
    """Items of lists of type set or map that are there more than once, in the value and below."""
    if isinstance(value, dict):
        fields: Object = value
        for key, field in fields.items():
            child = schema.field(key)
            if child is not None and child.has_unique and isinstance(field, (dict, list)):
                yield from check_lists(field, child, f"{path}.{key}" if path else key)
    elif isinstance(value, list) and schema.items is not None:
        items: list[Any] = value
        if schema.list_type != "atomic":
            yield from _duplicates(items, schema, path)
        for index, item in enumerate(items) if schema.items.has_unique else ():
            if isinstance(item, (dict, list)):
                yield from check_lists(item, schema.items, f"{path}[{index}]")


def _duplicates(items: list[Any], schema: Schema, path: str) -> Iterator[FieldError]:
    seen: set[str] = set()
    for index, item in enumerate(items):
        where = f"{path}[{index}]"
        if schema.list_type == "map" and not isinstance(item, dict):
            yield invalid(where, item, "must be an object for an array of list-type map")
            continue
        key = list_key(item, schema) if schema.list_type == "map" else json.dumps(item, sort_keys=True)
        if key in seen:
            shown = {k: item[k] for k in sorted(schema.list_keys) if k in item} if schema.list_type == "map" else item
            yield duplicate(where, shown)
        seen.add(key)
