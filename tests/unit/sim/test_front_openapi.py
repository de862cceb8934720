"""OpenAPI documents, as far as kubectl reads them."""

import json
from typing import Any

import pytest

from sim.apiserver.builtin.registry import builtin_resources
from sim.apiserver.front.openapi import OpenApi
from sim.apiserver.requests import Answer, Request
from sim.apiserver.resources import Resource, Version
from sim.apiserver.schema.model import Schema
from sim.apiserver.status import StatusError

SOURCE: dict[str, Any] = {
    "type": "object",
    "description": "A thing.",
    "required": ["spec"],
    "properties": {
        "kind": {"type": "string"},
        "metadata": {"type": "object"},
        "spec": {
            "type": "object",
            "description": "What is wanted.",
            "properties": {"size": {"type": "integer", "description": "How big."}},
        },
    },
}
THINGS = Resource("x.y.io", "things", "Thing", (Version("v1", Schema(source=SOURCE)),), "v1", is_custom=True)
OPENAPI = OpenApi([*builtin_resources(), THINGS])


def get(path: str, query: dict[str, str] | None = None, accept: str = "application/json") -> Answer:
    answer = OPENAPI.answer(Request("GET", path, query or {}, accept=accept))
    assert answer is not None
    return answer


def document(place: str) -> Any:
    address = json.loads(get("/openapi/v3").body)["paths"][place]["serverRelativeURL"]
    path, _, digest = address.partition("?hash=")
    answer = get(path, {"hash": digest})
    assert (answer.status, answer.content_type) == (200, "application/json")
    assert answer.headers["ETag"] == f'"{digest}"'
    return json.loads(answer.body)


def references(value: Any) -> set[str]:
    if isinstance(value, dict):
        own = {value["$ref"]} if isinstance(value.get("$ref"), str) else set[str]()
        return own.union(*(references(inner) for inner in value.values()))
    return set[str]().union(*map(references, value)) if isinstance(value, list) else set()


PLACES = list(json.loads(get("/openapi/v3").body)["paths"])


@pytest.mark.parametrize("place", PLACES)
def test_every_document_is_closed_and_allows_server_side_validation(place: str) -> None:
    made = document(place)
    assert {f"#/components/schemas/{name}" for name in made["components"]["schemas"]} >= references(made)
    patches = [item["patch"] for item in made["paths"].values() if "patch" in item]
    for patch in patches:
        assert {"dryRun", "fieldManager", "fieldValidation", "force"} == {parameter["name"] for parameter in patch["parameters"]}
        assert patch["x-kubernetes-group-version-kind"]["version"] == place.split("/")[-1]


def test_built_in_and_custom_groups_are_listed() -> None:
    assert {"api/v1", "apis/apps/v1", "apis/autoscaling/v2", "apis/x.y.io/v1"} <= set(PLACES)


def test_built_in_kinds_take_strategic_patches_and_custom_ones_do_not() -> None:
    strategic = "application/strategic-merge-patch+json"
    pod = document("api/v1")["paths"]["/api/v1/namespaces/{namespace}/pods/{name}"]["patch"]
    thing = document("apis/x.y.io/v1")["paths"]["/apis/x.y.io/v1/namespaces/{namespace}/things/{name}"]["patch"]
    assert strategic in pod["requestBody"]["content"]
    assert strategic not in thing["requestBody"]["content"]
    assert "application/apply-patch+yaml" in thing["requestBody"]["content"]


def test_schemas_of_custom_resources_keep_descriptions_and_refer_to_common_metadata() -> None:
    schema = document("apis/x.y.io/v1")["components"]["schemas"]["io.y.x.v1.Thing"]
    assert schema["description"] == "A thing."
    assert schema["properties"]["spec"] == SOURCE["properties"]["spec"]
    assert references(schema["properties"]["metadata"]) == {"#/components/schemas/io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"}
    assert schema["x-kubernetes-group-version-kind"] == [{"group": "x.y.io", "kind": "Thing", "version": "v1"}]


def test_an_old_hash_leads_to_the_document_that_is() -> None:
    answer = get("/openapi/v3/api/v1", {"hash": "0"})
    assert answer.status == 301
    assert get(answer.headers["Location"].partition("?")[0]).status == 200


def test_what_is_not_served() -> None:
    assert get("/openapi/v3/apis/nope/v1").status == 404
    assert get("/openapi/v3/api/v1", accept="application/com.github.proto-openapi.spec.v3@v1.0+protobuf").status == 406
    assert OPENAPI.answer(Request("GET", "/api")) is None
    with pytest.raises(StatusError) as caught:
        OPENAPI.answer(Request("POST", "/openapi/v3"))
    assert caught.value.code == 405


def test_the_old_document_is_empty() -> None:
    assert json.loads(get("/openapi/v2").body)["paths"] == {}
    binary = get("/openapi/v2", accept="application/com.github.proto-openapi.spec.v2@v1.0+protobuf")
    assert binary.content_type == "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"
    assert binary.body == b"\n\x032.0\x12\x15\n\nKubernetes\x12\x07v1.36.3B\x00"
    assert get("/openapi/v2", accept="text/plain").status == 406


def test_the_hash_changes_with_the_schema() -> None:
    other = Resource("x.y.io", "things", "Thing", (Version("v1", Schema(source={"type": "object"})),), "v1", is_custom=True)
    answer = OpenApi([other]).answer(Request("GET", "/openapi/v3/apis/x.y.io/v1"))
    assert answer is not None
    assert answer.headers["ETag"] != get("/openapi/v3/apis/x.y.io/v1").headers["ETag"]
