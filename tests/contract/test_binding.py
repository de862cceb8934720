"""The binding subresource of pods."""
# ruff: noqa: E501 - messages of the server stand whole, to be found by searching.

from typing import Any

import pytest

from tests.contract.client import Api
from tests.contract.rows import GONE, Step, case, delete, fails, get, patch, post, run

POD = post("pods/p", "{metadata: {labels: {l: x}, annotations: {old: y}}, spec: {containers: [{name: a, image: i}]}}")
BIND = "{metadata: {name: p}, target: {kind: Node, name: n1}}"


def bind(body: Any, expected: Any = None, query: str = "") -> Step:
    return post("pods/p/binding", body, expected or {}, query)


CASES = [
    case(
        "effect",
        POD,
        bind(BIND, {"kind": "Status", "status": "Success", "code": 201, "reason": GONE, "metadata": {}}),
        get(
            "pods/p",
            {
                "spec.nodeName": "n1",
                "status.conditions.#": 1,
                "status.conditions.0": {
                    "type": "PodScheduled",
                    "status": "True",
                    "lastProbeTime": None,
                    "lastTransitionTime": "<time>",
                },
                "metadata.generation": 1,
                "status.phase": "Pending",
            },
        ),
    ),
    case(
        "twice",
        POD,
        bind(BIND),
        bind(
            BIND,
            {
                "@": 409,
                "reason": "Conflict",
                "message": 'Operation cannot be fulfilled on pods/binding "p": pod p is already assigned to node "n1"',
            },
        ),
    ),
    case(
        "other_node",
        POD,
        bind(BIND),
        bind(
            "{metadata: {name: p}, target: {name: n2}}",
            fails(
                409,
                "Conflict",
                'Operation cannot be fulfilled on pods/binding "p": pod p is already assigned to node "n1"',
                details={"name": "p", "kind": "pods/binding"},
            ),
        ),
    ),
    case(
        "gated",
        post("pods/p", "{spec: {containers: [{name: a, image: i}], schedulingGates: [{name: g}]}}"),
        bind(
            BIND,
            fails(
                409,
                "Conflict",
                'Operation cannot be fulfilled on pods/binding "p": pod p has non-empty .spec.schedulingGates',
                details={"name": "p", "kind": "pods/binding"},
            ),
        ),
    ),
    case(
        "deleting",
        post("pods/p", "{metadata: {finalizers: [x/a]}, spec: {containers: [{name: a, image: i}]}}"),
        delete("pods/p"),
        bind(
            BIND,
            {
                "@": 409,
                "reason": "Conflict",
                "message": 'Operation cannot be fulfilled on pods/binding "p": pod p is being deleted, cannot be assigned to a host',
            },
        ),
    ),
    case("missing", bind(BIND, {"@": 404, "reason": "NotFound", "message": 'pods "p" not found'})),
    case(
        "other_uid",
        POD,
        bind(
            "{metadata: {name: p, uid: abc}, target: {name: n1}}",
            {
                "@": 409,
                "reason": "Conflict",
                "message": 'Operation cannot be fulfilled on pods "p": StorageError: invalid object, Code: 4, Key: /registry/pods/<ns>/p, ResourceVersion: 0, AdditionalErrorMsg: Precondition failed: UID in precondition: abc, UID in object meta: <0.metadata.uid>',
            },
        ),
    ),
    case("same_uid", POD, bind("{metadata: {name: p, uid: <0.metadata.uid>}, target: {name: n1}}"), get("pods/p", {"spec.nodeName": "n1"})),
    case(
        "other_version",
        POD,
        bind(
            "{metadata: {name: p, resourceVersion: '1'}, target: {name: n1}}",
            {
                "@": 409,
                "reason": "Conflict",
                "message": 'Operation cannot be fulfilled on pods "p": StorageError: invalid object, Code: 4, Key: /registry/pods/<ns>/p, ResourceVersion: 0, AdditionalErrorMsg: Precondition failed: ResourceVersion in precondition: 1, ResourceVersion in object meta: <0.metadata.resourceVersion>',
            },
        ),
    ),
    case("same_version", POD, bind("{metadata: {name: p, resourceVersion: '<0.metadata.resourceVersion>'}, target: {name: n1}}")),
    case("no_target", POD, bind("{metadata: {name: p}}", fails(500, GONE, "target.name: Required value", causes=[]))),
    case(
        "empty_target",
        POD,
        bind("{metadata: {name: p}, target: {name: ''}}", fails(500, GONE, "target.name: Required value")),
    ),
    case(
        "target_kind",
        POD,
        bind(
            "{metadata: {name: p}, target: {kind: Pod, name: n1}}",
            {"@": 500, "reason": GONE, "message": 'target.kind: Unsupported value: "Pod": supported values: "Node", "<empty>"'},
        ),
    ),
    case(
        "other_name",
        POD,
        bind(
            "{metadata: {name: q}, target: {name: n1}}",
            {"@": 400, "reason": "BadRequest", "message": "name in URL does not match name in Binding object"},
        ),
    ),
    case(
        "no_name",
        POD,
        bind("{target: {name: n1}}", {"@": 400, "reason": "BadRequest", "message": "name in URL does not match name in Binding object"}),
    ),
    case(
        "other_namespace",
        POD,
        bind(
            "{metadata: {name: p, namespace: other}, target: {name: n1}}",
            {
                "@": 400,
                "reason": "BadRequest",
                "message": "the namespace of the provided object does not match the namespace sent on the request",
            },
        ),
    ),
    case(
        "other_kind",
        POD,
        bind(
            "{apiVersion: v1, kind: Pod, metadata: {name: p}}",
            {
                "@": 400,
                "reason": "BadRequest",
                "message": 'Pod in version "v1" cannot be handled as a Binding: converting (v1.Pod) to (core.Binding): unknown conversion',
            },
        ),
    ),
    case("explicit_kind", POD, bind("{apiVersion: v1, kind: Binding, metadata: {name: p}, target: {name: n1}}")),
    case(
        "annotations",
        POD,
        bind("{metadata: {name: p, annotations: {new: z, old: w}}, target: {name: n1}}"),
        get("pods/p", {"metadata.annotations": {"new": "z", "old": "w"}}),
    ),
    case(
        "labels",
        POD,
        bind("{metadata: {name: p, labels: {new: z}}, target: {name: n1}}"),
        get("pods/p", {"metadata.labels": {"l": "x", "new": "z"}}),
    ),
    case("dry_run", POD, bind(BIND, query="dryRun=All"), get("pods/p", {"spec.nodeName": GONE})),
    case(
        "topology_labels",
        post("nodes/n-<ns>", "{metadata: {labels: {topology.kubernetes.io/zone: z, topology.kubernetes.io/region: r, other: o}}}"),
        POD,
        bind("{metadata: {name: p}, target: {name: n-<ns>}}"),
        get("pods/p", {"metadata.labels": {"l": "x"}}),
    ),
    case(
        "old_path",
        POD,
        post("/api/v1/namespaces/<ns>/bindings", "{apiVersion: v1, kind: Binding, metadata: {name: p}, target: {name: n1}}"),
        get("pods/p", {"spec.nodeName": "n1"}),
    ),
    case(
        "read",
        POD,
        get(
            "pods/p/binding",
            {"@": 405, "reason": "MethodNotAllowed", "message": "the server does not allow this method on the requested resource"},
        ),
    ),
    case("finished", POD, patch("merge", "pods/p/status", "{status: {phase: Succeeded}}"), bind(BIND, {"@": 201, "message": GONE})),
    case(
        "unset_by_hand",
        POD,
        bind(BIND),
        patch("merge", "pods/p", "{spec: {nodeName: null}}", {"@": 422, "reason": "Invalid", "@causes": [("spec", "FieldValueForbidden")]}),
    ),
    case(
        "set_by_hand",
        POD,
        patch("merge", "pods/p", "{spec: {nodeName: n}}", {"@": 422, "reason": "Invalid", "@causes": [("spec", "FieldValueForbidden")]}),
    ),
]


@pytest.mark.parametrize("steps", CASES)
async def test_a_binding(api: Api, steps: tuple[Step, ...]) -> None:
    await run(api, steps)
