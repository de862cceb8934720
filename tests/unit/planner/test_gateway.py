"""Registration over gRPC, with bytes written by hand and with a whole plugin in a process of its own."""

import asyncio
import shutil
import subprocess
import sys
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import grpc
import grpc.aio
import pytest

from controllers.planner.config.model import PlannerConfig
from controllers.planner.config.parts import Gateway as GatewaySettings
from controllers.planner.pipeline import PipelineOutcome
from controllers.planner.plugins.gateway import Gateway, GatewayError
from controllers.planner.plugins.records import Plugin
from controllers.planner.plugins.registry import Registry
from controllers.planner.plugins.runner import Caller, run_async
from controllers.planner.plugins.startup import Plugins, start
from controllers.planner.types import TrafficObservation
from hack.codegen.protobuf import WIRE
from tests.unit.planner.planner_bytes import decode, encode, integer, single, text
from tests.unit.planner.planner_plugins import SECRETS, WORKERS, context, registry

SERVICE = "/dynamo.planner.plugin.v1.PluginRegistry/"
ME = (text(1, "p"), text(2, "propose"), integer(3, 5), text(4, "grpc://127.0.0.1:9"), text(9, "1.0"), text(10, "s3cret-one"))


@asynccontextmanager
async def gateway(made: Registry, listen: str = "127.0.0.1:0", removed: list[Plugin] | None = None) -> AsyncGenerator[str]:
    """Where it listens."""

    async def on_removed(plugin: Plugin) -> None:
        if removed is not None:
            removed.append(plugin)

    running = Gateway(made, GatewaySettings(enabled=True, listen=listen, allow_insecure=True), lambda: 17.0, on_removed)
    address = await running.start()
    try:
        yield address
    finally:
        await running.stop()


async def ask(address: str, method: str, *fields: Any) -> list[tuple[int, int, Any]] | grpc.StatusCode:
    data = fields[0] if fields and isinstance(fields[0], bytes) else encode(*fields)
    async with grpc.aio.insecure_channel(address) as channel:
        try:
            return decode(await channel.unary_unary(SERVICE + method)(data, timeout=5))
        except grpc.aio.AioRpcError as error:
            return error.code()


async def test_register_heartbeat_unregister(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("DEBUG")
    made, removed = registry(secrets=SECRETS), list[Plugin]()
    async with gateway(made, removed=removed) as address:
        host, _, port = address.rpartition(":")
        assert (host, int(port) > 0) == ("127.0.0.1", True)
        assert await ask(address, "Register", *ME, single(6, 0.1)) == [(1, 0, 1), (3, 2, b"1.0")]
        plugin = made.plugins[0]
        assert (plugin.subject, plugin.interval_s, plugin.registered_at) == ("team-a", 0.10000000149011612, 15.0)
        assert await ask(address, "Register", *ME) == [(2, 2, b"duplicate_plugin_id: must Unregister before re-Register")]
        assert await ask(address, "Heartbeat", text(1, "p"), text(2, "s3cret-one")) == [(1, 0, 1)]
        assert plugin.last_heartbeat_at == 17.0
        assert await ask(address, "Unregister", text(1, "p"), text(2, "bye"), text(3, "s3cret-two")) is grpc.StatusCode.PERMISSION_DENIED
        assert await ask(address, "Unregister", text(1, "p"), text(2, "bye"), text(3, "s3cret-one")) == [(1, 0, 1)]
        assert removed == [plugin]
        assert made.plugins == ()
    assert "registered for propose" in caplog.text
    assert "s3cret" not in caplog.text


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ((text(10, "wrong"),), b"auth_failed"),
        ((text(10, ""),), b"auth_failed"),
        ((text(9, "x"),), b"protocol_version_malformed: 'x' is no version"),
        ((text(9, "2.0"),), b"protocol_version_unsupported: requested=2.0, supported=[1.0,1.0]"),
        ((single(14, 7.0),), b"observation_window_misaligned: 7 s must be 0 or a multiple of 5 s"),
        ((text(4, "inproc://p"),), b"endpoint_rejected: only Planner itself may register plugins of its own process"),
        ((text(4, "tcp://h:1"),), b"transport_build_failed: the endpoint must be grpc://HOST:PORT"),
    ],
)
async def test_reasons_of_refusal(changes: tuple[Any, ...], reason: bytes, caplog: pytest.LogCaptureFixture) -> None:
    async with gateway(registry(secrets=SECRETS)) as address:
        assert await ask(address, "Register", *ME, *changes) == [(2, 2, reason)]
    assert "wrong" not in caplog.text


