"""Garbage collection: who is deleted, who is freed, who waits. Expectations were seen at kube-controller-manager."""

from typing import Any

import pytest

from tests.unit.sim.careworld import World, ref, simulate

UID = "11111111-1111-1111-1111-111111111111"
BLOCK = {"blockOwnerDeletion": True}
HOLD = ["a.b/c"]


@pytest.mark.parametrize(
    ("fields", "stays"),
    [
        ({}, True),
        ({"uid": UID}, False),
        ({"name": "other"}, False),
        ({"kind": "Secret"}, False),
        ({"apiVersion": "apps/v1", "kind": "Deployment"}, False),
        ({"uid": UID, "kind": "Frob"}, True),
        ({"uid": UID, "apiVersion": "x.y/v1"}, True),
        ({"uid": UID, "apiVersion": "v2"}, True),
    ],
    ids=["right", "uid", "name", "kind", "group", "unknown kind", "unknown group", "unknown version"],
)
def test_what_a_reference_must_say(fields: dict[str, str], stays: bool) -> None:
    async def scenario(world: World) -> None:
        owner = await world.config("owner")
        await world.config("other")
        await world.config("dependent", {**ref(owner), **fields})
        await world.settle()
        assert ("dependent" in world.left()) is stays

    simulate(scenario)


def test_owners_in_other_namespaces_do_not_count() -> None:
    async def scenario(world: World) -> None:
        owner = await world.config("owner")
        await world.made("/api/v1/namespaces/kube-public/configmaps", {"metadata": {"name": "far", "ownerReferences": [ref(owner)]}})
        await world.made("/api/v1/nodes", {"metadata": {"name": "wide", "ownerReferences": [ref(owner)]}})
        await world.settle()
        assert world.server.lookup.get("", "configmaps", "kube-public", "far") is None
        # Nothing can be said of a cluster-scoped object that names an owner in a namespace.
        assert world.server.lookup.get("", "nodes", "", "wide") is not None

    simulate(scenario)


def test_what_comes_after_its_owner_went_goes_too() -> None:
    async def scenario(world: World) -> None:
        owner = await world.config("owner")
        await world.delete("owner")
        await world.config("late", ref(owner))
        await world.settle()
        assert world.left() == []

    simulate(scenario)


def test_background_deletion_reaches_all_generations() -> None:
    async def scenario(world: World) -> None:
        first = await world.config("first")
        second = await world.config("second", ref(first))
        await world.config("third", ref(second))
        await world.delete("first")
        assert world.left() == ["second", "third"]
        await world.settle()
        assert world.left() == []

    simulate(scenario)


def test_other_owners_keep_a_dependent_and_the_dead_are_forgotten() -> None:
    async def scenario(world: World) -> None:
        one, two = await world.config("one"), await world.config("two")
        await world.config("dependent", ref(one), ref(two))
        await world.config("partly", ref(one), {**ref(two), "uid": UID})
        await world.delete("one")
        await world.settle()
        assert world.left() == ["dependent", "two"]
        assert world.owners("dependent") == ["two"]

    simulate(scenario)


def test_foreground_deletion_waits_for_dependents_that_block() -> None:
    async def scenario(world: World) -> None:
        owner = await world.config("owner")
        child = await world.config("child", ref(owner, **BLOCK), finalizers=HOLD)
        await world.config("grandchild", ref(child))
        await world.config("shared", ref(owner, **BLOCK), ref(await world.config("stays")))
        await world.delete("owner", "Foreground")
        await world.settle()
        assert world.left() == ["child", "owner", "shared", "stays"]
        assert world.owners("shared") == ["stays"]
        assert world.metadata("child")["finalizers"] == HOLD
        await world.call("PATCH", "configmaps/child", {"metadata": {"finalizers": None}})
        await world.settle()
        assert world.left() == ["shared", "stays"]

    simulate(scenario)


def test_foreground_deletion_does_not_wait_for_others() -> None:
    async def scenario(world: World) -> None:
        owner = await world.config("owner")
        await world.config("child", ref(owner), finalizers=HOLD)
        await world.delete("owner", "Foreground")
        await world.settle()
        assert world.left() == ["child"]
        assert "deletionTimestamp" in world.metadata("child")

    simulate(scenario)


