"""Watches that begin with what exists: sendInitialEvents."""

from typing import Any

import pytest

from tests.contract.client import Api
from tests.contract.kinds import CONFIGMAPS, SECRETS, Kind, Obj, configmap, widget

END = "k8s.io/initial-events-end"
ASK: dict[str, Any] = {"sendInitialEvents": True, "resourceVersionMatch": "NotOlderThan", "allowWatchBookmarks": True}

NOT_ASK: dict[str, Any] = {**ASK, "sendInitialEvents": False}


def is_end(event: Obj) -> bool:
    return event["type"] == "BOOKMARK" and event["object"]["metadata"].get("annotations", {}).get(END) == "true"


@pytest.mark.parametrize("version", ["none", "0", "first"])
async def test_what_exists_then_the_mark_then_changes(api: Api, version: str) -> None:
    first = await api.made(CONFIGMAPS, configmap("a"))
    last = await api.made(CONFIGMAPS, configmap("b"))
    query: Obj = {"none": {}, "0": {"resourceVersion": 0}, "first": {"resourceVersion": first["metadata"]["resourceVersion"]}}[version]
    await api.caught_up(CONFIGMAPS)
    async with api.watch(CONFIGMAPS, **ASK, **query) as watch:
        events = await watch.take(3)
        assert sorted((e["object"]["metadata"]["name"], e["type"]) for e in events[:2]) == [("a", "ADDED"), ("b", "ADDED")]
        assert is_end(events[2])
        mark = events[2]["object"]
        assert (mark["kind"], mark["apiVersion"]) == ("ConfigMap", "v1")
        assert sorted(mark["metadata"]) == ["annotations", "resourceVersion"]
        assert int(mark["metadata"]["resourceVersion"]) >= int(last["metadata"]["resourceVersion"])
        await api.delete(CONFIGMAPS, "a")
        assert await watch.named(1) == [("DELETED", "a")]


async def test_the_mark_comes_also_when_there_is_nothing(api: Api) -> None:
    async with api.watch(SECRETS, **ASK) as watch:
        assert is_end(await watch.next())


async def test_of_a_custom_resource_with_a_selector(api: Api, widgets: Kind) -> None:
    await api.made(widgets, widget("a", labels={"in": "y"}))
    await api.made(widgets, widget("b"))
    async with api.watch(widgets, labelSelector="in", **ASK) as watch:
        events = await watch.take(2)
    assert events[0]["object"]["metadata"]["name"] == "a"
    assert is_end(events[1])
    assert (events[1]["object"]["kind"], events[1]["object"]["apiVersion"]) == ("Widget", "contract.example.com/v1")


async def test_metadata_only(api: Api) -> None:
    await api.made(CONFIGMAPS, configmap("a"))
    async with api.watch(CONFIGMAPS, accept="application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1", **ASK) as watch:
        added, mark = await watch.take(2)
    assert added["object"]["kind"] == "PartialObjectMetadata"
    assert is_end(mark)
    assert mark["object"]["kind"] == "PartialObjectMetadata"


async def test_without_bookmarks_no_mark_comes(api: Api) -> None:
    await api.made(CONFIGMAPS, configmap("a"))
    async with api.watch(CONFIGMAPS, sendInitialEvents=True, resourceVersionMatch="NotOlderThan", timeoutSeconds=2) as watch:
        assert [e["type"] for e in await watch.rest()] == ["ADDED"]


async def test_false_sends_nothing_that_exists(api: Api) -> None:
    await api.made(CONFIGMAPS, configmap("a"))
    async with api.watch(CONFIGMAPS, **NOT_ASK) as watch:
        await api.made(CONFIGMAPS, configmap("b"))
        event = await watch.until(lambda event: event["type"] != "BOOKMARK")
        assert (event["type"], event["object"]["metadata"]["name"]) == ("ADDED", "b")


async def test_a_version_of_the_future_is_an_error_event(api: Api) -> None:
    rv = int((await api.list(CONFIGMAPS)).rv) + 1_000_000
    async with api.watch(CONFIGMAPS, resourceVersion=rv, **ASK) as watch:
        event = await watch.next(8)
    status = event["object"]
    assert (event["type"], status["code"], status["reason"]) == ("ERROR", 504, "Timeout")
    assert status["message"].startswith(f"Timeout: Too large resource version: {rv}, current: ")
    assert status["details"]["causes"] == [{"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}]


MATCH = "resourceVersionMatch"
NEEDS_MATCH = f"{MATCH}: Forbidden: sendInitialEvents requires setting resourceVersionMatch to NotOlderThan"
NEEDS_INITIAL = f"{MATCH}: Forbidden: resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided"
ONLY = f'{MATCH}: Unsupported value: "Exact": supported values: "NotOlderThan"'
BAD = [
    ({"sendInitialEvents": True}, NEEDS_MATCH),
    ({"sendInitialEvents": False}, NEEDS_MATCH),
    ({"sendInitialEvents": "foo"}, NEEDS_MATCH),
    ({"sendInitialEvents": True, MATCH: "Exact"}, f"[{NEEDS_MATCH}, {ONLY}]"),
    ({MATCH: "NotOlderThan", "resourceVersion": 1}, NEEDS_INITIAL),
    ({MATCH: "Exact", "resourceVersion": 1}, f"[{NEEDS_INITIAL}, {ONLY}]"),
    ({**ASK, "continue": "x"}, f"{MATCH}: Forbidden: resourceVersionMatch is forbidden when continue is provided"),
]


@pytest.mark.parametrize(("query", "why"), BAD, ids=[str(i) for i in range(len(BAD))])
async def test_options_that_do_not_fit_together(api: Api, query: Obj, why: str) -> None:
    async with api.watch(CONFIGMAPS, **query) as watch:
        reply = (await watch.reply()).expect(422, "Invalid", f'ListOptions.meta.k8s.io "" is invalid: {why}')
    assert reply.details["kind"] == "ListOptions"
