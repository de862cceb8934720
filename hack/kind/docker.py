"""The docker client, run as a program."""

import json
import os
import subprocess
from typing import Any

from hack.kind.failures import KindFailed

__all__ = ("answers", "docker", "image_labels", "inspect", "run")


def run(argv: list[str], *, stdin: str | None = None, timeout_s: float | None = None, environment: dict[str, str] | None = None) -> str:
    """Standard output of a program that ended well. Raises KindFailed with the end of what it said."""
    try:
        answer = subprocess.run(
            argv,
            input=stdin,
            stdin=subprocess.DEVNULL if stdin is None else None,
            capture_output=True,
            text=True,
            check=False,
            timeout=timeout_s,
            env={**os.environ, **(environment or {})},
        )
    except FileNotFoundError as error:
        raise KindFailed(f"{argv[0]} is not installed") from error
    except subprocess.TimeoutExpired as error:
        raise KindFailed(f"`{' '.join(argv)[:200]}` does not end within {timeout_s:g} s") from error
    if answer.returncode != 0:
        said = "\n".join((answer.stdout + answer.stderr).strip().splitlines()[-25:])
        raise KindFailed(f"`{' '.join(argv)[:200]}` failed with {answer.returncode}:\n{said}")
    return answer.stdout


def docker(*argv: str, stdin: str | None = None, timeout_s: float | None = None) -> str:
    """Standard output of the docker client. Raises KindFailed."""
    # Without the plugin buildx, clients refuse to build unless told to use the old builder.
    return run(["docker", *argv], stdin=stdin, timeout_s=timeout_s, environment={"DOCKER_BUILDKIT": "0"})


def answers() -> bool:
    """Whether a Docker daemon answers."""
    try:
        docker("version", "--format", "{{.Server.Version}}", timeout_s=20)
    except KindFailed:
        return False
    return True


def inspect(kind: str, name: str) -> dict[str, Any] | None:
    """What the daemon knows of an image, container or network; None when there is no such thing."""
    try:
        found = json.loads(docker(kind, "inspect", name))
    except KindFailed as error:
        if "no such" in str(error).lower():
            return None
        raise
    return found[0]


def image_labels(image: dict[str, Any]) -> dict[str, str]:
    """Labels of an inspected image."""
    return dict(image["Config"].get("Labels") or {})
