"""kubectl of several versions: that of the control plane, and older ones built from the Go module proxy (a minute or two)."""

import os
import shutil
import tempfile
from pathlib import Path

from hack.kube.binaries import KUBE_VERSION, BinariesMissing, NothingPrepared, Report, cache_folder, find_prepared, locked, run_lines
from hack.kube.cache import silent

__all__ = ("KUBECTL_VERSIONS", "find_kubectl")

KUBECTL_VERSIONS = ("1.32.3", KUBE_VERSION)
"""Versions that are checked."""
SOURCE = Path(__file__).with_name("kubectl.go")
VERSION_PACKAGE = "k8s.io/component-base/version"


def find_kubectl(version: str, report: Report, *, may_build: bool = True) -> Path:
    """An executable named kubectl. Raises BinariesMissing; its subclass NothingPrepared says that a build would help."""
    folder = cache_folder(f"kubectl-{version}")
    with locked(folder):
        program = folder / "kubectl"
        if version == KUBE_VERSION:
            _link(find_prepared(report).source("kubectl"), program)
        elif not os.access(program, os.X_OK):
            if not may_build:
                raise NothingPrepared(f"no kubectl {version} in {folder}: build it with `python -m hack.kube.kubectl`")
            _build(version, program, report)
    return program


def _link(source: Path | None, program: Path) -> None:
    """The name of the link selects the program in the binary that has them all."""
    if source is None:
        raise BinariesMissing("no kubectl among the Kubernetes binaries")
    if program.is_symlink() and program.resolve() == source:
        return
    program.parent.mkdir(parents=True, exist_ok=True)
    program.unlink(missing_ok=True)
    program.symlink_to(source)


def _build(version: str, program: Path, report: Report) -> None:
    if shutil.which("go") is None:
        raise BinariesMissing(f"no kubectl {version}: install Go 1.26 to build it (about 2 min)")
    report(f"building kubectl {version} from the Go module proxy; this takes a minute or two")
    _, minor, patch = version.split(".")
    with tempfile.TemporaryDirectory() as name:
        work = Path(name)
        (work / "main.go").write_text(SOURCE.read_text())
        (work / "go.mod").write_text(f"module kubectl\ngo 1.26.0\nrequire k8s.io/kubectl v0.{minor}.{patch}\n")
        flags = f"-s -w -X {VERSION_PACKAGE}.gitVersion=v{version} -X {VERSION_PACKAGE}.gitMajor=1 -X {VERSION_PACKAGE}.gitMinor={minor}"
        go = ["env", "CGO_ENABLED=0", "GOFLAGS=-buildvcs=false", "GOWORK=off", "go"]
        run_lines([*go, "-C", name, "mod", "tidy", "-e"], silent)
        run_lines([*go, "-C", name, "build", "-trimpath", "-ldflags", flags, "-o", "kubectl", "."], report)
        program.parent.mkdir(parents=True, exist_ok=True)
        # Renamed into place, so that an interrupted attempt is never used.
        part = program.with_suffix(".part")
        shutil.copy2(work / "kubectl", part)
        part.rename(program)


def main() -> None:
    """Find or build every version and print where each is."""
    for version in KUBECTL_VERSIONS:
        print(find_kubectl(version, print))


if __name__ == "__main__":
    main()
