"""All custom resource models, by what manifests call them."""

from api.custom import Resource
from api.gangplacement import GangPlacement
from api.grove import ClusterTopologyBinding, PodClique, PodCliqueScalingGroup, PodCliqueSet
from api.kinds import Kind
from api.podgang import PodGang

__all__ = ("GROVE_KINDS", "MODELS", "crd_name", "model_for")

MODELS: tuple[type[Resource], ...] = (
    PodCliqueSet,
    PodClique,
    PodCliqueScalingGroup,
    ClusterTopologyBinding,
    PodGang,
    GangPlacement,
)

GROVE_KINDS: tuple[Kind, ...] = tuple(m.KIND for m in MODELS if m.KIND.group in ("grove.io", "scheduler.grove.io"))
"""Kinds that upstream Grove defines too."""

_BY_NAME = {(m.KIND.api_version, m.KIND.kind): m for m in MODELS}


def crd_name(model: type[Resource]) -> str:
    """metadata.name of the model's CustomResourceDefinition."""
    return model.KIND.resource


def model_for(api_version: str, kind: str) -> type[Resource] | None:
    """The model of a manifest's `apiVersion` and `kind`; None for what is not a custom resource of ours."""
    return _BY_NAME.get((api_version, kind))
