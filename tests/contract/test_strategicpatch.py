"""Strategic merge patches."""
# ruff: noqa: E501 - messages of the server stand whole, to be found by searching.

from typing import Any

import pytest

from tests.contract.client import Api
from tests.contract.rows import GONE, Step, case, fails, patch, post, run

MAKE_POD = post(
    "pods/p",
    "{metadata: {finalizers: [x/a], labels: {l: x}, ownerReferences: [{apiVersion: v1, kind: Pod, name: o, uid: u1}]},"
    " spec: {schedulingGates: [{name: g}, {name: h}], tolerations: [{key: k, operator: Exists}],"
    " containers: [{name: a, image: i, env: [{name: e, value: '1'}]}, {name: b, image: i}]}}",
)
MAKE_DEPLOYMENT = post(
    "deployments/d",
    "{spec: {selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec: {volumes: [{name: v, emptyDir: {}}],"
    " containers: [{name: c, image: i, args: [x, y], ports: [{containerPort: 80}], env: [{name: e, value: '1'}, {name: f, value: '2'}]}, {name: d, image: i}]}}}}",
)
MAKE_SERVICE = post("services/s", "{spec: {selector: {a: b}, ports: [{name: x, port: 80}, {name: y, port: 81}]}}")
IN_TEMPLATE = "spec.template.spec."


def on_pod(name: str, body: Any, expected: Any) -> Any:
    return case(name, MAKE_POD, patch("strategic", "pods/p", body, expected))


def on_template(name: str, body: Any, expected: Any) -> Any:
    return case(
        name,
        MAKE_DEPLOYMENT,
        patch("strategic", "deployments/d", f"{{spec: {{template: {{spec: {body}}}}}}}", {IN_TEMPLATE + k: v for k, v in expected.items()}),
    )


