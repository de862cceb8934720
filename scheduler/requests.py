"""What a pod takes from a node and what a node offers, as integers (scheduler.md §8, edge rule 15).

cpu counts in thousandths of a core, everything else in base units (bytes, devices, pods).
"""

from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import TypeAlias

from api.core import Container, Node, Pod
from api.quantity import Quantity, milli, nano, units

__all__ = ("BASIC", "CPU", "MEMORY", "PODS", "Request", "is_extended", "node_capacity", "pod_request")

CPU = "cpu"
MEMORY = "memory"
PODS = "pods"
BASIC = (CPU, MEMORY, PODS)
"""Resources that every node has."""

Request: TypeAlias = tuple[tuple[str, int], ...]
"""Positive amounts by resource name, sorted by name; always includes one of "pods"."""

NANO_PER_MILLI = 10**6
NANO = 10**9
POD_LEVEL = (CPU, MEMORY, "hugepages-")
"""Prefixes of the resources that spec.resources of a pod may set."""


def is_extended(resource: str) -> bool:
    """True for devices such as nvidia.com/gpu, which are scarcer than what every node has."""
    return "/" in resource


def node_capacity(node: Node) -> dict[str, int]:
    """Allocatable amounts, rounded down. Raises QuantityError."""
    return {name: nano(quantity) // (NANO_PER_MILLI if name == CPU else NANO) for name, quantity in node.status.allocatable.items()}


def pod_request(pod: Pod) -> Request:
    """max(sum of containers, each init container) + sidecars + overhead; pod-level requests override. Raises QuantityError."""
    spec = pod.spec
    running = _sum(_container(c) for c in spec.containers)
    sidecars: dict[str, int] = {}
    starting: dict[str, int] = {}
    for container in spec.init_containers:
        wants = _container(container)
        if container.restart_policy == "Always":
            sidecars = _sum((sidecars, wants))
            starting = _max(starting, sidecars)
        else:
            starting = _max(starting, _sum((sidecars, wants)))
    total = _max(_sum((running, sidecars)), starting)
    if spec.resources is not None:
        total |= {r: _amount(r, q) for r, q in spec.resources.requests.items() if r.startswith(POD_LEVEL)}
    total = _sum((total, _amounts(spec.overhead)))
    total[PODS] = 1
    return tuple(sorted((name, amount) for name, amount in total.items() if amount > 0))


@lru_cache(maxsize=4096)
def _amount(resource: str, quantity: Quantity) -> int:
    return milli(quantity) if resource == CPU else units(quantity)


def _amounts(quantities: Mapping[str, Quantity]) -> dict[str, int]:
    return {name: _amount(name, quantity) for name, quantity in quantities.items()}


def _container(container: Container) -> dict[str, int]:
    """Requests; a limit counts where the request is missing, as the API server's defaulting has it."""
    return _amounts({**container.resources.limits, **container.resources.requests})


def _sum(parts: Iterable[Mapping[str, int]]) -> dict[str, int]:
    total: dict[str, int] = {}
    for part in parts:
        for name, amount in part.items():
            total[name] = total.get(name, 0) + amount
    return total


def _max(a: Mapping[str, int], b: Mapping[str, int]) -> dict[str, int]:
    return {name: max(a.get(name, 0), b.get(name, 0)) for name in {**a, **b}}
