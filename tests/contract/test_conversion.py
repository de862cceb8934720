"""Conversion of custom resources by a webhook."""

import copy
import re
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio
from aiohttp import web

from tests.contract.client import Api
from tests.contract.kinds import CRDS, Kind, Obj
from tests.contract.things import definition
from tests.contract.webhooks import Hooks, hooks

ONE = {"type": "object", "properties": {"size": {"type": "integer"}}}
TWO = {"type": "object", "properties": {"sizes": {"type": "array", "items": {"type": "integer"}}}}


@pytest_asyncio.fixture
async def hook(api: Api) -> AsyncIterator[Hooks]:
    async with hooks() as running:
        running.on("convert", lambda request: converted(request))
        yield running
        # The garbage collector waits for every kind: none may stay that can no longer be converted.
        running.on("convert", lambda request: converted(request))
        name = f"cups.{api.ns}.example.com"
        (await api.delete(CRDS, name)).expect(200)
        await api.poll(lambda: api.gone(CRDS, name))


def converted(request: Obj) -> Obj:
    """size in v1 is sizes of one in v2."""
    out = []
    for obj in copy.deepcopy(request["objects"]):
        spec = obj.get("spec", {})
        if request["desiredAPIVersion"].endswith("/v2"):
            obj["spec"] = {"sizes": [spec["size"]] if "size" in spec else []}
        else:
            obj["spec"] = {"size": sum(spec.get("sizes", []))}
        out.append({**obj, "apiVersion": request["desiredAPIVersion"]})
    return {"result": {"status": "Success"}, "convertedObjects": out}


def kind(api: Api, version: str) -> Kind:
    return Kind(f"{api.ns}.example.com/{version}", "cups", "Cup")


async def serve(api: Api, hook: Hooks) -> tuple[Kind, Kind]:
    """The kind in both versions; v1 is stored."""
    body = definition("cups", "Cup", ONE, f"{api.ns}.example.com")
    schema = {"openAPIV3Schema": {"type": "object", "properties": {"spec": TWO}}}
    body["spec"]["versions"].append({"name": "v2", "served": True, "storage": False, "schema": schema})
    client = {"url": hook.url("convert"), "caBundle": hook.bundle}
    body["spec"]["conversion"] = {"strategy": "Webhook", "webhook": {"conversionReviewVersions": ["v1"], "clientConfig": client}}
    (await api.create(CRDS, body)).expect(201)
    one, two = kind(api, "v1"), kind(api, "v2")
    await api.poll(lambda: answers(api, one))
    await api.poll(lambda: answers(api, two))
    return one, two


async def answers(api: Api, k: Kind) -> bool:
    return (await api.list(k)).status == 200


async def test_an_object_is_converted_both_ways(api: Api, hook: Hooks) -> None:
    one, two = await serve(api, hook)
    made = await api.made(two, two.new("x", spec={"sizes": [2, 3]}))
    assert made["spec"] == {"sizes": [5]}
    assert (await api.read(one, "x"))["spec"] == {"size": 5}
    assert (await api.read(two, "x"))["spec"] == {"sizes": [5]}
    assert (await api.list(two)).items[0]["spec"] == {"sizes": [5]}


async def test_what_a_review_holds(api: Api, hook: Hooks) -> None:
    one, two = await serve(api, hook)
    await api.made(one, one.new("x", spec={"size": 4}))
    await api.read(two, "x")
    path, review = hook.asked[-1]
    assert path == "convert"
    assert (review["kind"], review["apiVersion"]) == ("ConversionReview", "apiextensions.k8s.io/v1")
    assert sorted(review["request"]) == ["desiredAPIVersion", "objects", "uid"]
    assert review["request"]["desiredAPIVersion"] == two.api_version
    assert [(o["apiVersion"], o["spec"], o["metadata"]["name"]) for o in review["request"]["objects"]] == [
        (one.api_version, {"size": 4}, "x")
    ]


async def test_the_stored_version_needs_no_webhook(api: Api, hook: Hooks) -> None:
    one, _ = await serve(api, hook)
    # It may be asked for the server's own caches of the other version; what matters is that nobody depends on its answer.
    hook.on("convert", lambda request: web.Response(status=500))
    await api.made(one, one.new("x", spec={"size": 4}))
    assert (await api.read(one, "x"))["spec"] == {"size": 4}


async def test_a_list_is_converted_object_by_object(api: Api, hook: Hooks) -> None:
    one, two = await serve(api, hook)
    for name in ("a", "b"):
        await api.made(one, one.new(name, spec={"size": 4}))
    hook.asked.clear()
    assert [i["spec"] for i in (await api.list(two)).items] == [{"sizes": [4]}] * 2
    # Real servers answer lists from caches that they fill when they like; what is asked is asked for each object.
    assert {len(review["request"]["objects"]) for _, review in hook.asked} <= {1}


