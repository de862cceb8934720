"""A real Kubernetes cluster in containers (kind): one control plane, two workers, for `make e2e-kind`. No registry is needed."""

from hack.kind.cluster import KindCluster
from hack.kind.failures import KindFailed, MachineUnfit

__all__ = ("KindCluster", "KindFailed", "MachineUnfit")
