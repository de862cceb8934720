"""Features that the binder cannot honour and therefore refuses, naming them: kube-scheduler checks these only in extender mode."""

from collections.abc import Iterable

from api.core import Container, Pod
from api.plan import Why
from api.reasons import Reason
from scheduler.antiaffinity import is_host_term

__all__ = ("refusal",)


def refusal(pods: Iterable[Pod]) -> Why | None:
    """The first feature that one of the pods uses and the binder does not support."""
    for pod in pods:
        for reason, feature, found in _features(pod):
            if found:
                message = (
                    f"Pod {pod.metadata.name} uses {feature}, which the gang binder does not support. "
                    "Remove it, or run the scheduler in extender mode."
                )
                return Why(reason, message, {"feature": feature, "pod": pod.metadata.name})
    return None


def _features(pod: Pod) -> tuple[tuple[Reason, str, bool], ...]:
    spec = pod.spec
    affinity = spec.affinity
    near = affinity.pod_affinity if affinity is not None else None
    attract = near is not None and bool(near.required_during_scheduling_ignored_during_execution)
    repel = affinity.pod_anti_affinity if affinity is not None else None
    terms = repel.required_during_scheduling_ignored_during_execution if repel is not None else ()
    spread = any(c.when_unsatisfiable == "DoNotSchedule" for c in spec.topology_spread_constraints)
    volumes = any(v.persistent_volume_claim is not None or v.ephemeral is not None for v in spec.volumes)
    return (
        (Reason.VOLUME_BOUND, "a persistent volume claim", volumes),
        (Reason.CLAIM_UNALLOCATABLE, "a resource claim", bool(spec.resource_claims)),
        (Reason.CONFLICT, "a host port", _has_host_port((*spec.containers, *spec.init_containers))),
        (Reason.AFFINITY_CONFLICT, "required pod affinity", attract),
        (Reason.AFFINITY_CONFLICT, "required pod anti-affinity other than on the host name", any(not is_host_term(t) for t in terms)),
        (Reason.AFFINITY_CONFLICT, "a topology spread constraint with DoNotSchedule", spread),
    )


def _has_host_port(containers: Iterable[Container]) -> bool:
    return any(port.host_port for c in containers for port in c.ports)
