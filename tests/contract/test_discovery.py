"""Discovery documents."""

import re
from typing import Any

import pytest

from tests.contract.client import Api, Reply
from tests.contract.rows import Step, case, get, run, serve

V2 = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"

CASES = [
    case("core_versions", get("/api", {"kind": "APIVersions", "versions": ["v1"]})),
    case("core", get("/api/v1", {"kind": "APIResourceList", "groupVersion": "v1"})),
    case(
        "apps_group",
        get(
            "/apis/apps",
            {
                "kind": "APIGroup",
                "apiVersion": "v1",
                "name": "apps",
                "versions": [{"groupVersion": "apps/v1", "version": "v1"}],
                "preferredVersion": {"groupVersion": "apps/v1", "version": "v1"},
            },
        ),
    ),
    case("groups", get("/apis", {"kind": "APIGroupList", "apiVersion": "v1"})),
    case("version", get("/version", {"major": "1", "minor": "36", "gitVersion": re.compile(r"v1\.36\.3.*")})),
    case(
        "autoscaling", get("/apis/autoscaling", {"preferredVersion": {"groupVersion": "autoscaling/v2", "version": "v2"}, "versions.#": 2})
    ),
]


@pytest.mark.parametrize("steps", CASES)
async def test_a_document(api: Api, steps: tuple[Step, ...]) -> None:
    await run(api, steps)


def named(reply: Reply, name: str) -> Any:
    """The resource of an APIResourceList, without the hash of its storage version, which differs between servers."""
    [found] = [r for r in reply.expect(200).body["resources"] if r["name"] == name]
    return {k: v for k, v in found.items() if k != "storageVersionHash"}


ALL = ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"]
RESOURCES: list[tuple[str, dict[str, Any]]] = [
    (
        "/api/v1",
        {
            "name": "pods",
            "singularName": "pod",
            "namespaced": True,
            "kind": "Pod",
            "verbs": ALL,
            "shortNames": ["po"],
            "categories": ["all"],
        },
    ),
    ("/api/v1", {"name": "pods/status", "singularName": "", "namespaced": True, "kind": "Pod", "verbs": ["get", "patch", "update"]}),
    ("/api/v1", {"name": "pods/binding", "singularName": "", "namespaced": True, "kind": "Binding", "verbs": ["create"]}),
    (
        "/api/v1",
        {
            "name": "pods/eviction",
            "singularName": "",
            "namespaced": True,
            "group": "policy",
            "version": "v1",
            "kind": "Eviction",
            "verbs": ["create"],
        },
    ),
    ("/api/v1", {"name": "nodes", "singularName": "node", "namespaced": False, "kind": "Node", "verbs": ALL, "shortNames": ["no"]}),
    (
        "/api/v1",
        {
            "name": "namespaces",
            "singularName": "namespace",
            "namespaced": False,
            "kind": "Namespace",
            "verbs": ["create", "delete", "get", "list", "patch", "update", "watch"],
            "shortNames": ["ns"],
        },
    ),
    (
        "/api/v1",
        {"name": "configmaps", "singularName": "configmap", "namespaced": True, "kind": "ConfigMap", "verbs": ALL, "shortNames": ["cm"]},
    ),
    (
        "/apis/apps/v1",
        {
            "name": "deployments",
            "singularName": "deployment",
            "namespaced": True,
            "kind": "Deployment",
            "verbs": ALL,
            "shortNames": ["deploy"],
            "categories": ["all"],
        },
    ),
    (
        "/apis/apps/v1",
        {
            "name": "deployments/scale",
            "singularName": "",
            "namespaced": True,
            "group": "autoscaling",
            "version": "v1",
            "kind": "Scale",
            "verbs": ["get", "patch", "update"],
        },
    ),
    (
        "/apis/grove.io/v1alpha1",
        {
            "name": "podcliques",
            "singularName": "podclique",
            "namespaced": True,
            "kind": "PodClique",
            "verbs": ["delete", "deletecollection", "get", "list", "patch", "create", "update", "watch"],
            "shortNames": ["pclq"],
            "categories": ["grovekeeper"],
        },
    ),
    (
        "/apis/grove.io/v1alpha1",
        {"name": "podcliques/status", "singularName": "", "namespaced": True, "kind": "PodClique", "verbs": ["get", "patch", "update"]},
    ),
    (
        "/apis/grove.io/v1alpha1",
        {
            "name": "podcliques/scale",
            "singularName": "",
            "namespaced": True,
            "group": "autoscaling",
            "version": "v1",
            "kind": "Scale",
            "verbs": ["get", "patch", "update"],
        },
    ),
]


