"""Tables: what kubectl get shows, computed by the server."""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from functools import lru_cache
from typing import Any, Final, Literal, TypeAlias

import msgspec

from sim.apiserver.front.ages import age
from sim.apiserver.front.cells import NAME
from sim.apiserver.front.columns import BUILT_IN, OTHERWISE
from sim.apiserver.front.jsonpath import compiled
from sim.apiserver.front.podcells import completion
from sim.apiserver.objects import Object
from sim.apiserver.resources import Column, Resource, Version

__all__ = ("Include", "partial", "table")

Include: TypeAlias = Literal["None", "Metadata", "Object"]
Cell: TypeAlias = Callable[[Object, datetime], Any]

CUSTOM_AGE: Final = Column("Age", "date", ".metadata.creationTimestamp")


def table(
    resource: Resource,
    version: Version,
    objects: Sequence[Object],
    *,
    include: Include = "Metadata",
    now: datetime,
    list_meta: Object,
    api_version: str = "v1",
    with_columns: bool = True,
) -> Object:
    """A meta.k8s.io Table with one row per object. `list_meta`: metadata of the list, or {resourceVersion} of a single object.

    `with_columns`: after the first event of a watch the column definitions are left out.
    """
    columns = columns_of(resource, version)
    cells = [_cell(column) for column in columns]
    is_pod = (resource.group, resource.plural) == ("", "pods")
    rows: list[Object] = []
    for obj in objects:
        # A bookmark is an object of a version alone; its row is there, but empty.
        is_bookmark = "name" not in obj["metadata"]
        row: Object = {"cells": ["", *[None] * (len(cells) - 1)] if is_bookmark else [cell(obj, now) for cell in cells]}
        if is_pod and (conditions := completion(obj)):
            row["conditions"] = conditions
        row["object"] = None if include == "None" else obj if include == "Object" else partial(obj, api_version)
        rows.append(row)
    definitions = [_definition(column) for column in columns] if with_columns else None
    head: Object = {"kind": "Table", "apiVersion": f"meta.k8s.io/{api_version}", "metadata": list_meta}
    return {**head, "columnDefinitions": definitions, "rows": rows}


def partial(obj: Object, api_version: str = "v1") -> Object:
    """The object reduced to its metadata."""
    return {"kind": "PartialObjectMetadata", "apiVersion": f"meta.k8s.io/{api_version}", "metadata": obj["metadata"]}


def columns_of(resource: Resource, version: Version) -> tuple[Column, ...]:
    """Columns with the name first. Custom resources without any show their age."""
    if resource.is_custom:
        return (NAME, *(version.columns or (CUSTOM_AGE,)))
    return version.columns or BUILT_IN.get((resource.group, resource.plural), OTHERWISE)


def _definition(column: Column) -> Object:
    described = {"name": column.name, "type": column.type, "format": column.format, "description": column.description}
    return {**described, "priority": column.priority}


@lru_cache(maxsize=1024)
def _cell(column: Column) -> Cell:
    if column.value is not None:
        return column.value
    find = compiled(column.path)
    if column.type == "string":
        return lambda obj, _: _text(find(obj))
    if column.type == "date":
        return lambda obj, now: _date(find(obj), now)
    convert = _NUMBERS[column.type]
    return lambda obj, _: convert(found[0]) if (found := find(obj)) else None


def _text(found: Sequence[Any]) -> str | None:
    if not found:
        return None
    return found[0] if isinstance(found[0], str) else msgspec.json.encode(found[0], order="sorted").decode()


def _date(found: Sequence[Any], now: datetime) -> str | None:
    return age(found[0], now) if found and isinstance(found[0], str) else None


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


_NUMBERS: Final[Mapping[str, Callable[[Any], Any]]] = {
    "integer": lambda value: int(value) if _is_number(value) else None,
    "number": lambda value: value if _is_number(value) else None,
    "boolean": lambda value: value if isinstance(value, bool) else None,
}
