"""Server-side apply."""
# ruff: noqa: E501 - messages of the server stand whole, to be found by searching.

import pytest

from tests.contract.client import Api
from tests.contract.rows import ANY, GONE, Step, apply, case, fails, get, patch, post, run

MAP = "{data: {a: '1', b: '2'}}"
DEPLOYMENT = "{spec: {selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec: {containers: [{name: c, image: i, ports: [{containerPort: 80}]}]}}}}"
CLIQUE = "{spec: {roleName: r, replicas: 2, minAvailable: 1, podSpec: {containers: [{name: a, image: i, env: [{name: e, value: '1'}]}]}}}"
MADE = {"@": 201}

CASES = [
    case("create", apply("configmaps/a", MAP, {"@": 201, "data": {"a": "1", "b": "2"}, "@owned": ["one Apply: data/a data/b"]})),
    case(
        "create_custom",
        apply("things/t", "{spec: {number: 3}}", {"@": 201, "@owned": ["one Apply: spec/number"], "metadata.generation": 1}),
    ),
    case(
        "create_clique",
        apply(
            "podcliques/c",
            CLIQUE,
            {
                "@": 201,
                "@owned": [
                    'one Apply: spec/minAvailable spec/podSpec/containers/k:{"name":"a"}/. spec/podSpec/containers/k:{"name":"a"}/env/k:{"name":"e"}/. spec/podSpec/containers/k:{"name":"a"}/env/k:{"name":"e"}/name spec/podSpec/containers/k:{"name":"a"}/env/k:{"name":"e"}/value spec/podSpec/containers/k:{"name":"a"}/image spec/podSpec/containers/k:{"name":"a"}/name spec/replicas spec/roleName'
                ],
            },
        ),
    ),
    case("create_then_force", apply("configmaps/a", MAP, MADE, query="force=true")),
    case(
        "no_manager",
        apply(
            "configmaps/a",
            MAP,
            {
                "@": 422,
                "reason": "Invalid",
                "message": 'PatchOptions.meta.k8s.io "" is invalid: fieldManager: Required value: is required for apply patch',
            },
            manager="",
        ),
    ),
    case(
        "long_manager",
        apply(
            "configmaps/a",
            MAP,
            {
                "@": 422,
                "reason": "Invalid",
                "message": 'PatchOptions.meta.k8s.io "" is invalid: fieldManager: Too long: may not be more than 128 bytes',
            },
            manager="m" * 129,
        ),
    ),
    case(
        "unprintable_manager",
        apply(
            "configmaps/a",
            MAP,
            {
                "@": 422,
                "reason": "Invalid",
                "message": 'PatchOptions.meta.k8s.io "" is invalid: fieldManager: Invalid value: "a\\ab": invalid character U+0007 (at position 1)',
            },
            manager="a%07b",
        ),
    ),
    case(
        "managed_fields_in_body",
        apply(
            "configmaps/a",
            "{metadata: {managedFields: [{manager: x}]}}",
            {"@": 400, "reason": "BadRequest", "message": "metadata.managedFields must be nil"},
        ),
    ),
    case(
        "no_kind",
        patch(
            "application/apply-patch+yaml",
            "/api/v1/namespaces/<ns>/configmaps/a",
            "{metadata: {name: a}}",
            {"@": 400, "reason": "BadRequest", "message": "invalid object type: /, Kind="},
            query="fieldManager=one",
        ),
    ),
    case(
        "no_name",
        patch(
            "application/apply-patch+yaml",
            "/api/v1/namespaces/<ns>/configmaps/a",
            "{apiVersion: v1, kind: ConfigMap}",
            {"@": 400, "metadata.name": GONE},
            query="fieldManager=one",
        ),
    ),
    case(
        "other_name",
        apply(
            "configmaps/a",
            "{metadata: {name: b}}",
            {"@": 400, "reason": "BadRequest", "message": "the name of the object (b) does not match the name on the URL (a)"},
        ),
    ),
    case(
        "other_namespace",
        apply(
            "configmaps/a",
            "{metadata: {namespace: b}}",
            {
                "@": 400,
                "reason": "BadRequest",
                "message": "the namespace of the provided object does not match the namespace sent on the request",
            },
        ),
    ),
    case(
        "other_kind",
        apply("configmaps/a", "{kind: Secret}", {"@": 400, "reason": "BadRequest", "message": "invalid object type: /v1, Kind=Secret"}),
    ),
    case(
        "other_version",
        apply(
            "configmaps/a", "{apiVersion: v2}", {"@": 400, "reason": "BadRequest", "message": "invalid object type: /v2, Kind=ConfigMap"}
        ),
    ),
    case(
        "bad_yaml",
        apply(
            "configmaps/a",
            b"a: [",
            {
                "@": 400,
                "reason": "BadRequest",
                "message": "error decoding YAML: error converting YAML to JSON: yaml: line 1: did not find expected node content",
            },
        ),
    ),
    case(
        "list_body",
        apply(
            "configmaps/a",
            b"[]",
            {
                "@": 400,
                "reason": "BadRequest",
                "message": "error decoding YAML: error unmarshaling JSON: while decoding JSON: json: cannot unmarshal array into Go value of type map[string]interface {}",
            },
        ),
    ),
    case("empty_body", apply("configmaps/a", b"", {"@": 400, "reason": "BadRequest", "message": "invalid object type: /, Kind="})),
    case(
        "yaml_body",
        apply("configmaps/a", b"apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\ndata:\n  a: x\n", {"@": 201, "data.a": "x"}),
    ),
    case(
        "unknown_field",
        apply(
            "configmaps/a",
            "{frob: 1}",
            {
                "@": 500,
                "reason": GONE,
                "message": "failed to create typed patch object (/a; /v1, Kind=ConfigMap): .frob: field not declared in schema",
            },
        ),
    ),
    case(
        "unknown_field_custom",
        apply(
            "things/t",
            "{spec: {frob: 1}}",
            {
                "@": 500,
                "reason": GONE,
                "message": "failed to create typed patch object (/t; contract.example.com/v1, Kind=Thing): .spec.frob: field not declared in schema",
            },
        ),
    ),
    case(
        "wrong_type",
        apply(
            "configmaps/a",
            "{data: [x]}",
            {
                "@": 500,
                "reason": GONE,
                "message": "failed to create typed patch object (/a; /v1, Kind=ConfigMap): .data: expected map, got &{[x]}",
            },
        ),
    ),
    case(
        "wrong_type_custom",
        apply(
            "things/t",
            "{spec: {number: x}}",
            {
                "@": 500,
                "reason": GONE,
                "message": "failed to create typed patch object (/t; contract.example.com/v1, Kind=Thing): .spec.number: expected numeric (int or float), got string",
            },
        ),
    ),
    case(
        "invalid_custom",
        apply(
            "things/t",
            "{spec: {number: 11}}",
            {
                "@": 422,
                "reason": "Invalid",
                "message": 'Thing.contract.example.com "t" is invalid: spec.number: Invalid value: 11: spec.number in body should be less than or equal to 10',
            },
        ),
    ),
    case(
        "duplicate_keys",
        apply(
            "services/s",
            "{spec: {ports: [{port: 80}, {port: 80}]}}",
            {
                "@": 500,
                "reason": GONE,
                "message": 'failed to create typed patch object (/s; /v1, Kind=Service): .spec.ports: duplicate entries for key [port=80,protocol="TCP"]',
            },
        ),
    ),
    case(
        "duplicate_container",
        apply(
            "pods/p",
            "{spec: {containers: [{name: a, image: i}, {name: a, image: j}]}}",
            {
                "@": 500,
                "reason": GONE,
                "message": 'failed to create typed patch object (/p; /v1, Kind=Pod): .spec.containers: duplicate entries for key [name="a"]',
            },
        ),
    ),
    case(
        "missing_key",
        apply(
            "pods/p",
            "{spec: {containers: [{image: i}]}}",
            {"@": 422, "reason": "Invalid", "message": 'Pod "p" is invalid: spec.containers[0].name: Required value'},
        ),
    ),
    case(
        "uid_of_nothing",
        apply(
            "configmaps/a",
            "{metadata: {uid: abc}}",
            {
                "@": 409,
                "reason": "Conflict",
                "message": 'Operation cannot be fulfilled on configmaps "a": uid mismatch: the provided object specified uid abc, and no existing object was found',
            },
        ),
    ),
    case("version_of_nothing", apply("configmaps/a", "{metadata: {resourceVersion: '1'}}", {"@": 201})),
    case(
        "uid_differs",
        post("configmaps/a", MAP),
        apply(
            "configmaps/a",
            "{metadata: {uid: abc}}",
            {"@": 422, "reason": "Invalid", "message": 'ConfigMap "a" is invalid: metadata.uid: Invalid value: "abc": field is immutable'},
        ),
    ),
    case(
        "uid_fits", post("configmaps/a", MAP), apply("configmaps/a", "{metadata: {uid: <0.metadata.uid>}, data: {c: '3'}}", {"data.c": "3"})
    ),
    case(
        "version_differs",
        post("configmaps/a", MAP),
        apply(
            "configmaps/a",
            "{metadata: {resourceVersion: '1'}}",
            {
                "@": 409,
                "reason": "Conflict",
                "message": 'Operation cannot be fulfilled on configmaps "a": the object has been modified; please apply your changes to the latest version and try again',
            },
        ),
    ),
    case(
        "version_fits",
        post("configmaps/a", MAP),
        apply("configmaps/a", "{metadata: {resourceVersion: '<0.metadata.resourceVersion>'}, data: {c: '3'}}", {"data.c": "3"}),
    ),
    case(
        "unknown_type",
        patch(
            "application/apply-patch",
            "configmaps/a",
            MAP,
            {"@": 415, "reason": "UnsupportedMediaType", "message": "415: Unsupported Media Type"},
        ),
    ),
    case("generated_name", apply("configmaps/a", "{metadata: {generateName: b}}", {"@": 201, "metadata.name": "a"})),
    case("null_value", apply("configmaps/a", "{data: {a: null}}", {"@": 201, "data": {"a": ""}, "@owned": ["one Apply: data/a"]})),
    case(
        "null_of_default",
        apply(
            "things/t",
            "{spec: {nulled: null, whole: null, maybe: null}}",
            {
                "@": 201,
                "spec": {"deep": {"level": 3}, "maybe": None, "nulled": None, "replicas": 1, "whole": "given"},
                "@owned": ["one Apply: spec/maybe spec/nulled spec/whole"],
            },
        ),
    ),
    case("empty_map", apply("configmaps/a", "{data: {}}", {"@": 201, "data": GONE, "@owned": ["one Apply: data"]})),
    case("dry_run", apply("configmaps/a", MAP, MADE, query="dryRun=All"), get("configmaps/a", fails(404, "NotFound"))),
    case(
        "no_change",
        apply("configmaps/a", MAP, MADE),
        apply(
            "configmaps/a",
            MAP,
            {
                "metadata.resourceVersion": "<0.metadata.resourceVersion>",
                "metadata.managedFields.0.time": "<0.metadata.managedFields.0.time>",
            },
        ),
    ),
    case(
        "no_change_custom",
        apply("things/t", "{spec: {number: 3}}", MADE),
        apply("things/t", "{spec: {number: 3}}", {"metadata.resourceVersion": "<0.metadata.resourceVersion>", "metadata.generation": 1}),
    ),
    case(
        "no_change_deployment",
        apply("deployments/d", DEPLOYMENT, MADE),
        apply("deployments/d", DEPLOYMENT, {"metadata.resourceVersion": "<0.metadata.resourceVersion>"}),
    ),
    case(
        "field_removed",
        apply("configmaps/a", MAP, MADE),
        apply("configmaps/a", "{data: {a: '1'}}", {"data": {"a": "1"}, "@owned": ["one Apply: data/a"]}),
    ),
    case("all_removed", apply("configmaps/a", MAP, MADE), apply("configmaps/a", "{}", {"data": GONE, "@owned": []})),
    case(
        "conflict",
        apply("configmaps/a", MAP, MADE),
        apply(
            "configmaps/a",
            "{data: {a: '2'}}",
            fails(
                409,
                "Conflict",
                'Apply failed with 1 conflict: conflict with "one": .data.a',
                causes=[(".data.a", "FieldManagerConflict")],
                details={"causes": [{"reason": "FieldManagerConflict", "message": 'conflict with "one"', "field": ".data.a"}]},
            ),
            manager="two",
        ),
    ),
    case(
        "conflicts_of_two",
        apply("configmaps/a", MAP, MADE),
        apply(
            "configmaps/a",
            "{data: {a: '2', b: '3'}}",
            fails(
                409,
                "Conflict",
                'Apply failed with 2 conflicts: conflicts with "one":\n- .data.a\n- .data.b',
                causes=[(".data.a", "FieldManagerConflict"), (".data.b", "FieldManagerConflict")],
            ),
            manager="two",
        ),
    ),
    case(
        "conflicts_with_two",
        apply("configmaps/a", "{data: {a: '1'}}", MADE),
        apply("configmaps/a", "{data: {b: '1'}}", manager="two"),
        apply(
            "configmaps/a",
            "{data: {a: '2', b: '3'}}",
            fails(
                409,
                "Conflict",
                'Apply failed with 2 conflicts: conflicts with "one":\n- .data.a\nconflicts with "two":\n- .data.b',
                causes=[(".data.a", "FieldManagerConflict"), (".data.b", "FieldManagerConflict")],
            ),
            manager="three",
        ),
    ),
    case(
        "conflict_with_update",
        post("configmaps/a", MAP),
        apply("configmaps/a", "{data: {a: '2'}}", fails(409, "Conflict", ANY, causes=[(".data.a", "FieldManagerConflict")])),
    ),
    case(
        "conflict_custom",
        apply("things/t", "{spec: {number: 3}}", MADE),
        apply(
            "things/t",
            "{spec: {number: 4}}",
            fails(
                409,
                "Conflict",
                'Apply failed with 1 conflict: conflict with "one": .spec.number',
                causes=[(".spec.number", "FieldManagerConflict")],
            ),
            manager="two",
        ),
    ),
    case(
        "force",
        apply("configmaps/a", MAP, MADE),
        apply(
            "configmaps/a",
            "{data: {a: '2'}}",
            {"data.a": "2", "@owned": ["one Apply: data/b", "two Apply: data/a"]},
            query="force=true",
            manager="two",
        ),
    ),
    case(
        "force_takes_all",
        apply("configmaps/a", "{data: {a: '1'}}", MADE),
        apply("configmaps/a", "{data: {a: '2'}}", {"@owned": ["two Apply: data/a"]}, query="force=true", manager="two"),
    ),
    case(
        "shared",
        apply("configmaps/a", MAP, MADE),
        apply("configmaps/a", "{data: {a: '1'}}", {"@owned": ["two Apply: data/a", "one Apply: data/a data/b"]}, manager="two"),
    ),
    case(
        "shared_stays_until_the_last_leaves",
        apply("configmaps/a", MAP, MADE),
        apply("configmaps/a", "{data: {a: '1'}}", manager="two"),
        apply("configmaps/a", "{data: {b: '2'}}", {"data": {"a": "1", "b": "2"}, "@owned": ["two Apply: data/a", "one Apply: data/b"]}),
        apply("configmaps/a", "{data: {}}", {"data": {"b": "2"}}, manager="two"),
    ),
    case(
        "take_over_from_update",
        post("configmaps/a", MAP),
        apply("configmaps/a", MAP, {"@owned": ["one Apply: data/a data/b", "contract Update: data/. data/a data/b"]}),
    ),
    case(
        "update_takes_from_apply",
        apply("configmaps/a", MAP, MADE),
        patch("merge", "configmaps/a", "{data: {a: '9'}}", {"@owned": ["one Apply: data/b", "contract Update: data/a"]}),
        apply("configmaps/a", MAP, fails(409, "Conflict", 'Apply failed with 1 conflict: conflict with "contract" using v1: .data.a')),
    ),
    case(
        "update_deletes_applied",
        apply("configmaps/a", MAP, MADE),
        patch("merge", "configmaps/a", "{data: {a: null}}", {"@owned": ["one Apply: data/b"]}),
        apply("configmaps/a", MAP, {"data.a": "1"}),
    ),
    case(
        "same_name_other_operation",
        apply("configmaps/a", MAP, MADE),
        patch(
            "merge", "configmaps/a", "{data: {a: '9'}}", {"@owned": ["one Apply: data/b", "one Update: data/a"]}, query="fieldManager=one"
        ),
        apply(
            "configmaps/a",
            MAP,
            {"@": 409, "reason": "Conflict", "message": 'Apply failed with 1 conflict: conflict with "one" using v1: .data.a'},
        ),
    ),
    case(
        "set_merge",
        apply("things/t", "{spec: {set: [a, b]}}", MADE),
        apply(
            "things/t",
            "{spec: {set: [b, c]}}",
            {
                "spec.set": ["a", "b", "c"],
                "@owned": ['one Apply: spec/set/v:"a" spec/set/v:"b"', 'two Apply: spec/set/v:"b" spec/set/v:"c"'],
            },
            manager="two",
        ),
        apply("things/t", "{spec: {set: [a]}}", {"spec.set": ["a", "b", "c"]}),
    ),
    case(
        "set_order",
        apply("things/t", "{spec: {set: [a, b, c]}}", MADE),
        apply("things/t", "{spec: {set: [c, a, z]}}", {"spec.set": ["b", "c", "a", "z"]}, manager="two"),
    ),
    case(
        "list_map",
        apply("things/t", "{spec: {map: [{name: a, value: 1}, {name: b, value: 2}]}}", MADE),
        apply(
            "things/t",
            "{spec: {map: [{name: c, value: 3}, {name: a, more: x}]}}",
            {
                "spec.map": [
                    {"kind": "plain", "name": "c", "value": 3},
                    {"kind": "plain", "more": "x", "name": "a", "value": 1},
                    {"kind": "plain", "name": "b", "value": 2},
                ],
                "@owned": [
                    'one Apply: spec/map/k:{"kind":"plain","name":"a"}/. spec/map/k:{"kind":"plain","name":"a"}/name spec/map/k:{"kind":"plain","name":"a"}/value spec/map/k:{"kind":"plain","name":"b"}/. spec/map/k:{"kind":"plain","name":"b"}/name spec/map/k:{"kind":"plain","name":"b"}/value',
                    'two Apply: spec/map/k:{"kind":"plain","name":"a"}/. spec/map/k:{"kind":"plain","name":"a"}/more spec/map/k:{"kind":"plain","name":"a"}/name spec/map/k:{"kind":"plain","name":"c"}/. spec/map/k:{"kind":"plain","name":"c"}/name spec/map/k:{"kind":"plain","name":"c"}/value',
                ],
            },
            manager="two",
        ),
        apply(
            "things/t",
            "{spec: {map: [{name: b, value: 2}]}}",
            {
                "spec.map": [
                    {"kind": "plain", "name": "c", "value": 3},
                    {"kind": "plain", "more": "x", "name": "a"},
                    {"kind": "plain", "name": "b", "value": 2},
                ]
            },
        ),
        apply(
            "things/t",
            "{spec: {map: [{name: b, value: 5}]}}",
            fails(
                409,
                "Conflict",
                'Apply failed with 1 conflict: conflict with "one": .spec.map[kind="plain",name="b"].value',
                causes=[('.spec.map[kind="plain",name="b"].value', "FieldManagerConflict")],
            ),
            manager="two",
        ),
    ),
    case(
        "list_map_without_key",
        apply(
            "things/t",
            "{spec: {map: [{value: 1}]}}",
            {"@": 422, "reason": "Invalid", "message": 'Thing.contract.example.com "t" is invalid: spec.map[0].name: Required value'},
        ),
    ),
    case(
        "list_map_default_key",
        apply("things/t", "{spec: {map: [{name: a, value: 1}]}}", MADE),
        apply(
            "things/t",
            "{spec: {map: [{name: a, kind: plain, value: 1}]}}",
            {
                "spec.map.#": 1,
                "@owned": [
                    'one Apply: spec/map/k:{"kind":"plain","name":"a"}/. spec/map/k:{"kind":"plain","name":"a"}/kind spec/map/k:{"kind":"plain","name":"a"}/name spec/map/k:{"kind":"plain","name":"a"}/value'
                ],
            },
        ),
    ),
    case(
        "list_map_duplicates",
        apply(
            "things/t",
            "{spec: {map: [{name: a}, {name: a}]}}",
            {
                "@": 500,
                "reason": GONE,
                "message": 'failed to create typed patch object (/t; contract.example.com/v1, Kind=Thing): .spec.map: duplicate entries for key [kind="plain",name="a"]',
            },
        ),
    ),
    case(
        "set_duplicates",
        apply(
            "things/t",
            "{spec: {set: [a, a]}}",
            {
                "@": 500,
                "reason": GONE,
                "message": 'failed to create typed patch object (/t; contract.example.com/v1, Kind=Thing): .spec.set: duplicate entries for key [="a"]',
            },
        ),
    ),
    case(
        "atomic_list",
        apply("things/t", "{spec: {atomic: [a, b]}}", MADE),
        apply(
            "things/t",
            "{spec: {atomic: [c]}}",
            fails(
                409,
                "Conflict",
                'Apply failed with 1 conflict: conflict with "one": .spec.atomic',
                causes=[(".spec.atomic", "FieldManagerConflict")],
            ),
            manager="two",
        ),
        apply("things/t", "{spec: {atomic: [b]}}", {"spec.atomic": ["b"]}),
    ),
    case(
        "atomic_by_default",
        apply("things/t", "{spec: {list: [a, b]}}", MADE),
        apply(
            "things/t",
            "{spec: {list: [b, a]}}",
            fails(409, "Conflict", 'Apply failed with 1 conflict: conflict with "one": .spec.list'),
            manager="two",
        ),
    ),
    case(
        "atomic_map",
        apply("things/t", "{spec: {one: {a: x}}}", MADE),
        apply(
            "things/t",
            "{spec: {one: {b: y}}}",
            fails(409, "Conflict", 'Apply failed with 1 conflict: conflict with "one": .spec.one'),
            manager="two",
        ),
        apply("things/t", "{spec: {one: {b: y}}}", {"spec.one": {"b": "y"}}),
    ),
    case(
        "granular_map",
        apply("things/t", "{spec: {pair: {a: 1}}}", MADE),
        apply("things/t", "{spec: {pair: {b: 2}}}", {"spec.pair": {"a": 1, "b": 2}}, manager="two"),
    ),
    case(
        "unknown_fields_kept",
        apply("things/t", "{spec: {free: {a: {b: [1, 2]}}}}", {"@": 201, "@owned": ["one Apply: spec/free/a/. spec/free/a/b"]}),
        apply("things/t", "{spec: {free: {a: {c: 1}}}}", {"spec.free": {"a": {"b": [1, 2], "c": 1}}}, manager="two"),
    ),
    case(
        "int_or_string",
        apply("things/t", "{spec: {either: 1}}", MADE),
        apply(
            "things/t",
            "{spec: {either: '1'}}",
            fails(409, "Conflict", 'Apply failed with 1 conflict: conflict with "one": .spec.either'),
            manager="two",
        ),
    ),
    case(
        "service_ports",
        apply("services/s", "{spec: {ports: [{name: a, port: 80}]}}", MADE),
        apply(
            "services/s",
            "{spec: {ports: [{name: b, port: 81}]}}",
            {
                "spec.ports.#": 2,
                "@owned": [
                    'one Apply: spec/ports/k:{"port":80,"protocol":"TCP"}/. spec/ports/k:{"port":80,"protocol":"TCP"}/name spec/ports/k:{"port":80,"protocol":"TCP"}/port',
                    'two Apply: spec/ports/k:{"port":81,"protocol":"TCP"}/. spec/ports/k:{"port":81,"protocol":"TCP"}/name spec/ports/k:{"port":81,"protocol":"TCP"}/port',
                ],
            },
            manager="two",
        ),
    ),
    case(
        "containers",
        apply(
            "deployments/d",
            DEPLOYMENT,
            {
                "@": 201,
                "@owned": [
                    'one Apply: spec/selector spec/template/metadata/labels/a spec/template/spec/containers/k:{"name":"c"}/. spec/template/spec/containers/k:{"name":"c"}/image spec/template/spec/containers/k:{"name":"c"}/name spec/template/spec/containers/k:{"name":"c"}/ports/k:{"containerPort":80,"protocol":"TCP"}/. spec/template/spec/containers/k:{"name":"c"}/ports/k:{"containerPort":80,"protocol":"TCP"}/containerPort'
                ],
            },
        ),
        apply(
            "deployments/d",
            "{spec: {template: {spec: {containers: [{name: z, image: i}]}}}}",
            {"spec.template.spec.containers.#": 2},
            manager="two",
        ),
    ),
    case(
        "node_selector_is_atomic",
        apply("pods/p", "{spec: {nodeSelector: {a: b}, schedulingGates: [{name: g}], containers: [{name: a, image: i}]}}", MADE),
        apply(
            "pods/p",
            "{spec: {nodeSelector: {c: d}}}",
            fails(409, "Conflict", 'Apply failed with 1 conflict: conflict with "one": .spec.nodeSelector'),
            manager="two",
        ),
    ),
    case(
        "resources_are_granular",
        apply(
            "pods/p",
            "{spec: {containers: [{name: a, image: i, resources: {limits: {cpu: 1000m}}}]}}",
            {
                "@": 201,
                "@owned": [
                    'one Apply: spec/containers/k:{"name":"a"}/. spec/containers/k:{"name":"a"}/image spec/containers/k:{"name":"a"}/name spec/containers/k:{"name":"a"}/resources/limits/cpu'
                ],
                "spec.containers.0.resources": {"limits": {"cpu": "1"}, "requests": {"cpu": "1"}},
            },
        ),
    ),
    case(
        "quantity_is_canonical",
        apply("pods/p", "{spec: {containers: [{name: a, image: i, resources: {limits: {cpu: 1000m}}}]}}", MADE),
        apply(
            "pods/p",
            "{spec: {containers: [{name: a, image: i, resources: {limits: {cpu: 1000m}}}]}}",
            {"metadata.resourceVersion": "<0.metadata.resourceVersion>"},
        ),
    ),
    case(
        "default_is_nobodys",
        apply("pods/p", "{spec: {containers: [{name: a, image: i}]}}", {"@": 201, "spec.dnsPolicy": "ClusterFirst"}),
        apply(
            "pods/p",
            "{spec: {dnsPolicy: ClusterFirst}}",
            {
                "@owned": [
                    "two Apply: spec/dnsPolicy",
                    'one Apply: spec/containers/k:{"name":"a"}/. spec/containers/k:{"name":"a"}/image spec/containers/k:{"name":"a"}/name',
                ]
            },
            manager="two",
        ),
    ),
    case(
        "owner_references_by_uid",
        apply("configmaps/a", "{metadata: {ownerReferences: [{apiVersion: v1, kind: Pod, name: p, uid: u1}]}}", MADE),
        apply(
            "configmaps/a",
            "{metadata: {ownerReferences: [{apiVersion: v1, kind: Pod, name: q, uid: u2}]}}",
            {
                "metadata.ownerReferences.#": 2,
                "@owned": ['one Apply: metadata/ownerReferences/k:{"uid":"u1"}', 'two Apply: metadata/ownerReferences/k:{"uid":"u2"}'],
            },
            manager="two",
        ),
    ),
    case(
        "owner_given_up",
        apply("configmaps/a", "{metadata: {ownerReferences: [{apiVersion: v1, kind: Pod, name: p, uid: u1}]}}", MADE),
        apply("configmaps/a", "{}", {"metadata.ownerReferences": GONE}),
    ),
    case(
        "finalizers_are_a_set",
        apply("configmaps/a", "{metadata: {finalizers: [x/a]}}", MADE),
        apply("configmaps/a", "{metadata: {finalizers: [x/b]}}", {"metadata.finalizers": ["x/a", "x/b"]}, manager="two"),
        apply("configmaps/a", "{}", {"metadata.finalizers": ["x/b"]}),
    ),
    case(
        "labels",
        apply("configmaps/a", "{metadata: {labels: {a: x}}}", MADE),
        apply(
            "configmaps/a",
            "{metadata: {labels: {b: y}}}",
            {"metadata.labels": {"a": "x", "b": "y"}, "@owned": ["one Apply: metadata/labels/a", "two Apply: metadata/labels/b"]},
            manager="two",
        ),
    ),
    case(
        "generation",
        apply("podcliques/c", CLIQUE, MADE),
        apply("podcliques/c", CLIQUE.replace("replicas: 2", "replicas: 3"), {"metadata.generation": 2}),
        apply(
            "podcliques/c",
            CLIQUE.replace("{spec", "{metadata: {labels: {a: b}}, spec").replace("replicas: 2", "replicas: 3"),
            {"metadata.generation": 2},
        ),
    ),
    case(
        "clique_containers",
        apply("podcliques/c", CLIQUE, MADE),
        apply(
            "podcliques/c",
            "{spec: {podSpec: {containers: [{name: a, env: [{name: f, value: '2'}]}]}}}",
            {"@": 200, "spec.podSpec.containers.0.env": [{"name": "e", "value": "1"}, {"name": "f", "value": "2"}]},
            manager="two",
        ),
    ),
    case(
        "incomplete_custom",
        apply(
            "podcliques/c",
            "{spec: {replicas: 1}}",
            fails(
                422,
                "Invalid",
                'PodClique.grove.io "c" is invalid: [spec.podSpec: Required value, spec.roleName: Required value]',
                causes=[("spec.podSpec", "FieldValueRequired"), ("spec.roleName", "FieldValueRequired")],
            ),
        ),
    ),
    case(
        "status_of_nothing",
        apply(
            "podcliques/c/status",
            "{status: {replicas: 1}}",
            {"@": 404, "reason": "NotFound", "message": 'podcliques.grove.io "c" not found'},
        ),
    ),
    case(
        "status",
        post("podcliques/c", CLIQUE),
        apply(
            "podcliques/c/status",
            "{status: {conditions: [{type: A, status: 'True', reason: R, message: m, lastTransitionTime: '2024-01-01T00:00:00Z'}]}}",
            {
                "@": 200,
                "message": GONE,
                "status": {
                    "conditions": [
                        {"lastTransitionTime": "2024-01-01T00:00:00Z", "message": "m", "reason": "R", "status": "True", "type": "A"}
                    ],
                    "readyReplicas": 0,
                    "scheduleGatedReplicas": 0,
                    "scheduledReplicas": 0,
                    "updatedReplicas": 0,
                },
                "@owned": [
                    'one Apply status: status/conditions/k:{"type":"A"}/. status/conditions/k:{"type":"A"}/lastTransitionTime status/conditions/k:{"type":"A"}/message status/conditions/k:{"type":"A"}/reason status/conditions/k:{"type":"A"}/status status/conditions/k:{"type":"A"}/type',
                    'contract Update: spec/. spec/minAvailable spec/podSpec/. spec/podSpec/containers/. spec/podSpec/containers/k:{"name":"a"}/. spec/podSpec/containers/k:{"name":"a"}/env/. spec/podSpec/containers/k:{"name":"a"}/env/k:{"name":"e"}/. spec/podSpec/containers/k:{"name":"a"}/env/k:{"name":"e"}/name spec/podSpec/containers/k:{"name":"a"}/env/k:{"name":"e"}/value spec/podSpec/containers/k:{"name":"a"}/image spec/podSpec/containers/k:{"name":"a"}/name spec/replicas spec/roleName',
                ],
            },
        ),
    ),
    case(
        "status_ignores_spec",
        post("podcliques/c", CLIQUE),
        apply(
            "podcliques/c/status",
            "{spec: {replicas: 9}, status: {readyReplicas: 1}}",
            {
                "@": 200,
                "message": GONE,
                "spec.replicas": 2,
                "metadata.generation": 1,
                "@owned": [
                    "one Apply status: status/readyReplicas",
                    'contract Update: spec/. spec/minAvailable spec/podSpec/. spec/podSpec/containers/. spec/podSpec/containers/k:{"name":"a"}/. spec/podSpec/containers/k:{"name":"a"}/env/. spec/podSpec/containers/k:{"name":"a"}/env/k:{"name":"e"}/. spec/podSpec/containers/k:{"name":"a"}/env/k:{"name":"e"}/name spec/podSpec/containers/k:{"name":"a"}/env/k:{"name":"e"}/value spec/podSpec/containers/k:{"name":"a"}/image spec/podSpec/containers/k:{"name":"a"}/name spec/replicas spec/roleName',
                ],
            },
        ),
    ),
    case(
        "spec_ignores_status",
        apply(
            "podcliques/c",
            CLIQUE.replace("{spec", "{status: {replicas: 4}, spec"),
            {
                "@": 201,
                "status": GONE,
                "@owned": [
                    'one Apply: spec/minAvailable spec/podSpec/containers/k:{"name":"a"}/. spec/podSpec/containers/k:{"name":"a"}/env/k:{"name":"e"}/. spec/podSpec/containers/k:{"name":"a"}/env/k:{"name":"e"}/name spec/podSpec/containers/k:{"name":"a"}/env/k:{"name":"e"}/value spec/podSpec/containers/k:{"name":"a"}/image spec/podSpec/containers/k:{"name":"a"}/name spec/replicas spec/roleName'
                ],
            },
        ),
    ),
    case(
        "status_conditions_by_type",
        post("pods/p", "{spec: {containers: [{name: a, image: i}]}}"),
        apply(
            "pods/p/status",
            "{status: {conditions: [{type: Ready, status: 'True'}]}}",
            {"status.conditions": [{"type": "Ready", "status": "True", "lastProbeTime": None, "lastTransitionTime": None}]},
        ),
        apply("pods/p/status", "{status: {conditions: [{type: Other, status: 'True'}]}}", {"status.conditions.#": 2}, manager="two"),
        apply("pods/p/status", "{status: {}}", {"status.conditions.#": 1}),
    ),
    case(
        "deleting_object",
        post("configmaps/a", "{metadata: {finalizers: [x/a]}}"),
        patch("merge", "configmaps/a", "{}"),
        apply("configmaps/a", "{data: {a: '1'}}", {"data": {"a": "1"}}),
    ),
    case(
        "missing_namespace",
        patch(
            "application/apply-patch+yaml",
            "/api/v1/namespaces/none/configmaps/a",
            "{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}",
            {"@": 404, "reason": "NotFound", "message": 'namespaces "none" not found'},
            query="fieldManager=one",
        ),
    ),
    case(
        "invalid_name",
        apply(
            "configmaps/A_b",
            "{}",
            {
                "@": 422,
                "reason": "Invalid",
                "message": "ConfigMap \"A_b\" is invalid: metadata.name: Invalid value: \"A_b\": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')",
            },
        ),
    ),
]


@pytest.mark.parametrize("steps", CASES)
async def test_an_apply(api: Api, steps: tuple[Step, ...]) -> None:
    await run(api, steps)