@pytest.mark.parametrize(("path", "resource"), RESOURCES, ids=[str(r["name"]).replace("/", "_") for _, r in RESOURCES])
async def test_a_resource(api: Api, path: str, resource: dict[str, Any]) -> None:
    await serve(api, "podcliques")
    # Discovery of custom kinds follows a little later.
    await api.poll(lambda: exists(api, path))
    assert named(await api.request("GET", path), resource["name"]) == resource


async def exists(api: Api, path: str) -> bool:
    return (await api.request("GET", path)).status == 200


async def test_groups_of_this_project_are_listed(api: Api) -> None:
    await serve(api, "podcliques", "podgangs")
    await api.poll(lambda: exists(api, "/apis/grove.io"))
    await api.poll(lambda: exists(api, "/apis/scheduler.grove.io"))
    groups = {g["name"]: g for g in (await api.request("GET", "/apis")).expect(200).body["groups"]}
    version = {"groupVersion": "grove.io/v1alpha1", "version": "v1alpha1"}
    assert groups["grove.io"] == {"name": "grove.io", "versions": [version], "preferredVersion": version}
    assert "scheduler.grove.io" in groups
    assert "" not in groups


async def test_an_unknown_group_is_not_found(api: Api) -> None:
    assert (await api.request("GET", "/apis/frob.example.com")).expect(404).text == "404 page not found\n"
    unknown = await api.request("GET", "/apis/apps/v9")
    unknown.expect(404, "NotFound", "the server could not find the requested resource")


async def test_aggregated_discovery(api: Api) -> None:
    await serve(api, "podcliques")

    async def grove() -> Any:
        reply = (await api.request("GET", "/apis", accept=V2)).expect(200)
        assert reply.headers["content-type"] == V2
        assert (reply.body["kind"], reply.body["apiVersion"]) == ("APIGroupDiscoveryList", "apidiscovery.k8s.io/v2")
        found = {g["metadata"]["name"]: g for g in reply.items}.get("grove.io")
        return found and next((r for r in found["versions"][0]["resources"] if r["resource"] == "podcliques"), None)

    resource = await api.poll(grove)
    assert resource == {
        "resource": "podcliques",
        "responseKind": {"group": "grove.io", "version": "v1alpha1", "kind": "PodClique"},
        "scope": "Namespaced",
        "singularResource": "podclique",
        "verbs": ["delete", "deletecollection", "get", "list", "patch", "create", "update", "watch"],
        "shortNames": ["pclq"],
        "categories": ["grovekeeper"],
        "subresources": [
            {
                "subresource": "status",
                "responseKind": {"group": "grove.io", "version": "v1alpha1", "kind": "PodClique"},
                "verbs": ["get", "patch", "update"],
            },
            {
                "subresource": "scale",
                "responseKind": {"group": "autoscaling", "version": "v1", "kind": "Scale"},
                "verbs": ["get", "patch", "update"],
            },
        ],
    }


async def test_aggregated_discovery_of_the_core_group(api: Api) -> None:
    reply = (await api.request("GET", "/api", accept=V2)).expect(200)
    [core] = reply.items
    assert core["metadata"].get("name", "") == ""
    pods = next(r for r in core["versions"][0]["resources"] if r["resource"] == "pods")
    assert pods["responseKind"] == {"group": "", "version": "", "kind": "Pod"}
    assert {"status", "binding", "eviction"} <= {s["subresource"] for s in pods["subresources"]}
