"""One background process: started in its own session, known by pid file, stopped with TERM and then KILL."""

import contextlib
import enum
import json
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path

__all__ = ("AlreadyRunning", "ComponentFailed", "Lifetime", "PortInUse", "Process")

POLL_S = 0.05


class AlreadyRunning(Exception):
    """Something to be started runs already."""


class ComponentFailed(Exception):
    """A component exited or did not become ready; the text ends with the tail of its log."""


class PortInUse(Exception):
    """A port that was asked for is taken."""


class Lifetime(enum.Enum):
    """How long a background process lives."""

    DETACHED = "until it is stopped"
    WITH_PARENT = "until it is stopped or its parent dies, however that happens"


class Process:
    """A pid file names the process by pid and start time, so a reused pid is never mistaken for ours."""

    def __init__(self, name: str, pid_file: Path, log_file: Path) -> None:
        self.name = name
        self.pid_file = pid_file
        self.log_file = log_file
        self._child: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int | None:
        """Pid of the living process, or None. A stale pid file counts as None."""
        if self._child is not None and self._child.poll() is not None:
            self._child = None
        try:
            seen = json.loads(self.pid_file.read_text())
        except (FileNotFoundError, json.JSONDecodeError):
            return None
        pid = int(seen["pid"])
        return pid if _start_time(pid) == seen["started"] else None

    def start(self, argv: Sequence[str], lifetime: Lifetime) -> None:
        """Start detached from the terminal, output appended to the log; raises AlreadyRunning."""
        if (pid := self.pid) is not None:
            raise AlreadyRunning(f"{self.name} runs already (pid {pid})")
        self._reap()
        wrapper: list[str] = []
        if lifetime is Lifetime.WITH_PARENT and (setpriv := shutil.which("setpriv")) is not None:
            wrapper = [setpriv, "--pdeathsig", "KILL", "--"]
        self.log_file.parent.mkdir(parents=True, exist_ok=True)
        self.pid_file.parent.mkdir(parents=True, exist_ok=True)
        with self.log_file.open("ab") as log:
            child = subprocess.Popen(
                [*wrapper, *argv], stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT, start_new_session=True
            )
        self._child = child
        self.pid_file.write_text(json.dumps({"pid": child.pid, "started": _start_time(child.pid)}))

    def stop(self, grace_s: float = 10.0) -> None:
        """TERM, and KILL when it still lives after `grace_s` seconds; returns when the process is gone. Nothing to stop is fine."""
        self._signal(signal.SIGCONT)
        self._signal(signal.SIGTERM)
        if not self._wait_gone(grace_s):
            self.kill()
        self._forget()

    def kill(self) -> None:
        """KILL at once, as a crash would, leaving the pid file; returns when the process is gone."""
        self._signal(signal.SIGKILL)
        if not self._wait_gone(10.0):
            raise ComponentFailed(f"{self.name} (pid {self.pid}) survives KILL")

    def pause(self) -> None:
        """Freeze the process: it keeps its sockets and answers nothing."""
        self._signal(signal.SIGSTOP)

    def resume(self) -> None:
        """Undo `pause`."""
        self._signal(signal.SIGCONT)

    def log_tail(self, n_lines: int = 15) -> str:
        """Last lines of the log, long lines cut."""
        try:
            lines = self.log_file.read_text(errors="replace").splitlines()
        except FileNotFoundError:
            return "(no log)"
        return "\n".join(f"  | {line[:400]}" for line in lines[-n_lines:])

    def failure(self, what: str) -> ComponentFailed:
        """The error to raise for this process, with its log."""
        return ComponentFailed(f"{self.name} {what}; end of {self.log_file}:\n{self.log_tail()}")

    def _signal(self, number: signal.Signals) -> None:
        if (pid := self.pid) is not None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)

    def _wait_gone(self, timeout_s: float) -> bool:
        deadline = time.monotonic() + timeout_s
        while self.pid is not None:
            if time.monotonic() > deadline:
                return False
            time.sleep(POLL_S)
        self._reap()
        return True

    def _reap(self) -> None:
        """Collect the exit status of a child that is gone, or about to be."""
        if self._child is not None:
            self._child.wait()
            self._child = None

    def _forget(self) -> None:
        self.pid_file.unlink(missing_ok=True)


def _start_time(pid: int) -> str | None:
    """Start time of a living process in the system's own notation; None for one that is gone or a zombie."""
    if not Path("/proc/self/stat").exists():
        return _start_time_from_ps(pid)
    try:
        # The command name may hold spaces and brackets: fields are counted from the last bracket.
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return None
    return None if fields[0] in "ZX" else fields[19]


def _start_time_from_ps(pid: int) -> str | None:
    answer = subprocess.run(
        ["ps", "-o", "lstart=", "-p", str(pid)],
        capture_output=True,
        text=True,
        check=False,
    )
    return answer.stdout.strip() or None
