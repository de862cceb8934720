"""Bad input gets a clear answer, by the API server or as a condition, and a healthy PodCliqueSet beside it is not disturbed."""

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from api.grove import PodCliqueSet
from api.registry import crd_name
from e2e.cluster import KINDS, Pool, Scene, eventually, stays
from e2e.conftest import POOL_SIZE
from e2e.processes import Grovekeeper
from e2e.workloads import TOPOLOGY, clique, group, pack, pcs
from hack.codegen.crd import crd

pytestmark = pytest.mark.timeout(90)

Manifest = dict[str, Any]
CRD = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/" + crd_name(PodCliqueSet)


@pytest.fixture
def place(scene: Scene, pool: Pool) -> Scene:
    """A scene with room."""
    pool.open(POOL_SIZE)
    return scene


def healthy(name: str = "healthy") -> Manifest:
    return pcs(name, (clique("worker", 2, memory="20Mi"),))


def assert_healthy_works(scene: Scene) -> None:
    """A set made now becomes Ready in a few seconds."""
    scene.apply(healthy())
    ready = lambda: sum(pod.ready for pod in scene.pods() if pod.gang == "healthy-0")  # noqa: E731
    eventually(lambda: ready() == 2, scene.describe)


def invalid_spec(scene: Scene, name: str) -> str:
    """Message of the condition InvalidSpec, "" while it is not True."""
    condition = scene.condition("PodCliqueSet", name, "InvalidSpec")
    return condition["message"] if condition.get("status") == "True" else ""


def assert_refused(scene: Scene, manifest: Manifest, *words: str) -> None:
    """The API server or a condition names every word (the field's path, the reason); nothing is made of the set."""
    name = manifest["metadata"]["name"]
    answer = scene.refusal(json.dumps(manifest))
    if not answer:
        eventually(lambda: invalid_spec(scene, name) != "", lambda: f"{scene.object('PodCliqueSet', name)}\n{scene.tails()}", 15.0)
        answer = invalid_spec(scene, name)
        stays(lambda: scene.left() == [f"PodCliqueSet/{name}"], lambda: str(scene.left()))
    assert [word for word in words if word not in answer] == [], answer
    assert_healthy_works(scene)


def altered(change: Callable[[Manifest], object], name: str = "bad") -> Manifest:
    """A healthy set with one change of its template."""
    out = json.loads(json.dumps(healthy(name)))
    change(out["spec"]["template"])
    return out


UNKNOWN = [
    (lambda t: t.update(cliqes=[]), "spec.template.cliqes"),
    (lambda t: t["cliques"][0].update(label={}), "spec.template.cliques[0].label"),
    (lambda t: t["cliques"][0]["spec"].update(minAvailble=1), "spec.template.cliques[0].spec.minAvailble"),
    (lambda t: t["cliques"][0]["spec"]["podSpec"].update(nodeSelectors={}), "spec.template.cliques[0].spec.podSpec.nodeSelectors"),
]


@pytest.mark.parametrize(("change", "path"), UNKNOWN, ids=["template", "clique", "clique spec", "pod spec"])
def test_unknown_fields_are_named(place: Scene, change: Callable[[Manifest], object], path: str) -> None:
    with pytest.raises(AssertionError) as refused:
        place.kubectl("create", "-n", place.namespace, "--validate=strict", "-f", "-", stdin=json.dumps(altered(change)))
    assert f'unknown field "{path}"' in str(refused.value)
    assert place.names("PodCliqueSet") == set()


TYPES = [
    (lambda t: t["cliques"][0]["spec"].update(replicas="three"), "spec.template.cliques[0].spec.replicas"),
    (lambda t: t.update(cliques={"worker": 1}), "spec.template.cliques"),
    (lambda t: t["cliques"][0]["spec"]["podSpec"].update(containers="main"), "spec.template.cliques[0].spec.podSpec.containers"),
    (lambda t: t.update(cliqueStartupType="Sometimes"), "spec.template.cliqueStartupType"),
    (lambda t: t.update(terminationDelay="soon"), "spec.template.terminationDelay"),
    (lambda t: t["cliques"][0]["spec"]["podSpec"]["containers"][0]["resources"]["requests"].update(memory="much"), "memory"),
]


@pytest.mark.parametrize(("change", "path"), TYPES, ids=["number", "list", "inner list", "choice", "duration", "quantity"])
def test_wrong_types_are_named(place: Scene, change: Callable[[Manifest], object], path: str) -> None:
    assert_refused(place, altered(change), path)


def test_names_that_are_too_long(place: Scene) -> None:
    manifest = pcs("a-set-with-a-rather-long-name", (clique("and-a-clique-with-another-one", 1),))
    assert_refused(place, manifest, "spec.template.cliques[0].name", "metadata.name", "45")


def test_duplicate_cliques(place: Scene) -> None:
    assert_refused(place, pcs("bad", (clique("a", 1), clique("a", 1))), "spec.template.cliques", "uplicate")


def test_more_available_than_replicas(place: Scene) -> None:
    assert_refused(place, pcs("bad", (clique("a", 1, 2),)), "spec.template.cliques[0].spec.minAvailable")


def test_more_available_than_replicas_of_a_group(place: Scene) -> None:
    manifest = pcs("bad", (clique("a", 1),), (group("g", ("a",), 1, 2),))
    assert_refused(place, manifest, "spec.template.podCliqueScalingGroups[0].minAvailable")


