"""Removes what an earlier session left, also where no controller runs that would let go of it. Not how people uninstall."""

from collections.abc import Iterable

from api.registry import MODELS, crd_name
from e2e.kind.live import Kubectl, Live

__all__ = ("wipe",)

NO_FINALIZERS = '{"metadata":{"finalizers":null}}'
PART_OF = "app.kubernetes.io/part-of=grovekeeper"


async def wipe(live: Live, kubectl: Kubectl, namespaces: Iterable[str]) -> None:
    """Processes first, then finalizers, then everything else, and waits for the end."""
    await kubectl("delete", "deployments", "-A", "-l", PART_OF, "--ignore-not-found", "--cascade=foreground")
    await kubectl("delete", "crd", *map(crd_name, MODELS), "--ignore-not-found", "--wait=false")
    for model in MODELS:
        for found in await live.objects(model.KIND):
            meta = found["metadata"]
            where = ["-n", meta["namespace"]] if model.KIND.namespaced else []
            # It may be gone by now.
            await kubectl.outcome("patch", model.KIND.resource, meta["name"], *where, "--type=merge", "-p", NO_FINALIZERS)
    await kubectl("delete", "crd", *map(crd_name, MODELS), "--ignore-not-found")
    await kubectl("delete", "clusterroles,clusterrolebindings", "-l", PART_OF, "--ignore-not-found")
    await kubectl("delete", "namespace", *namespaces, "--ignore-not-found", "--wait")
