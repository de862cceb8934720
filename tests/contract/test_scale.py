"""The scale subresource."""
# ruff: noqa: E501 - messages of the server stand whole, to be found by searching.

import pytest

from tests.contract.client import Api
from tests.contract.rows import GONE, Step, case, ends, get, patch, post, put, run

DEPLOYMENT = post(
    "deployments/d",
    "{metadata: {labels: {l: x}}, spec: {replicas: 2, selector: {matchLabels: {b: x, a: y}, matchExpressions: [{key: k, operator: In, values: [w, v]}]}, template: {metadata: {labels: {a: y, b: x, k: v}}, spec: {containers: [{name: c, image: i}]}}}}",
)
CLIQUE = post("podcliques/c", "{spec: {roleName: r, replicas: 2, minAvailable: 1, podSpec: {containers: [{name: a, image: i}]}}}")
WITH_STATUS = patch("merge", "podcliques/c/status", "{status: {replicas: 1, hpaPodSelector: 'a=b', selector: 'a=b'}}")
SCALE = "{apiVersion: autoscaling/v1, kind: Scale, metadata: {name: %s, namespace: <ns>%s}, spec: {replicas: %s}}"

CASES = [
    case(
        "deployment",
        DEPLOYMENT,
        get(
            "deployments/d/scale",
            {
                "kind": "Scale",
                "apiVersion": "autoscaling/v1",
                "metadata": {
                    "name": "d",
                    "namespace": "<ns>",
                    "uid": "<0.metadata.uid>",
                    "resourceVersion": "<0.metadata.resourceVersion>",
                    "creationTimestamp": "<0.metadata.creationTimestamp>",
                },
                "spec": {"replicas": 2},
                "status": {"replicas": 0, "selector": "a=y,b=x,k in (v,w)"},
            },
        ),
    ),
    case(
        "deployment_patch",
        DEPLOYMENT,
        patch("merge", "deployments/d/scale", "{spec: {replicas: 5}}", {"kind": "Scale", "spec.replicas": 5}),
        get("deployments/d", {"spec.replicas": 5, "metadata.generation": 2}),
    ),
    case(
        "deployment_same",
        DEPLOYMENT,
        patch("merge", "deployments/d/scale", "{spec: {replicas: 2}}"),
        get(
            "deployments/d",
            {
                "metadata.generation": 1,
                "@owned": [
                    "contract Update: spec/replicas",
                    'contract Update: metadata/labels/. metadata/labels/l spec/progressDeadlineSeconds spec/revisionHistoryLimit spec/selector spec/strategy/rollingUpdate/. spec/strategy/rollingUpdate/maxSurge spec/strategy/rollingUpdate/maxUnavailable spec/strategy/type spec/template/metadata/labels/. spec/template/metadata/labels/a spec/template/metadata/labels/b spec/template/metadata/labels/k spec/template/spec/containers/k:{"name":"c"}/. spec/template/spec/containers/k:{"name":"c"}/image spec/template/spec/containers/k:{"name":"c"}/imagePullPolicy spec/template/spec/containers/k:{"name":"c"}/name spec/template/spec/containers/k:{"name":"c"}/resources spec/template/spec/containers/k:{"name":"c"}/terminationMessagePath spec/template/spec/containers/k:{"name":"c"}/terminationMessagePolicy spec/template/spec/dnsPolicy spec/template/spec/restartPolicy spec/template/spec/schedulerName spec/template/spec/securityContext spec/template/spec/terminationGracePeriodSeconds',
                ],
            },
        ),
        get("deployments/d", {"metadata.generation": 1}),
    ),
    case("deployment_put", DEPLOYMENT, put("deployments/d/scale", SCALE % ("d", "", 7), {"spec.replicas": 7})),
    case(
        "deployment_put_version",
        DEPLOYMENT,
        put("deployments/d/scale", SCALE % ("d", ", resourceVersion: '<0.metadata.resourceVersion>'", 7), {"spec.replicas": 7}),
    ),
    case(
        "deployment_put_stale",
        DEPLOYMENT,
        put(
            "deployments/d/scale",
            SCALE % ("d", ", resourceVersion: '1'", 7),
            {
                "@": 409,
                "reason": "Conflict",
                "message": 'Operation cannot be fulfilled on deployments.apps "d": the object has been modified; please apply your changes to the latest version and try again',
            },
        ),
    ),
    case(
        "deployment_put_uid",
        DEPLOYMENT,
        put(
            "deployments/d/scale",
            SCALE % ("d", ", uid: abc", 7),
            {
                "@": 409,
                "reason": "Conflict",
                "message": 'Operation cannot be fulfilled on deployments.apps "d": StorageError: invalid object, Code: 4, Key: /registry/deployments/<ns>/d, ResourceVersion: 0, AdditionalErrorMsg: Precondition failed: UID in precondition: abc, UID in object meta: <0.metadata.uid>',
            },
        ),
    ),
    case(
        "deployment_put_name",
        DEPLOYMENT,
        put(
            "deployments/d/scale",
            SCALE % ("q", "", 7),
            {"@": 400, "reason": "BadRequest", "message": "the name of the object (q) does not match the name on the URL (d)"},
        ),
    ),
    case(
        "deployment_put_namespace",
        DEPLOYMENT,
        put(
            "deployments/d/scale",
            "{apiVersion: autoscaling/v1, kind: Scale, metadata: {name: d, namespace: q}, spec: {replicas: 7}}",
            {
                "@": 400,
                "reason": "BadRequest",
                "message": "the namespace of the provided object does not match the namespace sent on the request",
            },
        ),
    ),
    case(
        "deployment_put_kind",
        DEPLOYMENT,
        put(
            "deployments/d/scale",
            "{apiVersion: apps/v1, kind: Deployment, metadata: {name: d}, spec: {replicas: 7}}",
            {
                "@": 400,
                "reason": "BadRequest",
                "message": 'Deployment in version "v1" cannot be handled as a Scale: converting (v1.Deployment) to (autoscaling.Scale): unknown conversion',
            },
        ),
    ),
    case(
        "deployment_put_empty",
        DEPLOYMENT,
        put(
            "deployments/d/scale", "{apiVersion: autoscaling/v1, kind: Scale, metadata: {name: d}}", {"@": 200, "message": GONE, "spec": {}}
        ),
    ),
    case(
        "deployment_negative",
        DEPLOYMENT,
        patch(
            "merge",
            "deployments/d/scale",
            "{spec: {replicas: -1}}",
            {
                "@": 422,
                "reason": "Invalid",
                "message": 'Scale.autoscaling "d" is invalid: spec.replicas: Invalid value: -1: must be greater than or equal to 0',
                "@causes": [("spec.replicas", "FieldValueInvalid")],
                "details": {
                    "name": "d",
                    "group": "autoscaling",
                    "kind": "Scale",
                    "causes": [
                        {
                            "reason": "FieldValueInvalid",
                            "message": "Invalid value: -1: must be greater than or equal to 0",
                            "field": "spec.replicas",
                        }
                    ],
                },
            },
        ),
    ),
    case(
        "deployment_text",
        DEPLOYMENT,
        patch(
            "merge",
            "deployments/d/scale",
            "{spec: {replicas: x}}",
            {
                "@": 422,
                "reason": "Invalid",
                "message": ends("json: cannot unmarshal string into Go struct field ScaleSpec.spec.replicas of type int32"),
            },
        ),
    ),
    case("deployment_strategic", DEPLOYMENT, patch("strategic", "deployments/d/scale", "{spec: {replicas: 3}}", {"spec.replicas": 3})),
    case(
        "deployment_json",
        DEPLOYMENT,
        patch(
            "json",
            "deployments/d/scale",
            [{"op": "test", "path": "/spec/replicas", "value": 2}, {"op": "replace", "path": "/spec/replicas", "value": 3}],
            {"spec.replicas": 3},
        ),
    ),
    case(
        "deployment_status_ignored",
        DEPLOYMENT,
        patch(
            "merge",
            "deployments/d/scale",
            "{status: {replicas: 9}, metadata: {labels: {a: b}}}",
            {"status.replicas": 0, "metadata.labels": GONE},
        ),
    ),
    case(
        "dry_run",
        DEPLOYMENT,
        patch("merge", "deployments/d/scale", "{spec: {replicas: 5}}", {"spec.replicas": 5}, query="dryRun=All"),
        get("deployments/d", {"spec.replicas": 2}),
    ),
    case("missing", get("deployments/q/scale", {"@": 404, "reason": "NotFound", "message": 'deployments.apps "q" not found'})),
    case(
        "missing_patch",
        patch(
            "merge",
            "deployments/q/scale",
            "{spec: {replicas: 5}}",
            {"@": 404, "reason": "NotFound", "message": 'deployments.apps "q" not found'},
        ),
    ),
    case(
        "missing_put",
        put("deployments/q/scale", SCALE % ("q", "", 7), {"@": 404, "reason": "NotFound", "message": 'deployments.apps "q" not found'}),
    ),
    case("zero", DEPLOYMENT, patch("merge", "deployments/d/scale", "{spec: {replicas: 0}}", {"spec": {}})),
    case(
        "no_scale",
        post("pods/p", "{spec: {containers: [{name: a, image: i}]}}"),
        get("pods/p/scale", {"@": 404, "reason": "NotFound", "message": "the server could not find the requested resource"}),
    ),
    case(
        "clique",
        CLIQUE,
        WITH_STATUS,
        get(
            "podcliques/c/scale",
            {
                "kind": "Scale",
                "apiVersion": "autoscaling/v1",
                "metadata.name": "c",
                "metadata.uid": "<0.metadata.uid>",
                "metadata.generation": GONE,
                "metadata.managedFields": GONE,
                "spec": {"replicas": 2},
                "status": {"replicas": 1, "selector": "a=b"},
            },
        ),
    ),
    case("clique_without_status", CLIQUE, get("podcliques/c/scale", {"spec": {"replicas": 2}, "status": {"replicas": 0}})),
    case(
        "clique_patch",
        CLIQUE,
        patch("merge", "podcliques/c/scale", "{spec: {replicas: 5}}", {"spec.replicas": 5}),
        get("podcliques/c", {"spec.replicas": 5, "metadata.generation": 2}),
    ),
    case(
        "clique_same",
        CLIQUE,
        patch("merge", "podcliques/c/scale", "{spec: {replicas: 2}}"),
        get(
            "podcliques/c",
            {
                "metadata.generation": 1,
                "@owned": [
                    "contract Update: spec/replicas",
                    'contract Update: spec/. spec/minAvailable spec/podSpec/. spec/podSpec/containers/. spec/podSpec/containers/k:{"name":"a"}/. spec/podSpec/containers/k:{"name":"a"}/image spec/podSpec/containers/k:{"name":"a"}/name spec/roleName',
                ],
            },
        ),
    ),
    case(
        "clique_put",
        CLIQUE,
        put("podcliques/c/scale", SCALE % ("c", ", resourceVersion: '<0.metadata.resourceVersion>'", 7), {"spec.replicas": 7}),
    ),
    case(
        "clique_put_without_version",
        CLIQUE,
        put("podcliques/c/scale", SCALE % ("c", "", 7), {"@": 200, "message": GONE, "spec.replicas": 7}),
    ),
    case(
        "clique_stale",
        CLIQUE,
        put(
            "podcliques/c/scale",
            SCALE % ("c", ", resourceVersion: '1'", 7),
            {
                "@": 409,
                "reason": "Conflict",
                "message": 'Operation cannot be fulfilled on podcliques.grove.io "c": the object has been modified; please apply your changes to the latest version and try again',
            },
        ),
    ),
    case(
        "clique_negative",
        CLIQUE,
        patch(
            "merge",
            "podcliques/c/scale",
            "{spec: {replicas: -1}}",
            {
                "@": 422,
                "reason": "Invalid",
                "message": 'PodClique.grove.io "c" is invalid: .spec.replicas: Invalid value: -1: should be a non-negative integer',
                "@causes": [(".spec.replicas", "FieldValueInvalid")],
            },
        ),
    ),
    case(
        "clique_strategic",
        CLIQUE,
        patch(
            "strategic",
            "podcliques/c/scale",
            "{spec: {replicas: 4}}",
            {
                "@": 415,
                "message": "the body of the request was in an unknown format - accepted media types include: application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml",
                "spec": GONE,
            },
        ),
    ),
    case(
        "clique_invalid_for_schema",
        post("things/t", "{spec: {number: 1}}"),
        patch("merge", "things/t/scale", "{spec: {replicas: 3}}", {"spec.replicas": 3}),
    ),
    case(
        "custom_status_at_the_side",
        post("things/t", "{spec: {replicas: 4}, status: {replicas: 3}}"),
        get("things/t/scale", {"spec": {"replicas": 4}, "status": {"replicas": 3}}),
    ),
    case(
        "group",
        post("podcliquescalinggroups/g", "{spec: {replicas: 2, minAvailable: 1, cliqueNames: [a]}}"),
        patch("merge", "podcliquescalinggroups/g/scale", "{spec: {replicas: 3}}", {"spec.replicas": 3, "status": {"replicas": 0}}),
    ),
    case(
        "no_scale_custom",
        post("podgangs/g", "{spec: {podgroups: []}}"),
        get("podgangs/g/scale", {"@": 404, "reason": "NotFound", "message": 'podgangs.scheduler.grove.io "g" not found'}),
    ),
    case(
        "replicaset",
        post(
            "replicasets/r",
            "{spec: {selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec: {containers: [{name: c, image: i}]}}}}",
        ),
        get("replicasets/r/scale", {"spec": {"replicas": 1}, "status": {"replicas": 0, "selector": "a=b"}}),
    ),
]


@pytest.mark.parametrize("steps", CASES)
async def test_a_scale(api: Api, steps: tuple[Step, ...]) -> None:
    await run(api, steps)
