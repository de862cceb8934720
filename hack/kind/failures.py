"""What can go wrong here; every text says what to do."""

__all__ = ("KindFailed", "MachineUnfit")


class KindFailed(Exception):
    """A cluster, node image or Docker daemon cannot be had or does not do its part."""


class MachineUnfit(KindFailed):
    """This machine has no Docker daemon, or withholds rights that nodes in containers need."""
