"""A real Kubernetes control plane on loopback, with simulated nodes: for development, end-to-end tests and `make try`."""

from hack.kube.binaries import Binaries, BinariesMissing, find_binaries, find_prepared
from hack.kube.client import ApiError, Client
from hack.kube.control_plane import ControlPlane
from hack.kube.nodes import NodeSpec, cordon, create_nodes, delete_nodes, uncordon, uniform_nodes
from hack.kube.process import AlreadyRunning, ComponentFailed, Lifetime, PortInUse

__all__ = (
    "AlreadyRunning",
    "ApiError",
    "Binaries",
    "BinariesMissing",
    "Client",
    "ComponentFailed",
    "ControlPlane",
    "Lifetime",
    "NodeSpec",
    "PortInUse",
    "cordon",
    "create_nodes",
    "delete_nodes",
    "find_binaries",
    "find_prepared",
    "uncordon",
    "uniform_nodes",
)
