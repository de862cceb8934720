"""Writes through the whole server that contract cases cannot see into: what is shared, what is read again, what is told."""

import json
import random
from datetime import UTC, datetime
from typing import Any

import pytest

from sim.apiserver.custom.ruling import check_entries
from sim.apiserver.fields.managed import Manager
from sim.apiserver.fields.scales import parent_managers, replicas_place, scale_managers
from sim.apiserver.objects import copied
from sim.apiserver.patches import read_config
from sim.apiserver.reading import revision_of
from sim.apiserver.requests import Answer, Request
from sim.apiserver.resources import ObjectKey
from sim.apiserver.server import ApiServer
from sim.apiserver.status import StatusError
from sim.apiserver.storage import Change, Entry

MERGE, JSON, APPLY = "application/merge-patch+json", "application/json-patch+json", "application/apply-patch+yaml"
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
BOXES = "/apis/x.io/v1/namespaces/default/boxes"
POD = {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "i"}]}}


class FixedClock:
    """Time that stands still."""

    def now(self) -> datetime:
        return datetime(2026, 1, 1, tzinfo=UTC)

    def monotonic(self) -> float:
        return 0.0


class World:
    """A server with the namespace default, and what was told of it."""

    def __init__(self) -> None:
        self.server = ApiServer(FixedClock(), random.Random(1))  # noqa: S311 - reproducible
        self.changes: list[Change] = []

    async def send(self, method: str, path: str, body: Any = None, content_type: str = "application/json", **query: str) -> dict[str, Any]:
        payload = b"" if body is None else json.dumps(body).encode()
        answer = await self.server.handle(Request(method, path, query, payload, content_type, "application/json", "test/1"))
        assert isinstance(answer, Answer)
        return json.loads(answer.body)

    def entry(self, plural: str, name: str, group: str = "", namespace: str = "default") -> Entry:
        table = self.server.storage.find(group, plural)
        assert table is not None
        return table.entries[ObjectKey(namespace, name)]


@pytest.fixture
async def world() -> World:
    made = World()
    await made.send("POST", "/api/v1/namespaces", {"metadata": {"name": "default"}})
    made.server.subscribe(made.changes.append)
    return made


def definition(**spec: Any) -> dict[str, Any]:
    text = {"type": "object", "properties": {"a": {"type": "string"}}}
    schema = {"type": "object", "properties": {"spec": {**text, **spec}, "status": text}}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}, "subresources": {"status": {}}}
    names = {"plural": "boxes", "kind": "Box"}
    crd = {"group": "x.io", "scope": "Namespaced", "names": names, "versions": [version]}
    return {"metadata": {"name": "boxes.x.io"}, "spec": crd}


def box(name: str = "b", **spec: str) -> dict[str, Any]:
    return {"apiVersion": "x.io/v1", "kind": "Box", "metadata": {"name": name}, "spec": spec}


async def test_a_status_write_shares_the_spec_and_leaves_the_old_object_alone(world: World):
    await world.send("POST", "/api/v1/namespaces/default/pods", POD)
    old = world.entry("pods", "p")
    before = copied(old.obj)
    for phase in ("Running", "Failed"):
        await world.send("PATCH", "/api/v1/namespaces/default/pods/p/status", {"status": {"phase": phase}}, MERGE)
    new = world.entry("pods", "p")
    assert new.obj["status"]["phase"] == "Failed"
    assert new.obj["spec"] is old.obj["spec"]
    assert old.obj == before


async def test_a_write_of_the_object_shares_nothing_that_hooks_might_change(world: World):
    await world.send("POST", "/api/v1/namespaces/default/pods", POD)
    old = world.entry("pods", "p")
    before = copied(old.obj)
    await world.send("PATCH", "/api/v1/namespaces/default/pods/p", {"metadata": {"labels": {"a": "b"}}}, MERGE)
    assert world.entry("pods", "p").obj["spec"] is not old.obj["spec"]
    assert old.obj == before


