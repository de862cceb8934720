"""Builds the node image without pulling any: Debian by debootstrap, our binaries, kind's node files from its Go module."""

import hashlib
import os
import re
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterable
from pathlib import Path

from hack.image.base import apt_sources, find_mirrors
from hack.kind import daemon
from hack.kind.docker import docker
from hack.kind.failures import KindFailed, MachineUnfit
from hack.kube.binaries import KUBE_VERSION, Report, cache_folder, find_binaries, find_kube, find_program, run_lines
from hack.kube.cache import silent
from hack.kube.programs import KIND_MODULE, NODE_PROGRAMS, PROGRAMS, go_module

__all__ = ("RECIPE_LABEL", "build", "image_sources", "recipe_digest", "sandbox_image")

RECIPE_LABEL = "grovekeeper.recipe"
BASE = "grovekeeper-node-base"
"""Also runs the Kubernetes components: it has kube and iptables."""
BUILDER = "grovekeeper-node-build"
HERE = Path(__file__).resolve().parent
SCRIPT = HERE / "rootfs.sh"
ENTRYPOINT = 'ENTRYPOINT ["/usr/local/bin/entrypoint","/sbin/init"]'
PATH = "ENV PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
NEEDED = {"debootstrap": "debootstrap", "jq": "jq"}
IMPORT = HERE / "import.sh"


def recipe_digest() -> str:
    """Changes when the image would be built otherwise."""
    text = "".join(path.read_text() for path in (SCRIPT, IMPORT, Path(__file__)))
    versions = ",".join(f"{name}={program.version}" for name, program in sorted(PROGRAMS.items()))
    return hashlib.sha256(f"{text}{KUBE_VERSION}{versions}".encode()).hexdigest()[:16]


def image_sources(expected: Iterable[str]) -> dict[str, str]:
    """For each image that kubeadm or containerd wants, which of ours stands in for it. Raises KindFailed for one that is not known."""
    ours = {"etcd": "etcd", "coredns": "coredns", "pause": "pause"}
    sources: dict[str, str] = {}
    for image in expected:
        name = image.rpartition("/")[2].partition(":")[0]
        if name.startswith("kube-"):
            sources[image] = BASE
        elif name in ours:
            sources[image] = f"grovekeeper-{ours[name]}"
        else:
            raise KindFailed(f"kubeadm wants an image {image}, which is not known here")
    return sources


def sandbox_image(containerd_configuration: str) -> str:
    """The image of every pod's first container, from containerd's configuration file."""
    found = re.search(r'^\s*sandbox(?:_image)? = "([^"]+)"', containerd_configuration, re.MULTILINE)
    if found is None:
        raise KindFailed("containerd's configuration names no sandbox image")
    return found.group(1)


def build(tag: str, report: Report) -> str:
    """Build under this tag; the tag. Raises KindFailed, BinariesMissing."""
    if os.geteuid() != 0:
        raise MachineUnfit(
            "the official node image cannot be pulled, and building one needs root: name one that is present with GROVEKEEPER_NODE_IMAGE, "
            "or run this as root"
        )
    report("building the node image; this takes a few minutes")
    # Read now, because the files may be edited while this runs.
    recipe = recipe_digest()
    daemon.install(NEEDED, report)
    clock = _Clock(report)
    files = go_module(KIND_MODULE) / "images/base/files"
    with tempfile.TemporaryDirectory(dir=_disk()) as name:
        work = Path(name)
        programs = _stage(work / "programs", report)
        clock.mark("programs")
        mirror, debs = find_mirrors("bookworm", apt_sources()).main, cache_folder("debs")
        debs.mkdir(parents=True, exist_ok=True)
        # In a mount namespace of its own: what debootstrap mounts is gone with it, however it ends.
        argv = ["unshare", "--mount", "--propagation", "private", "bash", str(SCRIPT)]
        run_lines([*argv, str(work / "root"), str(files), str(programs), mirror, str(debs)], silent)
        (work / "root/kind/version").write_text(f"v{KUBE_VERSION}\n")
        clock.mark("Debian")
        _import(work / "root", BASE, [ENTRYPOINT, PATH, "ENV container=docker"])
        sources = image_sources(_expected(programs, (work / "root/etc/containerd/config.toml").read_text()))
        for program in ("etcd", "coredns", "pause"):
            folder = work / f"image-{program}"
            (folder / "usr/local/bin").mkdir(parents=True)
            (folder / "usr/local/bin" / program).write_bytes((programs / program).read_bytes())
            (folder / "usr/local/bin" / program).chmod(0o755)
            _import(folder, f"grovekeeper-{program}", [f'ENTRYPOINT ["/usr/local/bin/{program}"]', PATH])
        docker("save", "-o", str(work / "images.tar"), *sorted(set(sources.values())))
        clock.mark("images")
        _commit(tag, recipe, work / "images.tar", sources)
        clock.mark("node image")
    docker("rmi", *sorted(set(sources.values()) - {BASE}))
    return tag


def _disk() -> Path:
    """Parent of the work folder, emptied of what an interrupted build left. It takes two gigabytes, which a /tmp in memory may not have."""
    folder = cache_folder("node-image")
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def _stage(folder: Path, report: Report) -> Path:
    """One folder with all programs of a node."""
    folder.mkdir()
    for name in NODE_PROGRAMS:
        (folder / name).symlink_to(find_program(name, report))
    etcd = find_binaries(report).source("etcd")
    if etcd is None:
        raise KindFailed("no etcd among the Kubernetes binaries")
    (folder / "etcd").symlink_to(etcd)
    (folder / "kube").symlink_to(find_kube(report))
    return folder


def _expected(programs: Path, containerd_configuration: str) -> list[str]:
    argv = ["kubeadm", "config", "images", "list", "--kubernetes-version", f"v{KUBE_VERSION}"]
    listed = subprocess.run(argv, executable=programs / "kube", capture_output=True, text=True, check=True).stdout.split()
    return [*listed, sandbox_image(containerd_configuration)]


def _import(folder: Path, tag: str, changes: list[str]) -> None:
    """A folder becomes an image of one layer."""
    options = [option for change in changes for option in ("--change", change)]
    archive = folder.with_suffix(".tar")
    run_lines(["tar", "-C", str(folder), "--numeric-owner", "-cf", str(archive), "."], silent)
    docker("import", *options, str(archive), tag)
    archive.unlink()


def _commit(tag: str, recipe: str, images: Path, sources: dict[str, str]) -> None:
    """Load the images into containerd's store within the base, which then is the node image."""
    docker("rm", "-f", "-v", BUILDER)
    # systemd takes another signal to stop than most programs; from the container it becomes a property of the image.
    options = ["--privileged", "--entrypoint", "sleep", "--stop-signal", "SIGRTMIN+3", "-v", f"{images}:/images.tar:ro"]
    docker("run", "-d", "--name", BUILDER, *options, BASE, "infinity")
    try:
        pairs = "".join(f"{source} {image}\n" for image, source in sources.items())
        docker("exec", "-i", BUILDER, "bash", "-euc", IMPORT.read_text(), stdin=pairs, timeout_s=600)
        label = f"LABEL {RECIPE_LABEL}={recipe}"
        docker("commit", "--change", ENTRYPOINT, "--change", label, BUILDER, tag, timeout_s=600)
    finally:
        docker("rm", "-f", "-v", BUILDER)


class _Clock:
    """Says how long each step took."""

    def __init__(self, report: Report) -> None:
        self._report = report
        self._last = time.monotonic()

    def mark(self, what: str) -> None:
        now = time.monotonic()
        self._report(f"  {what}: {now - self._last:.1f} s")
        self._last = now
