"""Bodies, Go types and built-in schemas."""

import gc
import json
import time
from pathlib import Path

import pytest
import yaml

from hack.kube.binaries import KUBE_VERSION
from sim.apiserver.schema import builtin
from sim.apiserver.schema.builtin import KUBERNETES, group_versions, raw_document, schema_of
from sim.apiserver.schema.check import decode_json, decode_yaml, fill_defaults, type_errors
from sim.apiserver.schema.yamls import load_yaml
from sim.apiserver.status import StatusError
from tests.calls import counting_calls


@pytest.mark.parametrize(
    ("body", "text"),
    [
        (b"{", "unexpected end of JSON input ({)"),
        (b"", "unexpected end of JSON input (<empty>)"),
        (b"x", "invalid character 'x' looking for beginning of value (78)"),
        (b'{"a":1,}', "invalid character '}' looking for beginning of object key string ({\"a\":1,})"),
        (b"- a\n", "invalid character ' ' in numeric literal (2d20610a)"),
        (b"\xff{}", "invalid character 'ÿ' looking for beginning of value (ff7b7d)"),
        (b'{"a":' * 10_001 + b"1" + b"}" * 10_001, 'invalid character \'{\' exceeded max depth ({"a":{"a":{"a":{"a":{"a":{"a": ...)'),
    ],
)
def test_malformed_json(body, text):
    with pytest.raises(StatusError) as caught:
        decode_json(body, "Pod")
    problem = f"couldn't get version/kind; json parse error: {text}"
    assert (caught.value.code, caught.value.message) == (400, f"the object provided is unrecognized (must be of type Pod): {problem}")


def test_duplicates():
    body = b'{"kind":"Pod","kind":"Pod","spec":{"foo":1,"foo":2,"c":[{"n":"a","i":"x","i":"y"}]}}'
    obj, found = decode_json(body)
    assert obj["spec"]["c"][0]["i"] == "y"
    assert found == ['duplicate field "kind"', 'duplicate field "spec.foo"', 'duplicate field "spec.c[0].i"']
    assert decode_json(b'{"a":{"x":1},"b":{"x":1}}')[1] == []


def test_yaml():
    obj, found = decode_yaml(b"a: 1\nb: 2020-01-01\na: yes\n---\nz: 1\n")
    assert obj == {"a": True, "b": "2020-01-01"}
    assert found == ['yaml: unmarshal errors:\n  line 3: key "a" already set in map']
    assert decode_yaml(b"") == ({}, [])


def test_yaml_alias_bomb():
    lines = ["a0: &a0 [x,x,x,x,x,x,x,x,x]", *(f"a{i}: &a{i} [{','.join([f'*a{i - 1}'] * 9)}]" for i in range(1, 9))]
    with pytest.raises(StatusError, match="excessive aliasing"):
        decode_yaml("\n".join(lines).encode())


@pytest.mark.parametrize(
    ("spec", "text"),
    [
        ("x", "json: cannot unmarshal string into Go struct field Pod.spec of type v1.PodSpec"),
        ({"containers": "x"}, "json: cannot unmarshal string into Go struct field PodSpec.spec.containers of type []v1.Container"),
        ({"containers": ["x"]}, "json: cannot unmarshal string into Go struct field PodSpec.spec.containers of type v1.Container"),
        ({"terminationGracePeriodSeconds": 1.0},
         "json: cannot unmarshal number 1.0 into Go struct field PodSpec.spec.terminationGracePeriodSeconds of type int64"),
        ({"nodeSelector": {"a": 1}}, "json: cannot unmarshal number into Go struct field PodSpec.spec.nodeSelector of type string"),
        ({"containers": [{"resources": {"requests": {"cpu": "x"}}}]},
         "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"),
        ({"containers": [{"livenessProbe": {"httpGet": {"port": True}}}]}, "json: cannot unmarshal bool into Go struct field "
         "HTTPGetAction.spec.containers.livenessProbe.ProbeHandler.httpGet.port of type int32"),
    ],
)  # fmt: skip
def test_types_of_pods(spec, text):
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "x"}, "spec": spec}
    assert type_errors(pod, schema_of("", "v1", "Pod"), "Pod", "v1") == f'Pod in version "v1" cannot be handled as a Pod: {text}'


def test_every_kind_compiles():
    for group_version in group_versions():
        group, _, version = group_version.rpartition("/")
        for node in raw_document(group, version).values():
            for kind in node.get("x-kubernetes-group-version-kind", ()):
                assert schema_of(group, version, kind["kind"]).type == "object"


def test_the_documents_are_those_of_the_version_that_the_server_names() -> None:
    folder = Path(builtin.__file__).parents[1]
    files = [*sorted((folder / "openapi").glob("*.json")), folder / "front" / "protobuf.json"]
    assert len(files) > 15
    assert {json.loads(file.read_bytes())["kubernetes"] for file in files} == {KUBERNETES} == {f"v{KUBE_VERSION}"}


def test_built_in_defaults():
    service = {"spec": {"ports": [{"port": 1}]}}
    fill_defaults(service, schema_of("", "v1", "Service"))
    assert service["spec"]["ports"][0]["protocol"] == "TCP"


def test_a_large_document_is_read_fast() -> None:
    def body(entries: int) -> bytes:
        return b"data:\n" + b"".join(b" a%d: b\n" % i for i in range(entries))

    def least_seconds(entries: int) -> float:
        document, took = body(entries), list[float]()
        for _ in range(3):
            began = time.process_time()
            load_yaml(document)
            took.append(time.process_time() - began)
        return min(took)

    with counting_calls() as calls:
        assert len(load_yaml(body(10_000)).value["data"]) == 10_000
    # It is 38 for each entry; a parser in Python alone makes 300.
    assert calls.count < 60 * 10_000
    # Ten times as much takes ten times as long: nothing is copied for each entry, which would make it a hundred times. Without the garbage
    # collector, which goes through everything that other tests left.
    gc.disable()
    try:
        assert least_seconds(20_000) < 40 * least_seconds(2_000)
    finally:
        gc.enable()


@pytest.mark.parametrize("body", [b"a: [" * 100_000, b"- " * 1_000_000 + b"a", b"a: &a [*a]"], ids=["flow", "block", "endless"])
def test_depth_has_an_end(body: bytes) -> None:
    with pytest.raises((yaml.YAMLError, RecursionError, ValueError)):
        load_yaml(body)
