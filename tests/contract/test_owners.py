"""Owner references: what is refused, and what the garbage collector and the namespace controller do."""
# ruff: noqa: E501 - messages of the server stand whole, to be found by searching.

from typing import Any

import pytest

from tests.contract.client import Api
from tests.contract.kinds import CONFIGMAPS, NAMESPACES, SECRETS, Obj, configmap
from tests.contract.rows import RESOURCES, Step, case, fails, post, run, serve

CASES = [
    case(
        "two_controllers",
        post(
            "configmaps/a",
            "{metadata: {ownerReferences: [{apiVersion: v1, kind: Pod, name: a, uid: u1, controller: true}, {apiVersion: v1, kind: Pod, name: b, uid: u2, controller: true}]}}",
            fails(
                422,
                "Invalid",
                'ConfigMap "a" is invalid: metadata.ownerReferences: Invalid value: [{"apiVersion":"v1","kind":"Pod","name":"a","uid":"u1","controller":true},{"apiVersion":"v1","kind":"Pod","name":"b","uid":"u2","controller":true}]: Only one reference can have Controller set to true. Found "true" in references for Pod/a and Pod/b',
            ),
        ),
    ),
    case(
        "two_owners",
        post(
            "configmaps/a",
            "{metadata: {ownerReferences: [{apiVersion: v1, kind: Pod, name: a, uid: u1, controller: true}, {apiVersion: v1, kind: Pod, name: b, uid: u2}]}}",
            {
                "metadata.ownerReferences": [
                    {"apiVersion": "v1", "kind": "Pod", "name": "a", "uid": "u1", "controller": True},
                    {"apiVersion": "v1", "kind": "Pod", "name": "b", "uid": "u2"},
                ]
            },
        ),
    ),
    case(
        "same_owner_twice",
        post(
            "configmaps/a",
            "{metadata: {ownerReferences: [{apiVersion: v1, kind: Pod, name: a, uid: u1}, {apiVersion: v1, kind: Pod, name: a, uid: u1}]}}",
            {"@": 201, "metadata.ownerReferences.#": 1},
        ),
    ),
    case(
        "no_uid",
        post(
            "configmaps/a",
            "{metadata: {ownerReferences: [{apiVersion: v1, kind: Pod, name: a}]}}",
            fails(422, "Invalid", 'ConfigMap "a" is invalid: metadata.ownerReferences.uid: Invalid value: "": must not be empty'),
        ),
    ),
    case(
        "no_name",
        post(
            "configmaps/a",
            "{metadata: {ownerReferences: [{apiVersion: v1, kind: Pod, uid: u}]}}",
            fails(422, "Invalid", 'ConfigMap "a" is invalid: metadata.ownerReferences.name: Invalid value: "": must not be empty'),
        ),
    ),
    case(
        "no_kind",
        post(
            "configmaps/a",
            "{metadata: {ownerReferences: [{apiVersion: v1, name: a, uid: u}]}}",
            fails(422, "Invalid", 'ConfigMap "a" is invalid: metadata.ownerReferences.kind: Invalid value: "": must not be empty'),
        ),
    ),
    case(
        "no_version",
        post(
            "configmaps/a",
            "{metadata: {ownerReferences: [{kind: Pod, name: a, uid: u}]}}",
            fails(
                422,
                "Invalid",
                'ConfigMap "a" is invalid: metadata.ownerReferences.apiVersion: Invalid value: "": version must not be empty',
            ),
        ),
    ),
    case(
        "an_event_owns_nothing",
        post(
            "configmaps/a",
            "{metadata: {ownerReferences: [{apiVersion: v1, kind: Event, name: a, uid: u}]}}",
            fails(
                422,
                "Invalid",
                'ConfigMap "a" is invalid: metadata.ownerReferences: Invalid value: {"apiVersion":"v1","kind":"Event","name":"a","uid":"u"}: /v1, Kind=Event is disallowed from being an owner',
            ),
        ),
    ),
    case(
        "blocking",
        post(
            "configmaps/a",
            "{metadata: {ownerReferences: [{apiVersion: v1, kind: ConfigMap, name: a, uid: u, blockOwnerDeletion: true}]}}",
            {"metadata.ownerReferences.0.blockOwnerDeletion": True},
        ),
    ),
]


