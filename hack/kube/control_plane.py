"""etcd, kube-apiserver, kube-controller-manager, kube-scheduler and KWOK as background processes of this machine."""

import contextlib
import fcntl
import http.client
import json
import secrets
import shutil
import ssl
import time
import urllib.request
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path

from hack.kube.binaries import COMPONENTS, Binaries, Report, find_binaries
from hack.kube.cache import silent
from hack.kube.certificates import write_certificates
from hack.kube.client import Access, Client, write_kubeconfig
from hack.kube.components import LOOPBACK, Layout, Ports, arguments, kwok_config, ports_of, ready_url
from hack.kube.ports import fill_free
from hack.kube.process import AlreadyRunning, Lifetime, Process

__all__ = ("DEFAULT_DIRECTORY", "ControlPlane")

DEFAULT_DIRECTORY = Path(".grovekeeper/kube")
POLL_S = 0.05
# Who waits for whom: everything in one row starts together.
WAVES = (("etcd",), ("kube-apiserver",), ("kube-controller-manager", "kube-scheduler", "kwok"))
# Objects that controllers make; when they are there, namespaces and service accounts work.
FIRST_OBJECTS = ("/api/v1/namespaces/default", "/api/v1/namespaces/kube-node-lease", "/api/v1/namespaces/default/serviceaccounts/default")


