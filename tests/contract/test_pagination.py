"""limit and continue."""

import base64
import json
from typing import Any

import pytest

from tests.contract.client import Api
from tests.contract.kinds import CONFIGMAPS, SECRETS, Kind, configmap, widget

NAMES = ["a", "b", "c", "d", "e"]


async def make(api: Api) -> None:
    for name in NAMES:
        labels = {"odd": "y"} if name in "ace" else {}
        await api.made(CONFIGMAPS, configmap(name, labels=labels))


def token(**fields: Any) -> str:
    """A continue token as the server encodes them."""
    body = {"v": "meta.k8s.io/v1", "rv": 1, "start": "/b\0", **fields}
    return base64.urlsafe_b64encode(json.dumps(body).encode()).decode().rstrip("=")


@pytest.mark.parametrize("limit", [1, 2, 3, 4])
async def test_pages_are_one_list_of_one_version(api: Api, limit: int) -> None:
    await make(api)
    names: list[str] = []
    versions: set[str] = set()
    query: dict[str, Any] = {}
    while True:
        reply = (await api.list(CONFIGMAPS, limit=limit, **query)).expect(200)
        names += reply.names
        versions.add(reply.rv)
        if "continue" not in reply.meta:
            break
        assert len(reply.items) == limit
        assert reply.meta["remainingItemCount"] == len(NAMES) - len(names)
        query = {"continue": reply.meta["continue"]}
    assert names == NAMES
    assert len(versions) == 1
    assert "remainingItemCount" not in reply.meta


@pytest.mark.parametrize("limit", [0, -1, 5, 6])
async def test_limits_that_leave_nothing_over(api: Api, limit: int) -> None:
    await make(api)
    reply = (await api.list(CONFIGMAPS, limit=limit)).expect(200)
    assert reply.names == NAMES
    assert "continue" not in reply.meta


async def test_pages_of_a_custom_resource(api: Api, widgets: Kind) -> None:
    for name in NAMES:
        await api.made(widgets, widget(name))
    first = (await api.list(widgets, limit=3)).expect(200)
    assert (first.names, first.meta["remainingItemCount"]) == (NAMES[:3], 2)
    rest = (await api.list(widgets, limit=3, **{"continue": first.meta["continue"]})).expect(200)
    assert (rest.names, rest.meta["continue"]) == (NAMES[3:], "")


async def test_with_a_selector_the_rest_is_not_counted(api: Api) -> None:
    await make(api)
    first = (await api.list(CONFIGMAPS, limit=2, labelSelector="odd")).expect(200)
    assert first.names == ["a", "c"]
    assert first.meta["continue"]
    assert "remainingItemCount" not in first.meta
    rest = await api.list(CONFIGMAPS, limit=2, labelSelector="odd", **{"continue": first.meta["continue"]})
    assert rest.names == ["e"]
    assert "continue" not in rest.meta


async def test_later_pages_do_not_see_later_writes(api: Api) -> None:
    await make(api)
    first = await api.list(CONFIGMAPS, limit=2)
    (await api.delete(CONFIGMAPS, "d")).expect(200)
    await api.made(CONFIGMAPS, configmap("c2"))
    rest = (await api.list(CONFIGMAPS, **{"continue": first.meta["continue"]})).expect(200)
    assert (rest.names, rest.rv) == (["c", "d", "e"], first.rv)


async def test_a_token_may_be_used_again_and_with_another_limit(api: Api) -> None:
    await make(api)
    after = {"continue": (await api.list(CONFIGMAPS, limit=2)).meta["continue"]}
    one = await api.list(CONFIGMAPS, limit=1, **after)
    two = await api.list(CONFIGMAPS, limit=2, **after)
    assert (one.names, one.meta["remainingItemCount"]) == (["c"], 2)
    assert (two.names, two.meta["remainingItemCount"]) == (["c", "d"], 1)
    assert one.rv == two.rv


async def test_a_page_of_the_past(api: Api) -> None:
    await make(api)
    rv = (await api.list(CONFIGMAPS)).rv
    (await api.delete(CONFIGMAPS, "a")).expect(200)
    reply = (await api.list(CONFIGMAPS, limit=1, resourceVersion=rv, resourceVersionMatch="Exact")).expect(200)
    assert (reply.names, reply.rv, reply.meta["remainingItemCount"]) == (["a"], rv, 4)


async def test_resource_version_zero_ignores_the_limit(api: Api) -> None:
    await make(api)
    await api.caught_up(CONFIGMAPS)
    reply = (await api.list(CONFIGMAPS, limit=2, resourceVersion=0)).expect(200)
    assert reply.names == NAMES
    assert "continue" not in reply.meta


async def test_a_token_goes_with_no_resource_version(api: Api) -> None:
    await make(api)
    first = await api.list(CONFIGMAPS, limit=2)
    after = {"continue": first.meta["continue"]}
    reply = await api.list(CONFIGMAPS, resourceVersion=first.rv, **after)
    reply.expect(400, "BadRequest", "specifying resource version is not allowed when using continue")
    assert (await api.list(CONFIGMAPS, resourceVersion=0, **after)).expect(200).names == ["c", "d", "e"]


async def test_a_token_says_where_to_go_on_not_in_which_list(api: Api) -> None:
    await make(api)
    after = {"continue": (await api.list(CONFIGMAPS, limit=2)).meta["continue"]}
    assert (await api.list(SECRETS, **after)).expect(200).items == []
    everywhere = (await api.list(CONFIGMAPS, ns="", **after)).expect(200)
    assert api.ns in {item["metadata"]["namespace"] for item in everywhere.items}


INVALID = "invalid continue token: continue key is not valid: "
BAD = [
    ("bogus", INVALID + "illegal base64 data at input byte 4"),
    (token(v="v2"), INVALID + "server does not recognize this encoded version v2"),
    (token(rv=0), INVALID + "incorrect encoded start resourceVersion (version meta.k8s.io/v1)"),
    (token(start=""), INVALID + "encoded start key empty (version meta.k8s.io/v1)"),
    (token(start="../b"), INVALID + "../b"),
]


@pytest.mark.parametrize(("bad", "message"), BAD, ids=["no base64", "version", "rv 0", "no start", "outside"])
async def test_bad_tokens(api: Api, bad: str, message: str) -> None:
    (await api.list(CONFIGMAPS, limit=2, **{"continue": bad})).expect(400, "BadRequest", message)


async def test_an_expired_token_comes_with_one_that_goes_on_inconsistently(api: Api, widgets: Kind) -> None:
    # Caches of built-in kinds may remember the very first version; that of a custom resource begins later.
    for name in NAMES:
        await api.made(widgets, widget(name))
    reply = (await api.list(widgets, limit=2, **{"continue": token(rv=1)})).expect(410, "Expired")
    assert reply.message.startswith("The provided continue parameter is too old to display a consistent list result.")
    rest = (await api.list(widgets, limit=2, **{"continue": reply.meta["continue"]})).expect(200)
    assert rest.names == ["c", "d"]
    last = (await api.list(widgets, limit=2, **{"continue": rest.meta["continue"]})).expect(200)
    assert last.names == ["e"]
