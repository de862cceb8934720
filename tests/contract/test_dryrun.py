"""dryRun=All: every verb answers as if, and nothing happens."""

import pytest

from tests.contract.client import Api
from tests.contract.kinds import CONFIGMAPS, LEASES, NAMESPACES, NODES, PODS, SERVICES, Kind, configmap, node, pod, service, widget
from tests.contract.texts import MODIFIED


async def test_create(api: Api) -> None:
    for _ in range(2):
        meta = (await api.create(CONFIGMAPS, configmap("a"), dryRun="All")).expect(201).meta
        assert meta["uid"]
        assert meta["creationTimestamp"]
        assert "resourceVersion" not in meta
    assert await api.gone(CONFIGMAPS, "a")


async def test_create_of_a_custom_resource(api: Api, widgets: Kind) -> None:
    made = (await api.create(widgets, widget("a"), dryRun="All")).expect(201).body
    assert (made["spec"], made["metadata"]["generation"]) == ({"size": 1, "colour": "red"}, 1)
    assert "resourceVersion" not in made["metadata"]
    assert await api.gone(widgets, "a")


async def test_create_with_a_generated_name(api: Api) -> None:
    name = (await api.create(CONFIGMAPS, configmap(generateName="x-"), dryRun="All")).expect(201).meta["name"]
    assert name.startswith("x-")
    assert await api.gone(CONFIGMAPS, name)


async def test_create_still_finds_what_is_wrong(api: Api) -> None:
    await api.made(CONFIGMAPS, configmap("a"))
    (await api.create(CONFIGMAPS, configmap("a"), dryRun="All")).expect(409, "AlreadyExists", 'configmaps "a" already exists')
    (await api.create(CONFIGMAPS, configmap("X"), dryRun="All")).expect(422, "Invalid")
    (await api.create(CONFIGMAPS, configmap("a"), ns="nowhere", dryRun="All")).expect(404, "NotFound")


async def test_update(api: Api) -> None:
    made = await api.made(CONFIGMAPS, configmap("a"))
    reply = (await api.update(CONFIGMAPS, configmap("a", data={"x": "y"}), dryRun="All")).expect(200)
    assert (reply.body["data"], reply.rv) == ({"x": "y"}, made["metadata"]["resourceVersion"])
    stale = {**made, "metadata": {**made["metadata"], "resourceVersion": "1"}}
    message = f'Operation cannot be fulfilled on configmaps "a": {MODIFIED}'
    (await api.update(CONFIGMAPS, stale, dryRun="All")).expect(409, "Conflict", message)
    assert await api.read(CONFIGMAPS, "a") == made


async def test_update_that_would_create(api: Api) -> None:
    assert "resourceVersion" not in (await api.update(LEASES, LEASES.new("a"), dryRun="All")).expect(201).meta
    assert await api.gone(LEASES, "a")


@pytest.mark.parametrize("patch_type", ["merge", "strategic", "apply", "json"])
async def test_patch(api: Api, patch_type: str) -> None:
    made = await api.made(CONFIGMAPS, configmap("a"))
    change = {"data": {"x": "y"}}
    body = {
        "json": [{"op": "add", "path": "/data/x", "value": "y"}],
        "apply": {"apiVersion": "v1", "kind": "ConfigMap", **change},
    }.get(patch_type, change)
    query = {"fieldManager": "tester"} if patch_type == "apply" else {}
    reply = (await api.patch(CONFIGMAPS, "a", body, patch_type, dryRun="All", **query)).expect(200)
    assert reply.body["data"] == {"key": "value", "x": "y"}
    assert await api.read(CONFIGMAPS, "a") == made


async def test_apply_that_would_create(api: Api) -> None:
    assert "resourceVersion" not in (await api.apply(CONFIGMAPS, configmap("a"), dryRun="All")).expect(201).meta
    assert await api.gone(CONFIGMAPS, "a")


async def test_generation_moves_in_the_answer_only(api: Api, widgets: Kind) -> None:
    made = await api.made(widgets, widget("a"))
    assert (await api.patch(widgets, "a", {"spec": {"size": 2}}, dryRun="All")).expect(200).meta["generation"] == 2
    assert await api.read(widgets, "a") == made


async def test_status(api: Api, widgets: Kind) -> None:
    made = await api.made(widgets, widget("a"))
    reply = (await api.patch(widgets, "a", {"status": {"phase": "x"}}, sub="status", dryRun="All")).expect(200)
    assert reply.body["status"] == {"phase": "x"}
    assert await api.read(widgets, "a") == made