CASES = [
    on_template(
        "containers_by_name",
        "{containers: [{name: d, image: j}]}",
        {"containers.#": 2, "containers.0.name": "c", "containers.1.image": "j"},
    ),
    on_template(
        "container_added", "{containers: [{name: z, image: j}]}", {"containers.#": 3, "containers.0.name": "z", "containers.2.name": "d"}
    ),
    on_template("container_deleted", "{containers: [{name: c, $patch: delete}]}", {"containers.#": 1, "containers.0.name": "d"}),
    on_template(
        "containers_replaced", "{containers: [{$patch: replace}, {name: z, image: j}]}", {"containers.#": 1, "containers.0.name": "z"}
    ),
    on_template(
        "container_order",
        "{$setElementOrder/containers: [{name: d}, {name: c}], containers: [{name: c, image: j}]}",
        {"containers.0.name": "d", "containers.1.image": "j"},
    ),
    on_template(
        "env_by_name",
        "{containers: [{name: c, env: [{name: f, value: '3'}, {name: g, value: '4'}]}]}",
        {"containers.0.env": [{"name": "e", "value": "1"}, {"name": "f", "value": "3"}, {"name": "g", "value": "4"}]},
    ),
    on_template(
        "env_deleted", "{containers: [{name: c, env: [{name: e, $patch: delete}]}]}", {"containers.0.env": [{"name": "f", "value": "2"}]}
    ),
    on_template(
        "env_value_to_source",
        "{containers: [{name: c, env: [{name: e, value: null, valueFrom: {fieldRef: {fieldPath: metadata.name}}}]}]}",
        {"containers.0.env.0": {"name": "e", "valueFrom": {"fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.name"}}}},
    ),
    on_template(
        "ports_by_number",
        "{containers: [{name: c, ports: [{containerPort: 80, name: web}, {containerPort: 81}]}]}",
        {"containers.0.ports": [{"name": "web", "containerPort": 80, "protocol": "TCP"}, {"containerPort": 81, "protocol": "TCP"}]},
    ),
    on_template("args_are_atomic", "{containers: [{name: c, args: [z]}]}", {"containers.0.args": ["z"]}),
    on_template(
        "tolerations_are_atomic", "{tolerations: [{key: z, operator: Exists}]}", {"tolerations": [{"key": "z", "operator": "Exists"}]}
    ),
    on_template(
        "volume_keys_retained",
        "{volumes: [{name: v, $retainKeys: [name, hostPath], hostPath: {path: /x}}]}",
        {"volumes.0": {"name": "v", "hostPath": {"path": "/x", "type": ""}}},
    ),
    on_template("node_selector_merged", "{nodeSelector: {a: b}}", {"nodeSelector": {"a": "b"}}),
    on_template("map_replaced", "{securityContext: {$patch: replace, runAsUser: 7}}", {"securityContext": {"runAsUser": 7}}),
    on_template("map_deleted", "{securityContext: {$patch: delete}}", {"securityContext": {}}),
    case(
        "strategy_retain_keys",
        MAKE_DEPLOYMENT,
        patch(
            "strategic",
            "deployments/d",
            "{spec: {strategy: {$retainKeys: [type], type: Recreate}}}",
            {"spec.strategy": {"type": "Recreate"}, "metadata.generation": 2},
        ),
    ),
    case(
        "strategy_without_retain_keys",
        MAKE_DEPLOYMENT,
        patch("strategic", "deployments/d", "{spec: {strategy: {type: Recreate}}}", {"@": 422, "spec.strategy": GONE}),
    ),
    case(
        "strategy_null",
        MAKE_DEPLOYMENT,
        patch(
            "strategic",
            "deployments/d",
            "{spec: {strategy: {type: Recreate, rollingUpdate: null}}}",
            {"spec.strategy": {"type": "Recreate"}},
        ),
    ),
    on_pod("finalizers_are_a_set", "{metadata: {finalizers: [x/b, x/a]}}", {"metadata.finalizers": ["x/b", "x/a"]}),
    on_pod("finalizer_deleted", "{metadata: {$deleteFromPrimitiveList/finalizers: [x/a]}}", {"metadata.finalizers": GONE}),
    on_pod("finalizers_emptied", "{metadata: {finalizers: []}}", {"metadata.finalizers": ["x/a"]}),
    on_pod("finalizers_null", "{metadata: {finalizers: null}}", {"metadata.finalizers": GONE}),
    on_pod(
        "owners_by_uid",
        "{metadata: {ownerReferences: [{apiVersion: v1, kind: Pod, name: q, uid: u2}]}}",
        {
            "metadata.ownerReferences": [
                {"apiVersion": "v1", "kind": "Pod", "name": "q", "uid": "u2"},
                {"apiVersion": "v1", "kind": "Pod", "name": "o", "uid": "u1"},
            ]
        },
    ),
    on_pod(
        "owner_changed",
        "{metadata: {ownerReferences: [{uid: u1, controller: true}]}}",
        {"metadata.ownerReferences": [{"apiVersion": "v1", "kind": "Pod", "name": "o", "uid": "u1", "controller": True}]},
    ),
    on_pod("owner_deleted", "{metadata: {ownerReferences: [{uid: u1, $patch: delete}]}}", {"metadata.ownerReferences": GONE}),
    on_pod(
        "owner_without_key",
        "{metadata: {ownerReferences: [{name: x}]}}",
        fails(500, GONE, "map: map[name:x] does not contain declared merge key: uid"),
    ),
    on_pod("gate_deleted", "{spec: {schedulingGates: [{name: g, $patch: delete}]}}", {"spec.schedulingGates": [{"name": "h"}]}),
    on_pod("gates_replaced", "{spec: {schedulingGates: [{$patch: replace}]}}", {"spec.schedulingGates": GONE}),
    on_pod(
        "gate_added",
        "{spec: {schedulingGates: [{name: z}]}}",
        fails(
            422,
            "Invalid",
            "Pod \"p\" is invalid: spec.schedulingGates[0].name: Forbidden: only deletion is allowed, but found new scheduling gate 'z'",
        ),
    ),
    on_pod("label_null", "{metadata: {labels: {l: null, m: y}}}", {"metadata.labels": {"m": "y"}}),
    on_pod("labels_replaced", "{metadata: {labels: {$patch: replace, n: z}}}", {"metadata.labels": {"n": "z"}}),
    on_pod(
        "image",
        "{spec: {containers: [{name: a, image: j}]}}",
        {"spec.containers.0.image": "j", "spec.containers.#": 2, "metadata.generation": 2},
    ),
    on_pod(
        "unknown_directive", "{metadata: {labels: {$patch: frob}}}", fails(500, GONE, "unknown patch type: frob in map: map[$patch:frob]")
    ),
    on_pod(
        "containers_without_key",
        "{spec: {containers: [{image: j}]}}",
        fails(500, GONE, "map: map[image:j] does not contain declared merge key: name"),
    ),
    on_pod(
        "wrong_type",
        "{spec: {containers: {name: a}}}",
        fails(
            422, "Invalid", ' "" is invalid: patch: Invalid value: "map[spec:map[containers:map[name:a]]]": cannot restore slice from map'
        ),
    ),
    on_pod("not_an_object", b"[]", fails(400, "BadRequest", "json: cannot unmarshal array into Go value of type map[string]interface {}")),
    on_pod("bad_json", b"{", fails(400, "BadRequest", "unexpected end of JSON input")),
    on_pod(
        "name_changed",
        "{metadata: {name: q}}",
        fails(400, "BadRequest", "the name of the object (q) does not match the name on the URL (p)"),
    ),
    on_pod(
        "stale_version",
        "{metadata: {resourceVersion: '1', labels: {z: y}}}",
        fails(
            409,
            "Conflict",
            'Operation cannot be fulfilled on pods "p": the object has been modified; please apply your changes to the latest version and try again',
        ),
    ),
    on_pod("nothing", "{}", {"metadata.resourceVersion": "<0.metadata.resourceVersion>"}),
    case("missing_object", patch("strategic", "pods/q", "{}", fails(404, "NotFound", 'pods "q" not found'))),
    case(
        "service_ports_by_port",
        MAKE_SERVICE,
        patch(
            "strategic",
            "services/s",
            "{spec: {ports: [{port: 81, targetPort: 7}, {port: 82, name: z}]}}",
            {
                "spec.ports": [
                    {"name": "x", "protocol": "TCP", "port": 80, "targetPort": 80},
                    {"name": "y", "protocol": "TCP", "port": 81, "targetPort": 7},
                    {"name": "z", "protocol": "TCP", "port": 82, "targetPort": 82},
                ]
            },
        ),
    ),
    case(
        "service_port_deleted",
        MAKE_SERVICE,
        patch("strategic", "services/s", "{spec: {ports: [{port: 81, $patch: delete}]}}", {"spec.ports.#": 1}),
    ),
    case(
        "custom_object",
        post("things/t", "{spec: {number: 3}}"),
        patch(
            "strategic",
            "things/t",
            "{spec: {number: 4}}",
            fails(
                415,
                "UnsupportedMediaType",
                "the body of the request was in an unknown format - accepted media types include: application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml",
            ),
        ),
    ),
    case(
        "own_kind",
        patch(
            "strategic",
            "podcliques/t",
            "{spec: {replicas: 4}}",
            {
                "@": 415,
                "reason": "UnsupportedMediaType",
                "message": "the body of the request was in an unknown format - accepted media types include: application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml",
            },
        ),
    ),
    case(
        "pod_condition_by_type",
        MAKE_POD,
        patch(
            "strategic",
            "pods/p/status",
            "{status: {conditions: [{type: Ready, status: 'True'}]}}",
            {"status.conditions.#": 2, "status.conditions.1.type": "PodScheduled"},
        ),
        patch("strategic", "pods/p/status", "{status: {conditions: [{type: Ready, status: 'False'}]}}", {"status.conditions.#": 2}),
    ),
    case(
        "node_taints_are_atomic",
        post("nodes/<ns>", "{}"),
        patch(
            "strategic",
            "nodes/<ns>",
            "{spec: {taints: [{key: a, effect: NoSchedule}]}}",
            {"spec.taints": [{"key": "a", "effect": "NoSchedule"}]},
        ),
    ),
]


@pytest.mark.parametrize("steps", CASES)
async def test_a_strategic_merge_patch(api: Api, steps: tuple[Step, ...]) -> None:
    await run(api, steps)
