"""The eviction subresource of pods."""
# ruff: noqa: E501 - messages of the server stand whole, to be found by searching.

import pytest

from tests.contract.client import Api
from tests.contract.rows import ANY, GONE, Step, case, delete, fails, get, patch, post, run

POD = post("pods/p", "{metadata: {labels: {a: b}}, spec: {nodeName: n, containers: [{name: a, image: i}]}}")
READY = patch("merge", "pods/p/status", "{status: {phase: Running, conditions: [{type: Ready, status: 'True'}]}}")
BUDGET = post("poddisruptionbudgets/b", "{spec: {minAvailable: 1, selector: {matchLabels: {a: b}}}}")
OPEN = patch(
    "merge",
    "poddisruptionbudgets/b/status",
    "{status: {disruptionsAllowed: 1, currentHealthy: 2, desiredHealthy: 1, expectedPods: 2, observedGeneration: 1}}",
)
SHUT = patch(
    "merge",
    "poddisruptionbudgets/b/status",
    "{status: {disruptionsAllowed: 0, currentHealthy: 1, desiredHealthy: 1, expectedPods: 1, observedGeneration: 1}}",
)
STALE = patch(
    "merge",
    "poddisruptionbudgets/b/status",
    "{status: {disruptionsAllowed: 1, currentHealthy: 1, desiredHealthy: 1, expectedPods: 1, observedGeneration: 0}}",
)
DONE = {"kind": "Status", "status": "Success", "code": 201}
NOW = "{metadata: {name: p}, deleteOptions: {gracePeriodSeconds: 0}}"


def evict(body="{metadata: {name: p}}", expected=None, query=""):
    return post("pods/p/eviction", body, expected or {}, query)


