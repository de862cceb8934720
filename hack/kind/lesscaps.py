"""A container runtime for dockerd: runc, but containers are not promised capabilities that this machine withholds.

A privileged container asks for every capability, and runc refuses when it cannot give one. dockerd starts this file as a program, with the
interpreter alone: nothing but the standard library is imported.
"""

import json
import os
import re
import sys
from itertools import pairwise
from pathlib import Path
from typing import Any

RUNC = "/usr/sbin/runc"
NAMES = re.findall(
    r"\w+",
    """
    CHOWN DAC_OVERRIDE DAC_READ_SEARCH FOWNER FSETID KILL SETGID SETUID SETPCAP LINUX_IMMUTABLE NET_BIND_SERVICE NET_BROADCAST NET_ADMIN
    NET_RAW IPC_LOCK IPC_OWNER SYS_MODULE SYS_RAWIO SYS_CHROOT SYS_PTRACE SYS_PACCT SYS_ADMIN SYS_BOOT SYS_NICE SYS_RESOURCE SYS_TIME
    SYS_TTY_CONFIG MKNOD LEASE AUDIT_WRITE AUDIT_CONTROL SETFCAP MAC_OVERRIDE MAC_ADMIN SYSLOG WAKE_ALARM BLOCK_SUSPEND AUDIT_READ PERFMON
    BPF CHECKPOINT_RESTORE
    """,
)
"""By number, linux/capability.h."""


def granted(status: str) -> frozenset[str]:
    """Names of the bounding set in the text of /proc/self/status."""
    bounding = next(int(line.split()[1], 16) for line in status.splitlines() if line.startswith("CapBnd:"))
    return frozenset(f"CAP_{name}" for number, name in enumerate(NAMES) if bounding >> number & 1)


def reduce(process: dict[str, Any], allowed: frozenset[str]) -> dict[str, Any]:
    """A process of the runtime specification with no capabilities but the allowed."""
    capabilities: dict[str, list[str]] = process.get("capabilities") or {}
    if not capabilities:
        return process
    return {**process, "capabilities": {kind: [c for c in names if c in allowed] for kind, names in capabilities.items()}}


def rewritten(arguments: list[str]) -> dict[Path, bool]:
    """Files named by the arguments of runc, and whether each is a whole bundle configuration (else a single process)."""
    files: dict[Path, bool] = {}
    split = [part for argument in arguments for part in argument.split("=", 1)]
    for option, value in pairwise(split):
        if option in ("--bundle", "-b"):
            files[Path(value) / "config.json"] = True
        elif option in ("--process", "-p"):
            files[Path(value)] = False
    return files


def main() -> None:
    """Rewrite, then become runc."""
    allowed = granted(Path("/proc/self/status").read_text())
    for file, is_bundle in rewritten(sys.argv[1:]).items():
        if file.is_file():
            content = json.loads(file.read_text())
            less = {**content, "process": reduce(content.get("process") or {}, allowed)} if is_bundle else reduce(content, allowed)
            file.write_text(json.dumps(less))
    os.execv(RUNC, [RUNC, *sys.argv[1:]])  # noqa: S606 - no shell is wanted


if __name__ == "__main__":
    main()
