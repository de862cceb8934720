"""Bodies and queries that are wrong, and some that only look so."""

import json
from typing import Any

import pytest

from tests.contract.client import Api
from tests.contract.kinds import CONFIGMAPS, SECRETS, Kind, Obj, configmap, widget
from tests.contract.texts import UNKNOWN_MEDIA_TYPE

UNKNOWN = "the object provided is unrecognized (must be of type ConfigMap): "
PARSE = f"{UNKNOWN}couldn't get version/kind; json parse error: "
INTO_STRUCT = (
    'into Go value of type struct { APIVersion string "json:\\"apiVersion,omitempty\\""; Kind string "json:\\"kind,omitempty\\"" }'
)


def text(**fields: Any) -> str:
    """A ConfigMap as JSON without spaces."""
    return json.dumps({"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": "a"}, **fields}, separators=(",", ":"))


START = '{"kind":"ConfigMap","apiVersio ...'
MALFORMED: list[tuple[str, str | bytes, str]] = [
    ("open brace", "{", f"{PARSE}unexpected end of JSON input ({{)"),
    ("no value", '{"a":}', f"{PARSE}invalid character '}}' looking for beginning of value ({{\"a\":}})"),
    ("text after it", text() + " xx", f"{PARSE}invalid character 'x' after top-level value ({START})"),
    ("two objects", text() + "{}", f"{PARSE}invalid character '{{' after top-level value ({START})"),
    ("empty", "", f"{PARSE}unexpected end of JSON input (<empty>)"),
    ("empty list", "[]", f"{PARSE}json: cannot unmarshal array {INTO_STRUCT} (5b5d)"),
    ("string", '"x"', f"{PARSE}json: cannot unmarshal string {INTO_STRUCT} (227822)"),
    ("number", "5", f"{PARSE}json: cannot unmarshal number {INTO_STRUCT} (35)"),
    (
        "yaml",
        "kind: ConfigMap\napiVersion: v1\n",
        f"{PARSE}invalid character 'k' looking for beginning of value (6b696e643a20436f6e6669674d61700a61706956657273696f6e3a207631 ...)",
    ),
    ("kind is a number", text(kind=5), f"{PARSE}json: cannot unmarshal number into Go struct field .kind of type string "),
    ("null byte", text(data={"a": "@"}).replace("@", "\0"), f"{PARSE}invalid character '\\x00' in string literal ({START})"),
    ("byte order mark", b"\xef\xbb\xbf" + text().encode(), f"{PARSE}invalid character 'ï' looking for beginning of value ("),
    ("too deep", text(foo="@").replace('"@"', "[" * 11000 + "]" * 11000), f"{PARSE}invalid character '[' exceeded max depth ({START})"),
]


@pytest.mark.parametrize(("body", "message"), [row[1:] for row in MALFORMED], ids=[row[0] for row in MALFORMED])
async def test_malformed_json(api: Api, body: str | bytes, message: str) -> None:
    reply = (await api.request("POST", CONFIGMAPS.path(api.ns), body)).expect(400, "BadRequest")
    assert reply.message.startswith(message), reply.message
    assert reply.details == {}


async def test_malformed_bodies_of_custom_resources(api: Api, widgets: Kind) -> None:
    unknown = "the object provided is unrecognized (must be of type Widget): "
    path = widgets.path(api.ns)
    (await api.request("POST", path, "{")).expect(
        400, "BadRequest", f"{unknown}couldn't get version/kind; json parse error: unexpected end of JSON input ({{)"
    )
    (await api.request("POST", path, "{}")).expect(400, "BadRequest", f"{unknown}Object 'Kind' is missing in '{{}}' ({{}})")
    reply = (await api.create(widgets, {"apiVersion": widgets.api_version})).expect(400, "BadRequest")
    assert reply.message.startswith(f"{unknown}Object 'Kind' is missing in "), reply.message
    reply = await api.create(widgets, {"kind": "Widget"})
    versions = "() does not match the expected API version (contract.example.com/v1)"
    reply.expect(400, "BadRequest", f"the API version in the data {versions}")


async def test_null_is_an_empty_object(api: Api) -> None:
    why = "metadata.name: Required value: name or generateName is required"
    (await api.request("POST", CONFIGMAPS.path(api.ns), "null")).expect(422, "Invalid", f'ConfigMap "" is invalid: {why}')


async def test_a_put_of_nothing(api: Api) -> None:
    await api.made(CONFIGMAPS, configmap("a"))
    path = CONFIGMAPS.path(api.ns, "a")
    (await api.request("PUT", path, "")).expect(400, "BadRequest", f"{PARSE}unexpected end of JSON input (<empty>)")
    message = "the name of the object (a based on URL) was undeterminable: name must be provided"
    (await api.request("PUT", path, {"kind": "ConfigMap", "apiVersion": "v1"})).expect(400, "BadRequest", message)


