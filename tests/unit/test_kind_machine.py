"""What a machine grants, and what is said where it grants too little."""

import json
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from hack.kind import daemon, lesscaps
from hack.kind.daemon import obstacle
from hack.kind.docker import run
from hack.kind.failures import KindFailed, MachineUnfit
from hack.kind.host import SYS_RESOURCE, withheld_capabilities
from hack.kube import binaries, programs
from hack.kube.cache import BinariesMissing, NothingPrepared, locked

ALL = "CapEff:\t0000000000000000\nCapBnd:\t000001ffffffffff\n"
LESS = "CapEff:\t000001fffeffffff\nCapBnd:\t000001fffeffffff\n"


def test_capabilities_outside_the_bounding_set() -> None:
    assert withheld_capabilities(ALL, 40) == frozenset()
    assert withheld_capabilities(LESS, 40) == {SYS_RESOURCE}


def test_a_capability_that_the_kernel_does_not_know_is_not_withheld() -> None:
    assert withheld_capabilities("CapBnd:\t00000000000000ff\n", 7) == frozenset()


def test_only_granted_capabilities_are_asked_for() -> None:
    allowed = lesscaps.granted(LESS)
    process = {"args": ["sh"], "capabilities": {"bounding": ["CAP_SYS_ADMIN", "CAP_SYS_RESOURCE"], "ambient": []}}
    assert lesscaps.reduce(process, allowed) == {"args": ["sh"], "capabilities": {"bounding": ["CAP_SYS_ADMIN"], "ambient": []}}
    assert "CAP_SYS_RESOURCE" in lesscaps.granted(ALL)


def test_a_process_without_capabilities_is_left_alone() -> None:
    assert lesscaps.reduce({"args": ["sh"]}, frozenset()) == {"args": ["sh"]}


@pytest.mark.parametrize(
    ("arguments", "files"),
    [
        (["--root", "/r", "create", "--bundle", "/b", "--pid-file", "/p", "id"], {Path("/b/config.json"): True}),
        (["run", "-b=/b", "id"], {Path("/b/config.json"): True}),
        (["exec", "--process", "/p/p.json", "--detach", "id"], {Path("/p/p.json"): False}),
        (["--root=/r", "state", "id"], {}),
    ],
)
def test_files_that_runc_is_told_to_read(arguments: list[str], files: dict[Path, bool]) -> None:
    assert lesscaps.rewritten(arguments) == files


def test_the_runtime_rewrites_and_then_is_runc(tmp_path: Path) -> None:
    runc = tmp_path / "runc"
    runc.write_text('#!/bin/sh\necho "runc $*"\n')
    runc.chmod(runc.stat().st_mode | stat.S_IXUSR)
    config = tmp_path / "config.json"
    config.write_text(json.dumps({"process": {"capabilities": {"bounding": ["CAP_CHOWN", "CAP_NOT_YET_INVENTED"]}}}))
    program = tmp_path / "runtime.py"
    source = Path(lesscaps.__file__).read_text()
    program.write_text(source.replace(lesscaps.RUNC, str(runc)))
    said = subprocess.run(  # noqa: S603 - a file that this test wrote
        [sys.executable, "-IS", program, "create", "--bundle", tmp_path, "id"], capture_output=True, text=True, check=True
    )
    assert said.stdout == f"runc create --bundle {tmp_path} id\n"
    assert "CAP_NOT_YET_INVENTED" not in config.read_text()


@pytest.mark.parametrize(
    ("host", "user", "apt", "words"),
    [
        ("tcp://elsewhere:2375", 0, "/usr/bin/apt-get", "DOCKER_HOST=tcp://elsewhere:2375"),
        (None, 1000, "/usr/bin/apt-get", "usermod -aG docker"),
        (None, 0, None, "install Docker"),
    ],
)
def test_why_there_is_no_docker_and_what_to_do(host: str | None, user: int, apt: str | None, words: str) -> None:
    why = obstacle(host, user, apt)
    assert why is not None
    assert words in why


def test_root_on_debian_may_start_docker() -> None:
    assert obstacle(None, 0, "/usr/bin/apt-get") is None


def test_a_machine_that_cannot_is_told_apart_from_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOCKER_HOST", "tcp://127.0.0.1:1")
    with pytest.raises(MachineUnfit, match="unset DOCKER_HOST"):
        daemon.ensure(lambda _: None)


def test_missing_packages_are_named_to_a_user_who_may_not_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    with pytest.raises(KindFailed, match="sudo apt-get install novelty"):
        daemon.install({"no-such-program": "novelty", "sh": "dash"}, lambda _: None)


def test_a_failed_program_says_its_last_words() -> None:
    with pytest.raises(KindFailed, match=r"failed with 3:\nno luck"):
        run(["sh", "-c", "echo no luck >&2; exit 3"])


def test_a_missing_program_is_named() -> None:
    with pytest.raises(KindFailed, match="no-such-program is not installed"):
        run(["no-such-program"])


def test_a_program_that_hangs_is_given_up() -> None:
    with pytest.raises(KindFailed, match=r"`sleep 60` does not end within 0.05 s"):
        run(["sleep", "60"], timeout_s=0.05)


def program(path: Path, said: str) -> Path:
    path.write_text(f"#!/bin/sh\necho '{said}'\n")
    path.chmod(0o755)
    return path


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache, no prepared archive, and a PATH with one folder, which is returned."""
    path = tmp_path / "bin"
    path.mkdir()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("GROVEKEEPER_SHARED", str(tmp_path / "shared"))
    monkeypatch.setenv("PATH", str(path))
    return path


def test_a_program_of_a_good_version_is_taken_from_path(machine: Path) -> None:
    helm = program(machine / "helm", "v3.16.1")
    assert programs.find_program("helm") == helm
    assert binaries.find_program is programs.find_program


def test_an_old_program_on_path_is_passed_over(machine: Path) -> None:
    program(machine / "kind", "kind v0.20.0 go1.20 linux/amd64")
    with pytest.raises(BinariesMissing, match=r"no kind: .*install Go"):
        programs.find_program("kind")


def test_nothing_is_built_unless_it_may_be(machine: Path) -> None:
    with pytest.raises(NothingPrepared, match=r"hack\.kube build kind"):
        programs.find_program("kind", may_build=False)


def test_a_name_that_means_nothing_is_refused(machine: Path) -> None:
    with pytest.raises(BinariesMissing, match="nothing is known of a program docker"):
        programs.find_program("docker")


def test_who_waits_for_another_program_says_so(tmp_path: Path) -> None:
    said: list[str] = []
    hold = f"import fcntl; f = open({str(tmp_path / 'x.lock')!r}, 'w'); fcntl.flock(f, fcntl.LOCK_EX); print('held', flush=True); input()"
    with subprocess.Popen([sys.executable, "-c", hold], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as other:  # noqa: S603 - the text above
        assert other.stdout is not None
        assert other.stdin is not None
        assert other.stdout.readline() == "held\n"

        def let_go(line: str) -> None:
            said.append(line)
            assert other.stdin is not None
            other.stdin.write("\n")
            other.stdin.flush()

        with locked(tmp_path / "x", let_go):
            assert said == [f"waiting for another program that has {tmp_path / 'x'}"]
    with locked(tmp_path / "x", said.append):
        assert len(said) == 1
