"""Kubernetes types inside our CRDs, turned from OpenAPI v3 into structural schemas (the shape that CRDs require).

No $ref, no enums (the API server checks core types when pods are made; the CRD only has to keep what was written), quantities and
int-or-string in the form that CRDs know, and defaults only where a field may be missing.
"""

import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, TypeAlias

__all__ = ("FOLDER", "METRIC_SPEC", "POD_SPEC", "RESOURCE_CLAIM_TEMPLATE_SPEC", "SOURCES", "Schema", "Source", "embedded")

Schema: TypeAlias = dict[str, Any]
FOLDER = Path(__file__).parent / "openapi"


@dataclass(frozen=True, slots=True)
class Source:
    """A type to embed: the document of the API server that has it, the file it is stored in, and the name of its schema."""

    path: str
    file: str
    schema: str


POD_SPEC = Source("api/v1", "core_v1.json", "io.k8s.api.core.v1.PodSpec")
METRIC_SPEC = Source("apis/autoscaling/v2", "autoscaling_v2.json", "io.k8s.api.autoscaling.v2.MetricSpec")
RESOURCE_CLAIM_TEMPLATE_SPEC = Source("apis/resource.k8s.io/v1", "resource_v1.json", "io.k8s.api.resource.v1.ResourceClaimTemplateSpec")
SOURCES = (POD_SPEC, METRIC_SPEC, RESOURCE_CLAIM_TEMPLATE_SPEC)

KEPT = (
    "type",
    "format",
    "required",
    "x-kubernetes-list-map-keys",
    "x-kubernetes-list-type",
    "x-kubernetes-map-type",
    "x-kubernetes-preserve-unknown-fields",
)

QUANTITY = r"^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$"
INT_OR_STRING: Schema = {"anyOf": [{"type": "integer"}, {"type": "string"}], "x-kubernetes-int-or-string": True}
TEXTS: Schema = {"type": "object", "additionalProperties": {"type": "string"}}

SPECIAL: dict[str, Schema] = {
    "io.k8s.apimachinery.pkg.api.resource.Quantity": {**INT_OR_STRING, "pattern": QUANTITY},
    "io.k8s.apimachinery.pkg.util.intstr.IntOrString": INT_OR_STRING,
    "io.k8s.apimachinery.pkg.apis.meta.v1.Time": {"type": "string", "format": "date-time"},
    "io.k8s.apimachinery.pkg.runtime.RawExtension": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
    # Of the metadata of a template only these are used; a bare object would lose them.
    "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta": {
        "type": "object",
        "properties": {
            "annotations": TEXTS,
            "finalizers": {"type": "array", "items": {"type": "string"}},
            "labels": TEXTS,
            "name": {"type": "string"},
            "namespace": {"type": "string"},
        },
    },
}


@cache
def _schemas(file: str) -> dict[str, Schema]:
    return json.loads((FOLDER / file).read_text())["schemas"]


def embedded(source: Source) -> Schema:
    """The structural schema of an embedded type."""
    return _structural({"$ref": source.schema}, _schemas(source.file))


def _structural(node: Schema, schemas: dict[str, Schema]) -> Schema:
    """`node` with all references resolved. A reference may sit in a one-element allOf with a default beside it."""
    if "allOf" in node:
        (node,) = node["allOf"]
    if "$ref" in node:
        name = node["$ref"].rpartition("/")[2]
        return SPECIAL[name] if name in SPECIAL else _structural(schemas[name], schemas)
    if "oneOf" in node or "anyOf" in node:
        raise ValueError(f"no structural form is known for {node}")
    out: Schema = {key: node[key] for key in KEPT if key in node}
    if "properties" in node:
        required = node.get("required", ())
        out["properties"] = {
            name: {**_structural(p, schemas), **({} if name in required else _default(p))} for name, p in node["properties"].items()
        }
    for key in ("items", "additionalProperties"):
        if key in node:
            out[key] = _structural(node[key], schemas)
    return out


def _default(node: Schema) -> Schema:
    """The default of an optional property. Defaults of required ones (left out by the caller) and of objects are Go's zero values."""
    default = node.get("default")
    return {} if default is None or isinstance(default, dict) else {"default": default}
