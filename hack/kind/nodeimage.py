"""Which node image: one that is named, the official one where it can be had, else one that is built here without pulling any."""

import enum
import os
import queue
import re
import subprocess
import threading
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from hack.image.base import KEYRING
from hack.kind import daemon, imagebuild
from hack.kind.docker import docker, image_labels, inspect
from hack.kind.failures import KindFailed, MachineUnfit
from hack.kube.binaries import KUBE_VERSION, Report

__all__ = ("BUILT", "Choice", "NodeImage", "Present", "choose", "decide", "newest_official", "try_privileged")

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
    IN_USE = "that of the cluster"
    OFFICIAL = "official and present"
    BUILT = "built here before"
    PULL = "pulled if possible, else built"


@dataclass(frozen=True, slots=True)
class NodeImage:
    """`identity` changes with the content. `has_network` says that kind finds a pod network in it."""

    name: str
    identity: str
    has_network: bool


@dataclass(frozen=True, slots=True)
class Present:
    """What there is: a name in the environment, the image of a cluster, the newest official image, BUILT. None for what there is not."""

    given: str | None = None
    in_use: str | None = None
    official: str | None = None
    built: str | None = None


def decide(present: Present, recipes: Mapping[str, str], wanted_recipe: str) -> Choice:
    """`recipes` has the digest of what an image was built from, for those that were built here."""
    if present.given:
        return Choice.GIVEN
    if present.in_use is not None and recipes.get(present.in_use, wanted_recipe) == wanted_recipe:
        return Choice.IN_USE
    if present.official is not None:
        return Choice.OFFICIAL
    return Choice.BUILT if present.built is not None and recipes.get(present.built) == wanted_recipe else Choice.PULL


def newest_official(images: Iterable[str]) -> str | None:
    """The newest official image of the minor version among names with tags."""
    pattern = re.compile(rf"{re.escape(OFFICIAL)}:v{re.escape(MINOR)}\.(\d+)")
    found = [(int(match.group(1)), image) for image in images if (match := pattern.fullmatch(image)) is not None]
    return max(found)[1] if found else None


def choose(in_use: str | None, report: Report) -> NodeImage:
    """Have the image in the Docker daemon; `in_use` is that of a cluster that exists. Raises KindFailed, BinariesMissing."""
    found = {name: image for name in (in_use, BUILT) if name and (image := inspect("image", name)) is not None}
    present = Present(
        given=os.environ.get("GROVEKEEPER_NODE_IMAGE"),
        in_use=in_use if in_use in found else None,
        official=newest_official(docker("images", "--format", "{{.Repository}}:{{.Tag}}", OFFICIAL).split()),
        built=BUILT if BUILT in found else None,
    )
    recipes = {name: label for name, image in found.items() if (label := image_labels(image).get(imagebuild.RECIPE_LABEL)) is not None}
    choice = decide(present, recipes, imagebuild.recipe_digest())
    name = _have(choice, present, report)
    image = inspect("image", name)
    if image is None:
        raise KindFailed(f"the node image {name} has vanished from the Docker daemon")
    has_network = imagebuild.RECIPE_LABEL not in image_labels(image) and _brings_network(name)
    report(f"node image {name}, {choice.value}")
    return NodeImage(name, str(image["Id"]), has_network)


def try_privileged(image: NodeImage) -> None:
    """Raises MachineUnfit where the daemon may start no privileged containers, which nodes are."""
    try:
        docker("run", "--rm", "--privileged", "--network", "none", "--entrypoint", "true", image.name)
    except KindFailed as error:
        raise MachineUnfit(
            "the Docker daemon cannot start privileged containers, which the nodes of a kind cluster are. Use one that can, or stop it and "
            f"run this as root: a daemon that asks for no more than this machine grants is then started.\n{error}"
        ) from error


def _have(choice: Choice, present: Present, report: Report) -> str:
    named = {
        Choice.GIVEN: present.given,
        Choice.IN_USE: present.in_use,
        Choice.OFFICIAL: present.official,
        Choice.BUILT: present.built,
    }.get(choice)
    if named is None:
        return _pull_official(report) or _build(report)
    return _given(named, report) if choice is Choice.GIVEN else named


def _build(report: Report) -> str:
    # Without its keys debootstrap takes whatever a mirror sends, with no more than a warning.
    daemon.install({str(KEYRING): "debian-archive-keyring"}, report)
    return imagebuild.build(BUILT, report)


def _given(name: str, report: Report) -> str:
    if inspect("image", name) is None:
        report(f"pulling {name}")
        docker("pull", name, timeout_s=PULL_S)
    return name


def _brings_network(name: str) -> bool:
    try:
        docker("run", "--rm", "--network", "none", "--entrypoint", "test", name, "-f", "/kind/manifests/default-cni.yaml")
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