async def test_a_dry_run_leaves_no_trace(world: World):
    revision = world.server.storage.revision
    made = await world.send("POST", "/api/v1/namespaces/default/configmaps", {"metadata": {"name": "a"}}, dryRun="All")
    assert made["metadata"]["uid"]
    assert "resourceVersion" not in made["metadata"]
    assert world.server.storage.revision == revision
    assert world.changes == []


async def test_json_patches_see_managed_fields_only_where_they_ask(world: World):
    path = "/api/v1/namespaces/default/configmaps/a"
    await world.send("POST", path.rpartition("/")[0], {"metadata": {"name": "a"}, "data": {"x": "1"}})
    operations = [{"op": "test", "path": "/metadata/managedFields/0/manager", "value": "test"}]
    same = await world.send("PATCH", path, operations, JSON)
    assert same["metadata"]["resourceVersion"] == str(world.entry("configmaps", "a").revision)
    gone = await world.send("PATCH", path, [{"op": "remove", "path": "/metadata/managedFields"}], JSON)
    assert [m["manager"] for m in gone["metadata"]["managedFields"]] == ["test"]
    reset = await world.send("PATCH", path, [{"op": "replace", "path": "/metadata/managedFields", "value": [{}]}], JSON)
    assert "managedFields" not in reset["metadata"]


async def test_a_new_default_shows_in_old_objects_without_a_write(world: World):
    await world.send("POST", CRDS, definition())
    await world.send("POST", BOXES, box())
    revision = world.entry("boxes", "b", "x.io").revision
    place = "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/a/default"
    await world.send("PATCH", f"{CRDS}/boxes.x.io", [{"op": "add", "path": place, "value": "new"}], JSON)
    entry = world.entry("boxes", "b", "x.io")
    assert (entry.obj["spec"], entry.revision) == ({"a": "new"}, revision)
    assert [c for c in world.changes if c.resource.plural == "boxes"][1:] == []


async def test_a_definition_that_is_deleted_waits_says_so_and_goes(world: World):
    await world.send("POST", CRDS, definition())
    held = box("held")
    held["metadata"]["finalizers"] = ["x/y"]
    for obj in (held, box("free")):
        await world.send("POST", BOXES, obj)
    world.changes.clear()
    await world.send("DELETE", f"{CRDS}/boxes.x.io")
    waiting = await world.send("GET", f"{CRDS}/boxes.x.io")
    conditions = {c["type"]: (c["status"], c["reason"]) for c in waiting["status"]["conditions"]}
    assert conditions["Terminating"] == ("True", "InstanceDeletionInProgress")
    assert [i["metadata"]["name"] for i in (await world.send("GET", BOXES))["items"]] == ["held"]
    refused = await world.send("POST", BOXES, box("late"))
    assert refused["message"] == 'boxes.x.io "late" is forbidden: create not allowed while custom resource definition is terminating'
    await world.send("PATCH", f"{BOXES}/held", {"metadata": {"finalizers": None}}, MERGE)
    assert (await world.send("GET", f"{CRDS}/boxes.x.io"))["code"] == 404
    told = [(c.resource.plural, c.key.name, c.new is None) for c in world.changes if c.new is None]
    assert told == [("boxes", "free", True), ("boxes", "held", True), ("customresourcedefinitions", "boxes.x.io", True)]
    assert world.server.resource("x.io", "boxes") is None


async def test_a_patch_of_another_kind_is_refused_for_what_it_is(world: World):
    path = "/api/v1/namespaces/default/configmaps/a"
    await world.send("POST", path.rpartition("/")[0], {"metadata": {"name": "a"}})
    answer = await world.send("PATCH", path, {"kind": "Secret"}, MERGE)
    assert answer["code"] == 422
    assert answer["message"].endswith(": converting (v1.Secret) to (core.ConfigMap): unknown conversion")
    assert world.entry("configmaps", "a").obj["kind"] == "ConfigMap"


