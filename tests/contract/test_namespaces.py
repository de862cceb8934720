"""Namespaces: what they begin with, what a missing or ending one refuses."""

import pytest

from tests.contract.client import Api
from tests.contract.kinds import CONFIGMAPS, LEASES, NAMESPACES, PODS, SECRETS, Kind, configmap, pod, widget


async def ending(api: Api) -> str:
    """A namespace that is being deleted, with the ConfigMap `x` in it."""
    name = (await api.made(NAMESPACES, NAMESPACES.new(api.unique("ns"))))["metadata"]["name"]
    await api.made(CONFIGMAPS, configmap("x"), ns=name)
    (await api.delete(NAMESPACES, name)).expect(200)
    return name


async def test_what_a_new_one_has(api: Api) -> None:
    name = api.unique("ns")
    made = await api.made(NAMESPACES, NAMESPACES.new(name, labels={"a": "b"}))
    assert made["metadata"]["labels"] == {"a": "b", "kubernetes.io/metadata.name": name}
    assert made["spec"] == {"finalizers": ["kubernetes"]}
    assert made["status"] == {"phase": "Active"}
    assert "finalizers" not in made["metadata"]


async def test_its_name_label_cannot_be_changed(api: Api) -> None:
    for value in ("other", None):
        reply = await api.patch(NAMESPACES, api.ns, {"metadata": {"labels": {"kubernetes.io/metadata.name": value}}})
        assert reply.expect(200).meta["labels"]["kubernetes.io/metadata.name"] == api.ns


async def test_finalizers_of_its_spec(api: Api) -> None:
    made = await api.made(NAMESPACES, NAMESPACES.new(api.unique("ns"), spec={"finalizers": ["x.y/z"]}))
    assert made["spec"]["finalizers"] == ["x.y/z", "kubernetes"]
    # Only the subresource finalize changes them.
    reply = (await api.update(NAMESPACES, {**made, "spec": {"finalizers": []}})).expect(200)
    assert reply.body["spec"] == made["spec"]


async def test_with_a_generated_name(api: Api) -> None:
    meta = (await api.made(NAMESPACES, NAMESPACES.new(generateName="gen-")))["metadata"]
    assert meta["labels"]["kubernetes.io/metadata.name"] == meta["name"]


@pytest.mark.parametrize("name", ["default", "kube-system", "kube-public"])
async def test_some_stay_for_ever(api: Api, name: str) -> None:
    reply = await api.delete(NAMESPACES, name)
    reply.expect(403, "Forbidden", f'namespaces "{name}" is forbidden: this namespace may not be deleted')
    assert reply.details == {"name": name, "kind": "namespaces"}


async def test_nothing_is_created_in_a_missing_one(api: Api, widgets: Kind) -> None:
    for kind, obj in ((CONFIGMAPS, configmap("x")), (PODS, pod("x")), (LEASES, LEASES.new("x")), (widgets, widget("x"))):
        reply = await api.create(kind, obj, ns="nowhere")
        reply.expect(404, "NotFound", 'namespaces "nowhere" not found')
        assert reply.details == {"name": "nowhere", "kind": "namespaces"}
    (await api.update(LEASES, LEASES.new("x"), ns="nowhere")).expect(404, "NotFound", 'namespaces "nowhere" not found')
    (await api.apply(CONFIGMAPS, configmap("x"), ns="nowhere")).expect(404, "NotFound", 'namespaces "nowhere" not found')
    # Before anything else is looked at.
    (await api.create(CONFIGMAPS, configmap("BAD"), ns="nowhere")).expect(404, "NotFound", 'namespaces "nowhere" not found')


async def test_a_missing_one_reads_as_an_empty_one(api: Api) -> None:
    (await api.get(CONFIGMAPS, "x", ns="nowhere")).expect(404, "NotFound", 'configmaps "x" not found')
    (await api.delete(CONFIGMAPS, "x", ns="nowhere")).expect(404, "NotFound", 'configmaps "x" not found')
    assert (await api.list(CONFIGMAPS, ns="nowhere")).expect(200).items == []
    assert (await api.delete_all(CONFIGMAPS, ns="nowhere")).expect(200).items == []


async def test_deletion_only_begins(api: Api) -> None:
    made = await api.made(NAMESPACES, NAMESPACES.new(api.unique("ns")))
    answer = (await api.delete(NAMESPACES, made["metadata"]["name"])).expect(200).body
    assert (answer["kind"], answer["status"]) == ("Namespace", {"phase": "Terminating"})
    assert answer["metadata"]["deletionTimestamp"]
    assert "deletionGracePeriodSeconds" not in answer["metadata"]
    assert answer["spec"] == {"finalizers": ["kubernetes"]}
    again = (await api.delete(NAMESPACES, made["metadata"]["name"])).expect(200).body
    assert again["metadata"]["resourceVersion"] == answer["metadata"]["resourceVersion"]


