"""Runs every program of an image the way Kubernetes does: as 65532, without capabilities, on a root file system that cannot be written."""

import subprocess
from collections.abc import Iterator

from hack.image.docker import ImageError
from hack.image.measure import RESTRICTED

__all__ = ("CHECKS", "checks")

SAMPLES = "/opt/grovekeeper/manifests/samples"
CHECKS: tuple[tuple[tuple[str, ...], int, str], ...] = (
    (("--version",), 0, "grovekeeper "),
    (("controllers", "--help"), 0, "--leader-elect"),
    (("scheduler", "--help"), 0, "--mode"),
    (("initc", "--help"), 0, "--podcliques"),
    (("--podcliques=a:1",), 5, "pod-info"),
    (("render", "-f", SAMPLES), 0, "kind: PodGang"),
    (("sim", "--seeds", "1"), 0, "every promise was kept"),
    (("demo", "--once", "--state", "/tmp/demo"), 0, "all gangs are placed and ready"),  # noqa: S108 - in the container
)
"""Arguments, exit code, and something that has to be said. /tmp is the only folder that can be written."""
ABSENT = """
import importlib.util, os, pathlib, shutil, sys
found = [name for name in ("pip", "setuptools", "wheel", "ensurepip") if importlib.util.find_spec(name)]
found += [name for name in ("cc", "gcc", "ld", "pip", "pip3") if shutil.which(name)]
code = pathlib.Path("/opt/grovekeeper")
found += [name for name in ("tests", "e2e", "hack", ".git") if (code / name).exists()]
writable = [str(p) for root in (code, pathlib.Path("/opt/venv")) for p in (root, *root.rglob("*")) if os.access(p, os.W_OK)]
stale = [str(p) for root in ("api", "cli", "controllers", "scheduler", "sim") for p in (code / root).rglob("*.py")
         if not pathlib.Path(importlib.util.cache_from_source(str(p))).exists()]
sys.exit(f"{found} {writable[:3]} {stale[:3]}" if found or writable or stale else 0)
"""
"""Python that ends with 0 when the image holds nothing for building or testing, nothing that its user may change, and all byte code."""


def checks(image: str) -> Iterator[str]:
    """A line per command that behaves. Raises ImageError with what one said instead."""
    for arguments, code, text in CHECKS:
        said = _run(image, "grovekeeper", arguments, code)
        if text not in said:
            raise ImageError(f"{image} {' '.join(arguments)} does not say {text!r}:\n{said[-2000:]}")
        yield f"runs: {' '.join(arguments)}"
    _run(image, "/opt/venv/bin/python", ("-I", "-c", ABSENT), 0)
    yield "holds: no tools to build or test, nothing its user may change, byte code of every module"


def _run(image: str, program: str, arguments: tuple[str, ...], code: int) -> str:
    command = ["docker", *RESTRICTED, "--tmpfs", "/tmp:mode=1777", "--entrypoint", program, image, *arguments]  # noqa: S108 - in the container
    done = subprocess.run(command, check=False, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode != code:
        raise ImageError(f"{image} {' '.join(arguments)} ended with {done.returncode}, not {code}:\n{done.stdout[-2000:]}")
    return done.stdout
