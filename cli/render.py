"""`grovekeeper render`: everything that the controllers would create for a PodCliqueSet, without any cluster."""

import argparse
import sys
from collections.abc import Iterator
from typing import Any

import msgspec
import yaml

from api.core import Pod, ResourceClaimTemplate
from api.grove import ClusterTopologyBinding
from api.operatorconfig import OperatorConfiguration
from api.plan import Manifest
from api.podgang import PodGang
from cli.checking import read_into
from cli.configuration import ConfigurationError, load_configuration
from cli.manifests import ManifestError, load
from cli.world import World

__all__ = ("add_parser", "run")

INVALID = 4
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
    checked = read_into(world, inputs)
    sys.stderr.write("".join(f"Warning: {subject}: {warning}\n" for subject, warning in checked.warnings))
    if checked.errors:
        sys.stderr.write("".join(f"{subject}: {error}\n" for subject, error in checked.errors))
        return INVALID
    world.settle()
    yaml.dump_all(_output(world), sys.stdout, Dumper=_Dumper, sort_keys=False, explicit_start=True, width=1000)
    return 0


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
