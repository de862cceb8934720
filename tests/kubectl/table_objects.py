"""Objects whose tables are recorded from a real kube-apiserver: path -> objects as created, with status written afterwards."""

from typing import Any

Object = dict[str, Any]
TEMPLATE = {"metadata": {"labels": {"app": "a"}}, "spec": {"containers": [{"name": "c", "image": "i:1"}, {"name": "d", "image": "j:2"}]}}
SELECTOR = {"matchLabels": {"app": "a"}}
OLD = "2026-01-02T03:04:05Z"


def pod(name: str, status: Object, spec: Object | None = None, **meta: Any) -> Object:
    containers = [{"name": "c", "image": "i"}, {"name": "d", "image": "i"}]
    return {"metadata": {"name": name, **meta}, "spec": {"containers": containers, **(spec or {})}, "status": status}


def container(name: str, state: Object, **more: Any) -> Object:
    return {"name": name, "image": "i", "imageID": "", "ready": False, "restartCount": 0, "state": state, **more}


RUN: Object = {"running": {"startedAt": OLD}}
DONE: Object = {"terminated": {"exitCode": 0, "reason": "Completed", "finishedAt": OLD}}
FAILED: Object = {"terminated": {"exitCode": 2, "finishedAt": OLD}}
KILLED: Object = {"terminated": {"exitCode": 137, "signal": 9, "finishedAt": OLD}}
CRASH: Object = {"waiting": {"reason": "CrashLoopBackOff"}}
INIT: Object = {"initContainers": [{"name": "i0", "image": "i"}, {"name": "i1", "image": "i"}]}
SIDECAR: Object = {"initContainers": [{"name": "i0", "image": "i", "restartPolicy": "Always"}, {"name": "i1", "image": "i"}]}
WAIT: Object = {"waiting": {"reason": "PodInitializing"}}


def both(one: Object, two: Object, **more: Any) -> Object:
    return {"phase": "Running", "containerStatuses": [container("c", **one), container("d", **two)], **more}


def condition(kind: str, status: str = "True", **more: Any) -> Object:
    return {"type": kind, "status": status, "lastTransitionTime": OLD, **more}


UP: Object = {"state": RUN, "ready": True}
PODS: list[Object] = [
    pod("plain", {"phase": "Pending"}),
    pod("gated", {"phase": "Pending"}, {"schedulingGates": [{"name": "x.io/g"}]}),
    pod("gated-said", {"conditions": [condition("PodScheduled", "False", reason="SchedulingGated")]}),
    pod("up", both(UP, UP, podIP="10.0.0.1", podIPs=[{"ip": "10.0.0.1"}]), {"nodeName": "n1"}),
    pod("half", both(UP, {"state": RUN}, nominatedNodeName="n9")),
    pod("crash", both(UP, {"state": CRASH, "restartCount": 3, "lastState": FAILED})),
    pod("restarts", both({**UP, "restartCount": 2}, {**UP, "restartCount": 3})),
    pod("done-one", both(UP, {"state": DONE})),
    pod("done-ready", both(UP, {"state": DONE}, conditions=[condition("Ready")])),
    pod("done-last", both({"state": DONE}, UP)),
    pod("failed", {**both({"state": FAILED}, {"state": KILLED}), "phase": "Failed"}),
    pod("killed", {**both({"state": KILLED}, {"state": FAILED}), "phase": "Failed"}),
    pod("evicted", {"phase": "Failed", "reason": "Evicted"}),
    pod("succeeded", {**both({"state": DONE}, {"state": DONE}), "phase": "Succeeded"}),
    pod("init-none", {"phase": "Pending"}, INIT),
    pod("init-run", {"phase": "Pending", "initContainerStatuses": [container("i0", DONE, ready=True), container("i1", RUN)]}, INIT),
    pod("init-wait", {"phase": "Pending", "initContainerStatuses": [container("i0", WAIT), container("i1", WAIT)]}, INIT),
    pod("init-crash", {"phase": "Pending", "initContainerStatuses": [container("i0", CRASH, restartCount=4, lastState=FAILED)]}, INIT),
    pod("init-exit", {"phase": "Pending", "initContainerStatuses": [container("i0", FAILED)]}, INIT),
    pod("init-signal", {"phase": "Pending", "initContainerStatuses": [container("i0", KILLED)]}, INIT),
    pod(
        "init-error",
        {"phase": "Pending", "initContainerStatuses": [container("i0", {"terminated": {"exitCode": 1, "reason": "Error"}})]},
        INIT,
    ),
    pod(
        "sidecar",
        {**both(UP, UP), "initContainerStatuses": [container("i0", RUN, ready=True, started=True, restartCount=5), container("i1", DONE)]},
        SIDECAR,
    ),
    pod(
        "sidecar-starts",
        {"phase": "Pending", "initContainerStatuses": [container("i0", RUN, started=False), container("i1", WAIT)]},
        SIDECAR,
    ),
    pod("initialized", {**both(UP, UP), "initContainerStatuses": [container("i0", CRASH)], "conditions": [condition("Initialized")]}, INIT),
    pod(
        "readiness",
        both(UP, UP, conditions=[condition("x.io/a"), condition("x.io/b", "False")]),
        {"readinessGates": [{"conditionType": "x.io/a"}, {"conditionType": "x.io/b"}]},
    ),
    pod("ending", both(UP, UP), {"nodeName": "n1"}),
    pod("ending-lost", both(UP, UP, reason="NodeLost"), {"nodeName": "n1"}),
    pod("ending-done", {**both({"state": DONE}, {"state": DONE}), "phase": "Succeeded"}, {"nodeName": "n1"}, finalizers=["x.io/f"]),
]
ENDING = ("ending", "ending-lost", "ending-done")

