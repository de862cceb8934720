"""What is refused of configurations of admission webhooks, in the words of the real server."""

from typing import Any

import pytest

from sim.apiserver.builtin.webhooks import webhook_errors
from sim.apiserver.objects import Object

RULE: Object = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"], "scope": "*"}
HOOK: Object = {
    "name": "a.b.c",
    "clientConfig": {"url": "https://x/y"},
    "sideEffects": "None",
    "admissionReviewVersions": ["v1"],
    "rules": [RULE],
    "failurePolicy": "Fail",
    "matchPolicy": "Equivalent",
    "namespaceSelector": {},
    "objectSelector": {},
    "timeoutSeconds": 10,
}
LABEL = (
    "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end with an "
    "alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')"
)
ONE = "clientConfig: Required value: exactly one of url or service is required"
FORM = "desired format: https://host[/path]"


def rule(**fields: Any) -> Object:
    return {"rules": [{**RULE, **fields}]}


def service(**fields: Any) -> Object:
    return {"clientConfig": {"service": {"name": "a", "namespace": "b", "port": 443, **fields}}}


def url(text: str) -> Object:
    return {"clientConfig": {"url": text}}


CASES: list[tuple[Object, list[str]]] = [
    ({}, []),
    ({"rules": []}, []),
    ({"admissionReviewVersions": ["v9", "v1"]}, []),
    (service(path="/x/y/"), []),
    ({"sideEffects": None}, ["sideEffects: Required value: must specify one of None, NoneOnDryRun"]),
    ({"sideEffects": "Some"}, ['sideEffects: Unsupported value: "Some": supported values: "None", "NoneOnDryRun"']),
    ({"admissionReviewVersions": []}, ["admissionReviewVersions: Required value: must specify one of v1, v1beta1"]),
    ({"admissionReviewVersions": ["v1", "v1"]}, ['admissionReviewVersions[1]: Invalid value: "v1": duplicate version']),
    (
        {"admissionReviewVersions": ["V_"]},
        [
            f'admissionReviewVersions[0]: Invalid value: "V_": {LABEL}',
            'admissionReviewVersions: Invalid value: ["V_"]: must include at least one of v1, v1beta1',
        ],
    ),
    ({"name": ""}, ["name: Required value"]),
    ({"name": "a.b"}, ['name: Invalid value: "a.b": should be a domain with at least three segments separated by dots']),
    ({"failurePolicy": "X"}, ['failurePolicy: Unsupported value: "X": supported values: "Fail", "Ignore"']),
    ({"reinvocationPolicy": "X"}, ['reinvocationPolicy: Unsupported value: "X": supported values: "IfNeeded", "Never"']),
    ({"timeoutSeconds": 31}, ["timeoutSeconds: Invalid value: 31: the timeout value must be between 1 and 30 seconds"]),
    ({"clientConfig": {}}, [ONE]),
    ({"clientConfig": {**url("https://x")["clientConfig"], **service()["clientConfig"]}}, [ONE]),
    (url("http://x"), [f"clientConfig.url: Invalid value: \"http\": 'https' is the only allowed URL scheme; {FORM}"]),
    (url("https://u@x"), ['clientConfig.url: Invalid value: "u": user information is not permitted in the URL']),
    (
        url("https://x?q=1#f"),
        [
            'clientConfig.url: Invalid value: "f": fragments are not permitted in the URL',
            'clientConfig.url: Invalid value: "q=1": query parameters are not permitted in the URL',
        ],
    ),
    (
        url("x"),
        [
            f"clientConfig.url: Invalid value: \"\": 'https' is the only allowed URL scheme; {FORM}",
            f'clientConfig.url: Invalid value: "": host must be specified; {FORM}',
        ],
    ),
    (service(name=""), ["clientConfig.service.name: Required value"]),
    (service(port=0), ["clientConfig.service.port: Invalid value: 0: port is not valid: must be between 1 and 65535, inclusive"]),
    (
        service(path="x"),
        [
            "clientConfig.service.path: Invalid value: \"x\": must start with a '/'",
            'clientConfig.service.path: Invalid value: "x": segment[0] may not be empty',
        ],
    ),
    (rule(resources=[]), ["rules[0].resources: Required value"]),
    (rule(resources=[""]), ["rules[0].resources[0]: Required value"]),
    (
        rule(resources=["*", "pods"]),
        ['rules[0].resources: Invalid value: ["*","pods"]: if \'*\' is present, must not specify other resources without subresources'],
    ),
    (
        rule(resources=["*/*", "pods"]),
        ['rules[0].resources: Invalid value: ["*/*","pods"]: if \'*/*\' is present, must not specify other resources'],
    ),
    (
        rule(resources=["pods/*", "pods/status"]),
        ["rules[0].resources[1]: Invalid value: \"pods/status\": if 'pods/*' is present, must not specify pods/status"],
    ),
    (rule(operations=[]), ["rules[0].operations: Required value"]),
    (
        rule(operations=["X"]),
        ['rules[0].operations[0]: Unsupported value: "X": supported values: "*", "CONNECT", "CREATE", "DELETE", "UPDATE"'],
    ),
    (
        rule(operations=["*", "CREATE"]),
        ['rules[0].operations: Invalid value: ["*","CREATE"]: if \'*\' is present, must not specify other operations'],
    ),
    (rule(apiGroups=[]), ["rules[0].apiGroups: Required value"]),
    (rule(apiGroups=["*", "a"]), ['rules[0].apiGroups: Invalid value: ["*","a"]: if \'*\' is present, must not specify other API groups']),
    (rule(apiVersions=[""]), ["rules[0].apiVersions[0]: Required value"]),
    (rule(scope="X"), ['rules[0].scope: Unsupported value: "X": supported values: "*", "Cluster", "Namespaced"']),
]


@pytest.mark.parametrize(("fields", "wanted"), CASES, ids=[str(fields)[:60] for fields, _ in CASES])
def test_what_is_refused(fields: Object, wanted: list[str]) -> None:
    found = webhook_errors({"webhooks": [{**HOOK, **fields}]})
    assert [str(error) for error in found] == [f"webhooks[0].{text}" for text in wanted]


def test_names_are_unique() -> None:
    assert [str(e) for e in webhook_errors({"webhooks": [HOOK, HOOK]})] == ['webhooks[1].name: Duplicate value: "a.b.c"']
