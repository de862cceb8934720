"""Single programs beside the control plane: kind, Helm and what a node of a kind cluster is made of."""

import os
import re
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

from hack.kube.cache import BinariesMissing, NothingPrepared, Report, archive, cache_folder, locked, run_lines, scratch, silent, unpack

__all__ = ("KIND_MODULE", "KUBE_VERSION", "NAMES", "NODE_PROGRAMS", "PROGRAMS", "find_program", "go_module", "parse_version")

Version = tuple[int, ...]

KUBE_VERSION = "1.36.3"

CONTAINERD = ("github.com/containerd/containerd/v2", "v2.2.9", "no_aufs no_zfs no_btrfs no_devmapper")
CNI = ("github.com/containernetworking/plugins", "v1.9.1", "")


@dataclass(frozen=True, slots=True)
class Program:
    """A main package and the version of its module. `tags` are build tags, separated by spaces."""

    package: str
    module: str
    version: str
    tags: str = ""


@dataclass(frozen=True, slots=True)
class Accepted:
    """Versions that may come from PATH: from the lowest, and below the end."""

    lowest: Version
    end: Version


PROGRAMS = {
    **{name: Program(f"{CONTAINERD[0]}/cmd/{name}", *CONTAINERD) for name in ("containerd", "containerd-shim-runc-v2", "ctr")},
    "host-local": Program(f"{CNI[0]}/plugins/ipam/host-local", *CNI),
    "loopback": Program(f"{CNI[0]}/plugins/main/loopback", *CNI),
    "ptp": Program(f"{CNI[0]}/plugins/main/ptp", *CNI),
    "portmap": Program(f"{CNI[0]}/plugins/meta/portmap", *CNI),
    "crictl": Program("sigs.k8s.io/cri-tools/cmd/crictl", "sigs.k8s.io/cri-tools", "v1.34.0"),
    "coredns": Program("github.com/coredns/coredns", "github.com/coredns/coredns", "v1.14.7"),
    "helm": Program("helm.sh/helm/v3/cmd/helm", "helm.sh/helm/v3", "v3.22.0"),
    "kind": Program("sigs.k8s.io/kind", "sigs.k8s.io/kind", "v0.33.0"),
}
PAUSE = "pause"
PAUSE_MODULE = f"k8s.io/kubernetes@v{KUBE_VERSION}"
"""The program `pause` is one C file in this module."""
NAMES = (*PROGRAMS, PAUSE)
NODE_PROGRAMS = (*(name for name in PROGRAMS if name not in {"helm", "kind"}), PAUSE)
KIND_MODULE = f"{PROGRAMS['kind'].module}@{PROGRAMS['kind'].version}"

FROM_PATH = {"helm": Accepted((3, 14), (4,)), "kind": Accepted((0, 33), (1,))}


def find_program(name: str, report: Report = silent, *, may_build: bool = True) -> Path:
    """An executable: from PATH (kind and helm, if the version is accepted), the cache, a prepared archive, or built from the Go proxy.

    Raises BinariesMissing; its subclass NothingPrepared says that a build would help.
    """
    if name not in NAMES:
        raise BinariesMissing(f"nothing is known of a program {name}")
    if (present := _on_path(name)) is not None:
        return present
    target = _cached(name)
    if _is_program(target):
        return target
    with locked(cache_folder("programs"), report):
        if not _is_program(target):
            _unpack_all(report)
        if not _is_program(target):
            if not may_build:
                raise NothingPrepared(f"no {name}: put it on PATH, or build it with `python -m hack.kube build {name}`")
            with scratch(target.parent) as folder:
                _build(name, folder / name, report)
                _place(folder / name, target)
    return target


def go_module(module: str) -> Path:
    """Folder of a module (path@version) in the module cache of Go, downloaded if need be. Raises BinariesMissing."""
    if shutil.which("go") is None:
        raise BinariesMissing(f"Go 1.26 is needed for files of {module}; no go on PATH")
    lines: list[str] = []
    with tempfile.TemporaryDirectory() as name:
        (Path(name) / "go.mod").write_text("module download\ngo 1.26.0\n")
        run_lines(["env", "GOWORK=off", "go", "-C", name, "mod", "download", "-json", module], lines.append)
    found = re.search(r'"Dir": "([^"]+)"', "\n".join(lines))
    if found is None:
        raise BinariesMissing(f"go mod download {module} names no folder")
    return Path(found.group(1))


def parse_version(text: str) -> Version | None:
    """The first three-part version in the output of `PROGRAM version`."""
    found = re.search(r"\bv(\d+)\.(\d+)\.(\d+)", text)
    return tuple(int(part) for part in found.groups()) if found else None


def _on_path(name: str) -> Path | None:
    accepted, path = FROM_PATH.get(name), shutil.which(name)
    if accepted is None or path is None:
        return None
    answer = subprocess.run([path, "version"], capture_output=True, text=True, check=False, timeout=20)
    version = parse_version(answer.stdout)
    return Path(path) if version is not None and accepted.lowest <= version < accepted.end else None


def _cached(name: str) -> Path:
    version = PAUSE_MODULE.partition("@")[2] if name == PAUSE else PROGRAMS[name].version
    return cache_folder("programs") / f"{name}-{version}" / name


def _is_program(path: Path) -> bool:
    return path.is_file() and os.access(path, os.X_OK)


def _place(made: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    made.replace(target)


def _unpack_all(report: Report) -> None:
    """Fill the cache with everything that a prepared archive has; without one, do nothing."""
    source = archive("node")
    if not source.is_file():
        return
    report(f"unpacking {source} into {cache_folder('programs')}")
    with scratch(cache_folder("programs") / "all") as folder:
        unpack(source, folder, report)
        for name in NAMES:
            if _is_program(folder / name):
                _place(folder / name, _cached(name))


def _build(name: str, out: Path, report: Report) -> None:
    if shutil.which("go") is None:
        raise BinariesMissing(f"no {name}: put it on PATH, or install Go 1.26 to build it")
    if name == PAUSE:
        if shutil.which("gcc") is None:
            raise BinariesMissing("no pause: install gcc to build it")
        source = go_module(PAUSE_MODULE) / "build/pause/linux/pause.c"
        run_lines(["gcc", "-Os", "-static", "-s", "-o", str(out), str(source)], report)
        return
    program = PROGRAMS[name]
    report(f"building {name} {program.version} from the Go module proxy; this takes a minute or a few")
    with tempfile.TemporaryDirectory() as work:
        (Path(work) / "go.mod").write_text("module build\ngo 1.26.0\n")
        go = ["env", "CGO_ENABLED=0", "GOFLAGS=-buildvcs=false", "GOWORK=off", "go"]
        run_lines([*go, "-C", work, "get", "-tool", f"{program.package}@{program.version}"], silent)
        run_lines(
            [*go, "-C", work, "build", "-tags", program.tags, "-trimpath", "-ldflags", "-s -w", "-o", str(out), program.package], report
        )