HANDLED = 'ConfigMap in version "v1" cannot be handled as a ConfigMap: json: cannot unmarshal '
TYPES = [
    ({"data": {"a": 1}}, "number into Go struct field ConfigMap.data of type string"),
    ({"data": "x"}, "string into Go struct field ConfigMap.data of type map[string]string"),
    ({"metadata": []}, "array into Go struct field ConfigMap.metadata of type v1.ObjectMeta"),
    ({"metadata": {"name": 5}}, "number into Go struct field ObjectMeta.metadata.name of type string"),
    ({"metadata": {"name": "a", "labels": {"a": 1}}}, "number into Go struct field ObjectMeta.metadata.labels of type string"),
    ({"immutable": "yes"}, "string into Go struct field ConfigMap.immutable of type bool"),
]


@pytest.mark.parametrize(("fields", "message"), TYPES, ids=[str(fields) for fields, _ in TYPES])
async def test_wrong_types(api: Api, fields: Obj, message: str) -> None:
    (await api.create(CONFIGMAPS, {**configmap("a"), **fields})).expect(400, "BadRequest", HANDLED + message)


WRONG_KINDS = [
    ({"apiVersion": "v2"}, 'ConfigMap in version "v2"', 'no kind "ConfigMap" is registered for version "v2" in scheme'),
    ({"apiVersion": "apps/v1"}, 'ConfigMap in version "v1"', 'no kind "ConfigMap" is registered for version "apps/v1" in scheme'),
    ({"kind": "Foo"}, 'Foo in version "v1"', 'no kind "Foo" is registered for version "v1" in scheme'),
]


@pytest.mark.parametrize(("fields", "subject", "why"), WRONG_KINDS, ids=[str(row[0]) for row in WRONG_KINDS])
async def test_unknown_kinds_in_the_body(api: Api, fields: Obj, subject: str, why: str) -> None:
    start = f"{subject} cannot be handled as a ConfigMap: {why}"
    await api.made(CONFIGMAPS, configmap("old"))
    for reply in (
        await api.create(CONFIGMAPS, {**configmap("a"), **fields}),
        await api.update(CONFIGMAPS, {**configmap("old"), **fields}),
    ):
        assert reply.expect(400, "BadRequest").message.startswith(start), reply.message


async def test_another_kind_in_the_body(api: Api) -> None:
    what = 'Secret in version "v1" cannot be handled as a ConfigMap'
    reply = await api.create(CONFIGMAPS, SECRETS.new("a"))
    reply.expect(400, "BadRequest", f"{what}: converting (v1.Secret) to (core.ConfigMap): unknown conversion")


async def test_another_kind_in_the_body_of_a_custom_resource(api: Api, widgets: Kind) -> None:
    reply = await api.create(widgets, {**widget("a"), "kind": "Gadget"})
    reply.expect(422, "Invalid", 'Gadget.contract.example.com "a" is invalid: kind: Invalid value: "Gadget": must be Widget')
    reply = await api.create(widgets, {**widget("a"), "apiVersion": "contract.example.com/v2"})
    versions = "(contract.example.com/v2) does not match the expected API version (contract.example.com/v1)"
    reply.expect(400, "BadRequest", f"the API version in the data {versions}")


@pytest.mark.parametrize(
    "media_type", ["text/plain", "application/xml", "application/x-www-form-urlencoded", "application/cbor", "*/*", "application/json;;;"]
)
async def test_media_types_of_bodies(api: Api, widgets: Kind, media_type: str) -> None:
    for kind in (CONFIGMAPS, widgets):
        reply = await api.request("POST", kind.path(api.ns), "{}", content_type=media_type)
        reply.expect(415, "UnsupportedMediaType", UNKNOWN_MEDIA_TYPE)


@pytest.mark.parametrize("media_type", ["", "application/json; charset=utf-8", "APPLICATION/JSON"])
async def test_media_types_that_are_json(api: Api, media_type: str) -> None:
    (await api.request("POST", CONFIGMAPS.path(api.ns), text(), content_type=media_type)).expect(201)


async def test_a_media_type_that_no_patch_has(api: Api) -> None:
    await api.made(CONFIGMAPS, configmap("a"))
    reply = await api.patch(CONFIGMAPS, "a", {}, "application/json")
    reply.expect(415, "UnsupportedMediaType", "415: Unsupported Media Type")


