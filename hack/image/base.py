"""A base image made of Debian packages: Python 3.11 and CA certificates on the smallest Debian, with its security updates.

It stands in for python:3.11-slim-bookworm where no image can be pulled. The daemon keeps it, tagged by a digest of the recipe.
"""

import hashlib
import json
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path

from hack.image.docker import Docker, ImageError, Report, run_lines

__all__ = ("KEYRING", "Mirrors", "Recipe", "apt_sources", "find_mirrors", "make_base")

KEYRING = Path("/usr/share/keyrings/debian-archive-keyring.gpg")
"""The keys that Debian's archive is signed with, where the package debian-archive-keyring is installed."""
SOURCES = Path("/etc/apt")


@dataclass(frozen=True, slots=True)
class Mirrors:
    """Where packages come from: the archive, and its security updates."""

    main: str = "http://deb.debian.org/debian"
    security: str = "http://deb.debian.org/debian-security"


@dataclass(frozen=True, slots=True)
class Recipe:
    """What decides the content of the base. Change `revision` when the way it is made changes."""

    architecture: str
    suite: str = "bookworm"
    packages: tuple[str, ...] = ("ca-certificates", "python3")
    emptied: tuple[str, ...] = (
        "tmp", "usr/share/doc", "usr/share/info", "usr/share/locale", "usr/share/man",
        "var/cache/apt", "var/cache/debconf", "var/lib/apt/lists", "var/log",
    )  # fmt: skip
    """Folders that only people and package managers read, as in Debian's slim images."""
    removed: tuple[str, ...] = ("etc/hostname", "etc/resolv.conf", "var/lib/dpkg/status-old", "var/lib/dpkg/available-old")
    """Traces of this machine, and backups."""
    revision: int = 1

    @property
    def tag(self) -> str:
        """The name under which the daemon keeps it."""
        return "grovekeeper-base:" + hashlib.sha256(json.dumps(asdict(self), sort_keys=True).encode()).hexdigest()[:12]


def apt_sources() -> list[Path]:
    """Files that say where this machine's apt finds packages."""
    return sorted([*SOURCES.glob("sources.list"), *SOURCES.glob("sources.list.d/*.list"), *SOURCES.glob("sources.list.d/*.sources")])


def find_mirrors(suite: str, files: Iterable[Path]) -> Mirrors:
    """The mirrors this machine's apt uses for the suite, else Debian's own. `files`: sources in either format."""
    found: dict[str, str] = {}
    for file in files:
        text = file.read_text(encoding="utf-8")
        for uri, suites in _sources(text):
            for name in suites:
                found.setdefault(name, uri.rstrip("/"))
    own = Mirrors()
    return Mirrors(found.get(suite, own.main), found.get(f"{suite}-security", own.security))


def _sources(text: str) -> list[tuple[str, list[str]]]:
    """Pairs of URI and suites; fields of deb822 paragraphs, or words of one-line entries."""
    found: list[tuple[str, list[str]]] = []
    for paragraph in re.split(r"\n\s*\n", text):
        fields = dict(re.findall(r"^(\w+):[ \t]*(.*)$", paragraph, re.MULTILINE))
        if "deb" in fields.get("Types", "").split() and fields.get("URIs"):
            found.append((fields["URIs"].split()[0], fields.get("Suites", "").split()))
    pairs = re.findall(r"^deb\s+(?:\[[^\]]*\]\s+)?(\S+)\s+(\S+)", text, re.MULTILINE)
    return found + [(uri, [name]) for uri, name in pairs]


def make_base(docker: Docker, report: Report, *, fresh: bool) -> str:
    """The tag of the base; it is made where it is missing, or when a `fresh` one is asked for. Raises ImageError."""
    recipe = Recipe(docker.architecture)
    if docker.exists(recipe.tag) and not fresh:
        report(f"base: {recipe.tag} is there")
        return recipe.tag
    _require_tools(report)
    mirrors = find_mirrors(recipe.suite, apt_sources())
    report(f"base: making {recipe.tag} of Debian {recipe.suite}; about a minute")
    with tempfile.TemporaryDirectory(prefix="grovekeeper-base-") as scratch:
        root = Path(scratch) / "root"
        _bootstrap(recipe, mirrors, root, report)
        _upgrade(recipe, mirrors, root, report)
        _empty(recipe, root)
        _import(recipe, root, report)
    return recipe.tag


def _require_tools(report: Report) -> None:
    if os.geteuid() != 0:
        raise ImageError(
            "making the base image needs root, for debootstrap and chroot: run this as root, "
            "or build on an image that can be pulled: --base python:3.11-slim-bookworm"
        )
    missing = [] if shutil.which("debootstrap") else ["debootstrap"]
    missing += [] if KEYRING.is_file() else ["debian-archive-keyring"]
    if not missing:
        return
    if shutil.which("apt-get") is None:
        raise ImageError(f"making the base image needs {' and '.join(missing)}: install them, or pass --base python:3.11-slim-bookworm")
    report(f"installing {' and '.join(missing)}")
    run_lines(["apt-get", "update", "-q"], report)
    run_lines(["apt-get", "install", "-y", "-q", "--no-install-recommends", *missing], report, environment=NONINTERACTIVE)


NONINTERACTIVE = {"DEBIAN_FRONTEND": "noninteractive", "LC_ALL": "C"}


def _bootstrap(recipe: Recipe, mirrors: Mirrors, root: Path, report: Report) -> None:
    options = ["--variant=minbase", f"--arch={recipe.architecture}", "--force-check-gpg", f"--keyring={KEYRING}"]
    command = ["debootstrap", *options, f"--include={','.join(recipe.packages)}", recipe.suite, str(root), mirrors.main]
    run_lines(command, report, environment=NONINTERACTIVE)


def _upgrade(recipe: Recipe, mirrors: Mirrors, root: Path, report: Report) -> None:
    sources = root / "etc/apt/sources.list"
    sources.write_text(_entries(recipe.suite, mirrors), encoding="utf-8")
    for command in (["update", "-q"], ["upgrade", "-y", "-q"], ["clean"]):
        run_lines(["chroot", str(root), "apt-get", *command], report, environment=NONINTERACTIVE)
    # The mirror of this machine is nobody else's business, least of all a password in its address.
    sources.write_text(_entries(recipe.suite, Mirrors()), encoding="utf-8")


def _entries(suite: str, mirrors: Mirrors) -> str:
    lines = (f"{mirrors.main} {suite}", f"{mirrors.main} {suite}-updates", f"{mirrors.security} {suite}-security")
    return "".join(f"deb {line} main\n" for line in lines)


def _empty(recipe: Recipe, root: Path) -> None:
    for name in recipe.emptied:
        for path in (root / name).glob("*"):
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path)
            elif path.name != "copyright":
                path.unlink()
    for name in recipe.removed:
        (root / name).unlink(missing_ok=True)


def _import(recipe: Recipe, root: Path, report: Report) -> None:
    with subprocess.Popen(["tar", "-c", "--sort=name", "--numeric-owner", "-C", str(root), "."], stdout=subprocess.PIPE) as tar:
        run_lines(["docker", "import", "--change", "ENV LANG=C.UTF-8", "-", recipe.tag], report, stdin=tar.stdout)
    if tar.returncode != 0:
        raise ImageError(f"tar failed with {tar.returncode}; is there room under {root}?")
