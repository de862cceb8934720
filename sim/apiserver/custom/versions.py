"""Subresources, printer columns and selectable fields of one version of a definition."""

# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false, reportUnknownMemberType=false
# JSON data is told apart by isinstance, which says nothing about what is inside.

import re
from collections.abc import Iterator
from typing import Any, Final

from api.fielderrors import FieldError, invalid, required
from sim.apiserver.objects import Object, dig

__all__ = ("check_version",)

_TYPES: Final = ("boolean", "date", "integer", "number", "string")
_FORMATS: Final = ("byte", "date", "date-time", "double", "float", "int32", "int64", "password")
_PLAIN: Final = re.compile(r"\.([A-Za-z0-9_-]+(\[[^\]]*\])?\.?)+")


def check_version(version: Object, path: str) -> Iterator[FieldError]:
    """Errors; `path` is where the server names them."""
    scale = dig(version, "subresources", "scale")
    if scale is not None:
        yield from _scale(scale, f"{path}.subresources.scale")
    columns: list[Object] = version.get("additionalPrinterColumns") or []
    for index, column in enumerate(columns):
        yield from _column(column, f"{path}.additionalPrinterColumns[{index}]")
    fields: list[Object] = version.get("selectableFields") or []
    for index, field in enumerate(fields):
        yield from _selectable(
            field.get("jsonPath", ""), dig(version, "schema", "openAPIV3Schema"), f"{path}.selectableFields[{index}].jsonPath"
        )


def _scale(scale: Object, path: str) -> Iterator[FieldError]:
    for key, root in (("specReplicasPath", ".spec"), ("statusReplicasPath", ".status")):
        value = scale.get(key, "")
        if not value:
            yield required(f"{path}.{key}")
        elif not value.startswith(f"{root}."):
            yield invalid(f"{path}.{key}", value, f"should be a json path under {root}")
    selector = scale.get("labelSelectorPath", "")
    if selector and not selector.startswith((".spec.", ".status.")):
        yield invalid(f"{path}.labelSelectorPath", selector, "should be a json path under either .spec or .status")


def _column(column: Object, path: str) -> Iterator[FieldError]:
    if not column.get("name"):
        yield required(f"{path}.name")
    if not column.get("type"):
        yield required(f"{path}.type", f"must be one of {','.join(_TYPES)}")
    elif column["type"] not in _TYPES:
        yield invalid(f"{path}.type", column["type"], f"must be one of {','.join(_TYPES)}")
    if column.get("format") and column["format"] not in _FORMATS:
        yield invalid(f"{path}.format", column["format"], f"must be one of {','.join(_FORMATS)}")
    value = column.get("jsonPath", "")
    if not value:
        yield required(f"{path}.JSONPath")
    elif not value.startswith("."):
        yield invalid(f"{path}.JSONPath", value, "must be a simple json path starting with .")


def _selectable(value: str, schema: Any, path: str) -> Iterator[FieldError]:
    node = schema
    for key in value.removeprefix(".").split("."):
        node = dig(node, "properties", key) if isinstance(node, dict) else None
    if node is None or not _PLAIN.fullmatch(value):
        yield invalid(path, value, "is an invalid path: does not refer to a valid field")
    elif node.get("type") not in ("string", "boolean", "integer"):
        text = "must point to a field of type string, boolean or integer. Enum string fields and strings with formats are allowed."
        yield invalid(path, value, text)
