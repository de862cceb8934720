"""CustomResourceDefinitions: what is refused, when they are served, what their deletion takes along."""
# ruff: noqa: E501 - messages of the server stand whole, to be found by searching.

import copy
from typing import Any

import pytest

from tests.contract.client import Api
from tests.contract.kinds import CRDS, Kind
from tests.contract.rows import GONE, Step, case, fails, post, run
from tests.contract.things import definition

GROUP = "<ns>.example.com"
TEXT = {"type": "object", "properties": {"a": {"type": "string"}}}


def crd(spec: Any = None, **version: Any) -> dict[str, Any]:
    return copy.deepcopy(definition("boxes", "Box", spec or TEXT, GROUP, **version))


def refused(name: str, expected: Any, change: Any = None, spec: Any = None, **version: Any) -> Any:
    """A definition with this schema of its spec and with these changes, path -> value, is refused."""
    body = crd(spec, **version)
    for path, value in (change or {}).items():
        *parents, last = path.split(".")
        place: Any = body
        for part in parents:
            place = place[int(part)] if isinstance(place, list) else place[part]
        if value is None:
            del place[last]
        else:
            place[int(last) if isinstance(place, list) else last] = value
    return case(name, post(f"customresourcedefinitions/boxes.{GROUP}", body, expected))


def field(**schema: Any) -> Any:
    return {"type": "object", "properties": {"x": schema}}


