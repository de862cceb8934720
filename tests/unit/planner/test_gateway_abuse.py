"""Addresses that the gateway should not listen on, and who registers too much."""

import socket
from pathlib import Path
from typing import Any

import grpc
import pytest

from controllers.planner.config.parts import Gateway as GatewaySettings
from controllers.planner.config.strict import listen_problem
from controllers.planner.plugins import registry as registry_module
from controllers.planner.plugins.gateway import Gateway, GatewayError
from controllers.planner.plugins.records import Failure, PluginStage
from controllers.planner.plugins.registry import target_of
from controllers.planner.plugins.sanity import checked
from tests.unit.planner.planner_bytes import text
from tests.unit.planner.planner_plugins import SECRETS, override, predicted, registration, registry
from tests.unit.planner.test_gateway import ME, ask, gateway, nothing


def made(listen: str) -> Gateway:
    return Gateway(registry(), GatewaySettings(enabled=True, listen=listen), lambda: 0.0, nothing)


@pytest.mark.parametrize(
    ("listen", "problem"),
    [
        ("unix:///run/planner.sock", None),
        ("unix:planner.sock", None),
        ("127.0.0.1:50051", None),
        ("[::1]:0", None),
        ("ipv4:127.0.0.1:1", None),
        ("planner.svc:65535", None),
        ("unix:", "names no file"),
        ("unix://", "names no file"),
        ("unix:///" + "x" * 107, "is too long"),
        ("unix:///a\0b", "holds characters"),
        ("unix:///\ud800", "holds characters"),
        ("127.0.0.1", "is neither"),
        ("127.0.0.1:99999", "is neither"),
        ("127.0.0.1:http", "is neither"),
        ("tcp://127.0.0.1:1", "is neither"),
        ("", "is neither"),
    ],
)
async def test_addresses(listen: str, problem: str | None) -> None:
    settings = GatewaySettings(enabled=True, listen=listen, allow_insecure=True)
    found = listen_problem(settings)
    assert found == problem or (problem is not None and found is not None and found.startswith(problem))
    if problem is not None:
        with pytest.raises(GatewayError, match=f"cannot listen: .* {problem}"):
            await Gateway(registry(), settings, lambda: 0.0, nothing).start()


async def test_a_socket_is_not_taken_from_who_listens(tmp_path: Path) -> None:
    async with gateway(registry(secrets=SECRETS), f"unix://{tmp_path}/r.sock") as address:
        with pytest.raises(GatewayError, match="another process does"):
            await made(address).start()
        assert await ask(address, "Register", *ME) == [(1, 0, 1), (3, 2, b"1.0")]


async def test_a_socket_that_was_left_behind_is_replaced_and_closed_to_others(tmp_path: Path) -> None:
    path = tmp_path / "r.sock"
    with socket.socket(socket.AF_UNIX) as left:
        left.bind(str(path))
    path.chmod(0o777)
    running = made(f"unix://{path}")
    address = await running.start()
    assert path.stat().st_mode & 0o007 == 0
    assert await ask(address, "Register", *ME) == [(1, 0, 1), (3, 2, b"1.0")]
    await running.stop()
    assert not path.exists()


async def test_what_is_no_socket_stays(tmp_path: Path) -> None:
    (tmp_path / "notes").write_text("precious")
    with pytest.raises(GatewayError, match="something that is no socket has that name"):
        await made(f"unix://{tmp_path}/notes").start()
    assert (tmp_path / "notes").read_text() == "precious"
    with pytest.raises(GatewayError, match=f"there is no folder {tmp_path}/none: create it"):
        await made(f"unix://{tmp_path}/none/r.sock").start()


def test_there_is_a_most_of_plugins(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry_module, "MOST_PLUGINS", 3)
    full = registry()
    full.register_internal("inside", "propose", 1, object(), 0.0)
    answers = [full.register(registration(plugin_id=f"p{i}"), 0.0) for i in range(5)]
    assert [answer.accepted for answer in answers] == [True, True, True, False, False]
    assert answers[3].reject_reason == "registry_full: there are 3 plugins already"
    full.unregister("p0", "")
    assert full.register(registration(plugin_id="p9"), 0.0).accepted


@pytest.mark.parametrize(
    "fields",
    [
        (text(1, "x" * 257),),
        (text(1, "p\n\x1b[2J"),),
        (text(4, "grpc://" + "h" * 257 + ":1"),),
        (text(5, "v" * 257),),
        (text(8, "n" * 257),),
        (text(8, "observations.fpm"),) * 65,
    ],
    ids=range(6),
)
async def test_registrations_that_are_too_much(fields: tuple[Any, ...]) -> None:
    kept = registry(secrets=SECRETS)
    async with gateway(kept) as address:
        assert await ask(address, "Register", *ME, *fields) is grpc.StatusCode.INVALID_ARGUMENT
    assert kept.plugins == ()


def test_an_endpoint_is_printable() -> None:
    assert target_of("grpc://a:1") == "a:1"
    assert target_of("grpc://a\0b:1") is None


@pytest.mark.parametrize("stage", ["predict", "propose", "reconcile", "constrain"])
def test_a_reason_that_nobody_reads(stage: PluginStage) -> None:
    def answer(length: int) -> object:
        return predicted(1.0, reason="x" * length) if stage == "predict" else override(("decode", 1), reason="x" * length)

    assert not isinstance(checked(stage, answer(10_000)), Failure)
    assert isinstance(checked(stage, answer(10_001)), Failure)


def test_more_targets_than_components() -> None:
    assert not isinstance(checked("propose", override(*[("decode", 1)] * 256)), Failure)
    found = checked("propose", override(*[("decode", 1)] * 257))
    assert isinstance(found, Failure)
    assert found.message == "257 targets are more than 256"