READY = condition("Ready")
INFO: Object = {
    "kubeletVersion": "v1.36.3",
    "osImage": "Debian",
    "kernelVersion": "6.1",
    "containerRuntimeVersion": "containerd://2",
    "machineID": "",
    "systemUUID": "",
    "bootID": "",
    "operatingSystem": "linux",
    "architecture": "amd64",
}
NODES: list[Object] = [
    {"metadata": {"name": "bare"}},
    {
        "metadata": {
            "name": "ready",
            "labels": {"node-role.kubernetes.io/worker": "", "node-role.kubernetes.io/a": "", "kubernetes.io/role": "z"},
        },
        "status": {
            "conditions": [READY],
            "nodeInfo": INFO,
            "addresses": [{"type": "InternalIP", "address": "10.0.0.2"}, {"type": "ExternalIP", "address": "1.2.3.4"}],
        },
    },
    {"metadata": {"name": "off"}, "spec": {"unschedulable": True}, "status": {"conditions": [condition("Ready", "Unknown")]}},
]


def named(name: str, **more: Any) -> Object:
    return {"metadata": {"name": name}, **more}


def service(name: str, **spec: Any) -> Object:
    ports = [{"name": "a", "port": 80}, {"name": "b", "port": 53, "protocol": "UDP"}]
    return named(name, spec={"ports": ports, **spec})


SERVICES: list[Object] = [
    service("plain", selector={"b": "2", "a": "1"}),
    service("headless", clusterIP="None"),
    service("node-port", type="NodePort", ports=[{"port": 80, "nodePort": 30080}], externalIPs=["1.1.1.1", "2.2.2.2"]),
    service("balanced", type="LoadBalancer", allocateLoadBalancerNodePorts=False),
    named("external", spec={"type": "ExternalName", "externalName": "example.com"}),
]
EXPRESSIONS: Object = {
    "matchLabels": {"app": "a"},
    "matchExpressions": [
        {"key": "z", "operator": "In", "values": ["2", "1"]},
        {"key": "b", "operator": "Exists"},
        {"key": "c", "operator": "DoesNotExist"},
        {"key": "d", "operator": "NotIn", "values": ["x"]},
    ],
}
MATCHING: Object = {**TEMPLATE, "metadata": {"labels": {"app": "a", "z": "1", "b": ""}}}


def event(name: str, **more: Any) -> Object:
    target = {"kind": "Pod", "namespace": "default", "name": "p", "fieldPath": "spec.containers{c}"}
    return {"metadata": {"name": name, "namespace": "default"}, "involvedObject": target, "reason": "Why", "type": "Normal", **more}


