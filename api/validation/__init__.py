"""Admission of PodCliqueSets and ClusterTopologyBindings (grove.md §1.7, §1.8, §1.15). Pure; mistakes are values, never exceptions.

Objects have been through `api.defaulting` before. What an API server checks by itself is in `api.schemaerrors` and `cel_errors`.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from api.duration import DurationError, parse_duration
from api.fielderrors import FieldError, invalid, not_supported, required
from api.grove import ClusterTopologyBinding, PodCliqueSet
from api.limits import MAX_REPLICAS
from api.operatorconfig import OperatorConfiguration
from api.schemaerrors import errors_from_pydantic
from api.validation.cel import cel_errors
from api.validation.cliques import clique_errors
from api.validation.clustertopologybinding import clustertopologybinding_errors
from api.validation.collisions import collision_errors
from api.validation.mnnvl import mnnvl_errors, mnnvl_update_errors
from api.validation.names import metadata_errors
from api.validation.podspec import creation_errors, restart_policy_warning
from api.validation.scalinggroups import scaling_group_errors, scaling_group_warnings
from api.validation.scheduler import backend_errors, scheduler_errors
from api.validation.sharing import claim_template_errors, set_sharing_errors
from api.validation.startup import startup_errors
from api.validation.topology import topology_errors, topology_warnings
from api.validation.topologyupdate import deprecation_warnings, topology_update_errors
from api.validation.update import immutability_errors

__all__ = (
    "Topologies",
    "Validation",
    "cel_errors",
    "errors_from_pydantic",
    "validate_clustertopologybinding",
    "validate_create",
    "validate_update",
)

Topologies = Mapping[str, ClusterTopologyBinding]
"""ClusterTopologyBindings of the cluster by name."""
STARTUP_TYPES = ("CliqueStartupTypeAnyOrder", "CliqueStartupTypeInOrder", "CliqueStartupTypeExplicit")


@dataclass(frozen=True, slots=True)
class Validation:
    """errors: reasons to refuse, in the order in which they are reported. warnings: told to the user, nothing else."""

    errors: tuple[FieldError, ...] = ()
    warnings: tuple[str, ...] = ()


def validate_create(pcs: PodCliqueSet, config: OperatorConfiguration, topologies: Topologies) -> Validation:
    """A new set: topology, everything about the set itself, MNNVL, what its scheduler requires. All errors are reported."""
    creation = (
        error
        for i, clique in enumerate(pcs.spec.template.cliques)
        for error in creation_errors(f"spec.template.cliques[{i}].spec.podSpec", clique.spec.pod_spec)
    )
    errors = (
        *topology_errors(pcs, config, topologies),
        *_set_errors(pcs, config),
        *creation,
        *mnnvl_errors(pcs, enabled=config.network.auto_mnnvl_enabled),
        *backend_errors(pcs, config),
    )
    return Validation(errors, (*_warnings(pcs), *topology_warnings(pcs, topologies)))


def validate_update(old: PodCliqueSet, new: PodCliqueSet, config: OperatorConfiguration, topologies: Topologies) -> Validation:
    """A changed set. Only of one that is valid in itself it is asked what has changed."""
    errors = (*_set_errors(new, config), *mnnvl_update_errors(old, new), *backend_errors(new, config))
    errors = errors or (*immutability_errors(old, new), *topology_update_errors(old, new, config, topologies))
    return Validation(errors, (*_warnings(new), *deprecation_warnings(new)))


def validate_clustertopologybinding(binding: ClusterTopologyBinding, config: OperatorConfiguration) -> Validation:
    """A new or changed binding."""
    return Validation(tuple(clustertopologybinding_errors(binding, config)))


def _set_errors(pcs: PodCliqueSet, config: OperatorConfiguration) -> Iterator[FieldError]:
    """What holds on creation and update alike."""
    template = pcs.spec.template
    yield from metadata_errors(pcs)
    if pcs.spec.replicas < 0:
        yield invalid("spec.replicas", pcs.spec.replicas, "must be greater than or equal to 0")
    if pcs.spec.replicas > MAX_REPLICAS:
        yield invalid("spec.replicas", pcs.spec.replicas, f"must be at most {MAX_REPLICAS}")
    if template.clique_startup_type not in STARTUP_TYPES:
        yield not_supported("spec.template.cliqueStartupType", template.clique_startup_type, STARTUP_TYPES)
    yield from claim_template_errors(template)
    yield from set_sharing_errors(template)
    yield from clique_errors(pcs)
    yield from scheduler_errors(pcs, config)
    yield from startup_errors(pcs)
    yield from scaling_group_errors(pcs)
    yield from collision_errors(pcs)
    yield from _termination_delay(template.termination_delay)


def _termination_delay(delay: str | None) -> Iterator[FieldError]:
    path = "spec.template.terminationDelay"
    if delay is None:
        yield required(path, "must be set")
        return
    try:
        if parse_duration(delay) <= 0:
            yield invalid(path, delay, "terminationDelay must be greater than 0")
    except DurationError as error:
        yield invalid(path, delay, str(error))


def _warnings(pcs: PodCliqueSet) -> Iterator[str]:
    for clique in pcs.spec.template.cliques:
        yield from restart_policy_warning(clique.spec.pod_spec)
    yield from scaling_group_warnings(pcs)
    dotted = [n for n in (pcs.metadata.name, *(c.name for c in pcs.spec.template.cliques)) if "." in n]
    if dotted:
        yield f"names with dots cannot be used for Services and hostnames of pods, so that nothing will run: {', '.join(dotted)}"
