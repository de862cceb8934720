"""How simulated nodes look: names, resources, topology labels, and the status that a kubelet would post."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from sim.apiserver.objects import Object
from sim.kubelet.addresses import node_address

__all__ = ("SYSTEM_LABELS", "NodeSpec", "node_manifest", "ready_conditions", "uniform_nodes")

SYSTEM_LABELS = {f"{prefix}kubernetes.io/{key}": value for prefix in ("", "beta.") for key, value in (("os", "linux"), ("arch", "amd64"))}
"""With the old names too, which controllers add to nodes that lack them."""

PRESSURES = {
    "MemoryPressure": ("KubeletHasSufficientMemory", "kubelet has sufficient memory available"),
    "DiskPressure": ("KubeletHasNoDiskPressure", "kubelet has no disk pressure"),
    "PIDPressure": ("KubeletHasSufficientPID", "kubelet has sufficient PID available"),
}


@dataclass(frozen=True, slots=True)
class NodeSpec:
    """One node. `allocatable` holds quantities by resource name, e.g. {"cpu": "64", "nvidia.com/gpu": "8"}."""

    name: str
    allocatable: Mapping[str, str]
    labels: Mapping[str, str] = field(default_factory=dict[str, str])
    taints: Sequence[Mapping[str, str]] = ()


def uniform_nodes(
    count: int,
    *,
    cpu: str = "64",
    memory: str = "512Gi",
    pods: str = "110",
    gpus: int = 0,
    racks: int = 0,
    blocks: int = 0,
    zones: int = 0,
    name: str = "node-{i}",
    labels: Callable[[int], Mapping[str, str]] = lambda i: {},
) -> tuple[NodeSpec, ...]:
    """`count` equal nodes with the labels kubernetes.io/{hostname,rack,block,zone}.

    Without counts of domains a rack has 7 nodes, a block 20, a zone 28 (Grove behaviour: grove.md §9). As soon as one of racks, blocks
    and zones is given, nodes are split evenly into that many, in order, and a level not given is a single domain. `name` is a format
    of i; `labels` adds to or replaces the labels of node i.
    """
    allocatable = {"cpu": cpu, "memory": memory, "pods": pods, **({"nvidia.com/gpu": str(gpus)} if gpus else {})}
    by_size = not (racks or blocks or zones)

    def domain(level: str, i: int, parts: int, size: int) -> str:
        return f"{level}-{i // size if by_size else i * max(parts, 1) // count}"

    def spec(i: int) -> NodeSpec:
        node = name.format(i=i)
        own = {
            "kubernetes.io/hostname": node,
            "kubernetes.io/rack": domain("rack", i, racks, 7),
            "kubernetes.io/block": domain("block", i, blocks, 20),
            "kubernetes.io/zone": domain("zone", i, zones, 28),
        }
        return NodeSpec(node, allocatable, {**own, **labels(i)})

    return tuple(spec(i) for i in range(count))


def node_manifest(spec: NodeSpec, now: str) -> Object:
    """A node that is Ready since `now` (RFC 3339)."""
    status: Object = {"capacity": dict(spec.allocatable), "allocatable": dict(spec.allocatable), "conditions": ready_conditions(now)}
    status["addresses"] = [{"type": "InternalIP", "address": node_address(spec.name)}, {"type": "Hostname", "address": spec.name}]
    status["nodeInfo"] = {
        **dict.fromkeys(("machineID", "systemUUID", "bootID", "kubeProxyVersion"), ""),
        **dict.fromkeys(("kernelVersion", "osImage", "containerRuntimeVersion", "kubeletVersion"), "simulated"),
        **{"operatingSystem": "linux", "architecture": "amd64"},
    }
    metadata = {"name": spec.name, "labels": {**SYSTEM_LABELS, **spec.labels}}
    manifest: Object = {"apiVersion": "v1", "kind": "Node", "metadata": metadata, "spec": {}, "status": status}
    if spec.taints:
        manifest["spec"]["taints"] = [dict(t) for t in spec.taints]
    return manifest


def ready_conditions(now: str) -> list[Object]:
    """The conditions of a node whose kubelet is fine."""
    times = {"lastHeartbeatTime": now, "lastTransitionTime": now}
    out: list[Object] = [
        {"type": kind, "status": "False", "reason": reason, "message": text, **times} for kind, (reason, text) in PRESSURES.items()
    ]
    return [*out, {"type": "Ready", "status": "True", "reason": "KubeletReady", "message": "kubelet is posting ready status", **times}]