async def test_yaml(api: Api, widgets: Kind) -> None:
    body = "# comment\nkind: ConfigMap\napiVersion: v1\nmetadata: {name: a}\ndata:\n  a: '1'\n  b: |\n    x\n    y\n"
    reply = await api.request("POST", CONFIGMAPS.path(api.ns), body, content_type="application/yaml")
    assert reply.expect(201).body["data"] == {"a": "1", "b": "x\ny\n"}
    body = "kind: Widget\napiVersion: contract.example.com/v1\nmetadata: {name: a}\nspec: {size: 3}\n"
    reply = await api.request("POST", widgets.path(api.ns), body, content_type="application/yaml")
    assert reply.expect(201).body["spec"] == {"size": 3, "colour": "red"}


async def test_json_is_yaml(api: Api) -> None:
    (await api.request("POST", CONFIGMAPS.path(api.ns), text(), content_type="application/yaml")).expect(201)


async def test_of_several_yaml_documents_the_first_counts(api: Api) -> None:
    document = "kind: ConfigMap\napiVersion: v1\nmetadata:\n  name: {}\n"
    body = f"{document.format('a')}---\n{document.format('b')}"
    (await api.request("POST", CONFIGMAPS.path(api.ns), body, content_type="application/yaml")).expect(201)
    assert (await api.list(CONFIGMAPS)).names == ["a"]


async def test_malformed_yaml(api: Api) -> None:
    reply = await api.request("POST", CONFIGMAPS.path(api.ns), "a: [", content_type="application/yaml")
    reply.expect(400, "BadRequest", f"{UNKNOWN}yaml: line 1: did not find expected node content (613a205b)")


STRINGS: list[tuple[str, bytes, str]] = [
    ("null character", b'"x\\u0000y"', "x\0y"),
    ("invalid UTF-8", b'"x\xffy"', "x\ufffdy"),
    ("lone surrogate", b'"\\ud800"', "\ufffd"),
    ("characters of many bytes", '"žluť 🐎 \\ud83d\\ude00 <&> \u2028"'.encode(), "žluť 🐎 😀 <&> \u2028"),
]


@pytest.mark.parametrize(("sent", "kept"), [row[1:] for row in STRINGS], ids=[row[0] for row in STRINGS])
async def test_strings(api: Api, sent: bytes, kept: str) -> None:
    body = text(data={"a": "@"}).encode().replace(b'"@"', sent)
    assert (await api.request("POST", CONFIGMAPS.path(api.ns), body)).expect(201).body["data"] == {"a": kept}
    assert (await api.read(CONFIGMAPS, "a"))["data"] == {"a": kept}


MIB = 1024 * 1024
TOO_LARGE = "Request entity too large: limit is 3145728"


async def test_large_bodies(api: Api) -> None:
    (await api.create(CONFIGMAPS, configmap("a", data={"a": "x" * (MIB - 10)}))).expect(201)
    reply = await api.create(CONFIGMAPS, configmap("b", data={"a": "x" * (MIB + 10)}))
    reply.expect(422, "Invalid", 'ConfigMap "b" is invalid: []: Too long: may not be more than 1048576 bytes')
    reply = await api.create(SECRETS, SECRETS.new("b", stringData={"a": "x" * (MIB + 10)}))
    reply.expect(422, "Invalid", 'Secret "b" is invalid: data: Too long: may not be more than 1048576 bytes')


@pytest.mark.parametrize("verb", ["create", "update", "patch"])
async def test_bodies_that_are_too_large(api: Api, verb: str) -> None:
    await api.made(CONFIGMAPS, configmap("a"))
    big = configmap("a", data={"a": "x" * (3 * MIB + 10)})
    match verb:
        case "create":
            reply = await api.create(CONFIGMAPS, big)
        case "update":
            reply = await api.update(CONFIGMAPS, big)
        case _:
            reply = await api.patch(CONFIGMAPS, "a", big)
    reply.expect(413, "RequestEntityTooLarge", TOO_LARGE)


async def test_field_managers(api: Api) -> None:
    start = 'CreateOptions.meta.k8s.io "" is invalid: fieldManager: '
    reply = await api.create(CONFIGMAPS, configmap("a"), fieldManager="x" * 129)
    reply.expect(422, "Invalid", f"{start}Too long: may not be more than 128 bytes")
    reply = await api.create(CONFIGMAPS, configmap("a"), fieldManager="a\x01")
    reply.expect(422, "Invalid", f'{start}Invalid value: "a\\x01": invalid character U+0001 (at position 1)')
    reply = await api.create(CONFIGMAPS, configmap("a"), fieldManager="x" * 128)
    assert reply.expect(201).meta["managedFields"][0]["manager"] == "x" * 128
    # Without one, it is the name of the program that asks.
    assert (await api.create(CONFIGMAPS, configmap("b"))).meta["managedFields"][0]["manager"] == "contract"