EVENTS: list[Object] = [
    event("old", message=" hello \n", source={"component": "kubelet", "host": "n1"}, firstTimestamp=OLD, lastTimestamp=OLD, count=3),
    event(
        "new", message="m", eventTime="2026-01-02T03:04:05.000000Z", reportingComponent="grovekeeper", reportingInstance="i-0", action="Do"
    ),
    event(
        "series",
        message="m",
        eventTime="2026-01-02T03:04:05.000000Z",
        reportingComponent="x.io/c",
        reportingInstance="i",
        action="Do",
        series={"count": 7, "lastObservedTime": "2026-02-02T03:04:05.000000Z"},
    ),
    {"metadata": {"name": "aimless", "namespace": "default"}, "involvedObject": {"kind": "Node", "namespace": "default"}, "message": "m"},
]


def hpa(name: str, metrics: list[Object], status: Object | None = None, **spec: Any) -> Object:
    target = {"kind": "PodClique", "name": "x", "apiVersion": "grove.io/v1alpha1"}
    return named(name, spec={"scaleTargetRef": target, "maxReplicas": 5, "metrics": metrics, **spec}, status=status or {})


def metric(kind: str, target: Object, **more: Any) -> Object:
    field = kind[0].lower() + kind[1:]
    return {"type": kind, field: {**more, "target": target}}


CPU = metric("Resource", {"type": "Utilization", "averageUtilization": 80}, name="cpu")
MEMORY = metric("Resource", {"type": "AverageValue", "averageValue": "1Gi"}, name="memory")
RATE = metric("Pods", {"type": "AverageValue", "averageValue": "100m"}, metric={"name": "rate"})
QUEUE = metric("External", {"type": "Value", "value": "5"}, metric={"name": "queue"})
DEPTH = metric("External", {"type": "AverageValue", "averageValue": "5"}, metric={"name": "depth"})
LATENCY = metric("Object", {"type": "Value", "value": "2"}, metric={"name": "latency"}, describedObject={"kind": "Service", "name": "s"})
SIDE = metric("ContainerResource", {"type": "Utilization", "averageUtilization": 50}, name="cpu", container="c")
HPAS: list[Object] = [
    hpa("cpu", [CPU]),
    hpa(
        "known",
        [CPU],
        {
            "currentReplicas": 2,
            "desiredReplicas": 3,
            "currentMetrics": [
                {"type": "Resource", "resource": {"name": "cpu", "current": {"averageUtilization": 33, "averageValue": "1"}}}
            ],
        },
        minReplicas=2,
    ),
    hpa("many", [MEMORY, RATE, QUEUE, CPU]),
    hpa("rest", [LATENCY, SIDE, DEPTH]),
]


def job(name: str, status: Object, **spec: Any) -> Object:
    template = {"spec": {**TEMPLATE["spec"], "restartPolicy": "Never"}}
    return named(name, spec={"template": template, **spec}, status=status)


RULES: Object = {"apiVersion": "v1", "kind": "CustomResourceDefinition"}
RUNNING_JOB: Object = {"startTime": OLD}
CLAIMED: Object = {"allocation": {"devices": {}}, "reservedFor": [{"resource": "pods", "name": "p", "uid": "u"}]}
WEBHOOK: Object = {
    "name": "a.b.io",
    "clientConfig": {"url": "https://127.0.0.1:1/x"},
    "sideEffects": "None",
    "admissionReviewVersions": ["v1"],
}
ROLE_REF: Object = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "view"}
SUBJECTS: list[Object] = [
    {"kind": "User", "name": "u", "apiGroup": "rbac.authorization.k8s.io"},
    {"kind": "Group", "name": "g", "apiGroup": "rbac.authorization.k8s.io"},
    {"kind": "ServiceAccount", "name": "s", "namespace": "n"},
    {"kind": "ServiceAccount", "name": "t", "namespace": "n"},
]
REQUEST: Object = {"resources": {"requests": {"storage": "1Gi"}}}
BOUND: Object = {"phase": "Bound", "capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce", "ReadOnlyMany"]}
SLICE: Object = {"addressType": "IPv4", "ports": [{"name": "p", "port": 80}, {"port": 81, "name": "q"}]}
ADDRESSES = [{"addresses": [f"10.0.0.{i}"]} for i in range(1, 6)]

