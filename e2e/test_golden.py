"""Live controllers make of each recorded manifest what the upstream operator made of it, and refuse what it refuses.

The recordings lie beside the checkout (GROVEKEEPER_SHARED, default ../shared). They were made with kube-scheduler in namespace `default`.
"""

import importlib.util
import json
import os
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import yaml

from api import labels
from e2e.cluster import CORE, KINDS, Pool, Scene, eventually, stays
from e2e.conftest import Kubectl
from e2e.processes import Grovekeeper
from hack.kube import ControlPlane, create_nodes, delete_nodes, uniform_nodes

pytestmark = pytest.mark.timeout(90)

SHARED = Path(os.environ.get("GROVEKEEPER_SHARED", Path(__file__).parents[2] / "shared"))
CASES = SHARED / "cases/grove"
PLURALS = "podcliquesets,podcliquescalinggroups,podcliques,podgangs,pods,services,serviceaccounts,roles,rolebindings,hpa,resourceclaims"
NAMES = sorted(p.stem for p in (CASES / "manifests").glob("*.yaml"))
GOOD = [name for name in NAMES if not name.startswith("9")]
BAD = [name for name in NAMES if name.startswith("9")]

# Where we differ from the recording on purpose: a pattern of the comparison's lines, and why.
DEFAULTED = r"spec\.minAvailable|restartPolicy|terminationGracePeriodSeconds|headlessServiceConfig|terminationDelay|minReplicas"
DIFFERENCES: dict[str, str] = {
    rf"^PodCliqueSet .*({DEFAULTED}): missing": "defaults are applied on reading: no webhook writes them into the user's object",
    r"^PodClique .*status\.scheduleGatedReplicas: missing": "upstream's count is stale: it does not watch gates going (grove.md §13.7)",
}


