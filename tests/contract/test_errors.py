"""Paths and methods that are not served, and how answers may look."""

import pytest
import yaml

from tests.contract.client import Api
from tests.contract.kinds import CONFIGMAPS, Kind, Obj, configmap, widget
from tests.contract.texts import MEDIA_TYPES, NO_METHOD, NO_RESOURCE

PLAIN = "404 page not found\n"
# {ns}: the test's namespace.
MISSING = [
    ("/api/v2", NO_RESOURCE),
    ("/api/v1/nopes", NO_RESOURCE),
    ("/api/v1/namespaces/{ns}/nopes", NO_RESOURCE),
    ("/api/v1/namespaces/{ns}/nodes", NO_RESOURCE),
    ("/api/v1/namespaces/{ns}/configmaps/a/status", NO_RESOURCE),
    ("/api/v1/namespaces/{ns}/pods/x/foo", NO_RESOURCE),
    ("/api/v1/nodes/x/y/z", NO_RESOURCE),
    ("/apis/apps/v9/deployments", NO_RESOURCE),
    ("/nope", PLAIN),
    ("//api/v1", PLAIN),
    ("/apis/nope.io/v1/things", PLAIN),
    ("/apis/contract.example.com/v9/widgets", PLAIN),
    ("/apis/contract.example.com/v1/namespaces/{ns}/gadgets", PLAIN),
    # The object is looked for before its subresource.
    ("/apis/contract.example.com/v1/namespaces/{ns}/widgets/x/foo", 'widgets.contract.example.com "x" not found'),
    ("/apis/contract.example.com/v1/namespaces/{ns}/widgets/x/scale", 'widgets.contract.example.com "x" not found'),
    ("/apis/contract.example.com/v1/widgets/x", PLAIN),
]


@pytest.mark.parametrize(("path", "message"), MISSING, ids=[path for path, _ in MISSING])
async def test_paths_that_are_not_served(api: Api, widgets: Kind, path: str, message: str) -> None:
    reply = await api.request("GET", path.format(ns=api.ns))
    if message == PLAIN:
        assert (reply.expect(404).text, reply.headers["content-type"]) == (PLAIN, "text/plain; charset=utf-8")
    else:
        reply.expect(404, "NotFound", message)


async def test_an_error_of_no_object_has_empty_details(api: Api) -> None:
    body = (await api.request("GET", "/api/v1/nopes")).expect(404).body
    assert body == {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": NO_RESOURCE,
        "reason": "NotFound",
        "details": {},
        "code": 404,
    }


METHODS = [
    ("PUT", "/api/v1/namespaces/{ns}/configmaps"),
    ("PATCH", "/api/v1/namespaces/{ns}/configmaps"),
    ("POST", "/api/v1/namespaces/{ns}/configmaps/a"),
    ("DELETE", "/api/v1/configmaps"),
    ("POST", "/api/v1/configmaps"),
    ("DELETE", "/api/v1/namespaces"),
    ("OPTIONS", "/api/v1/namespaces/{ns}/configmaps"),
    ("OPTIONS", "/api/v1/namespaces/{ns}/configmaps/a"),
    ("TRACE", "/api/v1/namespaces/{ns}/configmaps"),
    ("POST", "/api/v1"),
    ("PUT", "/apis/apps/v1"),
    ("GET", "/api/v1/namespaces/x/pods/y/binding"),
    ("PUT", "/api/v1/namespaces/x/pods/y/binding"),
    ("DELETE", "/apis/apps/v1/namespaces/x/deployments/y/scale"),
]


@pytest.mark.parametrize(("method", "path"), METHODS, ids=[" ".join(row) for row in METHODS])
async def test_methods_that_are_not_allowed(api: Api, method: str, path: str) -> None:
    body = {} if method in ("POST", "PUT", "PATCH") else None
    reply = await api.request(method, path.format(ns=api.ns), body)
    reply.expect(405, "MethodNotAllowed", NO_METHOD)
    assert reply.details == {}


