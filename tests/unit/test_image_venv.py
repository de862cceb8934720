"""hack.image.make_venv: what of the lock is in the image, and that our programs load nothing else."""

import json
import re
import subprocess
import sys
import tomllib
from importlib.metadata import distributions, packages_distributions
from pathlib import Path

import pytest

from cli.main import COMMANDS
from hack.image.make_venv import canonical, closure, direct_names, is_needless, main, unused_names

ROOT = Path(__file__).parents[2]
LOCK = (ROOT / "requirements/runtime.lock").read_text(encoding="utf-8")
UNUSED = (ROOT / "requirements/unused.txt").read_text(encoding="utf-8")
LOADED = """
import importlib, json, sys
from cli.main import COMMANDS
for name in COMMANDS:
    importlib.import_module(f"cli.{name}")
print(json.dumps(sorted({name.partition(".")[0] for name in sys.modules})))
"""


def in_image() -> set[str]:
    return closure(direct_names(LOCK), unused_names(UNUSED), distributions())


def test_direct_names_are_the_dependencies_of_the_project() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert direct_names(LOCK) == {canonical(re.split(r"[<>=!~;\[ ]", text)[0]) for text in project["dependencies"]}


def test_the_image_leaves_out_build_tools_and_unused_packages_but_nothing_else() -> None:
    locked = {canonical(name) for name in re.findall(r"^([A-Za-z0-9._-]+)==", LOCK, re.MULTILINE)}
    assert locked - in_image() == {"setuptools", "wheel", "packaging", "pandas", "python-dateutil", "tzdata"}


def test_our_programs_load_only_packages_of_the_image() -> None:
    assert "scheduler" in COMMANDS
    done = subprocess.run([sys.executable, "-c", LOADED], check=True, capture_output=True, text=True, cwd=ROOT)  # noqa: S603
    owners = packages_distributions()
    loaded = {canonical(owner) for module in json.loads(done.stdout) for owner in owners.get(module, ())}
    assert {"ortools", "aiohttp"} <= loaded
    assert loaded - {"grovekeeper", "setuptools"} <= in_image()  # setuptools: by a .pth file, in development only


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("numpy/_core/tests/test_umath.py", True),
        ("numpy/_core/include/numpy/arrayobject.h", True),
        ("ortools/sat/python/cp_model_helper.pyi", True),
        ("numpy/_core/lib/libnpymath.a", True),
        ("numpy/testing/__init__.py", False),
        ("ortools/.libs/libortools.so.9", False),
        ("aiohttp/test_utils.py", False),
        ("some/tests.py", False),
        ("aiohttp-3.14.5.dist-info/METADATA", False),
    ],
)
def test_only_suites_headers_and_stubs_are_needless(path: str, expected: bool) -> None:
    assert is_needless(Path(path)) is expected


def test_unused_names_are_a_line_each_with_comments() -> None:
    assert unused_names("# none\n\nPan_das  # why\n") == {"pan-das"}


def test_a_base_without_pip_and_no_wheels_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    source = tmp_path / "src"
    source.mkdir()
    (source / "runtime.lock").write_text("", encoding="utf-8")
    monkeypatch.setattr("hack.image.make_venv.__file__", str(source / "make_venv.py"))
    monkeypatch.setattr("sys.executable", "/bin/false")
    monkeypatch.setattr("hack.image.make_venv.venv.create", lambda *_arguments, **_options: None)  # pyright: ignore[reportUnknownLambdaType]
    assert main([str(tmp_path / "venv"), "/opt/grovekeeper"]) == 1
    assert "has no pip" in capsys.readouterr().err
