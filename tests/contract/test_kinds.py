"""Defaults and validation of the other kinds of a plain cluster that this project uses."""
# ruff: noqa: E501 - messages of the server stand whole, to be found by searching.

import pytest

from tests.contract.client import Api
from tests.contract.rows import ANY, GONE, Step, case, delete, fails, get, patch, post, put, run

JOB = "{spec: {template: {spec: {restartPolicy: Never, containers: [{name: c, image: i}]}}}}"
TEMPLATE = "template: {metadata: {labels: {a: b}}, spec: {containers: [{name: c, image: i}]}}"
HPA = "scaleTargetRef: {apiVersion: grove.io/v1alpha1, kind: PodClique, name: c}, maxReplicas: 5"
IMMUTABLE = post("configmaps/a", "{immutable: true, data: {a: b}}")
RULES = "rules: [{apiGroups: [''], resources: [pods], verbs: [get]}]"

CASES = [
    case("configmap", post("configmaps/a", "{data: {a: b}, binaryData: {c: aGk=}}", {"data": {"a": "b"}, "binaryData": {"c": "aGk="}})),
    case(
        "configmap_key",
        post(
            "configmaps/a",
            "{data: {'a b': c}}",
            {
                "@": 422,
                "reason": "Invalid",
                "message": "ConfigMap \"a\" is invalid: data[a b]: Invalid value: \"a b\": a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or 'KEY_NAME',  or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')",
            },
        ),
    ),
    case(
        "configmap_key_twice",
        post(
            "configmaps/a",
            "{data: {a: c}, binaryData: {a: aGk=}}",
            {
                "@": 422,
                "reason": "Invalid",
                "message": 'ConfigMap "a" is invalid: data[a]: Invalid value: "a": duplicate of key present in binaryData',
            },
        ),
    ),
    case(
        "configmap_base64",
        post(
            "configmaps/a",
            "{binaryData: {a: '%%'}}",
            {
                "@": 400,
                "reason": "BadRequest",
                "message": 'ConfigMap in version "v1" cannot be handled as a ConfigMap: illegal base64 data at input byte 0',
            },
        ),
    ),
    case(
        "configmap_immutable_data",
        IMMUTABLE,
        patch(
            "merge",
            "configmaps/a",
            "{data: {a: c}}",
            fails(422, "Invalid", 'ConfigMap "a" is invalid: data: Forbidden: field is immutable when `immutable` is set'),
        ),
    ),
    case(
        "configmap_immutable_unset",
        IMMUTABLE,
        patch(
            "merge",
            "configmaps/a",
            "{immutable: false}",
            fails(422, "Invalid", 'ConfigMap "a" is invalid: immutable: Forbidden: field is immutable when `immutable` is set'),
        ),
    ),
    case(
        "configmap_immutable_labels",
        IMMUTABLE,
        patch("merge", "configmaps/a", "{metadata: {labels: {a: b}}}", {"metadata.labels": {"a": "b"}}),
    ),
    case(
        "secret",
        post(
            "secrets/a",
            "{stringData: {a: hi}, data: {b: aGk=}}",
            {"data": {"a": "aGk=", "b": "aGk="}, "type": "Opaque", "stringData": GONE},
        ),
    ),
    case(
        "secret_type",
        post(
            "secrets/a",
            "{type: kubernetes.io/tls}",
            {
                "@": 422,
                "reason": "Invalid",
                "message": 'Secret "a" is invalid: [data[tls.crt]: Required value, data[tls.key]: Required value]',
            },
        ),
    ),
    case(
        "secret_type_changed",
        post("secrets/a", "{}"),
        patch(
            "merge",
            "secrets/a",
            "{type: other}",
            fails(422, "Invalid", 'Secret "a" is invalid: type: Invalid value: "other": field is immutable'),
        ),
    ),
    case(
        "secret_base64",
        post(
            "secrets/a",
            "{data: {b: '%%'}}",
            {
                "@": 400,
                "reason": "BadRequest",
                "message": 'Secret in version "v1" cannot be handled as a Secret: illegal base64 data at input byte 0',
            },
        ),
    ),
    case(
        "secret_immutable",
        post("secrets/a", "{immutable: true, data: {a: aGk=}}"),
        patch(
            "merge",
            "secrets/a",
            "{stringData: {a: ho}}",
            fails(422, "Invalid", 'Secret "a" is invalid: data: Forbidden: field is immutable when `immutable` is set'),
        ),
    ),
    case("service_account", post("serviceaccounts/a", "{}", {"secrets": GONE, "metadata.name": "a", "metadata.generation": GONE})),
    case(
        "claim",
        post(
            "persistentvolumeclaims/c",
            "{spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}",
            {
                "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}, "volumeMode": "Filesystem"},
                "status": {"phase": "Pending"},
                "metadata.finalizers": ["kubernetes.io/pvc-protection"],
            },
        ),
    ),
    case(
        "claim_without_modes",
        post(
            "persistentvolumeclaims/c",
            "{spec: {resources: {requests: {storage: 1Gi}}}}",
            fails(
                422, "Invalid", 'PersistentVolumeClaim "c" is invalid: spec.accessModes: Required value: at least 1 access mode is required'
            ),
        ),
    ),
    case(
        "claim_without_size",
        post(
            "persistentvolumeclaims/c",
            "{spec: {accessModes: [ReadWriteOnce]}}",
            fails(422, "Invalid", 'PersistentVolumeClaim "c" is invalid: spec.resources[storage]: Required value'),
        ),
    ),
    case(
        "claim_immutable",
        post("persistentvolumeclaims/c", "{spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}"),
        patch(
            "merge",
            "persistentvolumeclaims/c",
            "{spec: {accessModes: [ReadWriteMany]}}",
            {"@": 422, "reason": "Invalid", "@causes": [("spec", "FieldValueForbidden")]},
        ),
    ),
    case(
        "autoscaler",
        post(
            "horizontalpodautoscalers/h",
            "{spec: {" + HPA + "}}",
            {
                "spec": {
                    "scaleTargetRef": {"kind": "PodClique", "name": "c", "apiVersion": "grove.io/v1alpha1"},
                    "minReplicas": 1,
                    "maxReplicas": 5,
                    "metrics": [
                        {"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 80}}}
                    ],
                },
                "status": {"desiredReplicas": 0, "currentMetrics": None},
            },
        ),
    ),
    case(
        "autoscaler_v1_read_as_v2",
        post(
            "/apis/autoscaling/v1/namespaces/<ns>/horizontalpodautoscalers",
            "{apiVersion: autoscaling/v1, kind: HorizontalPodAutoscaler, metadata: {name: h}, spec: {"
            + HPA
            + ", targetCPUUtilizationPercentage: 70}}",
            {
                "apiVersion": "autoscaling/v1",
                "spec": {
                    "scaleTargetRef": {"kind": "PodClique", "name": "c", "apiVersion": "grove.io/v1alpha1"},
                    "minReplicas": 1,
                    "maxReplicas": 5,
                    "targetCPUUtilizationPercentage": 70,
                },
            },
        ),
        get(
            "horizontalpodautoscalers/h",
            {
                "apiVersion": "autoscaling/v2",
                "spec": {
                    "scaleTargetRef": {"kind": "PodClique", "name": "c", "apiVersion": "grove.io/v1alpha1"},
                    "minReplicas": 1,
                    "maxReplicas": 5,
                    "metrics": [
                        {"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 70}}}
                    ],
                },
                "metadata.annotations": GONE,
            },
        ),
    ),
    case(
        "autoscaler_v2_read_as_v1",
        post(
            "horizontalpodautoscalers/h",
            "{spec: {"
            + HPA
            + ", metrics: [{type: Resource, resource: {name: memory, target: {type: Utilization, averageUtilization: 50}}}]}}",
        ),
        get(
            "/apis/autoscaling/v1/namespaces/<ns>/horizontalpodautoscalers/h",
            {
                "apiVersion": "autoscaling/v1",
                "spec": {
                    "scaleTargetRef": {"kind": "PodClique", "name": "c", "apiVersion": "grove.io/v1alpha1"},
                    "minReplicas": 1,
                    "maxReplicas": 5,
                },
                "metadata.annotations": {
                    "autoscaling.alpha.kubernetes.io/metrics": '[{"type":"Resource","resource":{"name":"memory","targetAverageUtilization":50}}]'
                },
            },
        ),
    ),
    case(
        "autoscaler_limits",
        post(
            "horizontalpodautoscalers/h",
            "{spec: {" + HPA + ", minReplicas: 6}}",
            fails(
                422,
                "Invalid",
                'HorizontalPodAutoscaler.autoscaling "h" is invalid: spec.maxReplicas: Invalid value: 5: must be greater than or equal to `minReplicas`',
            ),
        ),
    ),
    case(
        "autoscaler_without_target",
        post(
            "horizontalpodautoscalers/h",
            "{spec: {maxReplicas: 3}}",
            fails(
                422,
                "Invalid",
                'HorizontalPodAutoscaler.autoscaling "h" is invalid: [spec.scaleTargetRef.kind: Required value, spec.scaleTargetRef.name: Required value, spec.scaleTargetRef.apiVersion: Invalid value: "": apiVersion must specify API group]',
            ),
        ),
    ),
    case(
        "budget",
        post(
            "poddisruptionbudgets/b",
            "{spec: {minAvailable: 50%, selector: {matchLabels: {a: b}}}}",
            {
                "spec": {"minAvailable": "50%", "selector": {"matchLabels": {"a": "b"}}},
                "status": {"disruptionsAllowed": 0, "currentHealthy": 0, "desiredHealthy": 0, "expectedPods": 0},
                "metadata.generation": 1,
            },
        ),
    ),
    case(
        "budget_both",
        post(
            "poddisruptionbudgets/b",
            "{spec: {minAvailable: 1, maxUnavailable: 1}}",
            fails(
                422,
                "Invalid",
                'PodDisruptionBudget.policy "b" is invalid: spec: Invalid value: {"MinAvailable":1,"Selector":null,"MaxUnavailable":1,"UnhealthyPodEvictionPolicy":null}: minAvailable and maxUnavailable cannot be both set',
            ),
        ),
    ),
    case(
        "budget_negative",
        post(
            "poddisruptionbudgets/b",
            "{spec: {minAvailable: -1}}",
            {
                "@": 422,
                "reason": "Invalid",
                "message": 'PodDisruptionBudget.policy "b" is invalid: spec.minAvailable: Invalid value: -1: must be greater than or equal to 0',
            },
        ),
    ),
    case(
        "budget_percent",
        post(
            "poddisruptionbudgets/b",
            "{spec: {minAvailable: 5x}}",
            {
                "@": 422,
                "reason": "Invalid",
                "message": "PodDisruptionBudget.policy \"b\" is invalid: spec.minAvailable: Invalid value: \"5x\": a valid percent string must be a numeric string followed by an ending '%' (e.g. '1%',  or '93%', regex used for validation is '[0-9]+%')",
            },
        ),
    ),
    case("role", post("roles/r", "{" + RULES + "}", {"rules": [{"verbs": ["get"], "apiGroups": [""], "resources": ["pods"]}]})),
    case(
        "role_without_verbs",
        post(
            "roles/r",
            "{rules: [{apiGroups: [''], resources: [pods]}]}",
            fails(
                422,
                "Invalid",
                'Role.rbac.authorization.k8s.io "r" is invalid: rules[0].verbs: Required value: verbs must contain at least one value',
            ),
        ),
    ),
    case(
        "binding_default_group",
        post(
            "rolebindings/b",
            "{roleRef: {kind: Role, name: r, apiGroup: rbac.authorization.k8s.io}, subjects: [{kind: ServiceAccount, name: s, namespace: <ns>}, {kind: User, name: u}]}",
            {
                "subjects": [
                    {"kind": "ServiceAccount", "name": "s", "namespace": "<ns>"},
                    {"kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": "u"},
                ]
            },
        ),
    ),
    case(
        "binding_role_changed",
        post("rolebindings/b", "{roleRef: {kind: Role, name: r, apiGroup: rbac.authorization.k8s.io}}"),
        patch(
            "merge",
            "rolebindings/b",
            "{roleRef: {name: q}}",
            fails(
                422,
                "Invalid",
                'RoleBinding.rbac.authorization.k8s.io "b" is invalid: roleRef: Invalid value: {"APIGroup":"rbac.authorization.k8s.io","Kind":"Role","Name":"q"}: cannot change roleRef',
            ),
        ),
    ),
    case(
        "binding_without_role",
        post(
            "rolebindings/b",
            "{}",
            {
                "@": 422,
                "reason": "Invalid",
                "message": 'RoleBinding.rbac.authorization.k8s.io "b" is invalid: [roleRef.kind: Unsupported value: "": supported values: "Role", "ClusterRole", roleRef.name: Required value]',
            },
        ),
    ),
    case(
        "binding_bad_subject",
        post(
            "rolebindings/b",
            "{roleRef: {kind: Role, name: r, apiGroup: rbac.authorization.k8s.io}, subjects: [{kind: Frob, name: s}]}",
            {
                "@": 422,
                "reason": "Invalid",
                "message": 'RoleBinding.rbac.authorization.k8s.io "b" is invalid: subjects[0].kind: Unsupported value: "Frob": supported values: "ServiceAccount", "User", "Group"',
            },
        ),
    ),
    case("cluster_role", post("clusterroles/<ns>", "{" + RULES + "}", {"rules.0.verbs": ["get"], "metadata.namespace": GONE})),
    case(
        "lease",
        post(
            "leases/l",
            "{spec: {holderIdentity: a, leaseDurationSeconds: 15, acquireTime: '2024-01-01T00:00:00.000000Z', renewTime: '2024-01-01T00:00:00.123456Z', leaseTransitions: 0}}",
            {
                "spec": {
                    "holderIdentity": "a",
                    "leaseDurationSeconds": 15,
                    "acquireTime": "2024-01-01T00:00:00.000000Z",
                    "renewTime": "2024-01-01T00:00:00.123456Z",
                    "leaseTransitions": 0,
                },
                "metadata.generation": GONE,
            },
        ),
    ),
    case(
        "lease_whole_seconds",
        post(
            "leases/l",
            "{spec: {renewTime: '2024-01-01T00:00:00Z'}}",
            fails(
                400,
                "BadRequest",
                'Lease in version "v1" cannot be handled as a Lease: parsing time "2024-01-01T00:00:00Z" as "2006-01-02T15:04:05.000000Z07:00": cannot parse "Z" as ".000000"',
            ),
        ),
    ),
    case(
        "lease_duration",
        post(
            "leases/l",
            "{spec: {leaseDurationSeconds: 0, leaseTransitions: -1}}",
            fails(
                422,
                "Invalid",
                'Lease.coordination.k8s.io "l" is invalid: [spec.leaseDurationSeconds: Invalid value: 0: must be greater than 0, spec.leaseTransitions: Invalid value: -1: must be greater than or equal to 0]',
            ),
        ),
    ),
    case(
        "lease_time",
        post(
            "leases/l",
            "{spec: {renewTime: yesterday}}",
            {
                "@": 400,
                "reason": "BadRequest",
                "message": 'Lease in version "v1" cannot be handled as a Lease: parsing time "yesterday" as "2006-01-02T15:04:05.000000Z07:00": cannot parse "yesterday" as "2006"',
            },
        ),
    ),
    case(
        "lease_race",
        post("leases/l", "{spec: {holderIdentity: a}}"),
        put(
            "leases/l",
            "{metadata: {resourceVersion: '1'}, spec: {holderIdentity: b}}",
            fails(
                409,
                "Conflict",
                'Operation cannot be fulfilled on leases.coordination.k8s.io "l": the object has been modified; please apply your changes to the latest version and try again',
            ),
        ),
    ),
    case(
        "lease_put_without_version",
        post("leases/l", "{spec: {holderIdentity: a}}"),
        put(
            "leases/l",
            "{spec: {holderIdentity: b}}",
            {
                "@": 422,
                "message": 'leases.coordination.k8s.io "l" is invalid: metadata.resourceVersion: Invalid value: 0: must be specified for an update',
            },
        ),
    ),
    case(
        "event",
        post(
            "events/e",
            "{involvedObject: {kind: Pod, name: p, namespace: <ns>}, reason: R, message: m, type: Normal, firstTimestamp: '2024-01-01T00:00:00Z'}",
            {
                "metadata.generation": GONE,
                "source": {},
                "reportingComponent": "",
                "reportingInstance": "",
                "eventTime": None,
                "count": GONE,
            },
        ),
    ),
    case(
        "event_other_namespace",
        post(
            "events/e",
            "{involvedObject: {kind: Pod, name: p, namespace: other}, reason: R}",
            fails(422, "Invalid", 'Event "e" is invalid: involvedObject.namespace: Invalid value: "other": does not match event.namespace'),
        ),
    ),
    case(
        "event_v1_read_as_core",
        post(
            "/apis/events.k8s.io/v1/namespaces/<ns>/events",
            "{apiVersion: events.k8s.io/v1, kind: Event, metadata: {name: e}, regarding: {kind: Pod, name: p, namespace: <ns>}, reason: R, note: n, type: Normal, action: A, eventTime: '2024-01-01T00:00:00.000000Z', reportingController: c, reportingInstance: i}",
            {"apiVersion": "events.k8s.io/v1", "note": "n"},
        ),
        get(
            "events/e",
            {
                "message": "n",
                "involvedObject": {"kind": "Pod", "namespace": "<ns>", "name": "p"},
                "reportingComponent": "c",
                "eventTime": "2024-01-01T00:00:00.000000Z",
                "firstTimestamp": None,
            },
        ),
    ),
    case(
        "event_v1_incomplete",
        post(
            "/apis/events.k8s.io/v1/namespaces/<ns>/events",
            "{apiVersion: events.k8s.io/v1, kind: Event, metadata: {name: e}, regarding: {kind: Pod, name: p, namespace: <ns>}}",
            {
                "@": 422,
                "reason": "Invalid",
                "message": 'Event "e" is invalid: [eventTime: Required value, type: Invalid value: "": has invalid value: ]',
            },
        ),
    ),
    case(
        "event_core_read_as_v1",
        post(
            "events/e",
            "{involvedObject: {kind: Pod, name: p, namespace: <ns>}, reason: R, message: m, type: Normal, source: {component: c}, count: 3}",
        ),
        get(
            "/apis/events.k8s.io/v1/namespaces/<ns>/events/e",
            {
                "note": "m",
                "regarding": {"kind": "Pod", "namespace": "<ns>", "name": "p"},
                "deprecatedCount": 3,
                "deprecatedSource": {"component": "c"},
            },
        ),
    ),
    case(
        "priority_class",
        post(
            "priorityclasses/<ns>",
            "{value: 5}",
            {"preemptionPolicy": "PreemptLowerPriority", "globalDefault": GONE, "metadata.generation": 1},
        ),
        patch(
            "merge",
            "priorityclasses/<ns>",
            "{value: 6}",
            fails(422, "Invalid", 'PriorityClass.scheduling.k8s.io "<ns>" is invalid: value: Forbidden: may not be changed in an update.'),
        ),
    ),
    case(
        "priority_class_too_high",
        post(
            "priorityclasses/<ns>",
            "{value: 1000000001}",
            {
                "@": 422,
                "reason": "Invalid",
                "message": 'PriorityClass.scheduling.k8s.io "<ns>" is invalid: value: Forbidden: maximum allowed value of a user defined priority is 1000000000',
            },
        ),
    ),
    case(
        "priority_class_system_name",
        post(
            "priorityclasses/system-<ns>",
            "{value: 1}",
            {
                "@": 422,
                "reason": "Invalid",
                "message": "PriorityClass.scheduling.k8s.io \"system-<ns>\" is invalid: metadata.name: Forbidden: priority class names with 'system-' prefix are reserved for system use only. error: system-<ns> is not a known system priority class",
            },
        ),
    ),
    case(
        "namespace",
        post(
            "namespaces/n-<ns>",
            "{}",
            {
                "spec": {"finalizers": ["kubernetes"]},
                "status": {"phase": "Active"},
                "metadata.labels": {"kubernetes.io/metadata.name": "n-<ns>"},
                "metadata.generation": GONE,
            },
        ),
    ),
    case(
        "namespace_label_stays",
        post("namespaces/n-<ns>", "{}"),
        patch(
            "merge",
            "namespaces/n-<ns>",
            "{metadata: {labels: {kubernetes.io/metadata.name: x, a: b}}}",
            {"metadata.labels": {"a": "b", "kubernetes.io/metadata.name": "n-<ns>"}},
        ),
    ),
    case(
        "namespace_name",
        post(
            "namespaces/n.<ns>",
            "{}",
            {
                "@": 422,
                "reason": "Invalid",
                "message": 'Namespace "n.<ns>" is invalid: metadata.name: Invalid value: "n.<ns>": must not contain dots',
            },
        ),
    ),
    case(
        "namespace_default",
        delete(
            "namespaces/default",
            None,
            {"@": 403, "reason": "Forbidden", "message": 'namespaces "default" is forbidden: this namespace may not be deleted'},
        ),
    ),
    case(
        "namespace_missing",
        post("/api/v1/namespaces/none/configmaps", "{metadata: {name: a}}", fails(404, "NotFound", 'namespaces "none" not found')),
    ),
    case("namespace_missing_read", get("/api/v1/namespaces/none/configmaps", {"@": 200, "items": []})),
    case(
        "namespace_finalize",
        post("namespaces/n-<ns>", "{}"),
        delete("namespaces/n-<ns>", None, {"status.phase": "Terminating", "metadata.deletionTimestamp": ANY}),
        post(
            "/api/v1/namespaces/n-<ns>/configmaps",
            "{metadata: {name: a}}",
            {
                "@": 403,
                "reason": "Forbidden",
                "message": 'configmaps "a" is forbidden: unable to create new content in namespace n-<ns> because it is being terminated',
                "details": {
                    "name": "a",
                    "kind": "configmaps",
                    "causes": [
                        {"reason": "NamespaceTerminating", "message": "namespace n-<ns> is being terminated", "field": "metadata.namespace"}
                    ],
                },
            },
        ),
        put(
            "namespaces/n-<ns>/finalize", "{apiVersion: v1, kind: Namespace, metadata: {name: n-<ns>}, spec: {finalizers: []}}", {"@": 200}
        ),
        get("namespaces/n-<ns>", {"@": 404}),
    ),
    case(
        "node",
        post(
            "nodes/<ns>",
            "{}",
            {
                "spec": {"taints": [{"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}]},
                "status": {
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
                },
                "metadata.labels": GONE,
            },
        ),
    ),
    case(
        "node_taint_twice",
        post(
            "nodes/<ns>",
            "{spec: {taints: [{key: a, effect: NoSchedule}, {key: a, effect: NoSchedule}]}}",
            {
                "@": 422,
                "reason": "Invalid",
                "message": 'Node "<ns>" is invalid: metadata.taints[1]: Duplicate value: {"Key":"a","Value":"","Effect":"NoSchedule","TimeAdded":null}: taints must be unique by key and effect pair',
            },
        ),
    ),
    case(
        "node_taint_effect",
        post(
            "nodes/<ns>",
            "{spec: {taints: [{key: a, effect: Frob}]}}",
            {
                "@": 422,
                "reason": "Invalid",
                "message": 'Node "<ns>" is invalid: metadata.taints[0].effect: Unsupported value: "Frob": supported values: "NoSchedule", "PreferNoSchedule", "NoExecute"',
            },
        ),
    ),
    case(
        "node_taint_time",
        post(
            "nodes/<ns>",
            "{spec: {taints: [{key: a, effect: NoExecute, timeAdded: '2024-01-01T00:00:00Z'}]}}",
            {
                "spec.taints": [
                    {"key": "a", "effect": "NoExecute", "timeAdded": "2024-01-01T00:00:00Z"},
                    {"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"},
                ]
            },
        ),
    ),
    case(
        "node_provider",
        post("nodes/<ns>", "{spec: {providerID: x}}"),
        patch(
            "merge",
            "nodes/<ns>",
            "{spec: {providerID: y}}",
            fails(
                422,
                "Invalid",
                'Node "<ns>" is invalid: spec.providerID: Forbidden: node updates may not change providerID except from "" to valid',
            ),
        ),
    ),
    case(
        "node_pod_range",
        post("nodes/<ns>", "{spec: {podCIDR: 10.64.0.0/24}}", {"spec.podCIDRs": ["10.64.0.0/24"]}),
        patch(
            "merge",
            "nodes/<ns>",
            "{spec: {podCIDR: 10.65.0.0/24, podCIDRs: [10.65.0.0/24]}}",
            {
                "@": 422,
                "reason": "Invalid",
                "message": 'Node "<ns>" is invalid: spec.podCIDRs: Forbidden: node updates may not change podCIDR except from "" to valid',
            },
        ),
    ),
    case(
        "node_cordon",
        post("nodes/<ns>", "{}"),
        patch(
            "strategic",
            "nodes/<ns>",
            "{spec: {unschedulable: true}}",
            {"spec.unschedulable": True, "spec.taints": [{"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}]},
        ),
    ),
    case(
        "resource_claim",
        post(
            "resourceclaims/c",
            "{spec: {devices: {requests: [{name: a, exactly: {deviceClassName: gpu}}]}}}",
            {
                "spec": {
                    "devices": {
                        "requests": [{"name": "a", "exactly": {"deviceClassName": "gpu", "allocationMode": "ExactCount", "count": 1}}]
                    }
                },
                "status": {},
            },
        ),
        patch(
            "merge",
            "resourceclaims/c",
            "{spec: {devices: {requests: null}}}",
            {"@": 422, "reason": "Invalid", "@causes": [("spec", "FieldValueInvalid")]},
        ),
    ),
    case(
        "resource_claim_bad",
        post(
            "resourceclaims/c",
            "{spec: {devices: {requests: [{name: a}]}}}",
            fails(
                422,
                "Invalid",
                'ResourceClaim.resource.k8s.io "c" is invalid: spec.devices.requests[0]: Required value: exactly one of `exactly` or `firstAvailable` is required',
            ),
        ),
    ),
    case(
        "resource_claim_template",
        post(
            "resourceclaimtemplates/c",
            "{spec: {spec: {devices: {requests: [{name: a, exactly: {deviceClassName: gpu, count: 2}}]}}}}",
            {
                "spec": {
                    "metadata": {},
                    "spec": {
                        "devices": {
                            "requests": [{"name": "a", "exactly": {"deviceClassName": "gpu", "allocationMode": "ExactCount", "count": 2}}]
                        }
                    },
                }
            },
        ),
    ),
    case(
        "device_class",
        post(
            "deviceclasses/<ns>",
            "{spec: {selectors: [{cel: {expression: 'true'}}]}}",
            {"spec": {"selectors": [{"cel": {"expression": "true"}}]}},
        ),
    ),
    case(
        "deployment",
        post(
            "deployments/d",
            "{spec: {selector: {matchLabels: {a: b}}, " + TEMPLATE + "}}",
            {
                "spec": {
                    "replicas": 1,
                    "selector": {"matchLabels": {"a": "b"}},
                    "template": {
                        "metadata": {"labels": {"a": "b"}},
                        "spec": {
                            "containers": [
                                {
                                    "name": "c",
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
                        },
                    },
                    "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": "25%", "maxSurge": "25%"}},
                    "revisionHistoryLimit": 10,
                    "progressDeadlineSeconds": 600,
                },
                "status": {},
                "metadata.generation": 1,
            },
        ),
    ),
    case(
        "deployment_labels_differ",
        post(
            "deployments/d",
            "{spec: {selector: {matchLabels: {a: c}}, " + TEMPLATE + "}}",
            fails(
                422,
                "Invalid",
                'Deployment.apps "d" is invalid: spec.template.metadata.labels: Invalid value: {"a":"b"}: `selector` does not match template `labels`',
            ),
        ),
    ),
    case(
        "deployment_without_selector",
        post(
            "deployments/d",
            "{spec: {" + TEMPLATE + "}}",
            {
                "@": 422,
                "reason": "Invalid",
                "message": 'Deployment.apps "d" is invalid: [spec.selector: Required value, spec.template.metadata.labels: Invalid value: {"a":"b"}: `selector` does not match template `labels`]',
            },
        ),
    ),
    case(
        "replica_set_selector",
        post(
            "replicasets/r", "{spec: {selector: {matchLabels: {a: b}}, " + TEMPLATE + "}}", {"spec.replicas": 1, "status": {"replicas": 0}}
        ),
        patch(
            "merge",
            "replicasets/r",
            "{spec: {replicas: -1}}",
            fails(422, "Invalid", 'ReplicaSet.apps "r" is invalid: spec.replicas: Invalid value: -1: must be greater than or equal to 0'),
        ),
    ),
    case(
        "stateful_set",
        post(
            "statefulsets/s",
            "{spec: {serviceName: x, selector: {matchLabels: {a: b}}, " + TEMPLATE + "}}",
            {
                "spec.podManagementPolicy": "OrderedReady",
                "spec.updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"partition": 0}},
                "spec.persistentVolumeClaimRetentionPolicy": {"whenDeleted": "Retain", "whenScaled": "Retain"},
                "status": {"replicas": 0, "availableReplicas": 0},
            },
        ),
        patch(
            "merge",
            "statefulsets/s",
            "{spec: {serviceName: y}}",
            fails(
                422,
                "Invalid",
                "StatefulSet.apps \"s\" is invalid: spec: Forbidden: updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', 'updateStrategy', 'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are forbidden",
            ),
        ),
    ),
    case(
        "daemon_set",
        post(
            "daemonsets/d",
            "{spec: {selector: {matchLabels: {a: b}}, " + TEMPLATE + "}}",
            {
                "spec.updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 1, "maxSurge": 0}},
                "status": {"currentNumberScheduled": 0, "numberMisscheduled": 0, "desiredNumberScheduled": 0, "numberReady": 0},
                "metadata.annotations": {"deprecated.daemonset.template.generation": "1"},
            },
        ),
    ),
    case(
        "job",
        post(
            "jobs/j",
            JOB,
            {
                "spec.backoffLimit": 6,
                "spec.completions": 1,
                "spec.parallelism": 1,
                "spec.completionMode": "NonIndexed",
                "spec.suspend": False,
                "spec.podReplacementPolicy": "TerminatingOrFailed",
                "spec.selector": ANY,
                "metadata.labels": ANY,
            },
        ),
    ),
    case(
        "job_restart_policy",
        post(
            "jobs/j",
            "{spec: {template: {spec: {containers: [{name: c, image: i}]}}}}",
            fails(
                422,
                "Invalid",
                'Job.batch "j" is invalid: spec.template.spec.restartPolicy: Required value: valid values: "OnFailure", "Never"',
            ),
        ),
    ),
    case("generated_name", post("configmaps", "{metadata: {generateName: gen-}}", {"metadata.generateName": "gen-"})),
    case(
        "generated_name_of_a_pod",
        post(
            "pods",
            "{metadata: {generateName: gen-}, spec: {containers: [{name: a, image: i}]}}",
            {"metadata.name": ANY, "spec.hostname": GONE},
        ),
    ),
    case(
        "no_name",
        post(
            "configmaps",
            "{}",
            {
                "@": 422,
                "reason": "Invalid",
                "message": 'ConfigMap "" is invalid: metadata.name: Required value: name or generateName is required',
            },
        ),
    ),
]


@pytest.mark.parametrize("steps", CASES)
async def test_a_kind(api: Api, steps: tuple[Step, ...]) -> None:
    await run(api, steps)
