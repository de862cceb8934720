"""The status subresource."""
# ruff: noqa: E501 - messages of the server stand whole, to be found by searching.

import pytest

from tests.contract.client import Api
from tests.contract.rows import GONE, Step, case, fails, get, patch, post, put, run

POD = post("pods/p", "{metadata: {labels: {l: x}}, spec: {containers: [{name: a, image: i}]}}")
CLIQUE = post(
    "podcliques/c",
    "{metadata: {labels: {l: x}}, spec: {roleName: r, replicas: 2, minAvailable: 1, podSpec: {containers: [{name: a, image: i}]}}, status: {replicas: 7}}",
    {"status": GONE},
)
DEPLOYMENT = post(
    "deployments/d",
    "{spec: {selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec: {containers: [{name: c, image: i}]}}}}",
)
META = (
    "{metadata: {labels: {new: y}, annotations: {n: z}, finalizers: [x/a], ownerReferences: [{apiVersion: v1, kind: Pod, name: o, uid: u}]}"
)
OWNERS, FINALIZERS = "metadata.ownerReferences", "metadata.finalizers"

CASES = [
    case("pod", POD, patch("merge", "pods/p/status", "{spec: {containers: null}, status: {phase: Running}}", {})),
    case(
        "pod_spec_ignored",
        POD,
        patch(
            "merge",
            "pods/p/status",
            "{spec: {nodeName: n}, status: {phase: Running}}",
            {"status.phase": "Running", "spec.nodeName": GONE, "metadata.generation": 1},
        ),
    ),
    case(
        "pod_main_ignores_status",
        POD,
        patch(
            "merge",
            "pods/p",
            "{status: {phase: Running}}",
            {"status.phase": "Pending", "metadata.resourceVersion": "<0.metadata.resourceVersion>"},
        ),
    ),
    case(
        "pod_status_at_creation",
        post(
            "pods/q",
            "{spec: {containers: [{name: a, image: i}]}, status: {phase: Running, podIP: 1.2.3.4}}",
            {"status": {"phase": "Pending", "qosClass": "BestEffort"}},
        ),
    ),
    case(
        "pod_metadata",
        POD,
        patch(
            "merge",
            "pods/p/status",
            META + "}",
            {"metadata.labels": {"l": "x", "new": "y"}, "metadata.annotations": {"n": "z"}, FINALIZERS: ["x/a"], OWNERS: GONE},
        ),
    ),
    case(
        "clique",
        CLIQUE,
        patch(
            "merge",
            "podcliques/c/status",
            "{status: {readyReplicas: 1}}",
            {
                "status": {"readyReplicas": 1, "scheduleGatedReplicas": 0, "scheduledReplicas": 0, "updatedReplicas": 0},
                "metadata.generation": 1,
            },
        ),
    ),
    case(
        "clique_spec_ignored",
        CLIQUE,
        patch(
            "merge",
            "podcliques/c/status",
            "{spec: {replicas: 9}, status: {readyReplicas: 1}}",
            {"spec.replicas": 2, "status.readyReplicas": 1, "metadata.generation": 1},
        ),
    ),
    case(
        "clique_invalid_spec_ignored",
        CLIQUE,
        patch("merge", "podcliques/c/status", "{spec: {replicas: x}, status: {readyReplicas: 1}}", {"@": 200, "message": GONE}),
    ),
    case(
        "clique_metadata",
        CLIQUE,
        patch(
            "merge",
            "podcliques/c/status",
            META + ", status: {readyReplicas: 1}}",
            {"metadata.labels": {"l": "x"}, "metadata.annotations": GONE, FINALIZERS: GONE, OWNERS: GONE},
        ),
    ),
    case(
        "clique_main_ignores_status",
        CLIQUE,
        patch(
            "merge",
            "podcliques/c",
            "{spec: {replicas: 3}, status: {readyReplicas: 1}}",
            {"status": GONE, "spec.replicas": 3, "metadata.generation": 2},
        ),
    ),
    case(
        "clique_main_keeps_status",
        CLIQUE,
        patch("merge", "podcliques/c/status", "{status: {readyReplicas: 1}}"),
        put(
            "podcliques/c",
            "{metadata: {resourceVersion: '<1.metadata.resourceVersion>'}, spec: {roleName: r, replicas: 5, minAvailable: 1, podSpec: {containers: [{name: a, image: i}]}}}",
            {
                "status": {"readyReplicas": 1, "scheduleGatedReplicas": 0, "scheduledReplicas": 0, "updatedReplicas": 0},
                "metadata.generation": 2,
            },
        ),
    ),
    case(
        "clique_status_invalid",
        CLIQUE,
        patch(
            "merge",
            "podcliques/c/status",
            "{status: {readyReplicas: x}}",
            {
                "@": 422,
                "reason": "Invalid",
                "message": 'PodClique.grove.io "c" is invalid: status.readyReplicas: Invalid value: "string": readyReplicas in body must be of type integer: "string"',
            },
        ),
    ),
    case(
        "clique_condition_invalid",
        CLIQUE,
        patch(
            "merge",
            "podcliques/c/status",
            "{status: {conditions: [{type: A}]}}",
            {
                "@": 422,
                "reason": "Invalid",
                "message": 'PodClique.grove.io "c" is invalid: [status.conditions[0].lastTransitionTime: Required value, status.conditions[0].message: Required value, status.conditions[0].reason: Required value, status.conditions[0].status: Required value]',
                "@causes": [
                    ("status.conditions[0].lastTransitionTime", "FieldValueRequired"),
                    ("status.conditions[0].message", "FieldValueRequired"),
                    ("status.conditions[0].reason", "FieldValueRequired"),
                    ("status.conditions[0].status", "FieldValueRequired"),
                ],
            },
        ),
    ),
    case(
        "clique_condition_twice",
        CLIQUE,
        patch(
            "merge",
            "podcliques/c/status",
            "{status: {conditions: [{type: A, status: 'True', reason: R, message: m, lastTransitionTime: '2024-01-01T00:00:00Z'}, {type: A, status: 'True', reason: R, message: m, lastTransitionTime: '2024-01-01T00:00:00Z'}]}}",
            {
                "@": 422,
                "reason": "Invalid",
                "message": 'PodClique.grove.io "c" is invalid: status.conditions[1]: Duplicate value: {"type":"A"}',
            },
        ),
    ),
    case(
        "clique_unknown_field",
        CLIQUE,
        patch("merge", "podcliques/c/status", "{status: {frob: 1, readyReplicas: 1}}", {"status.frob": GONE}),
    ),
    case(
        "put",
        CLIQUE,
        put(
            "podcliques/c/status",
            "{metadata: {name: c, resourceVersion: '<0.metadata.resourceVersion>'}, spec: {roleName: q, replicas: 1, minAvailable: 1, podSpec: {containers: [{name: a, image: i}]}}, status: {readyReplicas: 2}}",
            {
                "status": {"readyReplicas": 2, "scheduleGatedReplicas": 0, "scheduledReplicas": 0, "updatedReplicas": 0},
                "spec.roleName": "r",
                "metadata.labels": {"l": "x"},
            },
        ),
    ),
    case(
        "put_without_spec",
        CLIQUE,
        put(
            "podcliques/c/status",
            "{metadata: {name: c, resourceVersion: '<0.metadata.resourceVersion>'}, status: {readyReplicas: 2}}",
            {"@": 200, "message": GONE, "spec.replicas": 2},
        ),
    ),
    case(
        "put_without_version",
        CLIQUE,
        put(
            "podcliques/c/status",
            "{metadata: {name: c}, spec: {roleName: q, replicas: 1, minAvailable: 1, podSpec: {containers: [{name: a, image: i}]}}, status: {readyReplicas: 2}}",
            {
                "@": 422,
                "message": 'podcliques.grove.io "c" is invalid: metadata.resourceVersion: Invalid value: 0: must be specified for an update',
            },
        ),
    ),
    case(
        "put_stale",
        CLIQUE,
        put(
            "podcliques/c/status",
            "{metadata: {name: c, resourceVersion: '1'}, status: {}}",
            {
                "@": 409,
                "reason": "Conflict",
                "message": 'Operation cannot be fulfilled on podcliques.grove.io "c": the object has been modified; please apply your changes to the latest version and try again',
            },
        ),
    ),
    case(
        "removed",
        CLIQUE,
        patch("merge", "podcliques/c/status", "{status: {readyReplicas: 1}}"),
        patch("merge", "podcliques/c/status", "{status: null}", {"status": GONE}),
    ),
    case(
        "json_patch",
        CLIQUE,
        patch(
            "json",
            "podcliques/c/status",
            [{"op": "add", "path": "/status", "value": {"readyReplicas": 3}}],
            {"status": {"readyReplicas": 3, "scheduleGatedReplicas": 0, "scheduledReplicas": 0, "updatedReplicas": 0}},
        ),
    ),
    case(
        "get",
        POD,
        get("pods/p/status", {"kind": "Pod", "spec.containers.0.name": "a", "metadata.resourceVersion": "<0.metadata.resourceVersion>"}),
    ),
    case("get_missing", get("pods/q/status", fails(404, "NotFound", 'pods "q" not found'))),
    case(
        "no_such_subresource",
        POD,
        get("pods/p/frob", {"@": 404, "reason": "NotFound", "message": "the server could not find the requested resource"}),
    ),
    case(
        "kind_without_status",
        post("configmaps/a", "{}"),
        get("configmaps/a/status", {"@": 404, "reason": "NotFound", "message": "the server could not find the requested resource"}),
    ),
    case(
        "kind_without_status_written",
        post("configmaps/a", "{}"),
        patch(
            "merge",
            "configmaps/a/status",
            "{}",
            {"@": 404, "reason": "NotFound", "message": "the server could not find the requested resource"},
        ),
    ),
    case(
        "custom_without_status",
        post("things/t", "{spec: {number: 1}, status: {a: 1}}", {"status": {"a": 1}}),
        get("things/t/status", {"@": 404, "reason": "NotFound", "message": 'things.contract.example.com "t" not found'}),
        patch("merge", "things/t", "{status: {a: 2}}", {"status": {"a": 2}, "metadata.generation": 2}),
    ),
    case(
        "deployment",
        DEPLOYMENT,
        patch(
            "merge",
            "deployments/d/status",
            "{spec: {replicas: 5}, status: {replicas: 3, observedGeneration: 1}}",
            {"spec.replicas": 1, "status.replicas": 3, "metadata.generation": 1},
        ),
    ),
    case(
        "deployment_negative",
        DEPLOYMENT,
        patch(
            "merge",
            "deployments/d/status",
            "{status: {replicas: -3}}",
            {
                "@": 422,
                "reason": "Invalid",
                "message": 'Deployment.apps "d" is invalid: [status.replicas: Invalid value: -3: must be greater than or equal to 0, status.updatedReplicas: Invalid value: 0: cannot be greater than status.replicas, status.readyReplicas: Invalid value: 0: cannot be greater than status.replicas, status.availableReplicas: Invalid value: 0: cannot be greater than status.replicas]',
            },
        ),
    ),
    case(
        "deployment_metadata",
        DEPLOYMENT,
        patch(
            "merge",
            "deployments/d/status",
            META + "}",
            {
                "metadata.labels": GONE,
                "metadata.annotations": {"n": "z"},
                FINALIZERS: ["x/a"],
                OWNERS: [{"apiVersion": "v1", "kind": "Pod", "name": "o", "uid": "u"}],
            },
        ),
    ),
    case(
        "node",
        post(
            "nodes/<ns>",
            "{status: {capacity: {cpu: 4}}}",
            {
                "status": {
                    "capacity": {"cpu": "4"},
                    "allocatable": {"cpu": "4"},
                    "daemonEndpoints": {"kubeletEndpoint": {"Port": 0}},
                    "nodeInfo": {
                        "machineID": "",
                        "systemUUID": "",
                        "bootID": "",
                        "kernelVersion": "",
                        "osImage": "",
                        "containerRuntimeVersion": "",
                        "kubeletVersion": "",
                        "kubeProxyVersion": "",
                        "operatingSystem": "",
                        "architecture": "",
                    },
                }
            },
        ),
        patch(
            "merge",
            "nodes/<ns>/status",
            "{status: {capacity: {cpu: '8', 'x.com/gpu': '2'}, conditions: [{type: Ready, status: 'True'}]}, spec: {unschedulable: true}, metadata: {labels: {a: b}}}",
            {
                "status.capacity": {"cpu": "8", "x.com/gpu": "2"},
                "status.allocatable": {"cpu": "4"},
                "spec.unschedulable": GONE,
                "metadata.labels": {"a": "b"},
            },
        ),
    ),
    case(
        "node_main_ignores_status",
        post("nodes/<ns>", "{}"),
        patch("merge", "nodes/<ns>", "{status: {capacity: {cpu: '8'}}}", {"status.capacity": GONE}),
    ),
    case(
        "pod_terminal",
        POD,
        patch("merge", "pods/p/status", "{status: {phase: Succeeded}}"),
        patch("merge", "pods/p/status", "{status: {phase: Running}}", {"@": 200, "message": GONE, "status.phase": "Running"}),
    ),
    case("pod_bad_phase", POD, patch("merge", "pods/p/status", "{status: {phase: Frob}}", {"@": 200, "message": GONE})),
    case(
        "pod_observed_generation",
        POD,
        patch(
            "merge",
            "pods/p/status",
            "{status: {observedGeneration: 1, conditions: [{type: Ready, status: 'True', observedGeneration: 1}]}}",
            {"status.observedGeneration": 1},
        ),
    ),
    case(
        "binding_status_pods",
        post(
            "poddisruptionbudgets/b",
            "{spec: {minAvailable: 1, selector: {matchLabels: {a: b}}}}",
            {"status": {"disruptionsAllowed": 0, "currentHealthy": 0, "desiredHealthy": 0, "expectedPods": 0}},
        ),
        patch(
            "merge",
            "poddisruptionbudgets/b/status",
            "{status: {disruptionsAllowed: 1, currentHealthy: 2, desiredHealthy: 1, expectedPods: 2, observedGeneration: 1}}",
            {
                "status": {"observedGeneration": 1, "disruptionsAllowed": 1, "currentHealthy": 2, "desiredHealthy": 1, "expectedPods": 2},
                "metadata.generation": 1,
            },
        ),
    ),
    case(
        "topology",
        post("clustertopologybindings/<ns>", "{spec: {levels: [{domain: rack, key: x}]}}"),
        patch("merge", "clustertopologybindings/<ns>/status", "{status: {observedGeneration: 1}}", {"status": {"observedGeneration": 1}}),
    ),
    case(
        "gang_phase_required",
        post("podgangs/g", "{spec: {podgroups: [{name: a, minReplicas: 1, podReferences: []}]}}"),
        patch(
            "merge",
            "podgangs/g/status",
            "{status: {pods: 1}}",
            {"@": 422, "reason": "Invalid", "message": 'PodGang.scheduler.grove.io "g" is invalid: status.phase: Required value'},
        ),
        patch("merge", "podgangs/g/status", "{status: {phase: Running}}", {"status.phase": "Running"}),
    ),
    case(
        "placement_phase",
        post("gangplacements/g", "{spec: {deadline: '2024-01-01T00:00:00Z', decisionID: d, epoch: 1, pods: []}}"),
        patch(
            "merge",
            "gangplacements/g/status",
            "{status: {phase: Frob}}",
            {
                "@": 422,
                "reason": "Invalid",
                "message": 'GangPlacement.scheduling.grovekeeper.io "g" is invalid: status.phase: Unsupported value: "Frob": supported values: "Open", "Confirmed", "Compensating", "Abandoned"',
            },
        ),
    ),
]


@pytest.mark.parametrize("steps", CASES)
async def test_a_status(api: Api, steps: tuple[Step, ...]) -> None:
    await run(api, steps)
