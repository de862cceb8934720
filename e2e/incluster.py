"""Processes as in a cluster: with the rights of their ServiceAccounts, a lease, and credentials in files that change."""

import http.client
import json
import secrets
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Generator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any

import yaml

from api.registry import MODELS, crd_name
from cli.install import PATH
from e2e.cluster import KINDS, eventually
from e2e.workloads import clique, pcs
from hack.daemon import COMMAND, CONTROLLERS_CONFIG, Daemon
from hack.kube import Client, ControlPlane
from hack.kube.components import LOOPBACK

__all__ = (
    "AUDIT_POLICY",
    "NAMESPACE",
    "RECOVERY_S",
    "SETS",
    "Identity",
    "InCluster",
    "Replica",
    "bound",
    "cpu_s",
    "create_set",
    "ended_at",
    "grovekeeper",
    "owned",
    "pods",
    "readiness",
    "received_at",
    "remove",
    "wait_ready",
    "wait_unready",
    "write_kubeconfig",
)

NAMESPACE = "grovekeeper-system"
SETS = KINDS["PodCliqueSet"]
RECOVERY_S = 30.0
"""After a role was mended, or the way to the API server."""
BASE = CONTROLLERS_CONFIG.parents[1] / "base"
RBAC = "/apis/rbac.authorization.k8s.io/v1"
NAMESPACED = {"Role": "roles", "RoleBinding": "rolebindings"}
CLUSTER_WIDE = {"ClusterRole": "clusterroles", "ClusterRoleBinding": "clusterrolebindings"}
APPLY = "application/apply-patch+yaml"
AUDIT_POLICY = {
    "apiVersion": "audit.k8s.io/v1",
    "kind": "Policy",
    "omitStages": ["RequestReceived", "ResponseStarted", "Panic"],
    "rules": [{"level": "Metadata", "userGroups": [f"system:serviceaccounts:{NAMESPACE}"]}, {"level": "None"}],
}
LEASES = {"controllers": "grove-operator-leader-election", "scheduler": "grovekeeper-scheduler"}

Manifest = dict[str, Any]


def write_kubeconfig(path: Path, server: str, ca: Path, token_file: Path) -> None:
    """A kubeconfig whose CA and token are files."""
    config = {
        "clusters": [{"name": "c", "cluster": {"server": server, "certificate-authority": str(ca)}}],
        "users": [{"name": "u", "user": {"tokenFile": str(token_file)}}],
        "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u", "namespace": NAMESPACE}}],
        "current-context": "x",
    }
    path.write_text(json.dumps(config))


