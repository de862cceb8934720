"""Names, namespaces and the fields of metadata that the server looks after."""

import re
from typing import Any

import pytest

from tests.contract.client import Api
from tests.contract.kinds import CONFIGMAPS, NAMESPACES, PODS, ROLES, SECRETS, SERVICES, WIDGETS, Kind, Obj, configmap, pod, service, widget
from tests.contract.texts import LABEL_VALUE, QUALIFIED, SUBDOMAIN

WRONG_NAMESPACE = "the namespace of the provided object does not match the namespace sent on the request"
BUILDERS = {CONFIGMAPS: configmap, PODS: pod, SERVICES: service, WIDGETS: widget}


def with_meta(name: str, **meta: Any) -> Obj:
    return {**configmap(), "metadata": {"name": name, **meta}}


async def test_generate_name(api: Api) -> None:
    names = {(await api.made(CONFIGMAPS, configmap(generateName="gen-")))["metadata"]["name"] for _ in range(3)}
    assert len(names) == 3
    # No vowels, and no digits that look like letters.
    assert all(re.fullmatch(r"gen-[bcdfghjklmnpqrstvwxz2456789]{5}", name) for name in names)
    made = await api.made(CONFIGMAPS, configmap("named", generateName="gen-"))
    assert (made["metadata"]["name"], made["metadata"]["generateName"]) == ("named", "gen-")


async def test_a_long_generate_name_is_cut(api: Api) -> None:
    made = await api.made(CONFIGMAPS, configmap(generateName="g" * 70 + "-"))
    assert re.fullmatch("g{58}[a-z0-9]{5}", made["metadata"]["name"])
    assert made["metadata"]["generateName"] == "g" * 70 + "-"


@pytest.mark.parametrize("metadata", [{}, {"name": ""}, {"generateName": ""}], ids=["none", "empty name", "empty generateName"])
async def test_a_name_is_required(api: Api, metadata: Obj) -> None:
    reply = await api.create(CONFIGMAPS, {**configmap(), "metadata": metadata})
    why = "metadata.name: Required value: name or generateName is required"
    reply.expect(422, "Invalid", f'ConfigMap "" is invalid: {why}')
    assert reply.details == {
        "kind": "ConfigMap",
        "causes": [
            {"reason": "FieldValueRequired", "message": "Required value: name or generateName is required", "field": "metadata.name"}
        ],
    }


async def test_namespace_of_the_body_must_be_that_of_the_path(api: Api) -> None:
    (await api.create(CONFIGMAPS, configmap("a", namespace="other"))).expect(400, "BadRequest", WRONG_NAMESPACE)
    await api.made(CONFIGMAPS, configmap("a", namespace=api.ns))
    (await api.update(CONFIGMAPS, configmap("a", namespace="other"))).expect(400, "BadRequest", WRONG_NAMESPACE)
    (await api.patch(CONFIGMAPS, "a", {"metadata": {"namespace": "other"}})).expect(400, "BadRequest", WRONG_NAMESPACE)


async def test_resource_version_must_not_be_set_on_create(api: Api, widgets: Kind) -> None:
    for kind, obj in ((CONFIGMAPS, configmap()), (widgets, widget())):
        reply = await api.create(kind, {**obj, "metadata": {"name": "a", "resourceVersion": "5"}})
        reply.expect(500, "", "resourceVersion should not be set on objects to be created")


async def test_what_the_server_sets_cannot_be_sent(api: Api) -> None:
    sent = {"uid": "mine", "creationTimestamp": "2001-02-03T04:05:06Z", "deletionTimestamp": "2001-02-03T04:05:06Z"}
    made = await api.made(CONFIGMAPS, with_meta("a", **sent, deletionGracePeriodSeconds=5, selfLink="/x"))
    meta = made["metadata"]
    assert re.fullmatch("[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", meta["uid"])
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", meta["creationTimestamp"])
    assert not meta["creationTimestamp"].startswith("2001")
    assert sorted(meta) == ["creationTimestamp", "managedFields", "name", "namespace", "resourceVersion", "uid"]


async def test_generation_of_kinds_that_do_not_count_is_kept(api: Api) -> None:
    assert (await api.made(CONFIGMAPS, with_meta("a", generation=7)))["metadata"]["generation"] == 7


