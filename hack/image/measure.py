"""Size, start-up time and memory of an image."""

import json
import subprocess
import time
from collections.abc import Iterator, Sequence

from hack.image.docker import Docker, ImageError

__all__ = ("RESTRICTED", "measurements", "parts")

RESTRICTED = (
    "run", "--rm", "--read-only", "--network", "none", "--cap-drop", "ALL", "--security-opt", "no-new-privileges", "--user", "65532:65532",
)  # fmt: skip
"""How Kubernetes runs it: Pod Security "restricted" and a root file system that cannot be written."""
PROGRAMS = ("controllers", "scheduler")
PROBE = """
import json, sys, time
begin = time.perf_counter()
import cli.{name}
took = time.perf_counter() - begin
resident = next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("VmRSS"))
print(json.dumps([took, resident / 1024]))
"""
MEGA = 1_000_000


def parts(docker: Docker, image: str) -> dict[str, int]:
    """Bytes by part, with the whole as "image"; what is neither venv nor code is the base."""
    whole = int(docker.ask("image", "inspect", "--format", "{{.Size}}", image))
    history = docker.ask("history", "--no-trunc", "--human=false", "--format", "{{.Size}}\t{{.CreatedBy}}", image)
    found = {"venv": 0, "code": 0}
    for line in history.splitlines():
        size, _, made_by = line.partition("\t")
        for name, folder in (("venv", "/opt/venv"), ("code", "/opt/grovekeeper")):
            if "COPY" in made_by and folder in made_by:
                found[name] += int(size)
    return {"image": whole, "base": whole - sum(found.values()), **found}


def measurements(docker: Docker, image: str) -> Iterator[str]:
    """A line per measurement. Raises ImageError when the image does not run."""
    sizes = parts(docker, image)
    yield "size: " + ", ".join(f"{name} {size / MEGA:.0f} MB" for name, size in sizes.items())
    first, second = (_seconds([*RESTRICTED, image, "controllers", "--help"]) for _ in range(2))
    yield f"start-up: container to the end of `controllers --help` {first:.2f} s, again {second:.2f} s"
    for name in PROGRAMS:
        said = docker.ask(*RESTRICTED, "--entrypoint", "/opt/venv/bin/python", image, "-I", "-c", PROBE.format(name=name))
        took, resident = json.loads(said)
        yield f"imports of {name}: {took:.2f} s, {resident:.0f} MiB resident"


def _seconds(arguments: Sequence[str]) -> float:
    begin = time.perf_counter()
    done = subprocess.run(["docker", *arguments], check=False, capture_output=True, text=True)
    if done.returncode != 0:
        raise ImageError(f"docker {' '.join(arguments)} failed with {done.returncode}: {done.stderr.strip()}")
    return time.perf_counter() - begin
