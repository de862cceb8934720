"""Reads manifests as an API server with our admission would: fills a world, or says what is wrong with them."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import msgspec
from pydantic import ValidationError

from api.core import ResourceClaimTemplate
from api.defaulting import default_podcliqueset
from api.fielderrors import OMITTED, FieldError, duplicate, invalid, printable, required
from api.grove import ClusterTopologyBinding, PodCliqueSet
from api.plan import Key, Manifest
from api.validation import cel_errors, errors_from_pydantic, validate_clustertopologybinding, validate_create
from cli.world import World

__all__ = ("Checked", "read_into")

NAMELESS = "name or generateName must be set"


@dataclass(frozen=True, slots=True)
class Checked:
    """What is wrong with manifests and what is only worth a word, each with what it is about."""

    errors: Sequence[tuple[str, FieldError]]
    warnings: Sequence[tuple[str, str]]


def read_into(world: World, inputs: Iterable[tuple[str, Manifest]]) -> Checked:
    """Fills the world with manifests of files, and tells everything that an API server with our admission would refuse."""
    errors: list[tuple[str, FieldError]] = []
    warnings: list[tuple[str, str]] = []
    sets: list[PodCliqueSet] = []
    topologies: dict[str, ClusterTopologyBinding] = {}
    for file, manifest in inputs:
        subject = printable(f"{file}: {manifest['kind']} {_name(manifest)}")
        kind = (manifest["apiVersion"], manifest["kind"])
        try:
            if kind == (ClusterTopologyBinding.KIND.api_version, "ClusterTopologyBinding"):
                errors += [(subject, e) for e in _read_topology(world, manifest, topologies)]
            elif kind == (PodCliqueSet.KIND.api_version, "PodCliqueSet"):
                sets.append(default_podcliqueset(PodCliqueSet.model_validate(manifest, extra="forbid", by_alias=True, by_name=False)))
            elif kind == (ResourceClaimTemplate.KIND.api_version, "ResourceClaimTemplate"):
                errors += [(subject, e) for e in _read_claim_template(world, manifest)]
        except ValidationError as error:
            errors += [(subject, e) for e in errors_from_pydantic(error)]
    for pcs in sets:
        subject = printable(f"PodCliqueSet {Key.of(pcs)}")
        validation = validate_create(pcs, world.config, topologies)
        refused = (*cel_errors(pcs), *validation.errors)
        errors += [(subject, e) for e in refused]
        warnings += [(subject, w) for w in dict.fromkeys(validation.warnings)]
        if world.get(PodCliqueSet, *Key.of(pcs)) is not None:
            errors.append((subject, duplicate("metadata.name", pcs.metadata.name)))
        if not refused:
            world.put(pcs.to_manifest())
    return Checked(errors, warnings)


def _read_topology(world: World, manifest: Manifest, topologies: dict[str, ClusterTopologyBinding]) -> Sequence[FieldError]:
    binding = ClusterTopologyBinding.model_validate(manifest, extra="forbid", by_alias=True, by_name=False)
    if not binding.metadata.name:
        return (required("metadata.name", NAMELESS),)
    refused = validate_clustertopologybinding(binding, world.config).errors
    if not refused:
        topologies[binding.metadata.name] = binding
        world.put(manifest)
    return refused


def _read_claim_template(world: World, manifest: Manifest) -> Sequence[FieldError]:
    metadata = manifest.get("metadata")
    if not isinstance(metadata, dict) or not metadata.get("name"):  # pyright: ignore[reportUnknownMemberType]
        return (required("metadata.name", NAMELESS),)
    try:
        world.put({**manifest, "metadata": {"namespace": "default", **metadata}})
    except msgspec.ValidationError as error:
        text, _, path = str(error).partition(" - at `$.")
        return (invalid(path.rstrip("`"), OMITTED, text),)
    return ()


def _name(manifest: Manifest) -> str:
    metadata = manifest.get("metadata")
    return str(metadata.get("name", "")) if isinstance(metadata, dict) else ""  # pyright: ignore[reportUnknownMemberType, reportUnknownArgumentType]