async def test_creation_timestamp_and_uid_survive_a_put_without_them(api: Api) -> None:
    made = await api.made(CONFIGMAPS, configmap("a"))
    changed = (await api.update(CONFIGMAPS, configmap("a", data={"x": "y"}))).expect(200).meta
    assert (changed["uid"], changed["creationTimestamp"]) == (made["metadata"]["uid"], made["metadata"]["creationTimestamp"])


async def test_creation_timestamp_of_a_put_is_ignored(api: Api) -> None:
    made = await api.made(CONFIGMAPS, configmap("a"))
    changed = (await api.update(CONFIGMAPS, with_meta("a", creationTimestamp="2001-02-03T04:05:06Z"))).expect(200).meta
    assert changed["creationTimestamp"] == made["metadata"]["creationTimestamp"]


async def test_deletion_timestamp_cannot_be_set_by_an_update(api: Api) -> None:
    await api.made(CONFIGMAPS, configmap("a"))
    reply = await api.patch(CONFIGMAPS, "a", {"metadata": {"deletionTimestamp": "2001-02-03T04:05:06Z"}})
    why = 'metadata.deletionTimestamp: Invalid value: "2001-02-03T04:05:06Z": field is immutable'
    reply.expect(422, "Invalid", f'ConfigMap "a" is invalid: {why}')
    # Two layers of the server say the same; the message says it once.
    assert reply.causes == [("metadata.deletionTimestamp", "FieldValueInvalid")] * 2


@pytest.mark.parametrize("name", ["A", "a_b", "-a", "a.", "a..b", "a b", "a/b", "ä", "..", ".", "a%b"])
async def test_names_are_subdomains(api: Api, name: str) -> None:
    reply = await api.create(CONFIGMAPS, configmap(name))
    reply.expect(422, "Invalid", f'ConfigMap "{name}" is invalid: metadata.name: Invalid value: "{name}": {SUBDOMAIN}')
    assert reply.details["name"] == name
    assert reply.causes == [("metadata.name", "FieldValueInvalid")]


LABEL_RULE = (
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric "
    "character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')"
)
KIND_NAMES = [
    (SERVICES, "a.b", 'Service "a.b" is invalid: metadata.name: Invalid value: "a.b": must not contain dots'),
    (SERVICES, "1a", ""),
    (NAMESPACES, "a.b", 'Namespace "a.b" is invalid: metadata.name: Invalid value: "a.b": must not contain dots'),
    (NAMESPACES, "A", f'Namespace "A" is invalid: metadata.name: Invalid value: "A": {LABEL_RULE}'),
    (PODS, "A.b", f'Pod "A.b" is invalid: metadata.name: Invalid value: "A.b": {SUBDOMAIN}'),
    (ROLES, "A:b", ""),
    (ROLES, "a/b", 'Role.rbac.authorization.k8s.io "a/b" is invalid: metadata.name: Invalid value: "a/b": may not contain \'/\''),
    (WIDGETS, "A", f'Widget.contract.example.com "A" is invalid: metadata.name: Invalid value: "A": {SUBDOMAIN}'),
    (SECRETS, "a_b", f'Secret "a_b" is invalid: metadata.name: Invalid value: "a_b": {SUBDOMAIN}'),
    (CONFIGMAPS, "a" * 253, ""),
    (
        CONFIGMAPS,
        "a" * 254,
        f'ConfigMap "{"a" * 254}" is invalid: metadata.name: Invalid value: "{"a" * 254}": must be no more than 253 characters',
    ),
]


@pytest.mark.parametrize(("kind", "name", "message"), KIND_NAMES, ids=[f"{k.plural} {n[:9]}{len(n)}" for k, n, _ in KIND_NAMES])
async def test_names_of_kinds(api: Api, widgets: Kind, kind: Kind, name: str, message: str) -> None:
    reply = await api.create(kind, BUILDERS.get(kind, kind.new)(name))
    if message:
        reply.expect(422, "Invalid", message)
    else:
        assert reply.expect(201).meta["name"] == name


