"""Small PodCliqueSets and a world in memory for tests of observations and plans."""

from typing import Any

from api.defaulting import default_podcliqueset
from api.grove import PodCliqueSet
from api.operatorconfig import OperatorConfiguration
from api.plan import Manifest
from cli.world import World

POD_SPEC: Manifest = {"containers": [{"name": "engine", "image": "registry.local/engine:1"}]}


def clique(name: str, replicas: int = 1, **spec: Any) -> Manifest:
    """A clique template."""
    return {"name": name, "spec": {"roleName": name, "replicas": replicas, "podSpec": POD_SPEC, **spec}}


def podcliqueset(*cliques: Manifest, name: str = "chat", replicas: int = 1, **template: Any) -> Manifest:
    """A PodCliqueSet manifest with defaults written out."""
    manifest = {
        "apiVersion": "grove.io/v1alpha1",
        "kind": "PodCliqueSet",
        "metadata": {"name": name, "namespace": "serving"},
        "spec": {"replicas": replicas, "template": {"cliques": list(cliques), **template}},
    }
    return default_podcliqueset(PodCliqueSet.model_validate(manifest)).to_manifest()


def settled(*manifests: Manifest, config: OperatorConfiguration | None = None) -> World:
    """A world with these objects in which every controller has run until nothing changed."""
    world = World(config or OperatorConfiguration())
    for manifest in manifests:
        world.put(manifest)
    world.settle()
    return world
