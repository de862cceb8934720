"""Which fields an object has against which it may have: unknown ones, nulls, defaults."""

# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false, reportUnknownMemberType=false
# JSON data is told apart by isinstance, which says nothing about what is inside.

from collections.abc import Sequence
from typing import Any

from sim.apiserver.objects import Object, copied
from sim.apiserver.schema.model import ABSENT, Schema

__all__ = ("drop_nulls", "fill_defaults", "prune", "strict_text", "unknown_fields")

_INT64 = 2**63
_MAX_STRICT = 100
_TWIN = 'duplicate field "'


def unknown_fields(obj: Object, schema: Schema, duplicates: Sequence[str] = ()) -> list[str]:
    """Complaints about fields that the schema does not know, `unknown field "spec.foo"`, together with those about duplicates.

    Of built-in kinds in the order of the object; of custom resources duplicates first, then metadata in its order, and the rest sorted.
    """
    found: list[str] = []
    _walk(obj, schema, "", found, _keep)
    if schema.name and not any(text.startswith(_TWIN) for text in duplicates):
        return [*duplicates, *(f'unknown field "{path}"' for path in found)]
    if schema.name:
        twins, out = dict.fromkeys(duplicates), list[str]()
        _in_order(obj, schema, "", twins, out)
        return [*twins, *out]
    typed = [path for path in found if path.startswith("metadata.")]
    rest = sorted(path for path in found if not path.startswith("metadata."))
    return [*duplicates, *(f'unknown field "{path}"' for path in (*typed, *rest))]


def _in_order(value: Any, schema: Schema, path: str, twins: dict[str, None], out: list[str]) -> None:
    """Puts complaints where the fields stand; of `twins`, those about duplicates, the ones that have no place are left."""
    if isinstance(value, dict):
        fields: Object = value
        for key, field in fields.items():
            where = f"{path}.{key}" if path else key
            child = schema.properties.get(key) or schema.values
            if child is None and not schema.is_open:
                out.append(f'unknown field "{where}"')
            elif child is not None:
                _in_order(field, child, where, twins, out)
            if (twin := f'{_TWIN}{where}"') in twins:
                del twins[twin]
                out.append(twin)
    elif isinstance(value, list) and schema.items is not None:
        for index, item in enumerate(value):
            _in_order(item, schema.items, f"{path}[{index}]", twins, out)


def prune(obj: Object, schema: Schema) -> list[str]:
    """Drops unknown fields in place and returns their paths (spec.foo), sorted. Also writes numbers as the real server does: 1.0 as 1."""
    found: list[str] = []
    _walk(obj, schema, "", found, _drop)
    return sorted(found)


def strict_text(complaints: list[str]) -> str:
    """The sentence in which strict decoding refuses an object; at most 100 complaints are named."""
    return f"strict decoding error: {', '.join(complaints[:_MAX_STRICT])}"


def _keep(fields: Object, key: str) -> None:
    del fields, key


def _drop(fields: Object, key: str) -> None:
    del fields[key]


def _walk(value: Any, schema: Schema, path: str, found: list[str], action: Any) -> None:
    if isinstance(value, dict):
        _walk_fields(value, schema, path, found, action)
    elif isinstance(value, list) and schema.items is not None:
        items: list[Any] = value
        for index, item in enumerate(items):
            if isinstance(item, (dict, list)):
                _walk(item, schema.items, f"{path}[{index}]", found, action)
            elif isinstance(item, float) and action is _drop:
                items[index] = _number(item)


def _walk_fields(fields: Object, schema: Schema, path: str, found: list[str], action: Any) -> None:
    properties, values = schema.properties, schema.values
    unknown: list[str] = []
    for key, value in fields.items():
        child = properties.get(key) or values
        if child is None:
            # Of a map without a type for its values nothing is known; of an object with other properties nothing more is allowed.
            if not schema.is_open:
                unknown.append(key)
                found.append(f"{path}.{key}" if path else key)
        elif isinstance(value, (dict, list)):
            _walk(value, child, f"{path}.{key}" if path else key, found, action)
        elif isinstance(value, float) and action is _drop:
            fields[key] = _number(value)
    for key in unknown:
        action(fields, key)


def _number(value: float) -> int | float:
    return int(value) if value.is_integer() and abs(value) < _INT64 else value


def drop_nulls(value: Any, schema: Schema) -> None:
    """Drops, in place, nulls of fields that are not nullable, as the real server does for all kinds; after `fill_defaults`."""
    if isinstance(value, dict):
        fields: Object = value
        nulls: list[str] = []
        for key, field in fields.items():
            child = schema.properties.get(key) or schema.values
            if child is None:
                continue
            if field is None:
                if not child.is_nullable:
                    nulls.append(key)
            elif isinstance(field, (dict, list)):
                drop_nulls(field, child)
        for key in nulls:
            del fields[key]
    elif isinstance(value, list) and schema.items is not None:
        items: list[Any] = value
        for item in items:
            if isinstance(item, (dict, list)):
                drop_nulls(item, schema.items)


def fill_defaults(value: Any, schema: Schema) -> None:
    """Fills in, in place, what the schema has defaults for where a field is missing, or null without being nullable.

    Of built-in kinds these are few real defaults; most are the zero values that the real server writes out ("", {}).
    """
    if isinstance(value, dict):
        fields: Object = value
        for key, default in schema.defaults.items():
            if key not in fields or (fields[key] is None and not schema.properties[key].is_nullable):
                fields[key] = copied(default)
        for key, field in fields.items():
            child = schema.properties.get(key) or schema.values
            if child is None:
                continue
            if field is None and child.default is not ABSENT and not child.is_nullable:
                field = fields[key] = copied(child.default)
            if isinstance(field, (dict, list)):
                fill_defaults(field, child)
    elif isinstance(value, list) and schema.items is not None:
        _fill_items(value, schema.items)


def _fill_items(items: list[Any], schema: Schema) -> None:
    for index, item in enumerate(items):
        if item is None and schema.default is not ABSENT and not schema.is_nullable:
            items[index] = copied(schema.default)
        if isinstance(items[index], (dict, list)):
            fill_defaults(items[index], schema)
