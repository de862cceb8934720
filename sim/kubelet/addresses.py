"""Addresses of pods, one after another and none twice while it is in use, and of nodes, made from their names."""

from hashlib import sha256

__all__ = ("Addresses", "node_address")

SPACE = 1 << 24
"""10.0.0.0/8."""


class Addresses:
    """Hands out addresses in order, so that the same run gives the same ones."""

    def __init__(self) -> None:
        self._last = 256
        self._taken: set[str] = set()

    def take(self) -> str:
        """A free address; never one that ends in 0 or 255. Raises RuntimeError when all are taken."""
        for _ in range(SPACE):
            self._last = (self._last + 1) % SPACE
            address = f"10.{self._last >> 16}.{self._last >> 8 & 255}.{self._last & 255}"
            if self._last & 255 not in (0, 255) and address not in self._taken:
                self._taken.add(address)
                return address
        raise RuntimeError("no address is left for a pod")

    def release(self, address: str) -> None:
        """The address is free again; one that was never taken does not matter."""
        self._taken.discard(address)


def node_address(name: str) -> str:
    """A private address that is made from a node's name."""
    digest = sha256(name.encode()).digest()
    return f"172.{16 + digest[0] % 16}.{digest[1]}.{1 + digest[2] % 254}"
