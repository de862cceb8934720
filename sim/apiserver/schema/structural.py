"""Compiles the structural schemas of CustomResourceDefinitions."""

# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false, reportUnknownMemberType=false
# JSON data is told apart by isinstance, which says nothing about what is inside.

from typing import Final

from sim.apiserver.objects import Object
from sim.apiserver.schema.builtin import object_meta
from sim.apiserver.schema.formats import FORMATS
from sim.apiserver.schema.model import ABSENT, ANY, Schema
from sim.apiserver.schema.rules import CAST_FORMATS, compile_rules

__all__ = ("compile_structural", "with_identity")

_TEXT: Final = Schema(type="string")
_BOUNDS: Final = frozenset(
    {"enum", "maximum", "minimum", "multipleOf", "maxLength", "minLength", "pattern", "maxItems", "minItems", "uniqueItems",
     "maxProperties", "minProperties", "allOf", "anyOf", "oneOf", "not"}
)  # fmt: skip


def compile_structural(node: Object) -> Schema:
    """The schema that a CRD's openAPIV3Schema (or a part of one) describes. Embedded resources get apiVersion, kind and metadata.

    Raises CelSyntaxError for a rule that does not compile; total on anything else that passed `validate_crd`.
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
        logic={key: tuple(compile_structural(branch) for branch in node[key]) for key in ("allOf", "anyOf", "oneOf") if key in node},
        has_bounds=not _BOUNDS.isdisjoint(node) or node.get("format", "").replace("-", "") in FORMATS or node.get("type") == "integer",
        source=node,
    )
    if "not" in node:
        schema.logic["not"] = (compile_structural(node["not"]),)
    _complete(schema)
    return schema


def _complete(schema: Schema) -> None:
    """What depends on the nodes below."""
    if schema.is_embedded:
        with_identity(schema)
    below = [*schema.properties.values(), *([schema.values] if schema.values else []), *([schema.items] if schema.items else [])]
    schema.defaults = {key: child.default for key, child in schema.properties.items() if child.default is not ABSENT}
    schema.has_casts = schema.type == "number" or schema.format in CAST_FORMATS or any(child.has_casts for child in below)
    schema.has_unique = schema.list_type != "atomic" or any(child.has_unique for child in below)
    schema.has_embedded = schema.is_embedded or any(child.has_embedded for child in below)
    schema.rules = compile_rules(schema)
    schema.has_rules = bool(schema.rules) or any(child.has_rules for child in below)


def with_identity(schema: Schema) -> None:
    """Gives the schema of a whole object the fields that all objects have."""
    schema.properties.setdefault("apiVersion", _TEXT)
    schema.properties.setdefault("kind", _TEXT)
    schema.properties["metadata"] = object_meta()
