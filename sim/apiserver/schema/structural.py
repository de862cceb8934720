"""Compiles the structural schemas of CustomResourceDefinitions."""

from sim.apiserver.objects import Object
from sim.apiserver.schema.builtin import object_meta
from sim.apiserver.schema.model import ABSENT, ANY, Schema

__all__ = ("compile_structural", "with_identity")

_TEXT = Schema(type="string")


def compile_structural(node: Object) -> Schema:
    """The schema that a CRD's openAPIV3Schema (or a part of one) describes. Total on anything that passed the checks of CRDs.

    Embedded resources get apiVersion, kind and metadata.
    """
    values: Object | bool | None = node.get("additionalProperties")
    items: Object | None = node.get("items")
    schema = Schema(
        type=node.get("type", ""),
        format=node.get("format", ""),
        properties={key: compile_structural(child) for key, child in node.get("properties", {}).items()},
        required=tuple(node.get("required", ())),
        values=compile_structural(values) if isinstance(values, dict) else ANY if values is True else None,
        items=None if items is None else compile_structural(items),
        list_type=node.get("x-kubernetes-list-type", "atomic"),
        list_keys=tuple(node.get("x-kubernetes-list-map-keys", ())),
        is_atomic_map=node.get("x-kubernetes-map-type") == "atomic",
        is_open=node.get("x-kubernetes-preserve-unknown-fields", False),
        is_int_or_string=node.get("x-kubernetes-int-or-string", False),
        is_embedded=node.get("x-kubernetes-embedded-resource", False),
        is_nullable=node.get("nullable", False),
        default=node.get("default", ABSENT),
        source=node,
    )
    if schema.is_embedded:
        with_identity(schema)
    return schema


def with_identity(schema: Schema) -> None:
    """Gives the schema of a whole object the fields that all objects have."""
    schema.properties.setdefault("apiVersion", _TEXT)
    schema.properties.setdefault("kind", _TEXT)
    schema.properties["metadata"] = object_meta()
