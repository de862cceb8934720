"""Create, read, update and delete of several kinds."""

from typing import NamedTuple

import pytest

from tests.contract.client import Api
from tests.contract.compare import normal
from tests.contract.crds import serve
from tests.contract.kinds import (
    CLIQUES,
    CONFIGMAPS,
    DEPLOYMENTS,
    EVENTS,
    LEASES,
    NODES,
    PODS,
    PRIORITYCLASSES,
    REPLICASETS,
    ROLES,
    SECRETS,
    SERVICEACCOUNTS,
    SERVICES,
    STATEFULSETS,
    WIDGETS,
    Kind,
    Obj,
    configmap,
    deployment,
    pod,
    service,
    widget,
)
from tests.contract.texts import MODIFIED


class Row(NamedTuple):
    """A kind, fields of a small object, and what is special about the kind."""

    kind: Kind
    fields: Obj
    creates_on_update: bool = False
    needs_rv: bool = False
    returns_deleted: bool = False


WORKLOAD = deployment()["spec"]
KINDS = [
    Row(CONFIGMAPS, {"data": {"a": "b"}}),
    Row(SECRETS, {"data": {"a": "Yg=="}}),
    Row(SERVICEACCOUNTS, {}, returns_deleted=True),
    Row(SERVICES, {"spec": {"ports": [{"port": 80}]}}, creates_on_update=True, returns_deleted=True),
    Row(PODS, {"spec": pod()["spec"]}, returns_deleted=True),
    Row(NODES, {"spec": {"unschedulable": True}}),
    Row(LEASES, {"spec": {"holderIdentity": "me"}}, creates_on_update=True, needs_rv=True),
    Row(EVENTS, {"reason": "Because"}, creates_on_update=True),
    Row(ROLES, {"rules": [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}]}, creates_on_update=True),
    Row(DEPLOYMENTS, {"spec": WORKLOAD}),
    Row(REPLICASETS, {"spec": WORKLOAD}),
    Row(STATEFULSETS, {"spec": {**WORKLOAD, "serviceName": "s"}}),
    Row(PRIORITYCLASSES, {"value": 7}),
    Row(WIDGETS, {"spec": {"size": 1}}, needs_rv=True),
    Row(CLIQUES, {"spec": {"roleName": "r", "replicas": 1, "podSpec": {"containers": [{"name": "m", "image": "b"}]}}}, needs_rv=True),
]
every_kind = pytest.mark.parametrize("row", KINDS, ids=[row.kind.plural for row in KINDS])


async def new(api: Api, row: Row) -> Obj:
    """A valid object of the kind, not created."""
    await serve(api, row.kind)
    extra = {"involvedObject": {"namespace": api.ns}} if row.kind is EVENTS else {}
    return row.kind.new(api.unique(), **row.fields, **extra)


@every_kind
async def test_life_of_an_object(api: Api, row: Row) -> None:
    obj = await new(api, row)
    name = obj["metadata"]["name"]
    made = (await api.create(row.kind, obj)).expect(201).body
    assert (made["apiVersion"], made["kind"], made["metadata"]["name"]) == (row.kind.api_version, row.kind.kind, name)
    assert made["metadata"].get("namespace") == (api.ns if row.kind.is_namespaced else None)
    assert await api.read(row.kind, name) == made

    listed = (await api.list(row.kind, fieldSelector=f"metadata.name={name}")).expect(200)
    assert (listed.body["kind"], listed.body["apiVersion"]) == (f"{row.kind.kind}List", row.kind.api_version)
    [item] = listed.items
    # Items of built-in lists do not repeat what they are; those of custom resources do.
    assert {"apiVersion": row.kind.api_version, "kind": row.kind.kind, **item} == made

    made["metadata"]["labels"] = {"new": "label"}
    changed = (await api.update(row.kind, made)).expect(200).body
    assert changed["metadata"]["labels"]["new"] == "label"
    assert changed["metadata"]["uid"] == made["metadata"]["uid"]
    assert int(changed["metadata"]["resourceVersion"]) > int(made["metadata"]["resourceVersion"])

    (await api.delete(row.kind, name)).expect(200)
    (await api.get(row.kind, name)).expect(404, "NotFound", f'{row.kind.qualified} "{name}" not found')


@every_kind
async def test_put_of_a_missing_object(api: Api, row: Row) -> None:
    obj = await new(api, row)
    name = obj["metadata"]["name"]
    reply = await api.update(row.kind, obj)
    if row.creates_on_update:
        assert reply.expect(201).meta["name"] == name
    else:
        reply.expect(404, "NotFound", f'{row.kind.qualified} "{name}" not found')


