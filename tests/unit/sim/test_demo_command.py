"""`grovekeeper demo` as people run it: placed, not placed, wrong input, stopped, run twice."""

import io
import logging
import os
import signal
import socket
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from cli.main import main
from sim.demo.place import occupied

ROOT = Path(__file__).parents[3]
SAMPLE = ROOT / "manifests" / "samples" / "disaggregated.yaml"


@dataclass(frozen=True)
class Done:
    """A demo that has ended."""

    returncode: int
    stdout: str
    stderr: str


Demo = Callable[..., Done]


@pytest.fixture
def demo(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Iterator[Demo]:
    """Runs a demo in this process, which saves loading everything again; its logging goes with it."""
    root = logging.getLogger()
    handlers, level = list(root.handlers), root.level

    def run(*arguments: str, given: str = "") -> Done:
        monkeypatch.setattr(sys, "stdin", io.StringIO(given))
        code = main(["demo", "--state", str(tmp_path), *arguments])
        captured = capsys.readouterr()
        return Done(code, captured.out, captured.err)

    yield run
    root.handlers[:] = handlers
    root.setLevel(level)


def test_the_sample_is_placed_and_nothing_stays(demo: Demo, tmp_path: Path) -> None:
    done = demo("--once")
    assert (done.returncode, done.stderr) == (0, "")
    output = done.stdout
    assert "8 simulated nodes in 2 racks, 8 GPUs each" in output
    assert "created ClusterTopologyBinding cluster, PodCliqueSet default/chat" in output
    assert "PodCliqueSet default/chat  1/1 available" in output
    assert output.count("  Ready  node-") == 10
    assert "all gangs are placed and ready after " in output
    assert sorted(p.name for p in tmp_path.iterdir()) == ["demo.lock", "demo.log"]


def test_a_startup_order_from_standard_input_is_kept(demo: Demo) -> None:
    ordered = SAMPLE.read_text().replace("    terminationDelay: 10m\n", "    cliqueStartupType: CliqueStartupTypeInOrder\n")
    assert ordered != SAMPLE.read_text()
    done = demo("--once", "-f", "-", given=ordered)
    assert (done.returncode, done.stderr) == (0, "")
    assert "all gangs are placed and ready after " in done.stdout


def test_what_does_not_fit_says_why(demo: Demo) -> None:
    done = demo("--once", "--timeout", "1.5", "--nodes", "1", "--racks", "1")
    assert done.returncode == 1
    assert "gang chat-0: Pending (InsufficientCapacity)" in done.stdout
    assert "not all was placed and ready within 1.5 s:" in done.stderr
    assert "gang default/chat-0 waits: Scheduled: InsufficientCapacity: Needs 4 pods" in done.stderr
    assert "PodCliqueSet default/chat: 0 of 1 replicas available" in done.stderr


def test_what_the_server_refuses_is_named_by_field(demo: Demo) -> None:
    good = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: good, namespace: made-for-it}\n---\n"
    bad = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: Bad_Name}\n---\napiVersion: v9\nkind: Strange\nmetadata: {name: x}\n"
    done = demo("--once", "-f", "-", given=good + bad)
    assert done.returncode == 4
    assert 'ConfigMap default/Bad_Name: metadata.name: Invalid value: "Bad_Name"' in done.stderr
    assert "Strange x: the demo serves no kind Strange of v9" in done.stderr
    assert "ConfigMap made-for-it/good" in done.stdout


def test_a_port_that_is_taken_is_named(demo: Demo) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        done = demo("--once", "--port", str(port))
    assert done.returncode == 1
    assert f"error: cannot listen on 127.0.0.1:{port}" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("name", ["demo.log", "demo.lock", "kubeconfig", "server.crt"])