async def test_an_ending_one_takes_nothing_new(api: Api, widgets: Kind) -> None:
    name = await ending(api)
    why = f"is forbidden: unable to create new content in namespace {name} because it is being terminated"
    cause = {"reason": "NamespaceTerminating", "message": f"namespace {name} is being terminated", "field": "metadata.namespace"}
    for kind, obj in ((CONFIGMAPS, configmap("y")), (PODS, pod("y")), (widgets, widget("y"))):
        reply = (await api.create(kind, obj, ns=name)).expect(403, "Forbidden", f'{kind.qualified} "y" {why}')
        assert reply.details["causes"] == [cause]
    (await api.create(CONFIGMAPS, configmap("y"), ns=name, dryRun="All")).expect(403, "Forbidden")
    (await api.apply(CONFIGMAPS, configmap("y"), ns=name)).expect(403, "Forbidden")
    (await api.update(LEASES, LEASES.new("y"), ns=name)).expect(403, "Forbidden")


async def test_what_an_ending_one_holds_may_change(api: Api) -> None:
    name = await ending(api)
    (await api.update(CONFIGMAPS, configmap("x", data={"a": "b"}), ns=name)).expect(200)
    (await api.delete(CONFIGMAPS, "x", ns=name)).expect(200)


async def test_finalize_without_finalizers_ends_it(api: Api) -> None:
    name = await ending(api)
    current = await api.read(NAMESPACES, name)
    (await api.update(NAMESPACES, {**current, "spec": {"finalizers": []}}, sub="finalize")).expect(200)
    assert await api.gone(NAMESPACES, name)
    # Emptying it is the controller's work.
    await api.read(CONFIGMAPS, "x", ns=name)


async def test_finalize_of_a_living_one(api: Api) -> None:
    made = await api.made(NAMESPACES, NAMESPACES.new(api.unique("ns")))
    changed = (await api.update(NAMESPACES, {**made, "spec": {"finalizers": ["x.y/z"]}}, sub="finalize")).expect(200)
    assert changed.body["spec"] == {"finalizers": ["x.y/z"]}
    assert (await api.read(NAMESPACES, made["metadata"]["name"]))["status"] == {"phase": "Active"}


async def test_metadata_finalizers_hold_it_too(api: Api) -> None:
    made = await api.made(NAMESPACES, NAMESPACES.new(api.unique("ns"), finalizers=["a.b/c"]))
    name = made["metadata"]["name"]
    await api.delete(NAMESPACES, name)
    current = await api.read(NAMESPACES, name)
    (await api.update(NAMESPACES, {**current, "spec": {"finalizers": []}}, sub="finalize")).expect(200)
    await api.read(NAMESPACES, name)
    (await api.patch(NAMESPACES, name, {"metadata": {"finalizers": None}})).expect(200)
    assert await api.gone(NAMESPACES, name)


@pytest.mark.needs_controllers
async def test_an_ending_one_is_emptied_and_goes(api: Api, widgets: Kind) -> None:
    name = await ending(api)
    assert await api.poll(lambda: api.gone(NAMESPACES, name), 15)
    assert await api.gone(CONFIGMAPS, "x", ns=name)


@pytest.mark.needs_controllers
async def test_a_finalizer_inside_holds_it(api: Api) -> None:
    name = (await api.made(NAMESPACES, NAMESPACES.new(api.unique("ns"))))["metadata"]["name"]
    await api.made(SECRETS, SECRETS.new("held", finalizers=["a.b/c"]), ns=name)
    await api.delete(NAMESPACES, name)

    async def is_deleting() -> bool:
        return "deletionTimestamp" in (await api.read(SECRETS, "held", ns=name))["metadata"]

    async def remains() -> bool:
        conditions = (await api.read(NAMESPACES, name))["status"].get("conditions", [])
        return {"NamespaceContentRemaining": "True", "NamespaceFinalizersRemaining": "True"}.items() <= {
            c["type"]: c["status"] for c in conditions
        }.items()

    await api.poll(is_deleting, 15)
    await api.poll(remains, 15)
    (await api.patch(SECRETS, "held", {"metadata": {"finalizers": None}}, ns=name)).expect(200)
    assert await api.poll(lambda: api.gone(NAMESPACES, name), 15)