@pytest.mark.parametrize("steps", CASES)
async def test_an_owner_reference(api: Api, steps: tuple[Step, ...]) -> None:
    await run(api, steps)


def reference(owner: Obj, **more: Any) -> Obj:
    return {
        "apiVersion": owner["apiVersion"],
        "kind": owner["kind"],
        "name": owner["metadata"]["name"],
        "uid": owner["metadata"]["uid"],
        **more,
    }


async def owned(api: Api, owner: Obj, name: str = "dependent", **more: Any) -> Obj:
    return await api.made(CONFIGMAPS, configmap(name, ownerReferences=[reference(owner, **more)]))


@pytest.mark.needs_controllers
async def test_background_deletion_takes_dependents(api: Api) -> None:
    owner = await api.made(SECRETS, SECRETS.new("owner"))
    await owned(api, owner)
    await owned(api, await api.read(CONFIGMAPS, "dependent"), "grandchild")
    (await api.delete(SECRETS, "owner", {"propagationPolicy": "Background"})).expect(200)
    assert await api.gone(SECRETS, "owner")
    await api.poll(lambda: api.gone(CONFIGMAPS, "dependent"))
    await api.poll(lambda: api.gone(CONFIGMAPS, "grandchild"))


@pytest.mark.needs_controllers
async def test_foreground_deletion_waits_for_blocking_dependents(api: Api) -> None:
    owner = await api.made(SECRETS, SECRETS.new("owner"))
    await api.made(CONFIGMAPS, configmap("dependent", finalizers=["x/a"], ownerReferences=[reference(owner, blockOwnerDeletion=True)]))
    reply = await api.delete(SECRETS, "owner", {"propagationPolicy": "Foreground"})
    assert reply.expect(200).meta["finalizers"] == ["foregroundDeletion"]

    async def deleting() -> bool:
        return "deletionTimestamp" in (await api.read(CONFIGMAPS, "dependent"))["metadata"]

    await api.poll(deleting)
    assert (await api.read(SECRETS, "owner"))["metadata"]["finalizers"] == ["foregroundDeletion"]
    (await api.patch(CONFIGMAPS, "dependent", {"metadata": {"finalizers": None}})).expect(200)
    await api.poll(lambda: api.gone(SECRETS, "owner"))


@pytest.mark.needs_controllers
async def test_foreground_deletion_does_not_wait_for_others(api: Api) -> None:
    owner = await api.made(SECRETS, SECRETS.new("owner"))
    await api.made(CONFIGMAPS, configmap("dependent", finalizers=["x/a"], ownerReferences=[reference(owner)]))
    (await api.delete(SECRETS, "owner", {"propagationPolicy": "Foreground"})).expect(200)
    await api.poll(lambda: api.gone(SECRETS, "owner"))


@pytest.mark.needs_controllers
async def test_orphaned_dependents_lose_their_reference(api: Api) -> None:
    owner = await api.made(SECRETS, SECRETS.new("owner"))
    await owned(api, owner)
    reply = await api.delete(SECRETS, "owner", {"propagationPolicy": "Orphan"})
    assert reply.expect(200).meta["finalizers"] == ["orphan"]
    await api.poll(lambda: api.gone(SECRETS, "owner"))
    assert "ownerReferences" not in (await api.read(CONFIGMAPS, "dependent"))["metadata"]


