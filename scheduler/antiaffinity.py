"""Required pod anti-affinity on the host name, the one kind of inter-pod rule that the planner handles itself."""

from api.core import Pod, PodAffinityTerm
from scheduler.model import AntiTerm

__all__ = ("HOSTNAME", "host_terms", "is_host_term")

HOSTNAME = "kubernetes.io/hostname"


def is_host_term(term: PodAffinityTerm) -> bool:
    """True for a rule about single nodes whose namespaces are listed or the pod's own, and whose selector is plain."""
    plain = term.namespace_selector is None and not term.match_label_keys and not term.mismatch_label_keys
    return term.topology_key == HOSTNAME and plain and term.label_selector is not None


def host_terms(pod: Pod) -> tuple[AntiTerm, ...]:
    """The rules of a pod that `is_host_term` accepts."""
    affinity = pod.spec.affinity.pod_anti_affinity if pod.spec.affinity is not None else None
    if affinity is None:
        return ()
    return tuple(
        AntiTerm(term.namespaces or (pod.metadata.namespace,), term.label_selector)
        for term in affinity.required_during_scheduling_ignored_during_execution
        if is_host_term(term) and term.label_selector is not None
    )