@pytest.fixture(scope="module")
def compare() -> ModuleType:
    """The comparison that comes with the recordings."""
    if not CASES.is_dir():
        pytest.skip(f"no recordings in {CASES}")
    spec = importlib.util.spec_from_file_location("compare_grove", CASES / "compare.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def like_recorded(compare: ModuleType, control_plane: ControlPlane, grovekeeper: Grovekeeper) -> Iterator[Grovekeeper]:
    """Controllers with the configuration of the recordings, and nodes with GPUs for kube-scheduler."""
    specs = uniform_nodes(12, gpus=8, name="gpu-{i}")
    try:
        create_nodes(control_plane.kubeconfig, specs)
        with grovekeeper.replaced(config=CASES / "config.yaml") as pair:
            yield pair
    finally:
        delete_nodes(control_plane.kubeconfig, (s.name for s in specs))


@pytest.fixture
def default(like_recorded: Grovekeeper, control_plane: ControlPlane, pool: Pool, kubectl: Kubectl) -> Iterator[Scene]:
    """Namespace `default`, empty again afterwards."""
    with control_plane.client() as client:
        here = Scene(control_plane, "default", client, kubectl, like_recorded.tails)
        yield here
        here.clear()


def actual(scene: Scene, name: str) -> list[dict[str, Any]]:
    """Everything made for a set and the set itself, pods named as in the recordings."""
    answer = scene.kubectl("get", PLURALS, "-n", scene.namespace, "-o", "json")
    objects = [o for o in json.loads(answer)["items"] if belongs(o, name)]
    names = {o["metadata"]["name"]: recorded_name(o["metadata"]["labels"]) for o in objects if o["kind"] == "Pod"}
    for o in objects:
        if o["kind"] == "Pod":
            o["metadata"]["name"] = names[o["metadata"]["name"]]
        if o["kind"] == "PodGang":
            for reference in (r for g in o["spec"]["podgroups"] for r in g.get("podReferences", ())):
                reference["name"] = names.get(reference["name"], reference["name"])
    return objects


def recorded_name(pod_labels: dict[str, str]) -> str:
    return f"{pod_labels[labels.PODCLIQUE]}-#{pod_labels[labels.POD_INDEX]}"


def belongs(o: dict[str, Any], name: str) -> bool:
    if o["kind"] == "PodCliqueSet":
        return o["metadata"]["name"] == name
    return o["metadata"].get("labels", {}).get(labels.PART_OF) == name


def plain_status(o: dict[str, Any]) -> dict[str, Any]:
    """Status of our kinds without hashes, times and wording; of others none. A gang's status is the scheduler's business."""
    status = o.get("status") or {}
    if not o["apiVersion"].startswith("grove.io/"):
        return {}
    out = {key: "*" if key.endswith("Hash") else value for key, value in status.items() if key != "updateProgress"}
    # A zero is left out by one writer and kept by the other.
    out = {key: value for key, value in out.items() if value != 0}
    shown = ("type", "status", "reason", "observedGeneration")
    out["conditions"] = sorted(({k: c[k] for k in shown if k in c} for c in status.get("conditions", ())), key=lambda c: c["type"])
    return out


def differences(compare: ModuleType, expected: Iterable[dict[str, Any]], found: Iterable[dict[str, Any]]) -> list[str]:
    """Lines of the comparison that DIFFERENCES does not explain."""

    def projected(objects: Iterable[dict[str, Any]]) -> dict[tuple[str, str], Any]:
        chosen = [o for o in objects if o["kind"] in compare.KINDS]
        return {(o["kind"], o["metadata"]["name"]): compare.project({**o, "status": plain_status(o)}, True) for o in chosen}

    a, b = projected(json.loads(json.dumps(list(expected)))), projected(json.loads(json.dumps(list(found))))
    lines = [f"missing: {key}" for key in sorted(a.keys() - b.keys())] + [f"not expected: {key}" for key in sorted(b.keys() - a.keys())]
    lines += [f"{key[0]} {key[1]}{line}" for key in sorted(a.keys() & b.keys()) for line in compare.diff(a[key], b[key])]
    return [line for line in lines if not any(re.search(pattern, line) for pattern in DIFFERENCES)]


@pytest.mark.parametrize("name", GOOD)
def test_same_objects_as_upstream(name: str, default: Scene, compare: ModuleType) -> None:
    recording = json.loads((CASES / "expected" / f"{name}.json").read_text())
    expected = [o for step in recording["objects"] for o in step]
    text = (CASES / "manifests" / f"{name}.yaml").read_text()
    root = yaml.safe_load(text)["metadata"]["name"]
    default.kubectl("apply", "--server-side", "-n", "default", "-f", "-", stdin=text)
    pods = sum(o["kind"] == "Pod" for o in expected)
    eventually(lambda: default.counts() == {"pods": pods, "placed": pods, "pending": 0, "ready": pods}, default.describe)
    seen: list[str] = []

    def equal() -> bool:
        seen[:] = differences(compare, expected, actual(default, root))
        return not seen

    eventually(equal, lambda: "\n".join([f"{len(seen)} differences", *seen[:60]]), 15.0)


@pytest.mark.parametrize("name", BAD)
def test_refused_as_upstream_does(name: str, default: Scene) -> None:
    rejected = json.loads((CASES / "expected" / f"{name}.json").read_text())["rejected"][-1]
    paths = re.findall(r"((?:spec|metadata)\.[\w.\[\]]+): ", rejected)
    assert paths
    text = (CASES / "manifests" / f"{name}.yaml").read_text()
    root = yaml.safe_load(text)["metadata"]["name"]
    if refusal := default.refusal(text):
        assert [path for path in paths if path not in refusal] == [], refusal
        return

    def condition() -> dict[str, Any]:
        return default.condition("PodCliqueSet", root, "InvalidSpec")

    eventually(lambda: condition().get("status") == "True", lambda: f"{condition()}\n{default.tails()}", 15.0)
    assert [path for path in paths if f"{path}: " not in condition()["message"]] == []
    kinds = [kind for kind in KINDS if kind not in {"Event", "PodCliqueSet"} and (kind not in CORE or kind == "Pod")]
    stays(lambda: not any(default.names(kind) for kind in kinds), lambda: str(default.left()))
    part = default.kubectl("get", PLURALS, "-n", "default", "-l", f"{labels.PART_OF}={root}", "-o", "name")
    assert part == ""
