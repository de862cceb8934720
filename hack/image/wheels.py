"""The wheels of the lock for the image's platform, downloaded once and checked by hash."""

import hashlib
import shutil
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from hack.image.docker import ImageError, Report, run_lines
from hack.kube.binaries import cache_folder, locked

__all__ = ("MACHINES", "platform_tags", "put_wheels")

MACHINES = {"amd64": "x86_64", "arm64": "aarch64"}
"""Architectures of images and their names in wheels."""
PYTHON = "3.11"
GLIBC_MINOR = 36
"""Debian bookworm's glibc is 2.36; wheels built for older ones run on it."""
OLDEST_GLIBC_MINOR = 17


def platform_tags(architecture: str) -> tuple[str, ...]:
    """Platforms whose wheels run in the image, by PEP 600 and its forerunner, newest first. Raises ImageError for others."""
    if architecture not in MACHINES:
        raise ImageError(f"no image for {architecture}: wheels are locked for {' and '.join(MACHINES)}")
    machine = MACHINES[architecture]
    newest_first = (f"manylinux_2_{minor}_{machine}" for minor in range(GLIBC_MINOR, OLDEST_GLIBC_MINOR - 1, -1))
    return (*newest_first, f"manylinux2014_{machine}")


def put_wheels(context: Path, architectures: Sequence[str], report: Report) -> None:
    """Makes build/wheels of a build context hold the wheels of its locks, and no others. Raises ImageError."""
    locks = [context / "requirements" / "runtime.lock", context / "hack" / "image" / "pip.lock"]
    target = context / "build" / "wheels"
    shutil.rmtree(target, ignore_errors=True)
    target.mkdir(parents=True)
    for architecture in architectures:
        for wheel in sorted(_wheels(locks, architecture, report).glob("*.whl")):
            shutil.copyfile(wheel, target / wheel.name)


def _wheels(locks: Sequence[Path], architecture: str, report: Report) -> Path:
    tags = platform_tags(architecture)
    content = b"\n".join([*(lock.read_bytes() for lock in locks), " ".join(tags).encode()])
    folder = cache_folder("wheels") / f"{architecture}-{hashlib.sha256(content).hexdigest()[:16]}"
    with locked(folder):
        if not folder.is_dir():
            report(f"wheels: downloading for {architecture}")
            with tempfile.TemporaryDirectory(prefix="part-", dir=folder.parent) as scratch:
                part = Path(scratch) / "wheels"
                _download(locks, tags, part, report)
                part.rename(folder)
    return folder


def _download(locks: Sequence[Path], tags: Sequence[str], folder: Path, report: Report) -> None:
    options = ["--require-hashes", "--only-binary", ":all:", "--no-deps", "--disable-pip-version-check", "--no-cache-dir"]
    python = ["--implementation", "cp", "--python-version", PYTHON, "--abi", "cp311", "--abi", "abi3", "--abi", "none"]
    platforms = [word for tag in tags for word in ("--platform", tag)]
    for lock in locks:
        command = [
            sys.executable,
            "-m",
            "pip",
            "download",
            "--quiet",
            "--dest",
            str(folder),
            *options,
            *python,
            *platforms,
            "-r",
            str(lock),
        ]
        try:
            run_lines(command, report)
        except ImageError as error:
            raise ImageError(
                f"{error}\nNot every package of {lock} could be had as a wheel for {tags[-1]} and Python {PYTHON}: "
                "is the registry reached? If a release has no such wheel, lock another one (make lock)."
            ) from error
