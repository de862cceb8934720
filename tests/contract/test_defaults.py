"""Defaults of structural schemas."""

from typing import Any

import pytest

from tests.contract.client import Api
from tests.contract.kinds import CRDS, Kind
from tests.contract.rows import GONE, Step, apply, case, patch, post, run
from tests.contract.things import definition


def made(name: str, spec: str, expected: Any) -> Any:
    return case(name, post("things/t", f"{{spec: {spec}}}", {f"spec.{k}": v for k, v in expected.items()}))


CASES = [
    made("absent", "{}", {"whole": "given", "nulled": "given", "deep": {"level": 3}, "replicas": 1, "inner": GONE, "free": GONE}),
    made("null_replaced", "{whole: null}", {"whole": "given"}),
    made("null_kept", "{nulled: null}", {"nulled": None}),
    made("null_pruned", "{number: null, text: null}", {"number": GONE, "text": GONE}),
    made("nested", "{inner: {a: x}}", {"inner": {"a": "x", "b": "bee"}}),
    made("nested_in_default", "{deep: {note: x}}", {"deep": {"note": "x", "level": 3}}),
    made("in_list", "{map: [{name: a}]}", {"map": [{"name": "a", "kind": "plain"}]}),
    made("deep_null", "{deep: null}", {"deep": {"level": 3}}),
    made("zero_stays", "{replicas: 0, whole: ''}", {"replicas": 0, "whole": ""}),
    case("no_spec", post("things/t", "{}", {"spec": GONE})),
    case(
        "removed_returns",
        post("things/t", "{spec: {whole: x}}"),
        patch("merge", "things/t", "{spec: {whole: null}}", {"spec.whole": "given", "metadata.generation": 2}),
    ),
    case(
        "removed_default",
        post("things/t", "{spec: {}}"),
        patch("merge", "things/t", "{spec: {whole: null}}", {"metadata.resourceVersion": "<0.metadata.resourceVersion>"}),
    ),
    case(
        "json_patch_remove",
        post("things/t", "{spec: {}}"),
        patch("json", "things/t", [{"op": "remove", "path": "/spec/whole"}], {"spec.whole": "given", "metadata.generation": 1}),
    ),
    case("apply", apply("things/t", "{spec: {number: 2}}", {"@": 201, "spec.whole": "given", "@owned": ["one Apply: spec/number"]})),
    case(
        "applied_then_removed",
        apply("things/t", "{spec: {whole: x}}", {"@": 201}),
        apply("things/t", "{spec: {}}", {"spec.whole": "given", "@owned": ["one Apply: spec"]}),
    ),
    case(
        "clique",
        post(
            "podcliques/c",
            "{spec: {roleName: r, podSpec: {containers: [{name: a, image: i}]}}}",
            {"@": 422, "spec": GONE, "message": 'PodClique.grove.io "c" is invalid: spec.replicas: Required value'},
        ),
    ),
    case(
        "scaling_group",
        post(
            "podcliquescalinggroups/g",
            "{spec: {cliqueNames: [a]}}",
            {"@": 201, "spec": {"cliqueNames": ["a"], "minAvailable": 1, "replicas": 1}, "message": GONE},
        ),
    ),
]


@pytest.mark.parametrize("steps", CASES)
async def test_a_default(api: Api, steps: tuple[Step, ...]) -> None:
    await run(api, steps)


async def test_objects_from_before_a_default_show_it(api: Api) -> None:
    group = f"{api.ns}.example.com"
    kind = Kind(f"{group}/v1", "olds", "Old")
    spec = {"type": "object", "properties": {"a": {"type": "string"}}}
    await api.made(CRDS, definition("olds", "Old", spec, group))
    await api.poll(lambda: served(api, kind))
    made = await api.made(kind, kind.new("x", spec={}))
    change = [{"op": "add", "path": "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/a/default", "value": "new"}]
    (await api.patch(CRDS, f"olds.{group}", change, "json")).expect(200)
    read = await api.poll(lambda: defaulted(api, kind))
    assert read["metadata"] == made["metadata"]
    assert (await api.list(kind)).items[0]["spec"] == {"a": "new"}
    patched = (await api.patch(kind, "x", {"metadata": {"labels": {"l": "m"}}})).expect(200)
    assert (patched.body["spec"], patched.meta["generation"]) == ({"a": "new"}, 1)


async def served(api: Api, kind: Kind) -> bool:
    return (await api.list(kind)).status == 200


async def defaulted(api: Api, kind: Kind) -> object:
    read = await api.read(kind, "x")
    return read if read["spec"] else None
