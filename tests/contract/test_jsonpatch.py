"""JSON patches (RFC 6902)."""
# ruff: noqa: E501 - messages of the server stand whole, to be found by searching.

from typing import Any

import pytest

from tests.contract.client import Api
from tests.contract.kinds import CONFIGMAPS, configmap
from tests.contract.rows import ANY, GONE, Step, case, ends, fails, patch, post, run

BASE = post("configmaps/a", "{data: {a: '1', b: '2'}, metadata: {labels: {l: x}, annotations: {a/b: y}}}")
MAKE_POD = post("pods/p", "{spec: {containers: [{name: a, image: i, args: [x, y]}], schedulingGates: [{name: g}, {name: h}]}}")


def ops(*rows: str) -> list[dict[str, Any]]:
    """Operations, each as `op path [value or from]`."""
    out: list[dict[str, Any]] = []
    for row in rows:
        op, path, *rest = row.split(" ", 2)
        out.append({"op": op, "path": path} | ({("from" if op in ("move", "copy") else "value"): rest[0]} if rest else {}))
    return out


def on_map(name: str, rows: list[Any], expected: dict[str, Any]) -> Any:
    return case(name, BASE, patch("json", "configmaps/a", rows, expected))


CASES = [
    on_map("add", ops("add /data/c 3"), {"data": {"a": "1", "b": "2", "c": "3"}}),
    on_map("add_over", ops("add /data/a 9"), {"data": {"a": "9", "b": "2"}}),
    on_map("remove", ops("remove /data/a"), {"data": {"b": "2"}}),
    on_map("replace", ops("replace /data/a 9"), {"data": {"a": "9", "b": "2"}}),
    on_map("move", ops("move /data/c /data/a"), {"data": {"b": "2", "c": "1"}}),
    on_map("copy", ops("copy /data/c /data/a"), {"data": {"a": "1", "b": "2", "c": "1"}}),
    on_map("test", ops("test /data/a 1", "remove /data/a"), {"data": {"b": "2"}}),
    on_map("escapes", ops("remove /metadata/annotations/a~1b"), {"metadata.annotations": GONE}),
    on_map("whole_map", [{"op": "replace", "path": "/data", "value": {"z": "1"}}], {"data": {"z": "1"}}),
    on_map("nothing", [], {"data": {"a": "1", "b": "2"}, "metadata.resourceVersion": "<0.metadata.resourceVersion>"}),
    on_map("same_value", ops("replace /data/a 1"), {"metadata.resourceVersion": "<0.metadata.resourceVersion>"}),
    on_map(
        "test_fails",
        ops("test /data/a 7"),
        fails(422, "Invalid", "the server rejected our request due to an error in our request", details={}),
    ),
    on_map("test_missing", ops("test /data/q 7"), fails(422, "Invalid", "the server rejected our request due to an error in our request")),
    on_map("test_null_missing", [{"op": "test", "path": "/data/q", "value": None}], {}),
    on_map(
        "remove_missing", ops("remove /data/q"), fails(422, "Invalid", "the server rejected our request due to an error in our request")
    ),
    on_map("replace_missing", ops("replace /data/q 1"), {"data": {"a": "1", "b": "2", "q": "1"}}),
    on_map(
        "add_below_missing",
        ops("add /binaryData/q 1"),
        fails(422, "Invalid", "the server rejected our request due to an error in our request"),
    ),
    on_map(
        "move_missing", ops("move /data/c /data/q"), fails(422, "Invalid", "the server rejected our request due to an error in our request")
    ),
    on_map("copy_missing", ops("copy /data/c /data/q"), {"data": {"a": "1", "b": "2", "c": ""}}),
    on_map("unknown_op", ops("frob /data/q"), fails(422, "Invalid", "the server rejected our request due to an error in our request")),
    on_map(
        "no_path", [{"op": "add", "value": "1"}], fails(422, "Invalid", "the server rejected our request due to an error in our request")
    ),
    on_map("no_value", [{"op": "add", "path": "/data/q"}], {}),
    on_map(
        "pointer_without_slash", ops("add data 1"), fails(422, "Invalid", "the server rejected our request due to an error in our request")
    ),
    on_map("null_value", [{"op": "add", "path": "/data/a", "value": None}], {"@": 200, "data": {"a": "", "b": "2"}}),
    on_map(
        "wrong_type",
        [{"op": "add", "path": "/data", "value": [1]}],
        fails(422, "Invalid", ends("json: cannot unmarshal array into Go struct field ConfigMap.data of type map[string]string")),
    ),
    on_map(
        "wrong_type_inside",
        [{"op": "add", "path": "/data/a", "value": 1}],
        fails(422, "Invalid", ends("json: cannot unmarshal number into Go struct field ConfigMap.data of type string")),
    ),
    on_map(
        "name_changed",
        ops("replace /metadata/name b"),
        fails(400, "BadRequest", "the name of the object (b) does not match the name on the URL (a)"),
    ),
    on_map(
        "uid_changed",
        ops("replace /metadata/uid b"),
        fails(422, "Invalid", 'ConfigMap "a" is invalid: metadata.uid: Invalid value: "b": field is immutable'),
    ),
    on_map(
        "namespace_changed",
        ops("replace /metadata/namespace b"),
        fails(400, "BadRequest", "the namespace of the provided object does not match the namespace sent on the request"),
    ),
    on_map(
        "stale_version",
        ops("replace /metadata/resourceVersion 1"),
        fails(
            409,
            "Conflict",
            'Operation cannot be fulfilled on configmaps "a": the object has been modified; please apply your changes to the latest version and try again',
        ),
    ),
    on_map("right_version", ops("test /metadata/uid <0.metadata.uid>", "add /data/c 3"), {"data.c": "3"}),
    on_map(
        "bad_label",
        ops("add /metadata/labels/l a_%"),
        fails(
            422,
            "Invalid",
            "ConfigMap \"a\" is invalid: metadata.labels: Invalid value: \"a_%\": a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')",
            causes=[
                ("metadata.labels", "FieldValueInvalid"),
                ("metadata.labels", "FieldValueInvalid"),
                ("metadata.labels", "FieldValueInvalid"),
                ("metadata.labels", "FieldValueInvalid"),
            ],
        ),
    ),
    on_map("unknown_field", ops("add /frob 1"), {"frob": GONE}),
    on_map("creation_time", ops("replace /metadata/creationTimestamp 2020-01-01T00:00:00Z"), {"metadata.creationTimestamp": ANY}),
    case("missing_object", patch("json", "configmaps/q", ops("add /data/a 1"), fails(404, "NotFound", 'configmaps "q" not found'))),
    case(
        "object_as_body",
        BASE,
        patch(
            "json",
            "configmaps/a",
            {"data": {}},
            {
                "@": 400,
                "reason": "BadRequest",
                "message": "error decoding patch: json: cannot unmarshal object into Go value of type []handlers.jsonPatchOp",
            },
        ),
    ),
    case(
        "unknown_type",
        BASE,
        patch("application/json", "configmaps/a", [], fails(415, "UnsupportedMediaType", "415: Unsupported Media Type")),
    ),
    case(
        "array_wrong_type",
        MAKE_POD,
        patch(
            "json",
            "pods/p",
            ops("add /metadata/finalizers x"),
            {
                "@": 422,
                "reason": "Invalid",
                "message": ends("json: cannot unmarshal string into Go struct field ObjectMeta.metadata.finalizers of type []string"),
            },
        ),
    ),
    case(
        "array_remove", MAKE_POD, patch("json", "pods/p", ops("remove /spec/schedulingGates/0"), {"spec.schedulingGates": [{"name": "h"}]})
    ),
    case(
        "array_beyond",
        MAKE_POD,
        patch(
            "json",
            "pods/p",
            ops("remove /spec/schedulingGates/5"),
            fails(422, "Invalid", "the server rejected our request due to an error in our request"),
        ),
    ),
    case(
        "array_negative",
        MAKE_POD,
        patch("json", "pods/p", ops("remove /spec/schedulingGates/-1"), {"@": 200, "spec.schedulingGates": [{"name": "g"}]}),
    ),
    case(
        "array_word",
        MAKE_POD,
        patch(
            "json",
            "pods/p",
            ops("remove /spec/schedulingGates/x"),
            fails(422, "Invalid", "the server rejected our request due to an error in our request"),
        ),
    ),
    case(
        "array_dash",
        MAKE_POD,
        patch("json", "pods/p", [{"op": "add", "path": "/metadata/finalizers", "value": ["x/a"]}], {"metadata.finalizers": ["x/a"]}),
        patch("json", "pods/p", ops("add /metadata/finalizers/- x/c"), {"metadata.finalizers": ["x/a", "x/c"]}),
        patch("json", "pods/p", ops("add /metadata/finalizers/1 x/b"), {"metadata.finalizers": ["x/a", "x/b", "x/c"]}),
        patch(
            "json",
            "pods/p",
            ops("remove /metadata/finalizers/-"),
            fails(422, "Invalid", "the server rejected our request due to an error in our request"),
        ),
    ),
    case(
        "invalid_result",
        MAKE_POD,
        patch(
            "json", "pods/p", ops("replace /spec/containers/0/name b"), fails(422, "Invalid", ANY, causes=[("spec", "FieldValueForbidden")])
        ),
    ),
    case(
        "custom_object",
        post("things/a", "{spec: {number: 3, list: [x]}}"),
        patch("json", "things/a", ops("add /spec/list/- y"), {"spec.list": ["x", "y"], "metadata.generation": 2}),
        patch(
            "json",
            "things/a",
            [{"op": "replace", "path": "/spec/number", "value": 30}],
            fails(
                422,
                "Invalid",
                'Thing.contract.example.com "a" is invalid: spec.number: Invalid value: 30: spec.number in body should be less than or equal to 10',
            ),
        ),
    ),
    case(
        "unknown_field_strict",
        BASE,
        patch(
            "json",
            "configmaps/a",
            ops("add /frob 1"),
            {"@": 422, "reason": "Invalid", "message": ends('strict decoding error: unknown field "frob"')},
            query="fieldValidation=Strict",
        ),
    ),
    case("dry_run", BASE, patch("json", "configmaps/a", ops("remove /data/a"), {"data": {"b": "2"}}, query="dryRun=All")),
]


@pytest.mark.parametrize("steps", CASES)
async def test_a_json_patch(api: Api, steps: tuple[Step, ...]) -> None:
    await run(api, steps)


async def test_too_many_operations_are_refused(api: Api) -> None:
    await api.made(CONFIGMAPS, configmap("a"))
    many = ops(*["test /data/key value"] * 10_001)
    reply = await api.patch(CONFIGMAPS, "a", many, "json")
    reply.expect(413, "RequestEntityTooLarge")
    assert "The allowed maximum operations in a JSON patch is 10000, got 10001" in reply.message
