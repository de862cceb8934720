"""Create, read, update and delete of several kinds."""

from tests.contract.client import Api
from tests.contract.kinds import CONFIGMAPS, Kind, configmap, widget


async def test_a_created_object_is_returned_with_what_the_server_sets(api: Api) -> None:
    made = (await api.create(CONFIGMAPS, configmap("a"))).expect(201).body
    assert made["data"] == {"key": "value"}
    assert made["metadata"]["namespace"] == api.ns
    assert await api.read(CONFIGMAPS, "a") == made


async def test_a_custom_object_is_watched(api: Api, widgets: Kind) -> None:
    made = await api.made(widgets, widget("a"))
    assert made["metadata"]["generation"] == 1
    async with api.watch(widgets, resourceVersion=0) as watch:
        assert await watch.named(1) == [("ADDED", "a")]