V1 = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": {"type": "object"}}}
RULE = "x-kubernetes-validations"
CASES = [
    refused(
        "name",
        fails(
            422,
            "Invalid",
            'CustomResourceDefinition.apiextensions.k8s.io "other.example.com" is invalid: metadata.name: Invalid value: "other.example.com": must be spec.names.plural+"."+spec.group',
        ),
        {"metadata.name": "other.example.com"},
    ),
    refused(
        "no_group",
        fails(
            422,
            "Invalid",
            'CustomResourceDefinition.apiextensions.k8s.io "boxes.<ns>.example.com" is invalid: [metadata.name: Invalid value: "boxes.<ns>.example.com": must be spec.names.plural+"."+spec.group, spec.group: Required value]',
        ),
        {"spec.group": ""},
    ),
    refused(
        "group_without_dot",
        fails(
            422,
            "Invalid",
            'CustomResourceDefinition.apiextensions.k8s.io "boxes.<ns>.example.com" is invalid: [metadata.name: Invalid value: "boxes.<ns>.example.com": must be spec.names.plural+"."+spec.group, spec.group: Invalid value: "example": should be a domain with at least one dot]',
        ),
        {"spec.group": "example"},
    ),
    refused(
        "no_kind",
        fails(
            422,
            "Invalid",
            'CustomResourceDefinition.apiextensions.k8s.io "boxes.<ns>.example.com" is invalid: spec.names.kind: Required value',
        ),
        {"spec.names.kind": None},
    ),
    refused(
        "no_scope",
        fails(
            422, "Invalid", 'CustomResourceDefinition.apiextensions.k8s.io "boxes.<ns>.example.com" is invalid: spec.scope: Required value'
        ),
        {"spec.scope": None},
    ),
    refused(
        "bad_scope",
        fails(
            422,
            "Invalid",
            'CustomResourceDefinition.apiextensions.k8s.io "boxes.<ns>.example.com" is invalid: spec.scope: Unsupported value: "Frob": supported values: "Cluster", "Namespaced"',
        ),
        {"spec.scope": "Frob"},
    ),
    refused(
        "upper_case_plural",
        fails(
            422,
            "Invalid",
            "CustomResourceDefinition.apiextensions.k8s.io \"boxes.<ns>.example.com\" is invalid: [metadata.name: Invalid value: \"boxes.<ns>.example.com\": must be spec.names.plural+\".\"+spec.group, spec.names.plural: Invalid value: \"Boxes\": a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')]",
        ),
        {"spec.names.plural": "Boxes"},
    ),
    refused(
        "bad_short_name",
        fails(
            422,
            "Invalid",
            "CustomResourceDefinition.apiextensions.k8s.io \"boxes.<ns>.example.com\" is invalid: spec.names.shortNames[0]: Invalid value: \"a_b\": a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')",
        ),
        {"spec.names.shortNames": ["a_b"]},
    ),
    refused(
        "no_versions",
        fails(
            422,
            "Invalid",
            'CustomResourceDefinition.apiextensions.k8s.io "boxes.<ns>.example.com" is invalid: [spec.versions: Invalid value: []: must have exactly one version marked as storage version, status.storedVersions: Invalid value: null: must have at least one stored version]',
        ),
        {"spec.versions": []},
    ),
    refused(
        "no_storage",
        fails(
            422,
            "Invalid",
            'CustomResourceDefinition.apiextensions.k8s.io "boxes.<ns>.example.com" is invalid: [spec.versions: Invalid value: [{"Name":"v1","Served":true,"Storage":false,"Deprecated":false,"DeprecationWarning":null,"Schema":null,"Subresources":null,"AdditionalPrinterColumns":null,"SelectableFields":null}]: must have exactly one version marked as storage version, status.storedVersions: Invalid value: null: must have at least one stored version]',
        ),
        {"spec.versions.0.storage": False},
    ),
    refused(
        "two_storages",
        fails(
            422,
            "Invalid",
            'CustomResourceDefinition.apiextensions.k8s.io "boxes.<ns>.example.com" is invalid: [spec.versions: Invalid value: [{"Name":"v1","Served":true,"Storage":true,"Deprecated":false,"DeprecationWarning":null,"Schema":null,"Subresources":null,"AdditionalPrinterColumns":null,"SelectableFields":null},{"Name":"v2","Served":true,"Storage":true,"Deprecated":false,"DeprecationWarning":null,"Schema":null,"Subresources":null,"AdditionalPrinterColumns":null,"SelectableFields":null}]: must have exactly one version marked as storage version, status.storedVersions: Invalid value: ["v1"]: must have the storage version v2]',
        ),
        {"spec.versions": [V1, {**V1, "name": "v2"}]},
    ),
    refused(
        "version_twice",
        fails(
            422,
            "Invalid",
            'CustomResourceDefinition.apiextensions.k8s.io "boxes.<ns>.example.com" is invalid: spec.versions: Invalid value: [{"Name":"v1","Served":true,"Storage":true,"Deprecated":false,"DeprecationWarning":null,"Schema":null,"Subresources":null,"AdditionalPrinterColumns":null,"SelectableFields":null},{"Name":"v1","Served":true,"Storage":false,"Deprecated":false,"DeprecationWarning":null,"Schema":null,"Subresources":null,"AdditionalPrinterColumns":null,"SelectableFields":null}]: must contain unique version names',
        ),
        {"spec.versions": [V1, {**V1, "storage": False}]},
    ),
    refused(
        "bad_version_name",
        fails(
            422,
            "Invalid",
            "CustomResourceDefinition.apiextensions.k8s.io \"boxes.<ns>.example.com\" is invalid: [spec.versions[0].name: Invalid value: \"V_1\": a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?'), spec.version: Invalid value: \"V_1\": a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')]",
        ),
        {"spec.versions.0.name": "V_1"},
    ),
    refused(
        "no_schema",
        fails(
            422,
            "Invalid",
            'CustomResourceDefinition.apiextensions.k8s.io "boxes.<ns>.example.com" is invalid: spec.versions[0].schema.openAPIV3Schema: Required value',
        ),
        {"spec.versions.0.schema": None},
    ),
    refused(
        "no_root_type",
        fails(
            422,
            "Invalid",
            'CustomResourceDefinition.apiextensions.k8s.io "boxes.<ns>.example.com" is invalid: spec.validation.openAPIV3Schema.type: Required value: must not be empty at the root',
        ),
        {"spec.versions.0.schema.openAPIV3Schema.type": None},
    ),
    refused(
        "root_type",
        fails(
            422,
            "Invalid",
            'CustomResourceDefinition.apiextensions.k8s.io "boxes.<ns>.example.com" is invalid: [spec.validation.openAPIV3Schema.items: Required value: must be specified, spec.validation.openAPIV3Schema.type: Invalid value: "array": must be object at the root]',
        ),
        {"spec.versions.0.schema.openAPIV3Schema.type": "array"},
    ),
    refused(
        "missing_type",
        fails(
            422,
            "Invalid",
            'CustomResourceDefinition.apiextensions.k8s.io "boxes.<ns>.example.com" is invalid: spec.validation.openAPIV3Schema.properties[spec].properties[x].type: Required value: must not be empty for specified object fields',
        ),
        spec=field(minimum=1),
    ),
    refused(
        "bad_type",
        fails(
            422,
            "Invalid",
            'CustomResourceDefinition.apiextensions.k8s.io "boxes.<ns>.example.com" is invalid: spec.validation.openAPIV3Schema.properties[spec].properties[x].type: Unsupported value: "frob": supported values: "array", "boolean", "integer", "number", "object", "string"',
        ),
        spec=field(type="frob"),
    ),
    refused(
        "bad_pattern",
        fails(
            422,
            "Invalid",
            'CustomResourceDefinition.apiextensions.k8s.io "boxes.<ns>.example.com" is invalid: spec.validation.openAPIV3Schema.properties[spec].properties[x].pattern: Invalid value: "[": must be a valid regular expression, but isn\'t: error parsing regexp: missing closing ]: `[`',
        ),
        spec=field(type="string", pattern="["),
    ),
    refused(
        "items_missing",
        fails(
            422,
            "Invalid",
            'CustomResourceDefinition.apiextensions.k8s.io "boxes.<ns>.example.com" is invalid: spec.validation.openAPIV3Schema.properties[spec].properties[x].items: Required value: must be specified',
        ),
        spec=field(type="array"),
    ),
    refused(
        "both_kinds_of_properties",
        fails(
            422,
            "Invalid",
            'CustomResourceDefinition.apiextensions.k8s.io "boxes.<ns>.example.com" is invalid: spec.validation.openAPIV3Schema.properties[spec].properties[x].additionalProperties: Forbidden: additionalProperties and properties are mutual exclusive',
        ),
        spec=field(type="object", properties={"a": {"type": "string"}}, additionalProperties={"type": "string"}),
    ),
    refused("additional_false", {}, spec=field(type="object", additionalProperties=False)),
    refused(
        "unique_items",
        fails(
            422,
            "Invalid",
            'CustomResourceDefinition.apiextensions.k8s.io "boxes.<ns>.example.com" is invalid: spec.validation.openAPIV3Schema.properties[spec].properties[x].uniqueItems: Forbidden: uniqueItems cannot be set to true since the runtime complexity becomes quadratic',
        ),
        spec=field(type="array", items={"type": "string"}, uniqueItems=True),
    ),
    refused(
        "reference",
        fails(
            422,
            "Invalid",
            'CustomResourceDefinition.apiextensions.k8s.io "boxes.<ns>.example.com" is invalid: spec.validation.openAPIV3Schema.properties[spec].properties[x].$ref: Forbidden: $ref is not supported',
        ),
        spec=field(**{"$ref": "#/x"}),
    ),
    refused(
        "type_below_not",
        fails(
            422,
            "Invalid",
            'CustomResourceDefinition.apiextensions.k8s.io "boxes.<ns>.example.com" is invalid: spec.validation.openAPIV3Schema.properties[spec].properties[x].not.type: Forbidden: must be empty to be structural',
        ),
        spec=field(type="string", **{"not": {"type": "string"}}),
    ),
    refused("unknown_below_any_of", {}, spec={"type": "object", "anyOf": [{"properties": {"q": {"minimum": 1}}}]}),
    refused(
        "default_of_wrong_type",
        fails(
            422,
            "Invalid",
            'CustomResourceDefinition.apiextensions.k8s.io "boxes.<ns>.example.com" is invalid: spec.validation.openAPIV3Schema.properties[spec].properties[x].default: Invalid value: "integer":  in body must be of type string: "integer"',
        ),
        spec=field(type="string", default=1),
    ),
    refused(
        "default_invalid",
        fails(
            422,
            "Invalid",
            'CustomResourceDefinition.apiextensions.k8s.io "boxes.<ns>.example.com" is invalid: spec.validation.openAPIV3Schema.properties[spec].properties[x].default: Invalid value: 1:  in body should be greater than or equal to 5',
        ),
        spec=field(type="integer", minimum=5, default=1),
    ),
    refused(
        "default_unknown_field",
        fails(
            422,
            "Invalid",
            'CustomResourceDefinition.apiextensions.k8s.io "boxes.<ns>.example.com" is invalid: spec.validation.openAPIV3Schema.properties[spec].properties[x].default: Invalid value: {"q":1}: must not have unknown fields',
        ),
        spec=field(type="object", default={"q": 1}, properties={"a": {"type": "string"}}),
    ),
    refused(
        "list_map_without_keys",
        fails(
            422,
            "Invalid",
            'CustomResourceDefinition.apiextensions.k8s.io "boxes.<ns>.example.com" is invalid: spec.validation.openAPIV3Schema.properties[spec].properties[x].x-kubernetes-list-map-keys: Required value: must not be empty if x-kubernetes-list-type is map',
        ),
        spec=field(type="array", items={"type": "object"}, **{"x-kubernetes-list-type": "map"}),
    ),
    refused(
        "list_map_key_undefined",
        fails(
            422,
            "Invalid",
            'CustomResourceDefinition.apiextensions.k8s.io "boxes.<ns>.example.com" is invalid: spec.validation.openAPIV3Schema.properties[spec].properties[x].x-kubernetes-list-map-keys: Invalid value: ["k"]: entries must all be names of item properties',
        ),
        spec=field(
            type="array",
            items={"type": "object", "properties": {"a": {"type": "string"}}},
            **{"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"]},
        ),
    ),
    refused(
        "list_map_key_optional",
        fails(
            422,
            "Invalid",
            'CustomResourceDefinition.apiextensions.k8s.io "boxes.<ns>.example.com" is invalid: spec.validation.openAPIV3Schema.properties[spec].properties[x].items.properties[k].default: Required value: this property is in x-kubernetes-list-map-keys, so it must have a default or be a required property',
        ),
        spec=field(
            type="array",
            items={"type": "object", "properties": {"k": {"type": "string"}}},
            **{"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"]},
        ),
    ),
    refused(
        "bad_list_type",
        fails(
            422,
            "Invalid",
            'CustomResourceDefinition.apiextensions.k8s.io "boxes.<ns>.example.com" is invalid: spec.validation.openAPIV3Schema.properties[spec].properties[x].x-kubernetes-list-type: Unsupported value: "frob": supported values: "atomic", "set", "map"',
        ),
        spec=field(type="array", items={"type": "string"}, **{"x-kubernetes-list-type": "frob"}),
    ),
    refused(
        "list_type_of_an_object",
        fails(
            422,
            "Invalid",
            'CustomResourceDefinition.apiextensions.k8s.io "boxes.<ns>.example.com" is invalid: spec.validation.openAPIV3Schema.properties[spec].properties[x].type: Invalid value: "object": must be array if x-kubernetes-list-type is specified',
        ),
        spec=field(type="object", **{"x-kubernetes-list-type": "set"}),
    ),
    refused(
        "set_of_objects",
        fails(
            422,
            "Invalid",
            'CustomResourceDefinition.apiextensions.k8s.io "boxes.<ns>.example.com" is invalid: spec.validation.openAPIV3Schema.properties[spec].properties[x].items.x-kubernetes-map-type: Invalid value: null: must be atomic as item of a list with x-kubernetes-list-type=set',
        ),
        spec=field(type="array", items={"type": "object"}, **{"x-kubernetes-list-type": "set"}),
    ),
    refused(
        "preserve_false",
        fails(
            422,
            "Invalid",
            'CustomResourceDefinition.apiextensions.k8s.io "boxes.<ns>.example.com" is invalid: spec.validation.openAPIV3Schema.properties[spec].properties[x].x-kubernetes-preserve-unknown-fields: Invalid value: false: must be true or undefined',
        ),
        spec=field(type="object", **{"x-kubernetes-preserve-unknown-fields": False}),
    ),
    refused(
        "preserve_all",
        fails(
            422,
            "Invalid",
            'CustomResourceDefinition.apiextensions.k8s.io "boxes.<ns>.example.com" is invalid: spec.preserveUnknownFields: Invalid value: true: cannot set to true, set x-kubernetes-preserve-unknown-fields to true in spec.versions[*].schema instead',
        ),
        {"spec.preserveUnknownFields": True},
    ),
    refused("int_or_string_with_type", {}, spec=field(type="integer", **{"x-kubernetes-int-or-string": True})),
    refused(
        "embedded_without_object",
        fails(
            422,
            "Invalid",
            'CustomResourceDefinition.apiextensions.k8s.io "boxes.<ns>.example.com" is invalid: [spec.validation.openAPIV3Schema.properties[spec].properties[x].properties: Required value: must not be empty if x-kubernetes-embedded-resource is true without x-kubernetes-preserve-unknown-fields, spec.validation.openAPIV3Schema.properties[spec].properties[x].type: Invalid value: "string": must be object if x-kubernetes-embedded-resource is true]',
        ),
        spec=field(type="string", **{"x-kubernetes-embedded-resource": True}),
    ),
    refused(
        "rule_syntax",
        fails(
            422,
            "Invalid",
            'CustomResourceDefinition.apiextensions.k8s.io "boxes.<ns>.example.com" is invalid: spec.validation.openAPIV3Schema.properties[spec].properties[x].x-kubernetes-validations[0].rule: Invalid value: {"Rule":"self \\u003e","Message":"","MessageExpression":"","Reason":null,"FieldPath":"","OptionalOldSelf":null}: compilation failed: ERROR: <input>:1:7: Syntax error: mismatched input \'<EOF>\' expecting {\'[\', \'{\', \'(\', \'.\', \'-\', \'!\', \'true\', \'false\', \'null\', NUM_FLOAT, NUM_INT, NUM_UINT, STRING, BYTES, IDENTIFIER}\n | self >\n | ......^',
        ),
        spec=field(type="integer", **{RULE: [{"rule": "self >"}]}),
    ),
    refused(
        "rule_type",
        fails(
            422,
            "Invalid",
            'CustomResourceDefinition.apiextensions.k8s.io "boxes.<ns>.example.com" is invalid: spec.validation.openAPIV3Schema.properties[spec].properties[x].x-kubernetes-validations[0].rule: Invalid value: {"Rule":"self","Message":"","MessageExpression":"","Reason":null,"FieldPath":"","OptionalOldSelf":null}: cel expression must evaluate to a bool',
        ),
        spec=field(type="integer", **{RULE: [{"rule": "self"}]}),
    ),
    refused(
        "rule_unknown_field",
        fails(
            422,
            "Invalid",
            'CustomResourceDefinition.apiextensions.k8s.io "boxes.<ns>.example.com" is invalid: spec.validation.openAPIV3Schema.properties[spec].x-kubernetes-validations[0].rule: Invalid value: {"Rule":"self.q == \'x\'","Message":"","MessageExpression":"","Reason":null,"FieldPath":"","OptionalOldSelf":null}: compilation failed: ERROR: <input>:1:5: undefined field \'q\'\n | self.q == \'x\'\n | ....^',
        ),
        spec={**TEXT, RULE: [{"rule": "self.q == 'x'"}]},
    ),
    refused(
        "rule_compares_types",
        fails(
            422,
            "Invalid",
            'CustomResourceDefinition.apiextensions.k8s.io "boxes.<ns>.example.com" is invalid: spec.validation.openAPIV3Schema.properties[spec].properties[x].x-kubernetes-validations[0].rule: Invalid value: {"Rule":"self == \'x\'","Message":"","MessageExpression":"","Reason":null,"FieldPath":"","OptionalOldSelf":null}: compilation failed: ERROR: <input>:1:6: found no matching overload for \'_==_\' applied to \'(int, string)\'\n | self == \'x\'\n | .....^',
        ),
        spec=field(type="integer", **{RULE: [{"rule": "self == 'x'"}]}),
    ),
    refused(
        "rule_empty",
        fails(
            422,
            "Invalid",
            'CustomResourceDefinition.apiextensions.k8s.io "boxes.<ns>.example.com" is invalid: spec.validation.openAPIV3Schema.properties[spec].properties[x].x-kubernetes-validations[0].rule: Required value: rule is not specified',
        ),
        spec=field(type="integer", **{RULE: [{"rule": ""}]}),
    ),
    refused(
        "rule_bad_reason",
        fails(
            422,
            "Invalid",
            'CustomResourceDefinition.apiextensions.k8s.io "boxes.<ns>.example.com" is invalid: spec.validation.openAPIV3Schema.properties[spec].properties[x].x-kubernetes-validations[0].reason: Unsupported value: "Frob": supported values: "FieldValueDuplicate", "FieldValueForbidden", "FieldValueInvalid", "FieldValueRequired"',
        ),
        spec=field(type="integer", **{RULE: [{"rule": "self > 1", "reason": "Frob"}]}),
    ),
    refused(
        "rule_bad_field_path",
        fails(
            422,
            "Invalid",
            'CustomResourceDefinition.apiextensions.k8s.io "boxes.<ns>.example.com" is invalid: spec.validation.openAPIV3Schema.properties[spec].x-kubernetes-validations[0].fieldPath: Invalid value: ".q": must be a valid path',
        ),
        spec={**TEXT, RULE: [{"rule": "has(self.a)", "fieldPath": ".q"}]},
    ),
    refused(
        "rule_too_dear",
        fails(
            422,
            "Invalid",
            'CustomResourceDefinition.apiextensions.k8s.io "boxes.<ns>.example.com" is invalid: [spec.validation.openAPIV3Schema.properties[spec].properties[x].x-kubernetes-validations[0].rule: Forbidden: estimated rule cost exceeds budget by factor of more than 100x (try simplifying the rule, or adding maxItems, maxProperties, and maxLength where arrays, maps, and strings are declared), spec.validation.openAPIV3Schema.properties[spec].properties[x].x-kubernetes-validations[0].rule: Forbidden: contributed to estimated rule cost total exceeding cost limit for entire OpenAPIv3 schema, spec.validation.openAPIV3Schema: Forbidden: x-kubernetes-validations estimated rule cost total for entire OpenAPIv3 schema exceeds budget by factor of more than 100x (try simplifying the rule, or adding maxItems, maxProperties, and maxLength where arrays, maps, and strings are declared)]',
        ),
        spec=field(type="array", items={"type": "string"}, **{RULE: [{"rule": "self.all(x, self.all(y, x == y))"}]}),
    ),
    refused(
        "old_self_in_unordered",
        fails(
            422,
            "Invalid",
            'CustomResourceDefinition.apiextensions.k8s.io "boxes.<ns>.example.com" is invalid: [spec.validation.openAPIV3Schema.properties[spec].properties[x].items.x-kubernetes-validations[0].rule: Forbidden: estimated rule cost exceeds budget by factor of more than 100x (try simplifying the rule, or adding maxItems, maxProperties, and maxLength where arrays, maps, and strings are declared), spec.validation.openAPIV3Schema.properties[spec].properties[x].items.x-kubernetes-validations[0].rule: Invalid value: "self == oldSelf": oldSelf cannot be used on the uncorrelatable portion of the schema within spec.validation.openAPIV3Schema.properties[spec].properties[x], spec.validation.openAPIV3Schema.properties[spec].properties[x].items.x-kubernetes-validations[0].rule: Forbidden: contributed to estimated rule cost total exceeding cost limit for entire OpenAPIv3 schema, spec.validation.openAPIV3Schema: Forbidden: x-kubernetes-validations estimated rule cost total for entire OpenAPIv3 schema exceeds budget by factor of more than 100x (try simplifying the rule, or adding maxItems, maxProperties, and maxLength where arrays, maps, and strings are declared)]',
        ),
        spec=field(type="array", items={"type": "string", RULE: [{"rule": "self == oldSelf"}]}),
    ),
    refused("column_path", {}, additionalPrinterColumns=[{"name": "A", "type": "string", "jsonPath": ".spec["}]),
    refused(
        "column_type",
        fails(
            422,
            "Invalid",
            'CustomResourceDefinition.apiextensions.k8s.io "boxes.<ns>.example.com" is invalid: spec.additionalPrinterColumns[0].type: Invalid value: "frob": must be one of boolean,date,integer,number,string',
        ),
        additionalPrinterColumns=[{"name": "A", "type": "frob", "jsonPath": ".spec.a"}],
    ),
    refused(
        "scale_path",
        fails(
            422,
            "Invalid",
            'CustomResourceDefinition.apiextensions.k8s.io "boxes.<ns>.example.com" is invalid: spec.subresources.scale.specReplicasPath: Invalid value: ".status.x": should be a json path under .spec',
        ),
        subresources={"scale": {"specReplicasPath": ".status.x", "statusReplicasPath": ".status.replicas"}},
    ),
    refused(
        "selectable_path",
        fails(
            422,
            "Invalid",
            'CustomResourceDefinition.apiextensions.k8s.io "boxes.<ns>.example.com" is invalid: spec.selectableFields[0].jsonPath: Invalid value: ".spec.q": is an invalid path: does not refer to a valid field',
        ),
        selectableFields=[{"jsonPath": ".spec.q"}],
    ),
    refused(
        "conversion_strategy",
        fails(
            422,
            "Invalid",
            'CustomResourceDefinition.apiextensions.k8s.io "boxes.<ns>.example.com" is invalid: spec.conversion.strategy: Unsupported value: "Frob": supported values: "None", "Webhook"',
        ),
        {"spec.conversion": {"strategy": "Frob"}},
    ),
    refused(
        "webhook_missing",
        fails(
            422,
            "Invalid",
            'CustomResourceDefinition.apiextensions.k8s.io "boxes.<ns>.example.com" is invalid: [spec.conversion.webhookClientConfig: Required value: required when strategy is set to Webhook, spec.conversion.conversionReviewVersions: Required value]',
        ),
        {"spec.conversion": {"strategy": "Webhook"}},
    ),
    refused("unknown_field", {"@": 201, "spec.frob": GONE}, {"spec.frob": 1}),
    refused(
        "api_approved_missing",
        fails(
            422,
            "Invalid",
            'CustomResourceDefinition.apiextensions.k8s.io "boxes.x.k8s.io" is invalid: metadata.annotations[api-approved.kubernetes.io]: Required value: protected groups must have approval annotation "api-approved.kubernetes.io", see https://github.com/kubernetes/enhancements/pull/1111',
        ),
        {"spec.group": "x.k8s.io", "metadata.name": "boxes.x.k8s.io"},
    ),
    refused(
        "defaults",
        {
            "@": 201,
            "spec": {
                "group": "<ns>.example.com",
                "names": {"plural": "boxes", "singular": "box", "kind": "Box", "listKind": "BoxList"},
                "scope": "Namespaced",
                "versions": [
                    {
                        "name": "v1",
                        "served": True,
                        "storage": True,
                        "schema": {
                            "openAPIV3Schema": {
                                "type": "object",
                                "properties": {
                                    "spec": {"type": "object", "properties": {"a": {"type": "string"}}},
                                    "status": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
                                },
                            }
                        },
                    }
                ],
                "conversion": {"strategy": "None"},
            },
            "metadata.generation": 1,
            "status": {"conditions": None, "acceptedNames": {"plural": "", "kind": ""}, "storedVersions": ["v1"]},
        },
    ),
]


