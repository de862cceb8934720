"""`grovekeeper render`: everything that the controllers would create for a PodCliqueSet, without any cluster."""

import argparse
import sys
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec
import yaml
from pydantic import ValidationError

from api.core import Pod, ResourceClaimTemplate
from api.defaulting import default_podcliqueset
from api.fielderrors import OMITTED, FieldError, duplicate, invalid, required
from api.grove import ClusterTopologyBinding, PodCliqueSet
from api.operatorconfig import OperatorConfiguration
from api.plan import Key, Manifest
from api.podgang import PodGang
from api.validation import cel_errors, errors_from_pydantic, validate_clustertopologybinding, validate_create
from cli.configuration import ConfigurationError, load_configuration
from cli.manifests import ManifestError, load
from cli.world import World

__all__ = ("add_parser", "run")

INVALID = 4
NAMELESS = "name or generateName must be set"
DEFAULTS = OperatorConfiguration.model_validate({"topologyAwareScheduling": {"enabled": True}})
"""Without a configuration: whoever renders constraints wants to see them."""


def add_parser(commands: Any) -> None:
    """Adds the command to the argument parser of `grovekeeper`."""
    parser: argparse.ArgumentParser = commands.add_parser(
        "render",
        help="print what the controllers would create, without a cluster",
        description="Prints the defaulted PodCliqueSets of the files and every object that the controllers would create for them, with all "
        "pods, as a YAML stream. ClusterTopologyBindings and ResourceClaimTemplates among the files are used; other kinds are left alone. "
        "Exit code 4: the input is invalid, the field errors are on standard error.",
    )
    parser.add_argument("-f", "--filename", action="append", required=True, metavar="FILE", help="file, folder or - ; may be repeated")
    parser.add_argument(
        "--config", metavar="FILE", help="OperatorConfiguration; without it, upstream's defaults with topology-aware scheduling"
    )
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Exit code 0, or 4 for invalid input."""
    try:
        config = load_configuration(options.config) if options.config else DEFAULTS
        inputs = list(load(options.filename))
    except (ConfigurationError, ManifestError) as error:
        sys.stderr.write(f"error: {error}\n")
        return INVALID
    world = World(config)
    errors = _read(world, inputs)
    if errors:
        sys.stderr.write("".join(f"{subject}: {error}\n" for subject, error in errors))
        return INVALID
    world.settle()
    yaml.dump_all(_output(world), sys.stdout, Dumper=_Dumper, sort_keys=False, explicit_start=True, width=1000)
    return 0


def _read(world: World, inputs: list[tuple[str, Manifest]]) -> list[tuple[str, FieldError]]:
    """Fills the world and returns (subject, error) of everything that an API server with our admission would refuse."""
    errors: list[tuple[str, FieldError]] = []
    sets: list[PodCliqueSet] = []
    topologies: dict[str, ClusterTopologyBinding] = {}
    for file, manifest in inputs:
        subject = f"{file}: {manifest['kind']} {_name(manifest)}"
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
        subject = f"PodCliqueSet {Key.of(pcs)}"
        validation = validate_create(pcs, world.config, topologies)
        refused = (*cel_errors(pcs), *validation.errors)
        errors += [(subject, e) for e in refused]
        sys.stderr.write("".join(f"Warning: {subject}: {w}\n" for w in dict.fromkeys(validation.warnings)))
        if world.get(PodCliqueSet, *Key.of(pcs)) is not None:
            errors.append((subject, duplicate("metadata.name", pcs.metadata.name)))
        if not refused:
            world.put(pcs.to_manifest())
    return errors


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


def _output(world: World) -> Iterator[Manifest]:
    """The objects in the order of their kinds, pods under names that do not depend on uids, without uids and status."""
    names = world.pod_names()
    inputs = (ClusterTopologyBinding.KIND, ResourceClaimTemplate.KIND)
    for kind in world.kinds():
        if kind in inputs:
            continue
        for manifest in world.of_kind(kind):
            out = msgspec.to_builtins({k: v for k, v in manifest.items() if k != "status"})
            meta = out["metadata"] = {k: v for k, v in out["metadata"].items() if k not in ("uid", "resourceVersion", "generation")}
            for owner in meta.get("ownerReferences", ()):
                owner.pop("uid", None)
            if kind == Pod.KIND:
                meta["name"] = names[meta["name"]]
            elif kind == PodGang.KIND:
                for group in out["spec"]["podgroups"]:
                    group["podReferences"] = [{**r, "name": names.get(r["name"], r["name"])} for r in group["podReferences"]]
            yield out


class _Dumper(yaml.SafeDumper):
    """Block style without anchors: every object can be copied out on its own."""

    def ignore_aliases(self, data: object) -> bool:
        return True

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:
        super().increase_indent(flow, indentless=False)
