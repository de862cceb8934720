"""Several versions of a custom resource without conversion."""

from typing import Any

from tests.contract.client import Api
from tests.contract.kinds import CRDS, Kind
from tests.contract.things import definition

SPEC = {"type": "object", "properties": {"a": {"type": "string", "default": "one"}}}
SPEC_2 = {"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "string", "default": "two"}}}


def version(name: str, spec: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {
        "name": name,
        "served": True,
        "storage": False,
        "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec}}},
        **more,
    }


def kind(api: Api, name: str) -> Kind:
    return Kind(f"{api.ns}.example.com/{name}", "jars", "Jar")


async def serve(api: Api, *versions: dict[str, Any]) -> str:
    """Create the definition with v1 stored and further versions; its name."""
    body = definition("jars", "Jar", SPEC, f"{api.ns}.example.com")
    body["spec"]["versions"] += versions
    (await api.create(CRDS, body)).expect(201)
    for v in body["spec"]["versions"]:
        await api.poll(lambda v=v: answers(api, kind(api, v["name"]), 200 if v["served"] else 404))
    return body["metadata"]["name"]


async def answers(api: Api, k: Kind, status: int) -> bool:
    return (await api.list(k)).status == status


async def test_an_object_is_read_in_every_version(api: Api) -> None:
    await serve(api, version("v2", SPEC_2))
    one, two = kind(api, "v1"), kind(api, "v2")
    made = await api.made(one, one.new("x", spec={}))
    read = await api.read(two, "x")
    assert (read["apiVersion"], read["spec"]) == (two.api_version, {"a": "one"})
    assert read["metadata"]["uid"] == made["metadata"]["uid"]
    assert read["metadata"]["resourceVersion"] == made["metadata"]["resourceVersion"]
    assert (await api.list(two)).items[0]["apiVersion"] == two.api_version


async def test_fields_that_the_stored_version_lacks_are_lost(api: Api) -> None:
    await serve(api, version("v2", SPEC_2))
    one, two = kind(api, "v1"), kind(api, "v2")
    made = await api.made(two, two.new("x", spec={"b": "lost"}))
    assert (made["apiVersion"], made["spec"]) == (two.api_version, {"a": "one"})
    # What is stored is pruned and gets its defaults by the stored version, v1.
    assert (await api.read(one, "x"))["spec"] == {"a": "one"}
    assert (await api.read(two, "x"))["spec"] == {"a": "one"}


async def test_managed_fields_name_the_version_of_the_request(api: Api) -> None:
    await serve(api, version("v2", SPEC_2))
    one, two = kind(api, "v1"), kind(api, "v2")
    (await api.apply(one, one.new("x", spec={"a": "1"}), "first")).expect(201)
    (await api.apply(two, two.new("x", labels={"b": "2"}), "second")).expect(200)
    entries = (await api.read(one, "x"))["metadata"]["managedFields"]
    assert [(e["manager"], e["apiVersion"]) for e in entries] == [("first", one.api_version), ("second", two.api_version)]
    lost = await api.apply(two, two.new("x", spec={"b": "2"}), "third")
    assert (lost.status, lost.message) == (500, "failed to convert new object: .spec.b: field not declared in schema")


async def test_a_watch_speaks_the_version_of_its_path(api: Api) -> None:
    await serve(api, version("v2", SPEC_2))
    one, two = kind(api, "v1"), kind(api, "v2")
    await api.made(one, one.new("x", spec={}))
    async with api.watch(two) as watch:
        event = await watch.next()
        assert event["object"]["apiVersion"] == two.api_version
        (await api.patch(one, "x", {"spec": {"a": "9"}})).expect(200)
        assert (await watch.next())["object"]["spec"] == {"a": "9"}


async def test_a_version_that_is_not_served(api: Api) -> None:
    await serve(api, version("v2", SPEC_2, served=False))
    (await api.list(kind(api, "v2"))).expect(404)
    (await api.list(kind(api, "v1"))).expect(200)


async def test_a_deprecated_version_warns(api: Api) -> None:
    await serve(api, version("v2", SPEC_2, deprecated=True), version("v3", SPEC_2, deprecated=True, deprecationWarning="use v1"))
    assert (await api.list(kind(api, "v2"))).warnings == (f'299 - "{api.ns}.example.com/v2 Jar is deprecated"',)
    assert (await api.list(kind(api, "v3"))).warnings == ('299 - "use v1"',)
    assert (await api.list(kind(api, "v1"))).warnings == ()


async def test_an_update_adds_a_version_and_moves_storage(api: Api) -> None:
    name = await serve(api)
    one, two = kind(api, "v1"), kind(api, "v2")
    await api.made(one, one.new("x", spec={}))
    (await api.patch(CRDS, name, [{"op": "add", "path": "/spec/versions/-", "value": version("v2", SPEC_2)}], "json")).expect(200)
    await api.poll(lambda: answers(api, two, 200))
    assert (await api.read(two, "x"))["spec"] == {"a": "one"}
    move = [
        {"op": "replace", "path": "/spec/versions/0/storage", "value": False},
        {"op": "replace", "path": "/spec/versions/1/storage", "value": True},
    ]
    moved = (await api.patch(CRDS, name, move, "json")).expect(200).body
    assert moved["status"]["storedVersions"] == ["v1", "v2"]


async def test_a_stored_version_may_not_go(api: Api) -> None:
    name = await serve(api, version("v2", SPEC_2))
    move = [
        {"op": "replace", "path": "/spec/versions/0/storage", "value": False},
        {"op": "replace", "path": "/spec/versions/1/storage", "value": True},
    ]
    (await api.patch(CRDS, name, move, "json")).expect(200)
    reply = await api.patch(CRDS, name, [{"op": "remove", "path": "/spec/versions/0"}], "json")
    reply.expect(422, "Invalid")
    assert reply.causes == [("status.storedVersions[0]", "FieldValueInvalid")]


async def test_a_body_of_another_version_is_refused(api: Api) -> None:
    await serve(api, version("v2", SPEC_2))
    one, two = kind(api, "v1"), kind(api, "v2")
    reply = await api.create(one, {**two.new("x", spec={})})
    reply.expect(
        400, "BadRequest", f"the API version in the data ({two.api_version}) does not match the expected API version ({one.api_version})"
    )
