"""Unknown and duplicate fields under fieldValidation."""

import pytest

from tests.contract.client import Api
from tests.contract.kinds import CONFIGMAPS, PODS, Kind, configmap, pod, widget

# JSON of a ConfigMap and of a Widget with mistakes, and how the mistakes are called, in order.
MISTAKES = {
    "configmaps": (
        '{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"a","nope":1},"data":{"a":"1","a":"2"},"foo":1}',
        ['unknown field "metadata.nope"', 'duplicate field "data.a"', 'unknown field "foo"'],
    ),
    "widgets": (
        '{"kind":"Widget","apiVersion":"contract.example.com/v1","metadata":{"name":"a","nope":1},'
        '"spec":{"size":1,"size":2,"bar":{"a":1}},"foo":1}',
        ['duplicate field "spec.size"', 'unknown field "metadata.nope"', 'unknown field "foo"', 'unknown field "spec.bar"'],
    ),
}


@pytest.mark.parametrize("plural", ["configmaps", "widgets"])
@pytest.mark.parametrize("validation", ["Strict", "Warn", "Ignore", "", None])
async def test_field_validation(api: Api, widgets: Kind, plural: str, validation: str | None) -> None:
    kind = widgets if plural == "widgets" else CONFIGMAPS
    body, mistakes = MISTAKES[plural]
    reply = await api.request("POST", kind.path(api.ns), body, query={"fieldValidation": validation})
    if validation == "Strict":
        version = kind.api_version.rpartition("/")[2]
        what = f'{kind.kind} in version "{version}" cannot be handled as a {kind.kind}'
        reply.expect(400, "BadRequest", f"{what}: strict decoding error: {', '.join(mistakes)}")
        assert await api.gone(kind, "a")
        return
    made = reply.expect(201).body
    quoted = [m.replace('"', '\\"') for m in mistakes]
    assert reply.warnings == (() if validation == "Ignore" else tuple(f'299 - "{m}"' for m in quoted))
    # The last of two values counts; what is unknown is dropped.
    assert (made.get("data") or made["spec"]) == ({"size": 2, "colour": "red"} if kind is widgets else {"a": "2"})
    assert "foo" not in made
    assert "nope" not in made["metadata"]


async def test_field_validation_of_nested_fields(api: Api) -> None:
    container = {"name": "m", "image": "b", "foo": 1, "ports": [{"containerPort": 80, "x": 1}]}
    body = pod("a", spec={"containers": [container], "bar": 1})
    names = ["spec.containers[0].foo", "spec.containers[0].ports[0].x", "spec.bar"]
    what = ", ".join(f'unknown field "{name}"' for name in names)
    reply = await api.create(PODS, body, fieldValidation="Strict")
    reply.expect(400, "BadRequest", f'Pod in version "v1" cannot be handled as a Pod: strict decoding error: {what}')
    reply = (await api.create(PODS, body)).expect(201)
    assert reply.warnings == tuple(f'299 - "unknown field \\"{name}\\""' for name in names)


async def test_names_of_fields_are_case_sensitive(api: Api) -> None:
    reply = (await api.create(CONFIGMAPS, {**CONFIGMAPS.new("a"), "Data": {"a": "b"}})).expect(201)
    assert reply.warnings == ('299 - "unknown field \\"Data\\""',)
    assert "data" not in reply.body


async def test_field_validation_of_put_and_patch(api: Api, widgets: Kind) -> None:
    await api.made(CONFIGMAPS, configmap("a"))
    reply = await api.update(CONFIGMAPS, {**configmap("a"), "foo": 1}, fieldValidation="Strict")
    what = 'ConfigMap in version "v1" cannot be handled as a ConfigMap'
    reply.expect(400, "BadRequest", f'{what}: strict decoding error: unknown field "foo"')
    reply = (await api.patch(CONFIGMAPS, "a", {"foo": 1}, fieldValidation="Strict")).expect(422, "Invalid")
    assert reply.message.startswith(' "" is invalid: patch: Invalid value: "{')
    assert reply.message.endswith('": strict decoding error: unknown field "foo"')
    assert reply.causes == [("patch", "FieldValueInvalid")]
    reply = (await api.patch(CONFIGMAPS, "a", {"foo": 1})).expect(200)
    assert reply.warnings == ('299 - "unknown field \\"foo\\""',)
    await api.made(widgets, widget("a"))
    reply = (await api.patch(widgets, "a", {"spec": {"bar": 1}}, fieldValidation="Strict")).expect(422, "Invalid")
    assert reply.message.endswith('": strict decoding error: unknown field "spec.bar"')


async def test_field_validation_of_yaml(api: Api) -> None:
    body = 'kind: ConfigMap\napiVersion: v1\nmetadata:\n  name: a\nfoo: 1\ndata:\n  a: "1"\n  a: "2"\n'
    query = {"fieldValidation": "Strict"}
    reply = await api.request("POST", CONFIGMAPS.path(api.ns), body, content_type="application/yaml", query=query)
    what = 'ConfigMap in version "v1" cannot be handled as a ConfigMap: strict decoding error'
    reply.expect(400, "BadRequest", f'{what}: yaml: unmarshal errors:\n  line 8: key "a" already set in map, unknown field "foo"')


def supported(options: str, field: str, value: str, values: str) -> str:
    return f'{options}.meta.k8s.io "" is invalid: {field}: Unsupported value: "{value}": supported values: {values}'


async def test_other_values_of_field_validation(api: Api) -> None:
    values = '"", "Ignore", "Strict", "Warn"'
    reply = await api.create(CONFIGMAPS, configmap("a"), fieldValidation="strict")
    reply.expect(422, "Invalid", supported("CreateOptions", "fieldValidation", "strict", values))
    reply = await api.update(CONFIGMAPS, configmap("a"), fieldValidation="strict")
    reply.expect(422, "Invalid", supported("UpdateOptions", "fieldValidation", "strict", values))
    reply = await api.patch(CONFIGMAPS, "a", {}, fieldValidation="strict")
    reply.expect(422, "Invalid", supported("PatchOptions", "fieldValidation", "strict", values))
