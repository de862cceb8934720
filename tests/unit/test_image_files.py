"""The Dockerfile and what surrounds it agree with each other and with the project."""

import re
import tomllib
from fnmatch import fnmatch
from pathlib import Path

import pytest

from cli.main import main
from cli.version import VERSION

ROOT = Path(__file__).parents[2]
DOCKERFILE = (ROOT / "Dockerfile").read_text(encoding="utf-8")
IGNORE = (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines()


def copied() -> list[str]:
    lines = re.findall(r"^COPY (?!--from)(.*)$", DOCKERFILE, re.MULTILINE)
    return [source for line in lines for source in line.split()[:-1]]


def test_everything_copied_exists_or_is_a_pattern() -> None:
    missing = [source for source in copied() if "[" not in source and not (ROOT / source).exists()]
    assert not missing


def test_the_context_lets_everything_copied_through() -> None:
    allowed = [line[1:] for line in IGNORE if line.startswith("!")]
    shut = [s for s in copied() if not any(fnmatch(name, s) or name.startswith(f"{s}/") for name in allowed)]
    assert not shut


def test_the_context_holds_no_more_than_what_is_copied() -> None:
    allowed = [line[1:] for line in IGNORE if line.startswith("!")]
    spare = [name for name in allowed if not any(fnmatch(name, s) or name.startswith(f"{s}/") for s in copied())]
    assert not spare
    assert IGNORE[1] == "*"


def test_the_code_comes_after_the_packages_so_that_a_change_rebuilds_little() -> None:
    last = DOCKERFILE.rpartition("FROM ${BASE}")[2]
    assert last.index("COPY --from=venv") < last.index("COPY --from=code") < last.index("ARG REVISION")


def test_the_image_runs_as_nobody_by_number() -> None:
    assert re.findall(r"^USER (.*)$", DOCKERFILE, re.MULTILINE) == ["65532:65532"]


def test_the_version_is_the_same_everywhere() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert project["version"] == VERSION
    assert re.findall(r"^ARG VERSION=(.*)$", DOCKERFILE, re.MULTILINE) == [VERSION]


@pytest.mark.parametrize(("revision", "expected"), [(None, f"grovekeeper {VERSION}\n"), ("abc123", f"grovekeeper {VERSION} (abc123)\n")])
def test_version_option(revision: str | None, expected: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    if revision is None:
        monkeypatch.delenv("GROVEKEEPER_REVISION", raising=False)
    else:
        monkeypatch.setenv("GROVEKEEPER_REVISION", revision)
    with pytest.raises(SystemExit) as ended:
        main(["--version"])
    assert ended.value.code == 0
    assert capsys.readouterr().out == expected
