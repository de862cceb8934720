"""Life of a PodCliqueSet on a real API server: what kubectl shows, scaling at three levels, status, deletion."""

import json
from typing import Any

import pytest

from api import labels
from e2e.cluster import KINDS, Pool, Scene, eventually, stays
from e2e.conftest import POOL_SIZE
from e2e.workloads import wl2

pytestmark = pytest.mark.timeout(90)

GROUP = "workload2-0-sg-x"
# Everything that CascadeDelete looks for (grove.md §9.8), by part-of label.
CASCADE = "pcsg,pclq,pg,pods,services,serviceaccounts,roles,rolebindings,secrets,hpa,gpl"


def columns(scene: Scene, what: str) -> dict[str, dict[str, str]]:
    """kubectl get, wide: name → column → value."""
    lines = scene.kubectl("get", "-n", scene.namespace, what, "-o", "wide").splitlines()
    heads = lines[0].split()
    starts = [lines[0].index(f"{head} ") if i + 1 < len(heads) else lines[0].rindex(head) for i, head in enumerate(heads)]
    ends = [*starts[1:], None]
    rows = [{head: line[a:b].strip() for head, a, b in zip(heads, starts, ends, strict=True)} for line in lines[1:]]
    return {row["NAME"]: row for row in rows}


def status(scene: Scene, kind: str, name: str) -> dict[str, Any]:
    return scene.object(kind, name).get("status", {})


def conditions(scene: Scene, kind: str, name: str) -> dict[str, tuple[str, str]]:
    return {c["type"]: (c["status"], c["reason"]) for c in status(scene, kind, name).get("conditions", ())}


def indices(scene: Scene, kind: str, label: str) -> set[int]:
    """Values of an index label over live objects of a kind."""
    live = (o["metadata"] for o in scene.objects(kind) if not o["metadata"].get("deletionTimestamp"))
    return {int(m["labels"][label]) for m in live if label in m["labels"]}


def wait_conditions(scene: Scene, kind: str, name: str, wanted: dict[str, tuple[str, str]]) -> None:
    """Wait for exactly these conditions."""
    eventually(lambda: conditions(scene, kind, name) == wanted, lambda: f"{name}: {status(scene, kind, name)}\n{scene.tails()}")


def wait_true(scene: Scene, gang: str, kind: str) -> None:
    """Wait for a condition of a gang."""
    eventually(lambda: scene.condition("PodGang", gang, kind).get("status") == "True", lambda: str(status(scene, "PodGang", gang)))


@pytest.fixture
def running(scene: Scene, pool: Pool) -> Scene:
    """WL2 with ten Ready pods."""
    pool.open(POOL_SIZE)
    scene.apply(wl2())
    scene.wait_counts(10, 0)
    return scene


def wait_columns(scene: Scene, what: str, name: str, wanted: dict[str, str]) -> None:
    def seen() -> dict[str, str]:
        row = columns(scene, what).get(name, {})
        return {key: row.get(key, "no such column") for key in wanted}

    eventually(lambda: seen() == wanted, lambda: f"kubectl get {what}: {name} has {seen()}, wanted {wanted}\n{scene.tails()}", 15.0)


def test_columns(running: Scene) -> None:
    wait_columns(running, "pcs", "workload2", {"REPLICAS": "1", "AVAILABLE": "1", "UPDATED": "1"})
    wanted = {"MINAVAIL": "1", "REPLICAS": "2", "AVAILABLE": "2", "SCHEDULED": "2", "UPDATED": "2", "MINBREACHED": "False"}
    wait_columns(running, "pcsg", GROUP, wanted)
    wanted = {"MINAVAIL": "1", "REPLICAS": "3", "READY": "3", "SCHEDULED": "3", "UPDATED": "3", "GATED": "0", "MINBREACHED": "False"}
    for name in (f"{GROUP}-0-pc-c", f"{GROUP}-1-pc-c"):
        wait_columns(running, "pclq", name, wanted)
    wait_columns(running, "pg", "workload2-0", {"PHASE": "Running"})
    assert columns(running, "pg").keys() == {"workload2-0", f"{GROUP}-0"}


def test_status_and_conditions(running: Scene) -> None:
    def settled() -> bool:
        seen = status(running, "PodCliqueSet", "workload2")
        return seen.get("availableReplicas") == seen.get("updatedReplicas") == seen.get("observedGeneration") == 1

    eventually(settled, lambda: f"{status(running, 'PodCliqueSet', 'workload2')}\n{running.tails()}")
    top = status(running, "PodCliqueSet", "workload2")
    assert top["hpaPodSelector"] == "app.kubernetes.io/managed-by=grove-operator,app.kubernetes.io/part-of=workload2"
    assert top.get("lastErrors", []) == []
    clique = {"MinAvailableBreached": ("False", "SufficientReadyPods"), "PodCliqueScheduled": ("True", "SufficientScheduledPods")}
    for name in ("workload2-0-pc-a", f"{GROUP}-0-pc-b", f"{GROUP}-1-pc-c"):
        wait_conditions(running, "PodClique", name, clique)
    group = {"MinAvailableBreached": ("False", "SufficientAvailablePodCliqueScalingGroupReplicas")}
    wait_conditions(running, "PodCliqueScalingGroup", GROUP, group)
    for name in ("workload2-0", f"{GROUP}-0"):
        for kind in ("Initialized", "Scheduled", "Ready"):
            wait_true(running, name, kind)


