"""The programs under measurement, and what their metrics and /proc say."""

import json
import os
import subprocess
import sys
import time
import urllib.request
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from prometheus_client.parser import text_string_to_metric_families

from hack.kube.process import Lifetime, Process

__all__ = ("Programs", "install_crds")

ROOT = Path(__file__).parents[2]
START_S = 60.0
READS = frozenset({"GET", "WATCH"})


def install_crds(kubeconfig: Path) -> None:
    """With the kubectl beside the kubeconfig of a local control plane."""
    kubectl = kubeconfig.parent / "bin" / "kubectl"
    command = [str(kubectl), "--kubeconfig", str(kubeconfig), "apply", "--server-side", "-f", str(ROOT / "manifests" / "crds")]
    subprocess.run(command, check=True, capture_output=True)


class Programs:
    """Controllers and scheduler against one API server that has the CRDs, without leader election: leases would be writes of theirs."""

    def __init__(self, kubeconfig: Path, folder: Path) -> None:
        self._kubeconfig = kubeconfig
        self._processes = {name: Process(name, folder / f"{name}.json", folder / f"{name}.log") for name in ("controllers", "scheduler")}
        self._ports: dict[str, int] = {}

    def __enter__(self) -> Self:
        for name, process in self._processes.items():
            common = ["--kubeconfig", str(self._kubeconfig), "--config", str(ROOT / "manifests" / "config" / "controllers.yaml")]
            argv = [sys.executable, "-m", "cli.main", name, *common, "--no-leader-elect", "--bind", "127.0.0.1:0"]
            process.start(argv, Lifetime.WITH_PARENT)
        for name in self._processes:
            self._ports[name] = self._wait_ready(name)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        for process in self._processes.values():
            process.stop()

    def writes(self) -> int:
        """Requests other than reads that the programs have sent, in all."""
        total = 0.0
        for name in self._processes:
            for family in text_string_to_metric_families(self._get(name, "/metrics")):
                if family.name == "rest_client_requests":
                    samples = (s for s in family.samples if s.name.endswith("_total"))
                    total += sum(s.value for s in samples if s.labels["method"] not in READS)
        return int(total)

    def cpu_s(self) -> dict[str, float]:
        """User and system seconds of each program."""
        ticks = os.sysconf("SC_CLK_TCK")
        out: dict[str, float] = {}
        for name, process in self._processes.items():
            fields = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()
            out[name] = (int(fields[11]) + int(fields[12])) / ticks
        return out

    def peak_mib(self, name: str) -> float:
        """Largest resident size so far."""
        status = Path(f"/proc/{self._processes[name].pid}/status").read_text()
        return int(next(line.split()[1] for line in status.splitlines() if line.startswith("VmHWM"))) / 1024

    def _wait_ready(self, name: str) -> int:
        """The port that the program says it serves on, once it is ready."""
        process, deadline = self._processes[name], time.monotonic() + START_S
        while time.monotonic() < deadline:
            if process.pid is None:
                raise process.failure("ended")
            for line in process.log_file.read_text().splitlines():
                record: dict[str, Any] = json.loads(line) if line.startswith("{") else {}
                if record.get("msg") == "serving" and self._ready(int(record["port"])):
                    return int(record["port"])
            time.sleep(0.1)
        raise process.failure("is not ready")

    def _ready(self, port: int) -> bool:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/readyz", timeout=2) as answer:
                return answer.status == 200
        except OSError:
            return False

    def _get(self, name: str, path: str) -> str:
        with urllib.request.urlopen(f"http://127.0.0.1:{self._ports[name]}{path}", timeout=5) as answer:
            return answer.read().decode()
