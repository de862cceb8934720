"""Where binaries are kept, and how they get there: one at a time, never half, from an archive or a build."""

import contextlib
import fcntl
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Generator, Mapping, Sequence
from pathlib import Path
from typing import IO

__all__ = ("BinariesMissing", "NothingPrepared", "Report", "archive", "cache_folder", "locked", "run_lines", "scratch", "silent", "unpack")

CHECKOUT = Path(__file__).resolve().parents[2]

Report = Callable[[str], None]
TAIL = 15
"""Lines of output that an error repeats."""


def silent(_: str) -> None:
    """Report nothing."""


class BinariesMissing(Exception):
    """No binaries, and the text says why and what would help."""


class NothingPrepared(BinariesMissing):
    """Neither cached nor archived binaries; they can be built."""


def cache_folder(name: str) -> Path:
    """Where what was unpacked or built under this name is kept."""
    root = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(root).expanduser() / "grovekeeper" / name


def archive(name: str) -> Path:
    """A prepared archive; it need not exist."""
    shared = Path(os.environ.get("GROVEKEEPER_SHARED") or CHECKOUT.parent / "shared")
    return shared / "lab" / "assets" / f"{name}.tar.zst"


@contextlib.contextmanager
def locked(folder: Path, report: Report = silent) -> Generator[None]:
    """One at a time fills the cache; the others say that they wait, and then find it filled."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    with (folder.parent / f"{folder.name}.lock").open("w") as handle:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            report(f"waiting for another program that has {folder}")
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield


@contextlib.contextmanager
def scratch(target: Path) -> Generator[Path]:
    """A folder beside the target, gone at the end unless it was renamed: an interrupted attempt is never used."""
    target.parent.mkdir(parents=True, exist_ok=True)
    folder = Path(tempfile.mkdtemp(prefix=f"{target.name}.part-", dir=target.parent))
    folder.chmod(0o755)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def unpack(source: Path, folder: Path, report: Report) -> None:
    """Unpack a .tar.zst into a folder. Raises BinariesMissing."""
    if shutil.which("zstd") is None:
        if os.geteuid() != 0 or shutil.which("apt-get") is None:
            raise BinariesMissing(f"{source} needs the program zstd: install it (Debian: apt-get install zstd)")
        report("installing zstd")
        run_lines(["apt-get", "install", "-y", "-q", "zstd"], report)
    plain = folder / "unpacked.tar"
    run_lines(["zstd", "-d", "--long=27", "-q", "-o", str(plain), str(source)], report)
    run_lines(["tar", "-x", "--no-same-owner", "-f", str(plain), "-C", str(folder)], report)
    plain.unlink()


def run_lines(argv: Sequence[str], report: Report, *, environment: Mapping[str, str] | None = None, stdin: IO[bytes] | None = None) -> None:
    """Run to the end, reporting output line by line; raises BinariesMissing with the last lines. `environment`: in addition to ours."""
    tail: list[str] = []
    with subprocess.Popen(
        argv,
        stdin=stdin or subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        env={**os.environ, **(environment or {})},
    ) as child:
        for line in child.stdout or ():
            report(f"  {line.rstrip()}")
            tail = [*tail[1 - TAIL :], line.rstrip()]
    if child.returncode != 0:
        raise BinariesMissing(f"{argv[0]} failed with {child.returncode}:\n" + "\n".join(tail))
