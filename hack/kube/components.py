"""The command line of every component. Pure: folders and ports in, arguments out."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path

import yaml

from hack.kube.certificates import Certificates

__all__ = ("Layout", "Ports", "arguments", "kwok_config", "ports_of", "ready_url")

STAGES = Path(__file__).resolve().parent / "stages"
LOOPBACK = "127.0.0.1"


@dataclass(frozen=True, slots=True)
class Ports:
    """Loopback TCP ports. 0 asks for a free one."""

    etcd: int = 0
    etcd_peer: int = 0
    apiserver: int = 0
    controller_manager: int = 0
    scheduler: int = 0
    kwok: int = 0

    def items(self) -> tuple[tuple[str, int], ...]:
        """(field name, port), in order."""
        return tuple((f.name, int(getattr(self, f.name))) for f in fields(self))


@dataclass(frozen=True, slots=True)
class Layout:
    """What lies where in the folder of one control plane. Absolute paths."""

    root: Path

    @property
    def bin(self) -> Path:
        return self.root / "bin"

    @property
    def data(self) -> Path:
        return self.root / "data"

    @property
    def logs(self) -> Path:
        return self.root / "logs"

    @property
    def run(self) -> Path:
        return self.root / "run"

    @property
    def certs(self) -> Certificates:
        return Certificates(self.root / "certs")

    @property
    def kubeconfig(self) -> Path:
        return self.root / "kubeconfig"

    @property
    def tokens(self) -> Path:
        return self.root / "tokens.csv"

    @property
    def kwok_config(self) -> Path:
        return self.root / "kwok.yaml"

    @property
    def ports_file(self) -> Path:
        return self.root / "ports.json"


def arguments(name: str, layout: Layout, ports: Ports, overrides: Mapping[str, str]) -> list[str]:
    """argv of a component. `overrides` maps flag names (without dashes) to values and wins over ours; an empty value drops the flag."""
    flags = {**_FLAGS[name](layout, ports), **overrides}
    return [str(layout.bin / name), *(f"--{flag}={value}" for flag, value in flags.items() if value)]


def kwok_config(port: int) -> str:
    """KWOK's configuration and stages as one YAML stream. The parallelism must be above zero or nothing happens."""
    options: dict[str, object] = {
        "manageAllNodes": True,
        "serverAddress": f"{LOOPBACK}:{port}",
        "cidr": "10.64.0.0/10",
        "nodeIP": LOOPBACK,
        "nodeLeaseDurationSeconds": 40,
        "podPlayStageParallelism": 8,
        "nodePlayStageParallelism": 8,
        "nodeLeaseParallelism": 8,
        "podsOnNodeSyncParallelism": 4,
        "enableDebuggingHandlers": False,
    }
    config = {"apiVersion": "config.kwok.x-k8s.io/v1alpha1", "kind": "KwokConfiguration", "options": options}
    return "---\n".join([yaml.safe_dump(config), *(p.read_text() for p in sorted(STAGES.glob("*.yaml")))])


def _etcd(layout: Layout, ports: Ports) -> dict[str, str]:
    client, peer = f"http://{LOOPBACK}:{ports.etcd}", f"http://{LOOPBACK}:{ports.etcd_peer}"
    return {
        "name": "default",
        "data-dir": str(layout.data),
        "listen-client-urls": client,
        "advertise-client-urls": client,
        "listen-peer-urls": peer,
        "initial-advertise-peer-urls": peer,
        "initial-cluster": f"default={peer}",
        # Loses data in a power cut only, and makes writes several times faster.
        "unsafe-no-fsync": "true",
        "log-level": "warn",
    }


def _apiserver(layout: Layout, ports: Ports) -> dict[str, str]:
    return {
        "bind-address": LOOPBACK,
        # An endpoint may not be a loopback address: say which address we have and do not publish it.
        "advertise-address": LOOPBACK,
        "endpoint-reconciler-type": "none",
        "secure-port": str(ports.apiserver),
        "cert-dir": str(layout.certs.folder),
        "tls-cert-file": str(layout.certs.server_cert),
        "tls-private-key-file": str(layout.certs.server_key),
        "etcd-servers": f"http://{LOOPBACK}:{ports.etcd}",
        "token-auth-file": str(layout.tokens),
        "authorization-mode": "RBAC",
        "allow-privileged": "true",
        # Pods would otherwise wait for their namespace's ServiceAccount and get a token volume that nobody mounts.
        "disable-admission-plugins": "ServiceAccount",
        "service-account-issuer": "https://kubernetes.default.svc.cluster.local",
        "service-account-key-file": str(layout.certs.service_account_key),
        "service-account-signing-key-file": str(layout.certs.service_account_key),
        "service-cluster-ip-range": "10.96.0.0/12",
        # Zero, the default, makes a stopped server wait a minute for its watchers.
        "shutdown-watch-termination-grace-period": "1s",
    }


def _client(layout: Layout) -> dict[str, str]:
    """Flags that the controller manager and the scheduler share."""
    return {
        "kubeconfig": str(layout.kubeconfig),
        "authentication-kubeconfig": str(layout.kubeconfig),
        "authorization-kubeconfig": str(layout.kubeconfig),
        "authentication-tolerate-lookup-failure": "true",
        "bind-address": LOOPBACK,
        "tls-cert-file": str(layout.certs.server_cert),
        "tls-private-key-file": str(layout.certs.server_key),
    }


def _controller_manager(layout: Layout, ports: Ports) -> dict[str, str]:
    return {
        **_client(layout),
        "secure-port": str(ports.controller_manager),
        "use-service-account-credentials": "false",
        "service-account-private-key-file": str(layout.certs.service_account_key),
        "root-ca-file": str(layout.certs.ca),
        # node-lifecycle stays: it takes the not-ready taint off a new node. ttl annotates nodes for kubelets, of which there are none.
        "controllers": "*,-node-ipam-controller,-node-route-controller,-service-lb-controller,-ttl-controller",
        "leader-elect": "false",
    }


def _scheduler(layout: Layout, ports: Ports) -> dict[str, str]:
    return {**_client(layout), "secure-port": str(ports.scheduler), "leader-elect": "false"}


def _kwok(layout: Layout, ports: Ports) -> dict[str, str]:
    return {"config": str(layout.kwok_config), "kubeconfig": str(layout.kubeconfig), "v": "WARN"}


_FLAGS = {
    "etcd": _etcd,
    "kube-apiserver": _apiserver,
    "kube-controller-manager": _controller_manager,
    "kube-scheduler": _scheduler,
    "kwok": _kwok,
}


def ready_url(name: str, ports: Ports) -> str:
    """Where a component says that it is ready."""
    return {
        "etcd": f"http://{LOOPBACK}:{ports.etcd}/health",
        "kube-apiserver": f"https://{LOOPBACK}:{ports.apiserver}/readyz",
        "kube-controller-manager": f"https://{LOOPBACK}:{ports.controller_manager}/healthz",
        "kube-scheduler": f"https://{LOOPBACK}:{ports.scheduler}/readyz",
        "kwok": f"http://{LOOPBACK}:{ports.kwok}/healthz",
    }[name]


def ports_of(name: str) -> Sequence[str]:
    """Fields of `Ports` that a component listens on."""
    return ("etcd", "etcd_peer") if name == "etcd" else (name.removeprefix("kube-").replace("-", "_"),)