OBJECTS: dict[str, list[Object]] = {
    "/api/v1/namespaces/default/pods": PODS,
    "/api/v1/nodes": NODES,
    "/api/v1/namespaces/default/services": SERVICES,
    "/api/v1/namespaces": [named("spare")],
    "/api/v1/namespaces/default/events": EVENTS,
    "/api/v1/namespaces/default/configmaps": [named("empty"), named("two", data={"a": "1"}, binaryData={"b": "AA=="})],
    "/api/v1/namespaces/default/secrets": [named("empty"), named("one", data={"a": "AA=="}, type="x/y")],
    "/api/v1/namespaces/default/serviceaccounts": [named("robot")],
    "/api/v1/namespaces/default/persistentvolumeclaims": [
        named("pending", spec={"accessModes": ["ReadWriteOnce"], **REQUEST}),
        named(
            "bound",
            spec={"accessModes": ["ReadWriteOnce", "ReadWriteMany"], "volumeName": "v", "storageClassName": "fast", **REQUEST},
            status=BOUND,
        ),
    ],
    "/api/v1/namespaces/default/endpoints": [
        named("none"),
        named("some", subsets=[{"addresses": [{"ip": f"10.0.0.{i}"} for i in range(1, 6)], "ports": [{"port": 80}]}]),
        named("portless", subsets=[{"addresses": [{"ip": "10.0.0.1"}]}]),
    ],
    "/apis/apps/v1/namespaces/default/deployments": [
        named(
            "plain",
            spec={"replicas": 3, "selector": SELECTOR, "template": TEMPLATE},
            status={"replicas": 3, "readyReplicas": 1, "updatedReplicas": 2, "availableReplicas": 1},
        ),
        named("picky", spec={"selector": EXPRESSIONS, "template": MATCHING}),
    ],
    "/apis/apps/v1/namespaces/default/replicasets": [
        named("plain", spec={"replicas": 2, "selector": SELECTOR, "template": TEMPLATE}, status={"replicas": 2, "readyReplicas": 1})
    ],
    "/apis/apps/v1/namespaces/default/statefulsets": [
        named("plain", spec={"replicas": 2, "selector": SELECTOR, "serviceName": "x", "template": TEMPLATE})
    ],
    "/apis/apps/v1/namespaces/default/daemonsets": [
        named("plain", spec={"selector": SELECTOR, "template": {**TEMPLATE, "spec": {**TEMPLATE["spec"], "nodeSelector": {"a": "b"}}}})
    ],
    "/apis/apps/v1/namespaces/default/controllerrevisions": [named("plain", revision=3, data={})],
    "/apis/coordination.k8s.io/v1/namespaces/default/leases": [
        named("free"),
        named("held", spec={"holderIdentity": "me", "leaseDurationSeconds": 15}),
    ],
    "/apis/autoscaling/v2/namespaces/default/horizontalpodautoscalers": HPAS,
    "/apis/policy/v1/namespaces/default/poddisruptionbudgets": [
        named(
            "min",
            spec={"minAvailable": 2, "selector": SELECTOR},
            status={"disruptionsAllowed": 1, "currentHealthy": 0, "desiredHealthy": 0, "expectedPods": 0},
        ),
        named("max", spec={"maxUnavailable": "50%", "selector": SELECTOR}),
    ],
    "/apis/rbac.authorization.k8s.io/v1/namespaces/default/roles": [named("r", rules=[])],
    "/apis/rbac.authorization.k8s.io/v1/namespaces/default/rolebindings": [
        named("b", roleRef=ROLE_REF, subjects=SUBJECTS),
        named("none", roleRef=ROLE_REF),
    ],
    "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings": [named("b", roleRef=ROLE_REF, subjects=SUBJECTS)],
    "/apis/scheduling.k8s.io/v1/priorityclasses": [
        named("high", value=100),
        named("low", value=-1, globalDefault=True, preemptionPolicy="Never"),
    ],
    "/apis/batch/v1/namespaces/default/jobs": [
        job("plain", {}),
        job("five", {"succeeded": 2, "startTime": OLD}, completions=5, parallelism=2),
        job("queue", {"startTime": OLD}, parallelism=3),
        job(
            "done",
            {
                "startTime": OLD,
                "completionTime": "2026-01-02T04:04:05Z",
                "succeeded": 1,
                "conditions": [condition("SuccessCriteriaMet"), condition("Complete")],
            },
        ),
        job("paused", {}, suspend=True),
        job("lost", {"startTime": OLD, "conditions": [condition("FailureTarget"), condition("Failed")]}),
        job("losing", {"startTime": OLD, "conditions": [condition("FailureTarget")]}),
        job("winning", {"startTime": OLD, "conditions": [condition("SuccessCriteriaMet")]}),
    ],
    "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims": [named("pending", spec={}), named("taken", spec={}, status=CLAIMED)],
    "/apis/resource.k8s.io/v1/namespaces/default/resourceclaimtemplates": [named("t", spec={"spec": {}})],
    "/apis/resource.k8s.io/v1/deviceclasses": [named("gpu.x.io", spec={})],
    "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices": [
        named("none", addressType="IPv4", endpoints=[]),
        named("many", **SLICE, endpoints=ADDRESSES),
    ],
    "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations": [named("w", webhooks=[WEBHOOK])],
    "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations": [named("w", webhooks=[WEBHOOK])],
    "/apis/storage.k8s.io/v1/storageclasses": [
        named("slow", provisioner="x.io/p"),
        {
            **named("fast", provisioner="x.io/p", allowVolumeExpansion=True, volumeBindingMode="WaitForFirstConsumer"),
            "metadata": {"name": "fast", "annotations": {"storageclass.kubernetes.io/is-default-class": "true"}},
        },
    ],
}

