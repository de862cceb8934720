"""`grovekeeper install --crds`: brings the custom resource definitions of this version into a cluster.

Everything is tried with a dry run first, so that a definition that somebody else owns stops the command before anything is written. What
the cluster has already is not written again, and what a newer version installed is left alone.
"""

import argparse
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Protocol, cast

import anyio
import msgspec
import yaml

from api.plan import Manifest
from cli.numbers import seconds
from cli.version import VERSION
from controllers.runtime.apply import Caller
from controllers.runtime.credentials import load_credentials
from controllers.runtime.errors import ApiError, Conflict, Forbidden, NotFound, TransportError
from controllers.runtime.transport import Transport

__all__ = ("CRDS", "FIELD_MANAGER", "INSTALLED_BY", "Installation", "add_parser", "install", "load_crds", "run")

REFUSED, INVALID, UNREACHABLE = 1, 4, 5

CRDS = Path(__file__).parents[1] / "manifests" / "crds"
"""The definitions that belong to this code."""
FIELD_MANAGER = "grovekeeper-install"
INSTALLED_BY = "grovekeeper.io/crd-version"
"""Annotation of a definition: the version of the program that installed it last."""
PATH = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
POLL_S = 0.25
SHOWN_FIELDS = 5

Say = Callable[[str], object]


class _Unusable(Exception):
    """The definitions beside the code cannot be read."""


class _Refused(Exception):
    """A definition cannot be installed; the text says which, why, and what to do."""


@dataclass(frozen=True, slots=True)
class Installation:
    """How to install. version: of this program. timeout_s: for all definitions to be served."""

    version: str
    mode: Literal["apply", "dry-run"] = "apply"
    conflicts: Literal["refuse", "take over"] = "refuse"
    timeout_s: float = 60.0


@dataclass(frozen=True, slots=True)
class _Step:
    """What is to be done about one definition."""

    manifest: Manifest
    verdict: Literal["created", "configured", "unchanged", "left"]
    remark: str = ""

    @property
    def name(self) -> str:
        return str(self.manifest["metadata"]["name"])


class _Commands(Protocol):
    def add_parser(self, name: str, *, help: str, description: str) -> argparse.ArgumentParser: ...


