"""Access reviews."""
# ruff: noqa: E501 - messages of the server stand whole, to be found by searching.

from typing import Any

import pytest

from tests.contract.client import Api
from tests.contract.rows import ANY, GONE, Step, case, fails, post, run

AUTH = "/apis/authorization.k8s.io/v1"


def review(kind: str, spec: str, expected: Any) -> Step:
    path = f"{AUTH}/namespaces/<ns>/localsubjectaccessreviews" if kind.startswith("Local") else f"{AUTH}/{kind.lower()}s"
    return post(path, f"{{apiVersion: authorization.k8s.io/v1, kind: {kind}, spec: {spec}}}", expected)


CASES = [
    case(
        "self_resource",
        review(
            "SelfSubjectAccessReview",
            "{resourceAttributes: {namespace: <ns>, verb: get, resource: pods}}",
            {
                "kind": "SelfSubjectAccessReview",
                "status.allowed": True,
                "spec": {"resourceAttributes": {"namespace": "<ns>", "verb": "get", "resource": "pods"}},
                "metadata.name": GONE,
            },
        ),
    ),
    case("self_path", review("SelfSubjectAccessReview", "{nonResourceAttributes: {path: /healthz, verb: get}}", {"status.allowed": True})),
    case(
        "self_subresource",
        review(
            "SelfSubjectAccessReview",
            "{resourceAttributes: {namespace: <ns>, verb: create, group: '', resource: pods, subresource: eviction}}",
            {"status.allowed": True},
        ),
    ),
    case(
        "self_empty",
        review(
            "SelfSubjectAccessReview",
            "{}",
            fails(
                422,
                "Invalid",
                '.authorization.k8s.io "" is invalid: spec.resourceAttributes: Invalid value: null: exactly one of nonResourceAttributes or resourceAttributes must be specified',
            ),
        ),
    ),
    case(
        "self_both",
        review(
            "SelfSubjectAccessReview",
            "{nonResourceAttributes: {path: /x, verb: get}, resourceAttributes: {verb: get, resource: pods}}",
            fails(
                422,
                "Invalid",
                '.authorization.k8s.io "" is invalid: spec.nonResourceAttributes: Invalid value: {"Path":"/x","Verb":"get"}: cannot be specified in combination with resourceAttributes',
            ),
        ),
    ),
    case(
        "self_rules",
        post(
            f"{AUTH}/selfsubjectrulesreviews",
            "{apiVersion: authorization.k8s.io/v1, kind: SelfSubjectRulesReview, spec: {namespace: default}}",
            {"kind": "SelfSubjectRulesReview", "status.resourceRules": ANY, "status.incomplete": False},
        ),
    ),
    case(
        "self_rules_without_namespace",
        post(
            f"{AUTH}/selfsubjectrulesreviews",
            "{apiVersion: authorization.k8s.io/v1, kind: SelfSubjectRulesReview, spec: {}}",
            fails(400, "BadRequest", "no namespace on request"),
        ),
    ),
    case(
        "who_am_i",
        post(
            "/apis/authentication.k8s.io/v1/selfsubjectreviews",
            "{apiVersion: authentication.k8s.io/v1, kind: SelfSubjectReview}",
            {"status.userInfo.username": "admin", "status.userInfo.groups": ["system:masters", "system:authenticated"]},
        ),
    ),
]


@pytest.mark.parametrize("steps", CASES)
async def test_a_review(api: Api, steps: tuple[Step, ...]) -> None:
    await run(api, steps)