@pytest.mark.parametrize("steps", CASES)
async def test_a_definition(api: Api, steps: tuple[Step, ...]) -> None:
    await run(api, steps)


def box(api: Api, version: str = "v1") -> Kind:
    return Kind(f"{api.ns}.example.com/{version}", "boxes", "Box")


async def serve_box(api: Api, body: dict[str, Any] | None = None) -> Kind:
    """Create the definition in the test's own group and wait until it is served."""
    text = definition("boxes", "Box", TEXT, f"{api.ns}.example.com") if body is None else body
    (await api.create(CRDS, text)).expect(201)
    kind = box(api)
    await api.poll(lambda: answers(api, kind))
    return kind


async def answers(api: Api, kind: Kind) -> bool:
    return (await api.list(kind)).status == 200


async def is_gone(api: Api, kind: Kind) -> bool:
    return (await api.list(kind)).status == 404


async def test_a_definition_is_established_and_served(api: Api) -> None:
    kind = box(api)
    assert (await api.list(kind)).expect(404).text == "404 page not found\n"
    await serve_box(api)
    status = (await api.read(CRDS, f"boxes.{kind.group}"))["status"]
    assert {c["type"]: (c["status"], c["reason"], c["message"]) for c in status["conditions"]} == {
        "NamesAccepted": ("True", "NoConflicts", "no conflicts found"),
        "Established": ("True", "InitialNamesAccepted", "the initial names have been accepted"),
    }
    assert status["storedVersions"] == ["v1"]
    assert status["acceptedNames"] == {"plural": "boxes", "singular": "box", "kind": "Box", "listKind": "BoxList"}
    empty = (await api.list(kind)).expect(200).body
    assert (empty["kind"], empty["apiVersion"], empty["items"]) == ("BoxList", kind.api_version, [])


