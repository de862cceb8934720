"""The `grovekeeper` processes as background processes of this machine, for end-to-end tests and measurements."""

import http.client
import json
import re
import sys
import time
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from hack.kube.components import LOOPBACK
from hack.kube.ports import free_port
from hack.kube.process import Lifetime, Process

__all__ = ("COMMAND", "CONTROLLERS_CONFIG", "Daemon", "controllers", "scheduler")

COMMAND = Path(sys.executable).parent / "grovekeeper"
CONTROLLERS_CONFIG = Path(__file__).parents[1] / "manifests/config/controllers.yaml"
POLL_S = 0.05


class Daemon:
    """One `grovekeeper` subcommand with a health and metrics address on loopback. It dies with the program that started it.

    `arguments` follow the subcommand; `--bind` is added. The log grows over restarts.
    """

    def __init__(self, name: str, arguments: Sequence[str], directory: Path, environment: Mapping[str, str] | None = None) -> None:
        self.name = name
        self.arguments = tuple(arguments)
        self.environment = environment or {}
        self.port = free_port()
        self._process = Process(name, directory / f"{name}.json", directory / f"{name}.log")

    @property
    def pid(self) -> int | None:
        """Pid of the living process, or None."""
        return self._process.pid

    @property
    def log_file(self) -> Path:
        return self._process.log_file

    def start(self, timeout_s: float = 60.0) -> float:
        """Start and wait until ready; seconds taken. Raises ComponentFailed with the end of the log."""
        began = time.monotonic()
        self.launch()
        self.wait_ready(timeout_s)
        return time.monotonic() - began

    def launch(self) -> None:
        """Start without waiting."""
        variables = [f"{key}={value}" for key, value in self.environment.items()]
        argv = ["env", *variables, str(COMMAND), *self.arguments, "--bind", f"{LOOPBACK}:{self.port}"]
        self._process.start(argv, Lifetime.WITH_PARENT)

    def wait_ready(self, timeout_s: float = 60.0) -> None:
        """Wait until /readyz answers 200. Raises ComponentFailed."""
        deadline = time.monotonic() + timeout_s
        while not self._answers():
            if self.pid is None:
                raise self._process.failure("exited at start")
            if time.monotonic() > deadline:
                raise self._process.failure(f"is not ready after {timeout_s:.0f} s")
            time.sleep(POLL_S)

    def stop(self, grace_s: float = 20.0) -> float:
        """TERM and, after `grace_s`, KILL; seconds until it was gone."""
        began = time.monotonic()
        self._process.stop(grace_s)
        return time.monotonic() - began

    def kill(self) -> None:
        """KILL, as a crash would."""
        self._process.kill()

    def pause(self) -> None:
        """Freeze it: it keeps its connections and does nothing."""
        self._process.pause()

    def resume(self) -> None:
        """Undo `pause`."""
        self._process.resume()

    def tail(self, n_lines: int = 30) -> str:
        """End of the log."""
        return self._process.log_tail(n_lines)

    def log(self) -> Iterator[dict[str, Any]]:
        """Records of the log; lines that are no JSON object come as {"text": line}."""
        if not self.log_file.exists():
            return
        for line in self.log_file.read_text(errors="replace").splitlines():
            try:
                record = json.loads(line)
            except json.JSONDecodeError:
                record = None
            yield record if isinstance(record, dict) else {"text": line}

    def metric(self, name: str, **labels: str) -> float:
        """Sum of the samples of a metric whose labels contain `labels`; 0 when there are none."""
        total = 0.0
        for line in self._get("/metrics").splitlines():
            found = re.fullmatch(r"([a-z_:]+)(?:\{(.*)\})? (\S+)(?: .*)?", line)
            if found is None or found[1] != name:
                continue
            seen = dict(re.findall(r'(\w+)="((?:[^"\\]|\\.)*)"', found[2] or ""))
            if all(seen.get(key) == value for key, value in labels.items()):
                total += float(found[3])
        return total

    def peak_memory_mib(self) -> float:
        """Largest resident size of the living process so far (VmHWM)."""
        status = Path(f"/proc/{self.pid}/status").read_text()
        found = re.search(r"VmHWM:\s+(\d+) kB", status)
        return int(found[1]) / 1024 if found else 0.0

    def cpu_s(self) -> float:
        """Processor time of the living process so far."""
        fields = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / 100

    def _get(self, path: str) -> str:
        with urllib.request.urlopen(f"http://{LOOPBACK}:{self.port}{path}", timeout=5) as answer:
            return answer.read().decode()

    def _answers(self) -> bool:
        try:
            self._get("/readyz")
        except (OSError, http.client.HTTPException):
            return False
        return True


def controllers(kubeconfig: Path, directory: Path, *, config: Path = CONTROLLERS_CONFIG) -> Daemon:
    """The controllers, without leader election."""
    flags = ("--kubeconfig", str(kubeconfig), "--config", str(config), "--no-leader-elect")
    return Daemon("controllers", ("controllers", *flags), directory)


def scheduler(kubeconfig: Path, directory: Path, *, config: Path = CONTROLLERS_CONFIG) -> Daemon:
    """The scheduler in binder mode, without leader election."""
    flags = ("--kubeconfig", str(kubeconfig), "--config", str(config), "--no-leader-elect")
    return Daemon("scheduler", ("scheduler", "--mode", "binder", *flags), directory)
