"""The `grovekeeper` processes as background processes of this machine, for end-to-end tests and measurements."""

import http.client
import json
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

    def metrics(self) -> str:
        """What it counts, in the text format of Prometheus."""
        return self._get("/metrics")

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