async def test_a_patch_in_the_other_version(api: Api, hook: Hooks) -> None:
    one, two = await serve(api, hook)
    await api.made(one, one.new("x", spec={"size": 4}))
    patched = (await api.patch(two, "x", {"spec": {"sizes": [1, 2]}})).expect(200).body
    assert (patched["spec"], patched["metadata"]["generation"]) == ({"sizes": [3]}, 2)


async def test_an_apply_in_the_other_version(api: Api, hook: Hooks) -> None:
    one, two = await serve(api, hook)
    (await api.apply(two, two.new("x", spec={"sizes": [6]}), "first")).expect(201)
    read = await api.read(one, "x")
    assert read["spec"] == {"size": 6}
    assert [(e["manager"], e["apiVersion"]) for e in read["metadata"]["managedFields"]] == [("first", two.api_version)]


async def test_a_watch_is_converted(api: Api, hook: Hooks) -> None:
    one, two = await serve(api, hook)
    async with api.watch(two) as watch:
        await api.made(one, one.new("x", spec={"size": 4}))
        event = await watch.next()
    assert (event["type"], event["object"]["apiVersion"], event["object"]["spec"]) == ("ADDED", two.api_version, {"sizes": [4]})


def failing(message: str) -> Any:
    return lambda request: {"result": {"status": "Failure", "message": message}, "convertedObjects": []}


def renamed(request: Obj) -> Obj:
    answer = converted(request)
    for obj in answer["convertedObjects"]:
        obj["metadata"]["name"] = "other"
    return answer


def relabelled(request: Obj) -> Obj:
    answer = converted(request)
    for obj in answer["convertedObjects"]:
        obj["metadata"] = {**obj["metadata"], "labels": {"l": "m"}, "generation": 99}
    return answer


def unconverted(request: Obj) -> Obj:
    return {"result": {"status": "Success"}, "convertedObjects": request["objects"]}


def short(request: Obj) -> Obj:
    return {"result": {"status": "Success"}, "convertedObjects": []}


FAILURES = [
    ("failure", failing("cannot"), "conversion webhook for {one}, Kind=Cup failed: cannot"),
    ("renamed", renamed, "conversion webhook for {one}, Kind=Cup returned invalid object: must have the same name: x != other"),
    (
        "unconverted",
        unconverted,
        "conversion webhook for {one}, Kind=Cup returned invalid object at index 0: invalid groupVersion (expected {two}, received {one})",
    ),
    ("short", short, "conversion webhook for {one}, Kind=Cup returned 0 objects, expected 1"),
    (
        "wrong_uid",
        lambda request: {**converted(request), "uid": "x"},
        'conversion webhook for {one}, Kind=Cup failed: expected response.uid="UID", got "x"',
    ),
]


@pytest.mark.parametrize(("answer", "message"), [row[1:] for row in FAILURES], ids=[row[0] for row in FAILURES])
async def test_a_failed_conversion(api: Api, hook: Hooks, answer: Any, message: str) -> None:
    one, two = await serve(api, hook)
    await api.made(one, one.new("x", spec={"size": 4}))
    hook.on("convert", answer)
    reply = await api.get(two, "x")
    assert (reply.status, re.sub(r'uid="[0-9a-f-]+"', 'uid="UID"', reply.message)) == (
        500,
        message.format(one=one.api_version, two=two.api_version),
    )
    (await api.get(one, "x")).expect(200)


async def test_labels_may_change_in_conversion_and_other_metadata_may_not(api: Api, hook: Hooks) -> None:
    one, two = await serve(api, hook)
    await api.made(one, one.new("x", spec={"size": 4}))
    hook.on("convert", relabelled)
    meta = (await api.read(two, "x"))["metadata"]
    assert (meta["labels"], meta["generation"]) == ({"l": "m"}, 1)


async def test_a_webhook_that_does_not_answer(api: Api, hook: Hooks) -> None:
    one, two = await serve(api, hook)
    await api.made(one, one.new("x", spec={"size": 4}))
    hook.port = 1
    client = {"url": hook.url("convert")}
    (await api.patch(CRDS, f"cups.{one.group}", {"spec": {"conversion": {"webhook": {"clientConfig": client}}}})).expect(200)

    async def refused() -> Any:
        reply = await api.get(two, "x")
        return reply if reply.status == 500 else None

    reply = await api.poll(refused)
    assert reply.message.startswith(
        f'conversion webhook for {one.api_version}, Kind=Cup failed: Post "https://127.0.0.1:1/convert?timeout=30s": dial tcp 127.0.0.1:1'
    )
