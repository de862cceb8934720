"""What a pod takes from a node and what a node offers, as integers (scheduler.md §8, edge rule 15).

cpu counts in thousandths of a core, everything else in base units (bytes, devices, pods).
"""

from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import TypeAlias

from api.core import Container, Node, Pod
from api.quantity import Quantity, QuantityError, milli, nano, units

__all__ = (
    "BASIC",
    "CPU",
    "MEMORY",
    "MOST",
    "PODS",
    "Request",
    "is_extended",
    "node_capacity",
    "pod_request",
    "read_capacity",
    "read_request",
)

CPU = "cpu"
MEMORY = "memory"
PODS = "pods"
BASIC = (CPU, MEMORY, PODS)
"""Resources that every node has."""

Request: TypeAlias = tuple[tuple[str, int], ...]
"""Positive amounts by resource name, sorted by name; always includes one of "pods"."""

MOST = 2**50
"""Largest amount of a node (1 PiB). Thousands of them can be added in 64 bits; a pod that asks for more fits nowhere."""
NANO_PER_MILLI = 10**6
NANO = 10**9
POD_LEVEL = (CPU, MEMORY, "hugepages-")
"""Prefixes of the resources that spec.resources of a pod may set."""


def is_extended(resource: str) -> bool:
    """True for devices such as nvidia.com/gpu, which are scarcer than what every node has."""
    return "/" in resource


def node_capacity(node: Node) -> dict[str, int]:
    """Allocatable amounts, rounded down, between 0 and MOST. What is no quantity is left out."""
    return read_capacity(node)[0]


def read_capacity(node: Node) -> tuple[dict[str, int], str]:
    """`node_capacity`, and what is wrong with the first amount that is no quantity, "" when all are."""
    capacity: dict[str, int] = {}
    problem = ""
    for name, quantity in node.status.allocatable.items():
        try:
            amount = nano(quantity) // (NANO_PER_MILLI if name == CPU else NANO)
        except QuantityError as error:
            problem = problem or f"{name}: {error}"
        else:
            capacity[name] = min(max(amount, 0), MOST)
    return capacity, problem


def pod_request(pod: Pod) -> Request:
    """max(sum of containers, each init container) + sidecars + overhead; pod-level requests override.

    Amounts above MOST are MOST + 1, which no node has. What is no quantity counts as nothing.
    """
    return read_request(pod)[0]


def read_request(pod: Pod) -> tuple[Request, str]:
    """`pod_request`, and what is wrong with the first amount that is no quantity, "" when all are."""
    spec, problems = pod.spec, list[str]()
    running = _sum(_container(c, problems) for c in spec.containers)
    sidecars: dict[str, int] = {}
    starting: dict[str, int] = {}
    for container in spec.init_containers:
        wants = _container(container, problems)
        if container.restart_policy == "Always":
            sidecars = _sum((sidecars, wants))
            starting = _max(starting, sidecars)
        else:
            starting = _max(starting, _sum((sidecars, wants)))
    total = _max(_sum((running, sidecars)), starting)
    if spec.resources is not None:
        total |= _amounts({r: q for r, q in spec.resources.requests.items() if r.startswith(POD_LEVEL)}, problems)
    total = _sum((total, _amounts(spec.overhead, problems)))
    total[PODS] = 1
    request = tuple(sorted((name, min(amount, MOST + 1)) for name, amount in total.items() if amount > 0))
    return request, problems[0] if problems else ""


@lru_cache(maxsize=4096)
def _amount(resource: str, quantity: Quantity) -> int:
    return milli(quantity) if resource == CPU else units(quantity)


def _amounts(quantities: Mapping[str, Quantity], problems: list[str]) -> dict[str, int]:
    amounts: dict[str, int] = {}
    for name, quantity in quantities.items():
        try:
            amounts[name] = _amount(name, quantity)
        except QuantityError as error:
            problems.append(f"{name}: {error}")
    return amounts


def _container(container: Container, problems: list[str]) -> dict[str, int]:
    """Requests; a limit counts where the request is missing, as the API server's defaulting has it."""
    return _amounts({**container.resources.limits, **container.resources.requests}, problems)


def _sum(parts: Iterable[Mapping[str, int]]) -> dict[str, int]:
    total: dict[str, int] = {}
    for part in parts:
        for name, amount in part.items():
            total[name] = total.get(name, 0) + amount
    return total


def _max(a: Mapping[str, int], b: Mapping[str, int]) -> dict[str, int]:
    return {name: max(a.get(name, 0), b.get(name, 0)) for name in {**a, **b}}
