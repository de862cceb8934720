"""What the long-running commands make of flags and configuration, and what they tell about unreadable objects."""

import argparse
import os
import signal
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import anyio
import pytest

from api.operatorconfig import LeaderElection, OperatorConfiguration
from api.plan import Key
from cli import process
from cli.main import main
from cli.process import add_options, lease_of, listen_on
from controllers.runtime.assembly import Candidacy, Unreadable
from controllers.runtime.identity import CredentialsError
from controllers.runtime.manager import EXIT_CRASHED, EXIT_LOST, EXIT_STOPPED
from tests.runtime_fakes import FakeRecorder, eventually, ref_of, seeded

LEASE = Key("ns", "lease")
FILE = LeaderElection(resource_name="of-file", resource_namespace="file-ns")


def _options(*flags: str, lease: str = "") -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    add_options(parser, "127.0.0.1:1", lease)
    return parser.parse_args(flags)


@pytest.mark.parametrize(
    ("flags", "election", "lease", "expected"),
    [
        ((), LeaderElection(), "", Key("pod-ns", "grove-operator-leader-election")),
        ((), LeaderElection(resource_name=""), "", Key("pod-ns", "grove-operator-leader-election")),
        ((), FILE, "", Key("file-ns", "of-file")),
        (("--lease-name", "a", "--lease-namespace", "b"), FILE, "", Key("b", "a")),
        ((), FILE, "scheduler", Key("file-ns", "scheduler")),
    ],
    ids=["defaults", "no name", "file", "flags", "a lease of its own"],
)
def test_the_lease(flags: tuple[str, ...], election: LeaderElection, lease: str, expected: Key) -> None:
    config = OperatorConfiguration(leader_election=election)
    assert lease_of(_options(*flags, lease=lease), config, "pod-ns") == expected


class Life:
    """A manager that ends as the script says; "wait": when it is stopped, and once more for "stubborn"."""

    def __init__(self, end: int | str, epoch: int) -> None:
        self.end = end
        self.epoch = epoch
        self.reason = f"life {epoch}"
        self.stops = 0
        self.begun = anyio.Event()

    def stop(self) -> None:
        self.stops += 1

    async def run(self) -> int:
        self.begun.set()
        if isinstance(self.end, int):
            return self.end
        await eventually(lambda: self.stops == (2 if self.end == "stubborn" else 1))
        return EXIT_LOST if self.end == "lost" else EXIT_STOPPED


class Script:
    """Lives one after the other. `closing`: called when one is taken down."""

    def __init__(self, *ends: int | str, closing: Callable[[], None] = lambda: None) -> None:
        self.lives = [Life(end, epoch) for epoch, end in enumerate(ends, 1)]
        self.candidacies: list[Candidacy | None] = []
        self.closing = closing

    @asynccontextmanager
    async def make(self, candidacy: Candidacy | None) -> AsyncGenerator[Any]:
        self.candidacies.append(candidacy)
        yield SimpleNamespace(manager=self.lives[len(self.candidacies) - 1])
        self.closing()
        await anyio.sleep(0.01)

    async def run(self, lease: Key | None = LEASE) -> tuple[int, str]:
        with anyio.fail_after(5):
            return await process.Lives(self.make, lambda runtime: None, lease, seeded()).run()


async def test_who_loses_the_lease_begins_anew_under_another_name_and_with_what_it_knows() -> None:
    script = Script(EXIT_LOST, EXIT_LOST, EXIT_STOPPED)
    assert await script.run() == (EXIT_STOPPED, "life 3")
    first, second, third = script.candidacies
    assert first is not None
    assert second is not None
    assert third is not None
    assert [(c.lease, c.epoch) for c in (first, second, third)] == [(LEASE, 0), (LEASE, 1), (LEASE, 2)]
    assert len({first.holder, second.holder, third.holder}) == 3


async def test_a_crash_ends_it() -> None:
    script = Script(EXIT_CRASHED)
    assert await script.run(None) == (EXIT_CRASHED, "life 1")
    assert script.candidacies == [None]


def terminate() -> None:
    os.kill(os.getpid(), signal.SIGTERM)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
@pytest.mark.parametrize(("end", "signals", "code"), [("wait", 1, EXIT_STOPPED), ("lost", 1, EXIT_LOST), ("stubborn", 2, EXIT_STOPPED)])
async def test_signals_stop_the_life_that_is(end: str, signals: int, code: int, number: signal.Signals) -> None:
    script = Script(EXIT_LOST, end, EXIT_STOPPED)
    async with anyio.create_task_group() as tasks:

        async def told() -> None:
            await script.lives[1].begun.wait()
            for sent in range(signals):
                os.kill(os.getpid(), number)
                await eventually(lambda sent=sent: script.lives[1].stops == sent + 1)

        tasks.start_soon(told)
        assert await script.run() == (code, "life 2")
    assert [life.stops for life in script.lives] == [0, signals, 0]