async def test_calls_that_are_not_answered() -> None:
    made = registry(secrets=SECRETS, max_message_size_bytes=1000)
    async with gateway(made) as address:
        for method in ("Register", "Heartbeat", "Unregister"):
            assert await ask(address, method, b"\xff") is grpc.StatusCode.INVALID_ARGUMENT
        assert await ask(address, "Register", *ME, text(2, "observe")) is grpc.StatusCode.INVALID_ARGUMENT
        assert await ask(address, "Register", *ME, text(8, "x" * 2000)) is grpc.StatusCode.RESOURCE_EXHAUSTED
        assert await ask(address, "Heartbeat", text(1, "p"), text(2, "wrong")) is grpc.StatusCode.UNAUTHENTICATED
        assert await ask(address, "Unregister", text(1, "p"), text(3, "")) is grpc.StatusCode.UNAUTHENTICATED
        assert await ask(address, "Heartbeat", text(1, "p"), text(2, "s3cret-one")) is grpc.StatusCode.PERMISSION_DENIED
        assert await ask(address, "ListPlugins") is grpc.StatusCode.PERMISSION_DENIED
        assert await ask(address, "Bootstrap") is grpc.StatusCode.UNIMPLEMENTED
    assert made.plugins == ()


async def nothing(_plugin: Plugin) -> None:
    return


def unstarted(listen: str, *, allow: bool) -> Gateway:
    return Gateway(registry(), GatewaySettings(enabled=True, listen=listen, allow_insecure=allow), lambda: 0.0, nothing)


async def test_a_port_without_tls_has_to_be_allowed() -> None:
    with pytest.raises(GatewayError, match="allow_insecure"):
        await unstarted("127.0.0.1:0", allow=False).start()


async def test_what_cannot_be_listened_on_ends_startup(tmp_path: Path) -> None:
    async with gateway(registry()) as address:
        for listen in (address, f"unix://{tmp_path}/no/folder.sock", "no such host:x"):
            with pytest.raises(GatewayError, match="cannot listen"):
                await unstarted(listen, allow=True).start()


async def test_a_socket_needs_no_permission(tmp_path: Path) -> None:
    running = unstarted(f"unix://{tmp_path}/r.sock", allow=False)
    address = await running.start()
    assert address == f"unix://{tmp_path}/r.sock"
    assert await ask(address, "Register", *ME) == [(1, 0, 1), (3, 2, b"1.0")]
    await running.stop()


