"""Which node image: one that is named, the official one where it can be had, else one that is built here without pulling any."""

import enum
import os
import queue
import re
import subprocess
import threading
import time
from collections.abc import Iterable
from dataclasses import dataclass

from hack.kind import imagebuild
from hack.kind.docker import docker, image_labels, inspect
from hack.kind.failures import KindFailed
from hack.kube.binaries import KUBE_VERSION, Report

__all__ = ("BUILT", "Choice", "NodeImage", "choose", "decide", "newest_official", "try_privileged")

BUILT = f"grovekeeper-node:v{KUBE_VERSION}"
OFFICIAL = "kindest/node"
MINOR = KUBE_VERSION.rpartition(".")[0]
PATCHES = (3, 2, 1, 0, 4, 5)
"""Not every release of Kubernetes gets an official node image."""
FIRST_ANSWER_S = 15.0
PULL_S = 900.0


class Choice(enum.Enum):
    """Where the node image comes from."""

    GIVEN = "named by GROVEKEEPER_NODE_IMAGE"
    OFFICIAL = "official and present"
    BUILT = "built here before"
    PULL = "pulled if possible, else built"


@dataclass(frozen=True, slots=True)
class NodeImage:
    """`identity` changes with the content. `has_network` says that kind finds a pod network in it."""

    name: str
    identity: str
    has_network: bool


def decide(given: str | None, official: str | None, recipe: str | None, wanted_recipe: str) -> Choice:
    """`official` is the newest official image that is present, `recipe` the digest of what BUILT was built from (None: no such image)."""
    if given:
        return Choice.GIVEN
    if official is not None:
        return Choice.OFFICIAL
    return Choice.BUILT if recipe == wanted_recipe else Choice.PULL


def newest_official(images: Iterable[str]) -> str | None:
    """The newest official image of the minor version among names with tags."""
    pattern = re.compile(rf"{re.escape(OFFICIAL)}:v{re.escape(MINOR)}\.(\d+)")
    found = [(int(match.group(1)), image) for image in images if (match := pattern.fullmatch(image)) is not None]
    return max(found)[1] if found else None


def choose(report: Report) -> NodeImage:
    """Have the image in the Docker daemon. Raises KindFailed, BinariesMissing."""
    given = os.environ.get("GROVEKEEPER_NODE_IMAGE")
    official = newest_official(docker("images", "--format", "{{.Repository}}:{{.Tag}}", OFFICIAL).split())
    built = inspect("image", BUILT)
    wanted = imagebuild.recipe_digest()
    choice = decide(given, official, image_labels(built).get(imagebuild.RECIPE_LABEL) if built else None, wanted)
    if choice is Choice.GIVEN and given:
        name = _given(given, report)
    elif choice is Choice.OFFICIAL and official:
        name = official
    elif choice is Choice.BUILT:
        name = BUILT
    else:
        name = _pull_official(report) or imagebuild.build(BUILT, report)
    found = inspect("image", name)
    if found is None:
        raise KindFailed(f"the node image {name} has vanished from the Docker daemon")
    has_network = imagebuild.RECIPE_LABEL not in image_labels(found) and _brings_network(name)
    report(f"node image {name}, {choice.value}")
    return NodeImage(name, str(found["Id"]), has_network)


def try_privileged(image: NodeImage) -> None:
    """Raises KindFailed where the daemon may start no privileged containers, which nodes are."""
    try:
        docker("run", "--rm", "--privileged", "--entrypoint", "true", image.name)
    except KindFailed as error:
        raise KindFailed(
            "the Docker daemon cannot start privileged containers, which the nodes of a kind cluster are. Use one that can, or stop it and "
            f"run this as root: a daemon that asks for no more than this machine grants is then started.\n{error}"
        ) from error


def _given(name: str, report: Report) -> str:
    if inspect("image", name) is None:
        report(f"pulling {name}")
        docker("pull", name, timeout_s=PULL_S)
    return name


def _brings_network(name: str) -> bool:
    try:
        docker("run", "--rm", "--entrypoint", "test", name, "-f", "/kind/manifests/default-cni.yaml")
    except KindFailed:
        return False
    return True


def _pull_official(report: Report) -> str | None:
    """Name of the pulled image; None where the registry does not answer soon or has none."""
    for patch in PATCHES:
        name = f"{OFFICIAL}:v{MINOR}.{patch}"
        said = _pull(name)
        if said is None:
            return name
        if not re.search("not found|manifest unknown", said):
            report(f"cannot pull {name}: {said}")
            return None
    return None


def _pull(name: str) -> str | None:
    """None if it is there now, else the reason. The first line of progress has to come soon, the rest may take minutes."""
    lines: queue.SimpleQueue[str | None] = queue.SimpleQueue()
    with subprocess.Popen(["docker", "pull", name], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as child:
        reader = threading.Thread(target=_read, args=(child, lines), daemon=True)
        reader.start()
        last, deadline = "no answer", time.monotonic() + FIRST_ANSWER_S
        try:
            while (line := lines.get(timeout=max(0.0, deadline - time.monotonic()))) is not None:
                if last == "no answer":
                    deadline = time.monotonic() + PULL_S
                last = line or last
        except queue.Empty:
            last = f"{last}, given up"
            child.kill()
        except BaseException:
            child.kill()
            raise
        code = child.wait()
    return None if code == 0 else last


def _read(child: subprocess.Popen[str], lines: "queue.SimpleQueue[str | None]") -> None:
    for line in child.stdout or ():
        lines.put(line.strip())
    lines.put(None)
