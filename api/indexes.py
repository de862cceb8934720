"""Indexes that controllers and scheduler declare on the stores. Values include the namespace, so lookups never cross tenants."""

from collections.abc import Callable, Iterable
from typing import Any

from api import labels
from api.plan import Index, Object

__all__ = ("BY_BASE_GANG", "BY_CLIQUE", "BY_GANG", "BY_NODE", "BY_OWNER", "BY_PCS", "BY_SCALING_GROUP", "scoped")


def scoped(namespace: str, name: str) -> str:
    """Index value for a name inside a namespace."""
    return f"{namespace}/{name}"


def _owner(obj: Object) -> Iterable[str]:
    controller = obj.metadata.controller
    return (controller.uid,) if controller is not None else ()


def _label(key: str) -> Callable[[Object], Iterable[str]]:
    def keys(obj: Object) -> Iterable[str]:
        value = obj.metadata.labels.get(key)
        return (scoped(obj.metadata.namespace, value),) if value else ()

    return keys


def _node(pod: Any) -> Iterable[str]:
    return (pod.spec.node_name,) if pod.spec.node_name else ()


BY_OWNER = Index("owner", _owner)
"""Any object by its controller's uid."""
BY_PCS = Index("pcs", _label(labels.PART_OF))
"""Managed objects by the PodCliqueSet in their part-of label."""
BY_GANG = Index("gang", _label(labels.PODGANG))
"""PodCliques and pods by their gang."""
BY_BASE_GANG = Index("base-gang", _label(labels.BASE_PODGANG))
"""PodCliques of Tail gangs by the Anchor gang they wait for."""
BY_CLIQUE = Index("clique", _label(labels.PODCLIQUE))
"""Pods by their PodClique."""
BY_SCALING_GROUP = Index("scaling-group", _label(labels.PCSG))
"""Member PodCliques by their scaling group."""
BY_NODE = Index("node", _node)
"""Pods by the node they are bound to."""