def test_a_folder_in_the_way_of_a_file_is_named(demo: Demo, tmp_path: Path, name: str) -> None:
    (tmp_path / name).mkdir()
    done = demo("--once")
    assert done.returncode == 1
    assert done.stderr.startswith("error: ")
    assert str(tmp_path) in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_many_gangs_are_told_in_figures(demo: Demo) -> None:
    many = (
        "apiVersion: grove.io/v1alpha1\nkind: PodCliqueSet\nmetadata: {name: many}\nspec:\n  replicas: 21\n  template:\n    cliques:\n"
        "    - {name: w, spec: {roleName: w, replicas: 1, podSpec: {containers: [{name: c, image: 'x:1'}]}}}\n"
    )
    done = demo("--once", "-f", "-", given=many)
    assert (done.returncode, done.stderr) == (0, "")
    assert "21 of 21 gangs run, 21 pods are bound" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "text", "code", "message"),
    [
        (["--nodes", "0"], "", 2, "--nodes: '0' is not a whole number from 1 to 5000"),
        (["--port", "x"], "", 2, "--port: 'x' is not a whole number"),
        (["--timeout", "nan"], "", 2, "--timeout: 'nan' is not a number of seconds"),
        (["--timeout", "0"], "", 2, "--timeout: '0' is not a number of seconds"),
        (["-f", "/nowhere"], "", 4, "/nowhere: cannot be read"),
        (["-f", "FILE"], "a: [", 4, "not valid YAML"),
        (
            ["-f", "FILE"],
            SAMPLE.read_text().replace("replicas: 2", "replicass: 2"),
            4,
            "cliques[0].spec.replicass: Forbidden: unknown field",
        ),
        (
            ["-f", "FILE"],
            SAMPLE.read_text().replace("minAvailable: 1", "minAvailable: 9"),
            4,
            "minAvailable must not be greater than replicas",
        ),
    ],
)
def test_wrong_input_starts_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], text: str, code: int, message: str
) -> None:
    (tmp_path / "file.yaml").write_text(text)
    given = ["demo", "--state", str(tmp_path / "state"), *(a.replace("FILE", str(tmp_path / "file.yaml")) for a in arguments)]
    try:
        got = main(given)
    except SystemExit as exit_:
        got = exit_.code
    assert got == code
    assert message in capsys.readouterr().err
    assert not (tmp_path / "state").exists()


def test_a_second_demo_in_the_same_folder_is_refused(demo: Demo, tmp_path: Path) -> None:
    with occupied(tmp_path) as place:
        place.kubeconfig.write_text("of the first")
        done = demo("--once")
        assert (done.returncode, done.stdout) == (1, "")
        assert f"a demo runs already in {tmp_path} (process {os.getpid()})" in done.stderr
        assert place.kubeconfig.read_text() == "of the first"


def until(lines: Iterator[str], text: str) -> None:
    """Reads on to a line with the text."""
    for line in lines:
        if text in line:
            return
    raise AssertionError(f"it ended without {text!r}")


def test_it_stays_up_for_clients_until_it_is_stopped(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = [sys.executable, "-m", "cli.main", "demo", "--state", str(tmp_path)]
    process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)  # noqa: S603 - our own program
    try:
        assert process.stdout is not None
        until(iter(process.stdout), f"export KUBECONFIG={tmp_path}/kubeconfig")
        kubeconfig = tmp_path / "kubeconfig"
        assert stat.S_IMODE(kubeconfig.stat().st_mode) == 0o600
        assert main(["get", "--kubeconfig", str(kubeconfig)]) == 0
        assert "PodCliqueSet default/chat  1/1 available" in capsys.readouterr().out
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=10)
    finally:
        process.kill()
    assert process.returncode == 0
    assert not kubeconfig.exists()


def test_it_can_be_stopped_while_it_places(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "cli.main", "demo", "--state", str(tmp_path)]
    process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)  # noqa: S603 - our own program
    try:
        assert process.stdout is not None
        until(iter(process.stdout), "created ")
        process.send_signal(signal.SIGTERM)
        _, errors = process.communicate(timeout=10)
    finally:
        process.kill()
    assert (process.returncode, errors) == (130, "")
    assert not (tmp_path / "kubeconfig").exists()
