"""Compiles schemas of built-in kinds as OpenAPI v3 documents of kube-apiserver write them: with $ref, possibly in cycles."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from sim.apiserver.objects import Object
from sim.apiserver.schema.model import ABSENT, Schema

__all__ = ("QUANTITY", "compile_openapi")

QUANTITY = "quantity"
"""Format of a resource.Quantity, which the documents describe only as string or number."""

_UNPRINTED = ("name", "minReadySeconds")
"""Optional fields with a default that Go leaves out when it prints them, because it is their zero value."""
_PREFIX = "#/components/schemas/"
_SPECIAL: dict[str, dict[str, Any]] = {
    "io.k8s.apimachinery.pkg.api.resource.Quantity": {"format": QUANTITY},
    "io.k8s.apimachinery.pkg.apis.meta.v1.FieldsV1": {"is_open": True},
    "io.k8s.apimachinery.pkg.runtime.RawExtension": {"is_open": True},
    "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSON": {"is_open": True},
}


def compile_openapi(ref_name: str, schemas: Mapping[str, Object], known: dict[str, Schema] | None = None) -> Schema:
    """The schema that `schemas` (components.schemas of a document) holds under a name. KeyError if it does not.

    `known`: compiled schemas of the same document by name, used and extended. Besides what is written, a quantity has format QUANTITY and
    an int-or-string `is_int_or_string`; what Go decodes by code of its own (RawExtension, JSON) is open.
    """
    return _named(ref_name, schemas, {} if known is None else known)


def _named(name: str, schemas: Mapping[str, Object], known: dict[str, Schema]) -> Schema:
    found = known.get(name)
    if found is None:
        node = schemas[name]
        found = known[name] = replace(_bare(node), name=name.rpartition(".")[2], **_SPECIAL.get(name, {}))
        if not found.type and not found.format:
            found.is_open = True
        _fill(found, node, schemas, known)
    return found


def _compiled(node: Object, schemas: Mapping[str, Object], known: dict[str, Schema]) -> Schema:
    if "$ref" in node:
        return _named(node["$ref"].removeprefix(_PREFIX), schemas, known)
    if "allOf" in node:
        base = _named(node["allOf"][0]["$ref"].removeprefix(_PREFIX), schemas, known)
        own = _bare(node)
        # Shares `properties` with the base, which may still be filling up.
        return replace(
            base,
            default=own.default,
            patch_strategy=own.patch_strategy,
            patch_key=own.patch_key,
            is_atomic_map=own.is_atomic_map or base.is_atomic_map,
            source={**base.source, **node},
        )
    schema = _bare(node)
    if not schema.type and not schema.is_int_or_string:
        schema.is_open = True
    _fill(schema, node, schemas, known)
    return schema


def _bare(node: Object) -> Schema:
    """The node without what is below it."""
    return Schema(
        type=node.get("type", ""),
        format=node.get("format", ""),
        required=tuple(node.get("required", ())),
        list_type=node.get("x-kubernetes-list-type", "atomic"),
        list_keys=tuple(node.get("x-kubernetes-list-map-keys", ())),
        is_atomic_map=node.get("x-kubernetes-map-type") == "atomic",
        is_open=node.get("x-kubernetes-preserve-unknown-fields", False),
        is_int_or_string=node.get("format") == "int-or-string",
        default=node.get("default", ABSENT),
        patch_strategy=node.get("x-kubernetes-patch-strategy", ""),
        patch_key=node.get("x-kubernetes-patch-merge-key", ""),
        source=node,
    )


def _fill(schema: Schema, node: Object, schemas: Mapping[str, Object], known: dict[str, Schema]) -> None:
    values: Object | None = node.get("additionalProperties")
    items: Object | None = node.get("items")
    if values is not None:
        schema.values = _compiled(values, schemas, known)
    if items is not None:
        schema.items = _compiled(items, schemas, known)
    for key, child in node.get("properties", {}).items():
        schema.properties[key] = _compiled(child, schemas, known)
        if "default" in child and (key not in _UNPRINTED or key in schema.required):
            schema.defaults[key] = child["default"]
