"""ClusterTopologyBindings (grove.md §1.15)."""

from collections.abc import Iterator

from api.fielderrors import FieldError, duplicate, invalid, required
from api.grove import ClusterTopologyBinding
from api.operatorconfig import GROVEKEEPER_SCHEDULER, OperatorConfiguration

__all__ = ("clustertopologybinding_errors",)

LEVELS = "spec.levels"
BINDINGS = "spec.schedulerTopologyReferences"
"""Upstream's former name of spec.schedulerTopologyBindings, which its messages still use."""
WITH_TOPOLOGIES = ("kai-scheduler",)
"""Schedulers that have topology objects of their own."""


def clustertopologybinding_errors(binding: ClusterTopologyBinding, config: OperatorConfiguration) -> Iterator[FieldError]:
    """Levels are distinct; bindings name each scheduler once, and only schedulers that are enabled and have topology objects."""
    if not binding.spec.levels:
        yield required(LEVELS, "at least one level must be given")
    domains: set[str] = set()
    keys: set[str] = set()
    for i, level in enumerate(binding.spec.levels):
        if level.domain in domains:
            yield duplicate(f"{LEVELS}[{i}].domain", level.domain)
        if level.key in keys:
            yield duplicate(f"{LEVELS}[{i}].key", level.key)
        domains.add(level.domain)
        keys.add(level.key)
    seen: set[str] = set()
    for i, entry in enumerate(binding.spec.scheduler_topology_bindings or ()):
        path = f"{BINDINGS}[{i}].schedulerName"
        if entry.scheduler_name in seen:
            yield duplicate(path, entry.scheduler_name)
        elif problem := _problem(entry.scheduler_name, config):
            yield invalid(path, entry.scheduler_name, problem)
        seen.add(entry.scheduler_name)


def _problem(scheduler: str, config: OperatorConfiguration) -> str:
    if scheduler not in config.scheduler.names:
        return "scheduler backend is not enabled in Grove"
    if scheduler == GROVEKEEPER_SCHEDULER:
        return f"{scheduler} reads ClusterTopologyBindings themselves and needs no binding; remove it"
    if scheduler not in WITH_TOPOLOGIES:
        return "scheduler backend does not implement topology-aware scheduling"
    return ""
