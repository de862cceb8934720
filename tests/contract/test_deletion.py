"""Deletion: finalizers, propagation, grace, collections."""

from datetime import datetime

import pytest

from tests.contract.client import Api
from tests.contract.kinds import (
    CONFIGMAPS,
    JOBS,
    NAMESPACES,
    NODES,
    PODS,
    SECRETS,
    SERVICES,
    Kind,
    Obj,
    configmap,
    node,
    pod,
    service,
    widget,
)

FINALIZER = "a.b/c"


def at(timestamp: str) -> float:
    return datetime.fromisoformat(timestamp).timestamp()


async def a_node(api: Api) -> str:
    return (await api.made(NODES, node(api.unique("node"))))["metadata"]["name"]


async def test_a_finalizer_holds_an_object(api: Api) -> None:
    made = await api.made(CONFIGMAPS, configmap("a", finalizers=[FINALIZER]))
    answer = (await api.delete(CONFIGMAPS, "a")).expect(200).body
    meta = answer["metadata"]
    assert answer["kind"] == "ConfigMap"
    assert (meta["deletionGracePeriodSeconds"], meta["finalizers"]) == (0, [FINALIZER])
    assert at(meta["deletionTimestamp"]) >= at(meta["creationTimestamp"])
    assert int(meta["resourceVersion"]) > int(made["metadata"]["resourceVersion"])
    assert await api.read(CONFIGMAPS, "a") == answer


async def test_a_second_delete_changes_nothing(api: Api) -> None:
    await api.made(CONFIGMAPS, configmap("a", finalizers=[FINALIZER]))
    first = (await api.delete(CONFIGMAPS, "a")).body
    assert (await api.delete(CONFIGMAPS, "a")).expect(200).body == first


async def test_the_last_finalizer_takes_the_object_along(api: Api) -> None:
    await api.made(CONFIGMAPS, configmap("a", finalizers=[FINALIZER, "d.e/f"]))
    deleting = (await api.delete(CONFIGMAPS, "a")).body
    fewer = (await api.patch(CONFIGMAPS, "a", {"metadata": {"finalizers": ["d.e/f"]}})).expect(200)
    assert fewer.meta["finalizers"] == ["d.e/f"]
    last = (await api.patch(CONFIGMAPS, "a", {"metadata": {"finalizers": None}})).expect(200).body
    assert "finalizers" not in last["metadata"]
    assert last["metadata"]["deletionTimestamp"] == deleting["metadata"]["deletionTimestamp"]
    assert last["metadata"]["resourceVersion"] == fewer.rv
    assert await api.gone(CONFIGMAPS, "a")


async def test_a_put_that_drops_the_last_finalizer_deletes(api: Api, widgets: Kind) -> None:
    await api.made(widgets, widget("a", finalizers=[FINALIZER]))
    deleting = (await api.delete(widgets, "a")).expect(200).body
    del deleting["metadata"]["finalizers"]
    (await api.update(widgets, deleting)).expect(200)
    assert await api.gone(widgets, "a")


async def test_finalizers_of_a_living_object_come_and_go(api: Api) -> None:
    await api.made(CONFIGMAPS, configmap("a", finalizers=[FINALIZER]))
    (await api.patch(CONFIGMAPS, "a", {"metadata": {"finalizers": None}})).expect(200)
    assert "deletionTimestamp" not in (await api.read(CONFIGMAPS, "a"))["metadata"]


async def test_an_object_being_deleted_may_change(api: Api) -> None:
    await api.made(CONFIGMAPS, configmap("a", finalizers=[FINALIZER]))
    await api.delete(CONFIGMAPS, "a")
    reply = (await api.patch(CONFIGMAPS, "a", {"data": {"x": "y"}, "metadata": {"labels": {"l": "m"}}})).expect(200)
    assert (reply.body["data"]["x"], reply.meta["labels"]) == ("y", {"l": "m"})


