"""Where reflectors count what they meet."""

from typing import Protocol

__all__ = ("NoReflectorMetrics", "ReflectorMetrics")


class ReflectorMetrics(Protocol):
    """Where a reflector counts what it meets. `resource` is Kind.resource."""

    def round_ended(self, resource: str, reason: str) -> None:
        """A round ended. reason: closed, idle, network, busy, denied, missing, refused, expired, error_event, bad_line,
        long_line or verify (listed anew on purpose)."""
        ...

    def listed(self, resource: str, objects: int) -> None:
        """The store was replaced by a complete list of that many objects."""
        ...

    def skipped(self, resource: str, reason: str) -> None:
        """Something was left out. reason: undecodable, unknown_event."""
        ...


class NoReflectorMetrics:
    """Counts nothing."""

    def round_ended(self, resource: str, reason: str) -> None: ...

    def listed(self, resource: str, objects: int) -> None: ...

    def skipped(self, resource: str, reason: str) -> None: ...
