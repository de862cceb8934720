"""Conversion webhooks, called in process."""

import copy
from collections.abc import Callable
from typing import Any

import anyio
import pytest

from tests.unit.sim.careworld import Obj, World, simulate

PATH = "/apis/x.y/{}/namespaces/default/cups"
WHAT = "conversion webhook for x.y/v1, Kind=Cup"


def definition() -> Obj:
    def version(name: str, field: str, kind: str) -> Obj:
        schema = {"type": "object", "properties": {field: {"type": kind}}}
        return {"name": name, "served": True, "storage": name == "v1", "schema": {"openAPIV3Schema": schema}}

    client = {"service": {"name": "s", "namespace": "n", "path": "/convert"}}
    names = {"plural": "cups", "singular": "cup", "kind": "Cup", "listKind": "CupList"}
    spec = {
        "group": "x.y",
        "scope": "Namespaced",
        "names": names,
        "versions": [version("v1", "size", "integer"), version("v2", "width", "integer")],
        "conversion": {"strategy": "Webhook", "webhook": {"conversionReviewVersions": ["v1"], "clientConfig": client}},
    }
    return {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "cups.x.y"}, "spec": spec}


class Webhook:
    """size in v1 is width in v2. `spoil` changes what it answers; `sizes` are the numbers of objects that it was sent."""

    def __init__(self) -> None:
        self.spoil: Callable[[Obj], None] = lambda response: None
        self.sizes: list[int] = []
        self.delay_s = 0.0

    async def __call__(self, review: Obj) -> Obj:
        request = review["request"]
        self.sizes.append(len(request["objects"]))
        await anyio.sleep(self.delay_s)
        out: list[Obj] = []
        for obj in copy.deepcopy(request["objects"]):
            before, after = ("size", "width") if request["desiredAPIVersion"] == "x.y/v2" else ("width", "size")
            if before in obj:
                obj[after] = obj.pop(before)
            out.append({**obj, "apiVersion": request["desiredAPIVersion"]})
        response = {"uid": request["uid"], "result": {"status": "Success"}, "convertedObjects": out}
        self.spoil(response)
        return {"apiVersion": review["apiVersion"], "kind": review["kind"], "response": response}


def with_cup(scenario: Callable[[World, Webhook], Any]) -> None:
    """A cup `c` of size 4 is stored."""
    webhook = Webhook()

    async def main(world: World) -> None:
        await world.made("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", definition())
        await world.made(PATH.format("v1"), {"apiVersion": "x.y/v1", "kind": "Cup", "metadata": {"name": "c"}, "size": 4})
        assert webhook.sizes == []
        await scenario(world, webhook)

    simulate(main, {"https://s.n.svc:443/convert": webhook})


def test_objects_are_converted_one_by_one_in_both_directions() -> None:
    async def scenario(world: World, webhook: Webhook) -> None:
        await world.made(PATH.format("v2"), {"apiVersion": "x.y/v2", "kind": "Cup", "metadata": {"name": "d"}, "width": 5})
        assert (await world.call("GET", PATH.format("v1") + "/d"))[1]["size"] == 5
        webhook.sizes.clear()
        _, listed = await world.call("GET", PATH.format("v2"))
        assert [(o["apiVersion"], o["width"]) for o in listed["items"]] == [("x.y/v2", 4), ("x.y/v2", 5)]
        assert webhook.sizes == [1, 1]
        _, patched = await world.call("PATCH", PATH.format("v2") + "/c", {"width": 6})
        assert (patched["width"], patched["metadata"]["generation"]) == (6, 2)

    with_cup(scenario)


def first(change: Callable[[Obj], Any]) -> Callable[[Obj], None]:
    return lambda response: change(response["convertedObjects"][0])


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda r: r.update(result={"status": "Failure", "message": "cannot"}), f"{WHAT} failed: cannot"),
        (lambda r: r.update(result={"status": "Failure"}), f"{WHAT} failed: response.result.status was 'Failure', not 'Success'"),
        (lambda r: r.update(convertedObjects=[]), f"{WHAT} returned 0 objects, expected 1"),
        (first(lambda o: o.update(kind="Mug")), f"{WHAT} returned invalid object at index 0: invalid kind (expected Cup, received Mug)"),
        (
            first(lambda o: o.update(apiVersion="x.y/v1")),
            f"{WHAT} returned invalid object at index 0: invalid groupVersion (expected x.y/v2, received x.y/v1)",
        ),
        (first(lambda o: o["metadata"].update(name="d")), f"{WHAT} returned invalid object: must have the same name: c != d"),
        (
            first(lambda o: o["metadata"].update(namespace="n")),
            f"{WHAT} returned invalid object: must have the same namespace: default != n",
        ),
        (
            first(lambda o: o["metadata"].update(labels={"l": 1})),
            f"{WHAT} returned invalid metadata: metadata.labels[l] must be a string, but is int64 in converted object",
        ),
    ],
)
def test_bad_conversions(spoil: Callable[[Obj], None], message: str) -> None:
    async def scenario(world: World, webhook: Webhook) -> None:
        webhook.spoil = spoil
        status, answer = await world.call("GET", PATH.format("v2") + "/c")
        assert (status, answer["message"]) == (500, message)
        assert (await world.call("GET", PATH.format("v1") + "/c"))[0] == 200

    with_cup(scenario)


def test_only_labels_and_annotations_of_metadata_change_and_unknown_fields_go() -> None:
    async def scenario(world: World, webhook: Webhook) -> None:
        spoiled = {"labels": {"l": "m"}, "generation": 9, "finalizers": ["a.b/c"], "resourceVersion": "1"}
        webhook.spoil = first(lambda o: (o["metadata"].update(spoiled), o.update(frob=1)))
        _, cup = await world.call("GET", PATH.format("v2") + "/c")
        assert (cup["metadata"]["labels"], cup["metadata"]["generation"]) == ({"l": "m"}, 1)
        assert "finalizers" not in cup["metadata"]
        assert "frob" not in cup

    with_cup(scenario)


def test_writes_that_wait_for_conversion_do_not_overwrite_each_other() -> None:
    async def scenario(world: World, webhook: Webhook) -> None:
        webhook.delay_s = 1.0
        answers: list[int] = []
        _, cup = await world.call("GET", PATH.format("v2") + "/c")

        async def write(width: int) -> None:
            answers.append((await world.call("PUT", PATH.format("v2") + "/c", {**cup, "width": width}))[0])

        async def make(width: int) -> None:
            body = {"apiVersion": "x.y/v2", "kind": "Cup", "metadata": {"name": "new"}, "width": width}
            answers.append((await world.call("POST", PATH.format("v2"), body))[0])

        for task in (write, make):
            answers.clear()
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(task, 1)
                tasks.start_soon(task, 2)
            assert sorted(answers) == [200 if task is write else 201, 409]

    with_cup(scenario)