LONG = "x" * 64
LABELS = [
    ({"a b": "x"}, f'metadata.labels: Invalid value: "a b": {QUALIFIED}'),
    ({"a": "b c"}, f'metadata.labels: Invalid value: "b c": {LABEL_VALUE}'),
    ({"a": "-"}, f'metadata.labels: Invalid value: "-": {LABEL_VALUE}'),
    ({LONG: "a"}, f'metadata.labels: Invalid value: "{LONG}": name part must be no more than 63 bytes'),
    ({"a": LONG}, f'metadata.labels: Invalid value: "{LONG}": must be no more than 63 bytes'),
    ({"/a": "b"}, 'metadata.labels: Invalid value: "/a": prefix part must be non-empty'),
    ({"A.b/c": "d"}, f'metadata.labels: Invalid value: "A.b/c": prefix part {SUBDOMAIN}'),
    (
        {"": "x"},
        f'[metadata.labels: Invalid value: "": name part must be non-empty, metadata.labels: Invalid value: "": {QUALIFIED}]',
    ),
    (
        {"a b": "c d"},
        f'[metadata.labels: Invalid value: "a b": {QUALIFIED}, metadata.labels: Invalid value: "c d": {LABEL_VALUE}]',
    ),
]


@pytest.mark.parametrize(("labels", "why"), LABELS, ids=[str(labels)[:14] for labels, _ in LABELS])
async def test_bad_labels(api: Api, labels: Obj, why: str) -> None:
    (await api.create(CONFIGMAPS, configmap("a", labels=labels))).expect(422, "Invalid", f'ConfigMap "a" is invalid: {why}')


async def test_good_labels_and_annotations(api: Api) -> None:
    labels = {"a": "", "a.b/C_d": "1.2", "x" * 63: "y" * 63}
    made = await api.made(CONFIGMAPS, configmap("a", labels=labels, annotations={"a.b/c": "anything: ž\n"}))
    assert made["metadata"]["labels"] == labels
    assert made["metadata"]["annotations"] == {"a.b/c": "anything: ž\n"}


async def test_bad_annotations(api: Api) -> None:
    reply = await api.create(CONFIGMAPS, configmap("a", annotations={"a b": "x"}))
    reply.expect(422, "Invalid", f'ConfigMap "a" is invalid: metadata.annotations: Invalid value: "a b": {QUALIFIED}')
    reply = await api.create(CONFIGMAPS, configmap("a", annotations={"a": "x" * (256 * 1024 + 1)}))
    reply.expect(422, "Invalid", 'ConfigMap "a" is invalid: metadata.annotations: Too long: may not be more than 262144 bytes')


OWNER = {"apiVersion": "v1", "kind": "A", "name": "x", "uid": "1"}
OWNERS = [
    ([{**OWNER, "uid": ""}], [("metadata.ownerReferences.uid", 'Invalid value: "": must not be empty')]),
    (
        [{"apiVersion": "", "kind": "", "name": "", "uid": "u"}],
        [
            ("metadata.ownerReferences.apiVersion", 'Invalid value: "": version must not be empty'),
            ("metadata.ownerReferences.kind", 'Invalid value: "": must not be empty'),
            ("metadata.ownerReferences.name", 'Invalid value: "": must not be empty'),
        ],
    ),
    (
        [{**OWNER, "kind": "Event"}],
        [
            (
                "metadata.ownerReferences",
                'Invalid value: {"apiVersion":"v1","kind":"Event","name":"x","uid":"1"}: /v1, Kind=Event is disallowed from being an owner',
            )
        ],
    ),
    (
        [{**OWNER, "controller": True}, {**OWNER, "name": "y", "controller": True}],
        [
            (
                "metadata.ownerReferences",
                'Invalid value: [{"apiVersion":"v1","kind":"A","name":"x","uid":"1","controller":true},'
                '{"apiVersion":"v1","kind":"A","name":"y","uid":"1","controller":true}]: '
                'Only one reference can have Controller set to true. Found "true" in references for A/x and A/y',
            )
        ],
    ),
]


@pytest.mark.parametrize(("owners", "causes"), OWNERS, ids=["no uid", "all empty", "event", "two controllers"])
async def test_bad_owner_references(api: Api, owners: list[Obj], causes: list[tuple[str, str]]) -> None:
    reply = (await api.create(CONFIGMAPS, configmap("a", ownerReferences=owners))).expect(422, "Invalid")
    assert [(c["field"], c["message"]) for c in reply.details["causes"]] == causes