async def test_names_of_another_definition_are_not_accepted(api: Api) -> None:
    kind = await serve_box(api)
    other = definition("crates", "Box", TEXT, kind.group)
    (await api.create(CRDS, other)).expect(201)

    async def judged() -> Any:
        conditions = (await api.read(CRDS, f"crates.{kind.group}")).get("status", {}).get("conditions") or []
        return {c["type"]: (c["status"], c["reason"], c["message"]) for c in conditions if c["type"] in ("NamesAccepted", "Established")}

    found = await api.poll(judged)
    assert found["NamesAccepted"] == ("False", "ListKindConflict", '"BoxList" is already in use')
    assert found["Established"] == ("False", "NotAccepted", "not all names are accepted")
    (await api.list(Kind(kind.api_version, "crates", "Box"))).expect(404)


async def test_deleting_a_definition_deletes_its_objects_and_ends_its_watches(api: Api) -> None:
    kind = await serve_box(api)
    await api.made(kind, kind.new("a", spec={"a": "x"}))
    async with api.watch(kind) as watch:
        assert await watch.named(1) == [("ADDED", "a")]
        (await api.delete(CRDS, f"boxes.{kind.group}")).expect(200)
        rest = await watch.rest(timeout_s=10)
    assert [(e["type"], e["object"]["metadata"]["name"]) for e in rest] == [("DELETED", "a")]
    await api.poll(lambda: api.gone(CRDS, f"boxes.{kind.group}"))
    await api.poll(lambda: is_gone(api, kind))
    await serve_box(api)
    assert (await api.list(kind)).items == []