class ControlPlane:
    """One control plane in one directory. All methods block; errors are AlreadyRunning, ComponentFailed, PortInUse, BinariesMissing.

    `ports`: 0 picks a free one, the same as last time when possible. `flags`: component -> flag name -> value, over our own; an empty
    value drops a flag (`{"kube-controller-manager": {"kube-api-qps": "200", "kube-api-burst": "400"}}`). Another object for the same
    directory, also in another program, sees and may stop what this one started.
    """

    def __init__(
        self,
        directory: Path = DEFAULT_DIRECTORY,
        *,
        binaries: Binaries | None = None,
        ports: Ports | None = None,
        components: Sequence[str] = COMPONENTS,
        flags: Mapping[str, Mapping[str, str]] | None = None,
        lifetime: Lifetime = Lifetime.DETACHED,
        report: Report = silent,
    ) -> None:
        if unknown := set(components) - set(COMPONENTS):
            raise ValueError(f"unknown components: {', '.join(sorted(unknown))}; known: {', '.join(COMPONENTS)}")
        self.layout = Layout(directory.resolve())
        self.components = tuple(c for c in COMPONENTS if c in components)
        self.processes = {c: Process(c, self.layout.run / f"{c}.json", self.layout.logs / f"{c}.log") for c in COMPONENTS}
        self.flags = flags or {}
        self._binaries = binaries
        self._wanted = ports or Ports()
        self._lifetime = lifetime
        self._report = report

    @property
    def kubeconfig(self) -> Path:
        """Context `grovekeeper`, verified TLS, a token of group system:masters."""
        return self.layout.kubeconfig

    @property
    def kubectl(self) -> Path:
        """A kubectl of the same version."""
        return self.layout.bin / "kubectl"

    @property
    def ports(self) -> Ports:
        """Ports of the last start; zeros before the first."""
        return Ports(**self._remembered())

    @property
    def server(self) -> str:
        """URL of the API server."""
        return f"https://{LOOPBACK}:{self.ports.apiserver}"

    def running(self) -> dict[str, int]:
        """Pids of living components."""
        return {name: pid for name, process in self.processes.items() if (pid := process.pid) is not None}

    def dead(self) -> tuple[str, ...]:
        """Components that were started, were not stopped, and do not live."""
        return tuple(name for name, process in self.processes.items() if process.pid_file.exists() and process.pid is None)

    def ready(self) -> dict[str, bool]:
        """For every living component whether it says that it is ready."""
        return {name: self._answers(name) for name in self.running()}

    def start(self) -> dict[str, float]:
        """Start all and wait until usable; seconds each component took. On failure nothing is left running."""
        with self._lock():
            if alive := self.running():
                raise AlreadyRunning(f"{', '.join(alive)} run already in {self.layout.root}")
            self._prepare()
            took: dict[str, float] = {}
            try:
                for wave in WAVES:
                    took |= self._start_wave([c for c in wave if c in self.components])
                if "kube-controller-manager" in self.components:
                    began = time.monotonic()
                    self._wait("kube-controller-manager", self._first_objects, 30.0)
                    self._say(took, "first objects", began)
            except BaseException:
                self._stop_all()
                raise
            return took

    def stop(self) -> None:
        """Stop every component in reverse order, also after a failed or partial start. Data stay."""
        with self._lock():
            self._stop_all()

    def remove(self) -> None:
        """Stop, and delete what this class made in the directory."""
        self.stop()
        for folder in (self.layout.bin, self.layout.data, self.layout.logs, self.layout.run, self.layout.certs.folder):
            shutil.rmtree(folder, ignore_errors=True)
        lock = self.layout.root / "lock"
        for file in (self.layout.kubeconfig, self.layout.tokens, self.layout.kwok_config, self.layout.ports_file, lock):
            file.unlink(missing_ok=True)
        with contextlib.suppress(OSError):
            self.layout.root.rmdir()

    def start_component(self, name: str, timeout_s: float = 60.0) -> float:
        """Start one component and wait until it is ready; seconds taken."""
        began = time.monotonic()
        self._launch(name)
        self._wait(name, lambda: self._answers(name), timeout_s)
        return time.monotonic() - began

    def stop_component(self, name: str) -> None:
        """Stop one component with TERM (KILL after 10 s); its port is free afterwards."""
        self.processes[name].stop()

    def kill_component(self, name: str) -> None:
        """KILL one component, as a crash would."""
        self.processes[name].kill()

    def start_apiserver(self) -> float:
        """Start the API server on the port it had; seconds taken."""
        return self.start_component("kube-apiserver")

    def stop_apiserver(self) -> None:
        """Stop the API server; etcd and the data stay."""
        self.stop_component("kube-apiserver")

    def restart_apiserver(self) -> float:
        """Stop and start the API server; seconds until it is ready again."""
        self.stop_apiserver()
        return self.start_apiserver()

    def client(self) -> Client:
        """A blocking client with full rights."""
        return Client(self.kubeconfig)

    def _prepare(self) -> None:
        """Write everything that the components read."""
        self.layout.root.mkdir(parents=True, exist_ok=True)
        self.layout.root.chmod(0o700)
        ports = fill_free(self._wanted, self._remembered())
        (self._binaries or find_binaries(self._report)).link_into(self.layout.bin)
        self.layout.ports_file.write_text(json.dumps(asdict(ports)))
        write_certificates(self.layout.certs.folder)
        if not self.layout.tokens.exists():
            self.layout.tokens.touch(mode=0o600)
            self.layout.tokens.write_text(f'{secrets.token_urlsafe(32)},admin,admin,"system:masters"\n')
        token = self.layout.tokens.read_text().partition(",")[0]
        write_kubeconfig(self.kubeconfig, Access(self.server, self.layout.certs.ca, token))
        self.layout.kwok_config.write_text(kwok_config(ports.kwok))

    def _start_wave(self, names: Sequence[str]) -> dict[str, float]:
        began = time.monotonic()
        for name in names:
            self._launch(name)
        took: dict[str, float] = {}
        for name in names:
            self._wait(name, lambda name=name: self._answers(name), 60.0)
            self._say(took, name, began)
        return took

    def _launch(self, name: str) -> None:
        argv = arguments(name, self.layout, self.ports, self.flags.get(name, {}))
        self.processes[name].start(argv, self._lifetime)

    def _wait(self, name: str, check: Callable[[], bool], timeout_s: float) -> None:
        """Wait for the check; a component that dies or takes too long is an error with the end of its log."""
        process, deadline = self.processes[name], time.monotonic() + timeout_s
        while not check():
            if process.pid is None:
                raise process.failure(f"exited at start{self._port_hint(name)}")
            if time.monotonic() > deadline:
                raise process.failure(f"is not ready after {timeout_s:.0f} s")
            time.sleep(POLL_S)
        # Whatever answered must be ours: a foreign server on the same port would answer for a dead component.
        if process.pid is None:
            raise process.failure(f"exited{self._port_hint(name)}")

    def _port_hint(self, name: str) -> str:
        listening = ", ".join(str(getattr(self.ports, field)) for field in ports_of(name))
        in_use = "address already in use" in self.processes[name].log_tail(40)
        return f" because another program took its port ({listening})" if in_use else f" (port {listening})"

    def _answers(self, name: str) -> bool:
        context = ssl.create_default_context(cafile=str(self.layout.certs.ca))
        try:
            with urllib.request.urlopen(ready_url(name, self.ports), timeout=2, context=context) as answer:  # noqa: S310 - loopback URL
                return answer.status == 200
        except (OSError, http.client.HTTPException):
            return False

    def _first_objects(self) -> bool:
        try:
            with self.client() as client:
                return all(client.raw("GET", path)[0] == 200 for path in FIRST_OBJECTS)
        except (OSError, http.client.HTTPException):
            return False

    def _stop_all(self) -> None:
        for name in reversed(COMPONENTS):
            self.processes[name].stop()

    def _say(self, took: dict[str, float], name: str, began: float) -> None:
        took[name] = time.monotonic() - began
        self._report(f"{name}: ready after {took[name]:.1f} s")

    def _remembered(self) -> dict[str, int]:
        try:
            return json.loads(self.layout.ports_file.read_text())
        except FileNotFoundError:
            return {}

    @contextlib.contextmanager
    def _lock(self) -> Generator[None]:
        """One start or stop at a time per directory, also between programs."""
        self.layout.root.mkdir(parents=True, exist_ok=True)
        with (self.layout.root / "lock").open("w") as handle:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as error:
                raise AlreadyRunning(f"another program starts or stops the control plane in {self.layout.root}") from error
            yield
