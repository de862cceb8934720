"""Structural schemas of custom resources: each keyword with its message, pruning, unknown fields."""
# ruff: noqa: E501 - messages of the server stand whole, to be found by searching.

from typing import Any

import pytest

from tests.contract.client import Api
from tests.contract.rows import ANY, GONE, Step, case, fails, post, put, run


def refused(name: str, spec: str, expected: Any) -> Any:
    return case(name, post("things/t", f"{{spec: {spec}}}", expected))


def kept(name: str, spec: str, expected: Any) -> Any:
    return case(name, post("things/t", f"{{spec: {spec}}}", {f"spec.{k}": v for k, v in expected.items()}))


CASES = [
    refused(
        "minimum",
        "{number: 0}",
        fails(
            422,
            "Invalid",
            'Thing.contract.example.com "t" is invalid: spec.number: Invalid value: 0: spec.number in body should be greater than or equal to 1',
            causes=[("spec.number", "FieldValueInvalid")],
            details={
                "name": "t",
                "group": "contract.example.com",
                "kind": "Thing",
                "causes": [
                    {
                        "reason": "FieldValueInvalid",
                        "message": "Invalid value: 0: spec.number in body should be greater than or equal to 1",
                        "field": "spec.number",
                    }
                ],
            },
        ),
    ),
    refused(
        "maximum",
        "{number: 11}",
        fails(
            422,
            "Invalid",
            'Thing.contract.example.com "t" is invalid: spec.number: Invalid value: 11: spec.number in body should be less than or equal to 10',
        ),
    ),
    refused(
        "exclusive_minimum",
        "{open: 1}",
        fails(
            422,
            "Invalid",
            'Thing.contract.example.com "t" is invalid: spec.open: Invalid value: 1: spec.open in body should be greater than 1',
        ),
    ),
    refused(
        "exclusive_maximum",
        "{open: 10}",
        fails(
            422,
            "Invalid",
            'Thing.contract.example.com "t" is invalid: spec.open: Invalid value: 10: spec.open in body should be less than 10',
        ),
    ),
    refused(
        "multiple_of",
        "{even: 3}",
        fails(
            422,
            "Invalid",
            'Thing.contract.example.com "t" is invalid: spec.even: Invalid value: 3: spec.even in body should be a multiple of 2',
        ),
    ),
    refused(
        "int32",
        "{small: 3000000000}",
        fails(
            422,
            "Invalid",
            'Thing.contract.example.com "t" is invalid: <nil>: Invalid value: "": Checked value must be of type integer with format int32 in spec.small',
        ),
    ),
    refused(
        "integer_given_number",
        "{number: 1.5}",
        fails(
            422,
            "Invalid",
            'Thing.contract.example.com "t" is invalid: [spec.number: Invalid value: "number": spec.number in body must be of type integer: "number", <nil>: Invalid value: "": Checked value must be of type integer (default format) in spec.number]',
        ),
    ),
    refused(
        "integer_given_string",
        "{number: '1'}",
        fails(
            422,
            "Invalid",
            'Thing.contract.example.com "t" is invalid: spec.number: Invalid value: "string": spec.number in body must be of type integer: "string"',
        ),
    ),
    refused(
        "integer_given_null",
        "{number: null}",
        {"@": 201, "message": GONE, "spec": {"deep": {"level": 3}, "nulled": "given", "replicas": 1, "whole": "given"}},
    ),
    refused(
        "number_given_string",
        "{ratio: x}",
        fails(
            422,
            "Invalid",
            'Thing.contract.example.com "t" is invalid: spec.ratio: Invalid value: "string": spec.ratio in body must be of type number: "string"',
        ),
    ),
    refused(
        "boolean_given_string",
        "{flag: 'true'}",
        fails(
            422,
            "Invalid",
            'Thing.contract.example.com "t" is invalid: spec.flag: Invalid value: "string": spec.flag in body must be of type boolean: "string"',
        ),
    ),
    refused(
        "string_given_integer",
        "{text: 1}",
        fails(
            422,
            "Invalid",
            'Thing.contract.example.com "t" is invalid: spec.text: Invalid value: "integer": spec.text in body must be of type string: "integer"',
        ),
    ),
    refused(
        "string_given_object",
        "{text: {a: b}}",
        fails(
            422,
            "Invalid",
            'Thing.contract.example.com "t" is invalid: spec.text: Invalid value: "object": spec.text in body must be of type string: "object"',
        ),
    ),
    refused(
        "object_given_list",
        "{inner: [a]}",
        fails(
            422,
            "Invalid",
            'Thing.contract.example.com "t" is invalid: spec.inner: Invalid value: "array": spec.inner in body must be of type object: "array"',
        ),
    ),
    refused(
        "list_given_object",
        "{list: {a: b}}",
        fails(
            422,
            "Invalid",
            'Thing.contract.example.com "t" is invalid: spec.list: Invalid value: "object": spec.list in body must be of type array: "object"',
        ),
    ),
    refused(
        "min_length",
        "{text: a}",
        fails(
            422,
            "Invalid",
            'Thing.contract.example.com "t" is invalid: spec.text: Invalid value: "a": spec.text in body should be at least 2 chars long',
        ),
    ),
    refused(
        "max_length",
        "{text: abcdef}",
        fails(422, "Invalid", 'Thing.contract.example.com "t" is invalid: spec.text: Too long: may not be more than 5 bytes'),
    ),
    refused(
        "pattern",
        "{text: AB}",
        fails(
            422,
            "Invalid",
            'Thing.contract.example.com "t" is invalid: spec.text: Invalid value: "AB": spec.text in body should match \'^[a-z]+$\'',
        ),
    ),
    refused(
        "length_and_pattern",
        "{text: A}",
        fails(
            422,
            "Invalid",
            'Thing.contract.example.com "t" is invalid: spec.text: Invalid value: "A": spec.text in body should be at least 2 chars long',
        ),
    ),
    refused(
        "enum",
        "{choice: c}",
        fails(422, "Invalid", 'Thing.contract.example.com "t" is invalid: spec.choice: Unsupported value: "c": supported values: "a", "b"'),
    ),
    refused(
        "enum_empty",
        "{choice: ''}",
        fails(422, "Invalid", 'Thing.contract.example.com "t" is invalid: spec.choice: Unsupported value: "": supported values: "a", "b"'),
    ),
    refused(
        "date_time",
        "{when: yesterday}",
        fails(
            422,
            "Invalid",
            'Thing.contract.example.com "t" is invalid: spec.when: Invalid value: "yesterday": spec.when in body must be of type date-time: "yesterday"',
        ),
    ),
    refused(
        "ipv4",
        "{address: 1.2.3}",
        fails(
            422,
            "Invalid",
            'Thing.contract.example.com "t" is invalid: spec.address: Invalid value: "1.2.3": spec.address in body must be of type ipv4: "1.2.3"',
        ),
    ),
    refused(
        "uuid",
        "{ident: x}",
        fails(
            422,
            "Invalid",
            'Thing.contract.example.com "t" is invalid: spec.ident: Invalid value: "x": spec.ident in body must be of type uuid: "x"',
        ),
    ),
    refused(
        "min_items",
        "{list: []}",
        fails(
            422,
            "Invalid",
            'Thing.contract.example.com "t" is invalid: spec.list: Invalid value: 0: spec.list in body should have at least 1 items',
        ),
    ),
    refused(
        "max_items",
        "{list: [a, b, c, d]}",
        fails(422, "Invalid", 'Thing.contract.example.com "t" is invalid: spec.list: Too many: 4: must have at most 3 items'),
    ),
    refused(
        "item_type",
        "{list: [a, 1]}",
        fails(
            422,
            "Invalid",
            'Thing.contract.example.com "t" is invalid: spec.list[1]: Invalid value: "integer": spec.list[1] in body must be of type string: "integer"',
        ),
    ),
    refused(
        "min_properties",
        "{pair: {}}",
        fails(
            422,
            "Invalid",
            'Thing.contract.example.com "t" is invalid: spec.pair: Invalid value: 0: spec.pair in body should have at least 1 properties',
        ),
    ),
    refused(
        "max_properties",
        "{pair: {a: 1, b: 2, c: 3}}",
        fails(422, "Invalid", 'Thing.contract.example.com "t" is invalid: spec.pair: Too many: 3: must have at most 2 items'),
    ),
    refused(
        "additional_property_type",
        "{pair: {a: x}}",
        fails(
            422,
            "Invalid",
            'Thing.contract.example.com "t" is invalid: spec.pair.a: Invalid value: "string": spec.pair.a in body must be of type integer: "string"',
        ),
    ),
    refused(
        "int_or_string",
        "{either: 1.5}",
        fails(
            422,
            "Invalid",
            'Thing.contract.example.com "t" is invalid: spec.either: Invalid value: "number": spec.either in body must be of type integer,string: "number"',
        ),
    ),
    refused(
        "int_or_string_boolean",
        "{either: true}",
        fails(
            422,
            "Invalid",
            'Thing.contract.example.com "t" is invalid: spec.either: Invalid value: "boolean": spec.either in body must be of type integer,string: "boolean"',
        ),
    ),
    refused(
        "required", "{inner: {b: x}}", fails(422, "Invalid", 'Thing.contract.example.com "t" is invalid: spec.inner.a: Required value')
    ),
    refused(
        "required_null",
        "{inner: {a: null}}",
        fails(422, "Invalid", 'Thing.contract.example.com "t" is invalid: spec.inner.a: Required value'),
    ),
    refused(
        "set_duplicate",
        "{set: [a, b, a]}",
        fails(422, "Invalid", 'Thing.contract.example.com "t" is invalid: spec.set[2]: Duplicate value: "a"'),
    ),
    refused(
        "map_duplicate",
        "{map: [{name: a}, {name: b}, {name: a, kind: plain}]}",
        fails(422, "Invalid", 'Thing.contract.example.com "t" is invalid: spec.map[2]: Duplicate value: {"kind":"plain","name":"a"}'),
    ),
    refused(
        "map_key_missing",
        "{map: [{value: 1}]}",
        fails(422, "Invalid", 'Thing.contract.example.com "t" is invalid: spec.map[0].name: Required value'),
    ),
    refused(
        "embedded_without_kind",
        "{embedded: {apiVersion: v1}}",
        fails(422, "Invalid", 'Thing.contract.example.com "t" is invalid: spec.embedded.kind: Required value'),
    ),
    refused(
        "embedded_without_version",
        "{embedded: {kind: Pod, metadata: {name: a}}}",
        fails(422, "Invalid", 'Thing.contract.example.com "t" is invalid: spec.embedded.apiVersion: Required value'),
    ),
    refused("embedded_bad_name", "{embedded: {apiVersion: v1, kind: Pod, metadata: {name: A_b}}}", {}),
    refused(
        "embedded_bad_metadata",
        "{embedded: {apiVersion: v1, kind: Pod, metadata: {name: a, labels: [x]}}}",
        fails(
            400,
            "BadRequest",
            'Thing in version "v1" cannot be handled as a Thing: spec.embedded.metadata: Invalid value: {"labels":["x"],"name":"a"}: json: cannot unmarshal array into Go struct field ObjectMeta.labels of type map[string]string',
        ),
    ),
    refused(
        "not",
        "{not: bad}",
        fails(
            422,
            "Invalid",
            'Thing.contract.example.com "t" is invalid: <nil>: Invalid value: "": "spec.not" must not validate the schema (not)',
        ),
    ),
    refused(
        "one_of_none",
        "{oneof: {}}",
        fails(
            422,
            "Invalid",
            'Thing.contract.example.com "t" is invalid: [<nil>: Invalid value: "": "spec.oneof" must validate one and only one schema (oneOf). Found none valid, spec.oneof.a: Required value]',
        ),
    ),
    refused(
        "one_of_both",
        "{oneof: {a: x, b: y}}",
        fails(
            422,
            "Invalid",
            'Thing.contract.example.com "t" is invalid: <nil>: Invalid value: "": "spec.oneof" must validate one and only one schema (oneOf). Found 2 valid alternatives',
        ),
    ),
    refused(
        "any_of",
        "{anyof: {}}",
        fails(
            422,
            "Invalid",
            'Thing.contract.example.com "t" is invalid: [<nil>: Invalid value: "": "spec.anyof" must validate at least one schema (anyOf), spec.anyof.a: Required value]',
        ),
    ),
    refused(
        "all_of",
        "{allof: 9}",
        fails(
            422,
            "Invalid",
            'Thing.contract.example.com "t" is invalid: [spec.allof: Invalid value: 9: spec.allof in body should be less than or equal to 5, <nil>: Invalid value: "": "spec.allof" must validate all the schemas (allOf)]',
        ),
    ),
    refused(
        "known_in_free",
        "{free: {known: x}}",
        fails(
            422,
            "Invalid",
            'Thing.contract.example.com "t" is invalid: spec.free.known: Invalid value: "string": spec.free.known in body must be of type integer: "string"',
        ),
    ),
    refused(
        "several",
        "{number: 0, text: A, choice: z, list: []}",
        fails(
            422,
            "Invalid",
            'Thing.contract.example.com "t" is invalid: [spec.choice: Unsupported value: "z": supported values: "a", "b", spec.number: Invalid value: 0: spec.number in body should be greater than or equal to 1, spec.list: Invalid value: 0: spec.list in body should have at least 1 items, spec.text: Invalid value: "A": spec.text in body should be at least 2 chars long]',
            causes=[
                ("spec.choice", "FieldValueNotSupported"),
                ("spec.number", "FieldValueInvalid"),
                ("spec.list", "FieldValueInvalid"),
                ("spec.text", "FieldValueInvalid"),
            ],
        ),
    ),
    refused(
        "spec_is_a_list",
        "[]",
        fails(
            422,
            "Invalid",
            'Thing.contract.example.com "t" is invalid: [spec: Invalid value: "array": spec in body must be of type object: "array", .spec.replicas: Invalid value: 0: .spec.replicas accessor error: [] is of the type []interface {}, expected map[string]interface{}]',
        ),
    ),
    refused("spec_is_null", "null", {"@": 201, "message": GONE, "spec": GONE}),
    kept(
        "edges",
        "{number: 1, open: 2, even: 4, text: ab, list: [a, b, c]}",
        {"number": 1, "open": 2, "even": 4, "text": "ab", "list": ["a", "b", "c"]},
    ),
    kept("whole_number", "{number: 2.0, ratio: 1}", {"number": 2, "ratio": 1}),
    kept("big_number", "{ratio: 1.5e+300}", {"ratio": 1.5e300}),
    kept("int_or_string_kept", "{either: '1'}", {"either": "1"}),
    kept("nullable", "{maybe: null}", {"maybe": None}),
    kept(
        "map_same_name",
        "{map: [{name: a}, {name: a, kind: other}]}",
        {"map": [{"name": "a", "kind": "plain"}, {"name": "a", "kind": "other"}]},
    ),
    kept(
        "pruned",
        "{frob: 1, inner: {a: x, frob: 2}, map: [{name: a, frob: 3}], one: {a: x, frob: 4}}",
        {"frob": GONE, "inner": {"a": "x", "b": "bee"}, "map.0.frob": GONE, "one": {"a": "x"}},
    ),
    kept(
        "unknown_preserved",
        "{free: {known: 1, other: {deep: [1, {a: null}]}}, any: [1, x, {y: z}]}",
        {"free": {"known": 1, "other": {"deep": [1, {"a": None}]}}, "any": [1, "x", {"y": "z"}]},
    ),
    kept(
        "embedded",
        "{embedded: {apiVersion: v1, kind: Pod, metadata: {name: a, frob: 1}, spec: {x: 1}}}",
        {"embedded": {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}, "spec": {"x": 1}}},
    ),
    kept("date_kept_as_written", "{when: '2024-01-01T00:00:00.5+01:00'}", {"when": "2024-01-01T00:00:00.5+01:00"}),
    kept("unicode_length", "{maybe: 'äöü'}", {"maybe": "äöü"}),
    case("pruned_at_the_root", post("things/t", "{spec: {number: 1}, frob: 1}", {"frob": GONE})),
    case("pruned_in_metadata", post("things/t", "{metadata: {frob: 1}, spec: {number: 1}}", {"metadata.frob": GONE})),
    case(
        "strict",
        post(
            "things/t",
            "{spec: {frob: 1, inner: {a: x, q: 2}}, zap: 1}",
            {
                "@": 400,
                "reason": "BadRequest",
                "message": 'Thing in version "v1" cannot be handled as a Thing: strict decoding error: unknown field "spec.frob", unknown field "spec.inner.q", unknown field "zap"',
            },
            query="fieldValidation=Strict",
        ),
    ),
    case(
        "strict_metadata",
        post(
            "things/t",
            "{metadata: {frob: 1}, spec: {}}",
            {
                "@": 400,
                "reason": "BadRequest",
                "message": 'Thing in version "v1" cannot be handled as a Thing: strict decoding error: unknown field "metadata.frob"',
            },
            query="fieldValidation=Strict",
        ),
    ),
    case(
        "strict_list",
        post(
            "things/t",
            "{spec: {map: [{name: a, q: 2}, {name: b, r: 3}]}}",
            {
                "@": 400,
                "reason": "BadRequest",
                "message": 'Thing in version "v1" cannot be handled as a Thing: strict decoding error: unknown field "spec.map[0].q", unknown field "spec.map[1].r"',
            },
            query="fieldValidation=Strict",
        ),
    ),
    case("strict_preserved", post("things/t", "{spec: {free: {q: 1}}}", {"spec.free": {"q": 1}}, query="fieldValidation=Strict")),
    case("ignored", post("things/t", "{spec: {frob: 1}}", {"spec.frob": GONE}, query="fieldValidation=Ignore")),
    case(
        "unknown_validation",
        post(
            "things/t",
            "{spec: {frob: 1}}",
            {
                "@": 422,
                "reason": "Invalid",
                "message": 'CreateOptions.meta.k8s.io "" is invalid: fieldValidation: Unsupported value: "Frob": supported values: "", "Ignore", "Strict", "Warn"',
            },
            query="fieldValidation=Frob",
        ),
    ),
    case(
        "strict_twice",
        post(
            "/apis/contract.example.com/v1/namespaces/<ns>/things",
            b'{"apiVersion":"contract.example.com/v1","kind":"Thing","metadata":{"name":"t"},"spec":{"number":1,"number":2}}',
            {
                "@": 400,
                "reason": "BadRequest",
                "message": 'Thing in version "v1" cannot be handled as a Thing: strict decoding error: duplicate field "spec.number"',
            },
            query="fieldValidation=Strict",
        ),
    ),
    case(
        "no_kind",
        post(
            "/apis/contract.example.com/v1/namespaces/<ns>/things",
            {"metadata": {"name": "t"}},
            {
                "@": 400,
                "reason": "BadRequest",
                "message": 'the object provided is unrecognized (must be of type Thing): Object \'Kind\' is missing in \'{"metadata": {"name": "t"}}\' ({"metadata": {"name": "t"}})',
            },
        ),
    ),
    case(
        "other_kind",
        post(
            "things/t",
            "{kind: Other}",
            {
                "@": 422,
                "reason": "Invalid",
                "message": 'Other.contract.example.com "t" is invalid: kind: Invalid value: "Other": must be Thing',
            },
        ),
    ),
    case(
        "other_version",
        post(
            "things/t",
            "{apiVersion: contract.example.com/v2}",
            {
                "@": 400,
                "reason": "BadRequest",
                "message": "the API version in the data (contract.example.com/v2) does not match the expected API version (contract.example.com/v1)",
            },
        ),
    ),
    case(
        "metadata_type",
        post(
            "/apis/contract.example.com/v1/namespaces/<ns>/things",
            {"apiVersion": "contract.example.com/v1", "kind": "Thing", "metadata": []},
            {
                "@": 400,
                "reason": "BadRequest",
                "message": 'Thing in version "v1" cannot be handled as a Thing: json: cannot unmarshal array into Go value of type v1.ObjectMeta',
            },
        ),
    ),
    case(
        "labels_type",
        post(
            "things/t",
            "{metadata: {labels: {a: 1}}}",
            {
                "@": 400,
                "reason": "BadRequest",
                "message": 'Thing in version "v1" cannot be handled as a Thing: json: cannot unmarshal number into Go struct field ObjectMeta.labels of type string',
            },
        ),
    ),
    case(
        "bad_label",
        post(
            "things/t",
            "{metadata: {labels: {a: 'b c'}}}",
            {
                "@": 422,
                "reason": "Invalid",
                "message": "Thing.contract.example.com \"t\" is invalid: metadata.labels: Invalid value: \"b c\": a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')",
            },
        ),
    ),
    case(
        "bad_name",
        post(
            "things/T_t",
            "{}",
            {
                "@": 422,
                "reason": "Invalid",
                "message": "Thing.contract.example.com \"T_t\" is invalid: metadata.name: Invalid value: \"T_t\": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')",
            },
        ),
    ),
    case(
        "put_needs_version",
        post("things/t", "{spec: {number: 1}}"),
        put(
            "things/t",
            "{spec: {number: 2}}",
            {
                "@": 422,
                "reason": "Invalid",
                "message": 'things.contract.example.com "t" is invalid: metadata.resourceVersion: Invalid value: 0: must be specified for an update',
            },
        ),
    ),
    case(
        "put",
        post("things/t", "{spec: {number: 1}}"),
        put(
            "things/t",
            "{metadata: {resourceVersion: '<0.metadata.resourceVersion>'}, spec: {number: 2}}",
            {"metadata.generation": 2, "metadata.uid": "<0.metadata.uid>"},
        ),
    ),
    case(
        "clique_required",
        post(
            "podcliques/c",
            "{spec: {}}",
            fails(
                422,
                "Invalid",
                'PodClique.grove.io "c" is invalid: [spec.podSpec: Required value, spec.replicas: Required value, spec.roleName: Required value]',
                causes=[
                    ("spec.podSpec", "FieldValueRequired"),
                    ("spec.replicas", "FieldValueRequired"),
                    ("spec.roleName", "FieldValueRequired"),
                ],
            ),
        ),
    ),
    case(
        "clique_without_spec",
        post("podcliques/c", "{}", {"@": 422, "reason": "Invalid", "message": 'PodClique.grove.io "c" is invalid: spec: Required value'}),
    ),
    case(
        "clique_containers",
        post(
            "podcliques/c",
            "{spec: {roleName: r, replicas: 1, minAvailable: 1, podSpec: {containers: [{image: i}]}}}",
            {
                "@": 422,
                "reason": "Invalid",
                "message": 'PodClique.grove.io "c" is invalid: spec.podSpec.containers[0].name: Required value',
            },
        ),
    ),
    case(
        "clique_ports_default_protocol",
        post(
            "podcliques/c",
            "{spec: {roleName: r, replicas: 1, minAvailable: 1, podSpec: {containers: [{name: a, image: i, ports: [{containerPort: 80}]}]}}}",
            {"spec.podSpec.containers.0.ports": [{"containerPort": 80, "protocol": "TCP"}]},
        ),
    ),
    case(
        "clique_quantity",
        post(
            "podcliques/c",
            "{spec: {roleName: r, replicas: 1, minAvailable: 1, podSpec: {containers: [{name: a, image: i, resources: {limits: {cpu: 1x, memory: 5Gi}}}]}}}",
            {
                "@": 422,
                "reason": "Invalid",
                "message": 'PodClique.grove.io "c" is invalid: spec.podSpec.containers[0].resources.limits.cpu: Invalid value: "1x": spec.podSpec.containers[0].resources.limits.cpu in body should match \'^(\\+|-)?(([0-9]+(\\.[0-9]*)?)|(\\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|([eE](\\+|-)?(([0-9]+(\\.[0-9]*)?)|(\\.[0-9]+))))?$\'',
            },
        ),
    ),
    case(
        "topology_levels",
        post(
            "clustertopologybindings/<ns>",
            "{spec: {levels: []}}",
            {
                "@": 422,
                "reason": "Invalid",
                "message": 'ClusterTopologyBinding.grove.io "<ns>" is invalid: spec.levels: Invalid value: 0: spec.levels in body should have at least 1 items',
            },
        ),
        post(
            "clustertopologybindings/<ns>",
            "{spec: {levels: [{domain: Rack, key: 'a b'}]}}",
            fails(
                422, "Invalid", ANY, causes=[("spec.levels[0].domain", "FieldValueInvalid"), ("spec.levels[0].key", "FieldValueInvalid")]
            ),
        ),
    ),
    case(
        "set_template",
        post(
            "podcliquesets/s",
            "{spec: {}}",
            fails(
                422,
                "Invalid",
                'PodCliqueSet.grove.io "s" is invalid: [spec.template: Required value, <nil>: Invalid value: null: some validation rules were not checked because the object was invalid; correct the existing errors to complete validation]',
                causes=[("spec.template", "FieldValueRequired"), ("<nil>", "FieldValueInvalid")],
            ),
        ),
    ),
    case(
        "set_defaults",
        post(
            "podcliquesets/s",
            "{spec: {replicas: 1, template: {cliques: [{name: a, spec: {roleName: r, replicas: 1, podSpec: {containers: [{name: a, image: i}]}}}]}}}",
            {
                "@": 201,
                "message": GONE,
                "spec": {
                    "replicas": 1,
                    "template": {
                        "cliqueStartupType": "CliqueStartupTypeAnyOrder",
                        "cliques": [
                            {
                                "name": "a",
                                "spec": {"podSpec": {"containers": [{"image": "i", "name": "a"}]}, "replicas": 1, "roleName": "r"},
                            }
                        ],
                    },
                },
            },
        ),
    ),
    case(
        "gang_pods",
        post(
            "podgangs/g",
            "{spec: {podgroups: [{name: a, minReplicas: 1, podReferences: [{name: p}]}]}}",
            {
                "@": 422,
                "reason": "Invalid",
                "message": 'PodGang.scheduler.grove.io "g" is invalid: spec.podgroups[0].podReferences[0].namespace: Required value',
            },
        ),
    ),
    case(
        "placement_times",
        post(
            "gangplacements/g",
            "{spec: {deadline: soon, decisionID: d, epoch: x, pods: []}}",
            fails(
                422,
                "Invalid",
                'GangPlacement.scheduling.grovekeeper.io "g" is invalid: [spec.epoch: Invalid value: "string": spec.epoch in body must be of type integer: "string", spec.deadline: Invalid value: "soon": spec.deadline in body must be of type date-time: "soon"]',
                causes=[("spec.epoch", "FieldValueTypeInvalid"), ("spec.deadline", "FieldValueTypeInvalid")],
            ),
        ),
    ),
]


@pytest.mark.parametrize("steps", CASES)
async def test_a_schema(api: Api, steps: tuple[Step, ...]) -> None:
    await run(api, steps)
