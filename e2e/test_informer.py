"""Transport and informers against a real API server, also while it is killed or answers badly."""

import json
import time
from collections.abc import AsyncGenerator, Iterable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, TypeVar

import anyio
import pytest

from api.core import Pod, Secret, ServiceAccount
from api.plan import Key, Object
from controllers.runtime.credentials import load_credentials
from controllers.runtime.errors import AlreadyExists, Conflict, Forbidden, Invalid, TooManyRequests, TransportError, UnknownOutcome
from controllers.runtime.informer import Informer
from controllers.runtime.transport import Transport
from e2e.faultproxy import DropResponse, FaultProxy, GoneEvent, Respond, Rule
from hack.kube import ControlPlane

T = TypeVar("T", bound=Object)
GRACE_0 = json.dumps({"gracePeriodSeconds": 0}).encode()


class Rounds:
    def __init__(self) -> None:
        self.reasons: list[str] = []
        self.lists = 0

    def round_ended(self, resource: str, reason: str) -> None:
        self.reasons.append(reason)

    def listed(self, resource: str, objects: int) -> None:
        self.lists += 1

    def skipped(self, resource: str, reason: str) -> None:
        raise AssertionError(f"{resource}: {reason}")


@asynccontextmanager
async def running(informers: Iterable[Informer[Any]]) -> AsyncGenerator[None]:
    """Runs informers and waits until they have synced."""
    async with anyio.create_task_group() as group:
        for informer in informers:
            group.start_soon(informer.run)
        with anyio.fail_after(10.0):
            for informer in informers:
                await informer.wait_synced()
        yield
        group.cancel_scope.cancel()


@pytest.fixture
async def direct(control_plane: ControlPlane) -> AsyncGenerator[Transport]:
    async with Transport(load_credentials(control_plane.kubeconfig)) as transport:
        yield transport


@pytest.fixture
async def proxied(fault_proxy: FaultProxy, tmp_path: Path) -> AsyncGenerator[Transport]:
    fault_proxy.write_kubeconfig(tmp_path / "kubeconfig")
    async with Transport(load_credentials(tmp_path / "kubeconfig")) as transport:
        yield transport


def gated(name: str, **labels: str) -> bytes:
    """A pod that nothing will ever run."""
    spec = {"containers": [{"name": "c", "image": "none"}], "schedulingGates": [{"name": "example.org/never"}]}
    return json.dumps({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "labels": labels}, "spec": spec}).encode()


async def create(transport: Transport, namespace: str, name: str, **labels: str) -> Pod:
    return Pod.decode(await transport.call("POST", Pod.KIND.path(namespace), body=gated(name, **labels)))


async def delete(transport: Transport, pod: Pod) -> None:
    await transport.call("DELETE", Pod.KIND.path(pod.metadata.namespace, pod.metadata.name), body=GRACE_0)


def names(informer: Informer[Pod]) -> list[str]:
    return sorted(p.metadata.name for p in informer.store.list())


async def caught_up(informer: Informer[Any], obj: Object, timeout_s: float = 10.0) -> None:
    assert await informer.wait_rv(obj.metadata.resource_version, timeout_s), "the watch does not come as far as the write"


async def test_store_follows_and_selectors_select(direct: Transport, namespace: str) -> None:
    rounds = Rounds()
    everything = Informer(direct, Pod, namespace, metrics=rounds)
    selected = Informer(direct, Pod, namespace, "app=x", metrics=rounds)
    async with running((everything, selected)):
        a, b = await create(direct, namespace, "a", app="x"), await create(direct, namespace, "b")
        await caught_up(everything, b)
        assert names(everything) == ["a", "b"]
        await caught_up(selected, a)
        assert names(selected) == ["a"]
        patch = b'{"metadata":{"labels":{"app":"y"}}}'
        path = Pod.KIND.path(namespace, "a")
        changed = Pod.decode(await direct.call("PATCH", path, body=patch, content_type="application/merge-patch+json"))
        await caught_up(selected, changed)
        await caught_up(everything, changed)
        assert (names(everything), names(selected)) == (["a", "b"], [])
        assert await selected.live_get(Key(namespace, "a")) is None
        assert await everything.live_get(Key(namespace, "a")) == changed
        await delete(direct, b)
        await caught_up(everything, await create(direct, namespace, "c"))
        assert names(everything) == ["a", "c"]
    assert rounds.lists == 2
    assert rounds.reasons == []


async def test_refusals_of_a_real_server(direct: Transport, namespace: str) -> None:
    path = Pod.KIND.path(namespace)
    await create(direct, namespace, "a")
    with pytest.raises(AlreadyExists):
        await create(direct, namespace, "a")
    with pytest.raises(Conflict, match="UID in the precondition"):
        await direct.call("DELETE", f"{path}/a", body=json.dumps({"preconditions": {"uid": "another"}}).encode())
    with pytest.raises(Invalid) as invalid:
        await direct.call("POST", path, body=gated("_"))
    assert "metadata.name" in [cause.field for cause in invalid.value.details]


