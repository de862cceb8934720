"""What the cluster is made of, as text: kind's configuration, the audit policy, the network of one node."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

__all__ = (
    "AUDIT_FOLDER",
    "CLUSTER",
    "GPUS_PER_WORKER",
    "NODES",
    "WORKERS",
    "Settings",
    "audit_policy",
    "cni_configuration",
    "kind_configuration",
    "node_labels",
    "settings_digest",
)

CLUSTER = "grovekeeper"
WORKERS = (f"{CLUSTER}-worker", f"{CLUSTER}-worker2")
NODES = (f"{CLUSTER}-control-plane", *WORKERS)
"""Container and node names as kind chooses them."""
GPUS_PER_WORKER = 8
AUDIT_FOLDER = "/var/log/kubernetes/audit"
"""On the control-plane node. /var is a volume of the node: logs live as long as the cluster."""
POLICY_FOLDER = "/etc/kubernetes/audit"


@dataclass(frozen=True, slots=True)
class Settings:
    """What differs from machine to machine.

    `policy` is the audit policy's file on this machine. `has_network` says that the node image brings a pod network of its own.
    `cgroup_v1` and `keeps_oom_score` are limits of this machine: old control groups; no right to lower a process's OOM score.
    """

    image: str
    policy: Path
    has_network: bool
    cgroup_v1: bool
    keeps_oom_score: bool


def kind_configuration(settings: Settings) -> str:
    """Configuration for `kind create cluster`, YAML."""
    policy_mount = {"hostPath": str(settings.policy), "containerPath": f"{POLICY_FOLDER}/{settings.policy.name}", "readOnly": True}
    control_plane = {"role": "control-plane", "image": settings.image, "extraMounts": [policy_mount]}
    worker = {"role": "worker", "image": settings.image}
    patches: list[dict[str, Any]] = [_control_plane(settings.policy.name)]
    if settings.cgroup_v1:
        # kubelets of 1.35 and later refuse to start there unless told otherwise.
        patches.append({"kind": "KubeletConfiguration", "failCgroupV1": False})
    config: dict[str, Any] = {
        "kind": "Cluster",
        "apiVersion": "kind.x-k8s.io/v1alpha4",
        "name": CLUSTER,
        "networking": {"disableDefaultCNI": not settings.has_network},
        "kubeadmConfigPatches": [yaml.safe_dump(p, sort_keys=False) for p in patches],
        "nodes": [control_plane, *(dict(worker) for _ in WORKERS)],
    }
    if settings.keeps_oom_score:
        config["containerdConfigPatches"] = ['[plugins."io.containerd.grpc.v1.cri"]\n  restrict_oom_score_adj = true\n']
    return yaml.safe_dump(config, sort_keys=False)


def _control_plane(policy: str) -> dict[str, Any]:
    """kubeadm patch: the API server writes an audit log, and a slow disk stops nothing.

    A log file is renamed at 100 MB; fifty old ones are kept. A list takes the place of kind's own, whose only entry of use is repeated.
    """
    audit = {
        "audit-policy-file": f"{POLICY_FOLDER}/{policy}",
        "audit-log-path": f"{AUDIT_FOLDER}/audit.log",
        "audit-log-maxsize": "100",
        "audit-log-maxbackup": "50",
    }
    volumes = [
        {"name": "audit-policy", "hostPath": POLICY_FOLDER, "mountPath": POLICY_FOLDER, "readOnly": True, "pathType": "DirectoryOrCreate"},
        {"name": "audit-log", "hostPath": AUDIT_FOLDER, "mountPath": AUDIT_FOLDER, "readOnly": False, "pathType": "DirectoryOrCreate"},
    ]
    return {
        "kind": "ClusterConfiguration",
        "apiServer": {"extraArgs": _arguments(audit), "extraVolumes": volumes},
        # With one control plane, an election can only be lost, to a disk that is slow for seconds.
        "controllerManager": {"extraArgs": _arguments({"enable-hostpath-provisioner": "true", "leader-elect": "false"})},
        "scheduler": {"extraArgs": _arguments({"leader-elect": "false"})},
        "etcd": {"local": {"extraArgs": _arguments({"unsafe-no-fsync": "true"})}},
    }


def _arguments(values: Mapping[str, str]) -> list[dict[str, str]]:
    return [{"name": name, "value": value} for name, value in values.items()]


def audit_policy() -> str:
    """Completed requests of all service accounts but those of Kubernetes itself, without bodies, YAML.

    Groups, because a policy knows no patterns for users, and init containers use accounts in the namespaces of their workloads.
    """
    policy = {
        "apiVersion": "audit.k8s.io/v1",
        "kind": "Policy",
        "omitStages": ["RequestReceived", "ResponseStarted", "Panic"],
        "rules": [
            {"level": "None", "userGroups": ["system:serviceaccounts:kube-system"]},
            {"level": "Metadata", "userGroups": ["system:serviceaccounts"]},
            {"level": "None"},
        ],
    }
    return yaml.safe_dump(policy, sort_keys=False)


def cni_configuration(pod_cidr: str) -> str:
    """Pod network of one node, JSON: a veth pair per pod, addresses out of the node's range, no masquerading inside the cluster."""
    addresses = {"type": "host-local", "ranges": [[{"subnet": pod_cidr}]], "routes": [{"dst": "0.0.0.0/0"}]}
    plugins = [
        {"type": "ptp", "ipMasq": False, "ipam": addresses, "mtu": 1500},
        {"type": "portmap", "capabilities": {"portMappings": True}},
    ]
    return json.dumps({"cniVersion": "0.4.0", "name": CLUSTER, "plugins": plugins})


def node_labels(node: str) -> dict[str, str]:
    """Topology labels of a worker: each has a zone, block and rack of its own, by the keys of manifests/samples/topology.yaml."""
    number = WORKERS.index(node) + 1
    return {
        "topology.kubernetes.io/zone": f"z{number}",
        "kubernetes.io/zone": f"z{number}",
        "kubernetes.io/block": f"b{number}",
        "kubernetes.io/rack": f"r{number}",
    }


def settings_digest(configuration: str, image_id: str) -> str:
    """Changes when a cluster has to be made anew."""
    return hashlib.sha256(f"{configuration}\n{audit_policy()}\n{image_id}".encode()).hexdigest()[:16]