@pytest.mark.parametrize("path", ["/api/v1/namespaces/{ns}/configmaps", "/api/v1/namespaces/{ns}/configmaps/a", "/api/v1"])
async def test_head(api: Api, path: str) -> None:
    reply = await api.request("HEAD", path.format(ns=api.ns))
    assert (reply.status, reply.raw) == (405, b"")


async def test_methods_of_custom_resources(api: Api, widgets: Kind) -> None:
    path = widgets.path(api.ns)
    (await api.request("PUT", path, widget("a"))).expect(400, "BadRequest", "name must be provided")
    reply = await api.request("OPTIONS", path)
    reply.expect(405, "MethodNotAllowed", ' is not supported on resources of kind "widgets.contract.example.com"')
    assert reply.details == {"group": "contract.example.com", "kind": "widgets"}
    # Without a namespace only reading is served.
    assert (await api.request("POST", widgets.path(), widget("a"))).expect(404).text == PLAIN
    assert (await api.request("DELETE", widgets.path())).expect(404).text == PLAIN


async def test_a_slash_at_the_end(api: Api) -> None:
    made = await api.made(CONFIGMAPS, configmap("a"))
    assert (await api.request("GET", CONFIGMAPS.path(api.ns) + "/")).expect(200).names == ["a"]
    assert (await api.request("GET", CONFIGMAPS.path(api.ns, "a") + "/")).expect(200).body == made


async def test_headers(api: Api) -> None:
    reply = await api.list(CONFIGMAPS)
    assert reply.headers["content-type"] == "application/json"
    assert reply.headers["cache-control"] == "no-cache, private"


async def test_health(api: Api) -> None:
    for path in ("/healthz", "/livez", "/readyz"):
        assert (await api.request("GET", path)).expect(200).text == "ok"


PARTIAL = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v={}"
PARTIAL_LIST = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
TABLE = "application/json;as=Table;g=meta.k8s.io;v=v1"
# Accept header: kind of the answer, and its media type.
ACCEPTED = [
    ("", "Widget", "application/json"),
    ("*/*", "Widget", "application/json"),
    ("application/*", "Widget", "application/json"),
    ("application/yaml", "Widget", "application/yaml"),
    ("application/xml, application/json;q=0.5", "Widget", "application/json"),
    ("application/yaml;q=0.2, application/json;q=0.9", "Widget", "application/json"),
    ("application/yaml;q=0.9, application/json;q=0.2", "Widget", "application/yaml"),
    ("application/vnd.kubernetes.protobuf, application/json", "Widget", "application/json"),
    (PARTIAL.format("v1"), "PartialObjectMetadata", "application/json"),
    (PARTIAL.format("v1beta1"), "PartialObjectMetadata", "application/json"),
    (TABLE, "Table", "application/json"),
    (f"{TABLE},application/json", "Table", "application/json"),
    (f"{PARTIAL.format('v9')},application/json", "Widget", "application/json"),
]


@pytest.mark.parametrize(("accept", "kind", "media_type"), ACCEPTED, ids=[row[0] or "none" for row in ACCEPTED])
async def test_accepted_forms(api: Api, widgets: Kind, accept: str, kind: str, media_type: str) -> None:
    await api.made(widgets, widget("a"))
    reply = (await api.get(widgets, "a", accept=accept)).expect(200)
    assert reply.headers["content-type"] == media_type
    assert yaml.safe_load(reply.text)["kind"] == kind


REFUSED = [PARTIAL.format("v9"), "application/json;as=Foo;g=meta.k8s.io;v=v1", "application/json;as=Table;g=x;v=v1"]
ONLY = f"only the following media types are accepted: {MEDIA_TYPES}"


@pytest.mark.parametrize("accept", REFUSED)
async def test_forms_that_nobody_has(api: Api, widgets: Kind, accept: str) -> None:
    await api.made(CONFIGMAPS, configmap("a"))
    await api.made(widgets, widget("a"))
    for kind in (CONFIGMAPS, widgets):
        (await api.get(kind, "a", accept=accept)).expect(406, "NotAcceptable", ONLY)


