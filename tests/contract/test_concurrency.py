"""Writers that race."""

import asyncio

from tests.contract.client import Api, Reply
from tests.contract.kinds import CONFIGMAPS, SERVICES, Kind, configmap, service, widget

N = 20


def statuses(replies: list[Reply]) -> list[int]:
    return sorted(r.status for r in replies)


async def test_of_updates_with_one_version_exactly_one_wins(api: Api) -> None:
    current = await api.made(CONFIGMAPS, configmap("a"))
    for turn in range(3):
        contenders = [{**current, "data": {"turn": str(turn), "winner": str(i)}} for i in range(N)]
        replies = await asyncio.gather(*(api.update(CONFIGMAPS, c) for c in contenders))
        assert statuses(replies) == [200] + [409] * (N - 1)
        assert {r.reason for r in replies if r.status == 409} == {"Conflict"}
        winner = next(r for r in replies if r.status == 200).body
        current = await api.read(CONFIGMAPS, "a")
        assert current == winner


async def test_of_creates_of_one_name_exactly_one_wins(api: Api, widgets: Kind) -> None:
    for kind, obj in ((CONFIGMAPS, configmap("a")), (widgets, widget("a"))):
        replies = await asyncio.gather(*(api.create(kind, obj) for _ in range(N)))
        assert statuses(replies) == [201] + [409] * (N - 1)
        assert {r.reason for r in replies if r.status == 409} == {"AlreadyExists"}


async def test_of_deletes_exactly_one_wins(api: Api) -> None:
    made = await api.made(CONFIGMAPS, configmap("a"))
    replies = await asyncio.gather(*(api.delete(CONFIGMAPS, "a") for _ in range(N)))
    assert statuses(replies) == [200] + [404] * (N - 1)
    assert next(r for r in replies if r.status == 200).details["uid"] == made["metadata"]["uid"]


async def test_merge_patches_of_different_keys_all_arrive(api: Api) -> None:
    await api.made(CONFIGMAPS, configmap("a", data={}))
    # More at once may lose against each other too often for the server's own retries.
    for first in range(0, N, 4):
        keys = [f"k{i}" for i in range(first, first + 4)]
        replies = await asyncio.gather(*(api.patch(CONFIGMAPS, "a", {"data": {key: "x"}}) for key in keys))
        assert statuses(replies) == [200] * 4
    assert len((await api.read(CONFIGMAPS, "a"))["data"]) == N


async def test_applies_of_different_managers_all_arrive(api: Api) -> None:
    await api.made(CONFIGMAPS, configmap("a"))
    bodies = [CONFIGMAPS.new("a", data={f"k{i}": "x"}) for i in range(4)]
    replies = await asyncio.gather(*(api.apply(CONFIGMAPS, body, f"manager-{i}") for i, body in enumerate(bodies)))
    assert statuses(replies) == [200] * 4
    assert set((await api.read(CONFIGMAPS, "a"))["data"]) == {"key", "k0", "k1", "k2", "k3"}


async def test_updates_without_a_version_all_win(api: Api) -> None:
    await api.made(CONFIGMAPS, configmap("a"))
    replies = await asyncio.gather(*(api.update(CONFIGMAPS, configmap("a", data={"i": str(i)})) for i in range(5)))
    assert statuses(replies) == [200] * 5
    last = max(replies, key=lambda r: int(r.rv))
    assert await api.read(CONFIGMAPS, "a") == last.body


async def test_generated_names_do_not_meet(api: Api) -> None:
    made = await asyncio.gather(*(api.made(CONFIGMAPS, configmap(generateName="g-")) for _ in range(50)))
    assert len({m["metadata"]["name"] for m in made}) == 50
    assert len({m["metadata"]["uid"] for m in made}) == 50


async def test_every_write_has_a_version_of_its_own(api: Api) -> None:
    made = await asyncio.gather(*(api.made(CONFIGMAPS, configmap(f"a{i}")) for i in range(50)))
    assert len({m["metadata"]["resourceVersion"] for m in made}) == 50


async def test_services_get_different_addresses(api: Api) -> None:
    made = await asyncio.gather(*(api.made(SERVICES, service(f"a{i}")) for i in range(10)))
    assert len({m["spec"]["clusterIP"] for m in made}) == 10


async def test_a_writer_sees_its_own_write_at_once(api: Api, widgets: Kind) -> None:
    for i in range(10):
        rv = (await api.made(widgets, widget(f"a{i}")))["metadata"]["resourceVersion"]
        listed = await api.list(widgets)
        assert f"a{i}" in listed.names
        assert int(listed.rv) >= int(rv)