async def test_no_finalizer_may_be_added_to_it(api: Api) -> None:
    await api.made(CONFIGMAPS, configmap("a", finalizers=[FINALIZER]))
    await api.delete(CONFIGMAPS, "a")
    reply = await api.patch(CONFIGMAPS, "a", {"metadata": {"finalizers": [FINALIZER, "x.y/z"]}})
    why = 'no new finalizers can be added if the object is being deleted, found new finalizers []string{"x.y/z"}'
    reply.expect(422, "Invalid", f'ConfigMap "a" is invalid: metadata.finalizers: Forbidden: {why}')


async def test_its_deletion_cannot_be_taken_back(api: Api) -> None:
    await api.made(CONFIGMAPS, configmap("a", finalizers=[FINALIZER]))
    deleting = (await api.delete(CONFIGMAPS, "a")).body
    nulls = {"metadata": {"deletionTimestamp": None, "deletionGracePeriodSeconds": None}}
    assert (await api.patch(CONFIGMAPS, "a", nulls)).expect(200).body == deleting
    (await api.patch(CONFIGMAPS, "a", {"metadata": {"deletionGracePeriodSeconds": 77}})).expect(
        422, "Invalid", 'ConfigMap "a" is invalid: metadata.deletionGracePeriodSeconds: Invalid value: 77: field is immutable'
    )


async def test_its_name_is_taken(api: Api) -> None:
    await api.made(CONFIGMAPS, configmap("a", finalizers=[FINALIZER]))
    await api.delete(CONFIGMAPS, "a")
    reply = await api.create(CONFIGMAPS, configmap("a"))
    reply.expect(409, "AlreadyExists", 'object is being deleted: configmaps "a" already exists')


async def test_names_of_finalizers(api: Api, widgets: Kind) -> None:
    why = 'metadata.finalizers[0]: Invalid value: "plain": name is neither a standard finalizer name nor is it fully qualified'
    (await api.create(CONFIGMAPS, configmap("a", finalizers=["plain"]))).expect(422, "Invalid", f'ConfigMap "a" is invalid: {why}')
    for name in ("orphan", "foregroundDeletion", "kubernetes"):
        await api.made(CONFIGMAPS, configmap(name.lower(), finalizers=[name]))
    # Custom resources are let off with a warning.
    reply = (await api.create(widgets, widget("a", finalizers=["plain"]))).expect(201)
    advice = "prefer a domain-qualified finalizer name to avoid accidental conflicts with other finalizer writers"
    assert reply.warnings == (f'299 - "metadata.finalizers: \\"plain\\": {advice}"',)


PROPAGATION = [
    ({"propagationPolicy": "Foreground"}, [], ["foregroundDeletion"]),
    ({"propagationPolicy": "Orphan"}, [], ["orphan"]),
    ({"orphanDependents": True}, [], ["orphan"]),
    ({"propagationPolicy": "Background"}, [], None),
    ({"orphanDependents": False}, [], None),
    ({}, [], None),
    ({"propagationPolicy": "Foreground"}, [FINALIZER], [FINALIZER, "foregroundDeletion"]),
    ({"propagationPolicy": "Orphan"}, [FINALIZER], [FINALIZER, "orphan"]),
    ({"propagationPolicy": "Background"}, [FINALIZER], [FINALIZER]),
    ({"propagationPolicy": "Background"}, ["orphan"], None),
    ({"propagationPolicy": "Orphan"}, ["foregroundDeletion"], ["orphan"]),
    ({"propagationPolicy": "Foreground"}, ["orphan"], ["foregroundDeletion"]),
    ({}, ["orphan"], ["orphan"]),
    ({}, ["foregroundDeletion"], ["foregroundDeletion"]),
]


@pytest.mark.parametrize("where", ["body", "query"])
@pytest.mark.parametrize(("options", "before", "after"), PROPAGATION, ids=[f"{list(o.values())} {b}" for o, b, _ in PROPAGATION])
async def test_propagation_sets_finalizers(api: Api, where: str, options: Obj, before: list[str], after: list[str] | None) -> None:
    await api.made(CONFIGMAPS, configmap("a", finalizers=before))
    reply = await (api.delete(CONFIGMAPS, "a", options) if where == "body" else api.delete(CONFIGMAPS, "a", **options))
    if after is None:
        assert reply.expect(200).body["status"] == "Success"
        assert await api.gone(CONFIGMAPS, "a")
    else:
        assert reply.expect(200).meta["finalizers"] == after
        assert (await api.read(CONFIGMAPS, "a"))["metadata"]["finalizers"] == after


