"""A model's structural schema: pydantic's JSON schema without references, unions with null and titles, plus the tables of `facts`."""

from typing import Any

from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue
from pydantic_core import core_schema

from api.custom import Resource
from hack.codegen.embedded import Schema, embedded
from hack.codegen.facts import EMBEDDED, FIELDS, LIST_MAPS, NO_DEFAULT, REQUIRED, RULES

__all__ = ("structural_schema",)

INT_BOUNDS = {2**31 - 1, -(2**31), 2**63 - 1, -(2**63)}
ROOT_DESCRIPTIONS = {
    "apiVersion": "Group and version of this kind.",
    "kind": "Name of this kind.",
}


class _Generator(GenerateJsonSchema):
    def function_plain_schema(self, schema: core_schema.PlainValidatorFunctionSchema) -> JsonSchemaValue:
        """ObjectMeta validates itself; a CRD must leave metadata open."""
        return {"type": "object"}


def structural_schema(model: type[Resource]) -> Schema:
    """openAPIV3Schema of a kind."""
    document = model.model_json_schema(schema_generator=_Generator)
    definitions: dict[str, Schema] = document.pop("$defs", {})
    root = _Flattener(model.KIND.kind, definitions).object(model.KIND.kind, document)
    properties = root["properties"]
    for name, description in ROOT_DESCRIPTIONS.items():
        properties[name] = {"type": "string", "description": description}
    properties["metadata"] = {"type": "object"}
    root["required"] = ["spec"]
    return root


class _Flattener:
    """Resolves one kind's schema. Nothing recurses: no model contains itself."""

    def __init__(self, kind: str, definitions: dict[str, Schema]) -> None:
        self._kind = kind
        self._definitions = definitions

    def object(self, name: str, node: Schema) -> Schema:
        """The schema of the class `name`."""
        out: Schema = {"type": "object", "description": node["description"]}
        properties: dict[str, Schema] = {}
        for field, schema in node.get("properties", {}).items():
            properties[field] = self._field(name, field, schema)
        out["properties"] = properties
        required = REQUIRED.get(f"{self._kind}/{name}") or REQUIRED.get(name) or tuple(node.get("required", ()))
        if required:
            out["required"] = sorted(required)
        if name in RULES:
            out["x-kubernetes-validations"] = list(RULES[name])
        return out

    def _field(self, owner: str, field: str, node: Schema) -> Schema:
        out = {**self._node(node), **FIELDS.get(owner, {}).get(field, {})}
        if "description" in node:
            out["description"] = node["description"]
        if node.get("default") is not None and field not in NO_DEFAULT.get(owner, ()):
            out["default"] = node["default"]
        if source := EMBEDDED.get(owner, {}).get(field):
            whole = embedded(source)
            out = {**out, "items": whole} if out["type"] == "array" else {**whole, "description": out["description"]}
            out.pop("additionalProperties", None)
        if keys := LIST_MAPS.get(owner, {}).get(field):
            out |= {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": list(keys)}
        return out

    def _node(self, node: Schema) -> Schema:
        if "anyOf" in node:
            (node,) = (branch for branch in node["anyOf"] if branch != {"type": "null"})
        if "$ref" in node:
            name = node["$ref"].rpartition("/")[2]
            return self.object(name, self._definitions[name])
        out = {key: value for key, value in node.items() if _kept(key, value)}
        for key in ("items", "additionalProperties"):
            # additionalProperties is true for a dict of anything; such fields are replaced as a whole.
            if out.get(key, True) is not True:
                out[key] = self._node(out[key])
        return out


def _kept(key: str, value: Any) -> bool:
    """Titles are noise, defaults are decided by the field, and the bounds of an integer are already in its format."""
    return key not in ("title", "default", "description") and not (key in ("minimum", "maximum") and value in INT_BOUNDS)
