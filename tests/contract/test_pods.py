"""Pods: defaults, what may be changed, admission, status at creation."""
# ruff: noqa: E501 - messages of the server stand whole, to be found by searching.

from typing import Any

import pytest

from tests.contract.client import Api
from tests.contract.rows import ANY, GONE, Step, case, delete, fails, get, patch, post, run

C = "containers: [{name: a, image: i}]"


def body(spec: str, meta: str = "") -> str:
    """YAML of a pod with these fields of its spec, and of its metadata."""
    return f"{{metadata: {{{meta}}}, spec: {{{spec}}}}}"


POD = post("pods/p", body(C))


def made(name: str, spec: str, expected: Any, meta: str = "") -> Any:
    return case(name, post("pods/p", body(spec, meta), expected))


def changed(name: str, change: str, expected: Any, spec: str = C) -> Any:
    return case(name, post("pods/p", body(spec)), patch("strategic", "pods/p", change, expected))


CASES = [
    made(
        "smallest",
        C,
        {
            "spec": {
                "containers": [
                    {
                        "name": "a",
                        "image": "i",
                        "resources": {},
                        "terminationMessagePath": "/dev/termination-log",
                        "terminationMessagePolicy": "File",
                        "imagePullPolicy": "Always",
                    }
                ],
                "restartPolicy": "Always",
                "terminationGracePeriodSeconds": 30,
                "dnsPolicy": "ClusterFirst",
                "securityContext": {},
                "schedulerName": "default-scheduler",
                "tolerations": [
                    {"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300},
                    {"key": "node.kubernetes.io/unreachable", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300},
                ],
                "priority": 0,
                "enableServiceLinks": True,
                "preemptionPolicy": "PreemptLowerPriority",
            },
            "status": {"phase": "Pending", "qosClass": "BestEffort"},
            "metadata.generation": 1,
        },
    ),
    made(
        "container_fields",
        "containers: [{name: a, image: 'i:v1', ports: [{containerPort: 80}], env: [{name: e, valueFrom: {fieldRef: {fieldPath: metadata.name}}}], livenessProbe: {httpGet: {port: 80}}, lifecycle: {preStop: {httpGet: {port: 1}}}, resources: {limits: {cpu: 1}}}]",
        {
            "spec.containers.0": {
                "name": "a",
                "image": "i:v1",
                "ports": [{"containerPort": 80, "protocol": "TCP"}],
                "env": [{"name": "e", "valueFrom": {"fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.name"}}}],
                "resources": {"limits": {"cpu": "1"}, "requests": {"cpu": "1"}},
                "livenessProbe": {
                    "httpGet": {"path": "/", "port": 80, "scheme": "HTTP"},
                    "timeoutSeconds": 1,
                    "periodSeconds": 10,
                    "successThreshold": 1,
                    "failureThreshold": 3,
                },
                "lifecycle": {"preStop": {"httpGet": {"path": "/", "port": 1, "scheme": "HTTP"}}},
                "terminationMessagePath": "/dev/termination-log",
                "terminationMessagePolicy": "File",
                "imagePullPolicy": "IfNotPresent",
            },
            "status.qosClass": "Burstable",
        },
    ),
    made("image_latest", "containers: [{name: a, image: 'i:latest'}]", {"spec.containers.0.imagePullPolicy": "Always"}),
    made(
        "image_digest",
        "containers: [{name: a, image: 'i@sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef'}]",
        {"spec.containers.0.imagePullPolicy": "IfNotPresent"},
    ),
    made(
        "guaranteed",
        "containers: [{name: a, image: i, resources: {limits: {cpu: 1, memory: 1Gi}}}]",
        {
            "status.qosClass": "Guaranteed",
            "spec.containers.0.resources": {"limits": {"cpu": "1", "memory": "1Gi"}, "requests": {"cpu": "1", "memory": "1Gi"}},
        },
    ),
    made(
        "burstable",
        "containers: [{name: a, image: i, resources: {requests: {cpu: 0.5}}}]",
        {"status.qosClass": "Burstable", "spec.containers.0.resources": {"requests": {"cpu": "500m"}}},
    ),
    made(
        "extended_resource",
        "containers: [{name: a, image: i, resources: {limits: {nvidia.com/gpu: 8}}}]",
        {
            "spec.containers.0.resources": {"limits": {"nvidia.com/gpu": "8"}, "requests": {"nvidia.com/gpu": "8"}},
            "status.qosClass": "BestEffort",
        },
    ),
    made(
        "extended_differs",
        "containers: [{name: a, image: i, resources: {limits: {nvidia.com/gpu: 8}, requests: {nvidia.com/gpu: 4}}}]",
        {
            "@": 422,
            "reason": "Invalid",
            "message": 'Pod "p" is invalid: spec.containers[0].resources.requests: Invalid value: "4": must be equal to nvidia.com/gpu limit of 8',
        },
    ),
    made(
        "request_above_limit",
        "containers: [{name: a, image: i, resources: {limits: {cpu: 1}, requests: {cpu: 2}}}]",
        {
            "@": 422,
            "reason": "Invalid",
            "message": 'Pod "p" is invalid: spec.containers[0].resources.requests: Invalid value: "2": must be less than or equal to cpu limit of 1',
        },
    ),
    made(
        "fractional_gpu",
        "containers: [{name: a, image: i, resources: {limits: {nvidia.com/gpu: 500m}}}]",
        {
            "@": 422,
            "reason": "Invalid",
            "message": 'Pod "p" is invalid: [spec.containers[0].resources.limits[nvidia.com/gpu]: Invalid value: "500m": must be an integer, spec.containers[0].resources.requests[nvidia.com/gpu]: Invalid value: "500m": must be an integer]',
        },
    ),
    made(
        "volumes",
        C
        + ", volumes: [{name: a, configMap: {name: c}}, {name: b, secret: {secretName: s}}, {name: c, emptyDir: {}}, {name: d, downwardAPI: {items: [{path: x, fieldRef: {fieldPath: metadata.name}}]}}, {name: f, hostPath: {path: /x}}, {name: g, persistentVolumeClaim: {claimName: q}}]",
        {
            "spec.volumes": [
                {"name": "a", "configMap": {"name": "c", "defaultMode": 420}},
                {"name": "b", "secret": {"secretName": "s", "defaultMode": 420}},
                {"name": "c", "emptyDir": {}},
                {
                    "name": "d",
                    "downwardAPI": {
                        "items": [{"path": "x", "fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.name"}}],
                        "defaultMode": 420,
                    },
                },
                {"name": "f", "hostPath": {"path": "/x", "type": ""}},
                {"name": "g", "persistentVolumeClaim": {"claimName": "q"}},
            ]
        },
    ),
    made(
        "init_containers",
        C + ", initContainers: [{name: b, image: 'i:v1', restartPolicy: Always}]",
        {
            "spec.initContainers": [
                {
                    "name": "b",
                    "image": "i:v1",
                    "resources": {},
                    "restartPolicy": "Always",
                    "terminationMessagePath": "/dev/termination-log",
                    "terminationMessagePolicy": "File",
                    "imagePullPolicy": "IfNotPresent",
                }
            ]
        },
    ),
    made(
        "tolerations",
        C + ", tolerations: [{key: k, operator: Exists, effect: NoSchedule}]",
        {
            "spec.tolerations": [
                {"key": "k", "operator": "Exists", "effect": "NoSchedule"},
                {"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300},
                {"key": "node.kubernetes.io/unreachable", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300},
            ]
        },
    ),
    made("tolerates_all", C + ", tolerations: [{operator: Exists}]", {"spec.tolerations": [{"operator": "Exists"}]}),
    made(
        "host_network",
        "hostNetwork: true, containers: [{name: a, image: i, ports: [{containerPort: 80}]}]",
        {"spec.containers.0.ports": [{"hostPort": 80, "containerPort": 80, "protocol": "TCP"}], "spec.hostNetwork": True},
    ),
    made("service_account", C + ", serviceAccountName: x", {"spec.serviceAccountName": "x", "spec.serviceAccount": "x"}),
    made(
        "topology_spread",
        C + ", topologySpreadConstraints: [{maxSkew: 1, topologyKey: k, whenUnsatisfiable: DoNotSchedule}]",
        {"spec.topologySpreadConstraints": [{"maxSkew": 1, "topologyKey": "k", "whenUnsatisfiable": "DoNotSchedule"}]},
    ),
    made(
        "gated",
        C + ", schedulingGates: [{name: g}]",
        {
            "status.conditions.#": 1,
            "status.conditions.0.reason": "SchedulingGated",
            "status.conditions.0.status": "False",
            "status.conditions.0.message": "Scheduling is blocked due to non-empty scheduling gates",
        },
    ),
    made(
        "gated_and_bound",
        C + ", schedulingGates: [{name: g}], nodeName: n",
        fails(422, "Invalid", 'Pod "p" is invalid: spec.nodeName: Forbidden: cannot be set until all schedulingGates have been cleared'),
    ),
    made(
        "gates_twice",
        C + ", schedulingGates: [{name: g}, {name: g}]",
        fails(422, "Invalid", 'Pod "p" is invalid: spec.schedulingGates[1]: Duplicate value: "g"'),
    ),
    made(
        "gate_name",
        C + ", schedulingGates: [{name: 'a b'}]",
        fails(
            422,
            "Invalid",
            "Pod \"p\" is invalid: spec.schedulingGates[0]: Invalid value: \"a b\": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')",
        ),
    ),
    made("bound", C + ", nodeName: n", {"spec.nodeName": "n", "status": {"phase": "Pending", "qosClass": "BestEffort"}}),
    made(
        "priority_missing_class",
        C + ", priorityClassName: none",
        fails(403, "Forbidden", 'pods "p" is forbidden: no PriorityClass with name none was found'),
    ),
    made(
        "priority_given",
        C + ", priority: 7",
        fails(
            403,
            "Forbidden",
            'pods "p" is forbidden: the integer value of priority (7) must not be provided in pod spec; priority admission controller computed 0 from the given PriorityClass name',
        ),
    ),
    made(
        "priority_system",
        C + ", priorityClassName: system-node-critical",
        {"@": 201, "spec.priority": 2000001000, "spec.preemptionPolicy": "PreemptLowerPriority", "message": GONE},
    ),
    case(
        "priority_class",
        post("priorityclasses/<ns>", "{value: 70, preemptionPolicy: Never}"),
        post("pods/p", body(C + ", priorityClassName: <ns>"), {"spec.priority": 70, "spec.preemptionPolicy": "Never"}),
    ),
    case(
        "priority_differs",
        post("priorityclasses/<ns>", "{value: 70}"),
        post(
            "pods/p",
            body(C + ", priorityClassName: <ns>, priority: 71"),
            fails(
                403,
                "Forbidden",
                'pods "p" is forbidden: the integer value of priority (71) must not be provided in pod spec; priority admission controller computed 70 from the given PriorityClass name',
            ),
        ),
    ),
    made("no_containers", "containers: []", fails(422, "Invalid", 'Pod "p" is invalid: spec.containers: Required value')),
    made("no_spec", "", fails(422, "Invalid", 'Pod "p" is invalid: spec.containers: Required value')),
    made("no_image", "containers: [{name: a}]", fails(422, "Invalid", 'Pod "p" is invalid: spec.containers[0].image: Required value')),
    made(
        "bad_names",
        "containers: [{name: A_b, image: i}, {name: c, image: i}, {name: c, image: j}]",
        {
            "@": 422,
            "reason": "Invalid",
            "message": "Pod \"p\" is invalid: [spec.containers[0].name: Invalid value: \"A_b\": a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?'), spec.containers[2].name: Duplicate value: \"c\"]",
            "@causes": [("spec.containers[0].name", "FieldValueInvalid"), ("spec.containers[2].name", "FieldValueDuplicate")],
        },
    ),
    made(
        "bad_values",
        C + ", restartPolicy: Frob, dnsPolicy: Frob",
        fails(
            422,
            "Invalid",
            'Pod "p" is invalid: [spec.restartPolicy: Unsupported value: "Frob": supported values: "Always", "OnFailure", "Never", spec.dnsPolicy: Unsupported value: "Frob": supported values: "ClusterFirstWithHostNet", "ClusterFirst", "Default", "None"]',
            causes=[("spec.restartPolicy", "FieldValueNotSupported"), ("spec.dnsPolicy", "FieldValueNotSupported")],
        ),
    ),
    made("grace_negative", C + ", terminationGracePeriodSeconds: -5", {"spec.terminationGracePeriodSeconds": 1}),
    made(
        "deadline_zero",
        C + ", activeDeadlineSeconds: 0",
        fails(
            422, "Invalid", 'Pod "p" is invalid: spec.activeDeadlineSeconds: Invalid value: 0: must be between 1 and 2147483647, inclusive'
        ),
    ),
    made(
        "volume_missing",
        "containers: [{name: a, image: i, volumeMounts: [{name: v, mountPath: /x}]}]",
        {"@": 422, "reason": "Invalid", "message": 'Pod "p" is invalid: spec.containers[0].volumeMounts[0].name: Not found: "v"'},
    ),
    made(
        "env_name",
        "containers: [{name: a, image: i, env: [{name: '', value: x}]}]",
        fails(422, "Invalid", 'Pod "p" is invalid: spec.containers[0].env[0].name: Required value'),
    ),
    made(
        "env_two_values",
        "containers: [{name: a, image: i, env: [{name: e, value: x, valueFrom: {fieldRef: {fieldPath: metadata.name}}}]}]",
        {
            "@": 422,
            "reason": "Invalid",
            "message": 'Pod "p" is invalid: spec.containers[0].env[0].valueFrom: Invalid value: "": may not be specified when `value` is not empty',
        },
    ),
    made(
        "toleration_without_key",
        C + ", tolerations: [{operator: Equal}]",
        fails(
            422,
            "Invalid",
            'Pod "p" is invalid: spec.tolerations[0].operator: Invalid value: "Equal": operator must be Exists when `key` is empty, which means "match all values and all keys"',
        ),
    ),
    made(
        "node_selector_value",
        C + ", nodeSelector: {a: 'b c'}",
        fails(
            422,
            "Invalid",
            "Pod \"p\" is invalid: spec.nodeSelector: Invalid value: \"b c\": a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')",
        ),
    ),
    made("hostname_and_subdomain", C + ", hostname: h, subdomain: s", {"spec.hostname": "h", "spec.subdomain": "s"}),
    made(
        "hostname_bad",
        C + ", hostname: H_h",
        fails(
            422,
            "Invalid",
            "Pod \"p\" is invalid: spec.hostname: Invalid value: \"H_h\": a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')",
        ),
    ),
    made(
        "long_name",
        C,
        {
            "@": 422,
            "reason": "Invalid",
            "message": 'Pod "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx" is invalid: metadata.name: Invalid value: "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx": must be no more than 253 characters',
        },
        "name: " + "x" * 254,
    ),
    made(
        "upper_case_name",
        C,
        {
            "@": 422,
            "reason": "Invalid",
            "message": "Pod \"Pod\" is invalid: metadata.name: Invalid value: \"Pod\": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')",
        },
        "name: Pod",
    ),
    made(
        "long_label",
        C,
        {
            "@": 422,
            "reason": "Invalid",
            "message": 'Pod "p" is invalid: metadata.labels: Invalid value: "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx": must be no more than 63 bytes',
        },
        "labels: {a: " + "x" * 64 + "}",
    ),
    made(
        "resource_claims",
        C + ", resourceClaims: [{name: c, resourceClaimTemplateName: t}]",
        {"spec.resourceClaims": [{"name": "c", "resourceClaimTemplateName": "t"}]},
    ),
    made(
        "claim_unknown",
        "containers: [{name: a, image: i, resources: {claims: [{name: c}]}}]",
        fails(
            422,
            "Invalid",
            'Pod "p" is invalid: spec.containers[0].resources.claims[0]: Not found: "c": must be one of the names in pod.spec.resourceClaims which is empty',
        ),
    ),
    made("unknown_field", C + ", frob: 1", {"spec.frob": GONE}),
    changed("image", "{spec: {containers: [{name: a, image: j}]}}", {"spec.containers.0.image": "j", "metadata.generation": 2}),
    changed(
        "image_empty",
        "{spec: {containers: [{name: a, image: ''}]}}",
        fails(422, "Invalid", 'Pod "p" is invalid: spec.containers[0].image: Required value'),
    ),
    changed(
        "command",
        "{spec: {containers: [{name: a, command: [x]}]}}",
        {
            "@": 422,
            "reason": "Invalid",
            "@causes": [("spec", "FieldValueForbidden")],
            "message": 'Pod "p" is invalid: spec: Forbidden: pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)\n@@ -5,7 +5,9 @@\n   {\n    "Name": "a",\n    "Image": "i",\n-   "Command": null,\n+   "Command": [\n+    "x"\n+   ],\n    "Args": null,\n    "WorkingDir": "",\n    "Ports": null,\n',
        },
    ),
    changed(
        "container_added",
        "{spec: {containers: [{name: z, image: i}]}}",
        fails(
            422,
            "Invalid",
            'Pod "p" is invalid: spec.containers: Forbidden: pod updates may not add or remove containers',
            causes=[("spec.containers", "FieldValueForbidden")],
        ),
    ),
    changed(
        "resources",
        "{spec: {containers: [{name: a, resources: {limits: {cpu: 1}}}]}}",
        fails(422, "Invalid", ANY, causes=[("spec", "FieldValueForbidden")]),
    ),
    changed(
        "service_account_changed", "{spec: {serviceAccountName: y}}", fails(422, "Invalid", ANY, causes=[("spec", "FieldValueForbidden")])
    ),
    changed("deadline_set", "{spec: {activeDeadlineSeconds: 10}}", {"spec.activeDeadlineSeconds": 10}),
    changed(
        "deadline_raised",
        "{spec: {activeDeadlineSeconds: 20}}",
        {
            "@": 422,
            "reason": "Invalid",
            "message": 'Pod "p" is invalid: spec.activeDeadlineSeconds: Invalid value: 20: must be less than or equal to previous value',
        },
        C + ", activeDeadlineSeconds: 10",
    ),
    changed("deadline_lowered", "{spec: {activeDeadlineSeconds: 5}}", {"spec.activeDeadlineSeconds": 5}, C + ", activeDeadlineSeconds: 10"),
    changed(
        "grace_changed",
        "{spec: {terminationGracePeriodSeconds: 10}}",
        {"@": 422, "reason": "Invalid", "@causes": [("spec", "FieldValueForbidden")]},
    ),
    changed(
        "toleration_added",
        "{spec: {tolerations: [{key: k, operator: Exists}, {key: node.kubernetes.io/not-ready, operator: Exists, effect: NoExecute, tolerationSeconds: 300}, {key: node.kubernetes.io/unreachable, operator: Exists, effect: NoExecute, tolerationSeconds: 300}]}}",
        {"spec.tolerations.#": 3},
    ),
    changed("toleration_removed", "{spec: {tolerations: []}}", {"@": 200, "@causes": []}),
    changed(
        "gate_removed",
        "{spec: {schedulingGates: [{$patch: delete, name: g}]}}",
        {
            "spec.schedulingGates": GONE,
            "status.conditions": [
                {
                    "type": "PodScheduled",
                    "status": "False",
                    "lastProbeTime": None,
                    "lastTransitionTime": "<time>",
                    "reason": "SchedulingGated",
                    "message": "Scheduling is blocked due to non-empty scheduling gates",
                }
            ],
            "metadata.generation": 2,
        },
        C + ", schedulingGates: [{name: g}]",
    ),
    changed(
        "gated_node_selector", "{spec: {nodeSelector: {a: b}}}", {"spec.nodeSelector": {"a": "b"}}, C + ", schedulingGates: [{name: g}]"
    ),
    changed(
        "gated_node_selector_changed",
        "{spec: {nodeSelector: {a: c}}}",
        {
            "@": 422,
            "@causes": [("spec.nodeSelector", "FieldValueInvalid")],
            "message": 'Pod "p" is invalid: spec.nodeSelector: Invalid value: {"a":"c"}: only additions to spec.nodeSelector are allowed (no mutations or deletions)',
        },
        C + ", schedulingGates: [{name: g}], nodeSelector: {a: b}",
    ),
    changed("node_selector", "{spec: {nodeSelector: {a: b}}}", {"@": 422, "@causes": [("spec", "FieldValueForbidden")]}),
    changed("labels", "{metadata: {labels: {a: b}, annotations: {c: d}}}", {"metadata.labels": {"a": "b"}, "metadata.generation": 1}),
    changed("priority", "{spec: {priority: 9}}", {"@": 422, "@causes": [("spec", "FieldValueForbidden")]}),
    changed("host_network_on", "{spec: {hostNetwork: true}}", {"@": 422, "@causes": [("spec", "FieldValueForbidden")]}),
    case(
        "ephemeral_by_main",
        POD,
        patch(
            "strategic",
            "pods/p",
            "{spec: {ephemeralContainers: [{name: d, image: i}]}}",
            {"@": 422, "@causes": [("spec", "FieldValueForbidden")]},
        ),
    ),
    case(
        "ephemeral_at_creation",
        post(
            "pods/q",
            body(C + ", ephemeralContainers: [{name: d, image: i}]"),
            fails(422, "Invalid", 'Pod "q" is invalid: spec.ephemeralContainers: Forbidden: cannot be set on create'),
        ),
    ),
    case(
        "ephemeral",
        POD,
        patch(
            "strategic",
            "pods/p/ephemeralcontainers",
            "{spec: {ephemeralContainers: [{name: d, image: i}]}}",
            {
                "spec.ephemeralContainers": [
                    {
                        "name": "d",
                        "image": "i",
                        "resources": {},
                        "terminationMessagePath": "/dev/termination-log",
                        "terminationMessagePolicy": "File",
                        "imagePullPolicy": "Always",
                    }
                ],
                "metadata.generation": 2,
            },
        ),
        patch(
            "json",
            "pods/p/ephemeralcontainers",
            [{"op": "remove", "path": "/spec/ephemeralContainers/0"}],
            {
                "@": 422,
                "reason": "Invalid",
                "message": 'Pod "p" is invalid: spec.ephemeralContainers: Forbidden: existing ephemeral containers "d" may not be removed\n',
            },
        ),
    ),
    case(
        "resize",
        post("pods/p", "{spec: {containers: [{name: a, image: i, resources: {requests: {cpu: 1}}}]}}"),
        patch(
            "strategic",
            "pods/p/resize",
            "{spec: {containers: [{name: a, resources: {requests: {cpu: 2}}}]}}",
            {"spec.containers.0.resources.requests.cpu": "2", "metadata.generation": 2},
        ),
    ),
    case(
        "delete_grace",
        post("pods/p", body(C + ", nodeName: n")),
        delete("pods/p", None, {"metadata.deletionGracePeriodSeconds": 30, "metadata.generation": 2}),
        delete("pods/p", {"gracePeriodSeconds": 5}, {"metadata.deletionGracePeriodSeconds": 5}),
        delete("pods/p", {"gracePeriodSeconds": 9}, {"metadata.deletionGracePeriodSeconds": 5}),
        delete("pods/p", {"gracePeriodSeconds": 0}),
        get("pods/p", fails(404, "NotFound")),
    ),
    case(
        "delete_unbound",
        POD,
        delete("pods/p", None, {"@": 200, "metadata.deletionTimestamp": "<time>"}),
        get("pods/p", fails(404, "NotFound")),
    ),
    case(
        "delete_finished",
        post("pods/p", body(C + ", nodeName: n")),
        patch("merge", "pods/p/status", "{status: {phase: Failed}}"),
        delete("pods/p"),
        get("pods/p", fails(404, "NotFound")),
    ),
    case(
        "delete_with_finalizer",
        post("pods/p", body(C, "finalizers: [x/a]")),
        delete("pods/p", None, {"metadata.deletionTimestamp": ANY, "metadata.deletionGracePeriodSeconds": 0, "metadata.generation": 2}),
        patch(
            "merge",
            "pods/p",
            "{metadata: {finalizers: [x/a, x/b]}}",
            fails(
                422,
                "Invalid",
                'Pod "p" is invalid: metadata.finalizers: Forbidden: no new finalizers can be added if the object is being deleted, found new finalizers []string{"x/b"}',
            ),
        ),
        patch("merge", "pods/p", "{metadata: {finalizers: null}}"),
        get("pods/p", fails(404, "NotFound")),
    ),
]


@pytest.mark.parametrize("steps", CASES)
async def test_a_pod(api: Api, steps: tuple[Step, ...]) -> None:
    await run(api, steps)
