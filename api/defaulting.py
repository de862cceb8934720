"""What the mutating webhook fills into a PodCliqueSet, after the CRD's own defaults (grove.md §1.6)."""

from typing import Any

import msgspec

from api.duration import DurationError, canonical_duration
from api.grove import (
    AutoScalingConfig,
    HeadlessServiceConfig,
    PodCliqueScalingGroupConfig,
    PodCliqueSet,
    PodCliqueSetTemplate,
    PodCliqueTemplate,
)
from api.plan import Manifest
from api.recent import recent

__all__ = ("DEFAULT_TERMINATION_DELAY", "default_podcliqueset")

DEFAULT_NAMESPACE = "default"
DEFAULT_TERMINATION_DELAY = "4h0m0s"
DEFAULT_GRACE_PERIOD_S = 30


@recent(64)
def default_podcliqueset(pcs: PodCliqueSet) -> PodCliqueSet:
    """A copy with every default written out, also those of the CRD, so that it prints as the API server would store it. Idempotent."""
    metadata = pcs.metadata if pcs.metadata.namespace else msgspec.structs.replace(pcs.metadata, namespace=DEFAULT_NAMESPACE)
    update: dict[str, Any] = {"replicas": pcs.spec.replicas, "template": _template(pcs.spec.template)}
    if pcs.spec.update_strategy is not None:
        update["update_strategy"] = pcs.spec.update_strategy.model_copy(update={"type": pcs.spec.update_strategy.type})
    return pcs.model_copy(update={"metadata": metadata, "spec": pcs.spec.model_copy(update=update)})


def _template(template: PodCliqueSetTemplate) -> PodCliqueSetTemplate:
    service = template.headless_service_config or HeadlessServiceConfig()
    update: dict[str, Any] = {
        "cliques": tuple(_clique(c) for c in template.cliques),
        "clique_startup_type": template.clique_startup_type,
        "termination_delay": _termination_delay(template.termination_delay),
        "headless_service_config": service.model_copy(update={"publish_not_ready_addresses": service.publish_not_ready_addresses}),
    }
    if template.pod_clique_scaling_groups is not None:
        update["pod_clique_scaling_groups"] = tuple(_group(g) for g in template.pod_clique_scaling_groups)
    return template.model_copy(update=update)


def _clique(clique: PodCliqueTemplate) -> PodCliqueTemplate:
    """minAvailable and the lower bound of scaling follow the replicas as given, before 0 becomes 1 (grove.md §13.9)."""
    spec = clique.spec
    given = spec.replicas
    update: dict[str, Any] = {
        "role_name": spec.role_name,
        "replicas": given or 1,
        "min_available": given if spec.min_available is None else spec.min_available,
        "pod_spec": _pod_spec(spec.pod_spec),
    }
    if spec.auto_scaling_config is not None:
        update["auto_scaling_config"] = _scaling(spec.auto_scaling_config, given)
    return clique.model_copy(update={"spec": spec.model_copy(update=update)})


def _pod_spec(pod_spec: Manifest) -> Manifest:
    out = dict(pod_spec)
    if not out.get("restartPolicy"):
        out["restartPolicy"] = "Always"
    if out.get("terminationGracePeriodSeconds") is None:
        out["terminationGracePeriodSeconds"] = DEFAULT_GRACE_PERIOD_S
    return out


def _group(group: PodCliqueScalingGroupConfig) -> PodCliqueScalingGroupConfig:
    update: dict[str, Any] = {"replicas": group.replicas, "min_available": group.min_available}
    if group.scale_config is not None:
        update["scale_config"] = _scaling(group.scale_config, group.replicas)
    return group.model_copy(update=update)


def _scaling(config: AutoScalingConfig, replicas: int) -> AutoScalingConfig:
    return config if config.min_replicas is not None else config.model_copy(update={"min_replicas": replicas})


def _termination_delay(given: str | None) -> str:
    """In the form that metav1.Duration prints. What is no duration stays as it is, for validation to name it."""
    if given is None:
        return DEFAULT_TERMINATION_DELAY
    try:
        return canonical_duration(given)
    except DurationError:
        return given
