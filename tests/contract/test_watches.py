"""Watches: where they begin, what they say, how they end."""

import asyncio

import pytest

from tests.contract.client import Api, Watch
from tests.contract.kinds import CONFIGMAPS, NAMESPACES, PODS, SECRETS, Kind, Obj, configmap, pod, widget

PARTIAL = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
TABLE = "application/json;as=Table;g=meta.k8s.io;v=v1"


async def rv_of(api: Api, kind: Kind = CONFIGMAPS) -> str:
    return (await api.list(kind)).rv


def version(event: Obj) -> int:
    return int(event["object"]["metadata"]["resourceVersion"])


async def is_silent(watch: Watch, for_s: float = 0.4) -> bool:
    """Whether nothing comes for a moment."""
    try:
        await watch.next(for_s)
    except TimeoutError:
        return True
    return False


async def test_added_modified_deleted_with_whole_objects(api: Api) -> None:
    async with api.watch(CONFIGMAPS, resourceVersion=await rv_of(api)) as watch:
        assert watch.status == 200
        assert watch.headers["content-type"] == "application/json"
        assert watch.headers["transfer-encoding"] == "chunked"
        made = await api.made(CONFIGMAPS, configmap("a"))
        assert await watch.next() == {"type": "ADDED", "object": made}
        changed = (await api.patch(CONFIGMAPS, "a", {"data": {"x": "y"}})).body
        assert await watch.next() == {"type": "MODIFIED", "object": changed}
        await api.delete(CONFIGMAPS, "a")
        deleted = await watch.next()
        # The last state, but with the version of the deletion.
        assert deleted["type"] == "DELETED"
        assert version(deleted) > int(changed["metadata"]["resourceVersion"])
        changed["metadata"]["resourceVersion"] = deleted["object"]["metadata"]["resourceVersion"]
        assert deleted["object"] == changed


async def test_a_version_replays_what_came_after_it(api: Api) -> None:
    first = await api.made(CONFIGMAPS, configmap("a"))
    await api.patch(CONFIGMAPS, "a", {"data": {"x": "1"}})
    await api.patch(CONFIGMAPS, "a", {"data": {"x": "2"}})
    await api.made(CONFIGMAPS, configmap("b"))
    await api.delete(CONFIGMAPS, "a")
    async with api.watch(CONFIGMAPS, resourceVersion=first["metadata"]["resourceVersion"]) as watch:
        assert await watch.named(4) == [("MODIFIED", "a"), ("MODIFIED", "a"), ("ADDED", "b"), ("DELETED", "a")]
        assert [e["object"]["data"].get("x") for e in watch.events] == ["1", "2", None, "2"]
        versions = [version(e) for e in watch.events]
        assert versions == sorted(set(versions))


@pytest.mark.parametrize("query", [{}, {"resourceVersion": ""}, {"resourceVersion": 0}], ids=["none", "empty", "0"])
async def test_without_a_version_what_exists_comes_first(api: Api, query: Obj) -> None:
    for name in ("b", "a"):
        await api.made(CONFIGMAPS, configmap(name))
    await api.patch(CONFIGMAPS, "a", {"data": {"x": "1"}})
    await api.caught_up(CONFIGMAPS)
    async with api.watch(CONFIGMAPS, **query) as watch:
        assert sorted(await watch.named(2)) == [("ADDED", "a"), ("ADDED", "b")]
        await api.made(CONFIGMAPS, configmap("c"))
        assert await watch.named(1) == [("ADDED", "c")]


async def test_the_watch_of_a_namespace_sees_only_it(api: Api) -> None:
    other = f"{api.ns}-2"
    await api.made(NAMESPACES, NAMESPACES.new(other))
    rv = await rv_of(api)
    async with api.watch(CONFIGMAPS, resourceVersion=rv) as one, api.watch(CONFIGMAPS, ns="", resourceVersion=rv) as every:
        await api.made(CONFIGMAPS, configmap("a"), ns=other)
        await api.made(CONFIGMAPS, configmap("b"))
        assert await one.named(1) == [("ADDED", "b")]
        assert await every.named(2) == [("ADDED", "a"), ("ADDED", "b")]


async def test_other_kinds_are_not_seen(api: Api) -> None:
    async with api.watch(SECRETS, resourceVersion=await rv_of(api)) as watch:
        await api.made(CONFIGMAPS, configmap("a"))
        await api.made(SECRETS, SECRETS.new("b"))
        assert await watch.named(1) == [("ADDED", "b")]


async def test_one_object_by_its_name(api: Api) -> None:
    await api.made(CONFIGMAPS, configmap("a"))
    await api.made(CONFIGMAPS, configmap("b"))
    async with api.watch(CONFIGMAPS, fieldSelector="metadata.name=b") as watch:
        assert await watch.named(1) == [("ADDED", "b")]
        await api.patch(CONFIGMAPS, "a", {"data": {"x": "1"}})
        await api.delete(CONFIGMAPS, "b")
        assert await watch.named(1) == [("DELETED", "b")]


