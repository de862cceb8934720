"""What this machine grants: capabilities of Linux."""

from pathlib import Path

__all__ = ("SYS_RESOURCE", "withheld_capabilities", "withheld_here")

SYS_RESOURCE = 24
"""Number of CAP_SYS_RESOURCE in linux/capability.h: without it no process may lower its OOM score."""


def withheld_capabilities(status: str, last: int) -> frozenset[int]:
    """Numbers of the capabilities up to `last` outside the bounding set, from the text of /proc/self/status."""
    bounding = next(int(line.split()[1], 16) for line in status.splitlines() if line.startswith("CapBnd:"))
    return frozenset(n for n in range(last + 1) if not bounding >> n & 1)


def withheld_here() -> frozenset[int]:
    """The same for this process; empty on a system other than Linux."""
    status, last = Path("/proc/self/status"), Path("/proc/sys/kernel/cap_last_cap")
    if not (status.exists() and last.exists()):
        return frozenset()
    return withheld_capabilities(status.read_text(), int(last.read_text()))
