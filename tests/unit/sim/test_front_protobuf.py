"""Protobuf bodies; the messages are put together here by hand."""

import base64
import json

import pytest

from sim.apiserver.front.protobuf import json_of
from sim.apiserver.status import StatusError


def field(number: int, value: bytes | int | str) -> bytes:
    if isinstance(value, int):
        return varint(number << 3) + varint(value & (1 << 64) - 1)
    data = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(data)) + data


def varint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes((*out, value))


def body(api_version: str, kind: str, message: bytes) -> bytes:
    return b"k8s\x00" + field(1, field(1, api_version) + field(2, kind)) + field(2, message) + field(3, "") + field(4, "")


def test_namespaces_as_kubectl_creates_them() -> None:
    # Zeros of plain fields travel, and are none of JSON's business: generateName, namespace, an empty creationTimestamp.
    meta = field(1, "a") + field(2, "") + field(3, "") + field(7, 0) + field(8, b"")
    sent = body("v1", "Namespace", field(1, meta) + field(2, b"") + field(3, field(1, "")))
    assert json.loads(json_of(sent)) == {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "a"}, "spec": {}, "status": {}}


def test_pods_with_inline_fields_maps_quantities_and_times() -> None:
    labels = field(11, field(1, "app") + field(2, "x"))
    began = field(8, field(1, 1767323045) + field(2, 0))
    container = (
        field(1, "c")
        + field(2, "i")
        + field(3, "run")
        + field(6, field(1, "") + field(2, 0) + field(3, 80))
        + field(8, field(1, field(1, "cpu") + field(2, field(1, "500m"))))
        + field(10, field(1, field(2, field(1, "/") + field(2, field(1, 0) + field(2, 8080) + field(3, "")))) + field(2, 0))
    )
    volume = field(1, "v") + field(2, field(19, field(1, field(1, "cm"))))
    spec = field(1, volume) + field(2, container) + field(4, 0) + field(25, -5)
    sent = body("v1", "Pod", field(1, field(1, "p") + labels + began) + field(2, spec))
    made = json.loads(json_of(sent))
    assert made["metadata"] == {"name": "p", "labels": {"app": "x"}, "creationTimestamp": "2026-01-02T03:04:05Z"}
    assert made["spec"] == {
        "volumes": [{"name": "v", "configMap": {"name": "cm"}}],
        "containers": [
            {
                "name": "c",
                "image": "i",
                "command": ["run"],
                "ports": [{"containerPort": 80}],
                "resources": {"limits": {"cpu": "500m"}},
                "livenessProbe": {"httpGet": {"path": "/", "port": 8080}},
            }
        ],
        # A pointer to zero says something.
        "terminationGracePeriodSeconds": 0,
        "priority": -5,
    }


def test_groups_options_bytes_and_ports_by_name() -> None:
    secret = body("v1", "Secret", field(1, field(1, "s")) + field(2, field(1, "k") + field(2, b"\x00\xff")))
    assert json.loads(json_of(secret))["data"] == {"k": base64.b64encode(b"\x00\xff").decode()}
    options = body("policy/v1", "DeleteOptions", field(1, 0) + field(4, "Foreground") + field(5, "All"))
    assert json.loads(json_of(options)) == {
        "apiVersion": "policy/v1",
        "kind": "DeleteOptions",
        "gracePeriodSeconds": 0,
        "propagationPolicy": "Foreground",
        "dryRun": ["All"],
    }
    role = body(
        "rbac.authorization.k8s.io/v1", "Role", field(1, field(1, "r")) + field(2, field(1, "get") + field(2, "") + field(3, "pods"))
    )
    assert json.loads(json_of(role))["rules"] == [{"verbs": ["get"], "apiGroups": [""], "resources": ["pods"]}]
    budget = body("policy/v1", "PodDisruptionBudget", field(2, field(1, field(1, 1) + field(2, 0) + field(3, "50%"))))
    assert json.loads(json_of(budget))["spec"] == {"minAvailable": "50%"}


@pytest.mark.parametrize(
    ("sent", "message"),
    [
        (b"{}", "does not appear to be a protobuf message"),
        (b"k8s\x00\x0a\x05x", "cannot be read"),
        (b"k8s\x00\xff", "cannot be read"),
        (body("v1", "Thing", b""), "no protobuf form is known of core/v1.Thing"),
        (body("v1", "Pod", b"\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"), "cannot be read"),
        (body("v1", "Pod", field(1, 7)), "cannot be read"),
    ],
)
def test_broken_messages_are_refused(sent: bytes, message: str) -> None:
    with pytest.raises(StatusError, match=message) as caught:
        json_of(sent)
    assert caught.value.code == 400