async def test_another_policy_may_be_chosen_later(api: Api) -> None:
    await api.made(CONFIGMAPS, configmap("a", finalizers=[FINALIZER]))
    first = (await api.delete(CONFIGMAPS, "a", propagationPolicy="Foreground")).expect(200).meta
    second = (await api.delete(CONFIGMAPS, "a", propagationPolicy="Orphan")).expect(200).meta
    assert (first["finalizers"], second["finalizers"]) == ([FINALIZER, "foregroundDeletion"], [FINALIZER, "orphan"])
    assert first["deletionTimestamp"] == second["deletionTimestamp"]


async def test_a_body_counts_more_than_the_query(api: Api) -> None:
    await api.made(CONFIGMAPS, configmap("a"))
    reply = await api.delete(CONFIGMAPS, "a", {"propagationPolicy": "Orphan"}, propagationPolicy="Foreground")
    assert reply.expect(200).meta["finalizers"] == ["orphan"]


async def test_jobs_keep_their_pods_by_default_and_say_so(api: Api) -> None:
    spec = {"template": {"spec": {"restartPolicy": "Never", "containers": [{"name": "m", "image": "b"}]}}}
    await api.made(JOBS, JOBS.new("a", spec=spec))
    reply = (await api.delete(JOBS, "a")).expect(200)
    assert reply.meta["finalizers"] == ["orphan"]
    assert "child pods are preserved by default when jobs are deleted" in reply.warnings[0]
    await api.made(JOBS, JOBS.new("b", spec=spec))
    assert (await api.delete(JOBS, "b", propagationPolicy="Background")).expect(200).warnings == ()


OPTIONS = 'DeleteOptions.meta.k8s.io "" is invalid: '
BAD = [
    (
        {"propagationPolicy": "Foo"},
        OPTIONS + 'propagationPolicy: Unsupported value: "Foo": supported values: "Foreground", "Background", "Orphan", "nil"',
    ),
    (
        {"propagationPolicy": "Orphan", "orphanDependents": True},
        OPTIONS + 'propagationPolicy: Invalid value: "Orphan": orphanDependents and deletionPropagation cannot be both set',
    ),
    ({"dryRun": ["foo"]}, OPTIONS + 'dryRun: Unsupported value: ["foo"]: supported values: "All"'),
]


@pytest.mark.parametrize(("options", "message"), BAD, ids=["policy", "both", "dryRun"])
async def test_bad_options(api: Api, options: Obj, message: str) -> None:
    await api.made(CONFIGMAPS, configmap("a"))
    reply = (await api.delete(CONFIGMAPS, "a", options)).expect(422, "Invalid", message)
    assert (reply.details["kind"], reply.details["group"]) == ("DeleteOptions", "meta.k8s.io")
    query = {k: v[0] if isinstance(v, list) else v for k, v in options.items()}
    (await api.delete(CONFIGMAPS, "a", **query)).expect(422, "Invalid", message)
    await api.read(CONFIGMAPS, "a")


async def test_what_a_body_may_be(api: Api) -> None:
    for body in (
        {},
        {"kind": "DeleteOptions", "apiVersion": "v1"},
        {"kind": "DeleteOptions", "apiVersion": "meta.k8s.io/v1"},
        {"unknown": 1},
        {"gracePeriodSeconds": -1},
    ):
        await api.made(CONFIGMAPS, configmap("a"))
        (await api.delete(CONFIGMAPS, "a", body)).expect(200)
        assert await api.gone(CONFIGMAPS, "a")
    reply = (await api.delete(CONFIGMAPS, "a", {"kind": "Foo", "apiVersion": "v1"})).expect(400, "BadRequest")
    assert reply.message.startswith('no kind "Foo" is registered for version "v1" in scheme')
    reply = await api.request("DELETE", CONFIGMAPS.path(api.ns, "a"), "[]")
    assert reply.expect(400, "BadRequest").message.startswith("couldn't get version/kind; json parse error: json: cannot unmarshal array")
    reply = await api.delete(CONFIGMAPS, "a", gracePeriodSeconds="abc")
    reply.expect(400, "BadRequest", 'strconv.ParseInt: parsing "abc": invalid syntax')