async def test_secret_values_do_not_cross_the_wire(fault_proxy: FaultProxy, proxied: Transport, namespace: str) -> None:
    body = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}, "stringData": {"password": "hunter2"}}
    secret = Secret.decode(await proxied.call("POST", Secret.KIND.path(namespace), body=json.dumps(body).encode()))
    informer = Informer(proxied, Secret, namespace, metrics=Rounds())
    async with running((informer,)):
        found = informer.store.get(Key(namespace, "s"))
        assert found is not None
        assert found.metadata.uid == secret.metadata.uid
        assert await informer.live_get(Key(namespace, "s")) is not None
    [accept] = {r.headers["Accept"] for r in fault_proxy.requests if r.method == "GET" and "/secrets" in r.path}
    raw = await proxied.call("GET", Secret.KIND.path(namespace, "s"), accept=accept)
    assert b'"s"' in raw
    assert b"aHVudGVyMg" not in raw, "the base64 of the value"


async def test_killed_api_server_is_followed_again_within_seconds(control_plane: ControlPlane, direct: Transport, namespace: str) -> None:
    rounds = Rounds()
    pods, accounts = Informer(direct, Pod, namespace, metrics=rounds), Informer(direct, ServiceAccount, metrics=rounds)
    async with running((pods, accounts)):
        kept, gone = await create(direct, namespace, "kept"), await create(direct, namespace, "gone")
        await caught_up(pods, gone)
        control_plane.kill_component("kube-apiserver")
        try:
            await anyio.sleep(3.0)
            with pytest.raises(TransportError) as refused:
                await create(direct, namespace, "never")
            assert not isinstance(refused.value, UnknownOutcome)
            assert pods.store.get(Key(namespace, "kept")) == kept, "an outage empties no cache"
        finally:
            # Not in a worker thread: the server dies with the thread that started it.
            control_plane.start_apiserver()
        back = time.monotonic()
        await delete(direct, gone)
        new = await create(direct, namespace, "new")
        await caught_up(pods, new)
        assert time.monotonic() - back < 10.0
        assert names(pods) == ["kept", "new"]


async def test_gone_watch_is_listed_again(fault_proxy: FaultProxy, proxied: Transport, direct: Transport, namespace: str) -> None:
    rounds = Rounds()
    pods = Informer(proxied, Pod, namespace, metrics=rounds)
    async with running((pods,)):
        lost = await create(direct, namespace, "lost")
        await caught_up(pods, lost)
        fault_proxy.add(Rule(GoneEvent(), path=f"{namespace}/pods"))
        fault_proxy.cut_watches(f"{namespace}/pods")
        await delete(direct, lost)
        await caught_up(pods, await create(direct, namespace, "new"))
        assert names(pods) == ["new"]
    assert rounds.reasons == ["network", "expired"]
    assert rounds.lists == 2


async def test_refused_create_leaves_the_watch_running(fault_proxy: FaultProxy, proxied: Transport, namespace: str) -> None:
    rounds = Rounds()
    pods = Informer(proxied, Pod, namespace, metrics=rounds)
    async with running((pods,)):
        fault_proxy.add(Rule(Respond(403), method="POST", path="/pods"))
        with pytest.raises(Forbidden):
            await create(proxied, namespace, "a")
        await caught_up(pods, await create(proxied, namespace, "a"))
        assert len(fault_proxy.live_watches(f"{namespace}/pods")) == 1
    assert len([r for r in fault_proxy.requests if r.method == "POST"]) == 2
    assert rounds.reasons == []


async def test_retry_after_is_kept(fault_proxy: FaultProxy, proxied: Transport, namespace: str) -> None:
    fault_proxy.add(Rule(Respond(429, retry_after_s=1), method="POST", path="/pods"))
    with pytest.raises(TooManyRequests):
        await create(proxied, namespace, "a")
    start = time.monotonic()
    await create(proxied, namespace, "a")
    assert time.monotonic() - start >= 0.95


async def test_lost_answer_is_an_unknown_outcome_and_a_live_read_tells(fault_proxy: FaultProxy, proxied: Transport, namespace: str) -> None:
    pods = Informer(proxied, Pod, namespace, metrics=Rounds())
    fault_proxy.add(Rule(DropResponse(), method="POST", path="/pods"))
    with pytest.raises(UnknownOutcome):
        await create(proxied, namespace, "a")
    assert await pods.live_get(Key(namespace, "a")) is not None
    assert await pods.live_get(Key(namespace, "b")) is None
