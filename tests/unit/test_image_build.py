"""hack.image: where things come from, and what it says when they are not there. Docker is a script here."""

import subprocess
import sys
from pathlib import Path

import pytest

from hack.image import base, context, wheels
from hack.image.__main__ import main
from hack.image.base import Mirrors, Recipe, find_mirrors, make_base
from hack.image.context import OWN, of_revision
from hack.image.docker import Docker, ImageError, find_docker, run_lines
from hack.image.measure import parts
from hack.image.wheels import platform_tags, put_wheels

DEB822 = """Types: deb
# comment
URIs: http://mirror.example/debian/
Suites: bookworm bookworm-updates
Components: main

Types: deb deb-src
URIs: http://mirror.example/security
Suites: bookworm-security
"""


def quiet(_line: str) -> None:
    """Nobody listens."""


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that is all of the path, with the programs that scripts need."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder))
    return folder


def script(folder: Path, name: str, text: str) -> None:
    file = folder / name
    file.write_text(f"#!/bin/sh\n{text}\n", encoding="utf-8")
    file.chmod(0o755)


def test_without_docker_it_says_what_to_install(path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr("sys.argv", ["hack.image"])
    assert main() == 1
    assert "apt-get install docker.io" in capsys.readouterr().err


def test_without_a_daemon_it_says_how_to_start_one(path: Path) -> None:
    script(path, "docker", "echo 'Cannot connect to the Docker daemon' >&2; exit 1")
    with pytest.raises(ImageError, match=r"(?s)Cannot connect.*dockerd as root"):
        find_docker()


@pytest.mark.parametrize(("code", "expected"), [(0, True), (1, False)])
def test_buildkit_is_used_where_buildx_is(path: Path, code: int, expected: bool) -> None:
    script(path, "docker", f'[ "$1" = buildx ] && exit {code}; echo arm64')
    found = find_docker()
    assert (found.architecture, found.has_buildkit) == ("arm64", expected)


def test_a_build_is_told_tags_arguments_and_builder(path: Path, tmp_path: Path) -> None:
    script(path, "docker", 'echo "$DOCKER_BUILDKIT $*"')
    lines: list[str] = []
    Docker("amd64", has_buildkit=False).build(tmp_path, ["a:1", "a:2"], {"BASE": "b"}, lines.append)
    expected = f"0 build --network none --file {tmp_path}/Dockerfile --tag a:1 --tag a:2 --build-arg BASE=b {tmp_path}"
    assert [line.strip() for line in lines] == [expected]


def test_a_failure_repeats_the_last_lines() -> None:
    with pytest.raises(ImageError) as failed:
        run_lines([sys.executable, "-c", "for i in range(40): print(i)\nraise SystemExit(3)"], quiet)
    assert str(failed.value).splitlines()[0].endswith("failed with 3:")
    assert str(failed.value).splitlines()[1:] == [str(i) for i in range(25, 40)]


def test_mirrors_are_those_of_this_machine_in_either_format(tmp_path: Path) -> None:
    new, old = tmp_path / "debian.sources", tmp_path / "sources.list"
    new.write_text(DEB822, encoding="utf-8")
    assert find_mirrors("bookworm", [new]) == Mirrors("http://mirror.example/debian", "http://mirror.example/security")
    old.write_text("deb [arch=amd64] http://old.example/debian bookworm main\n# deb http://x bookworm-security main\n", encoding="utf-8")
    assert find_mirrors("bookworm", [old]) == Mirrors(main="http://old.example/debian")


def test_other_suites_of_this_machine_are_no_mirrors(tmp_path: Path) -> None:
    file = tmp_path / "sources.list"
    file.write_text("deb http://other.example/ubuntu noble main\n", encoding="utf-8")
    assert find_mirrors("bookworm", [file]) == Mirrors()


def test_the_tag_of_the_base_is_a_function_of_the_recipe() -> None:
    assert Recipe("amd64").tag == Recipe("amd64").tag
    assert len({Recipe("amd64").tag, Recipe("arm64").tag, Recipe("amd64", revision=0).tag, Recipe("amd64", packages=("x",)).tag}) == 4


def test_a_base_that_is_there_is_used_and_a_missing_one_needs_root(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(base.os, "geteuid", lambda: 1000)
    script(path, "docker", "exit 0")
    assert make_base(Docker("amd64", has_buildkit=False), quiet, fresh=False) == Recipe("amd64").tag
    script(path, "docker", "exit 1")
    with pytest.raises(ImageError, match=r"needs root.*--base python"):
        make_base(Docker("amd64", has_buildkit=False), quiet, fresh=False)


def test_missing_tools_that_cannot_be_installed_are_named(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(base.os, "geteuid", lambda: 0)
    monkeypatch.setattr(base, "KEYRING", path / "missing.gpg")
    script(path, "docker", "exit 1")
    with pytest.raises(ImageError, match=r"debootstrap and debian-archive-keyring: install them"):
        make_base(Docker("amd64", has_buildkit=False), quiet, fresh=False)


def test_a_base_does_not_tell_the_mirror_of_the_machine_that_made_it(path: Path, tmp_path: Path) -> None:
    (tmp_path / "root/etc/apt").mkdir(parents=True)
    script(path, "chroot", f'while read -r line; do echo "$line"; done <"$1/etc/apt/sources.list" >>{tmp_path}/used')
    mirrors = Mirrors("https://user:secret@mirror.example/debian", "https://user:secret@mirror.example/security")
    base._upgrade(Recipe("amd64"), mirrors, tmp_path / "root", quiet)  # pyright: ignore[reportPrivateUsage] - the rest needs root
    assert "deb https://user:secret@mirror.example/security bookworm-security main\n" in (tmp_path / "used").read_text()
    assert (tmp_path / "root/etc/apt/sources.list").read_text().splitlines() == [
        "deb http://deb.debian.org/debian bookworm main",
        "deb http://deb.debian.org/debian bookworm-updates main",
        "deb http://deb.debian.org/debian-security bookworm-security main",
    ]


def test_platforms_end_at_the_glibc_of_the_base() -> None:
    tags = platform_tags("arm64")
    assert tags[0] == "manylinux_2_36_aarch64"
    assert "manylinux_2_28_aarch64" in tags
    assert "manylinux2014_aarch64" in tags
    with pytest.raises(ImageError, match="no image for riscv64"):
        platform_tags("riscv64")


@pytest.fixture
def locks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A build context with locks; the cache is empty."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    for name in ("requirements/runtime.lock", "hack/image/pip.lock"):
        (tmp_path / "tree" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "tree" / name).write_text(f"# {name}\n", encoding="utf-8")
    return tmp_path / "tree"


def test_wheels_of_the_lock_replace_older_ones_and_are_downloaded_once(locks: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    downloads: list[str] = []

    def download(_locks: object, tags: tuple[str, ...], folder: Path, _report: object) -> None:
        downloads.append(tags[-1])
        folder.mkdir()
        (folder / f"a-1-{tags[-1]}.whl").touch()

    monkeypatch.setattr(wheels, "_download", download)
    (locks / "build/wheels").mkdir(parents=True)
    (locks / "build/wheels/old-1.whl").touch()
    for _ in range(2):
        put_wheels(locks, ["amd64", "arm64"], quiet)
    assert sorted(p.name for p in (locks / "build/wheels").iterdir()) == ["a-1-manylinux2014_aarch64.whl", "a-1-manylinux2014_x86_64.whl"]
    assert downloads == ["manylinux2014_x86_64", "manylinux2014_aarch64"]


def test_a_missing_wheel_is_named_with_its_platform_and_nothing_is_cached(locks: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(argv: list[str], _report: object) -> None:
        raise ImageError(f"{argv[0]} failed with 1:\nNo matching distribution found for numpy")

    monkeypatch.setattr(wheels, "run_lines", fail)
    with pytest.raises(
        ImageError, match=r"(?s)found for numpy\nNot every package of .*runtime.lock .*manylinux2014_x86_64 and Python 3.11"
    ):
        put_wheels(locks, ["amd64"], quiet)
    assert not list((locks.parent / "cache").rglob("*.whl"))


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository with one commit that has no Dockerfile, and one beside it that has not been committed."""
    folder = tmp_path / "repository"
    folder.mkdir()
    (folder / "pyproject.toml").write_text('[project]\nversion = "0.0.1"\n', encoding="utf-8")
    identity = ["-c", "user.name=a", "-c", "user.email=a@b"]
    for command in (["init", "-q"], ["add", "."], [*identity, "commit", "-qm", "First"]):
        subprocess.run(["git", "-C", str(folder), *command], check=True, capture_output=True)  # noqa: S603, S607 - in a folder of its own
    for name in OWN:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("ours\n", encoding="utf-8")
    (folder / "pyproject.toml").write_text('[project]\nversion = "0.0.2"\n', encoding="utf-8")
    monkeypatch.setattr(context, "CHECKOUT", folder)
    return folder


def test_a_revision_without_a_dockerfile_borrows_ours(repository: Path) -> None:
    with of_revision("HEAD") as source:
        assert source.version == "0.0.1"
        assert len(source.revision) == 40
        assert all((source.folder / name).read_text(encoding="utf-8") == "ours\n" for name in OWN)
        folder = source.folder
    assert not folder.exists()


def test_the_working_tree_is_marked_when_it_differs_from_its_commit(repository: Path) -> None:
    (repository / ".dockerignore").write_text("*\n!api\n", encoding="utf-8")
    source = context.of_working_tree()
    assert source.version == "0.0.2"
    assert source.revision.endswith("-dirty")


def test_an_unknown_revision_is_told(repository: Path) -> None:
    with pytest.raises(ImageError, match="nowhere: no such revision"), of_revision("nowhere"):
        pass


CLASSIC = "/bin/sh -c #(nop) COPY dir:12 in {0} "
BUILDKIT = "COPY {0} {0} # buildkit"


@pytest.mark.parametrize("copy", [CLASSIC, BUILDKIT], ids=["classic", "buildkit"])
def test_sizes_by_part_from_either_builders_history(path: Path, copy: str) -> None:
    lines = ["0\tLABEL a=b", f"7\t{copy.format('/opt/grovekeeper')}", f"20\t{copy.format('/opt/venv')}", "100\t"]
    (path / "history").write_text("\n".join(lines), encoding="utf-8")
    script(path, "docker", f'[ "$1" = image ] && echo 127 && exit\nwhile read -r line; do echo "$line"; done < {path}/history')
    assert parts(Docker("amd64", has_buildkit=False), "a:1") == {"image": 127, "base": 100, "venv": 20, "code": 7}
