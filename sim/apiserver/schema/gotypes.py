"""What decoding JSON into Go types refuses, in the words of Go's decoder."""

# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false, reportUnknownMemberType=false
# JSON data is told apart by isinstance, which says nothing about what is inside.

from typing import Any, Final

from api.quantity import QuantityError, nano
from sim.apiserver.objects import Object
from sim.apiserver.schema.builtin import object_meta
from sim.apiserver.schema.formats import FORMATS
from sim.apiserver.schema.gotimes import time_problem
from sim.apiserver.schema.model import Schema
from sim.apiserver.schema.openapi import QUANTITY

__all__ = ("built_in_problem", "meta_problem", "text_problem")

_QUANTITY_TEXT: Final = "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
_LIMITS: Final = {"int32": 2**31, "int64": 2**63}
_INLINED: Final = {
    "Probe": ("ProbeHandler", frozenset({"exec", "grpc", "httpGet", "tcpSocket"})),
    "EphemeralContainer": ("EphemeralContainerCommon", None),
    "Volume": ("VolumeSource", None),
    "PersistentVolumeSpec": ("PersistentVolumeSource", None),
}
_OWN: Final = frozenset({"name", "targetContainerName", "capacity", "accessModes", "claimRef", "storageClassName", "nodeAffinity"})
_UIDS: Final = frozenset({"OwnerReference", "ObjectReference", "Preconditions", "ObjectMeta"})


def built_in_problem(obj: Object, schema: Schema, kind: str) -> str:
    """The first thing in a built-in object that its Go type cannot hold; "" if all fits. Time and quantity texts are checked too."""
    return _object(obj, schema, kind, "")


def meta_problem(metadata: Any) -> str:
    """The same of the `metadata` of a custom resource."""
    if metadata is None:
        return ""
    if not isinstance(metadata, dict):
        return f"json: cannot unmarshal {_kind(metadata)} into Go value of type v1.ObjectMeta"
    return _object(metadata, object_meta(), "ObjectMeta", "")


def text_problem(value: Any, schema: Schema) -> str:
    """What is wrong with a value that is a text in JSON and more than that in Go: quantities, times, bytes, numbers or names."""
    if schema.format == QUANTITY:
        return _quantity(value)
    if schema.is_int_or_string:
        return "" if isinstance(value, str) or _kind(value) == "number" else "unrecognized type: struct"
    return _text(value, schema) if isinstance(value, str) else ""


def _kind(value: Any) -> str:
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, (int, float)):
        return "number"
    return "string" if isinstance(value, str) else "array" if isinstance(value, list) else "object"


def _object(fields: Object, schema: Schema, owner: str, path: str) -> str:
    for key, value in fields.items():
        child = schema.properties.get(key)
        if child is None or value is None:
            continue
        inlined = _INLINED.get(owner)
        via = f"{inlined[0]}." if inlined and (key in inlined[1] if inlined[1] else key not in _OWN) else ""
        problem = _value(value, child, owner, f"{path}.{via}{key}" if path else key)
        if problem:
            return problem
    return ""


def _value(value: Any, schema: Schema, owner: str, path: str) -> str:
    if schema.format == QUANTITY:
        return _quantity(value)
    if schema.is_open and not schema.properties:
        return ""
    if schema.is_int_or_string:
        return "" if isinstance(value, str) else _number(value, "int32", owner, path)
    if schema.type == "integer":
        return _number(value, schema.format, owner, path)
    if schema.type == "object" and isinstance(value, dict):
        return _map(value, schema, owner, path)
    if schema.type == "array" and isinstance(value, list):
        items: list[Any] = value
        found = (_value(item, schema.items, owner, path) for item in items if item is not None and schema.items is not None)
        return next((problem for problem in found if problem), "")
    if schema.type == "string" and isinstance(value, str):
        return _text(value, schema)
    if (schema.type == "boolean" and isinstance(value, bool)) or (schema.type == "number" and _kind(value) == "number"):
        return ""
    return _refused(_kind(value), schema, owner, path)


def _map(fields: Object, schema: Schema, owner: str, path: str) -> str:
    if schema.values is None:
        return _object(fields, schema, schema.name or owner, path)
    values = schema.values
    found = (_value(value, values, owner, path) for value in fields.values() if value is not None)
    return next((problem for problem in found if problem), "")


def _refused(kind: str, schema: Schema, owner: str, path: str) -> str:
    wanted = _go_type(schema)
    if path.endswith("uid") and owner in _UIDS:
        wanted = "types.UID"
    return f"json: cannot unmarshal {kind} into Go struct field {owner}.{path} of type {wanted}"


def _go_type(schema: Schema) -> str:
    if schema.type == "array":
        return f"[]{_go_type(schema.items)}" if schema.items is not None else "[]interface {}"
    if schema.type == "object":
        if schema.values is not None:
            return "v1.ResourceList" if schema.values.format == QUANTITY else f"map[string]{_go_type(schema.values)}"
        return f"v1.{schema.name}"
    if schema.type == "integer":
        return schema.format or "int64"
    if schema.format == "byte":
        return "[]uint8"
    return {"boolean": "bool", "number": "float64"}.get(schema.type, "string")


def _number(value: Any, form: str, owner: str, path: str) -> str:
    limit = _LIMITS.get(form, 2**63)
    if isinstance(value, int) and not isinstance(value, bool) and -limit <= value < limit:
        return ""
    shown = f"number {value}" if _kind(value) == "number" else _kind(value)
    return f"json: cannot unmarshal {shown} into Go struct field {owner}.{path} of type {form or 'int64'}"


def _quantity(value: Any) -> str:
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return ""
    try:
        nano(value if isinstance(value, str) else "")
    except QuantityError:
        return _QUANTITY_TEXT
    return ""


def _text(value: str, schema: Schema) -> str:
    if schema.format == "date-time":
        return time_problem(value, is_micro=schema.name == "MicroTime")
    if schema.format == "byte" and not FORMATS["byte"](value):
        return f"illegal base64 data at input byte {_first_odd(value)}"
    return ""


def _first_odd(text: str) -> int:
    odd = (i for i, c in enumerate(text) if not (c.isascii() and (c.isalnum() or c in "+/=")))
    return next(odd, len(text) - len(text) % 4)
