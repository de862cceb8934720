"""The machine of a reader: which programs it has in which environment, and a checkout of its own."""

import contextlib
import os
from collections.abc import Generator
from pathlib import Path

from hack.codegen.files import ROOT
from hack.docs.registry import running_registry
from hack.docs.run import Machine, PageFailed, copy_checkout
from hack.kube.binaries import find_prepared
from hack.kube.cache import silent
from hack.kube.control_plane import ControlPlane
from hack.kube.programs import find_program

__all__ = ("reader",)

HIDDEN = ("KUBECONFIG", "VIRTUAL_ENV", "MAKEFLAGS", "MAKELEVEL", "MAKEOVERRIDES", "MFLAGS", "ARGS", "SEEDS", "PYTHONHASHSEED")
"""What the program that runs the pages may have in its environment, and a new terminal has not."""
KIND_KUBECONFIG = ROOT / ".grovekeeper/kind/kubeconfig"


@contextlib.contextmanager
def reader(folder: Path, environment: str) -> Generator[Machine]:
    """A machine with kubectl and what else `environment` promises. Raises BinariesMissing.

    All that is written lies in `folder`, but for pages of kind. A local control plane that a page leaves running is stopped in any case.
    """
    tools = folder / "tools"
    find_prepared(silent).link_into(tools)
    if environment == "cluster":
        (tools / "helm").symlink_to(find_program("helm"))
    kept = {key: value for key, value in os.environ.items() if key not in HIDDEN and not key.startswith("PYTEST_")}
    shared = os.environ.get("GROVEKEEPER_SHARED") or str(ROOT.parent / "shared")
    variables = {**kept, "PATH": f"{tools}:{os.environ['PATH']}", "GROVEKEEPER_SHARED": shared}
    if environment == "kind":
        # The cluster is one per machine and its settings name the checkout: pages use the one that the tests use.
        yield Machine(ROOT, folder / "work", variables)
        return
    checkout = folder / "grovekeeper"
    copy_checkout(checkout)
    if environment == "cluster":
        with running_registry():
            yield Machine(checkout, folder / "work", {**variables, "KUBECONFIG": str(KIND_KUBECONFIG)})
        return
    plane = ControlPlane(checkout / ".grovekeeper/kube")
    try:
        yield Machine(checkout, folder / "work", variables)
        if alive := plane.running():
            raise PageFailed(f"the page does not tell how to stop what it started: {', '.join(alive)}")
    finally:
        plane.remove()
