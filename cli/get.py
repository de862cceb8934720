"""`grovekeeper get`: PodCliqueSets down to their pods, with node and rack."""

import argparse
import sys
from pathlib import Path
from typing import Any

import anyio
import msgspec
from pydantic import ValidationError

from api.core import Node, Pod
from api.grove import ClusterTopologyBinding, PodClique, PodCliqueScalingGroup, PodCliqueSet
from api.labels import MANAGED_SELECTOR
from api.plan import Key
from api.podgang import PodGang
from api.schemaerrors import errors_from_pydantic
from cli.forest import Forest, lines
from controllers.runtime.advice import INSTALL
from controllers.runtime.credentials import load_credentials
from controllers.runtime.errors import ApiError, Forbidden, NotFound, TransportError
from controllers.runtime.transport import Transport

__all__ = ("add_parser", "run")

NOT_FOUND, UNREACHABLE = 1, 5

MODELS: tuple[type[Any], ...] = (PodCliqueSet, PodCliqueScalingGroup, PodClique, PodGang, Pod, Node, ClusterTopologyBinding)
CLUSTER_WIDE = (Node, ClusterTopologyBinding)
"""What only tells racks, and what users of one namespace often may not read."""


class _List(msgspec.Struct):
    items: list[msgspec.Raw] | None = None


class _Name(msgspec.Struct):
    name: str = ""
    namespace: str = ""


class _Named(msgspec.Struct):
    metadata: _Name


def add_parser(commands: Any) -> None:
    """Adds the command to the argument parser of `grovekeeper`."""
    parser: argparse.ArgumentParser = commands.add_parser(
        "get",
        help="show PodCliqueSets with their groups, cliques and pods",
        description="Prints PodCliqueSets as a forest: replicas and gangs, scaling groups, PodCliques, pods with node and rack; for a pod "
        "without a node, why. Racks are left out where nodes may not be read. "
        "Exit code 1: no PodCliqueSet of that name, 5: the API server cannot be reached or refuses.",
    )
    parser.add_argument("name", nargs="?", help="one PodCliqueSet; all without")
    parser.add_argument("-n", "--namespace", default="", help="one namespace; all without")
    parser.add_argument("--kubeconfig", type=Path, help="default: $KUBECONFIG, ~/.kube/config, the pod's service account")
    parser.add_argument("--context", default="", help="context of the kubeconfig")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Exit code 0, 1 nothing of that name, 5 unreachable."""
    try:
        forest = anyio.run(_read, options)
    except NotFound as error:
        sys.stderr.write(f"error: {error}\nThe custom resources are not installed: {INSTALL}\n")
        return UNREACHABLE
    except (ApiError, TransportError) as error:
        sys.stderr.write(f"error: {error}\n")
        return UNREACHABLE
    if not forest.sets:
        what = f"PodCliqueSet {options.name}" if options.name else "PodCliqueSet"
        where = f"in namespace {options.namespace}" if options.namespace else "in any namespace"
        sys.stderr.write(f"no {what} {where}\n")
        return NOT_FOUND if options.name else 0
    sys.stdout.writelines(f"{line}\n" for line in lines(forest))
    return 0


async def _read(options: argparse.Namespace) -> Forest:
    async with Transport(load_credentials(options.kubeconfig, options.context), user_agent="grovekeeper-cli") as transport:
        found = {model: await _list(transport, model, options.namespace) for model in MODELS}
    wanted = options.name
    return Forest(
        sets=[s for s in found[PodCliqueSet] if not wanted or s.metadata.name == wanted],
        groups=found[PodCliqueScalingGroup],
        cliques=found[PodClique],
        gangs=found[PodGang],
        pods=found[Pod],
        nodes={n.metadata.name: n for n in found[Node]} if found[Node] is not None else None,
        topologies={t.metadata.name: t for t in found[ClusterTopologyBinding] or ()},
    )


async def _list(transport: Transport, model: type[Any], namespace: str) -> Any:
    """The objects; None, and a line on standard error, for those of CLUSTER_WIDE that may not be read."""
    query = {"labelSelector": MANAGED_SELECTOR} if model is Pod else {}
    try:
        body = await transport.call("GET", model.KIND.path(namespace), query=query)
    except Forbidden as error:
        if model not in CLUSTER_WIDE:
            raise
        sys.stderr.write(f"{model.KIND.resource} may not be read, so racks may be missing: {error.message}\n")
        return None
    found = (_decoded(model, raw) for raw in msgspec.json.decode(body, type=_List).items or ())
    return [obj for obj in found if obj is not None]


def _decoded(model: type[Any], raw: msgspec.Raw) -> Any | None:
    """None, and a line on standard error, for an object that was stored before the API server validated it."""
    try:
        return model.decode(raw)
    except (ValidationError, msgspec.DecodeError) as error:
        named = msgspec.json.decode(raw, type=_Named)
        why = "; ".join(str(e) for e in errors_from_pydantic(error)) if isinstance(error, ValidationError) else str(error)
        sys.stderr.write(f"{model.KIND.kind} {Key(named.metadata.namespace, named.metadata.name)} cannot be read and is left out: {why}\n")
        return None
