"""JSON merge patches (RFC 7386), and what a patch may not change."""
# ruff: noqa: E501 - messages of the server stand whole, to be found by searching.

from typing import Any

import pytest

from tests.contract.client import Api
from tests.contract.rows import ANY, GONE, Step, case, ends, fails, get, patch, post, run

BASE = post("configmaps/a", "{data: {a: '1', b: '2'}, metadata: {labels: {l: x, m: y}, finalizers: [x/a, x/b]}}")
MAKE_POD = post("pods/p", "{spec: {containers: [{name: a, image: i, args: [x, y]}, {name: b, image: i}]}}")
MAKE_DEPLOYMENT = post(
    "deployments/d",
    "{spec: {selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec: {containers: [{name: c, image: i}]}}}}",
)
MAKE_THING = post("things/t", "{spec: {number: 3, list: [x, y], map: [{name: a, value: 1}, {name: b, value: 2}]}, status: {phase: A}}")


def on_map(name: str, body: Any, expected: Any, **more: Any) -> Any:
    return case(name, BASE, patch("merge", "configmaps/a", body, expected, **more))


CASES = [
    on_map("set", "{data: {c: '3'}}", {"data": {"a": "1", "b": "2", "c": "3"}}),
    on_map("null_deletes", "{data: {a: null}}", {"data": {"b": "2"}}),
    on_map("null_of_absent", "{data: {z: null}}", {"metadata.resourceVersion": "<0.metadata.resourceVersion>"}),
    on_map("null_of_map", "{data: null}", {"data": GONE}),
    on_map(
        "null_within_new_map", "{binaryData: {z: null}}", {"binaryData": GONE, "metadata.resourceVersion": "<0.metadata.resourceVersion>"}
    ),
    on_map("arrays_are_replaced", "{metadata: {finalizers: [x/c]}}", {"metadata.finalizers": ["x/c"]}),
    on_map("empty_patch", "{}", {"metadata.resourceVersion": "<0.metadata.resourceVersion>"}),
    on_map("labels", "{metadata: {labels: {l: null, n: z}}}", {"metadata.labels": {"m": "y", "n": "z"}}),
    on_map("all_labels", "{metadata: {labels: null}}", {"metadata.labels": GONE}),
    on_map(
        "type_change",
        "{data: [a]}",
        fails(422, "Invalid", ends("json: cannot unmarshal array into Go struct field ConfigMap.data of type map[string]string")),
    ),
    on_map(
        "number_for_string",
        "{data: {a: 1}}",
        fails(422, "Invalid", ends("json: cannot unmarshal number into Go struct field ConfigMap.data of type string")),
    ),
    on_map(
        "object_for_string",
        "{data: {a: {b: c}}}",
        fails(422, "Invalid", ends("json: cannot unmarshal object into Go struct field ConfigMap.data of type string")),
    ),
    on_map(
        "not_an_object",
        b"[]",
        fails(400, "BadRequest", "error decoding patch: json: cannot unmarshal array into Go value of type map[string]interface {}"),
    ),
    on_map("null_body", b"null", fails(400, "BadRequest", "Invalid JSON Patch")),
    on_map(
        "string_body",
        b'"x"',
        fails(400, "BadRequest", "error decoding patch: json: cannot unmarshal string into Go value of type map[string]interface {}"),
    ),
    on_map("bad_json", b"{", fails(400, "BadRequest", "error decoding patch: unexpected end of JSON input")),
    on_map(
        "yaml_body",
        b"data: {a: '7'}",
        fails(400, "BadRequest", "error decoding patch: invalid character 'd' looking for beginning of value"),
    ),
    on_map("kind_changed", "{kind: Secret}", fails(422, "Invalid", ends("illegal base64 data at input byte 0"))),
    on_map(
        "api_version_changed",
        "{apiVersion: v2}",
        fails(422, "Invalid", ends('no kind "ConfigMap" is registered for version "v2" in scheme "pkg/runtime/scheme.go:111"')),
    ),
    on_map(
        "name_changed",
        "{metadata: {name: b}}",
        fails(400, "BadRequest", "the name of the object (b) does not match the name on the URL (a)"),
    ),
    on_map(
        "uid_changed",
        "{metadata: {uid: b}}",
        fails(422, "Invalid", 'ConfigMap "a" is invalid: metadata.uid: Invalid value: "b": field is immutable'),
    ),
    on_map("uid_null", "{metadata: {uid: null}}", {"metadata.uid": "<0.metadata.uid>"}),
    on_map(
        "namespace_changed",
        "{metadata: {namespace: other}}",
        fails(400, "BadRequest", "the namespace of the provided object does not match the namespace sent on the request"),
    ),
    on_map(
        "stale_version",
        "{metadata: {resourceVersion: '1'}, data: {a: '2'}}",
        fails(
            409,
            "Conflict",
            'Operation cannot be fulfilled on configmaps "a": the object has been modified; please apply your changes to the latest version and try again',
            details={"name": "a", "kind": "configmaps"},
        ),
    ),
    on_map("right_version", "{metadata: {resourceVersion: '<0.metadata.resourceVersion>'}, data: {a: '2'}}", {"data.a": "2"}),
    on_map("version_is_no_number", "{metadata: {resourceVersion: x}}", fails(500, GONE, 'strconv.ParseUint: parsing "x": invalid syntax')),
    on_map(
        "deletion_time_ignored",
        "{metadata: {deletionTimestamp: '2020-01-01T00:00:00Z'}}",
        fails(
            422,
            "Invalid",
            'ConfigMap "a" is invalid: metadata.deletionTimestamp: Invalid value: "2020-01-01T00:00:00Z": field is immutable',
        ),
    ),
    on_map("generation_ignored", "{metadata: {generation: 7}, data: {a: '3'}}", {"metadata.generation": GONE}),
    on_map("creation_ignored", "{metadata: {creationTimestamp: null}}", {"metadata.creationTimestamp": "<0.metadata.creationTimestamp>"}),
    on_map("unknown_field", "{frob: 1}", {"frob": GONE}),
    on_map(
        "unknown_field_strict",
        "{frob: 1}",
        {"@": 422, "reason": "Invalid", "message": ends('strict decoding error: unknown field "frob"')},
        query="fieldValidation=Strict",
    ),
    on_map("dry_run", "{data: {a: '9'}}", {"data.a": "9"}, query="dryRun=All"),
    on_map(
        "bad_dry_run",
        "{data: {a: '9'}}",
        {
            "@": 422,
            "reason": "Invalid",
            "message": 'PatchOptions.meta.k8s.io "" is invalid: dryRun: Unsupported value: ["Some"]: supported values: "All"',
        },
        query="dryRun=Some",
    ),
    on_map(
        "force_is_for_apply_only",
        "{data: {a: '9'}}",
        {
            "@": 422,
            "reason": "Invalid",
            "message": 'PatchOptions.meta.k8s.io "" is invalid: force: Forbidden: may not be specified for non-apply patch',
        },
        query="force=true",
    ),
    on_map(
        "field_manager",
        "{data: {a: '9'}}",
        {
            "@owned": [
                'contract Update: data/. data/b metadata/finalizers/. metadata/finalizers/v:"x/a" metadata/finalizers/v:"x/b" metadata/labels/. metadata/labels/l metadata/labels/m',
                "me Update: data/a",
            ]
        },
        query="fieldManager=me",
    ),
    on_map(
        "long_field_manager",
        "{data: {a: '9'}}",
        {
            "@": 422,
            "reason": "Invalid",
            "message": 'PatchOptions.meta.k8s.io "" is invalid: fieldManager: Too long: may not be more than 128 bytes',
        },
        query="fieldManager=" + "m" * 129,
    ),
    case(
        "dry_run_changes_nothing",
        BASE,
        patch("merge", "configmaps/a", "{data: null}", query="dryRun=All"),
        get("configmaps/a", {"data": {"a": "1", "b": "2"}}),
    ),
    case(
        "missing_object",
        patch(
            "merge",
            "configmaps/q",
            "{data: {a: b}}",
            fails(404, "NotFound", 'configmaps "q" not found', details={"name": "q", "kind": "configmaps"}),
        ),
    ),
    case(
        "container_list",
        MAKE_POD,
        patch(
            "merge",
            "pods/p",
            "{spec: {containers: [{name: a, image: j}]}}",
            fails(422, "Invalid", ANY, causes=[("spec.containers", "FieldValueForbidden")]),
        ),
    ),
    case("image", MAKE_POD, patch("merge", "pods/p", "{spec: {containers: [{name: a, image: j, args: [x, y]}, {name: b, image: i}]}}", {})),
    case("generation_spec", MAKE_DEPLOYMENT, patch("merge", "deployments/d", "{spec: {replicas: 3}}", {"metadata.generation": 2})),
    case("generation_labels", MAKE_DEPLOYMENT, patch("merge", "deployments/d", "{metadata: {labels: {a: c}}}", {"metadata.generation": 1})),
    case(
        "generation_status",
        MAKE_DEPLOYMENT,
        patch("merge", "deployments/d", "{status: {replicas: 3}}", {"metadata.generation": 1, "status": {}}),
    ),
    case(
        "default_returns",
        MAKE_DEPLOYMENT,
        patch("merge", "deployments/d", "{spec: {replicas: null}}", {"spec.replicas": 1, "metadata.generation": 1}),
    ),
    case(
        "selector_immutable",
        MAKE_DEPLOYMENT,
        patch(
            "merge",
            "deployments/d",
            "{spec: {selector: {matchLabels: {a: c}}}}",
            {
                "@": 422,
                "reason": "Invalid",
                "message": 'Deployment.apps "d" is invalid: [spec.template.metadata.labels: Invalid value: {"a":"b"}: `selector` does not match template `labels`, spec.selector: Invalid value: {"matchLabels":{"a":"c"}}: field is immutable]',
            },
        ),
    ),
    case(
        "custom",
        MAKE_THING,
        patch("merge", "things/t", "{spec: {number: 4}}", {"spec.number": 4, "spec.list": ["x", "y"], "metadata.generation": 2}),
    ),
    case(
        "custom_lists_replaced",
        MAKE_THING,
        patch("merge", "things/t", "{spec: {map: [{name: c}]}}", {"spec.map": [{"name": "c", "kind": "plain"}]}),
    ),
    case("custom_null", MAKE_THING, patch("merge", "things/t", "{spec: {number: null}}", {"spec.number": GONE})),
    case(
        "custom_same",
        MAKE_THING,
        patch(
            "merge",
            "things/t",
            "{spec: {number: 3}}",
            {"metadata.generation": 1, "metadata.resourceVersion": "<0.metadata.resourceVersion>"},
        ),
    ),
    case(
        "custom_invalid",
        MAKE_THING,
        patch(
            "merge",
            "things/t",
            "{spec: {number: 0}}",
            {
                "@": 422,
                "reason": "Invalid",
                "message": 'Thing.contract.example.com "t" is invalid: spec.number: Invalid value: 0: spec.number in body should be greater than or equal to 1',
            },
        ),
    ),
    case(
        "custom_wrong_type",
        MAKE_THING,
        patch(
            "merge",
            "things/t",
            "{spec: {number: x}}",
            {
                "@": 422,
                "reason": "Invalid",
                "message": 'Thing.contract.example.com "t" is invalid: spec.number: Invalid value: "string": spec.number in body must be of type integer: "string"',
            },
        ),
    ),
    case(
        "custom_unknown_field_pruned",
        MAKE_THING,
        patch("merge", "things/t", "{spec: {frob: 1}}", {"spec.frob": GONE, "metadata.generation": 1}),
    ),
    case(
        "custom_unknown_field_strict",
        MAKE_THING,
        patch(
            "merge",
            "things/t",
            "{spec: {frob: 1}}",
            {"@": 422, "reason": "Invalid", "message": ends('strict decoding error: unknown field "spec.frob"')},
            query="fieldValidation=Strict",
        ),
    ),
    case(
        "custom_name_changed",
        MAKE_THING,
        patch(
            "merge",
            "things/t",
            "{metadata: {name: u}}",
            {"@": 400, "reason": "BadRequest", "message": "the name of the object (u) does not match the name on the URL (t)"},
        ),
    ),
    case(
        "custom_uid_changed",
        MAKE_THING,
        patch(
            "merge",
            "things/t",
            "{metadata: {uid: u}}",
            {
                "@": 422,
                "reason": "Invalid",
                "message": 'Thing.contract.example.com "t" is invalid: metadata.uid: Invalid value: "u": field is immutable',
            },
        ),
    ),
    case(
        "custom_kind_changed",
        MAKE_THING,
        patch(
            "merge",
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
        "custom_stale",
        MAKE_THING,
        patch(
            "merge",
            "things/t",
            "{metadata: {resourceVersion: '1'}, spec: {number: 4}}",
            {
                "@": 409,
                "reason": "Conflict",
                "message": 'Operation cannot be fulfilled on things.contract.example.com "t": the object has been modified; please apply your changes to the latest version and try again',
            },
        ),
    ),
]


@pytest.mark.parametrize("steps", CASES)
async def test_a_merge_patch(api: Api, steps: tuple[Step, ...]) -> None:
    await run(api, steps)