@pytest.mark.parametrize("where", ["body", "query"])
async def test_delete(api: Api, where: str) -> None:
    made = await api.made(CONFIGMAPS, configmap("a"))
    reply = await (api.delete(CONFIGMAPS, "a", {"dryRun": ["All"]}) if where == "body" else api.delete(CONFIGMAPS, "a", dryRun="All"))
    assert reply.expect(200).body["details"]["uid"] == made["metadata"]["uid"]
    assert await api.read(CONFIGMAPS, "a") == made


async def test_delete_that_would_wait(api: Api) -> None:
    made = await api.made(CONFIGMAPS, configmap("a", finalizers=["a.b/c"]))
    assert (await api.delete(CONFIGMAPS, "a", dryRun="All")).expect(200).meta["deletionTimestamp"]
    assert await api.read(CONFIGMAPS, "a") == made


async def test_delete_of_a_pod(api: Api) -> None:
    where = (await api.made(NODES, node(api.unique("node"))))["metadata"]["name"]
    made = await api.made(PODS, pod("a", node=where))
    assert (await api.delete(PODS, "a", dryRun="All")).expect(200).meta["deletionGracePeriodSeconds"] == 30
    assert await api.read(PODS, "a") == made


async def test_removal_of_the_last_finalizer(api: Api) -> None:
    await api.made(CONFIGMAPS, configmap("a", finalizers=["a.b/c"]))
    deleting = (await api.delete(CONFIGMAPS, "a")).body
    (await api.patch(CONFIGMAPS, "a", {"metadata": {"finalizers": None}}, dryRun="All")).expect(200)
    assert await api.read(CONFIGMAPS, "a") == deleting


async def test_delete_of_a_collection(api: Api) -> None:
    await api.made(CONFIGMAPS, configmap("a"))
    assert (await api.delete_all(CONFIGMAPS, dryRun="All")).expect(200).names == ["a"]
    assert (await api.list(CONFIGMAPS)).names == ["a"]


async def test_binding_and_eviction(api: Api) -> None:
    where = (await api.made(NODES, node(api.unique("node"))))["metadata"]["name"]
    made = await api.made(PODS, pod("a"))
    binding = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": "a"}, "target": {"kind": "Node", "name": where}}
    (await api.create(PODS, binding, "a", "binding", dryRun="All")).expect(201)
    eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "a"}, "deleteOptions": {"dryRun": ["All"]}}
    (await api.create(PODS, eviction, "a", "eviction")).expect(201)
    assert await api.read(PODS, "a") == made


async def test_a_service_gets_an_address_that_is_not_kept(api: Api) -> None:
    made = (await api.create(SERVICES, service("a"), dryRun="All")).expect(201).body
    assert made["spec"]["clusterIP"]
    assert await api.gone(SERVICES, "a")


async def test_a_namespace(api: Api) -> None:
    name = api.unique("ns")
    made = (await api.create(NAMESPACES, NAMESPACES.new(name), dryRun="All")).expect(201).body
    assert made["status"] == {"phase": "Active"}
    assert await api.gone(NAMESPACES, name)
    await api.made(NAMESPACES, NAMESPACES.new(name))
    (await api.delete(NAMESPACES, name, dryRun="All")).expect(200)
    assert (await api.read(NAMESPACES, name))["status"] == {"phase": "Active"}


@pytest.mark.parametrize("value", ["all", "foo", ""])
async def test_other_values(api: Api, value: str) -> None:
    why = f'dryRun: Unsupported value: ["{value}"]: supported values: "All"'
    reply = await api.create(CONFIGMAPS, configmap("a"), dryRun=value)
    reply.expect(422, "Invalid", f'CreateOptions.meta.k8s.io "" is invalid: {why}')
    reply = await api.update(CONFIGMAPS, configmap("a"), dryRun=value)
    reply.expect(422, "Invalid", f'UpdateOptions.meta.k8s.io "" is invalid: {why}')
    reply = await api.patch(CONFIGMAPS, "a", {}, dryRun=value)
    reply.expect(422, "Invalid", f'PatchOptions.meta.k8s.io "" is invalid: {why}')


async def test_twice_all_is_all(api: Api) -> None:
    (await api.request("POST", CONFIGMAPS.path(api.ns), configmap("a"), query="dryRun=All&dryRun=All")).expect(201)
    assert await api.gone(CONFIGMAPS, "a")
