"""A fault proxy between the processes in the cluster and its API server, with a certificate that they trust."""

import asyncio
import contextlib
import ssl
from collections.abc import AsyncGenerator
from pathlib import Path

import trustme
import yaml

from e2e.faultproxy import FaultProxy
from e2e.kind.system import System
from hack.kind.settings import NODES, WORKERS
from hack.kube.client import Access

__all__ = ("between", "variables")

PKI = "/etc/kubernetes/pki"


@contextlib.asynccontextmanager
async def between(system: System) -> AsyncGenerator[FaultProxy]:
    """Runs on this machine, where the network of the nodes ends; pods reach it as long as this lasts."""
    gateway = (await system.on_node(WORKERS[0], "ip", "-4", "route", "show", "default")).split()[2]
    identity = await _identity(system, gateway)
    # Pods have addresses that this machine has no way back to.
    rule = ("POSTROUTING", "-d", f"{gateway}/32", "-j", "MASQUERADE")
    async with FaultProxy(host=gateway, upstream=_upstream(system.kubectl.kubeconfig), identity=identity) as proxy:
        try:
            for worker in WORKERS:
                await system.on_node(worker, "iptables", "-t", "nat", "-A", *rule)
            yield proxy
        finally:
            for worker in WORKERS:
                await system.on_node(worker, "iptables", "-t", "nat", "-D", *rule)


def variables(proxy: FaultProxy) -> dict[str, str]:
    """What makes a pod take the proxy for the API server."""
    host, _, port = proxy.server.removeprefix("https://").rpartition(":")
    return {"KUBERNETES_SERVICE_HOST": host, "KUBERNETES_SERVICE_PORT": port}


def _upstream(kubeconfig: Path) -> Access:
    """The API server as this machine reaches it. Requests bring their own tokens."""
    cluster = yaml.safe_load(kubeconfig.read_text())["clusters"][0]["cluster"]
    return Access(str(cluster["server"]), Path(cluster["certificate-authority"]), "")


async def _identity(system: System, host: str) -> ssl.SSLContext:
    """A server certificate by the cluster's own authority."""
    certificate, key = await asyncio.gather(*(system.on_node(NODES[0], "cat", f"{PKI}/ca.{part}") for part in ("crt", "key")))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    trustme.CA.from_pem(certificate.encode(), key.encode()).issue_cert(host).configure_cert(context)
    return context
