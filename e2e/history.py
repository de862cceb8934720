"""What happened to pods while a test ran, and what was left: for tests that break things in between."""

import contextlib
import http.client
import json
import re
import ssl
import threading
import time
import urllib.request
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from api import labels
from e2e.cluster import KINDS, Scene
from hack.kube.client import read_kubeconfig

__all__ = ("PodHistory", "PodLives", "normalised")

Manifest = dict[str, Any]
SPEC_KEYS = (
    "replicas",
    "minAvailable",
    "cliqueNames",
    "startsAfter",
    "podgroups",
    "topologyConstraint",
    "hostname",
    "subdomain",
    "selector",
)


class PodLives:
    """What was seen of pods, in order."""

    def __init__(self) -> None:
        self.nodes: dict[str, set[str]] = {}
        """Every node that a pod has been on, by uid."""
        self.duplicates: set[tuple[str, str]] = set()
        """(PodClique, index) that two living pods had at the same time."""
        self._living: dict[str, tuple[str, str]] = {}

    def assert_sound(self) -> None:
        """No pod was on two nodes, no two living pods of a clique had one index."""
        assert {uid: nodes for uid, nodes in self.nodes.items() if len(nodes) > 1} == {}
        assert self.duplicates == set()

    def replace(self, pods: Iterable[Manifest]) -> None:
        """These are all pods there are."""
        # What was deleted while nobody looked is not reported afterwards.
        self._living.clear()
        for pod in pods:
            self.see("ADDED", pod)

    def see(self, kind: str, pod: Manifest) -> None:
        """One event of a watch."""
        meta = pod.get("metadata", {})
        uid, tags = meta.get("uid", ""), meta.get("labels", {})
        if node := pod.get("spec", {}).get("nodeName"):
            self.nodes.setdefault(uid, set()).add(node)
        self._living.pop(uid, None)
        over = kind == "DELETED" or meta.get("deletionTimestamp") or pod.get("status", {}).get("phase") in {"Failed", "Succeeded"}
        if over or labels.POD_INDEX not in tags:
            return
        place = (tags.get(labels.PODCLIQUE, ""), tags[labels.POD_INDEX])
        if place in self._living.values():
            self.duplicates.add(place)
        self._living[uid] = place


class PodHistory(PodLives):
    """Watches the pods of a namespace in a thread of its own while entered, over restarts of the API server."""

    def __init__(self, kubeconfig: Path, namespace: str) -> None:
        super().__init__()
        self._access = read_kubeconfig(kubeconfig)
        self._url = f"{self._access.server}{KINDS['Pod'].path(namespace)}?watch=true"
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> "PodHistory":
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._ended.set()
        self._thread.join(timeout=10.0)

    def _run(self) -> None:
        while not self._ended.is_set():
            self.replace(())
            with contextlib.suppress(OSError, http.client.HTTPException, json.JSONDecodeError):
                for event in self._events():
                    self.see(event["type"], event["object"])
                    if self._ended.is_set():
                        return
            time.sleep(0.1)

    def _events(self) -> Iterator[Manifest]:
        # S310: the URL is the API server's.
        request = urllib.request.Request(self._url, headers={"Authorization": f"Bearer {self._access.token}"})  # noqa: S310
        trust = ssl.create_default_context(cafile=str(self._access.ca))
        # The time limit also ends a read in which nothing happens, and the loop goes on with a new watch.
        with urllib.request.urlopen(request, timeout=2.0, context=trust) as answer:  # noqa: S310
            for line in answer:
                yield json.loads(line)


def normalised(scene: Scene) -> dict[str, Manifest]:
    """All objects of the scene without what differs between two runs of the same: names of pods, uids, times, the namespace."""
    pods = {pod.name: f"{pod.clique}-#{pod.index}" for pod in scene.pods()}
    out: dict[str, Manifest] = {}
    for kind in ("PodCliqueSet", "PodClique", "PodCliqueScalingGroup", "PodGang", "Service", "Pod"):
        for o in scene.objects(kind):
            name = o["metadata"]["name"]
            shape: Manifest = {
                "labels": o["metadata"].get("labels", {}),
                "annotations": o["metadata"].get("annotations", {}),
                "owners": sorted(str(r["name"]) for r in o["metadata"].get("ownerReferences", ())),
                "spec": {key: o["spec"][key] for key in SPEC_KEYS if key in o["spec"]},
            }
            for pod_group in shape["spec"].get("podgroups", ()):
                references: list[Manifest] = pod_group.get("podReferences", [])
                pod_group["podReferences"] = sorted(pods.get(r["name"], "gone") for r in references)
            text = json.dumps(shape).replace(scene.namespace, "namespace")
            key = f"{kind}/{pods.get(name, name)}"
            assert key not in out, f"twice: {key}"
            out[key] = json.loads(re.sub(r'"time": "[^"]*"', '"time": ""', text))
    return out