PLACES = {"x.io/v1": replicas_place(".spec.size"), "x.io/v2": None}
SIZE = {"f:spec": {"f:size": {}}}
REPLICAS = {"f:spec": {"f:replicas": {}}}


def owner(name: str, operation: Any, fields: dict[str, Any], version: str = "x.io/v1", subresource: str = "") -> Manager:
    return Manager(name, operation, subresource, version, "2026-01-01T00:00:00Z", fields)


def test_only_owners_of_replicas_own_the_scale():
    managers = (
        owner("a", "Apply", {"f:spec": {"f:size": {}, "f:x": {}}}),
        owner("b", "Update", {"f:spec": {"f:x": {}}}),
        owner("c", "Update", SIZE, "x.io/v2"),
        owner("d", "Update", SIZE, "x.io/v9"),
    )
    found = scale_managers(managers, PLACES, "autoscaling/v1")
    assert [(m.name, m.api_version, m.fields) for m in found] == [("a", "autoscaling/v1", REPLICAS)]


def test_appliers_keep_replicas_and_updaters_get_them_back_without_time():
    managers = (
        owner("a", "Apply", SIZE),
        owner("b", "Update", {"f:spec": {"f:size": {}, "f:x": {}}}),
        owner("d", "Update", SIZE, "x.io/v9"),
    )
    scale = scale_managers(managers, PLACES, "autoscaling/v1")
    found = parent_managers(managers, scale, PLACES, "x.io/v1")
    assert [(m.name, bool(m.time), m.fields) for m in found] == [
        ("a", True, SIZE),
        ("b", True, {"f:spec": {"f:x": {}}}),
        ("b", False, SIZE),
    ]


def test_who_no_longer_owns_the_scale_loses_the_replicas():
    managers = (owner("a", "Apply", {"f:spec": {"f:size": {}, "f:x": {}}}), owner("b", "Update", SIZE))
    found = parent_managers(managers, (owner("new", "Update", REPLICAS, "autoscaling/v1", "scale"),), PLACES, "x.io/v1")
    assert [(m.name, m.subresource, m.fields) for m in found] == [("a", "", {"f:spec": {"f:x": {}}}), ("new", "scale", SIZE)]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("a: [", "error converting YAML to JSON: yaml: line 1: did not find expected node content"),
        ("a: b: c", "error converting YAML to JSON: yaml: mapping values are not allowed in this context"),
        ("a: *x", "error converting YAML to JSON: yaml: unknown anchor 'x' referenced"),
        ("- a", "error unmarshaling JSON: while decoding JSON: json: cannot unmarshal array into Go value of type map[string]interface {}"),
    ],
)
def test_a_configuration_that_cannot_be_read(text: str, problem: str):
    with pytest.raises(StatusError) as refused:
        read_config(text.encode())
    assert refused.value.message == f"error decoding YAML: {problem}"


def rules(rule: str, **node: Any) -> list[str]:
    field = {"x-kubernetes-validations": [{"rule": rule}], **node}
    return [e.path for e in check_entries({"type": "object", "properties": {"x": field}}, "s")]


def test_bounds_make_rules_cheap_enough():
    text = {"type": "string", "maxLength": 10}
    twice = "self.all(x, self.exists_one(y, x == y))"
    where = "s.properties[x].x-kubernetes-validations[0].rule"
    assert rules(twice, type="array", items=text) == [where, where, "s"]
    assert rules(twice, type="array", items=text, maxItems=50) == []
    assert rules("self == oldSelf", type="string") == []
    assert rules("self.size() > 0", type="array", items={"type": "string"}) == []


@pytest.mark.parametrize("text", ["18446744073709551616", "9" * 5000])
def test_a_revision_out_of_range_is_refused(text: str) -> None:
    with pytest.raises(StatusError) as refused:
        revision_of(text)
    assert refused.value.message.endswith("value out of range")
    assert revision_of("0" * 5 + "18446744073709551615") == 2**64 - 1