def test_nothing_changes_when_nothing_changes(running: Scene) -> None:
    def versions() -> dict[str, str]:
        kinds = (kind for kind in KINDS if kind != "Event")
        return {f"{kind}/{o['metadata']['name']}": o["metadata"]["resourceVersion"] for kind in kinds for o in running.objects(kind)}

    seen: list[dict[str, str]] = [{}]

    def quiet() -> bool:
        before, seen[0] = seen[0], versions()
        return before == seen[0]

    eventually(quiet, "objects keep changing")
    still = versions()
    stays(lambda: versions() == still, lambda: f"written: {dict(versions().items() - still.items())}", 5.0)


def test_scale_the_set(running: Scene) -> None:
    running.scale("pcs/workload2", 2)
    running.wait_counts(20, 0)
    keep = {pod.uid for pod in running.pods() if pod.labels[labels.PCS_REPLICA_INDEX] == "0"}
    running.scale("pcs/workload2", 1)
    running.wait_counts(10, 0)
    assert {pod.uid for pod in running.pods()} == keep
    for kind in ("PodClique", "PodCliqueScalingGroup"):
        eventually(lambda kind=kind: indices(running, kind, labels.PCS_REPLICA_INDEX) == {0}, f"{kind} of replica 1 stay")
    assert running.names("PodGang") == {"workload2-0", f"{GROUP}-0"}
    wait_columns(running, "pcs", "workload2", {"REPLICAS": "1", "AVAILABLE": "1"})


def test_scale_a_scaling_group(running: Scene) -> None:
    running.scale(f"pcsg/{GROUP}", 4)
    running.wait_counts(18, 0)
    assert indices(running, "PodClique", labels.PCSG_REPLICA_INDEX) == {0, 1, 2, 3}
    assert running.names("PodGang") == {"workload2-0", *(f"{GROUP}-{k}" for k in range(3))}
    keep = {pod.uid for pod in running.pods() if pod.labels.get(labels.PCSG_REPLICA_INDEX, "0") in {"0", "1"}}
    running.scale(f"pcsg/{GROUP}", 2)
    running.wait_counts(10, 0)
    assert {pod.uid for pod in running.pods()} == keep
    assert indices(running, "PodClique", labels.PCSG_REPLICA_INDEX) == {0, 1}
    assert running.names("PodGang") == {"workload2-0", f"{GROUP}-0"}


def test_scale_a_clique(running: Scene) -> None:
    name = "workload2-0-pc-a"
    keep = {pod.uid for pod in running.pods() if pod.clique == name}
    # Among pods that are otherwise equal the younger ones go, and creation times have a resolution of one second.
    newest = max(pod.object["metadata"]["creationTimestamp"] for pod in running.pods())
    eventually(lambda: server_time(running) > newest, "the clock of the API server stands")
    running.scale(f"pclq/{name}", 4)
    running.wait_counts(12, 0)
    assert sorted(pod.index for pod in running.pods() if pod.clique == name) == [0, 1, 2, 3]
    running.scale(f"pclq/{name}", 2)
    running.wait_counts(10, 0)
    assert {pod.uid for pod in running.pods() if pod.clique == name} == keep
    assert sorted(pod.index for pod in running.pods() if pod.clique == name) == [0, 1]
    gang = running.object("PodGang", "workload2-0")["spec"]["podgroups"][0]
    assert (gang["name"], gang["minReplicas"], len(gang["podReferences"])) == (name, 1, 2)


def server_time(scene: Scene) -> str:
    """Second of the API server's clock, as creation times have it."""
    path = KINDS["Event"].path(scene.namespace)
    event = {"metadata": {"generateName": "clock-"}, "involvedObject": {"namespace": scene.namespace}}
    return scene.client.request("POST", path, event)["metadata"]["creationTimestamp"]


def test_deleted_pod_comes_back_under_its_index(running: Scene) -> None:
    victim = next(pod for pod in running.pods() if pod.clique == f"{GROUP}-0-pc-c" and pod.index == 1)
    running.kubectl("delete", "pod", victim.name, "-n", running.namespace)
    eventually(lambda: running.counts()["ready"] == 10, running.describe)
    again = [pod for pod in running.pods() if pod.clique == victim.clique]
    assert sorted(pod.index for pod in again) == [0, 1, 2]
    assert victim.uid not in {pod.uid for pod in again}
    references = next(g for g in running.object("PodGang", "workload2-0")["spec"]["podgroups"] if g["name"] == victim.clique)
    assert sorted(r["name"] for r in references["podReferences"]) == sorted(pod.name for pod in again)


def test_scale_to_zero_and_back(running: Scene) -> None:
    running.scale("pcs/workload2", 0)
    running.wait_counts(0, 0)
    eventually(lambda: not running.names("PodGang") | running.names("PodClique"), lambda: str(running.left()))
    running.scale("pcs/workload2", 1)
    running.wait_counts(10, 0)


def test_delete_leaves_nothing(running: Scene) -> None:
    running.kubectl("delete", "pcs", "workload2", "-n", running.namespace, "--timeout=60s")

    def left() -> list[str]:
        answer = running.kubectl("get", CASCADE, "-n", running.namespace, "-l", f"{labels.PART_OF}=workload2", "-o", "json")
        return [f"{o['kind']}/{o['metadata']['name']}" for o in json.loads(answer)["items"]]

    eventually(lambda: left() == [], lambda: str(left()), 60.0)
    assert running.left() == []
