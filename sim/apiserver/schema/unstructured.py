"""What the server refuses when it makes a typed object of maps, as it does after strategic merge patches."""

from typing import Any, Final

from sim.apiserver.objects import Object, as_list, as_map
from sim.apiserver.schema.gotypes import text_problem
from sim.apiserver.schema.model import Schema
from sim.apiserver.schema.openapi import QUANTITY

__all__ = ("unstructured_problem",)

_GO: Final = {"string": "string", "boolean": "bool", "number": "float64"}


def unstructured_problem(obj: Object, schema: Schema) -> str:
    """The first thing in a built-in object that its Go type cannot hold, in the words of the converter; "" if all fits."""
    for key, value in obj.items():
        child = schema.properties.get(key) or schema.values
        if child is not None and value is not None and (problem := _value(value, child)):
            return problem
    return ""


def _value(value: Any, schema: Schema) -> str:
    if schema.is_int_or_string or schema.format == QUANTITY or (schema.is_open and not schema.properties):
        return text_problem(value, schema)
    if schema.type == "array":
        items = as_list(value)
        if items is None:
            return f"cannot restore slice from {_kind(value)}"
        found = (_value(item, schema.items) for item in items if schema.items is not None and item is not None)
        return next((problem for problem in found if problem), "")
    if schema.type == "object":
        fields = as_map(value)
        if fields is None:
            return f"cannot restore map from {_kind(value)}" if schema.values else f"cannot restore struct from: {_kind(value)}"
        return unstructured_problem(fields, schema)
    return _scalar(value, schema)


def _scalar(value: Any, schema: Schema) -> str:
    """Go converts numbers into each other where nothing is lost."""
    kind, wanted = _kind(value), schema.format or "int64" if schema.type == "integer" else _GO.get(schema.type, "string")
    if schema.type == "string" and kind == "string":
        return text_problem(value, schema)
    if schema.type == "boolean" and kind == "bool":
        return ""
    if schema.type in ("integer", "number") and kind in ("int64", "float64"):
        return "" if schema.type == "number" or value == int(value) else f"cannot convert {kind} to {wanted}"
    if schema.type == "string" and kind == "int64":
        return f"cannot convert int64 to {wanted}"
    return f"unrecognized type: {wanted}"


def _kind(value: Any) -> str:
    """Go's kind of a value."""
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, int | float):
        return "int64" if isinstance(value, int) else "float64"
    return "string" if isinstance(value, str) else "slice" if isinstance(value, list) else "map"
