"""Whole objects inside custom resources (x-kubernetes-embedded-resource)."""

# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false, reportUnknownMemberType=false
# JSON data is told apart by isinstance, which says nothing about what is inside.

import json
import re
from collections.abc import Iterator
from typing import Any, Final

from api.fielderrors import FieldError, invalid, required
from sim.apiserver.objects import Object
from sim.apiserver.schema.gotypes import meta_problem
from sim.apiserver.schema.model import Schema

__all__ = ("check_embedded", "embedded_problem")

_LABEL: Final = re.compile(r"[a-z]([-a-z0-9]*[a-z0-9])?")
_LABEL_TEXT: Final = (
    "may have mixed case, but should otherwise match: a DNS-1035 label must consist of lower case alphanumeric characters or '-', "
    "start with an alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for "
    "validation is '[a-z]([-a-z0-9]*[a-z0-9])?')"
)


def _found(value: Any, schema: Schema, path: str) -> Iterator[tuple[Object, str]]:
    """Embedded objects with their paths."""
    if isinstance(value, dict):
        fields: Object = value
        if schema.is_embedded:
            yield fields, path
        for key, field in fields.items():
            child = schema.field(key)
            if child is not None and child.has_embedded and isinstance(field, (dict, list)):
                yield from _found(field, child, f"{path}.{key}" if path else key)
    elif isinstance(value, list) and schema.items is not None:
        items: list[Any] = value
        for index, item in enumerate(items):
            if isinstance(item, (dict, list)):
                yield from _found(item, schema.items, f"{path}[{index}]")


def embedded_problem(obj: Object, schema: Schema) -> str:
    """Why decoding refuses the embedded objects: "" or the text of a 400, without the name of the kind in front."""
    for fields, path in _found(obj, schema, ""):
        for key in ("apiVersion", "kind"):
            if key in fields and not isinstance(fields[key], str):
                return f"{path}.{key}: Invalid value: {json.dumps(fields[key], separators=(',', ':'))}: must be a string"
        problem = meta_problem(fields["metadata"]) if "metadata" in fields else ""
        if problem:
            shown = json.dumps(fields["metadata"], separators=(",", ":"), sort_keys=True)
            return f"{path}.metadata: Invalid value: {shown}: {problem}"
    return ""


def check_embedded(obj: Object, schema: Schema) -> list[FieldError]:
    """Errors in apiVersion and kind of embedded objects."""
    errors: list[FieldError] = []
    for fields, path in _found(obj, schema, ""):
        errors += _identity(fields, path)
    return errors


def _identity(fields: Object, path: str) -> Iterator[FieldError]:
    version, kind = fields.get("apiVersion"), fields.get("kind")
    if not isinstance(version, str):
        yield required(f"{path}.apiVersion")
    elif not version:
        yield invalid(f"{path}.apiVersion", version, "must not be empty")
    elif version.count("/") > 1:
        yield invalid(f"{path}.apiVersion", version, f"unexpected GroupVersion string: {version}")
    if not isinstance(kind, str):
        yield required(f"{path}.kind")
    elif not kind:
        yield invalid(f"{path}.kind", kind, "must not be empty")
    elif len(kind) > 63 or _LABEL.fullmatch(kind.lower()) is None:
        yield invalid(f"{path}.kind", kind, _LABEL_TEXT)
