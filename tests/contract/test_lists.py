"""Lists: their shape, order and the meaning of resourceVersion."""

import pytest

from tests.contract.client import Api
from tests.contract.kinds import CONFIGMAPS, NAMESPACES, PODS, SECRETS, Kind, Obj, configmap, widget

NAMES = ["a", "a-b", "a.b", "a0", "b", "c"]


async def make(api: Api, *names: str) -> str:
    """Create ConfigMaps; the last one's resourceVersion."""
    rv = ""
    for name in names:
        rv = (await api.made(CONFIGMAPS, configmap(name)))["metadata"]["resourceVersion"]
    return rv


def too_far(rv: str) -> str:
    return str(int(rv) + 1_000_000)


async def test_an_empty_list_has_items(api: Api, widgets: Kind) -> None:
    for kind in (SECRETS, widgets):
        body = (await api.list(kind)).expect(200).body
        assert int(body["metadata"].pop("resourceVersion")) > 0
        meta = {"continue": ""} if kind is widgets else {}
        assert body == {"kind": f"{kind.kind}List", "apiVersion": kind.api_version, "metadata": meta, "items": []}


async def test_a_list_is_as_new_as_what_was_written(api: Api) -> None:
    rv = await make(api, "a", "b")
    reply = (await api.list(CONFIGMAPS)).expect(200)
    assert int(reply.rv) >= int(rv)
    assert [sorted(item) for item in reply.items] == [["data", "metadata"]] * 2
    assert "remainingItemCount" not in reply.meta
    assert "continue" not in reply.meta


async def test_items_of_custom_lists_say_what_they_are(api: Api, widgets: Kind) -> None:
    await api.made(widgets, widget("a"))
    [item] = (await api.list(widgets)).items
    assert (item["apiVersion"], item["kind"]) == ("contract.example.com/v1", "Widget")


async def test_order_is_that_of_the_bytes_of_names(api: Api) -> None:
    await make(api, *reversed(NAMES))
    assert (await api.list(CONFIGMAPS)).names == sorted(NAMES)
    await api.caught_up(CONFIGMAPS)
    assert (await api.list(CONFIGMAPS, resourceVersion=0)).names == sorted(NAMES)


async def test_all_namespaces_come_in_order_of_storage_keys(api: Api) -> None:
    other = f"{api.ns}-2"
    await api.made(NAMESPACES, NAMESPACES.new(other))
    await make(api, "b", "a")
    await api.made(CONFIGMAPS, configmap("a"), ns=other)
    reply = (await api.list(CONFIGMAPS, ns="")).expect(200)
    keys = ["/".join((i["metadata"]["namespace"], i["metadata"]["name"])) for i in reply.items]
    # The order is that of storage keys, where "-" comes before the "/" between namespace and name.
    assert keys == sorted(keys)
    assert [key for key in keys if key.startswith(api.ns)] == [f"{other}/a", f"{api.ns}/a", f"{api.ns}/b"]


async def test_a_list_of_a_missing_namespace_is_empty(api: Api) -> None:
    assert (await api.list(CONFIGMAPS, ns="no-such-namespace")).expect(200).items == []


@pytest.mark.parametrize(
    "query",
    [{}, {"resourceVersion": ""}, {"resourceVersion": "0"}, {"resourceVersionMatch": ""}],
    ids=["none", "empty", "0", "empty match"],
)
async def test_lists_that_show_the_present(api: Api, query: Obj) -> None:
    await make(api, "a", "b")
    await api.caught_up(CONFIGMAPS)
    assert (await api.list(CONFIGMAPS, **query)).expect(200).names == ["a", "b"]


async def test_not_older_than(api: Api) -> None:
    await make(api, "a")
    rv = await make(api, "b")
    for query in ({}, {"resourceVersionMatch": "NotOlderThan"}):
        reply = (await api.list(CONFIGMAPS, resourceVersion=rv, **query)).expect(200)
        assert reply.names == ["a", "b"]
        assert int(reply.rv) >= int(rv)
    assert (await api.list(CONFIGMAPS, resourceVersion=0, resourceVersionMatch="NotOlderThan")).expect(200).names == ["a", "b"]


async def test_exact_shows_the_past(api: Api) -> None:
    rv = await make(api, "a", "b")
    (await api.delete(CONFIGMAPS, "a")).expect(200)
    (await api.patch(CONFIGMAPS, "b", {"data": {"new": "data"}})).expect(200)
    await make(api, "c")
    reply = (await api.list(CONFIGMAPS, resourceVersion=rv, resourceVersionMatch="Exact")).expect(200)
    assert (reply.names, reply.rv) == (["a", "b"], rv)
    assert reply.items[1]["data"] == {"key": "value"}


