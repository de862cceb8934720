"""Short forms of PodCliqueSets, bindings and configurations for tests of admission."""

from collections.abc import Sequence
from typing import Any

from api.defaulting import default_podcliqueset
from api.grove import ClusterTopologyBinding, PodCliqueSet
from api.operatorconfig import OperatorConfiguration
from api.validation import Validation, validate_create, validate_update

CONTAINER = {"name": "engine", "image": "registry.local/engine:1"}
LEVELS = (
    ("zone", "kubernetes.io/zone"),
    ("block", "kubernetes.io/block"),
    ("rack", "kubernetes.io/rack"),
    ("host", "kubernetes.io/hostname"),
)


def config(*profiles: str, default: str = "default-scheduler", topology: bool = True, mnnvl: bool = False) -> OperatorConfiguration:
    """Profiles besides default-scheduler."""
    return OperatorConfiguration.model_validate(
        {
            "scheduler": {"profiles": [{"name": name} for name in profiles], "defaultProfileName": default},
            "topologyAwareScheduling": {"enabled": topology},
            "network": {"autoMNNVLEnabled": mnnvl},
        }
    )


CONFIG = config("kai-scheduler")


def binding(name: str = "grove-topology", levels: Sequence[tuple[str, str]] = LEVELS, **spec: Any) -> ClusterTopologyBinding:
    manifest = {"metadata": {"name": name}, "spec": {"levels": [{"domain": d, "key": k} for d, k in levels], **spec}}
    return ClusterTopologyBinding.model_validate(manifest)


TOPOLOGIES = {"grove-topology": binding()}


def clique(name: str, *, pod: dict[str, Any] | None = None, spec: dict[str, Any] | None = None, **template: Any) -> dict[str, Any]:
    """A clique template: `pod` goes into its podSpec, `spec` into its spec, the rest beside it."""
    return {
        "name": name,
        "spec": {"roleName": name, "replicas": 2, "podSpec": {"containers": [CONTAINER], **(pod or {})}, **(spec or {})},
        **template,
    }


def group(name: str, *members: str, **fields: Any) -> dict[str, Any]:
    return {"name": name, "cliqueNames": list(members), **fields}


def pcs(
    *cliques: dict[str, Any], name: str = "chat", metadata: dict[str, Any] | None = None, replicas: int = 1, **template: Any
) -> PodCliqueSet:
    """A set with defaults; without cliques it has one called `worker`."""
    manifest = {
        "metadata": {"name": name, **(metadata or {})},
        "spec": {"replicas": replicas, "template": {"cliques": list(cliques) or [clique("worker")], **template}},
    }
    return default_podcliqueset(PodCliqueSet.model_validate(manifest, extra="forbid"))


def texts(validation: Validation) -> list[str]:
    return [str(error) for error in validation.errors]


def created(subject: PodCliqueSet, settings: OperatorConfiguration = CONFIG) -> list[str]:
    """Errors on creation, as text."""
    return texts(validate_create(subject, settings, TOPOLOGIES))


def updated(old: PodCliqueSet, new: PodCliqueSet, settings: OperatorConfiguration = CONFIG) -> list[str]:
    """Errors on update, as text."""
    return texts(validate_update(old, new, settings, TOPOLOGIES))


def paths(errors: list[str]) -> list[str]:
    """What is before the first colon and space of each error."""
    return [error.split(": ", 1)[0] for error in errors]


def kinds(errors: list[str]) -> list[tuple[str, str]]:
    """(path, kind) of each error."""
    return [(parts[0], parts[1]) for parts in (error.split(": ", 2) for error in errors)]
