"""Where the binaries come from: a given folder, the cache, a prepared archive, or a build from the Go module proxy."""

import contextlib
import fcntl
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Generator
from dataclasses import dataclass
from pathlib import Path

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
    "find_prepared",
    "locked",
    "run_lines",
)

KUBE_VERSION = "1.36.3"
KUBE_PARTS = ("kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubectl")
COMPONENTS = ("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kwok")
HERE = Path(__file__).resolve().parent
CHECKOUT = HERE.parents[1]

Report = Callable[[str], None]


class BinariesMissing(Exception):
    """No binaries, and the text says why and what would help."""


class NothingPrepared(BinariesMissing):
    """Neither cached nor archived binaries; they can be built."""


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
    archive = _shared() / "lab" / "assets" / "control-plane.tar.zst"
    if not archive.is_file():
        raise NothingPrepared(
            f"no binaries in {cached.folder}: set GROVEKEEPER_KUBE_ASSETS, or build them with `python -m hack.kube build`"
        )
    with locked(cached.folder):
        if cached.missing():
            report(f"unpacking {archive} into {cached.folder}")
            _fill(cached, lambda folder: _unpack(archive, folder, report))
    return cached


def build(report: Report) -> Binaries:
    """Build from source and replace what the cache holds. Raises BinariesMissing."""
    cached = Binaries(cache_folder(f"kube-{KUBE_VERSION}"))
    with locked(cached.folder):
        _fill(cached, lambda folder: _build(folder, report))
    return cached


def cache_folder(name: str) -> Path:
    """Where what was unpacked or built under this name is kept."""
    root = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(root).expanduser() / "grovekeeper" / name


def _shared() -> Path:
    return Path(os.environ.get("GROVEKEEPER_SHARED") or CHECKOUT.parent / "shared")


@contextlib.contextmanager
def locked(folder: Path) -> Generator[None]:
    """One at a time fills the cache; the others wait and then find it filled."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    with (folder.parent / f"{folder.name}.lock").open("w") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield


def _fill(target: Binaries, work: Callable[[Path], None]) -> None:
    """Work in a folder beside the target and rename at the end: an interrupted attempt is never used."""
    scratch = Path(tempfile.mkdtemp(prefix=f"{target.folder.name}.part-", dir=target.folder.parent))
    try:
        work(scratch)
        if missing := Binaries(scratch).missing():
            raise BinariesMissing(f"{', '.join(missing)} not among what was unpacked or built")
        scratch.chmod(0o755)
        if target.folder.exists():
            shutil.rmtree(target.folder)
        scratch.rename(target.folder)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def _unpack(archive: Path, folder: Path, report: Report) -> None:
    if shutil.which("zstd") is None:
        if os.geteuid() != 0 or shutil.which("apt-get") is None:
            raise BinariesMissing(f"{archive} needs the program zstd: install it (Debian: apt-get install zstd)")
        report("installing zstd")
        run_lines(["apt-get", "install", "-y", "-q", "zstd"], report)
    plain = folder / "control-plane.tar"
    run_lines(["zstd", "-d", "--long=27", "-q", "-o", str(plain), str(archive)], report)
    run_lines(["tar", "-x", "--no-same-owner", "-f", str(plain), "-C", str(folder)], report)
    plain.unlink()


def _build(folder: Path, report: Report) -> None:
    if shutil.which("go") is None:
        raise BinariesMissing(
            "no Kubernetes binaries: set GROVEKEEPER_KUBE_ASSETS to a folder that has them, or install Go 1.26 to build them (about 15 min)"
        )
    report(f"building Kubernetes {KUBE_VERSION}, etcd and KWOK from the Go module proxy; this takes a quarter of an hour on two cores")
    run_lines(["bash", str(HERE / "build.sh"), KUBE_VERSION, str(folder)], report)


def run_lines(argv: list[str], report: Report) -> None:
    """Run to the end, reporting output line by line; raises BinariesMissing with the last lines."""
    tail: list[str] = []
    with subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as child:
        for line in child.stdout or ():
            report(f"  {line.rstrip()}")
            tail = [*tail[-9:], line.rstrip()]
    if child.returncode != 0:
        raise BinariesMissing(f"{argv[0]} failed with {child.returncode}:\n" + "\n".join(tail))
