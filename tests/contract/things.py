"""A kind with one field for every feature of structural schemas."""

from typing import Any

import yaml

__all__ = ("THING_CRD", "definition")

_FIELDS = """
number: {type: integer, minimum: 1, maximum: 10}
small: {type: integer, format: int32}
open: {type: integer, minimum: 1, exclusiveMinimum: true, maximum: 10, exclusiveMaximum: true}
even: {type: number, multipleOf: 2}
ratio: {type: number}
flag: {type: boolean}
text: {type: string, minLength: 2, maxLength: 5, pattern: "^[a-z]+$"}
choice: {type: string, enum: [a, b]}
when: {type: string, format: date-time}
address: {type: string, format: ipv4}
ident: {type: string, format: uuid}
list: {type: array, items: {type: string}, minItems: 1, maxItems: 3}
pair: {type: object, minProperties: 1, maxProperties: 2, additionalProperties: {type: integer}}
either: {x-kubernetes-int-or-string: true}
maybe: {type: string, nullable: true}
inner: {type: object, required: [a], properties: {a: {type: string}, b: {type: string, default: bee}}}
deep: {type: object, default: {}, properties: {level: {type: integer, default: 3}, note: {type: string}}}
nulled: {type: string, nullable: true, default: given}
whole: {type: string, default: given}
set: {type: array, x-kubernetes-list-type: set, items: {type: string}}
map:
  type: array
  x-kubernetes-list-type: map
  x-kubernetes-list-map-keys: [name, kind]
  items:
    type: object
    required: [name]
    properties: {name: {type: string}, kind: {type: string, default: plain}, value: {type: integer}, more: {type: string}}
atomic: {type: array, x-kubernetes-list-type: atomic, items: {type: string}}
one: {type: object, x-kubernetes-map-type: atomic, properties: {a: {type: string}, b: {type: string}}}
free: {type: object, x-kubernetes-preserve-unknown-fields: true, properties: {known: {type: integer}}}
embedded: {type: object, x-kubernetes-embedded-resource: true, x-kubernetes-preserve-unknown-fields: true}
any: {x-kubernetes-preserve-unknown-fields: true}
not: {type: string, not: {enum: [bad]}}
oneof: {type: object, properties: {a: {type: string}, b: {type: string}}, oneOf: [{required: [a]}, {required: [b]}]}
anyof: {type: object, properties: {a: {type: string}, b: {type: string}}, anyOf: [{required: [a]}, {required: [b]}]}
allof: {type: integer, allOf: [{minimum: 3}, {maximum: 5}]}
replicas: {type: integer, default: 1}
"""


def definition(plural: str, kind: str, spec: dict[str, Any], group: str = "contract.example.com", **version: Any) -> dict[str, Any]:
    """A namespaced CRD with one version, v1. `spec`: the schema of that field; `version`: more of the version."""
    schema = {"type": "object", "properties": {"spec": spec, "status": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}}
    served = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}, **version}
    names = {"plural": plural, "singular": kind.lower(), "kind": kind, "listKind": f"{kind}List"}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{group}"},
        "spec": {"group": group, "scope": "Namespaced", "names": names, "versions": [served]},
    }


THING_CRD = definition(
    "things",
    "Thing",
    {"type": "object", "properties": yaml.safe_load(_FIELDS)},
    # The status is part of the object here: writes of the object write it.
    subresources={"scale": {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"}},
)