# id: on a node, pod's own grace, wanted, grace afterwards (None: gone at once)
GRACE = [
    (True, None, None, 30),
    (True, 7, None, 7),
    (True, None, 5, 5),
    (True, None, 0, None),
    (True, 0, None, None),
    (True, 7, -3, 1),
    (False, None, None, None),
    (False, None, 5, None),
]


@pytest.mark.parametrize(("bound", "own", "wanted", "after"), GRACE, ids=[str(row) for row in GRACE])
async def test_grace_of_pods(api: Api, bound: bool, own: int | None, wanted: int | None, after: int | None) -> None:
    spec = {} if own is None else {"terminationGracePeriodSeconds": own}
    await api.made(PODS, pod("a", node=await a_node(api) if bound else "", spec=spec))
    options = {} if wanted is None else {"gracePeriodSeconds": wanted}
    answer = (await api.delete(PODS, "a", options)).expect(200).body
    meta = answer["metadata"]
    assert (answer["kind"], meta["deletionGracePeriodSeconds"]) == ("Pod", after or 0)
    # The time when it should be gone, not when it was asked for.
    assert after is None or after <= at(meta["deletionTimestamp"]) - at(meta["creationTimestamp"]) <= after + 3
    if after is None:
        assert await api.gone(PODS, "a")
    else:
        assert await api.read(PODS, "a") == answer


async def test_grace_can_only_get_shorter(api: Api) -> None:
    await api.made(PODS, pod("a", node=await a_node(api)))
    graces = [30, 10, 3, 3, 3]
    for wanted, expected in zip([None, 10, 3, 50, None], graces, strict=True):
        reply = await api.delete(PODS, "a", {} if wanted is None else {"gracePeriodSeconds": wanted})
        meta = reply.expect(200).meta
        assert (meta["deletionGracePeriodSeconds"], meta["generation"]) == (expected, 2)
        assert expected <= at(meta["deletionTimestamp"]) - at(meta["creationTimestamp"]) <= expected + 3
    (await api.delete(PODS, "a", {"gracePeriodSeconds": 0})).expect(200)
    assert await api.gone(PODS, "a")


@pytest.mark.parametrize("phase", ["Succeeded", "Failed"])
async def test_pods_that_ended_go_at_once(api: Api, phase: str) -> None:
    await api.made(PODS, pod("a", node=await a_node(api)))
    (await api.patch(PODS, "a", {"status": {"phase": phase}}, sub="status")).expect(200)
    assert (await api.delete(PODS, "a")).expect(200).meta["deletionGracePeriodSeconds"] == 0
    assert await api.gone(PODS, "a")


async def test_a_pod_waits_for_its_kubelet_and_its_finalizers(api: Api) -> None:
    await api.made(PODS, pod("a", node=await a_node(api), finalizers=[FINALIZER]))
    assert (await api.delete(PODS, "a")).expect(200).meta["deletionGracePeriodSeconds"] == 30
    (await api.patch(PODS, "a", {"metadata": {"finalizers": None}})).expect(200)
    await api.read(PODS, "a")
    # The kubelet's confirmation.
    (await api.delete(PODS, "a", {"gracePeriodSeconds": 0})).expect(200)
    assert await api.gone(PODS, "a")