def test_a_dependent_that_stops_blocking_lets_its_owner_go() -> None:
    async def scenario(world: World) -> None:
        owner = await world.config("owner")
        await world.config("child", ref(owner, **BLOCK), finalizers=HOLD)
        await world.delete("owner", "Foreground")
        await world.settle()
        await world.call("PATCH", "configmaps/child", {"metadata": {"ownerReferences": [ref(owner)]}})
        await world.settle()
        assert world.left() == ["child"]

    simulate(scenario)


@pytest.mark.parametrize("policy", ["Foreground", "Background"])
def test_circles_go(policy: str) -> None:
    async def scenario(world: World) -> None:
        one = await world.config("one")
        two = await world.config("two", ref(one, **BLOCK))
        await world.call("PATCH", "configmaps/one", {"metadata": {"ownerReferences": [ref(two, **BLOCK)]}})
        await world.settle()
        assert world.left() == ["one", "two"]
        await world.delete("one", policy)
        await world.settle()
        assert world.left() == []

    simulate(scenario)


def test_orphans_lose_their_reference_only() -> None:
    async def scenario(world: World) -> None:
        owner, other = await world.config("owner"), await world.config("other")
        await world.config("alone", ref(owner))
        await world.config("shared", ref(owner), ref(other))
        await world.delete("owner", "Orphan")
        await world.settle()
        assert world.left() == ["alone", "other", "shared"]
        assert (world.owners("alone"), world.owners("shared")) == ([], ["other"])

    simulate(scenario)


def test_a_dependents_own_finalizer_decides_how_it_goes() -> None:
    async def scenario(world: World) -> None:
        owner = await world.config("owner")
        child = await world.config("child", ref(owner), finalizers=["orphan"])
        await world.config("grandchild", ref(child))
        await world.delete("owner")
        await world.settle()
        assert world.left() == ["grandchild"]
        assert world.owners("grandchild") == []

    simulate(scenario)


def cups(served: bool = True) -> dict[str, Any]:
    version = {"name": "v1", "served": served, "storage": True, "schema": {"openAPIV3Schema": {"type": "object"}}}
    names = {"plural": "cups", "singular": "cup", "kind": "Cup", "listKind": "CupList"}
    spec = {"group": "x.y", "scope": "Namespaced", "names": names, "versions": [version]}
    return {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "cups.x.y"}, "spec": spec}


def test_kinds_that_are_served_later_are_judged_then() -> None:
    async def scenario(world: World) -> None:
        await world.config("dependent", {"apiVersion": "x.y/v1", "kind": "Cup", "name": "c", "uid": UID})
        await world.settle()
        assert world.left() == ["dependent"]
        await world.made("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", cups())
        await world.settle()
        assert world.left() == []

    simulate(scenario)


def test_dependents_of_objects_that_went_with_their_definition_go() -> None:
    async def scenario(world: World) -> None:
        definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
        await world.made(definitions, cups())
        cup = await world.made("/apis/x.y/v1/namespaces/default/cups", {"apiVersion": "x.y/v1", "kind": "Cup", "metadata": {"name": "c"}})
        await world.config("dependent", {**ref(cup), "apiVersion": "x.y/v1", "kind": "Cup"})
        await world.settle()
        assert world.left() == ["dependent"]
        await world.call("DELETE", f"{definitions}/cups.x.y")
        await world.settle()
        assert world.left() == []

    simulate(scenario)


def test_deletes_come_in_the_order_in_which_dependents_came() -> None:
    async def scenario(world: World) -> None:
        owner = await world.config("owner")
        names = [f"d{(i * 7) % 200}" for i in range(200)]
        for name in names:
            await world.config(name, ref(owner))
        await world.delete("owner")
        await world.settle()
        assert world.deleted == ["owner", *names]

    simulate(scenario)


def test_refused_deletions_are_tried_again() -> None:
    refusing = True

    async def check(review: dict[str, Any]) -> dict[str, Any]:
        response = {"uid": review["request"]["uid"], "allowed": not refusing}
        return {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response}

    async def scenario(world: World) -> None:
        nonlocal refusing
        owner = await world.config("owner")
        await world.config("child", ref(owner))
        await world.delete("owner")
        rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["DELETE"], "resources": ["configmaps"]}
        hook = {"name": "h.x.y", "clientConfig": {"url": "https://h"}, "rules": [rule]}
        hook |= {"sideEffects": "None", "admissionReviewVersions": ["v1"]}
        path = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"
        await world.made(path, {"metadata": {"name": "h"}, "webhooks": [hook]})
        await world.settle(30)
        assert world.left() == ["child"]
        refusing = False
        await world.settle(60)
        assert world.left() == []

    simulate(scenario, {"https://h": check})