@pytest.mark.needs_controllers
async def test_the_second_owner_keeps_a_dependent(api: Api) -> None:
    one, two = await api.made(SECRETS, SECRETS.new("one")), await api.made(SECRETS, SECRETS.new("two"))
    await api.made(CONFIGMAPS, configmap("dependent", ownerReferences=[reference(one), reference(two)]))
    (await api.delete(SECRETS, "one")).expect(200)

    async def only_two() -> bool:
        return (await api.read(CONFIGMAPS, "dependent"))["metadata"]["ownerReferences"] == [reference(two)]

    await api.poll(only_two)
    (await api.delete(SECRETS, "two")).expect(200)
    await api.poll(lambda: api.gone(CONFIGMAPS, "dependent"))


@pytest.mark.needs_controllers
@pytest.mark.parametrize("change", [{"uid": "11111111-2222-3333-4444-555555555555"}, {"name": "missing"}], ids=["uid", "name"])
async def test_dependents_of_missing_owners_go(api: Api, change: dict[str, str]) -> None:
    owner = await api.made(SECRETS, SECRETS.new("owner"))
    await api.made(
        CONFIGMAPS, configmap("dependent", ownerReferences=[{**reference(owner), "uid": "11111111-2222-3333-4444-555555555555", **change}])
    )
    await api.poll(lambda: api.gone(CONFIGMAPS, "dependent"))
    assert not await api.gone(SECRETS, "owner")


@pytest.mark.needs_controllers
async def test_an_owner_in_another_namespace_is_missing(api: Api) -> None:
    other = api.unique("other")
    await api.made(NAMESPACES, NAMESPACES.new(other))
    owner = await api.made(SECRETS, SECRETS.new("owner"), ns=other)
    await owned(api, owner)
    await api.poll(lambda: api.gone(CONFIGMAPS, "dependent"))
    assert not await api.gone(SECRETS, "owner", ns=other)


@pytest.mark.needs_controllers
@pytest.mark.timeout(60)
async def test_custom_objects_are_collected(api: Api) -> None:
    await serve(api, "podgangs", "gangplacements")
    gangs, placements = RESOURCES["podgangs"], RESOURCES["gangplacements"]
    gang = await api.made(gangs, gangs.new("g", spec={"podgroups": []}))
    spec = {"deadline": "2024-01-01T00:00:00Z", "decisionID": "d", "epoch": 1, "pods": []}
    await api.made(placements, placements.new("g", spec=spec, ownerReferences=[reference(gang, controller=True, blockOwnerDeletion=True)]))
    (await api.delete(gangs, "g")).expect(200)
    # The real collector looks for new kinds every 30 seconds.
    await api.poll(lambda: api.gone(placements, "g"), timeout_s=45)


@pytest.mark.needs_controllers
async def test_a_deleted_namespace_loses_its_content_and_goes(api: Api) -> None:
    await api.made(CONFIGMAPS, configmap("a"))
    await api.made(CONFIGMAPS, configmap("held", finalizers=["x/a"]))
    deleted = (await api.delete(NAMESPACES, api.ns)).expect(200).body
    assert deleted["status"]["phase"] == "Terminating"
    assert deleted["spec"]["finalizers"] == ["kubernetes"]
    await api.poll(lambda: api.gone(CONFIGMAPS, "a"))
    refused = await api.create(CONFIGMAPS, configmap("late"))
    refused.expect(
        403,
        "Forbidden",
        f'configmaps "late" is forbidden: unable to create new content in namespace {api.ns} because it is being terminated',
    )
    assert refused.details["causes"] == [
        {"reason": "NamespaceTerminating", "message": f"namespace {api.ns} is being terminated", "field": "metadata.namespace"}
    ]

    async def reported() -> bool:
        conditions = (await api.read(NAMESPACES, api.ns))["status"].get("conditions", [])
        return {c["type"]: c["status"] for c in conditions}.get("NamespaceFinalizersRemaining") == "True"

    await api.poll(reported)
    (await api.patch(CONFIGMAPS, "held", {"metadata": {"finalizers": None}})).expect(200)
    await api.poll(lambda: api.gone(NAMESPACES, api.ns), timeout_s=15)