async def test_a_compacted_version_is_gone(api: Api, widgets: Kind) -> None:
    reply = await api.list(widgets, resourceVersion=1, resourceVersionMatch="Exact")
    reply.expect(410, "Expired", "The resourceVersion for the provided list is too old.")


@pytest.mark.timeout(40)
@pytest.mark.parametrize("match", ["", "NotOlderThan", "Exact"])
async def test_a_version_of_the_future_times_out(api: Api, match: str) -> None:
    rv = too_far(await make(api, "a"))
    reply = (await api.list(CONFIGMAPS, resourceVersion=rv, resourceVersionMatch=match)).expect(504, "Timeout")
    assert reply.message.startswith(f"Timeout: Too large resource version: {rv}, current: ")
    causes = [{"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}]
    assert reply.details == {"causes": causes, "retryAfterSeconds": 1}
    assert reply.headers["retry-after"] == "1"


def forbidden(field: str, why: str) -> str:
    return f"{field}: Forbidden: {why}"


MATCH = "resourceVersionMatch"
BAD = [
    ({MATCH: "Exact"}, [forbidden(MATCH, "resourceVersionMatch is forbidden unless resourceVersion is provided")]),
    ({MATCH: "NotOlderThan"}, [forbidden(MATCH, "resourceVersionMatch is forbidden unless resourceVersion is provided")]),
    (
        {MATCH: "Exact", "resourceVersion": "0"},
        [forbidden(MATCH, 'resourceVersionMatch "exact" is forbidden for resourceVersion "0"')],
    ),
    (
        {MATCH: "Foo", "resourceVersion": "1"},
        [f'{MATCH}: Unsupported value: "Foo": supported values: "Exact", "NotOlderThan", ""'],
    ),
    ({"sendInitialEvents": "true"}, [forbidden("sendInitialEvents", "sendInitialEvents is forbidden for list")]),
    (
        {MATCH: "Exact", "continue": "x"},
        [
            forbidden(MATCH, "resourceVersionMatch is forbidden unless resourceVersion is provided"),
            forbidden(MATCH, "resourceVersionMatch is forbidden when continue is provided"),
        ],
    ),
]


@pytest.mark.parametrize(("query", "errors"), BAD, ids=[str(q) for q, _ in BAD])
async def test_options_that_do_not_fit_together(api: Api, query: Obj, errors: list[str]) -> None:
    why = errors[0] if len(errors) == 1 else f"[{', '.join(errors)}]"
    reply = (await api.list(CONFIGMAPS, **query)).expect(422, "Invalid", f'ListOptions.meta.k8s.io "" is invalid: {why}')
    assert reply.details["kind"] == "ListOptions"
    assert reply.details["group"] == "meta.k8s.io"
    assert len(reply.causes) == len(errors)


@pytest.mark.parametrize("rv", ["abc", "-1", "1.5"])
async def test_a_resource_version_is_a_number(api: Api, rv: str) -> None:
    why = f'Invalid value: "{rv}": strconv.ParseUint: parsing "{rv}": invalid syntax'
    (await api.list(CONFIGMAPS, resourceVersion=rv)).expect(400, "BadRequest", f"invalid resource version: resourceVersion: {why}")
    await make(api, "a")
    (await api.get(CONFIGMAPS, "a", resourceVersion=rv)).expect(500, "", f"resourceVersion: {why}")


async def test_get_with_a_resource_version(api: Api) -> None:
    old = await make(api, "a")
    new = (await api.patch(CONFIGMAPS, "a", {"data": {"b": "c"}})).rv
    for rv in ("0", old, new):
        reply = (await api.get(CONFIGMAPS, "a", resourceVersion=rv)).expect(200)
        # Not older than what was asked for; 0 may be served from a cache that lags.
        assert int(reply.rv) >= int(rv)


async def test_get_of_the_future_times_out(api: Api) -> None:
    rv = too_far(await make(api, "a"))
    reply = (await api.get(CONFIGMAPS, "a", resourceVersion=rv)).expect(504, "Timeout")
    assert reply.message.startswith(f"Timeout: Too large resource version: {rv}, current: ")


async def test_the_version_of_a_list_grows_with_writes_of_any_kind(api: Api) -> None:
    before = int((await api.list(PODS)).rv)
    await make(api, "a")
    assert int((await api.list(PODS)).rv) > before
