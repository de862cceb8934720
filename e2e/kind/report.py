"""What a person would look at when something is wrong: nodes, pods, gangs, events, logs. For failed tests."""

import os
import subprocess

from e2e.kind.live import Kubectl
from e2e.kind.system import NAMESPACE

__all__ = ("look_around",)

LOOKS = (
    ("get", "pods", "-A", "-o", "wide"),
    ("get", "pcs,pcsg,pclq,pg", "-A", "-o", "wide"),
    ("get", "nodes"),
    ("get", "leases", "-n", NAMESPACE),
    ("get", "events", "-A", "--sort-by=.lastTimestamp", "--no-headers"),
    *(
        ("logs", "-n", NAMESPACE, "-l", f"app.kubernetes.io/component={component}", "--prefix", "--tail=25", "--ignore-errors")
        for component in ("controllers", "scheduler")
    ),
)
LINES = 60


def look_around(kubectl: Kubectl) -> str:
    """The ends of all of it, as text."""
    parts: list[str] = []
    for arguments in LOOKS:
        try:
            done = subprocess.run(
                [str(kubectl.program), "--request-timeout=10s", *arguments],
                capture_output=True,
                text=True,
                check=False,
                timeout=30,
                env={**os.environ, **kubectl.environment},
            )
            said = (done.stdout or done.stderr).rstrip()
        except subprocess.TimeoutExpired:
            said = "no answer within 30 s"
        parts.append("\n".join([f"$ kubectl {' '.join(arguments)}", *said.splitlines()[-LINES:]]))
    return "\n\n".join(parts)