class Identity:
    """Files with the credentials of a ServiceAccount. They may be spoiled and mended."""

    def __init__(self, plane: ControlPlane, account: str, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._plane = plane
        self._account = account
        self.token, self.ca, self.kubeconfig = folder / "token", folder / "ca.crt", folder / "kubeconfig"
        self.mend()
        write_kubeconfig(self.kubeconfig, plane.server, self.ca, self.token)

    def mend(self) -> None:
        """A fresh token, the right CA."""
        with self._plane.client() as client:
            path = f"/api/v1/namespaces/{NAMESPACE}/serviceaccounts/{self._account}/token"
            issued = client.request("POST", path, {"spec": {"expirationSeconds": 3600}})
        self.token.write_text(issued["status"]["token"])
        self.ca.write_bytes(self._plane.layout.certs.ca.read_bytes())


class Replica:
    """One `grovekeeper controllers` or `scheduler` that competes for the lease."""

    def __init__(self, component: str, name: str, identity: Identity, folder: Path, *flags: str, kubeconfig: Path | None = None) -> None:
        self.component = component
        given = ("--kubeconfig", str(kubeconfig or identity.kubeconfig), "--config", str(CONTROLLERS_CONFIG))
        self.daemon = Daemon(name, (component, *given, *flags), folder)

    @property
    def texts(self) -> list[str]:
        """What it logged about troubles and missing rights."""
        out: list[str] = []
        for record in self.daemon.log():
            if record.get("msg") in ("trouble", "right missing"):
                what = record["what"]
                out += [what] if isinstance(what, str) else what
        return out

    def logged(self, message: str) -> int:
        """How many lines have that message."""
        return sum(record.get("msg") == message for record in self.daemon.log())

    def logged_at(self, message: str) -> float:
        """When it logged that message last, UNIX time."""
        return max(datetime.fromisoformat(r["time"]).timestamp() for r in self.daemon.log() if r.get("msg") == message)

    def ready(self) -> tuple[bool, str]:
        return readiness(self.daemon.port)


def readiness(port: int) -> tuple[bool, str]:
    """Whether /readyz answers 200, and its text; (False, "") while nobody listens."""
    try:
        with urllib.request.urlopen(f"http://{LOOPBACK}:{port}/readyz", timeout=5) as answer:
            return True, answer.read().decode()
    except urllib.error.HTTPError as error:
        return False, error.read().decode()
    except (OSError, http.client.HTTPException):
        return False, ""


def cpu_s(pid: int) -> float:
    """Processor time that a process has used, in seconds."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / 100.0


class InCluster:
    """A control plane with the accounts and roles that we ship, and an audit log of what they do."""

    def __init__(self, plane: ControlPlane, audit_log: Path, folder: Path) -> None:
        self.plane = plane
        self.audit_log = audit_log
        self.folder = folder
        self.client: Client = plane.client()
        self.roles: dict[tuple[str, str], Manifest] = {}

    def prepare(self) -> None:
        """Namespace, accounts, roles."""
        self.client.request("POST", "/api/v1/namespaces", {"metadata": {"name": NAMESPACE}})
        for component in LEASES:
            account = {"metadata": {"name": f"grovekeeper-{component}"}}
            self.client.request("POST", f"/api/v1/namespaces/{NAMESPACE}/serviceaccounts", account)
            for manifest in yaml.safe_load_all((BASE / f"{component}-rbac.yaml").read_text()):
                self.roles[manifest["kind"], manifest["metadata"]["name"]] = manifest
                self.apply_role(manifest)

    def apply_role(self, manifest: Manifest) -> None:
        kind, name = manifest["kind"], manifest["metadata"]["name"]
        folder = f"{RBAC}/namespaces/{NAMESPACE}/{NAMESPACED[kind]}" if kind in NAMESPACED else f"{RBAC}/{CLUSTER_WIDE[kind]}"
        self.client.request("PATCH", f"{folder}/{name}?fieldManager=test&force=true", manifest, APPLY)

    @contextmanager
    def without(self, component: str, verbs: set[str], resource: str, *, kind: str = "ClusterRole") -> Generator[None]:
        """The account of a process lacks these verbs on a resource inside the block."""
        whole = self.roles[kind, f"grovekeeper-{component}"]
        rules: list[Manifest] = []
        for rule in whole["rules"]:
            others = [r for r in rule["resources"] if r != resource]
            if others:
                rules.append({**rule, "resources": others})
            if resource in rule["resources"] and (left := [v for v in rule["verbs"] if v not in verbs]):
                rules.append({**rule, "resources": [resource], "verbs": left})
        assert rules != whole["rules"], f"no rule for {resource}"
        self.apply_role({**whole, "rules": rules})
        try:
            yield
        finally:
            self.apply_role(whole)

    def identity(self, component: str) -> Identity:
        """New files for the account of a process."""
        return Identity(self.plane, f"grovekeeper-{component}", self.folder / secrets.token_hex(4))

    @contextmanager
    def replica(self, component: str, *flags: str, identity: Identity | None = None, kubeconfig: Path | None = None) -> Generator[Replica]:
        """A running process; the lease is free again afterwards."""
        name = f"{component}-{secrets.token_hex(2)}"
        replica = Replica(component, name, identity or self.identity(component), self.folder, *flags, kubeconfig=kubeconfig)
        replica.daemon.launch()
        try:
            yield replica
        finally:
            replica.daemon.stop()

    def holder(self, component: str) -> str:
        """Who holds the lease, "" for nobody."""
        try:
            status, body = self.client.raw("GET", self.lease_path(component))
        except (OSError, http.client.HTTPException):
            return ""  # the API server was restarted
        return json.loads(body)["spec"].get("holderIdentity") or "" if status == 200 else ""

    def lease_path(self, component: str) -> str:
        return f"/apis/coordination.k8s.io/v1/namespaces/{NAMESPACE}/leases/{LEASES[component]}"

    def free_lease(self, component: str) -> None:
        """After a process was killed."""
        self.client.raw("DELETE", self.lease_path(component))

    def audit(self, since: float, component: str) -> list[Manifest]:
        """Requests of the account of a process that ended after `since` (UNIX time)."""
        user = f"system:serviceaccount:{NAMESPACE}:grovekeeper-{component}"
        entries = (json.loads(line) for line in self.audit_log.read_text().splitlines())
        return [e for e in entries if e["user"]["username"] == user and ended_at(e) >= since]

    def writes(self, since: float, component: str) -> list[Manifest]:
        """Those of them that write something else than a lease."""
        reads = ("get", "list", "watch")
        return [e for e in self.audit(since, component) if e["verb"] not in reads and e["objectRef"]["resource"] != "leases"]


def ended_at(entry: Manifest) -> float:
    """When a request was answered, UNIX time."""
    return datetime.fromisoformat(entry["stageTimestamp"]).timestamp()


def received_at(entry: Manifest) -> float:
    """When a request arrived, UNIX time."""
    return datetime.fromisoformat(entry["requestReceivedTimestamp"]).timestamp()


def grovekeeper(cluster: InCluster, *arguments: str) -> tuple[int, str]:
    """Runs a command with full rights; exit code and what it said."""
    argv = [str(COMMAND), *arguments, "--kubeconfig", str(cluster.plane.kubeconfig)]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=90, check=False)
    return done.returncode, done.stdout + done.stderr


def remove(cluster: InCluster, *names: str) -> None:
    """Deletes definitions, all without names, and waits until they are gone."""
    chosen = names or tuple(crd_name(model) for model in MODELS)
    # kube-apiserver cannot remove one whose cache never came up: "could not list instances: storage is (re)initializing", for ever.
    for path in {model.KIND.path() for model in MODELS}:
        eventually(lambda path=path: cluster.client.raw("GET", f"{path}?resourceVersion=0")[0] in (200, 404), f"{path} is not served")
    for name in chosen:
        cluster.client.raw("DELETE", f"{PATH}/{name}")

    def left() -> dict[str, Any]:
        """Status of those that are still there."""
        answers = {name: cluster.client.raw("GET", f"{PATH}/{name}") for name in chosen}
        return {name: json.loads(body)["status"] for name, (status, body) in answers.items() if status != 404}

    eventually(lambda: not left(), lambda: f"definitions stay: {left()}", 60.0)


def owned(cluster: InCluster, kind: str, name: str) -> list[dict[str, Any]]:
    items = cluster.client.request("GET", KINDS[kind].path("default"))["items"]
    return [o for o in items if o["metadata"]["name"].startswith(name)]


def create_set(cluster: InCluster, name: str, pods: int = 2) -> None:
    manifest = pcs(name, (clique("w", pods, memory="10Mi", scheduler="grovekeeper-scheduler"),))
    cluster.client.request("POST", SETS.path("default"), manifest)


def pods(cluster: InCluster, name: str) -> list[dict[str, Any]]:
    return owned(cluster, "Pod", name)


def bound(cluster: InCluster, name: str) -> int:
    return sum(bool(pod["spec"].get("nodeName")) for pod in pods(cluster, name))


def wait_ready(replica: Replica, timeout_s: float = RECOVERY_S) -> float:
    """Seconds until it was ready."""
    began = time.monotonic()
    eventually(lambda: replica.ready()[0], lambda: f"{replica.ready()}\n{replica.daemon.tail()}", timeout_s)
    return time.monotonic() - began


def wait_unready(replica: Replica, *words: str) -> None:
    """Until /readyz refuses with all these words, which the log has too."""

    def told() -> bool:
        ready, text = replica.ready()
        return not ready and all(word in text for word in words)

    eventually(told, lambda: f"{replica.ready()} lacks {words}\n{replica.daemon.tail()}", 20.0)
    eventually(lambda: any(all(w in text for w in words) for text in replica.texts), lambda: f"log: {replica.texts}", 5.0)
