"""From a CustomResourceDefinition to the resource that is served."""

from functools import lru_cache
from typing import Any, Final

import msgspec

from sim.apiserver.custom.strategies import CustomStrategy
from sim.apiserver.objects import Object, dig
from sim.apiserver.resources import Column, Resource, Scale, Version
from sim.apiserver.schema.model import Schema
from sim.apiserver.schema.structural import compile_structural, with_identity

__all__ = ("resource_of",)

_AGE: Final = Column(
    "Age",
    "date",
    ".metadata.creationTimestamp",
    description="CreationTimestamp is a timestamp representing the server time when this object was created. It is not guaranteed to "
    "be set in happens-before order across separate operations. Clients may not set this value. It is represented in RFC3339 form and "
    "is in UTC.",
)


def resource_of(crd: Object) -> Resource:
    """The resource of a definition that passed `validate_crd` and has its defaults."""
    spec: Object = crd["spec"]
    names: Object = dig(crd, "status", "acceptedNames") or spec["names"]
    versions = tuple(_version(v, spec["group"], names["kind"]) for v in spec["versions"])
    return Resource(
        spec["group"],
        names["plural"],
        names["kind"],
        versions,
        next(v["name"] for v in spec["versions"] if v["storage"]),
        spec["scope"] == "Namespaced",
        strategy=CustomStrategy(spec["group"], versions),
        singular=names.get("singular") or names["kind"].lower(),
        list_kind=names.get("listKind") or f"{names['kind']}List",
        short_names=tuple(names.get("shortNames", ())),
        categories=tuple(names.get("categories", ())),
        is_custom=True,
        conversion=spec["conversion"] if dig(spec, "conversion", "strategy") == "Webhook" else None,
    )


def _version(version: Object, group: str, kind: str) -> Version:
    schema = _compiled(msgspec.json.encode(version["schema"]["openAPIV3Schema"]))
    subresources: Object = version.get("subresources") or {}
    columns: list[Object] = version.get("additionalPrinterColumns") or []
    warning = version.get("deprecationWarning") or f"{group}/{version['name']} {kind} is deprecated"
    return Version(
        version["name"],
        schema,
        version["served"],
        "status" in subresources,
        _scale(subresources.get("scale")),
        tuple(_column(column) for column in columns) or (_AGE,),
        tuple(entry["jsonPath"] for entry in version.get("selectableFields", ())),
        warning if version.get("deprecated") else "",
    )


@lru_cache(maxsize=64)
def _compiled(schema: bytes) -> Schema:
    """Compiled schemas never change, so servers in one process and versions of one definition share them."""
    compiled = compile_structural(msgspec.json.decode(schema))
    with_identity(compiled)
    return compiled


def _scale(scale: Object | None) -> Scale | None:
    if scale is None:
        return None
    return Scale(scale["specReplicasPath"], scale["statusReplicasPath"], scale.get("labelSelectorPath", ""))


def _column(column: dict[str, Any]) -> Column:
    return Column(
        column["name"],
        column["type"],
        column["jsonPath"],
        description=column.get("description") or f"Custom resource definition column (in JSONPath format): {column['jsonPath']}",
        format=column.get("format", ""),
        priority=column.get("priority", 0),
    )
