"""Answers to unusual requests, as the real server was seen to give them where no other test asks."""

import asyncio
from random import Random
from typing import Any

import msgspec
import pytest

from controllers.runtime.clock import SystemClock
from sim.apiserver.bootstrap import bootstrap
from sim.apiserver.metadata import SUBDOMAIN_TEXT
from sim.apiserver.requests import Answer, Request
from sim.apiserver.server import ApiServer
from sim.apiserver.storage import Change

CONFIGMAPS = "/api/v1/namespaces/default/configmaps"
PODS = "/api/v1/namespaces/default/pods"
LEASES = "/apis/coordination.k8s.io/v1/namespaces/default/leases"
TABLE = "application/json;as=Table;g=meta.k8s.io;v=v1"
SCHEME = 'in scheme "pkg/runtime/scheme.go:111"'
NO_METHOD = "the server does not allow this method on the requested resource"
NO_RESOURCE = "the server could not find the requested resource"
TIME = (
    'Lease in version "v1" cannot be handled as a Lease: parsing time "{}" as "2006-01-02T15:04:05.000000Z07:00": cannot parse "{}" as "{}"'
)
MATCH = "resourceVersionMatch is forbidden unless resourceVersion is provided"
UNREAD = "the object provided is unrecognized (must be of type ConfigMap): couldn't get version/kind; json parse error: invalid character "


def answers(*requests: Request) -> list[Answer]:
    """What a new server answers, one after another."""

    async def ask() -> list[Answer]:
        server = ApiServer(SystemClock(), Random(1))  # noqa: S311 - reproducible
        await bootstrap(server)
        found: list[Answer] = []
        for request in requests:
            answer = await server.handle(request)
            assert isinstance(answer, Answer)
            found.append(answer)
        return found

    return asyncio.run(ask())


def ask(method: str, path: str, body: Any = None, *, accept: str = "", **query: str) -> Request:
    content = b"" if body is None else body if isinstance(body, bytes) else msgspec.json.encode(body)
    return Request(method, path, query, content, "application/json", accept)


def pod(env: Any, *sources: Any) -> Request:
    """A pod with a variable from somewhere and a projected volume."""
    container = {"name": "c", "image": "i", "env": [{"name": "e", "valueFrom": env}]}
    spec = {"containers": [container], "volumes": [{"name": "v", "projected": {"sources": sources}}]}
    return ask("POST", PODS, {"metadata": {"name": "z"}, "spec": spec})


def lease(renewed: str) -> Request:
    return ask("POST", LEASES, {"metadata": {"name": "l"}, "spec": {"renewTime": renewed}})


REFUSED: list[tuple[Request, int, str]] = [
    (
        ask("POST", CONFIGMAPS, {"kind": "PodList", "apiVersion": "v1"}),
        400,
        'PodList in version "v1" cannot be handled as a ConfigMap: converting (v1.PodList) to (core.ConfigMap): unknown conversion',
    ),
    (
        ask("POST", CONFIGMAPS, {"kind": "CustomResourceDefinition", "apiVersion": "apiextensions.k8s.io/v1"}),
        400,
        'CustomResourceDefinition in version "v1" cannot be handled as a ConfigMap: no kind "CustomResourceDefinition" is registered for '
        f'version "apiextensions.k8s.io/v1" {SCHEME}',
    ),
    (
        ask("POST", "/apis/autoscaling/v2/namespaces/default/horizontalpodautoscalers", {"apiVersion": "autoscaling/v1"}),
        400,
        "the API version in the data (autoscaling/v1) does not match the expected API version (autoscaling/v2)",
    ),
    (ask("DELETE", f"{CONFIGMAPS}/a", {"kind": "Foo"}), 400, f'no kind "Foo" is registered for version "meta.k8s.io/v1" {SCHEME}'),
    (ask("DELETE", f"{CONFIGMAPS}/a", {"apiVersion": "x/y/z"}), 400, "unexpected GroupVersion string: x/y/z"),
    (
        ask("DELETE", f"{CONFIGMAPS}/a", {"preconditions": []}),
        400,
        "json: cannot unmarshal array into Go struct field DeleteOptions.preconditions of type v1.Preconditions",
    ),
    (ask("POST", CONFIGMAPS, b'{"a":nul}'), 400, UNREAD + "'}' in literal null (expecting 'l') ({\"a\":nul})"),
    (ask("POST", CONFIGMAPS, b'{"a":"\\q"}'), 400, UNREAD + '\'q\' in string escape code ({"a":"\\q"})'),
    (lease("2024-01-01T00:00:00.123Z"), 400, TIME.format("2024-01-01T00:00:00.123Z", ".123Z", ".000000")),
    (lease("2024-01-01T00:00:00.1234567Z"), 400, TIME.format("2024-01-01T00:00:00.1234567Z", "7Z", "Z07:00")),
    (lease("2024-01-01 00:00:00.123456"), 400, TIME.format("2024-01-01 00:00:00.123456", " 00:00:00.123456", "T")),
    (
        ask("POST", f"{PODS}/p/binding", {"metadata": {"name": "p"}, "target": []}),
        400,
        'Binding in version "v1" cannot be handled as a Binding: json: cannot unmarshal array into Go struct field Binding.target of type '
        "v1.ObjectReference",
    ),
    (
        pod({"configMapKeyRef": {"name": "A", "key": "k"}}),
        422,
        f'Pod "z" is invalid: spec.containers[0].env[0].valueFrom.configMapKeyRef.name: Invalid value: "A": {SUBDOMAIN_TEXT}',
    ),
    (
        pod({"secretKeyRef": {"name": "a", "key": "k"}}, {"configMap": {}}, {"configMap": {"name": "a"}, "secret": {"name": "b"}}),
        422,
        'Pod "z" is invalid: [spec.volumes[0].projected.sources[0].configMap.name: Required value, '
        "spec.volumes[0].projected.sources[1]: Forbidden: may not specify more than 1 volume type per source]",
    ),
    (
        ask("DELETE", "/api/v1/namespaces/kube-node-lease", {"preconditions": {"uid": "x", "resourceVersion": "1"}}),
        409,
        'Operation cannot be fulfilled on namespaces "kube-node-lease": Precondition failed: UID in precondition: x, UID in object meta: ',
    ),
    (ask("GET", "/api/v1/namespaces/default/finalize"), 405, NO_METHOD),
    (ask("PATCH", "/api/v1/namespaces/default/finalize", {}), 405, NO_METHOD),
    (ask("POST", f"{PODS}/p/log", {}), 405, NO_METHOD),
    (ask("GET", f"{PODS}/p/log"), 404, 'pods "p" not found'),
    (ask("GET", "/api/v1/namespaces/default/bindings/b"), 404, NO_RESOURCE),
    (
        ask("GET", CONFIGMAPS, resourceVersionMatch="Foo"),
        422,
        f'ListOptions.meta.k8s.io "" is invalid: [resourceVersionMatch: Forbidden: {MATCH}, '
        'resourceVersionMatch: Unsupported value: "Foo": supported values: "Exact", "NotOlderThan", ""]',
    ),
    (
        ask("GET", f"{CONFIGMAPS}/kube-root-ca.crt", accept=TABLE, includeObject="Foo"),
        400,
        "Unable to convert to Table as requested: includeObject: Invalid value: \"Foo\": must be 'Metadata', 'Object', 'None', or empty",
    ),
]