async def test_entering_a_label_selector_adds_and_leaving_deletes(api: Api) -> None:
    made = await api.made(CONFIGMAPS, configmap("a", labels={"n": "0"}))
    async with api.watch(CONFIGMAPS, labelSelector="n=1", resourceVersion=made["metadata"]["resourceVersion"]) as watch:
        entered = (await api.patch(CONFIGMAPS, "a", {"metadata": {"labels": {"n": "1"}}})).body
        assert await watch.next() == {"type": "ADDED", "object": entered}
        inside = (await api.patch(CONFIGMAPS, "a", {"data": {"x": "1"}})).body
        assert await watch.next() == {"type": "MODIFIED", "object": inside}
        left = (await api.patch(CONFIGMAPS, "a", {"metadata": {"labels": {"n": "2"}}})).body
        event = await watch.next()
        # The state before, which matched, with the version of the change.
        assert (event["type"], event["object"]["metadata"]["labels"]) == ("DELETED", {"n": "1"})
        assert event["object"]["metadata"]["resourceVersion"] == left["metadata"]["resourceVersion"]
        await api.delete(CONFIGMAPS, "a")
        assert await is_silent(watch)


async def test_entering_and_leaving_a_field_selector(api: Api) -> None:
    async with api.watch(PODS, fieldSelector="status.phase=Running", resourceVersion=await rv_of(api, PODS)) as watch:
        await api.made(PODS, pod("a"))
        for phase in ("Running", "Succeeded"):
            (await api.patch(PODS, "a", {"status": {"phase": phase}}, sub="status")).expect(200)
        events = await watch.take(2)
        assert [(e["type"], e["object"]["status"]["phase"]) for e in events] == [("ADDED", "Running"), ("DELETED", "Running")]


async def test_no_change_no_event(api: Api) -> None:
    made = await api.made(CONFIGMAPS, configmap("a"))
    async with api.watch(CONFIGMAPS, resourceVersion=made["metadata"]["resourceVersion"]) as watch:
        await api.update(CONFIGMAPS, made)
        await api.patch(CONFIGMAPS, "a", {})
        await api.patch(CONFIGMAPS, "a", {"data": {"x": "1"}}, dryRun="All")
        await api.create(CONFIGMAPS, configmap("b"), dryRun="All")
        await api.delete(CONFIGMAPS, "a", dryRun="All")
        await api.create(CONFIGMAPS, configmap("a"))
        assert await is_silent(watch)


async def test_deletion_with_a_finalizer_is_two_events(api: Api) -> None:
    made = await api.made(CONFIGMAPS, configmap("a", finalizers=["a.b/c"]))
    async with api.watch(CONFIGMAPS, resourceVersion=made["metadata"]["resourceVersion"]) as watch:
        await api.delete(CONFIGMAPS, "a")
        event = await watch.next()
        assert event["type"] == "MODIFIED"
        assert event["object"]["metadata"]["deletionTimestamp"]
        await api.patch(CONFIGMAPS, "a", {"metadata": {"finalizers": None}})
        event = await watch.next()
        # The last state that was stored, so the finalizer is still there.
        assert (event["type"], event["object"]["metadata"]["finalizers"]) == ("DELETED", ["a.b/c"])


async def test_timeout_ends_a_watch(api: Api) -> None:
    await api.made(CONFIGMAPS, configmap("a"))
    async with api.watch(CONFIGMAPS, resourceVersion=0, timeoutSeconds=1) as watch:
        assert [e["type"] for e in await watch.rest()] == ["ADDED"]


async def test_a_bookmark_comes_before_the_end(api: Api) -> None:
    rv = await rv_of(api)
    async with api.watch(CONFIGMAPS, resourceVersion=rv, allowWatchBookmarks=True, timeoutSeconds=5) as watch:
        made = await api.made(CONFIGMAPS, configmap("a"))
        added, *marks = await watch.rest(8)
    assert added["type"] == "ADDED"
    # One or two, depending on the clock of the server.
    assert {mark["type"] for mark in marks} == {"BOOKMARK"}
    last = marks[-1]
    assert (last["object"]["kind"], last["object"]["apiVersion"]) == ("ConfigMap", "v1")
    assert version(last) >= int(made["metadata"]["resourceVersion"])
    assert set(last["object"]["metadata"]) <= {"resourceVersion", "annotations"}


async def test_without_being_asked_for_no_bookmark_comes(api: Api) -> None:
    async with api.watch(CONFIGMAPS, resourceVersion=await rv_of(api), timeoutSeconds=2) as watch:
        assert await watch.rest() == []


async def test_a_version_that_is_too_old_is_told_as_an_event(api: Api, widgets: Kind) -> None:
    async with api.watch(widgets, resourceVersion=1) as watch:
        assert watch.status == 200
        event = await watch.next()
        assert event["type"] == "ERROR"
        status = event["object"]
        assert (status["kind"], status["code"], status["reason"]) == ("Status", 410, "Expired")
        assert status["message"].startswith("too old resource version: 1 (")
        assert await watch.rest() == []


