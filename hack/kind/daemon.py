"""The Docker daemon: used where one answers; elsewhere, as root on Debian, installed and started."""

import os
import shutil
import sys
import time
from pathlib import Path

from hack.kind.docker import answers, docker
from hack.kind.failures import MachineUnfit
from hack.kind.host import withheld_here
from hack.kube.binaries import BinariesMissing, Report, cache_folder, run_lines
from hack.kube.cache import silent
from hack.kube.process import Lifetime, Process

__all__ = ("answers", "ensure", "install", "obstacle", "stop_own")

RUNTIME = Path("/run/grovekeeper-docker")
"""Sockets and the like of the daemon that is started here; a restart of the machine clears it."""
NEEDED = {"docker": "docker.io", "dockerd": "docker.io", "runc": "runc", "iptables": "iptables"}
"""Programs and their Debian packages. Each is looked for: there are machines with the client alone."""
START_S = 60.0


def ensure(report: Report) -> None:
    """Have a daemon that answers. Raises MachineUnfit."""
    if answers():
        return
    if (why := obstacle(os.environ.get("DOCKER_HOST"), os.geteuid(), shutil.which("apt-get"))) is not None:
        raise MachineUnfit(why)
    began = time.monotonic()
    install(NEEDED, report)
    # The package may have started a daemon of its own.
    if not answers():
        _start(report)
    report(f"Docker daemon: {time.monotonic() - began:.1f} s")


def obstacle(host: str | None, user: int, apt: str | None) -> str | None:
    """Why no daemon can be started here, and what to do; None if one can."""
    if host:
        return f"no Docker daemon answers at DOCKER_HOST={host}: start it, or unset DOCKER_HOST"
    if user != 0:
        return (
            "no Docker daemon answers to this user: start Docker, or let the user use it (sudo usermod -aG docker $USER, then log in "
            "again); as root on Debian it would be installed and started by this command"
        )
    if apt is None:
        return "no Docker daemon answers, and without apt-get it cannot be installed here: install Docker and start it"
    return None


def install(needed: dict[str, str], report: Report) -> None:
    """Install the Debian packages of programs, or of files named by their full path, that are missing. Raises MachineUnfit."""
    # sbin is not on every PATH.
    path = os.pathsep.join((os.environ.get("PATH", ""), "/usr/sbin", "/sbin"))
    packages = sorted({package for name, package in needed.items() if not _is_there(name, path)})
    if not packages:
        return
    if os.geteuid() != 0 or shutil.which("apt-get") is None:
        raise MachineUnfit(f"missing: {', '.join(packages)}; install them (Debian: sudo apt-get install {' '.join(packages)})")
    report(f"installing {', '.join(packages)}")
    quiet = ["env", "DEBIAN_FRONTEND=noninteractive", "apt-get", "-qq"]
    try:
        run_lines([*quiet, "update"], silent)
        run_lines([*quiet, "install", "-y", "--no-install-recommends", *packages], silent)
    except BinariesMissing as error:
        raise MachineUnfit(f"cannot install {', '.join(packages)}: {error}") from error


def _is_there(name: str, path: str) -> bool:
    return Path(name).is_file() if Path(name).is_absolute() else shutil.which(name, path=path) is not None


def stop_own(report: Report) -> None:
    """Stop the daemon that `ensure` started, unless other containers run in it. Without one, do nothing."""
    process = _process()
    if process.pid is None:
        return
    if others := docker("ps", "--format", "{{.Names}}").split():
        report(f"the Docker daemon stays: {', '.join(others[:5])} runs in it")
        return
    process.stop(30.0)
    report("stopped the Docker daemon")


def _process() -> Process:
    folder = cache_folder("docker")
    return Process("dockerd", folder / "dockerd.json", folder / "dockerd.log")


def _start(report: Report) -> None:
    process = _process()
    folder = cache_folder("docker")
    folder.mkdir(parents=True, exist_ok=True)
    argv = ["dockerd", "--data-root", str(folder / "data"), "--exec-root", str(RUNTIME), "--pidfile", str(RUNTIME / "dockerd.pid")]
    RUNTIME.mkdir(parents=True, exist_ok=True)
    if withheld_here():
        argv += ["--add-runtime", f"lesscaps={_lesscaps(folder)}", "--default-runtime", "lesscaps"]
    if process.pid is None:
        report(f"starting dockerd, state in {folder}")
        # Left by a daemon that was killed, they would be believed where the number is in use again, be it by a zombie.
        for stale in ("dockerd.pid", "containerd/containerd.pid"):
            (RUNTIME / stale).unlink(missing_ok=True)
        process.start(["env", f"PATH={os.environ.get('PATH', '')}:/usr/sbin:/sbin", *argv], Lifetime.DETACHED)
    deadline = time.monotonic() + START_S
    while not answers():
        if process.pid is None or time.monotonic() > deadline:
            tail = process.log_tail()
            process.stop()
            raise MachineUnfit(
                f"dockerd does not start; it needs root with the right to mount and to make network devices. End of its log:\n{tail}"
            )
        time.sleep(0.2)


def _lesscaps(folder: Path) -> Path:
    """The runtime as a program: a copy that names the interpreter, because dockerd passes no arguments of ours."""
    program = folder / "runc-lesscaps"
    source = Path(__file__).with_name("lesscaps.py").read_text()
    program.write_text(f"#!{Path(sys.executable).resolve()} -IS\n{source}")
    program.chmod(0o755)
    return program