@pytest.mark.parametrize(("request_", "status", "message"), REFUSED, ids=[f"{r.method} {r.path} {m[-40:]}" for r, _, m in REFUSED])
def test_what_is_refused(request_: Request, status: int, message: str) -> None:
    first = ask("POST", CONFIGMAPS, {"metadata": {"name": "kube-root-ca.crt"}})
    answer = answers(first, request_)[1]
    said: str = msgspec.json.decode(answer.body)["message"]
    # Identifiers are new each time.
    assert (answer.status, said[: len(message)] if message.endswith(": ") else said) == (status, message)


def test_a_failure_that_cannot_take_the_form_of_a_table_is_json() -> None:
    (answer,) = answers(ask("GET", f"{CONFIGMAPS}/nope", accept=TABLE))
    assert (answer.status, answer.content_type, msgspec.json.decode(answer.body)["reason"]) == (404, "application/json", "NotFound")


def test_owner_references_are_kept_once() -> None:
    owner = {"apiVersion": "v1", "kind": "P", "name": "a", "uid": "u1"}
    other = {**owner, "uid": "u2"}
    first = ask("POST", CONFIGMAPS, {"metadata": {"name": "a", "ownerReferences": [owner] * 3}})
    second = ask("PUT", f"{CONFIGMAPS}/a", {"metadata": {"name": "a", "ownerReferences": [owner, owner, other, other]}})
    made, changed = answers(first, second)
    assert msgspec.json.decode(made.body)["metadata"]["ownerReferences"] == [owner]
    assert made.headers["Warning"].endswith('duplicate UID(s) observed: u1, u1"')
    assert msgspec.json.decode(changed.body)["metadata"]["ownerReferences"] == [owner, other]
    assert changed.headers["Warning"].endswith('duplicate UID(s) observed: u1, u2"')


def test_a_pod_without_grace_says_so_before_it_goes() -> None:
    async def scenario() -> list[tuple[bool, Any]]:
        server = ApiServer(SystemClock(), Random(1))  # noqa: S311 - reproducible
        await bootstrap(server)
        seen: list[tuple[bool, Any]] = []
        pod = {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
        await server.handle(ask("POST", PODS, pod))

        def note(change: Change) -> None:
            entry = change.new or change.old
            assert entry is not None
            seen.append((change.new is None, entry.obj["metadata"].get("deletionGracePeriodSeconds")))

        server.subscribe(note)
        answer = await server.handle(ask("DELETE", f"{PODS}/p"))
        assert isinstance(answer, Answer)
        metadata = msgspec.json.decode(answer.body)["metadata"]
        assert (metadata["generation"], metadata["resourceVersion"]) == (2, str(server.storage.revision))
        return seen

    assert asyncio.run(scenario()) == [(False, 0), (True, 0)]


def test_optional_names_are_not_made_up() -> None:
    pod = {"metadata": {"name": "p"}, "spec": {"imagePullSecrets": [{}], "containers": [{"name": "c", "image": "i"}]}}
    (answer,) = answers(ask("POST", PODS, pod))
    assert msgspec.json.decode(answer.body)["spec"]["imagePullSecrets"] == [{}]
