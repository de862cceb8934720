"""What is built: the working tree, or a revision in a folder of its own."""

import contextlib
import shutil
import subprocess
import tempfile
import tomllib
from collections.abc import Generator
from dataclasses import dataclass
from pathlib import Path

from hack.image.docker import ImageError

__all__ = ("CHECKOUT", "Source", "of_revision", "of_working_tree")

CHECKOUT = Path(__file__).resolve().parents[2]
OWN = ("Dockerfile", ".dockerignore", "hack/image/make_venv.py", "hack/image/pip.lock")
"""What a revision from before there was an image borrows from the working tree."""


@dataclass(frozen=True, slots=True)
class Source:
    """`folder`: the build context. `revision`: full commit, with "-dirty" when files differ from it, "unknown" outside of git."""

    folder: Path
    version: str
    revision: str


def of_working_tree() -> Source:
    """The checkout as it is, with what is not committed."""
    commit = _git("rev-parse", "HEAD")
    if commit is None:
        return Source(CHECKOUT, _version(CHECKOUT), "unknown")
    roots = (CHECKOUT / ".dockerignore").read_text(encoding="utf-8").splitlines()
    paths = [line[1:] for line in roots if line.startswith("!") and not line.startswith("!build")]
    return Source(CHECKOUT, _version(CHECKOUT), commit + ("-dirty" if _git("status", "--porcelain", "--", "Dockerfile", *paths) else ""))


@contextlib.contextmanager
def of_revision(name: str) -> Generator[Source]:
    """The files of a commit, in a folder that lives as long as the context. Raises ImageError for an unknown revision."""
    commit = _git("rev-parse", "--verify", "--quiet", f"{name}^{{commit}}")
    if not commit:
        raise ImageError(
            f"{name}: no such revision in {CHECKOUT}; `git log --oneline` lists them, `git fetch --unshallow` completes a short clone"
        )
    with tempfile.TemporaryDirectory(prefix="grovekeeper-image-") as scratch:
        folder = Path(scratch)
        with subprocess.Popen(["git", "-C", str(CHECKOUT), "archive", commit], stdout=subprocess.PIPE) as archive:
            subprocess.run(["tar", "-x", "-C", str(folder)], check=True, stdin=archive.stdout)
        if archive.returncode != 0:
            raise ImageError(f"git archive {commit} failed with {archive.returncode}; `git fsck` tells what the checkout lacks")
        if not (folder / "Dockerfile").is_file():
            for path in OWN:
                (folder / path).parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(CHECKOUT / path, folder / path)
        yield Source(folder, _version(folder), commit)


def _git(*arguments: str) -> str | None:
    """What git prints, or None where it fails or is missing."""
    try:
        done = subprocess.run(["git", "-C", str(CHECKOUT), *arguments], check=False, capture_output=True, text=True)
    except FileNotFoundError:
        return None
    return done.stdout.strip() if done.returncode == 0 else None


def _version(folder: Path) -> str:
    return str(tomllib.loads((folder / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"])
