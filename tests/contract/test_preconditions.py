"""Optimistic locking: resourceVersion and uid as preconditions."""

import pytest

from tests.contract.client import Api
from tests.contract.kinds import CONFIGMAPS, NODES, PODS, Kind, Obj, configmap, node, pod, widget
from tests.contract.texts import MODIFIED

CHANGED = f'Operation cannot be fulfilled on configmaps "a": {MODIFIED}'


def with_meta(obj: Obj, **meta: str) -> Obj:
    return {**obj, "metadata": {**obj["metadata"], **meta}}


async def test_put_with_the_current_version(api: Api) -> None:
    made = await api.made(CONFIGMAPS, configmap("a"))
    reply = (await api.update(CONFIGMAPS, {**made, "data": {"x": "y"}})).expect(200)
    assert int(reply.rv) > int(made["metadata"]["resourceVersion"])


async def test_put_with_a_version_of_the_future_is_a_conflict(api: Api) -> None:
    made = await api.made(CONFIGMAPS, configmap("a"))
    future = str(int(made["metadata"]["resourceVersion"]) + 1_000_000)
    (await api.update(CONFIGMAPS, with_meta(made, resourceVersion=future))).expect(409, "Conflict", CHANGED)


async def test_a_stale_put_that_changes_nothing_is_a_conflict_too(api: Api) -> None:
    made = await api.made(CONFIGMAPS, configmap("a"))
    current = (await api.patch(CONFIGMAPS, "a", {"data": {"x": "y"}})).body
    stale = with_meta(current, resourceVersion=made["metadata"]["resourceVersion"])
    (await api.update(CONFIGMAPS, stale)).expect(409, "Conflict", CHANGED)


async def test_version_zero_is_no_precondition(api: Api) -> None:
    made = await api.made(CONFIGMAPS, configmap("a"))
    await api.patch(CONFIGMAPS, "a", {"data": {"x": "y"}})
    assert (await api.update(CONFIGMAPS, with_meta(made, resourceVersion="0"))).expect(200).body["data"] == {"key": "value"}


async def test_a_version_that_is_no_number(api: Api) -> None:
    made = await api.made(CONFIGMAPS, configmap("a"))
    reply = await api.update(CONFIGMAPS, with_meta(made, resourceVersion="abc"))
    reply.expect(500, "", 'strconv.ParseUint: parsing "abc": invalid syntax')


async def test_put_with_another_uid(api: Api) -> None:
    made = await api.made(CONFIGMAPS, configmap("a"))
    reply = (await api.update(CONFIGMAPS, configmap("a", uid="other"))).expect(409, "Conflict")
    uids = f"UID in precondition: other, UID in object meta: {made['metadata']['uid']}"
    assert reply.message.startswith('Operation cannot be fulfilled on configmaps "a": StorageError: invalid object, Code: 4, Key: ')
    assert reply.message.endswith(f"Precondition failed: {uids}")


async def test_put_of_an_object_that_was_made_anew(api: Api) -> None:
    old = await api.made(CONFIGMAPS, configmap("a"))
    await api.delete(CONFIGMAPS, "a")
    (await api.update(CONFIGMAPS, old)).expect(404, "NotFound")
    new = await api.made(CONFIGMAPS, configmap("a"))
    current = with_meta(old, resourceVersion=new["metadata"]["resourceVersion"])
    reply = (await api.update(CONFIGMAPS, current)).expect(409, "Conflict")
    assert f"UID in precondition: {old['metadata']['uid']}, UID in object meta: {new['metadata']['uid']}" in reply.message


async def test_names_of_body_and_path_must_agree(api: Api) -> None:
    await api.made(CONFIGMAPS, configmap("a"))
    reply = await api.update(CONFIGMAPS, configmap("a"), name="b")
    reply.expect(400, "BadRequest", "the name of the object (a) does not match the name on the URL (b)")
    reply = await api.update(CONFIGMAPS, configmap(), name="a")
    reply.expect(400, "BadRequest", "the name of the object (a based on URL) was undeterminable: name must be provided")
    reply = await api.patch(CONFIGMAPS, "a", {"metadata": {"name": "b"}})
    reply.expect(400, "BadRequest", "the name of the object (b) does not match the name on the URL (a)")


