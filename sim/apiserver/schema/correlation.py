"""Which part of the old object a part of the new one comes from."""

# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false, reportUnknownMemberType=false
# JSON data is told apart by isinstance, which says nothing about what is inside.

from typing import Any

from sim.apiserver.objects import Object
from sim.apiserver.schema.model import ABSENT, Schema

__all__ = ("list_key", "old_field", "old_items")


def old_field(old: Any, key: str) -> Any:
    """The old value of a field; ABSENT if there is none."""
    if isinstance(old, dict):
        fields: Object = old
        return fields.get(key, ABSENT)
    return ABSENT


def old_items(items: list[Any], old: Any, schema: Schema) -> list[Any]:
    """For every item the old one with the same keys, where the list is a map; ABSENT elsewhere."""
    if schema.list_type != "map" or not isinstance(old, list):
        return [ABSENT] * len(items)
    before: list[Any] = old
    known = {list_key(item, schema): item for item in reversed(before)}
    return [known.get(list_key(item, schema), ABSENT) for item in items]


def list_key(item: Any, schema: Schema) -> str:
    """What identifies an item of a list that is a map."""
    if not isinstance(item, dict):
        return repr(item)
    fields: Object = item
    return repr([_key(fields, key, schema) for key in schema.list_keys])


def _key(fields: Object, key: str, schema: Schema) -> Any:
    value = fields.get(key)
    child = schema.items.properties.get(key) if schema.items is not None else None
    if value is None and child is not None and child.default is not ABSENT:
        return child.default
    return value