@pytest.mark.parametrize("accept", ["text/plain", "application/xml", "image/*"])
async def test_media_types_that_nobody_has(api: Api, widgets: Kind, accept: str) -> None:
    available = f"406: Not Acceptable\n\nAvailable representations: {MEDIA_TYPES}"
    (await api.get(CONFIGMAPS, "a", accept=accept)).expect(406, "NotAcceptable", available)
    streams = "application/json;stream=watch, application/vnd.kubernetes.protobuf;stream=watch"
    (await api.list(CONFIGMAPS, accept=accept)).expect(406, "NotAcceptable", f"{available}, {streams}")
    (await api.list(widgets, accept=accept)).expect(406, "NotAcceptable", ONLY)


async def test_custom_resources_have_no_protobuf(api: Api, widgets: Kind) -> None:
    await api.made(widgets, widget("a"))
    assert (await api.get(widgets, "a", accept="application/vnd.kubernetes.protobuf")).status == 406


async def test_metadata_of_an_object(api: Api) -> None:
    made = await api.made(CONFIGMAPS, configmap("a", labels={"l": "m"}))
    for version in ("v1", "v1beta1"):
        reply = (await api.get(CONFIGMAPS, "a", accept=PARTIAL.format(version))).expect(200)
        assert reply.body == {"kind": "PartialObjectMetadata", "apiVersion": f"meta.k8s.io/{version}", "metadata": made["metadata"]}


async def test_metadata_of_a_list(api: Api, widgets: Kind) -> None:
    for kind, obj in ((CONFIGMAPS, configmap), (widgets, widget)):
        made = [(await api.made(kind, obj(name)))["metadata"] for name in "ab"]
        first = (await api.list(kind, accept=PARTIAL_LIST, limit=1)).expect(200).body
        assert (first["kind"], first["apiVersion"]) == ("PartialObjectMetadataList", "meta.k8s.io/v1")
        assert first["metadata"]["remainingItemCount"] == 1
        whole = (await api.list(kind, accept=PARTIAL_LIST)).expect(200)
        expected: list[Obj] = [{"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": m} for m in made]
        assert whole.items == expected


async def test_lists_and_objects_are_not_each_other(api: Api) -> None:
    await api.made(CONFIGMAPS, configmap("a"))
    message = "you requested PartialObjectMetadata, but the requested object is a list (*core.ConfigMapList)"
    (await api.list(CONFIGMAPS, accept=PARTIAL.format("v1"))).expect(406, "NotAcceptable", message)
    message = "you requested PartialObjectMetadataList, but the requested object is not a list (*core.ConfigMap)"
    (await api.get(CONFIGMAPS, "a", accept=PARTIAL_LIST)).expect(406, "NotAcceptable", message)


async def test_forms_of_the_answers_to_writes(api: Api) -> None:
    reply = await api.request("POST", CONFIGMAPS.path(api.ns), configmap("a"), accept=PARTIAL.format("v1"))
    assert sorted(reply.expect(201).body) == ["apiVersion", "kind", "metadata"]
    reply = await api.request("DELETE", CONFIGMAPS.path(api.ns, "a"), accept="application/yaml")
    assert reply.expect(200).headers["content-type"] == "application/yaml"
    assert yaml.safe_load(reply.text)["status"] == "Success"


async def test_errors_take_the_form_that_was_asked_for(api: Api) -> None:
    reply = (await api.get(CONFIGMAPS, "nope", accept="application/yaml")).expect(404)
    assert reply.headers["content-type"] == "application/yaml"
    assert yaml.safe_load(reply.text)["message"] == 'configmaps "nope" not found'


async def test_yaml_of_an_object_says_the_same(api: Api) -> None:
    made = await api.made(CONFIGMAPS, configmap("a", data={"number": "1", "yes": "y", "text": "a: b\n# c\n", "empty": ""}))
    reply = await api.get(CONFIGMAPS, "a", accept="application/yaml")
    assert yaml.safe_load(reply.text) == made
