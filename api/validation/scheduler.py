"""The scheduler that a PodCliqueSet asks for: one for all its pods, enabled, and able to do what is asked of it (grove.md §1.7, §2.9)."""

from collections.abc import Iterator

from api.fielderrors import FieldError, invalid, required
from api.grove import PodCliqueSet
from api.objects.topology import constraints_of
from api.operatorconfig import OperatorConfiguration
from api.validation.shape import as_text

__all__ = ("backend_errors", "scheduler_errors")

PATH = "spec.template.cliques.spec.podSpec.schedulerName"
KAI = "kai-scheduler"
KAI_QUEUE = "kai.scheduler/queue"
VOLCANO = "volcano"
VOLCANO_QUEUE = "scheduling.grove.io/volcano-queue"
WITHOUT_TOPOLOGY = (VOLCANO, "lpx-scheduler")


def scheduler_errors(pcs: PodCliqueSet, config: OperatorConfiguration) -> Iterator[FieldError]:
    """All cliques name the same scheduler, and it is one of the configured profiles. No name means the default profile."""
    for i, clique in enumerate(pcs.spec.template.cliques):
        name = clique.spec.pod_spec.get("schedulerName")
        if name is not None and not isinstance(name, str):
            yield invalid(f"spec.template.cliques[{i}].spec.podSpec.schedulerName", name, "must be a string")
    names = _names(pcs, config)
    if len(names) > 1:
        yield invalid(PATH, ", ".join(names), "the schedulerName for all pods have to be the same")
    elif names and names[0] not in config.scheduler.names:
        enabled = ", ".join(config.scheduler.names)
        yield invalid(PATH, names[0], f"schedulerName must be an enabled scheduler backend; enabled are {enabled}")


def backend_errors(pcs: PodCliqueSet, config: OperatorConfiguration) -> Iterator[FieldError]:
    """What the one scheduler of the set requires. Whether a queue exists only its scheduler can tell."""
    names = _names(pcs, config)
    if len(names) != 1 or names[0] not in config.scheduler.names:
        return
    scheduler = names[0]
    if scheduler in WITHOUT_TOPOLOGY and next(constraints_of(pcs), None) is not None:
        yield invalid("spec", scheduler, f"{scheduler} does not support topologyConstraint; remove it or use another scheduler")
    if scheduler == KAI:
        queues = _queues(pcs, KAI_QUEUE, in_labels=True)
        if not queues:
            yield required("spec", f"kai-scheduler needs a queue; set the label {KAI_QUEUE} on the PodCliqueSet")
        yield from _agreement(KAI_QUEUE, queues)
    elif scheduler == VOLCANO:
        yield from _agreement(VOLCANO_QUEUE, _queues(pcs, VOLCANO_QUEUE, in_labels=False))


def _names(pcs: PodCliqueSet, config: OperatorConfiguration) -> list[str]:
    """Scheduler names in effect, each once, in order."""
    default = config.scheduler.default_profile_name
    return list(dict.fromkeys(as_text(c.spec.pod_spec.get("schedulerName")) or default for c in pcs.spec.template.cliques))


def _queues(pcs: PodCliqueSet, key: str, *, in_labels: bool) -> list[str]:
    """Queues that the set and its cliques name under `key`, each once, in order."""
    owners = [(pcs.metadata.labels, pcs.metadata.annotations), *((c.labels or {}, c.annotations or {}) for c in pcs.spec.template.cliques)]
    found = ((labels.get(key) if in_labels else None) or annotations.get(key) for labels, annotations in owners)
    return list(dict.fromkeys(queue for queue in found if queue))


def _agreement(key: str, queues: list[str]) -> Iterator[FieldError]:
    if len(queues) > 1:
        yield invalid("spec", ", ".join(queues), f"the PodCliqueSet and its cliques must name the same queue in {key}")