@every_kind
async def test_put_without_resource_version(api: Api, row: Row) -> None:
    obj = await new(api, row)
    made = await api.made(row.kind, obj)
    name = obj["metadata"]["name"]
    reply = await api.update(row.kind, obj)
    if row.needs_rv:
        why = "metadata.resourceVersion: Invalid value: 0: must be specified for an update"
        reply.expect(422, "Invalid", f'{row.kind.qualified} "{name}" is invalid: {why}')
        assert reply.details["kind"] == row.kind.plural
    else:
        assert reply.expect(200).uid == made["metadata"]["uid"]


@every_kind
async def test_put_of_what_was_read_changes_nothing(api: Api, row: Row) -> None:
    made = await api.made(row.kind, await new(api, row))
    reply = (await api.update(row.kind, made)).expect(200)
    assert reply.body == made
    assert await api.read(row.kind, made["metadata"]["name"]) == made


@every_kind
async def test_put_with_a_stale_resource_version_is_a_conflict(api: Api, row: Row) -> None:
    made = await api.made(row.kind, await new(api, row))
    name = made["metadata"]["name"]
    (await api.patch(row.kind, name, {"metadata": {"labels": {"a": "b"}}})).expect(200)
    reply = await api.update(row.kind, made)
    reply.expect(409, "Conflict", f'Operation cannot be fulfilled on {row.kind.qualified} "{name}": {MODIFIED}')
    group = {"group": row.kind.group} if row.kind.group else {}
    assert reply.details == {"name": name, **group, "kind": row.kind.plural}


@every_kind
async def test_what_a_delete_answers(api: Api, row: Row) -> None:
    made = await api.made(row.kind, await new(api, row))
    name, uid = made["metadata"]["name"], made["metadata"]["uid"]
    answer = (await api.delete(row.kind, name)).expect(200).body
    if row.returns_deleted:
        assert (answer["kind"], answer["metadata"]["uid"]) == (row.kind.kind, uid)
    else:
        group = {"group": row.kind.group} if row.kind.group else {}
        details = {"name": name, **group, "kind": row.kind.plural, "uid": uid}
        assert answer == {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details}


@every_kind
async def test_an_existing_name_is_refused(api: Api, row: Row) -> None:
    obj = await new(api, row)
    await api.made(row.kind, obj)
    name = obj["metadata"]["name"]
    reply = await api.create(row.kind, obj)
    reply.expect(409, "AlreadyExists", f'{row.kind.qualified} "{name}" already exists')
    group = {"group": row.kind.group} if row.kind.group else {}
    assert reply.details == {"name": name, **group, "kind": row.kind.plural}


async def test_status_in_a_created_object_is_dropped(api: Api, widgets: Kind) -> None:
    made = await api.made(widgets, {**widget("a"), "status": {"phase": "Ready"}})
    assert "status" not in made
    made = await api.made(SERVICES, {**service("a"), "status": {"loadBalancer": {"ingress": [{"ip": "1.2.3.4"}]}}})
    assert made["status"] == {"loadBalancer": {}}


async def test_an_object_without_apiversion_and_kind_is_of_the_kind_of_the_path(api: Api) -> None:
    made = await api.made(CONFIGMAPS, {"metadata": {"name": "a"}, "data": {"x": "y"}})
    assert normal(made) == CONFIGMAPS.new("a", data={"x": "y"})


async def test_put_drops_what_it_leaves_out(api: Api) -> None:
    made = await api.made(CONFIGMAPS, configmap("a", labels={"l": "1"}, annotations={"n": "1"}, data={"x": "y"}))
    changed = (await api.update(CONFIGMAPS, CONFIGMAPS.new("a"))).expect(200).body
    assert normal(changed) == CONFIGMAPS.new("a")
    assert changed["metadata"]["creationTimestamp"] == made["metadata"]["creationTimestamp"]


async def test_an_immutable_configmap_stays_as_it_is(api: Api) -> None:
    await api.made(CONFIGMAPS, configmap("a", immutable=True))
    reply = await api.update(CONFIGMAPS, configmap("a", data={"x": "y"}, immutable=True))
    reply.expect(422, "Invalid", 'ConfigMap "a" is invalid: data: Forbidden: field is immutable when `immutable` is set')
    reply = await api.update(CONFIGMAPS, configmap("a"))
    reply.expect(422, "Invalid", 'ConfigMap "a" is invalid: immutable: Forbidden: field is immutable when `immutable` is set')


async def test_missing_objects_say_so_to_every_verb(api: Api) -> None:
    message = 'configmaps "nope" not found'
    (await api.get(CONFIGMAPS, "nope")).expect(404, "NotFound", message)
    (await api.update(CONFIGMAPS, configmap("nope"))).expect(404, "NotFound", message)
    (await api.patch(CONFIGMAPS, "nope", {})).expect(404, "NotFound", message)
    reply = (await api.delete(CONFIGMAPS, "nope")).expect(404, "NotFound", message)
    assert reply.details == {"name": "nope", "kind": "configmaps"}
