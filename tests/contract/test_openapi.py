"""OpenAPI v3: the index and documents."""

from typing import Any

from tests.contract.client import Api
from tests.contract.rows import serve


async def document(api: Api, path: str) -> Any:
    """The document that the index names for this path, or None."""
    index = (await api.request("GET", "/openapi/v3")).expect(200).body["paths"]
    if path not in index:
        return None
    where, _, query = index[path]["serverRelativeURL"].partition("?")
    assert where == f"/openapi/v3/{path}"
    assert query.startswith("hash=")
    return (await api.request("GET", where, query=query)).expect(200).body


async def schema(api: Api, path: str, name: str) -> Any:
    found = await document(api, path)
    return found and found["components"]["schemas"].get(name)


async def test_the_index_names_every_group(api: Api) -> None:
    await serve(api, "podcliques")
    await api.poll(lambda: document(api, "apis/grove.io/v1alpha1"))
    paths = (await api.request("GET", "/openapi/v3")).expect(200).body["paths"]
    assert {"api", "api/v1", "apis", "apis/apps", "apis/apps/v1", "apis/grove.io/v1alpha1", "version"} <= set(paths)


async def test_the_schema_of_a_clique(api: Api) -> None:
    await serve(api, "podcliques")
    clique = await api.poll(lambda: schema(api, "apis/grove.io/v1alpha1", "io.grove.v1alpha1.PodClique"))
    assert clique["type"] == "object"
    assert clique["required"] == ["spec"]
    assert clique["x-kubernetes-group-version-kind"] == [{"group": "grove.io", "kind": "PodClique", "version": "v1alpha1"}]
    assert clique["properties"]["metadata"]["allOf"] == [{"$ref": "#/components/schemas/io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"}]
    assert clique["properties"]["spec"]["properties"]["replicas"]["type"] == "integer"


async def test_the_schema_of_a_pod(api: Api) -> None:
    pod = await schema(api, "api/v1", "io.k8s.api.core.v1.Pod")
    assert pod["x-kubernetes-group-version-kind"] == [{"group": "", "kind": "Pod", "version": "v1"}]
    assert pod["properties"]["spec"]["allOf"] == [{"$ref": "#/components/schemas/io.k8s.api.core.v1.PodSpec"}]
    spec = await schema(api, "api/v1", "io.k8s.api.core.v1.PodSpec")
    containers = spec["properties"]["containers"]
    assert (containers["x-kubernetes-list-type"], containers["x-kubernetes-list-map-keys"]) == ("map", ["name"])
    assert (containers["x-kubernetes-patch-merge-key"], containers["x-kubernetes-patch-strategy"]) == ("name", "merge")


async def test_paths_of_a_document(api: Api) -> None:
    found = await document(api, "api/v1")
    assert found["openapi"] == "3.0.0"
    one = found["paths"]["/api/v1/namespaces/{namespace}/pods/{name}"]
    assert {"get", "put", "delete", "patch"} <= set(one)
    assert one["get"]["x-kubernetes-group-version-kind"] == {"group": "", "kind": "Pod", "version": "v1"}
    assert one["patch"]["x-kubernetes-action"] == "patch"


async def test_an_unknown_document_is_not_found(api: Api) -> None:
    (await api.request("GET", "/openapi/v3/apis/frob.example.com/v1")).expect(404)


async def test_a_document_that_did_not_change(api: Api) -> None:
    first = (await api.request("GET", "/openapi/v3/api/v1")).expect(200)
    again = await api.request("GET", "/openapi/v3/api/v1", headers={"If-None-Match": first.headers["etag"]})
    assert (again.status, again.raw) == (304, b"")
