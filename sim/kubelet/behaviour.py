"""How a simulated pod behaves: defaults of the cluster, overridden by annotations of the pod.

| annotation `sim.grovekeeper.io/…` | meaning |
|---|---|
| `pull-delay` | until the image of each container is there |
| `start-delay` | from then until a container runs |
| `ready-delay` | from running until a container is ready |
| `init-delay` | how long each ordinary init container runs |
| `stop-delay` | how long stopping takes; cut off by the grace period |
| `run-time` | a container ends after that; for ever without |
| `exit-code` | what it ends with (0; with `crash` 1) |
| `crash` | how often it ends with the exit code before it stays up, or `always`; after `run-time`, 1s without |
| `pull-error` | how many pulls fail, or `always` |
| `container` | the one container that run-time, exit-code, crash and pull-error are about; all app containers without |

Delays are durations or distributions: see distributions.py.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from sim.kubelet.distributions import ZERO, Delay, parse_delay

__all__ = ("ALWAYS", "PREFIX", "Behaviour", "BehaviourError", "behaviour_of")

PREFIX = "sim.grovekeeper.io/"
ALWAYS = 1 << 31
CRASH_AFTER = Delay("constant", (1.0,))


class BehaviourError(ValueError):
    """An annotation cannot be used; the text names it."""


@dataclass(frozen=True, slots=True)
class Behaviour:
    """See the module. `run_time` None: for ever. `exit_code` None: 0, or 1 for a crash. `crashes`, `pull_errors`: how many at first."""

    pull: Delay = ZERO
    start: Delay = ZERO
    ready: Delay = ZERO
    init: Delay = ZERO
    stop: Delay = ZERO
    run_time: Delay | None = None
    exit_code: int | None = None
    crashes: int = 0
    pull_errors: int = 0
    container: str = ""

    def is_about(self, container: str, is_init: bool) -> bool:
        """Whether run time, exit code, crashes and pull errors are those of this container."""
        return self.container == container if self.container else not is_init


def behaviour_of(annotations: Mapping[str, str] | None, defaults: Behaviour) -> Behaviour:
    """The behaviour of a pod with these annotations. Raises BehaviourError."""
    own = tuple(item for item in (annotations or {}).items() if item[0].startswith(PREFIX))
    return _overridden(tuple(sorted(own)), defaults) if own else defaults


@lru_cache(maxsize=1024)
def _overridden(annotations: tuple[tuple[str, str], ...], defaults: Behaviour) -> Behaviour:
    changes: dict[str, Any] = {}
    for key, text in annotations:
        found = FIELDS.get(key.removeprefix(PREFIX))
        if found is None:
            raise BehaviourError(f"annotation {key} is unknown; known are: {', '.join(FIELDS)}")
        name, parse = found
        try:
            changes[name] = parse(text)
        except ValueError as error:
            raise BehaviourError(f"annotation {key}: {error}") from error
    out = replace(defaults, **changes)
    return replace(out, run_time=CRASH_AFTER) if out.crashes and out.run_time is None else out


def _count(text: str) -> int:
    if text == "always":
        return ALWAYS
    if not (text.isascii() and text.isdigit()) or int(text) > ALWAYS:
        raise ValueError(f"{text!r} is neither a whole number nor always")
    return int(text)


def _exit_code(text: str) -> int:
    if not (text.isascii() and text.isdigit() and int(text) <= 255):
        raise ValueError(f"{text!r} is not a number from 0 to 255")
    return int(text)


FIELDS: Mapping[str, tuple[str, Callable[[str], Any]]] = {
    "pull-delay": ("pull", parse_delay),
    "start-delay": ("start", parse_delay),
    "ready-delay": ("ready", parse_delay),
    "init-delay": ("init", parse_delay),
    "stop-delay": ("stop", parse_delay),
    "run-time": ("run_time", parse_delay),
    "exit-code": ("exit_code", _exit_code),
    "crash": ("crashes", _count),
    "pull-error": ("pull_errors", _count),
    "container": ("container", str),
}