async def test_force_is_for_apply(api: Api) -> None:
    await api.made(CONFIGMAPS, configmap("a"))
    reply = await api.patch(CONFIGMAPS, "a", {}, force=True)
    why = "force: Forbidden: may not be specified for non-apply patch"
    reply.expect(422, "Invalid", f'PatchOptions.meta.k8s.io "" is invalid: {why}')


SYNTAX = 'strconv.ParseInt: parsing "{}": invalid syntax'
QUERIES = [
    ("limit=abc", SYNTAX.format("abc")),
    ("limit=1e3", SYNTAX.format("1e3")),
    ("limit=", SYNTAX.format("")),
    ("limit=99999999999999999999", 'strconv.ParseInt: parsing "99999999999999999999": value out of range'),
    ("timeoutSeconds=abc", SYNTAX.format("abc")),
    ("timeoutSeconds=1.5", SYNTAX.format("1.5")),
    ("limit=-1", ""),
    ("timeoutSeconds=-1", ""),
    ("limit=1&limit=abc", ""),
    ("unknown=1", ""),
    ("allowWatchBookmarks=foo", ""),
    # What cannot be decoded is as good as absent.
    ("labelSelector=%zz", ""),
]


@pytest.mark.parametrize(("query", "message"), QUERIES, ids=[query for query, _ in QUERIES])
async def test_values_in_queries(api: Api, query: str, message: str) -> None:
    await api.made(CONFIGMAPS, configmap("a"))
    reply = await api.request("GET", CONFIGMAPS.path(api.ns), query=query)
    if message:
        reply.expect(400, "BadRequest", message)
    else:
        assert reply.expect(200).names == ["a"]


async def test_invalid_custom_resources(api: Api, widgets: Kind) -> None:
    spec = {"size": -1, "colour": "pink", "note": "x" * 21}
    reply = (await api.create(widgets, widget("a", spec=spec))).expect(422, "Invalid")
    # The order of errors is that of a Go map.
    assert {(c["field"], c["reason"], c["message"]) for c in reply.details["causes"]} == {
        ("spec.note", "FieldValueTooLong", "Too long: may not be more than 20 bytes"),
        ("spec.size", "FieldValueInvalid", "Invalid value: -1: spec.size in body should be greater than or equal to 0"),
        ("spec.colour", "FieldValueNotSupported", 'Unsupported value: "pink": supported values: "red", "green", "blue"'),
    }
    start = 'Widget.contract.example.com "a" is invalid: '
    reply = await api.create(widgets, widget("a", spec={"size": "x"}))
    why = 'spec.size: Invalid value: "string": spec.size in body must be of type integer: "string"'
    reply.expect(422, "Invalid", start + why)
    assert reply.causes == [("spec.size", "FieldValueTypeInvalid")]
    reply = await api.create(widgets, widget("a", spec=[]))
    reply.expect(422, "Invalid", f'{start}spec: Invalid value: "array": spec in body must be of type object: "array"')


async def test_metadata_of_custom_resources_has_types_too(api: Api, widgets: Kind) -> None:
    handled = 'Widget in version "v1" cannot be handled as a Widget: json: cannot unmarshal '
    reply = await api.create(widgets, {**widget(), "metadata": {"name": "a", "labels": {"a": 1}}})
    reply.expect(400, "BadRequest", f"{handled}number into Go struct field ObjectMeta.labels of type string")
    reply = await api.create(widgets, {**widget(), "metadata": "x"})
    reply.expect(400, "BadRequest", f"{handled}string into Go value of type v1.ObjectMeta")


async def test_keys_of_config_maps(api: Api) -> None:
    reply = (await api.create(CONFIGMAPS, configmap("a", data={"a b": "x", "..": "y", "ok": "z"}))).expect(422, "Invalid")
    rule = (
        "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or 'KEY_NAME',  or 'key-name', "
        "regex used for validation is '[-._a-zA-Z0-9]+')"
    )
    assert {(c["field"], c["message"]) for c in reply.details["causes"]} == {
        ("data[a b]", f'Invalid value: "a b": {rule}'),
        ("data[..]", "Invalid value: \"..\": must not be '..'"),
    }


async def test_secret_data_is_base64(api: Api) -> None:
    reply = await api.create(SECRETS, SECRETS.new("a", data={"a": "not base64!"}))
    reply.expect(400, "BadRequest", 'Secret in version "v1" cannot be handled as a Secret: illegal base64 data at input byte 3')
    made = await api.made(SECRETS, SECRETS.new("a", data={"a": "eA=="}, stringData={"b": "y"}))
    assert (made["data"], "stringData" in made) == ({"a": "eA==", "b": "eQ=="}, False)
