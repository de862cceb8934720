"""The images that the tests run: the one under test and the previous one."""

import os
import subprocess
import sys
import tarfile
from io import BytesIO
from pathlib import Path

from hack.codegen.files import ROOT

__all__ = ("IMAGE_VARIABLE", "NO_HISTORY", "build", "exists", "image_under_test", "manifests_of", "previous_revision")

IMAGE_VARIABLE = "GROVEKEEPER_KIND_IMAGE"
DEFAULT_IMAGE = "grovekeeper:dev"
FIRST_REVISION = "1258970"
"""What counts as the previous version before the first release."""
NO_HISTORY = ""


def image_under_test() -> str:
    """The image that $GROVEKEEPER_KIND_IMAGE names, else grovekeeper:dev."""
    return os.environ.get(IMAGE_VARIABLE) or DEFAULT_IMAGE


def exists(image: str) -> bool:
    """Whether the Docker daemon has it."""
    return subprocess.run(["docker", "image", "inspect", image], capture_output=True, check=False).returncode == 0


def build(image: str, revision: str = NO_HISTORY) -> None:
    """Build from the checkout, or from a revision of it."""
    arguments = ["--tag", image, *(["--revision", revision] if revision else [])]
    done = subprocess.run([sys.executable, "-m", "hack.image", *arguments], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"python -m hack.image {' '.join(arguments)} failed:\n{done.stdout[-2000:]}\n{done.stderr[-4000:]}"


def previous_revision() -> str:
    """The newest release, else FIRST_REVISION; NO_HISTORY in a copy without either."""
    tags = _git("tag", "--list", "v*", "--sort=-version:refname", "--merged", "HEAD")
    for candidate in (*(tags or "").split(), FIRST_REVISION):
        if _git("cat-file", "-e", f"{candidate}^{{commit}}") is not None:
            return candidate
    return NO_HISTORY


def manifests_of(revision: str, folder: Path) -> Path:
    """The manifests of a revision, unpacked into `folder`; those of the checkout if it had none to install from yet."""
    present = ROOT / "manifests"
    if not revision or not _git("ls-tree", revision, "manifests/base/kustomization.yaml"):
        return present
    packed = subprocess.run(["git", "archive", revision, "manifests"], cwd=ROOT, capture_output=True, check=True).stdout
    with tarfile.open(fileobj=BytesIO(packed)) as archive:
        archive.extractall(folder, filter="data")
    return folder / "manifests"


def _git(*arguments: str) -> str | None:
    """Output of git, None when it fails."""
    try:
        done = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        return None
    return done.stdout.strip() if done.returncode == 0 else None