def add_parser(commands: _Commands) -> None:
    """Adds the command to the argument parser of `grovekeeper`."""
    parser = commands.add_parser(
        "install",
        help="install the custom resource definitions",
        description="Installs the custom resource definitions by server-side apply and waits until they are served. What is there already "
        "is not written again; what a newer version installed is left alone. "
        "Exit code 1: a definition is owned by somebody else or not accepted, 5: the API server cannot be reached or refuses.",
    )
    parser.add_argument("--crds", action="store_true", required=True, help="the custom resource definitions; there is nothing else")
    parser.add_argument("--dry-run", action="store_true", help="let the API server check everything and store nothing")
    force_help = "take over fields that somebody else owns, and replace the definitions of a newer version"
    parser.add_argument("--force", action="store_true", help=force_help)
    parser.add_argument(
        "--timeout", type=seconds(3600), default=60.0, metavar="SECONDS", help="for the definitions to be served (default 60)"
    )
    parser.add_argument("--kubeconfig", type=Path, help="default: $KUBECONFIG, ~/.kube/config, the pod's service account")
    parser.add_argument("--context", default="", help="context of the kubeconfig")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Exit code 0, 1 refused, 4 the definitions cannot be read, 5 unreachable."""
    try:
        crds = load_crds(CRDS)
        return anyio.run(_run, options, crds)
    except _Unusable as error:
        sys.stderr.write(f"error: {error}\n")
        return INVALID
    except Forbidden as error:
        rights = "get, create and patch customresourcedefinitions.apiextensions.k8s.io, which cluster administrators may"
        sys.stderr.write(f"error: {error}\nInstalling needs the right to {rights}.\n")
        return UNREACHABLE
    except (ApiError, TransportError) as error:
        sys.stderr.write(f"error: {error}\n")
        return UNREACHABLE


async def _run(options: argparse.Namespace, crds: Sequence[Manifest]) -> int:
    how = Installation(
        VERSION,
        "dry-run" if options.dry_run else "apply",
        "take over" if options.force else "refuse",
        options.timeout,
    )
    async with Transport(load_credentials(options.kubeconfig, options.context), user_agent="grovekeeper-install") as transport:
        problems = await install(transport, crds, how, lambda line: sys.stdout.write(f"{line}\n"))
    sys.stderr.writelines(f"error: {problem}\n" for problem in problems)
    return REFUSED if problems else 0


def load_crds(folder: Path) -> tuple[Manifest, ...]:
    """The definitions in a folder, by file name. Raises _Unusable."""
    out: list[Manifest] = []
    try:
        for path in sorted(folder.glob("*.yaml")):
            out += [m for m in yaml.load_all(path.read_text(encoding="utf-8"), yaml.CSafeLoader) if _is_crd(m)]
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise _Unusable(f"{folder}: {error}") from error
    if not out:
        raise _Unusable(f"{folder} holds no custom resource definitions; they belong beside the code of this program")
    return tuple(out)


def _is_crd(manifest: Any) -> bool:
    """The folder may hold a kustomization too."""
    return isinstance(manifest, dict) and cast("Manifest", manifest).get("kind") == "CustomResourceDefinition"


async def install(transport: Caller, crds: Sequence[Manifest], how: Installation, say: Say) -> list[str]:
    """Installs; `say` gets a line per definition. Returns what stands in the way, nothing when all went well.

    Raises ApiError and TransportError for what concerns no single definition.
    """
    steps: list[_Step] = []
    problems: list[str] = []
    for crd in crds:
        try:
            steps.append(await _try(transport, crd, how))
        except _Refused as refusal:
            problems.append(str(refusal))
    if problems:
        return [*problems, "nothing was installed"]
    for step in steps:
        if how.mode == "apply" and step.verdict in ("created", "configured"):
            try:
                await _apply(transport, step.manifest, how)
            except _Refused as refusal:
                return [str(refusal)]
        suffix = " (dry run)" if how.mode == "dry-run" else ""
        say(f"{step.name} {step.verdict}{suffix}{step.remark}")
    return await _served(transport, [step.name for step in steps], how.timeout_s) if how.mode == "apply" else []


async def _try(transport: Caller, crd: Manifest, how: Installation) -> _Step:
    """Looks at what is there, and lets the server work out what an apply would make of it."""
    name = crd["metadata"]["name"]
    live = await _read(transport, name)
    metadata = {**crd["metadata"], "annotations": {**crd["metadata"].get("annotations", {}), INSTALLED_BY: how.version}}
    crd = {**crd, "metadata": metadata}
    if live is not None:
        if live["metadata"].get("deletionTimestamp"):
            raise _Refused(f"{name} is being deleted, with all objects of its kind. Wait until it is gone, then run this again.")
        there = live["metadata"].get("annotations", {}).get(INSTALLED_BY, "")
        if how.conflicts == "refuse" and _number(there) > _number(how.version):
            return _Step(crd, "left", f": version {there} installed it, and this is {how.version}; --force goes back")
    wanted = await _apply(transport, crd, Installation(how.version, "dry-run", how.conflicts))
    if live is None:
        return _Step(crd, "created")
    return _Step(crd, "unchanged" if _content(live) == _content(wanted) else "configured")


async def _read(transport: Caller, name: str) -> Manifest | None:
    try:
        return msgspec.json.decode(await transport.call("GET", f"{PATH}/{name}"), type=Manifest)
    except NotFound:
        return None


async def _apply(transport: Caller, crd: Manifest, how: Installation) -> Manifest:
    name = crd["metadata"]["name"]
    query = {"fieldManager": FIELD_MANAGER, "force": "true" if how.conflicts == "take over" else "false"}
    if how.mode == "dry-run":
        query["dryRun"] = "All"
    try:
        answer = await transport.call(
            "PATCH", f"{PATH}/{name}", query=query, body=msgspec.json.encode(crd), content_type="application/apply-patch+yaml"
        )
    except Conflict as conflict:
        raise _Refused(_owned(name, conflict)) from conflict
    except ApiError as error:
        if error.status not in (400, 422):
            raise
        raise _Refused(f"{name} is not accepted: {error.message}") from error
    return msgspec.json.decode(answer, type=Manifest)


def _owned(name: str, conflict: Conflict) -> str:
    """Whose fields are in the way."""
    text = "\n".join((conflict.message, *(cause.message for cause in conflict.details)))
    owners = sorted(set(re.findall(r'conflicts? with "([^"]+)"', text)))
    if not owners:
        return f"{name} is not accepted: {conflict.message}"
    fields = sorted({cause.field for cause in conflict.details if cause.field})
    more = f" and {len(fields) - SHOWN_FIELDS} more" if len(fields) > SHOWN_FIELDS else ""
    return (
        f"{name} was installed by {', '.join(owners)}, which owns {', '.join(fields[:SHOWN_FIELDS]) or 'fields of it'}{more}. "
        "Upgrade it there, or take it over with --force once that installation is gone or will no longer change it."
    )


def _content(crd: Manifest) -> tuple[Any, Any, Any]:
    """What counts as a difference: who owns which field does not."""
    metadata: Mapping[str, Any] = crd["metadata"]
    return crd.get("spec"), metadata.get("labels"), metadata.get("annotations")


def _number(text: str) -> tuple[int, ...]:
    """A version as something that can be compared; what follows its numbers does not count."""
    found = re.match(r"\d+(\.\d+)*", text)
    return tuple(int(part[:9]) for part in found[0].split(".")) if found is not None else ()


async def _served(transport: Caller, names: Sequence[str], timeout_s: float) -> list[str]:
    """Waits until all are Established; returns what keeps the others from it."""
    waiting = dict.fromkeys(names, "not served yet")
    with anyio.move_on_after(timeout_s):
        while True:
            for name in tuple(waiting):
                state = _state(await _read(transport, name))
                if state is None:
                    del waiting[name]
                else:
                    waiting[name] = state
            if not waiting:
                return []
            if all(state.startswith(NOT_ACCEPTED) for state in waiting.values()):
                break  # time does not mend it
            await anyio.sleep(POLL_S)
    return [f"{name}: {state}" for name, state in waiting.items()]


NOT_ACCEPTED = "its names are not accepted"


def _state(crd: Manifest | None) -> str | None:
    """None when it is served, else what is wrong."""
    if crd is None:
        return "deleted by somebody else meanwhile"
    found = {c["type"]: c for c in crd.get("status", {}).get("conditions") or ()}
    names, established = found.get("NamesAccepted", {}), found.get("Established", {})
    if names.get("status") == "False":
        advice = "Another definition of this group uses the name: kubectl get crd; delete that one."
        return f"{NOT_ACCEPTED}: {names.get('message', '')}. {advice}"
    if established.get("status") == "True":
        return None
    return f"not served in time: {established.get('message') or 'no condition Established; does the API server work?'}"