async def test_a_signal_between_two_lives_is_not_lost() -> None:
    script = Script(EXIT_LOST, EXIT_STOPPED, closing=terminate)
    assert await script.run() == (EXIT_LOST, "life 1")
    assert len(script.candidacies) == 1


async def test_what_fails_before_a_life_is_told_as_it_is() -> None:
    @asynccontextmanager
    async def make(candidacy: Candidacy | None) -> AsyncGenerator[Any]:
        raise CredentialsError("no token")
        yield

    with pytest.raises(CredentialsError, match="no token"):
        await process.Lives(make, lambda runtime: None, None, seeded()).run()


def test_what_cannot_be_read_is_announced_when_a_term_begins_and_at_once_from_then_on() -> None:
    recorder = FakeRecorder()
    unreadable = Unreadable(recorder)
    unreadable.tell(ref_of("a"), "spec.replicas: int_type")
    assert recorder.events == []
    unreadable.begin()
    unreadable.tell(ref_of("b"), "spec")
    unreadable.begin()
    assert [(ref.name, reason, kind) for ref, reason, _, kind in recorder.events] == [
        ("a", "InvalidSpec", "Warning"),
        ("b", "InvalidSpec", "Warning"),
    ]
    assert "spec.replicas" in recorder.events[0][2]


@pytest.mark.parametrize(
    ("text", "host", "port"),
    [("127.0.0.1:8080", "127.0.0.1", 8080), ("0.0.0.0:2751", "0.0.0.0", 2751), ("[::]:2761", "::", 2761), ("[::1]:0", "::1", 0)],  # noqa: S104
)
def test_addresses_to_listen_on(text: str, host: str, port: int) -> None:
    listen = listen_on(text)
    assert (listen.host, listen.port) == (host, port)


@pytest.mark.parametrize("text", ["8080", ":8080", "127.0.0.1:", "127.0.0.1:65536", "127.0.0.1:http", "[]:1", "::1", "::1:80"])
def test_addresses_that_are_none(text: str) -> None:
    with pytest.raises(ValueError, match="expected HOST:PORT"):
        listen_on(text)


@pytest.fixture
def termination_log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The file that a pod has for the reason of its end."""
    path = tmp_path / "termination-log"
    path.write_text("of the process before, which was longer than what comes now, whatever that is\n" * 20)
    monkeypatch.setattr(process, "TERMINATION_LOG", path)
    return path


@pytest.mark.parametrize("command", ["controllers", "scheduler"])
@pytest.mark.parametrize(
    ("config", "words"),
    [
        ("scheduler: {profile: x}", ("scheduler.profile",)),
        ("grovekeeper: {schedulerNames: []}", ("grovekeeper.schedulerNames",)),
        ("scheduler: {defaultProfileName: nobody}", ("scheduler.defaultProfileName", "nobody")),
        ("a: [", ()),
        (None, ("cannot be read",)),
    ],
    ids=["unknown key", "no scheduler names", "unknown scheduler", "no YAML", "no file"],
)
def test_a_configuration_that_cannot_be_used_is_told_to_the_pod(
    command: str,
    config: str | None,
    words: tuple[str, ...],
    tmp_path: Path,
    termination_log: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    path = tmp_path / "controllers.yaml"
    if config is not None:
        path.write_text(config)
    assert main([command, "--config", str(path)]) == 4
    last = capsys.readouterr().err.splitlines()[-1]
    said = termination_log.read_text()
    assert [word for word in (str(path), *words) if word not in said] == []
    assert last == "error: " + said.splitlines()[-1]


def test_credentials_that_are_not_there(tmp_path: Path, termination_log: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["scheduler", "--kubeconfig", str(tmp_path / "nowhere")]) == 5
    assert f"cannot read kubeconfig {tmp_path / 'nowhere'}" in termination_log.read_text()
    assert capsys.readouterr().err.splitlines()[-1].startswith("error: cannot read kubeconfig")


def test_without_a_termination_log_none_is_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process, "TERMINATION_LOG", tmp_path / "termination-log")
    assert process.fail(4, "because") == 4
    assert list(tmp_path.iterdir()) == []
