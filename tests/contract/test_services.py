"""Services: defaults, addresses, what may not change."""
# ruff: noqa: E501 - messages of the server stand whole, to be found by searching.

import re
from typing import Any

import pytest

from tests.contract.client import Api
from tests.contract.rows import ANY, GONE, Step, case, delete, fails, get, patch, post, put, run

SERVICE = post("services/s", "{spec: {selector: {a: b}, ports: [{port: 80}]}}")
ADDRESS = re.compile(r"10\.(9[6-9]|1[01]\d)\.\d+\.\d+")


def made(name: str, spec: str, expected: Any) -> Any:
    return case(name, post("services/s", f"{{spec: {spec}}}", expected))


def changed(name: str, change: str, expected: Any) -> Any:
    return case(name, SERVICE, patch("merge", "services/s", change, expected))


CASES = [
    made(
        "defaults",
        "{ports: [{port: 80}], selector: {a: b}}",
        {
            "spec.type": "ClusterIP",
            "spec.clusterIP": ADDRESS,
            "spec.clusterIPs.#": 1,
            "spec.ports": [{"protocol": "TCP", "port": 80, "targetPort": 80}],
            "spec.sessionAffinity": "None",
            "spec.ipFamilies": ["IPv4"],
            "spec.ipFamilyPolicy": "SingleStack",
            "spec.internalTrafficPolicy": "Cluster",
            "status": {"loadBalancer": {}},
            "metadata.generation": GONE,
        },
    ),
    made(
        "headless",
        "{clusterIP: None, selector: {a: b}}",
        {
            "spec.clusterIP": "None",
            "spec.clusterIPs": ["None"],
            "spec.ports": GONE,
            "spec.ipFamilies": ["IPv4"],
            "spec.ipFamilyPolicy": "SingleStack",
        },
    ),
    made(
        "headless_without_selector",
        "{clusterIP: None}",
        {
            "spec": {
                "clusterIP": "None",
                "clusterIPs": ["None"],
                "type": "ClusterIP",
                "sessionAffinity": "None",
                "ipFamilies": ["IPv4", "IPv6"],
                "ipFamilyPolicy": "RequireDualStack",
                "internalTrafficPolicy": "Cluster",
            }
        },
    ),
    made(
        "headless_unready", "{clusterIP: None, selector: {a: b}, publishNotReadyAddresses: true}", {"spec.publishNotReadyAddresses": True}
    ),
    made(
        "target_port_name",
        "{ports: [{port: 80, targetPort: web, name: x, protocol: UDP, appProtocol: http}]}",
        {"spec.ports": [{"name": "x", "protocol": "UDP", "appProtocol": "http", "port": 80, "targetPort": "web"}]},
    ),
    made("no_ports", "{selector: {a: b}}", fails(422, "Invalid", 'Service "s" is invalid: spec.ports: Required value')),
    made(
        "two_unnamed_ports",
        "{ports: [{port: 80}, {port: 81}]}",
        fails(422, "Invalid", 'Service "s" is invalid: [spec.ports[0].name: Required value, spec.ports[1].name: Required value]'),
    ),
    made(
        "port_twice",
        "{ports: [{name: a, port: 80}, {name: b, port: 80}]}",
        fails(
            422,
            "Invalid",
            'Service "s" is invalid: spec.ports[1]: Duplicate value: {"Name":"","Protocol":"TCP","AppProtocol":null,"Port":80,"TargetPort":0,"NodePort":0}',
        ),
    ),
    made(
        "name_twice",
        "{ports: [{name: a, port: 80}, {name: a, port: 81}]}",
        fails(422, "Invalid", 'Service "s" is invalid: spec.ports[1].name: Duplicate value: "a"'),
    ),
    made(
        "port_range",
        "{ports: [{port: 0}]}",
        fails(
            422,
            "Invalid",
            'Service "s" is invalid: [spec.ports[0].port: Invalid value: 0: must be between 1 and 65535, inclusive, spec.ports[0].targetPort: Invalid value: 0: must be between 1 and 65535, inclusive]',
        ),
    ),
    made(
        "protocol",
        "{ports: [{port: 80, protocol: FROB}]}",
        fails(
            422,
            "Invalid",
            'Service "s" is invalid: spec.ports[0].protocol: Unsupported value: "FROB": supported values: "SCTP", "TCP", "UDP"',
        ),
    ),
    made(
        "type",
        "{type: Frob, ports: [{port: 80}]}",
        fails(
            422,
            "Invalid",
            'Service "s" is invalid: spec.type: Unsupported value: "Frob": supported values: "ClusterIP", "ExternalName", "LoadBalancer", "NodePort"',
        ),
    ),
    made(
        "external_name",
        "{type: ExternalName, externalName: x.example.com}",
        {"spec": {"type": "ExternalName", "sessionAffinity": "None", "externalName": "x.example.com"}},
    ),
    made(
        "external_name_missing", "{type: ExternalName}", fails(422, "Invalid", 'Service "s" is invalid: spec.externalName: Required value')
    ),
    made(
        "node_port",
        "{type: NodePort, ports: [{port: 80}]}",
        {"spec.type": "NodePort", "spec.externalTrafficPolicy": "Cluster", "spec.ports.0.nodePort": ANY},
    ),
    made(
        "address_outside",
        "{clusterIP: 1.2.3.4, ports: [{port: 80}]}",
        fails(
            422,
            "Invalid",
            'Service "s" is invalid: spec.clusterIPs: Invalid value: ["1.2.3.4"]: failed to allocate IP 1.2.3.4: the provided network does not match the current range',
        ),
    ),
    made(
        "address_bad",
        "{clusterIP: frob, ports: [{port: 80}]}",
        fails(
            422,
            "Invalid",
            'Service "s" is invalid: spec.clusterIPs[0]: Invalid value: "frob": must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)',
        ),
    ),
    made(
        "affinity",
        "{sessionAffinity: ClientIP, ports: [{port: 80}]}",
        {"spec.sessionAffinityConfig": {"clientIP": {"timeoutSeconds": 10800}}},
    ),
    made(
        "selector_value",
        "{selector: {a: 'b c'}, ports: [{port: 80}]}",
        fails(
            422,
            "Invalid",
            "Service \"s\" is invalid: spec.selector: Invalid value: \"b c\": a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')",
        ),
    ),
    case("name", post("services/1s", "{spec: {ports: [{port: 80}]}}", {"@": 201, "message": GONE})),
    case(
        "long_name",
        post(
            "services/" + "s" * 64,
            "{spec: {ports: [{port: 80}]}}",
            {
                "@": 422,
                "reason": "Invalid",
                "message": 'Service "ssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssss" is invalid: metadata.name: Invalid value: "ssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssss": must be no more than 63 characters',
            },
        ),
    ),
    changed(
        "ports",
        "{spec: {ports: [{port: 81}]}}",
        {"spec.ports": [{"protocol": "TCP", "port": 81, "targetPort": 81}], "metadata.generation": GONE},
    ),
    changed("selector", "{spec: {selector: {c: d}}}", {"spec.selector": {"a": "b", "c": "d"}}),
    changed("address_removed", "{spec: {clusterIP: null}}", {"@": 200, "message": GONE, "spec.clusterIP": "<0.spec.clusterIP>"}),
    changed(
        "address_changed",
        "{spec: {clusterIP: 10.96.200.200}}",
        {"@": 422, "reason": "Invalid", "@causes": [("spec.clusterIPs[0]", "FieldValueInvalid")]},
    ),
    changed(
        "to_headless",
        "{spec: {clusterIP: None}}",
        {"@": 422, "reason": "Invalid", "@causes": [("spec.clusterIPs[0]", "FieldValueInvalid")]},
    ),
    changed("to_external_name", "{spec: {type: ExternalName, externalName: x.y}}", {"spec.type": "ExternalName", "spec.clusterIP": GONE}),
    changed("publish_not_ready", "{spec: {publishNotReadyAddresses: true}}", {"spec.publishNotReadyAddresses": True}),
    case(
        "put_without_address",
        SERVICE,
        put(
            "services/s",
            "{metadata: {resourceVersion: '<0.metadata.resourceVersion>'}, spec: {selector: {z: b}, ports: [{port: 80}]}}",
            {"spec.clusterIP": ADDRESS, "spec.selector": {"z": "b"}},
        ),
    ),
    case(
        "put_without_version",
        SERVICE,
        put("services/s", "{spec: {selector: {z: b}, ports: [{port: 80}]}}", {"@": 200, "message": GONE, "reason": GONE}),
    ),
    case(
        "deleted",
        SERVICE,
        delete("services/s", None, {"kind": "Service", "status": {"loadBalancer": {}}}),
        get("services/s", fails(404, "NotFound")),
    ),
    case(
        "default_service",
        get(
            "/api/v1/namespaces/default/services/kubernetes",
            {"spec.clusterIP": "10.96.0.1", "metadata.labels": {"component": "apiserver", "provider": "kubernetes"}},
        ),
    ),
]


@pytest.mark.parametrize("steps", CASES)
async def test_a_service(api: Api, steps: tuple[Step, ...]) -> None:
    await run(api, steps)