def test_unknown_topology_domain(place: Scene) -> None:
    manifest = pcs("bad", (clique("a", 1),), constraint=pack("shelf", topology=TOPOLOGY))
    assert_refused(place, manifest, "spec.template.topologyConstraint.pack.required", "shelf")


def test_unknown_topology(place: Scene) -> None:
    manifest = pcs("bad", (clique("a", 1),), constraint=pack("rack", topology="nowhere"))
    assert_refused(place, manifest, "spec.template.topologyConstraint.topologyName", "nowhere")


def test_repaired_set_comes_up(place: Scene) -> None:
    assert_refused(place, pcs("bad", (clique("a", 1, 2, memory="20Mi"),)), "minAvailable")
    place.apply(pcs("bad", (clique("a", 2, 2, memory="20Mi"),)))
    eventually(lambda: sum(pod.ready for pod in place.pods() if pod.gang == "bad-0") == 2, place.describe, 15.0)
    eventually(lambda: invalid_spec(place, "bad") == "", lambda: str(place.object("PodCliqueSet", "bad")["status"]))


def test_malformed_yaml(place: Scene) -> None:
    with pytest.raises(AssertionError, match=r"error converting YAML to JSON|error parsing"):
        place.kubectl("create", "-n", place.namespace, "-f", "-", stdin="kind: PodCliqueSet\nspec: [unclosed\n  a: b\n")
    assert place.names("PodCliqueSet") == set()


def permissive() -> Manifest:
    """The CRD of PodCliqueSet as if nobody had written a schema."""
    out = json.loads(json.dumps(crd(PodCliqueSet)))
    for version in out["spec"]["versions"]:
        anything = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
        # The scale subresource needs its numbers.
        scale = {**anything, "properties": {"replicas": {"type": "integer"}}}
        version["schema"] = {"openAPIV3Schema": {"type": "object", "properties": {"spec": scale, "status": scale}}}
    return out


def put_crd(scene: Scene, manifest: Manifest, *, accepts: bool) -> None:
    """Replace the CRD and wait until the API server goes by it: whether it accepts what today's schema refuses."""
    live = scene.client.request("GET", CRD)
    scene.client.request("PUT", CRD, {**manifest, "metadata": live["metadata"]})
    path = KINDS["PodCliqueSet"].path(scene.namespace) + "?dryRun=All"
    probe = {"apiVersion": "grove.io/v1alpha1", "kind": "PodCliqueSet", "metadata": {"name": "probe"}, "spec": {"template": 1}}
    eventually(lambda: (scene.client.raw("POST", path, probe)[0] < 400) == accepts, "the API server keeps the old schema")


OLD = {
    "cliques are a text": ({"replicas": 1, "template": {"cliques": "worker"}}, "spec.template.cliques"),
    "no template": ({"replicas": 1}, "spec.template"),
    "a text for a number": (altered(lambda t: t["cliques"][0]["spec"].update(minAvailable="two"))["spec"], "minAvailable"),
    "a list for an object": ({"replicas": 1, "template": {"cliques": [{"name": "w", "spec": []}]}}, "spec.template.cliques[0].spec"),
}


@pytest.fixture
def stored_before_validation(place: Scene) -> Iterator[Scene]:
    """Objects `old-0`… that today's schema would refuse, while the schema of today is installed."""
    put_crd(place, permissive(), accepts=True)
    try:
        for i, (spec, _) in enumerate(OLD.values()):
            manifest = {"apiVersion": "grove.io/v1alpha1", "kind": "PodCliqueSet", "metadata": {"name": f"old-{i}"}, "spec": spec}
            place.client.request("POST", KINDS["PodCliqueSet"].path(place.namespace), manifest)
    finally:
        put_crd(place, crd(PodCliqueSet), accepts=False)
    yield place
    for i in range(len(OLD)):
        place.client.raw("DELETE", KINDS["PodCliqueSet"].path(place.namespace, f"old-{i}"))


def test_sets_stored_before_validation_are_named_in_the_log(stored_before_validation: Scene, grovekeeper: Grovekeeper) -> None:
    scene = stored_before_validation
    assert_healthy_works(scene)
    errors = [json.dumps(record) for record in grovekeeper.controllers.log() if record.get("level") == "error"]
    for i, (_, path) in enumerate(OLD.values()):
        name = f"{scene.namespace}/old-{i}"
        assert any(name in error and path.replace("[0]", ".0") in error for error in errors), f"{name}: {errors[-8:]}"


def test_sets_stored_before_validation_say_what_is_wrong(stored_before_validation: Scene) -> None:
    """kubectl describe shows it: a condition, or a warning about the object."""
    scene = stored_before_validation

    def told(name: str) -> list[str]:
        events = (e for e in scene.objects("Event") if (e["involvedObject"].get("name"), e.get("reason")) == (name, "InvalidSpec"))
        return [invalid_spec(scene, name), *(e["message"] for e in events)]

    for i, (_, path) in enumerate(OLD.values()):
        eventually(
            lambda i=i, path=path: any(path.replace("[0]", ".0") in text for text in told(f"old-{i}")),
            lambda i=i: f"nothing about the object says what is wrong: {told(f'old-{i}')}\n{scene.tails()}",
            10.0,
        )


def test_sets_stored_before_validation_can_be_deleted(stored_before_validation: Scene) -> None:
    scene = stored_before_validation
    assert_healthy_works(scene)
    for i in range(len(OLD)):
        scene.client.raw("DELETE", KINDS["PodCliqueSet"].path(scene.namespace, f"old-{i}"))
    eventually(lambda: scene.names("PodCliqueSet") == {"healthy"}, lambda: str(scene.names("PodCliqueSet")))
