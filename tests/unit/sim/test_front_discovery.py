"""Discovery documents against what kube-apiserver 1.36.3 answers for the same resources."""

import json
from typing import Any

import pytest

from sim.apiserver.front.discovery import Discovery, by_precedence
from sim.apiserver.requests import Request
from sim.apiserver.resources import Resource, Scale, Subresource, Version
from sim.apiserver.status import StatusError

AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
OLD_AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList"


SUBRESOURCES = {
    "eviction": Subresource("Eviction", ("create",), "policy", "v1"),
    "resize": Subresource("Pod", ("get", "patch", "update")),
}
PODS = Resource(
    "", "pods", "Pod", (Version("v1", has_status=True),), "v1", short_names=("po",), categories=("all",), subresources=SUBRESOURCES
)
NODES = Resource("", "nodes", "Node", (Version("v1", has_status=True),), "v1", is_namespaced=False)
HPAS = Resource("autoscaling", "horizontalpodautoscalers", "HorizontalPodAutoscaler", (Version("v1"), Version("v2")), "v2")
LEASES = Resource("coordination.k8s.io", "leases", "Lease", (Version("v1"),), "v1")
CLIQUES = Resource(
    "grove.io",
    "podcliques",
    "PodClique",
    (Version("v1alpha1", has_status=True, scale=Scale(".spec.replicas", ".status.replicas")), Version("v1alpha0", is_served=False)),
    "v1alpha1",
    short_names=("pclq",),
    is_custom=True,
)
DISCOVERY = Discovery([CLIQUES, LEASES, HPAS, PODS, NODES], "127.0.0.1:6443")


def get(path: str, accept: str = "") -> Any:
    answer = DISCOVERY.answer(Request("GET", path, accept=accept))
    assert answer is not None
    assert answer.status == 200
    return json.loads(answer.body)


def test_the_core_group_lists_versions_and_address() -> None:
    here = {"clientCIDR": "0.0.0.0/0", "serverAddress": "127.0.0.1:6443"}
    assert get("/api") == {"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": [here]}
    assert get("/api/") == get("/api")


def test_groups_come_in_the_order_of_the_real_server_with_custom_ones_last() -> None:
    groups = get("/apis")["groups"]
    assert [g["name"] for g in groups] == ["autoscaling", "coordination.k8s.io", "grove.io"]
    assert [v["version"] for v in groups[0]["versions"]] == ["v2", "v1"]
    assert groups[0]["preferredVersion"] == {"groupVersion": "autoscaling/v2", "version": "v2"}
    assert get("/apis/autoscaling") == {"kind": "APIGroup", "apiVersion": "v1", **groups[0]}


def test_resources_of_a_group_version_with_their_subresources() -> None:
    document = get("/api/v1")
    assert "apiVersion" not in document
    assert [r["name"] for r in document["resources"]] == [
        "nodes",
        "nodes/status",
        "pods",
        "pods/eviction",
        "pods/resize",
        "pods/status",
    ]
    eviction = next(r for r in document["resources"] if r["name"] == "pods/eviction")
    head = {"name": "pods/eviction", "singularName": "", "namespaced": True}
    assert eviction == {**head, "group": "policy", "version": "v1", "kind": "Eviction", "verbs": ["create"]}


def test_custom_resources_order_verbs_and_subresources_in_their_own_way() -> None:
    document = get("/apis/grove.io/v1alpha1")
    assert document["apiVersion"] == "v1"
    assert [r["name"] for r in document["resources"]] == ["podcliques", "podcliques/status", "podcliques/scale"]
    assert document["resources"][0]["verbs"] == ["delete", "deletecollection", "get", "list", "patch", "create", "update", "watch"]
    assert document["resources"][0]["singularName"] == "podclique"


def test_aggregated_discovery_names_its_content_type() -> None:
    answer = DISCOVERY.answer(Request("GET", "/apis", accept=f"{AGGREGATED},{OLD_AGGREGATED},application/json"))
    assert answer is not None
    assert answer.content_type == AGGREGATED
    document = json.loads(answer.body)
    assert document["apiVersion"] == "apidiscovery.k8s.io/v2"
    clique = document["items"][-1]["versions"][0]["resources"][0]
    assert clique["responseKind"] == {"group": "grove.io", "version": "v1alpha1", "kind": "PodClique"}
    assert clique["subresources"][1] == {
        "subresource": "scale",
        "responseKind": {"group": "autoscaling", "version": "v1", "kind": "Scale"},
        "verbs": ["get", "patch", "update"],
    }
    core = get("/api", AGGREGATED)["items"]
    assert [item["metadata"] for item in core] == [{}]
    assert [r["resource"] for r in core[0]["versions"][0]["resources"]] == ["nodes", "pods"]
    assert core[0]["versions"][0]["resources"][1]["responseKind"] == {"group": "", "version": "", "kind": "Pod"}


def test_the_aggregated_form_of_old_servers_is_refused() -> None:
    with pytest.raises(StatusError, match="only the following media types are accepted") as caught:
        DISCOVERY.answer(Request("GET", "/api", accept=OLD_AGGREGATED))
    assert caught.value.code == 406


def test_discovery_is_read_only() -> None:
    with pytest.raises(StatusError) as caught:
        DISCOVERY.answer(Request("POST", "/api/v1"))
    assert (caught.value.code, caught.value.reason) == (405, "MethodNotAllowed")


def test_other_paths_are_left_to_others() -> None:
    for path in ("/api/v1/pods", "/apis/grove.io/v1alpha0", "/apis/grove.io/v1alpha1/podcliques", "/api/v2", "/nope"):
        assert DISCOVERY.answer(Request("GET", path)) is None


@pytest.mark.parametrize("path", ["/api/v2", "/api/v1/nope", "/apis/apps/v9", "/apis/apps/v1/nope"])
def test_unknown_paths_of_built_in_groups_get_a_status(path: str) -> None:
    with pytest.raises(StatusError) as caught:
        DISCOVERY.missing(path)
    assert (caught.value.code, caught.value.message) == (404, "the server could not find the requested resource")


@pytest.mark.parametrize(
    "path", ["/nope", "/apis/nope.io", "/apis/nope.io/v1", "/apis/grove.io/v9", "/apis/grove.io/v1alpha1/things", "//api"]
)
def test_other_unknown_paths_get_a_page(path: str) -> None:
    answer = DISCOVERY.missing(path)
    assert (answer.status, answer.body) == (404, b"404 page not found\n")
    assert answer.content_type == "text/plain; charset=utf-8"


def test_health_and_version() -> None:
    for name in ("healthz", "livez", "readyz"):
        answer = DISCOVERY.answer(Request("GET", f"/{name}", accept="application/json"))
        assert answer is not None
        assert (answer.body, answer.content_type) == (b"ok", "text/plain; charset=utf-8")
        verbose = DISCOVERY.answer(Request("GET", f"/{name}", {"verbose": ""}))
        assert verbose is not None
        assert verbose.body.endswith(f"{name} check passed\n".encode())
    assert get("/version")["gitVersion"].startswith("v1.36.3+")
    unknown = DISCOVERY.answer(Request("GET", "/readyz/nope"))
    assert unknown is not None
    assert unknown.status == 404


def test_versions_are_ordered_by_stability_and_number() -> None:
    names = ["v1alpha1", "foo", "v2beta1", "v1", "v11", "v1beta2", "v2", "v1beta10"]
    assert by_precedence(names) == ["v11", "v2", "v1", "v2beta1", "v1beta10", "v1beta2", "v1alpha1", "foo"]
