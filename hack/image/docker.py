"""The Docker client as these programs use it."""

import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO

from hack.kube import cache
from hack.kube.cache import Report

__all__ = ("Docker", "ImageError", "Report", "find_docker", "run_lines")


class ImageError(Exception):
    """No image; the text says why and what would help."""


class Docker:
    """A daemon that answers. `architecture`: of the images it builds, such as amd64."""

    def __init__(self, architecture: str, has_buildkit: bool) -> None:
        self.architecture = architecture
        self.has_buildkit = has_buildkit

    def exists(self, image: str) -> bool:
        """Whether the daemon holds this image."""
        return subprocess.run(["docker", "image", "inspect", image], check=False, capture_output=True).returncode == 0

    def ask(self, *arguments: str) -> str:
        """What `docker ARGUMENTS` prints. Raises ImageError."""
        done = subprocess.run(["docker", *arguments], check=False, capture_output=True, text=True)
        if done.returncode != 0:
            raise ImageError(f"docker {arguments[0]} failed: {done.stderr.strip() or done.stdout.strip()}")
        return done.stdout.strip()

    def build(self, context: Path, tags: Sequence[str], arguments: Mapping[str, str], report: Report) -> None:
        """Builds the Dockerfile of a folder, whose steps have no network. Raises ImageError."""
        command = ["docker", "build", "--network", "none", "--file", str(context / "Dockerfile")]
        for tag in tags:
            command += ["--tag", tag]
        for name, value in arguments.items():
            command += ["--build-arg", f"{name}={value}"]
        run_lines([*command, str(context)], report, environment={"DOCKER_BUILDKIT": "1" if self.has_buildkit else "0"})


def find_docker() -> Docker:
    """Raises ImageError where there is no client or no daemon answers."""
    if shutil.which("docker") is None:
        raise ImageError("no docker program on the path: install Docker (Debian: apt-get install docker.io)")
    asked = subprocess.run(["docker", "version", "--format", "{{.Server.Arch}}"], check=False, capture_output=True, text=True)
    if asked.returncode != 0:
        raise ImageError(
            f"the Docker daemon does not answer: {asked.stderr.strip()}\n"
            "Start it (systemctl start docker; where there is no systemd, dockerd as root), or name another one in DOCKER_HOST."
        )
    buildx = subprocess.run(["docker", "buildx", "version"], check=False, capture_output=True)
    return Docker(asked.stdout.strip(), buildx.returncode == 0)


def run_lines(argv: Sequence[str], report: Report, *, environment: Mapping[str, str] | None = None, stdin: IO[bytes] | None = None) -> None:
    """Runs to the end, reporting output line by line. Raises ImageError with the last lines."""
    try:
        cache.run_lines(argv, report, environment=environment, stdin=stdin)
    except cache.BinariesMissing as error:
        raise ImageError(str(error)) from error
