"""The machines behind nodes: what runs on each, what that uses, and whether it is alive."""

from dataclasses import dataclass, field

from sim.apiserver.objects import Object, maps
from sim.apiserver.resources import ObjectKey
from sim.kubelet.addresses import node_address
from sim.kubelet.admission import Amounts, allocatable_of, refusal_of, requests_of
from sim.kubelet.lifecycle import Refusal

__all__ = ("Machine", "address_of")


@dataclass(slots=True)
class Machine:
    """`node` None: there is no Node object, so nobody acts. `admitted`: requests of pods that are not over."""

    name: str
    node: Object | None = None
    is_alive: bool = True
    pods: dict[ObjectKey, None] = field(default_factory=dict[ObjectKey, None])
    admitted: dict[ObjectKey, dict[str, int]] = field(default_factory=dict[ObjectKey, dict[str, int]])
    used: dict[str, int] = field(default_factory=dict[str, int])
    allocatable: Amounts = field(default_factory=dict[str, int])
    address: str = ""

    @property
    def acts(self) -> bool:
        return self.is_alive and self.node is not None

    @property
    def uid(self) -> str:
        return self.node["metadata"]["uid"] if self.node is not None else ""

    def set_node(self, node: Object | None) -> None:
        """The Node object as it is now."""
        self.node = node
        if node is not None:
            self.allocatable = allocatable_of(node)
            self.address = address_of(node)

    def admit(self, key: ObjectKey, pod: Object) -> Refusal | None:
        """Reserves what a pod needs, or says why it does not run here. Only for machines with a node."""
        assert self.node is not None  # noqa: S101 - said above
        wanted = requests_of(pod)
        refusal = refusal_of(pod, self.node, wanted, self.used, self.allocatable)
        if refusal is None:
            self.admitted[key] = wanted
            for name, amount in wanted.items():
                self.used[name] = self.used.get(name, 0) + amount
        return refusal

    def release(self, key: ObjectKey) -> None:
        """A pod is over or gone."""
        for name, amount in self.admitted.pop(key, {}).items():
            self.used[name] -= amount


def address_of(node: Object) -> str:
    """The node's own InternalIP, else one made from its name."""
    found = next((a["address"] for a in maps(node, "status", "addresses") if a.get("type") == "InternalIP"), "")
    return found or node_address(node["metadata"]["name"])
