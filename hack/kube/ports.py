"""Free loopback ports, chosen outside the range that outgoing connections use, so that a restart finds its port free again."""

import secrets
import socket
from collections.abc import Collection, Mapping
from dataclasses import replace

from hack.kube.components import LOOPBACK, Ports
from hack.kube.process import PortInUse

__all__ = ("fill_free", "free_port", "is_free")

RANGE = range(20000, 32000)


def is_free(port: int) -> bool:
    """Whether a server could listen on the port now."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((LOOPBACK, port))
        except OSError:
            return False
    return True


def fill_free(wanted: Ports, remembered: Mapping[str, int]) -> Ports:
    """Every 0 becomes the remembered port when that is free, else a random free one; a taken explicit port raises PortInUse."""
    chosen: dict[str, int] = {}
    for name, port in wanted.items():
        if port and not is_free(port):
            raise PortInUse(f"port {port} for {name} is in use")
        if port:
            chosen[name] = port
    for name, port in wanted.items():
        if not port:
            before = remembered.get(name, 0)
            reusable = before and before not in chosen.values() and is_free(before)
            chosen[name] = before if reusable else free_port(set(chosen.values()))
    return replace(wanted, **chosen)


def free_port(taken: Collection[int] = ()) -> int:
    """A random free port that is not in `taken`."""
    for _ in range(1000):
        port = secrets.choice(RANGE)
        if port not in taken and is_free(port):
            return port
    raise PortInUse(f"no free port in {RANGE.start}-{RANGE.stop}")