COLUMNS = [
    ("Text", "string", ".spec.text"),
    ("Number", "integer", ".spec.number"),
    ("Fraction", "number", ".spec.fraction"),
    ("Flag", "boolean", ".spec.flag"),
    ("When", "date", ".spec.when"),
    ("Whole", "string", ".spec.map"),
    ("List", "string", ".spec.list"),
    ("All", "string", ".spec.list[*]"),
    ("First", "string", ".spec.list[0]"),
    ("Last", "string", ".spec.list[-1]"),
    ("Ninth", "string", ".spec.list[9]"),
    ("Slice", "string", ".spec.list[0:2]"),
    ("Ready", "string", '.spec.items[?(@.type=="Ready")].status'),
    ("Many", "string", ".spec.items[*].type"),
    ("Big", "string", ".spec.items[?(@.n>1)].type"),
    ("Quoted", "string", ".spec.map['a.b/c']"),
    ("Escaped", "string", r".spec.map.a\.b/c"),
    ("Wrong", "integer", ".spec.text"),
    ("NumberText", "string", ".spec.number"),
    ("FractionText", "string", ".spec.fraction"),
    ("FractionInt", "integer", ".spec.fraction"),
    ("IntNumber", "number", ".spec.number"),
    ("FlagText", "string", ".spec.flag"),
    ("Missing", "string", ".spec.missing.more"),
    ("MissingDate", "date", ".spec.missing"),
    ("BadDate", "date", ".spec.text"),
    ("Label", "string", ".metadata.labels.a"),
    ("Null", "string", ".spec.null"),
]
CUSTOM_SPEC: Object = {
    "text": "hello",
    "number": 3,
    "fraction": 1.5,
    "flag": False,
    "when": OLD,
    "map": {"a.b/c": "quoted", "x": 1},
    "list": ["one", "two", "three"],
    "items": [{"type": "Ready", "status": "True", "n": 1}, {"type": "Other", "status": "False", "n": 2}],
}
CUSTOM_PATH = "/apis/table.grovekeeper.io/v1/namespaces/default/things"
CUSTOM: list[Object] = [
    {"apiVersion": "table.grovekeeper.io/v1", "kind": "Thing", "metadata": {"name": "full", "labels": {"a": "b"}}, "spec": CUSTOM_SPEC},
    {"apiVersion": "table.grovekeeper.io/v1", "kind": "Thing", "metadata": {"name": "none"}},
    {
        "apiVersion": "table.grovekeeper.io/v1",
        "kind": "Thing",
        "metadata": {"name": "odd"},
        "spec": {"text": {"a": "b"}, "number": "x", "list": [], "items": [], "map": {}},
    },
]


def definition() -> Object:
    """The CustomResourceDefinition that the custom objects belong to."""
    columns = [{"name": name, "type": kind, "jsonPath": path} for name, kind, path in COLUMNS]
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    version = {"name": "v1", "served": True, "storage": True, "schema": schema, "additionalPrinterColumns": columns}
    names = {"plural": "things", "singular": "thing", "kind": "Thing", "listKind": "ThingList"}
    spec = {"group": "table.grovekeeper.io", "scope": "Namespaced", "names": names, "versions": [version]}
    head = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "things.table.grovekeeper.io"},
    }
    return {**head, "spec": spec}
