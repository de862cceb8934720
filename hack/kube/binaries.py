"""Where the binaries come from: a given folder, the cache, a prepared archive, or a build from the Go module proxy."""

import os
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from hack.kube.cache import BinariesMissing, NothingPrepared, Report, archive, cache_folder, locked, run_lines, scratch, unpack
from hack.kube.programs import KUBE_VERSION, find_program

__all__ = (
    "COMPONENTS",
    "KUBE_VERSION",
    "Binaries",
    "BinariesMissing",
    "NothingPrepared",
    "Report",
    "build",
    "cache_folder",
    "find_binaries",
    "find_kube",
    "find_prepared",
    "find_program",
    "locked",
    "run_lines",
)

KUBE_PARTS = ("kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubectl")
COMPONENTS = ("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kwok")
HERE = Path(__file__).resolve().parent


@dataclass(frozen=True, slots=True)
class Binaries:
    """A folder with etcd, kwok and either the Kubernetes programs or `kube`, one binary for all of them that looks at argv[0]."""

    folder: Path

    def source(self, name: str) -> Path | None:
        """The file to run under `name`, or None."""
        for candidate in (name, "kube") if name in KUBE_PARTS else (name,):
            path = self.folder / candidate
            if path.is_file() and os.access(path, os.X_OK):
                return path.resolve()
        return None

    def missing(self) -> tuple[str, ...]:
        """Names without a file."""
        return tuple(n for n in (*COMPONENTS, "kubectl") if self.source(n) is None)

    def link_into(self, folder: Path) -> None:
        """Make `folder` hold one link per program, so that argv[0] is right."""
        folder.mkdir(parents=True, exist_ok=True)
        for name in (*COMPONENTS, "kubectl"):
            link = folder / name
            link.unlink(missing_ok=True)
            if (source := self.source(name)) is not None:
                link.symlink_to(source)


def find_binaries(report: Report) -> Binaries:
    """Find or unpack, else build. Raises BinariesMissing."""
    try:
        return find_prepared(report)
    except NothingPrepared:
        return build(report)


def find_prepared(report: Report) -> Binaries:
    """Find or unpack within seconds. Raises BinariesMissing; its subclass NothingPrepared says that a build would help."""
    if given := os.environ.get("GROVEKEEPER_KUBE_ASSETS"):
        found = Binaries(Path(given).expanduser())
        if missing := found.missing():
            raise BinariesMissing(f"GROVEKEEPER_KUBE_ASSETS={given} lacks {', '.join(missing)}")
        return found
    cached = Binaries(cache_folder(f"kube-{KUBE_VERSION}"))
    if not cached.missing():
        return cached
    source = archive("control-plane")
    if not source.is_file():
        raise NothingPrepared(
            f"no binaries in {cached.folder}: set GROVEKEEPER_KUBE_ASSETS, or build them with `python -m hack.kube build`"
        )
    with locked(cached.folder, report):
        if cached.missing():
            report(f"unpacking {source} into {cached.folder}")
            _fill(cached, lambda folder: unpack(source, folder, report))
    return cached


def build(report: Report) -> Binaries:
    """Build from source and replace what the cache holds. Raises BinariesMissing."""
    cached = Binaries(cache_folder(f"kube-{KUBE_VERSION}"))
    with locked(cached.folder, report):
        _fill(cached, lambda folder: _build(folder, report))
    return cached


def find_kube(report: Report) -> Path:
    """`kube` that can also be kubelet, kubeadm and kube-proxy, the parts of a node; built if what is prepared lacks them.

    Raises BinariesMissing.
    """
    own = Binaries(cache_folder(f"kube-node-{KUBE_VERSION}"))
    for candidate in (find_binaries(report).folder / "kube", own.folder / "kube"):
        if candidate.is_file() and _is_kubeadm(candidate):
            return candidate.resolve()
    with locked(own.folder, report):
        report(f"building the node parts of Kubernetes {KUBE_VERSION}; this takes ten minutes on two cores")
        with scratch(own.folder) as folder:
            run_lines(["bash", str(HERE / "build.sh"), KUBE_VERSION, str(folder), "kube"], report)
            shutil.rmtree(own.folder, ignore_errors=True)
            folder.rename(own.folder)
    return own.folder / "kube"


def _is_kubeadm(kube: Path) -> bool:
    answer = subprocess.run(["kubeadm", "version", "-o", "short"], executable=kube, capture_output=True, text=True, check=False)
    return answer.stdout.strip() == f"v{KUBE_VERSION}"


def _fill(target: Binaries, work: Callable[[Path], None]) -> None:
    with scratch(target.folder) as folder:
        work(folder)
        if missing := Binaries(folder).missing():
            raise BinariesMissing(f"{', '.join(missing)} not among what was unpacked or built")
        if target.folder.exists():
            shutil.rmtree(target.folder)
        folder.rename(target.folder)


def _build(folder: Path, report: Report) -> None:
    if shutil.which("go") is None:
        raise BinariesMissing(
            "no Kubernetes binaries: set GROVEKEEPER_KUBE_ASSETS to a folder that has them, or install Go 1.26 to build them (about 15 min)"
        )
    report(f"building Kubernetes {KUBE_VERSION}, etcd and KWOK from the Go module proxy; this takes a quarter of an hour on two cores")
    run_lines(["bash", str(HERE / "build.sh"), KUBE_VERSION, str(folder)], report)