async def test_a_definition_that_is_deleted_waits_for_finalizers_of_objects(api: Api) -> None:
    kind = await serve_box(api)
    await api.made(kind, kind.new("a", finalizers=["x/a"], spec={}))
    (await api.delete(CRDS, f"boxes.{kind.group}")).expect(200)

    async def refused() -> Any:
        reply = await api.create(kind, kind.new("b"))
        return reply if reply.status == 403 else None

    reply = await api.poll(refused)
    why = "create not allowed while custom resource definition is terminating"
    assert (reply.reason, reply.message) == ("Forbidden", f'boxes.{kind.group} "b" is forbidden: {why}')

    async def deleting() -> bool:
        return "deletionTimestamp" in (await api.read(kind, "a"))["metadata"]

    await api.poll(deleting)
    (await api.patch(kind, "a", {"metadata": {"finalizers": None}})).expect(200)
    await api.poll(lambda: api.gone(CRDS, f"boxes.{kind.group}"), timeout_s=15)


async def test_selectable_fields_select(api: Api) -> None:
    body = definition("boxes", "Box", TEXT, f"{api.ns}.example.com", selectableFields=[{"jsonPath": ".spec.a"}])
    kind = await serve_box(api, body)
    for name, spec in (("a", {"a": "x"}), ("b", {"a": "y"}), ("c", {})):
        await api.made(kind, kind.new(name, spec=spec))
    assert (await api.list(kind, fieldSelector="spec.a=x")).names == ["a"]
    assert (await api.list(kind, fieldSelector="spec.a!=x")).names == ["b", "c"]
    assert (await api.list(kind, fieldSelector="spec.a=")).names == ["c"]
    refused = await api.list(kind, fieldSelector="spec.b=x")
    refused.expect(400, "BadRequest", "field label not supported: spec.b")