CASES = [
    case(
        "plain",
        POD,
        evict(expected=DONE),
        get(
            "pods/p",
            {
                "metadata.deletionTimestamp": ANY,
                "metadata.deletionGracePeriodSeconds": 30,
                "status.conditions": [
                    {
                        "type": "DisruptionTarget",
                        "status": "True",
                        "lastProbeTime": None,
                        "lastTransitionTime": "<time>",
                        "reason": "EvictionByEvictionAPI",
                        "message": "Eviction API: evicting",
                    }
                ],
            },
        ),
    ),
    case(
        "unbound",
        post("pods/p", "{spec: {containers: [{name: a, image: i}]}}"),
        evict(expected=DONE),
        get("pods/p", fails(404, "NotFound")),
    ),
    case("at_once", POD, evict(NOW, DONE), get("pods/p", fails(404, "NotFound"))),
    case(
        "grace",
        POD,
        evict("{metadata: {name: p}, deleteOptions: {gracePeriodSeconds: 7}}", DONE),
        get("pods/p", {"metadata.deletionGracePeriodSeconds": 7}),
    ),
    case("missing", evict(expected=fails(404, "NotFound", 'pods "p" not found'))),
    case(
        "other_uid",
        POD,
        evict(
            "{metadata: {name: p}, deleteOptions: {preconditions: {uid: abc}}}",
            {
                "@": 409,
                "reason": "Conflict",
                "message": 'Operation cannot be fulfilled on Pod "p": the UID in the precondition (abc) does not match the UID in record (<0.metadata.uid>). The object might have been deleted and then recreated',
            },
        ),
    ),
    case("same_uid", POD, evict("{metadata: {name: p}, deleteOptions: {preconditions: {uid: <0.metadata.uid>}}}", DONE)),
    case(
        "other_version",
        POD,
        evict(
            "{metadata: {name: p}, deleteOptions: {preconditions: {resourceVersion: '1'}}}",
            {
                "@": 409,
                "reason": "Conflict",
                "message": 'Operation cannot be fulfilled on Pod "p": the ResourceVersion in the precondition (1) does not match the ResourceVersion in record (<0.metadata.resourceVersion>). The object might have been modified',
            },
        ),
    ),
    case(
        "other_name",
        POD,
        evict("{metadata: {name: q}}", {"@": 400, "reason": "BadRequest", "message": "name in URL does not match name in Eviction object"}),
    ),
    case("no_name", POD, evict("{}", {"@": 400, "message": "name in URL does not match name in Eviction object"})),
    case("old_version", POD, evict("{apiVersion: policy/v1beta1, kind: Eviction, metadata: {name: p}}", {"@": 201, "message": GONE})),
    case("explicit_version", POD, evict("{apiVersion: policy/v1, kind: Eviction, metadata: {name: p}}", DONE)),
    case("dry_run", POD, evict(query="dryRun=All", expected=DONE), get("pods/p", {"metadata.deletionTimestamp": GONE})),
    case(
        "dry_run_in_options",
        POD,
        evict("{metadata: {name: p}, deleteOptions: {dryRun: [All]}}", DONE),
        get("pods/p", {"metadata.deletionTimestamp": GONE}),
    ),
    case(
        "budget_shut",
        POD,
        READY,
        BUDGET,
        SHUT,
        evict(
            expected={
                "@": 429,
                "reason": "TooManyRequests",
                "message": "Cannot evict pod as it would violate the pod's disruption budget.",
                "details": {
                    "causes": [
                        {"reason": "DisruptionBudget", "message": "The disruption budget b needs 1 healthy pods and has 1 currently"}
                    ]
                },
            }
        ),
        get("pods/p", {"metadata.deletionTimestamp": GONE}),
    ),
    case(
        "budget_open",
        POD,
        READY,
        BUDGET,
        OPEN,
        evict(NOW, DONE),
        get("poddisruptionbudgets/b", {"status.disruptionsAllowed": 0, "status.disruptedPods.p": ANY, "status.currentHealthy": 2}),
    ),
    case(
        "budget_never_observed",
        POD,
        READY,
        BUDGET,
        evict(
            expected={
                "@": 429,
                "reason": "TooManyRequests",
                "message": "Cannot evict pod as it would violate the pod's disruption budget.",
                "details": {
                    "causes": [
                        {"reason": "DisruptionBudget", "message": "The disruption budget b is still being processed by the server."}
                    ],
                    "retryAfterSeconds": 10,
                },
            }
        ),
    ),
    case(
        "budget_stale",
        POD,
        READY,
        BUDGET,
        STALE,
        evict(
            expected={
                "@": 429,
                "reason": "TooManyRequests",
                "message": "Cannot evict pod as it would violate the pod's disruption budget.",
                "details": {
                    "causes": [
                        {"reason": "DisruptionBudget", "message": "The disruption budget b is still being processed by the server."}
                    ],
                    "retryAfterSeconds": 10,
                },
            }
        ),
    ),
    case(
        "budget_dry_run",
        POD,
        READY,
        BUDGET,
        OPEN,
        evict(expected=DONE, query="dryRun=All"),
        get("poddisruptionbudgets/b", {"status.disruptionsAllowed": 1, "status.disruptedPods": GONE}),
    ),
    case(
        "pending_pod",
        post("pods/p", "{metadata: {labels: {a: b}}, spec: {containers: [{name: a, image: i}]}}"),
        BUDGET,
        SHUT,
        evict(NOW, DONE),
    ),
    case("finished_pod", POD, patch("merge", "pods/p/status", "{status: {phase: Succeeded}}"), BUDGET, SHUT, evict(NOW, DONE)),
    case("unready_pod", POD, patch("merge", "pods/p/status", "{status: {phase: Running}}"), BUDGET, SHUT, evict(NOW, DONE)),
    case(
        "unready_pod_unhealthy",
        POD,
        patch("merge", "pods/p/status", "{status: {phase: Running}}"),
        BUDGET,
        patch(
            "merge",
            "poddisruptionbudgets/b/status",
            "{status: {disruptionsAllowed: 0, currentHealthy: 0, desiredHealthy: 1, expectedPods: 1, observedGeneration: 1}}",
        ),
        evict(
            NOW,
            {
                "@": 429,
                "message": "Cannot evict pod as it would violate the pod's disruption budget.",
                "details": {
                    "causes": [
                        {"reason": "DisruptionBudget", "message": "The disruption budget b needs 1 healthy pods and has 0 currently"}
                    ]
                },
            },
        ),
    ),
    case(
        "unready_pod_always",
        POD,
        patch("merge", "pods/p/status", "{status: {phase: Running}}"),
        post(
            "poddisruptionbudgets/b", "{spec: {minAvailable: 1, unhealthyPodEvictionPolicy: AlwaysAllow, selector: {matchLabels: {a: b}}}}"
        ),
        evict(NOW, DONE),
    ),
    case(
        "two_budgets",
        POD,
        READY,
        BUDGET,
        post("poddisruptionbudgets/c", "{spec: {maxUnavailable: 1, selector: {matchLabels: {a: b}}}}"),
        evict(
            expected={
                "@": 500,
                "reason": GONE,
                "message": "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.",
            }
        ),
    ),
    case(
        "budget_of_others",
        POD,
        READY,
        post("poddisruptionbudgets/b", "{spec: {minAvailable: 1, selector: {matchLabels: {a: c}}}}"),
        evict(NOW, DONE),
    ),
    case(
        "empty_selector_is_all",
        POD,
        READY,
        post("poddisruptionbudgets/b", "{spec: {minAvailable: 1, selector: {}}}"),
        evict(NOW, {"@": 429, "reason": "TooManyRequests"}),
    ),
    case(
        "no_selector_is_none",
        POD,
        READY,
        post("poddisruptionbudgets/b", "{spec: {minAvailable: 1}}"),
        evict(NOW, {"@": 201, "reason": GONE}),
    ),
    case("deleting_pod", POD, READY, BUDGET, SHUT, delete("pods/p"), evict(expected={"@": 201, "reason": GONE})),
]


@pytest.mark.parametrize("steps", CASES)
async def test_an_eviction(api: Api, steps: tuple[Step, ...]) -> None:
    await run(api, steps)
