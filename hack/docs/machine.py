"""The machine of a reader: which programs it has in which environment, and a checkout of its own."""

import os
from pathlib import Path

from hack.codegen.files import ROOT
from hack.docs.run import Machine, copy_checkout
from hack.kube.binaries import find_prepared

__all__ = ("reader",)

HIDDEN = ("KUBECONFIG", "VIRTUAL_ENV", "MAKEFLAGS", "MAKELEVEL", "MFLAGS", "PYTHONHASHSEED")
"""What the program that runs the pages may have in its environment, and a new terminal has not."""
KIND_KUBECONFIG = ROOT / ".grovekeeper/kind/kubeconfig"


def reader(folder: Path, environment: str) -> Machine:
    """A machine with kubectl and what else `environment` promises; all that is written lies in `folder`. Raises BinariesMissing."""
    tools = folder / "tools"
    find_prepared(_silent).link_into(tools)
    kept = {key: value for key, value in os.environ.items() if key not in HIDDEN and not key.startswith("PYTEST_")}
    shared = os.environ.get("GROVEKEEPER_SHARED") or str(ROOT.parent / "shared")
    variables = {**kept, "PATH": f"{tools}:{os.environ['PATH']}", "GROVEKEEPER_SHARED": shared}
    if environment == "kind":
        # The cluster is one per machine and its settings name the checkout: pages use the one that the tests use.
        return Machine(ROOT, folder / "work", variables)
    checkout = folder / "grovekeeper"
    copy_checkout(checkout)
    if environment == "cluster":
        variables["KUBECONFIG"] = str(KIND_KUBECONFIG)
    return Machine(checkout, folder / "work", variables)


def _silent(line: str) -> None:
    pass
