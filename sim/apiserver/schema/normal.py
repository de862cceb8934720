"""What decoding into Go types and encoding again does to built-in objects."""

from typing import Any, Final

from sim.apiserver.objects import Object, as_list, as_map
from sim.apiserver.schema.model import Schema

__all__ = ("normalize",)

MANAGED: Final = "managedFields"
"""Empty, they say something: that nobody is to own anything."""
_ZEROS: Final = {"string": "", "integer": 0, "number": 0, "boolean": False}
"""What Go makes of null as a value of a map."""


def normalize(obj: Object, schema: Schema) -> None:
    """Drops nulls, and optional lists and maps that are empty, in place: Go's omitempty. Structs stay, as they are pointers mostly."""
    if schema.is_open:
        return
    for key, value in list(obj.items()):
        child = schema.field(key)
        if value is None and key not in schema.properties and schema.values is not None:
            obj[key] = _ZEROS.get(schema.values.type)
        elif value is None or (not value and child is not None and _is_omitted(key, value, schema, child)):
            del obj[key]
        elif child is not None and isinstance(value, dict | list):
            _within(value, child)


def _within(value: Any, schema: Schema) -> None:
    if (fields := as_map(value)) is not None:
        normalize(fields, schema)
    elif schema.items is not None:
        for item in as_list(value) or ():
            if isinstance(item, dict | list):
                _within(item, schema.items)


def _is_omitted(key: str, value: Any, schema: Schema, child: Schema) -> bool:
    """Whether it is an optional empty list, or an optional empty map whose keys are free."""
    if key in schema.required or key == MANAGED:
        return False
    if isinstance(value, list):
        return True
    return isinstance(value, dict) and child.type == "object" and child.values is not None and not child.properties