async def test_a_pod_that_its_kubelet_confirmed_waits_for_finalizers(api: Api) -> None:
    await api.made(PODS, pod("a", node=await a_node(api), finalizers=[FINALIZER]))
    await api.delete(PODS, "a")
    meta = (await api.delete(PODS, "a", {"gracePeriodSeconds": 0})).expect(200).meta
    assert (meta["deletionGracePeriodSeconds"], meta["finalizers"]) == (0, [FINALIZER])
    (await api.patch(PODS, "a", {"metadata": {"finalizers": None}})).expect(200)
    assert await api.gone(PODS, "a")


async def test_grace_means_nothing_to_other_kinds(api: Api) -> None:
    await api.made(CONFIGMAPS, configmap("a"))
    (await api.delete(CONFIGMAPS, "a", {"gracePeriodSeconds": 60})).expect(200)
    assert await api.gone(CONFIGMAPS, "a")
    await api.made(CONFIGMAPS, configmap("a", finalizers=[FINALIZER]))
    assert (await api.delete(CONFIGMAPS, "a", {"gracePeriodSeconds": 60})).expect(200).meta["deletionGracePeriodSeconds"] == 0


async def test_a_collection(api: Api) -> None:
    for name in "abc":
        await api.made(CONFIGMAPS, configmap(name))
    reply = (await api.delete_all(CONFIGMAPS)).expect(200)
    assert (reply.body["kind"], reply.names) == ("ConfigMapList", ["a", "b", "c"])
    assert (await api.list(CONFIGMAPS)).items == []
    assert (await api.delete_all(CONFIGMAPS)).expect(200).items == []


@pytest.mark.parametrize(
    ("query", "left"),
    [
        ({"labelSelector": "n in (a,b)"}, ["c"]),
        ({"labelSelector": "n!=a"}, ["a"]),
        ({"fieldSelector": "metadata.name=c"}, ["a", "b"]),
        ({"fieldSelector": "metadata.name!=c", "labelSelector": "n=a"}, ["b", "c"]),
    ],
    ids=["labels", "labels not", "fields", "both"],
)
async def test_part_of_a_collection(api: Api, query: Obj, left: list[str]) -> None:
    for name in "abc":
        await api.made(CONFIGMAPS, configmap(name, labels={"n": name}))
    (await api.delete_all(CONFIGMAPS, **query)).expect(200)
    assert (await api.list(CONFIGMAPS)).names == left


async def test_a_collection_takes_options(api: Api) -> None:
    await api.made(CONFIGMAPS, configmap("a"))
    await api.made(CONFIGMAPS, configmap("b", finalizers=[FINALIZER]))
    reply = (await api.delete_all(CONFIGMAPS, {"propagationPolicy": "Foreground"})).expect(200)
    assert reply.names == ["a", "b"]
    left = (await api.list(CONFIGMAPS)).items
    assert [i["metadata"]["finalizers"] for i in left] == [["foregroundDeletion"], [FINALIZER, "foregroundDeletion"]]


async def test_a_collection_of_custom_resources(api: Api, widgets: Kind) -> None:
    for name in "ab":
        await api.made(widgets, widget(name, labels={"n": name}))
    reply = (await api.delete_all(widgets, labelSelector="n=a")).expect(200)
    assert (reply.body["kind"], reply.names) == ("WidgetList", ["a"])
    assert (await api.list(widgets)).names == ["b"]


async def test_collections_that_cannot_be_deleted(api: Api) -> None:
    (await api.delete_all(NAMESPACES)).expect(405, "MethodNotAllowed")
    (await api.delete_all(SECRETS, ns="")).expect(405, "MethodNotAllowed")
    await api.made(SERVICES, service("a"))
    (await api.delete_all(SERVICES)).expect(200)
    assert await api.gone(SERVICES, "a")


async def test_a_bad_selector_deletes_nothing(api: Api) -> None:
    await api.made(CONFIGMAPS, configmap("a"))
    (await api.delete_all(CONFIGMAPS, labelSelector="a b")).expect(400, "BadRequest")
    (await api.delete_all(CONFIGMAPS, fieldSelector="data.x=1")).expect(400, "BadRequest")
    assert (await api.list(CONFIGMAPS)).names == ["a"]