async def test_a_schema_that_changes_judges_the_next_write(api: Api) -> None:
    kind = await serve_box(api)
    await api.made(kind, kind.new("a", spec={"a": "long"}))
    change = [{"op": "add", "path": "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/a/maxLength", "value": 2}]
    (await api.patch(CRDS, f"boxes.{kind.group}", change, "json")).expect(200)

    async def refused() -> bool:
        return (await api.create(kind, kind.new("probe", spec={"a": "long"}), dryRun="All")).status == 422

    await api.poll(refused)
    # What was valid before may stay while it does not change.
    (await api.patch(kind, "a", {"metadata": {"labels": {"l": "m"}}})).expect(200)
    reply = await api.patch(kind, "a", {"spec": {"a": "longer"}})
    reply.expect(422, "Invalid", f'Box.{kind.group} "a" is invalid: spec.a: Too long: may not be more than 2 bytes')


async def test_group_scope_and_names_are_fixed(api: Api) -> None:
    kind = await serve_box(api)
    name = f"boxes.{kind.group}"
    for change, field_name in (({"scope": "Cluster"}, "spec.scope"), ({"names": {"kind": "Other"}}, "spec.names.kind")):
        reply = await api.patch(CRDS, name, {"spec": change})
        reply.expect(422, "Invalid")
        assert field_name in [f for f, _ in reply.causes]
