"""Makes the image's virtual environment: python3 make_venv.py VENV CODE, beside the locks and, if there are any, the wheels.

Runs inside the image build on the base image's Python, so it imports nothing but the standard library.
"""

import compileall
import re
import shutil
import subprocess
import sys
import venv
from collections.abc import Iterable, Set
from importlib.metadata import Distribution, distributions
from pathlib import Path
from py_compile import PycInvalidationMode

__all__ = ("closure", "direct_names", "is_needless", "main", "unused_names")

NEEDLESS_FOLDERS = frozenset({"tests", "include"})
"""Suites of the packages and headers for compilers; nothing imports them."""
NEEDLESS_SUFFIXES = frozenset({".a", ".c", ".cc", ".cpp", ".h", ".hpp", ".lib", ".pxd", ".pxi", ".pyi", ".pyx"})
"""What only compilers and type checkers read."""
PROGRAM = """#!{python} -Iu
import sys

from cli.main import main

sys.exit(main())
"""


def main(arguments: list[str]) -> int:
    """VENV: where to make it. CODE: the folder of our import roots, which need not exist yet."""
    target, code = Path(arguments[0]), Path(arguments[1])
    here = Path(__file__).resolve().parent
    venv.create(target, symlinks=True)
    python = target / "bin" / "python"
    lock = here / "runtime.lock"
    if (failed := _install(here, python, lock)) != 0:
        return failed
    site = next((target / "lib").glob("python3*")) / "site-packages"
    unused = here / "unused.txt"
    listed = unused.read_text(encoding="utf-8") if unused.is_file() else ""
    _drop_unneeded(site, direct_names(lock.read_text(encoding="utf-8")), unused_names(listed))
    _trim(site)
    _programs(target, python)
    (site / "grovekeeper.pth").write_text(f"{code}\n", encoding="utf-8")
    fine = compileall.compile_dir(site, quiet=1, maxlevels=100, workers=0, invalidation_mode=PycInvalidationMode.UNCHECKED_HASH)
    return 0 if fine else 1


def _install(here: Path, python: Path, lock: Path) -> int:
    wheels = sorted(here.glob("*.whl"))
    pip = [sys.executable, "-m", "pip"]
    if own := [w for w in wheels if w.name.startswith("pip-")]:
        pip = [sys.executable, str(own[0] / "pip")]  # a wheel of pip runs without being installed
    elif subprocess.run([*pip, "--version"], check=False, capture_output=True).returncode != 0:
        sys.stderr.write("error: this base image has no pip: take one that has, or build with python -m hack.image, which brings it\n")
        return 1
    source = ["--no-index", "--find-links", str(here)] if wheels else []
    options = ["--require-hashes", "--only-binary", ":all:", "--no-deps", "--no-compile", "--no-cache-dir", "--disable-pip-version-check"]
    command = [*pip, "--python", str(python), "install", "--quiet", "--root-user-action", "ignore", *options, *source, "-r", str(lock)]
    return subprocess.run(command, check=False).returncode


def direct_names(lock: str) -> set[str]:
    """Packages that pyproject.toml itself asks for, by pip-compile's notes in its one-line style."""
    pairs = re.findall(r"^(\S+)==.*(?:\n +--hash=\S+.*)*\n +# via (.*)$", lock, re.MULTILINE)
    return {canonical(name) for name, via in pairs if "(pyproject.toml)" in via}


def canonical(name: str) -> str:
    """The name by which packages are compared."""
    return re.sub(r"[-_.]+", "-", name).lower()


def unused_names(listed: str) -> set[str]:
    """Of unused.txt: a name a line, and comments."""
    return {canonical(name) for line in listed.splitlines() if (name := line.partition("#")[0].strip())}


def closure(wanted: Iterable[str], unused: Set[str], found: Iterable[Distribution]) -> set[str]:
    """The names wanted and what they require without extras, less the unused and what only those require."""
    requires = {canonical(d.metadata["Name"]): d.requires or [] for d in found}
    reached: set[str] = set()
    todo = list(wanted)
    while todo:
        name = todo.pop()
        if name in reached or name in unused or name not in requires:
            continue
        reached.add(name)
        plain = (r for r in requires[name] if "extra ==" not in r)
        todo += [canonical(match[0]) for r in plain if (match := re.match(r"[A-Za-z0-9._-]+", r))]
    return reached


def _drop_unneeded(site: Path, direct: set[str], unused: set[str]) -> None:
    """Takes out what is in the lock only to build (setuptools, wheel and what these require) and what is unused."""
    found = list(distributions(path=[str(site)]))
    needed = closure(direct, unused, found)
    for distribution in found:
        if canonical(distribution.metadata["Name"]) in needed:
            continue
        for file in distribution.files or ():
            Path(str(distribution.locate_file(file))).unlink(missing_ok=True)


def is_needless(path: Path) -> bool:
    """Whether a file, named relative to site-packages, is never read by a running process."""
    return not NEEDLESS_FOLDERS.isdisjoint(path.parts[:-1]) or path.suffix in NEEDLESS_SUFFIXES


def _trim(site: Path) -> None:
    for path in sorted(site.rglob("*"), reverse=True):
        if path.is_dir() and not path.is_symlink():
            if not any(path.iterdir()):
                path.rmdir()
        elif is_needless(path.relative_to(site)):
            path.unlink()


def _programs(target: Path, python: Path) -> None:
    """Leaves Python and our own program. -I: nothing of the user's environment or folder is imported; -u: lines leave at once."""
    for path in (target / "bin").iterdir():
        if not path.name.startswith("python"):
            path.unlink()
    shutil.rmtree(target / "include", ignore_errors=True)
    program = target / "bin" / "grovekeeper"
    program.write_text(PROGRAM.format(python=python), encoding="utf-8")
    program.chmod(0o755)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
