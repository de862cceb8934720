"""Who owns which field after each kind of write."""
# ruff: noqa: E501 - messages of the server stand whole, to be found by searching.

import re

import pytest

from tests.contract.client import Api
from tests.contract.kinds import CONFIGMAPS, configmap
from tests.contract.rows import ANY, GONE, Step, apply, case, delete, get, patch, post, put, run

MAP = "{data: {a: '1', b: '2'}, metadata: {labels: {l: x}}}"
POD = "{metadata: {annotations: {n: x}}, spec: {containers: [{name: a, image: i, ports: [{containerPort: 80}], env: [{name: e, value: '1'}], resources: {limits: {cpu: 1}}}], tolerations: [{key: k, operator: Exists}]}}"
DEPLOYMENT = "{spec: {selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec: {containers: [{name: c, image: i}]}}}}"
CLIQUE = "{spec: {roleName: r, replicas: 2, minAvailable: 1, podSpec: {containers: [{name: a, image: i}]}}}"
TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ")

CASES = [
    case(
        "create",
        post(
            "configmaps/a",
            MAP,
            {
                "@owned": ["contract Update: data/. data/a data/b metadata/labels/. metadata/labels/l"],
                "metadata.managedFields.0.apiVersion": "v1",
                "metadata.managedFields.0.fieldsType": "FieldsV1",
                "metadata.managedFields.0.time": TIME,
            },
        ),
        get("configmaps/a", {"metadata.managedFields": ANY, "metadata.managedFields.0.subresource": GONE}),
    ),
    case("create_empty", post("configmaps/a", "{}", {"@owned": [], "metadata.managedFields": GONE})),
    case(
        "create_pod",
        post(
            "pods/p",
            POD,
            {
                "@owned": [
                    'contract Update: metadata/annotations/. metadata/annotations/n spec/containers/k:{"name":"a"}/. spec/containers/k:{"name":"a"}/env/. spec/containers/k:{"name":"a"}/env/k:{"name":"e"}/. spec/containers/k:{"name":"a"}/env/k:{"name":"e"}/name spec/containers/k:{"name":"a"}/env/k:{"name":"e"}/value spec/containers/k:{"name":"a"}/image spec/containers/k:{"name":"a"}/imagePullPolicy spec/containers/k:{"name":"a"}/name spec/containers/k:{"name":"a"}/ports/. spec/containers/k:{"name":"a"}/ports/k:{"containerPort":80,"protocol":"TCP"}/. spec/containers/k:{"name":"a"}/ports/k:{"containerPort":80,"protocol":"TCP"}/containerPort spec/containers/k:{"name":"a"}/ports/k:{"containerPort":80,"protocol":"TCP"}/protocol spec/containers/k:{"name":"a"}/resources/. spec/containers/k:{"name":"a"}/resources/limits/. spec/containers/k:{"name":"a"}/resources/limits/cpu spec/containers/k:{"name":"a"}/resources/requests/. spec/containers/k:{"name":"a"}/resources/requests/cpu spec/containers/k:{"name":"a"}/terminationMessagePath spec/containers/k:{"name":"a"}/terminationMessagePolicy spec/dnsPolicy spec/enableServiceLinks spec/restartPolicy spec/schedulerName spec/securityContext spec/terminationGracePeriodSeconds spec/tolerations'
                ]
            },
        ),
    ),
    case(
        "create_service",
        post(
            "services/s",
            "{spec: {ports: [{port: 80}], selector: {a: b}}}",
            {
                "@owned": [
                    'contract Update: spec/internalTrafficPolicy spec/ports/. spec/ports/k:{"port":80,"protocol":"TCP"}/. spec/ports/k:{"port":80,"protocol":"TCP"}/port spec/ports/k:{"port":80,"protocol":"TCP"}/protocol spec/ports/k:{"port":80,"protocol":"TCP"}/targetPort spec/selector spec/sessionAffinity spec/type'
                ]
            },
        ),
    ),
    case(
        "create_deployment",
        post(
            "deployments/d",
            DEPLOYMENT,
            {
                "@owned": [
                    'contract Update: spec/progressDeadlineSeconds spec/replicas spec/revisionHistoryLimit spec/selector spec/strategy/rollingUpdate/. spec/strategy/rollingUpdate/maxSurge spec/strategy/rollingUpdate/maxUnavailable spec/strategy/type spec/template/metadata/labels/. spec/template/metadata/labels/a spec/template/spec/containers/k:{"name":"c"}/. spec/template/spec/containers/k:{"name":"c"}/image spec/template/spec/containers/k:{"name":"c"}/imagePullPolicy spec/template/spec/containers/k:{"name":"c"}/name spec/template/spec/containers/k:{"name":"c"}/resources spec/template/spec/containers/k:{"name":"c"}/terminationMessagePath spec/template/spec/containers/k:{"name":"c"}/terminationMessagePolicy spec/template/spec/dnsPolicy spec/template/spec/restartPolicy spec/template/spec/schedulerName spec/template/spec/securityContext spec/template/spec/terminationGracePeriodSeconds'
                ]
            },
        ),
    ),
    case(
        "create_clique",
        post(
            "podcliques/c",
            CLIQUE,
            {
                "@owned": [
                    'contract Update: spec/. spec/minAvailable spec/podSpec/. spec/podSpec/containers/. spec/podSpec/containers/k:{"name":"a"}/. spec/podSpec/containers/k:{"name":"a"}/image spec/podSpec/containers/k:{"name":"a"}/name spec/replicas spec/roleName'
                ],
                "metadata.managedFields.0.apiVersion": "grove.io/v1alpha1",
            },
        ),
    ),
    case(
        "create_custom",
        post(
            "things/t",
            "{spec: {map: [{name: a, value: 1}], set: [x], atomic: [y], one: {a: b}, free: {q: [1]}, number: 3}}",
            {
                "@owned": [
                    'contract Update: spec/. spec/atomic spec/deep/. spec/deep/level spec/free/. spec/free/q spec/map/. spec/map/k:{"kind":"plain","name":"a"}/. spec/map/k:{"kind":"plain","name":"a"}/kind spec/map/k:{"kind":"plain","name":"a"}/name spec/map/k:{"kind":"plain","name":"a"}/value spec/nulled spec/number spec/one spec/replicas spec/set/. spec/set/v:"x" spec/whole'
                ]
            },
        ),
    ),
    case(
        "create_node",
        post(
            "nodes/<ns>",
            "{metadata: {labels: {l: x}}, spec: {taints: [{key: a, effect: NoSchedule}]}}",
            {"@owned": ["contract Update: metadata/labels/. metadata/labels/l spec/taints"]},
        ),
    ),
    case(
        "create_owned",
        post(
            "configmaps/a",
            "{metadata: {ownerReferences: [{apiVersion: v1, kind: Pod, name: p, uid: u1}], finalizers: [x/a]}}",
            {
                "@owned": [
                    'contract Update: metadata/finalizers/. metadata/finalizers/v:"x/a" metadata/ownerReferences/. metadata/ownerReferences/k:{"uid":"u1"}'
                ]
            },
        ),
    ),
    case("named_manager", post("configmaps/a", MAP, {"metadata.managedFields.0.manager": "me"}, query="fieldManager=me")),
    case(
        "update_adds",
        post("configmaps/a", MAP),
        put(
            "configmaps/a",
            "{data: {a: '1', b: '3', c: '4'}}",
            {"@owned": ["contract Update: data/. data/a", "two Update: data/b data/c"]},
            query="fieldManager=two",
        ),
    ),
    case(
        "update_of_nothing",
        post("configmaps/a", MAP),
        put(
            "configmaps/a",
            MAP,
            {
                "@owned": ["contract Update: data/. data/a data/b metadata/labels/. metadata/labels/l"],
                "metadata.resourceVersion": "<0.metadata.resourceVersion>",
            },
            query="fieldManager=two",
        ),
    ),
    case(
        "update_by_the_same",
        post("configmaps/a", MAP),
        put("configmaps/a", "{data: {c: '4'}}", {"@owned": ["contract Update: data/. data/c"]}),
    ),
    case(
        "update_removes_all", post("configmaps/a", "{data: {a: '1'}}"), put("configmaps/a", "{}", {"@owned": []}, query="fieldManager=two")
    ),
    case(
        "update_without_managed_fields",
        post("configmaps/a", MAP),
        put(
            "configmaps/a",
            "{data: {a: '7'}, metadata: {managedFields: null}}",
            {"@owned": ["contract Update: data", "two Update: data/a"]},
            query="fieldManager=two",
        ),
    ),
    case(
        "update_resets",
        post("configmaps/a", MAP),
        put("configmaps/a", "{data: {a: '1'}, metadata: {managedFields: []}}", {"@owned": []}, query="fieldManager=two"),
    ),
    case("patch_resets", post("configmaps/a", MAP), patch("merge", "configmaps/a", "{metadata: {managedFields: []}}", {"@owned": []})),
    case(
        "patch_resets_with_empty_entry",
        post("configmaps/a", MAP),
        patch("merge", "configmaps/a", "{metadata: {managedFields: [{}]}}", {"@": 200, "metadata.managedFields": GONE}),
    ),
    case(
        "after_a_reset",
        post("configmaps/a", MAP),
        patch("merge", "configmaps/a", "{metadata: {managedFields: [{}]}}"),
        apply("configmaps/a", "{data: {a: '5'}}", {"@": 409, "@owned": [], "@causes": [(".data.a", "FieldManagerConflict")]}),
    ),
    case(
        "patch_null",
        post("configmaps/a", MAP),
        patch(
            "merge",
            "configmaps/a",
            "{metadata: {managedFields: null}}",
            {"@owned": ["contract Update: data/. data/a data/b metadata/labels/. metadata/labels/l"]},
        ),
    ),
    case(
        "bad_entries",
        post(
            "configmaps/a",
            "{metadata: {managedFields: [{manager: m, operation: Frob, apiVersion: v1, fieldsType: FieldsV1, fieldsV1: {}}]}}",
            {"@": 201, "message": GONE, "metadata.managedFields": GONE},
        ),
    ),
    case(
        "entries_at_creation",
        post(
            "configmaps/a",
            "{data: {a: b}, metadata: {managedFields: [{manager: m, operation: Update, apiVersion: v1, fieldsType: FieldsV1, fieldsV1: {'f:data': {'f:a': {}}}}]}}",
            {"@": 201, "@owned": ["contract Update: data/. data/a"]},
        ),
    ),
    case(
        "merge_patch",
        post("configmaps/a", MAP),
        patch(
            "merge",
            "configmaps/a",
            "{data: {a: '3', c: '4'}}",
            {"@owned": ["contract Update: data/. data/b metadata/labels/. metadata/labels/l", "two Update: data/a data/c"]},
            query="fieldManager=two",
        ),
    ),
    case(
        "json_patch",
        post("configmaps/a", MAP),
        patch(
            "json",
            "configmaps/a",
            [{"op": "remove", "path": "/data/a"}],
            {"@owned": ["contract Update: data/. data/b metadata/labels/. metadata/labels/l"]},
            query="fieldManager=two",
        ),
    ),
    case(
        "strategic_patch",
        post("pods/p", POD),
        patch(
            "strategic",
            "pods/p",
            "{spec: {containers: [{name: a, image: j}]}}",
            {
                "@owned": [
                    'contract Update: metadata/annotations/. metadata/annotations/n spec/containers/k:{"name":"a"}/. spec/containers/k:{"name":"a"}/env/. spec/containers/k:{"name":"a"}/env/k:{"name":"e"}/. spec/containers/k:{"name":"a"}/env/k:{"name":"e"}/name spec/containers/k:{"name":"a"}/env/k:{"name":"e"}/value spec/containers/k:{"name":"a"}/imagePullPolicy spec/containers/k:{"name":"a"}/name spec/containers/k:{"name":"a"}/ports/. spec/containers/k:{"name":"a"}/ports/k:{"containerPort":80,"protocol":"TCP"}/. spec/containers/k:{"name":"a"}/ports/k:{"containerPort":80,"protocol":"TCP"}/containerPort spec/containers/k:{"name":"a"}/ports/k:{"containerPort":80,"protocol":"TCP"}/protocol spec/containers/k:{"name":"a"}/resources/. spec/containers/k:{"name":"a"}/resources/limits/. spec/containers/k:{"name":"a"}/resources/limits/cpu spec/containers/k:{"name":"a"}/resources/requests/. spec/containers/k:{"name":"a"}/resources/requests/cpu spec/containers/k:{"name":"a"}/terminationMessagePath spec/containers/k:{"name":"a"}/terminationMessagePolicy spec/dnsPolicy spec/enableServiceLinks spec/restartPolicy spec/schedulerName spec/securityContext spec/terminationGracePeriodSeconds spec/tolerations',
                    'two Update: spec/containers/k:{"name":"a"}/image',
                ]
            },
            query="fieldManager=two",
        ),
    ),
    case(
        "patch_of_nothing",
        post("configmaps/a", MAP),
        patch(
            "merge",
            "configmaps/a",
            "{data: {a: '1'}}",
            {"@owned": ["contract Update: data/. data/a data/b metadata/labels/. metadata/labels/l"]},
            query="fieldManager=two",
        ),
    ),
    case(
        "atomic_list",
        post("things/t", "{spec: {atomic: [a]}}"),
        patch(
            "merge",
            "things/t",
            "{spec: {atomic: [a, b]}}",
            {
                "@owned": [
                    "contract Update: spec/. spec/deep/. spec/deep/level spec/nulled spec/replicas spec/whole",
                    "two Update: spec/atomic",
                ]
            },
            query="fieldManager=two",
        ),
    ),
    case(
        "set_member_removed",
        post("things/t", "{spec: {set: [a, b]}}"),
        patch(
            "merge",
            "things/t",
            "{spec: {set: [b, c]}}",
            {
                "@owned": [
                    'contract Update: spec/. spec/deep/. spec/deep/level spec/nulled spec/replicas spec/set/. spec/set/v:"b" spec/whole',
                    'two Update: spec/set/v:"c"',
                ]
            },
            query="fieldManager=two",
        ),
    ),
    case(
        "status_update",
        post("pods/p", POD),
        patch(
            "merge",
            "pods/p/status",
            "{status: {phase: Running, podIPs: [{ip: 10.0.0.1}]}}",
            {
                "@owned": [
                    'contract Update: metadata/annotations/. metadata/annotations/n spec/containers/k:{"name":"a"}/. spec/containers/k:{"name":"a"}/env/. spec/containers/k:{"name":"a"}/env/k:{"name":"e"}/. spec/containers/k:{"name":"a"}/env/k:{"name":"e"}/name spec/containers/k:{"name":"a"}/env/k:{"name":"e"}/value spec/containers/k:{"name":"a"}/image spec/containers/k:{"name":"a"}/imagePullPolicy spec/containers/k:{"name":"a"}/name spec/containers/k:{"name":"a"}/ports/. spec/containers/k:{"name":"a"}/ports/k:{"containerPort":80,"protocol":"TCP"}/. spec/containers/k:{"name":"a"}/ports/k:{"containerPort":80,"protocol":"TCP"}/containerPort spec/containers/k:{"name":"a"}/ports/k:{"containerPort":80,"protocol":"TCP"}/protocol spec/containers/k:{"name":"a"}/resources/. spec/containers/k:{"name":"a"}/resources/limits/. spec/containers/k:{"name":"a"}/resources/limits/cpu spec/containers/k:{"name":"a"}/resources/requests/. spec/containers/k:{"name":"a"}/resources/requests/cpu spec/containers/k:{"name":"a"}/terminationMessagePath spec/containers/k:{"name":"a"}/terminationMessagePolicy spec/dnsPolicy spec/enableServiceLinks spec/restartPolicy spec/schedulerName spec/securityContext spec/terminationGracePeriodSeconds spec/tolerations',
                    'two Update status: status/phase status/podIP status/podIPs/. status/podIPs/k:{"ip":"10.0.0.1"}/. status/podIPs/k:{"ip":"10.0.0.1"}/ip',
                ],
                "metadata.managedFields.1.subresource": "status",
            },
            query="fieldManager=two",
        ),
    ),
    case(
        "status_of_a_clique",
        post("podcliques/c", CLIQUE),
        patch(
            "merge",
            "podcliques/c/status",
            "{status: {readyReplicas: 1}}",
            {
                "@owned": [
                    'contract Update: spec/. spec/minAvailable spec/podSpec/. spec/podSpec/containers/. spec/podSpec/containers/k:{"name":"a"}/. spec/podSpec/containers/k:{"name":"a"}/image spec/podSpec/containers/k:{"name":"a"}/name spec/replicas spec/roleName',
                    "contract Update status: status/. status/readyReplicas status/scheduleGatedReplicas status/scheduledReplicas status/updatedReplicas",
                ]
            },
        ),
    ),
    case(
        "status_labels",
        post("podcliques/c", CLIQUE),
        patch(
            "merge",
            "podcliques/c/status",
            "{metadata: {labels: {a: b}}, status: {readyReplicas: 1}}",
            {
                "@owned": [
                    'contract Update: spec/. spec/minAvailable spec/podSpec/. spec/podSpec/containers/. spec/podSpec/containers/k:{"name":"a"}/. spec/podSpec/containers/k:{"name":"a"}/image spec/podSpec/containers/k:{"name":"a"}/name spec/replicas spec/roleName',
                    "contract Update status: status/. status/readyReplicas status/scheduleGatedReplicas status/scheduledReplicas status/updatedReplicas",
                ],
                "metadata.labels": GONE,
            },
        ),
    ),
    case(
        "scale",
        post("deployments/d", DEPLOYMENT),
        patch("merge", "deployments/d/scale", "{spec: {replicas: 4}}"),
        get(
            "deployments/d",
            {
                "@owned": [
                    "contract Update scale: spec/replicas",
                    'contract Update: spec/progressDeadlineSeconds spec/revisionHistoryLimit spec/selector spec/strategy/rollingUpdate/. spec/strategy/rollingUpdate/maxSurge spec/strategy/rollingUpdate/maxUnavailable spec/strategy/type spec/template/metadata/labels/. spec/template/metadata/labels/a spec/template/spec/containers/k:{"name":"c"}/. spec/template/spec/containers/k:{"name":"c"}/image spec/template/spec/containers/k:{"name":"c"}/imagePullPolicy spec/template/spec/containers/k:{"name":"c"}/name spec/template/spec/containers/k:{"name":"c"}/resources spec/template/spec/containers/k:{"name":"c"}/terminationMessagePath spec/template/spec/containers/k:{"name":"c"}/terminationMessagePolicy spec/template/spec/dnsPolicy spec/template/spec/restartPolicy spec/template/spec/schedulerName spec/template/spec/securityContext spec/template/spec/terminationGracePeriodSeconds',
                ]
            },
        ),
    ),
    case(
        "scale_takes_from_apply",
        apply("deployments/d", DEPLOYMENT.replace("{spec: {", "{spec: {replicas: 2, "), {"@": 201}),
        patch("merge", "deployments/d/scale", "{spec: {replicas: 4}}", query="fieldManager=two"),
        get(
            "deployments/d",
            {
                "@owned": [
                    'one Apply: spec/selector spec/template/metadata/labels/a spec/template/spec/containers/k:{"name":"c"}/. spec/template/spec/containers/k:{"name":"c"}/image spec/template/spec/containers/k:{"name":"c"}/name',
                    "two Update scale: spec/replicas",
                ]
            },
        ),
        apply(
            "deployments/d",
            DEPLOYMENT.replace("{spec: {", "{spec: {replicas: 2, "),
            {
                "@": 409,
                "reason": "Conflict",
                "message": 'Apply failed with 1 conflict: conflict with "two" with subresource "scale" using apps/v1: .spec.replicas',
            },
        ),
    ),
    case(
        "scale_of_a_clique",
        post("podcliques/c", CLIQUE),
        patch("merge", "podcliques/c/scale", "{spec: {replicas: 4}}", query="fieldManager=two"),
        get(
            "podcliques/c",
            {
                "@owned": [
                    "two Update scale: spec/replicas",
                    'contract Update: spec/. spec/minAvailable spec/podSpec/. spec/podSpec/containers/. spec/podSpec/containers/k:{"name":"a"}/. spec/podSpec/containers/k:{"name":"a"}/image spec/podSpec/containers/k:{"name":"a"}/name spec/roleName',
                ]
            },
        ),
    ),
    case(
        "binding",
        post("pods/p", POD),
        post("pods/p/binding", "{metadata: {name: p}, target: {name: n}}"),
        get(
            "pods/p",
            {
                "@owned": [
                    'contract Update: metadata/annotations/. metadata/annotations/n spec/containers/k:{"name":"a"}/. spec/containers/k:{"name":"a"}/env/. spec/containers/k:{"name":"a"}/env/k:{"name":"e"}/. spec/containers/k:{"name":"a"}/env/k:{"name":"e"}/name spec/containers/k:{"name":"a"}/env/k:{"name":"e"}/value spec/containers/k:{"name":"a"}/image spec/containers/k:{"name":"a"}/imagePullPolicy spec/containers/k:{"name":"a"}/name spec/containers/k:{"name":"a"}/ports/. spec/containers/k:{"name":"a"}/ports/k:{"containerPort":80,"protocol":"TCP"}/. spec/containers/k:{"name":"a"}/ports/k:{"containerPort":80,"protocol":"TCP"}/containerPort spec/containers/k:{"name":"a"}/ports/k:{"containerPort":80,"protocol":"TCP"}/protocol spec/containers/k:{"name":"a"}/resources/. spec/containers/k:{"name":"a"}/resources/limits/. spec/containers/k:{"name":"a"}/resources/limits/cpu spec/containers/k:{"name":"a"}/resources/requests/. spec/containers/k:{"name":"a"}/resources/requests/cpu spec/containers/k:{"name":"a"}/terminationMessagePath spec/containers/k:{"name":"a"}/terminationMessagePolicy spec/dnsPolicy spec/enableServiceLinks spec/restartPolicy spec/schedulerName spec/securityContext spec/terminationGracePeriodSeconds spec/tolerations'
                ]
            },
        ),
    ),
    case(
        "deletion",
        post("configmaps/a", "{metadata: {finalizers: [x/a]}}"),
        delete("configmaps/a", None, {"@owned": ['contract Update: metadata/finalizers/. metadata/finalizers/v:"x/a"']}),
    ),
    case(
        "ephemeral_containers",
        post("pods/p", POD),
        patch(
            "strategic",
            "pods/p/ephemeralcontainers",
            "{spec: {ephemeralContainers: [{name: d, image: i}]}}",
            {
                "@owned": [
                    'contract Update: metadata/annotations/. metadata/annotations/n spec/containers/k:{"name":"a"}/. spec/containers/k:{"name":"a"}/env/. spec/containers/k:{"name":"a"}/env/k:{"name":"e"}/. spec/containers/k:{"name":"a"}/env/k:{"name":"e"}/name spec/containers/k:{"name":"a"}/env/k:{"name":"e"}/value spec/containers/k:{"name":"a"}/image spec/containers/k:{"name":"a"}/imagePullPolicy spec/containers/k:{"name":"a"}/name spec/containers/k:{"name":"a"}/ports/. spec/containers/k:{"name":"a"}/ports/k:{"containerPort":80,"protocol":"TCP"}/. spec/containers/k:{"name":"a"}/ports/k:{"containerPort":80,"protocol":"TCP"}/containerPort spec/containers/k:{"name":"a"}/ports/k:{"containerPort":80,"protocol":"TCP"}/protocol spec/containers/k:{"name":"a"}/resources/. spec/containers/k:{"name":"a"}/resources/limits/. spec/containers/k:{"name":"a"}/resources/limits/cpu spec/containers/k:{"name":"a"}/resources/requests/. spec/containers/k:{"name":"a"}/resources/requests/cpu spec/containers/k:{"name":"a"}/terminationMessagePath spec/containers/k:{"name":"a"}/terminationMessagePolicy spec/dnsPolicy spec/enableServiceLinks spec/restartPolicy spec/schedulerName spec/securityContext spec/terminationGracePeriodSeconds spec/tolerations',
                    'contract Update ephemeralcontainers: spec/ephemeralContainers/. spec/ephemeralContainers/k:{"name":"d"}/. spec/ephemeralContainers/k:{"name":"d"}/image spec/ephemeralContainers/k:{"name":"d"}/imagePullPolicy spec/ephemeralContainers/k:{"name":"d"}/name spec/ephemeralContainers/k:{"name":"d"}/resources spec/ephemeralContainers/k:{"name":"d"}/terminationMessagePath spec/ephemeralContainers/k:{"name":"d"}/terminationMessagePolicy',
                ]
            },
        ),
    ),
    case(
        "two_managers_in_order",
        post("configmaps/a", MAP, query="fieldManager=bb"),
        apply(
            "configmaps/a",
            "{data: {c: '3'}}",
            {"@owned": ["aa Apply: data/c", "bb Update: data/. data/a data/b metadata/labels/. metadata/labels/l"]},
            manager="aa",
        ),
        apply(
            "configmaps/a",
            "{data: {d: '3'}}",
            {"@owned": ["aa Apply: data/c", "mm Apply: data/d", "bb Update: data/. data/a data/b metadata/labels/. metadata/labels/l"]},
            manager="mm",
        ),
        patch(
            "merge",
            "configmaps/a",
            "{data: {e: '3'}}",
            {
                "@owned": [
                    "aa Apply: data/c",
                    "mm Apply: data/d",
                    "bb Update: data/. data/a data/b metadata/labels/. metadata/labels/l",
                    "zz Update: data/e",
                ]
            },
            query="fieldManager=zz",
        ),
    ),
    case(
        "lease",
        post("leases/l", "{spec: {holderIdentity: a, leaseDurationSeconds: 5}}"),
        patch(
            "merge",
            "leases/l",
            "{spec: {holderIdentity: b, renewTime: '2024-01-01T00:00:00.000000Z'}}",
            {"@owned": ["contract Update: spec/leaseDurationSeconds", "two Update: spec/holderIdentity spec/renewTime"]},
            query="fieldManager=two",
        ),
    ),
    case(
        "event",
        post(
            "events/e",
            "{involvedObject: {kind: Pod, name: p, namespace: <ns>}, reason: R, message: m, type: Normal}",
            {"@owned": ["contract Update: involvedObject message reason type"]},
        ),
    ),
]


@pytest.mark.parametrize("steps", CASES)
async def test_managed_fields(api: Api, steps: tuple[Step, ...]) -> None:
    await run(api, steps)


@pytest.mark.parametrize(("agent", "manager"), [("curl/8.0 (x)", "curl"), ("plain", "plain"), ("a b/c", "a b"), ("x" * 200, "x" * 128)])
async def test_the_manager_comes_from_the_user_agent(api: Api, agent: str, manager: str) -> None:
    reply = await api.request("POST", api.path(CONFIGMAPS), configmap("a"), headers={"User-Agent": agent})
    assert [e["manager"] for e in reply.expect(201).meta["managedFields"]] == [manager]