async def test_a_version_of_the_future_waits(api: Api) -> None:
    async with api.watch(CONFIGMAPS, resourceVersion=int(await rv_of(api)) + 1_000_000) as watch:
        await api.made(CONFIGMAPS, configmap("a"))
        assert await is_silent(watch)


async def test_metadata_only(api: Api) -> None:
    made = await api.made(CONFIGMAPS, configmap("a", labels={"l": "1"}))
    async with api.watch(CONFIGMAPS, accept=PARTIAL) as watch:
        event = await watch.next()
    partial = {"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": made["metadata"]}
    assert event == {"type": "ADDED", "object": partial}


async def test_tables(api: Api, widgets: Kind) -> None:
    await api.made(CONFIGMAPS, configmap("a"))
    async with api.watch(CONFIGMAPS, accept=TABLE) as watch:
        first = (await watch.next())["object"]
        await api.made(CONFIGMAPS, configmap("b"))
        second = (await watch.next())["object"]
    assert (first["kind"], first["apiVersion"]) == ("Table", "meta.k8s.io/v1")
    assert [c["name"] for c in first["columnDefinitions"]] == ["Name", "Data", "Age"]
    assert (first["rows"][0]["cells"][:2], second["rows"][0]["cells"][:2]) == (["a", 1], ["b", 1])
    # Columns are described once per watch.
    assert second["columnDefinitions"] is None


async def test_yaml_cannot_be_streamed(api: Api) -> None:
    async with api.watch(CONFIGMAPS, accept="application/yaml") as watch:
        reply = await watch.reply()
    assert reply.status == 406
    assert "application/json;stream=watch" in reply.text


@pytest.mark.parametrize(("value", "watches"), [("1", True), ("", True), ("foo", True), ("false", False), ("0", False)])
async def test_what_asks_for_a_watch(api: Api, value: str, watches: bool) -> None:
    await api.made(CONFIGMAPS, configmap("a"))
    async with api.watch(CONFIGMAPS, watch=value) as watch:
        event = await watch.next()
    assert ("items" in event) == (not watches)


async def test_refused_before_it_begins(api: Api) -> None:
    async with api.watch(CONFIGMAPS, labelSelector="a b") as watch:
        (await watch.reply()).expect(400, "BadRequest", "unable to parse requirement: found 'b', expected: in, notin, =, ==, !=, gt, lt")
    async with api.watch(CONFIGMAPS, fieldSelector="a=b") as watch:
        (await watch.reply()).expect(400, "BadRequest")
    async with api.watch(CONFIGMAPS, resourceVersion="abc") as watch:
        why = 'resourceVersion: Invalid value: "abc": strconv.ParseUint: parsing "abc": invalid syntax'
        (await watch.reply()).expect(500, "", why)


async def test_limit_means_nothing_to_a_watch(api: Api) -> None:
    for name in "ab":
        await api.made(CONFIGMAPS, configmap(name))
    async with api.watch(CONFIGMAPS, limit=1) as watch:
        assert sorted(await watch.named(2)) == [("ADDED", "a"), ("ADDED", "b")]


async def test_the_old_path(api: Api) -> None:
    await api.made(CONFIGMAPS, configmap("a"))
    await api.made(CONFIGMAPS, configmap("b"))
    path = f"/api/v1/watch/namespaces/{api.ns}/configmaps"
    reply = (await api.request("GET", path, query={"timeoutSeconds": 1})).expect(200)
    assert len(reply.text.splitlines()) == 2
    reply = (await api.request("GET", f"{path}/a", query={"timeoutSeconds": 1})).expect(200)
    assert len(reply.text.splitlines()) == 1


async def test_watch_on_the_path_of_an_object_is_a_get(api: Api) -> None:
    made = await api.made(CONFIGMAPS, configmap("a"))
    path = CONFIGMAPS.path(api.ns, "a")
    assert (await api.request("GET", path, query={"watch": "true", "timeoutSeconds": 1})).expect(200).body == made


async def test_events_of_a_custom_resource(api: Api, widgets: Kind) -> None:
    async with api.watch(widgets, resourceVersion=await rv_of(api, widgets), labelSelector="!no") as watch:
        made = await api.made(widgets, widget("a"))
        reported = (await api.patch(widgets, "a", {"status": {"phase": "x"}}, sub="status")).body
        await api.delete(widgets, "a")
        events = await watch.take(3)
    assert events[:2] == [{"type": "ADDED", "object": made}, {"type": "MODIFIED", "object": reported}]
    assert (events[2]["type"], events[2]["object"]["status"]) == ("DELETED", {"phase": "x"})


async def test_many_watches_see_the_same_in_the_same_order(api: Api) -> None:
    rv = await rv_of(api)
    async with api.watch(CONFIGMAPS, resourceVersion=rv) as one, api.watch(CONFIGMAPS, resourceVersion=rv) as two:
        await asyncio.gather(*(api.made(CONFIGMAPS, configmap(f"n{i}")) for i in range(20)))
        events = await one.take(20)
        assert await two.take(20) == events
    versions = [version(e) for e in events]
    assert versions == sorted(versions)
    assert {e["object"]["metadata"]["name"] for e in events} == {f"n{i}" for i in range(20)}