async def test_patch_with_a_version(api: Api) -> None:
    made = await api.made(CONFIGMAPS, configmap("a"))
    rv = made["metadata"]["resourceVersion"]
    body: Obj = {"metadata": {"resourceVersion": rv}, "data": {"x": "1"}}
    (await api.patch(CONFIGMAPS, "a", body)).expect(200)
    (await api.patch(CONFIGMAPS, "a", {**body, "data": {"x": "2"}})).expect(409, "Conflict", CHANGED)
    assert (await api.read(CONFIGMAPS, "a"))["data"]["x"] == "1"


async def test_patch_with_another_uid(api: Api) -> None:
    await api.made(CONFIGMAPS, configmap("a"))
    reply = await api.patch(CONFIGMAPS, "a", {"metadata": {"uid": "zzz"}})
    reply.expect(422, "Invalid", 'ConfigMap "a" is invalid: metadata.uid: Invalid value: "zzz": field is immutable')


async def test_status_with_a_stale_version(api: Api, widgets: Kind) -> None:
    made = await api.made(widgets, widget("a"))
    await api.patch(widgets, "a", {"spec": {"size": 2}})
    reply = await api.update(widgets, {**made, "status": {"phase": "x"}}, sub="status")
    reply.expect(409, "Conflict", f'Operation cannot be fulfilled on widgets.contract.example.com "a": {MODIFIED}')


UID = "the UID in the precondition (x) does not match the UID in record ({uid}). The object might have been deleted and then recreated"
RV = "the ResourceVersion in the precondition (1) does not match the ResourceVersion in record ({rv}). The object might have been modified"
DELETES = [({"uid": "x"}, UID), ({"resourceVersion": "1"}, RV), ({"uid": "x", "resourceVersion": "1"}, UID)]


@pytest.mark.parametrize(("preconditions", "why"), DELETES, ids=["uid", "version", "both"])
async def test_delete_that_expects_another_object(api: Api, preconditions: Obj, why: str) -> None:
    made = await api.made(CONFIGMAPS, configmap("a"))
    reply = (await api.delete(CONFIGMAPS, "a", {"preconditions": preconditions})).expect(409, "Conflict")
    why = why.format(uid=made["metadata"]["uid"], rv=made["metadata"]["resourceVersion"])
    assert reply.message == f'Operation cannot be fulfilled on ConfigMap "a": {why}'
    assert reply.details == {"name": "a", "kind": "ConfigMap"}
    assert await api.read(CONFIGMAPS, "a") == made


async def test_delete_that_expects_this_object(api: Api) -> None:
    meta = (await api.made(CONFIGMAPS, configmap("a")))["metadata"]
    options = {"preconditions": {"uid": meta["uid"], "resourceVersion": meta["resourceVersion"]}}
    (await api.delete(CONFIGMAPS, "a", options)).expect(200)
    assert await api.gone(CONFIGMAPS, "a")


async def test_delete_of_a_custom_resource_names_its_group(api: Api, widgets: Kind) -> None:
    await api.made(widgets, widget("a"))
    reply = (await api.delete(widgets, "a", {"preconditions": {"uid": "x"}})).expect(409, "Conflict")
    assert reply.message.startswith('Operation cannot be fulfilled on Widget.contract.example.com "a": the UID in the precondition (x)')


async def test_preconditions_count_for_graceful_deletion(api: Api) -> None:
    where = api.unique("node")
    await api.made(NODES, node(where))
    await api.made(PODS, pod("a", node=where))
    (await api.delete(PODS, "a", {"preconditions": {"uid": "x"}, "gracePeriodSeconds": 5})).expect(409, "Conflict")
    assert "deletionTimestamp" not in (await api.read(PODS, "a"))["metadata"]


async def test_preconditions_count_for_each_object_of_a_collection(api: Api) -> None:
    made = await api.made(CONFIGMAPS, configmap("a"))
    (await api.delete_all(CONFIGMAPS, {"preconditions": {"uid": "x"}})).expect(409, "Conflict")
    (await api.delete_all(CONFIGMAPS, {"preconditions": {"uid": made["metadata"]["uid"]}})).expect(200)
    assert await api.gone(CONFIGMAPS, "a")
