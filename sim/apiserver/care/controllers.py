"""All that kube-controller-manager does here for the cluster itself, in one."""

import asyncio
from typing import Protocol

from sim.apiserver.care.collector import Collector
from sim.apiserver.care.collector import Host as Storing
from sim.apiserver.care.namespaces import NamespaceController
from sim.apiserver.care.tokens import TokenController
from sim.apiserver.resources import Lookup

__all__ = ("Controllers",)


class Host(Storing, Protocol):
    """A server: ApiServer is one."""

    @property
    def lookup(self) -> Lookup: ...


class Controllers:
    """Garbage collection, namespaces with their service accounts, and token secrets.

    They watch all changes from the moment this is made and act while `run` runs. `authority`: PEM text for token secrets.
    """

    def __init__(self, host: Host, authority: str = "") -> None:
        self._controllers = (Collector(host), NamespaceController(host), TokenController(host, host.lookup, authority))

    async def run(self) -> None:
        """Acts until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            for controller in self._controllers:
                tasks.create_task(controller.run(), name=type(controller).__name__)
