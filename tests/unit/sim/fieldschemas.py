"""Schemas for tests of field ownership and patches: OpenAPI nodes written inline, with the extensions of Kubernetes."""

from dataclasses import replace
from typing import Any

from sim.apiserver.schema.model import ANY, Schema


def schema_of(node: dict[str, Any], definitions: dict[str, Any] | None = None, made: dict[str, Schema] | None = None) -> Schema:
    """A compiled node. `definitions`: what #/components/schemas/NAME refers to."""
    made = {} if made is None else made
    reference = (node["allOf"][0] if "allOf" in node else node).get("$ref")
    if reference is None:
        return filled(Schema(), node, definitions, made)
    name = reference.rpartition("/")[2]
    if name not in made:
        made[name] = Schema()
        filled(made[name], (definitions or {})[name], definitions, made)
    # Defaults, patch strategies and map types stand at the field, also where its type is a reference.
    out = replace(made[name])
    out.default = node.get("default", out.default)
    out.is_atomic_map = out.is_atomic_map or node.get("x-kubernetes-map-type") == "atomic"
    out.patch_strategy = node.get("x-kubernetes-patch-strategy", "")
    return out


def filled(out: Schema, node: dict[str, Any], definitions: dict[str, Any] | None, made: dict[str, Schema]) -> Schema:
    out.type = node.get("type", "")
    out.required = tuple(node.get("required", ()))
    out.format = node.get("format", "")
    out.properties = {k: schema_of(v, definitions, made) for k, v in node.get("properties", {}).items()}
    if isinstance(values := node.get("additionalProperties"), dict):
        out.values = schema_of(values, definitions, made)
    if items := node.get("items"):
        out.items = schema_of(items, definitions, made)
    out.list_type = node.get("x-kubernetes-list-type", "atomic")
    out.list_keys = tuple(node.get("x-kubernetes-list-map-keys", ()))
    out.is_atomic_map = node.get("x-kubernetes-map-type") == "atomic"
    out.is_open = bool(node.get("x-kubernetes-preserve-unknown-fields"))
    out.is_int_or_string = bool(node.get("x-kubernetes-int-or-string")) or "oneOf" in node
    out.patch_strategy = node.get("x-kubernetes-patch-strategy", "")
    out.patch_key = node.get("x-kubernetes-patch-merge-key", "")
    if "default" in node:
        out.default = node["default"]
    out.source = node
    return out


STRING = {"type": "string"}
INTEGER = {"type": "integer"}
STRINGS = {"type": "object", "additionalProperties": STRING}


def mapping(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties}


def keyed(item: dict[str, Any], *keys: str) -> dict[str, Any]:
    """A list of maps, told apart by the keys, in patches by the first of them."""
    return {
        "type": "array",
        "items": item,
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": list(keys),
        "x-kubernetes-patch-strategy": "merge",
        "x-kubernetes-patch-merge-key": keys[0],
    }


METADATA = mapping(
    name=STRING,
    namespace=STRING,
    uid=STRING,
    resourceVersion=STRING,
    generation=INTEGER,
    creationTimestamp=STRING,
    labels=STRINGS,
    annotations=STRINGS,
    finalizers={"type": "array", "items": STRING, "x-kubernetes-list-type": "set", "x-kubernetes-patch-strategy": "merge"},
    ownerReferences=keyed({**mapping(uid=STRING, name=STRING), "x-kubernetes-map-type": "atomic"}, "uid"),
)
PORT = mapping(name=STRING, containerPort=INTEGER, protocol={**STRING, "default": "TCP"})
CONTAINER = mapping(
    name=STRING,
    image=STRING,
    env=keyed(mapping(name=STRING, value=STRING), "name"),
    ports=keyed(PORT, "containerPort", "protocol"),
    command={"type": "array", "items": STRING},
    resources=mapping(limits=STRINGS),
)
VOLUMES = keyed(mapping(name=STRING, emptyDir=mapping(medium=STRING), hostPath=mapping(path=STRING)), "name")
POD = schema_of(
    mapping(
        apiVersion=STRING,
        kind=STRING,
        metadata=METADATA,
        spec=mapping(
            nodeName=STRING,
            replicas=INTEGER,
            nodeSelector={**STRINGS, "x-kubernetes-map-type": "atomic"},
            containers=keyed(CONTAINER, "name"),
            schedulingGates=keyed(mapping(name=STRING), "name"),
            tolerations={"type": "array", "items": mapping(key=STRING, operator=STRING)},
            volumes={**VOLUMES, "x-kubernetes-patch-strategy": "merge,retainKeys"},
            anything={"x-kubernetes-preserve-unknown-fields": True, "type": "object"},
        ),
        status=mapping(
            phase=STRING,
            conditions=keyed(mapping(type=STRING, status=STRING), "type"),
        ),
    )
)
"""A pod in miniature."""
CONFIG_MAP = schema_of(mapping(apiVersion=STRING, kind=STRING, metadata=METADATA, data=STRINGS, immutable={"type": "boolean"}))
UNKNOWN = ANY
