"""Informer and view against a scripted server: waiting, live reads, reading by model."""

import pytest

from api.core import Node, Pod, Secret
from api.plan import Index, Key
from controllers.runtime.errors import ServerBusy
from controllers.runtime.view import Caches
from tests.unit.fakeapi import FakeApi, Reply, bookmark, event, pod, pod_list, refusal
from tests.unit.watchworld import NO_WATCH_LIST, PODS, stream, world


async def test_only_metadata_of_secrets_is_requested() -> None:
    path = "/api/v1/secrets"
    partial = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"

    def script(api: FakeApi) -> None:
        api.on("WATCH", path, NO_WATCH_LIST, stream())
        api.on("GET", path, pod_list(9, pod("s", 5)))
        api.on("GET", "/api/v1/namespaces/ns/secrets/s", Reply(200, pod("s", 5)))

    async with world(script, Secret) as w:
        await w.informer.wait_synced()
        await w.informer.live_get(Key("ns", "s"))
    accepts = {(r.method, r.watch, r.path): r.headers["Accept"] for r in w.api.requests}
    assert accepts["GET", True, path] == partial
    assert accepts["GET", False, path] == partial.replace("Metadata;", "MetadataList;")
    assert accepts["GET", False, "/api/v1/namespaces/ns/secrets/s"] == partial


async def test_wait_rv_gives_up() -> None:
    async with world(lambda api: api.on("WATCH", PODS, stream(bookmark(3, initial_end=True)))) as w:
        await w.informer.wait_synced()
        assert await w.informer.wait_rv("3", 0.0)
        assert not await w.informer.wait_rv(4, 0.02)


async def test_live_get_updates_and_removes() -> None:
    path = "/api/v1/namespaces/ns/pods/a"

    def script(api: FakeApi) -> None:
        api.on("WATCH", PODS, stream(event("ADDED", pod("a", 5)), bookmark(6, initial_end=True)))
        api.on("GET", path, Reply(200, pod("a", 9, nodeName="n1")), refusal(503, "ServiceUnavailable"), refusal(404, "NotFound"))

    key = Key("ns", "a")
    async with world(script) as w:
        await w.informer.wait_synced()
        live = await w.informer.live_get(key)
        assert live is not None
        assert live is w.informer.store.get(key)
        assert live.spec.node_name == "n1"
        with pytest.raises(ServerBusy):
            await w.informer.live_get(key)
        assert w.informer.store.get(key) is live, "an error says nothing about the object"
        assert await w.informer.live_get(key) is None
        assert w.names == []
    assert all(r.query == {} for r in w.api.seen("GET")), "a consistent read has no resourceVersion"


async def test_live_get_of_a_selecting_informer_selects() -> None:
    def script(api: FakeApi) -> None:
        api.on("WATCH", PODS, stream(event("ADDED", pod("a", 5)), bookmark(6, initial_end=True)))
        api.on("GET", "/api/v1/namespaces/ns/pods", pod_list(9))

    async with world(script, label_selector="app=x") as w:
        await w.informer.wait_synced()
        assert await w.informer.live_get(Key("ns", "a")) is None
        assert w.names == []
    assert dict(w.api.seen("GET")[0].query) == {"fieldSelector": "metadata.name=a", "labelSelector": "app=x"}


async def test_view_reads_by_model() -> None:
    by_node = Index("node", lambda p: (p.spec.node_name,))
    first = stream(event("ADDED", pod("a", 5, nodeName="n1")), bookmark(6, initial_end=True))
    async with world(lambda api: api.on("WATCH", PODS, first), indexes=(by_node,)) as w:
        await w.informer.wait_synced()
        view = Caches()
        assert view.add(w.informer) is w.informer
        found = view.get(Pod, "ns", "a")
        assert found is not None
        assert tuple(view.list(Pod, "ns")) == tuple(view.list(Pod)) == view.by_index(Pod, by_node, "n1") == (found,)
        assert view.get(Pod, "ns", "b") is None
        with pytest.raises(KeyError, match=r"no informer for Node.*known: Pod"):
            view.get(Node, "", "n1")
        with pytest.raises(ValueError, match="Pod already has"):
            view.add(w.informer)