@pytest.fixture(scope="module")
def author(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with nothing but the published file, the code made from it, and the plugin."""
    folder = tmp_path_factory.mktemp("author")
    shutil.copy(WIRE / "plugin.proto", folder)
    shutil.copy(Path(__file__).with_name("plugin_sample.py"), folder)
    argv = [sys.executable, "-m", "grpc_tools.protoc", "-I.", "--python_out=.", "--grpc_python_out=.", "plugin.proto"]
    subprocess.run(argv, cwd=folder, check=True)  # noqa: S603
    return folder


@contextmanager
def sample(author: Path, address: str, token: str) -> Generator[subprocess.Popen[str]]:
    argv = [sys.executable, "plugin_sample.py", address, token]
    process = subprocess.Popen(argv, cwd=author, stdout=subprocess.PIPE, text=True)  # noqa: S603
    try:
        yield process
    finally:
        process.kill()
        process.wait(5)
        assert process.stdout is not None
        process.stdout.close()


async def said(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return (await asyncio.to_thread(process.stdout.readline)).strip()


async def started(settings: dict[str, Any], plugins: Registry | None = None, history: list[TrafficObservation] | None = None) -> Plugins:
    config = PlannerConfig.model_validate(settings)
    made = plugins or Registry(config.scheduling.scale_interval_seconds, config.plugin_registration)
    return await start(made, config, history or [], lambda: 0.0)


LISTENS = {
    "scheduling": {"gateway": {"enabled": True, "listen": "127.0.0.1:0", "allow_insecure": True}},
    "plugin_registration": {
        "auth": {"trusted_sources": ["static_secret"], "static_secrets": SECRETS},
        "transport": {"allow_insecure_grpc": True},
    },
}


def replicas(outcome: PipelineOutcome) -> int | None:
    return next(target.replicas for target in outcome.targets if target.component == "decode")


async def test_a_plugin_registers_proposes_is_held_breaks_the_circuit_and_recovers(author: Path) -> None:
    running = await started(LISTENS)
    assert running.address is not None
    clock = [0.0]
    asking = Caller(5.0, lambda: clock[0], running.caller.remote)

    async def decode_at(now_s: float) -> int | None:
        clock[0] = now_s
        return replicas(await run_async(context(WORKERS), running.registry, now_s, caller=asking, tick_max_duration_s=10))

    with sample(author, running.address, "s3cret-one") as process:
        assert await said(process) == "registered"
        # 5: not due. 10: two more than the three that are ready. 15: held. 20 to 40: due on every tick, and fails.
        seen = [await decode_at(now) for now in (5, 10, 15, 20, 25, 30, 35, 40)]
        assert seen == [3, 5, 5, 3, 3, 3, 3, 3]
        # The circuit is open until 70; nothing is held of a plugin that failed so often. Then it is asked again, and held again.
        assert [await decode_at(now) for now in (45, 69, 70, 75)] == [3, 3, 5, 5]
        (plugin,) = running.registry.plugins
        assert (plugin.evaluations_total, plugin.breaker.failures, plugin.last_call_at) == (2, 0, 70)
        with sample(author, running.address, "s3cret-two") as second:
            assert await said(second) == "duplicate_plugin_id: must Unregister before re-Register"
        with sample(author, running.address, "wrong") as third:
            assert await said(third) == "auth_failed"
    await running.stop()
    assert running.registry.plugins == ()


class Lifecycle:
    """Writes down the order of what is called."""

    log: list[str] = []  # noqa: RUF012

    def warm_from_observations(self, history: list[TrafficObservation]) -> None:
        self.log.append(f"warm {len(history)}")

    def bootstrap(self) -> None:
        self.log.append("bootstrap")
        raise ValueError("not ready")


async def test_startup_goes_in_order(caplog: pytest.LogCaptureFixture) -> None:
    Lifecycle.log.clear()
    inside = {"module": __name__, "class": "Lifecycle", "plugin_id": "in", "plugin_type": "propose", "priority": 1}
    outside = {"plugin_id": "out", "plugin_type": "propose", "priority": 1, "endpoint": "grpc://127.0.0.1:1", "auth_token": "s3cret-one"}
    refused = outside | {"plugin_id": "refused", "auth_token": "s3cret-wrong"}
    settings = {
        "scheduling": {"external_plugins": [outside, refused]},
        "plugin_registration": LISTENS["plugin_registration"] | {"in_process_plugins": [inside]},
    }
    made = await started(settings, history=[TrafficObservation(5.0, 1.0, 1.0, 1.0)])
    assert [plugin.plugin_id for plugin in made.registry.plugins] == ["in", "out"]
    assert Lifecycle.log == ["warm 1", "bootstrap"]
    assert (made.gateway, made.address) == (None, None)
    assert "'refused' is left out: auth_failed" in caplog.text
    assert "'in' failed to bootstrap: call: ValueError: not ready" in caplog.text
    assert "'out' failed to bootstrap: connection" in caplog.text
    assert "s3cret" not in caplog.text
    await made.stop()


async def test_a_gateway_that_cannot_start_ends_startup() -> None:
    with pytest.raises(GatewayError):
        await started({"scheduling": {"gateway": {"enabled": True, "listen": "127.0.0.1:0"}}})
