"""What kubectl asks about the server itself."""

import json

from tests.kubectl.manifests import clique_set, config
from tests.kubectl.program import Kubectl


def test_api_resources(kubectl: Kubectl) -> None:
    out = kubectl("api-resources", "--no-headers")
    rows = {line.split()[0]: line.split() for line in out.splitlines() if line.split()[0] not in ("events",)}
    assert rows["pods"] == ["pods", "po", "v1", "true", "Pod"]
    assert rows["nodes"] == ["nodes", "no", "v1", "false", "Node"]
    assert rows["podcliquesets"] == ["podcliquesets", "pcs", "grove.io/v1alpha1", "true", "PodCliqueSet"]
    assert rows["horizontalpodautoscalers"][2] == "autoscaling/v2"


def test_api_resources_of_a_group(kubectl: Kubectl) -> None:
    out = kubectl("api-resources", "--api-group=grove.io", "-o", "name")
    assert sorted(out.split()) == [
        "clustertopologybindings.grove.io",
        "podcliques.grove.io",
        "podcliquescalinggroups.grove.io",
        "podcliquesets.grove.io",
    ]


def test_verbs_of_api_resources(kubectl: Kubectl) -> None:
    assert "pods" in kubectl("api-resources", "--verbs=list,watch", "--namespaced", "-o", "name").split()


def test_api_versions(kubectl: Kubectl) -> None:
    versions = kubectl("api-versions").split()
    assert {"v1", "apps/v1", "autoscaling/v1", "autoscaling/v2", "grove.io/v1alpha1"} <= set(versions)


def test_version_and_cluster_info(kubectl: Kubectl) -> None:
    assert json.loads(kubectl("version", "-o", "json"))["serverVersion"]["gitVersion"].startswith("v1.36.3")
    assert "Kubernetes control plane" in kubectl("cluster-info")
    assert kubectl("get", "--raw", "/readyz") == "ok"


def test_explain_built_in_and_custom(kubectl: Kubectl) -> None:
    out = kubectl("explain", "pods")
    assert "KIND:       Pod" in out
    assert "spec\t<PodSpec>" in out
    assert "containers\t<[]Container>" in kubectl("explain", "pods.spec.containers") or "image\t<string>" in kubectl(
        "explain", "pod.spec.containers"
    )


def test_explain_shows_descriptions_of_custom_fields(kubectl: Kubectl) -> None:
    out = kubectl("explain", "pcs.spec")
    assert "GROUP:      grove.io" in out
    assert "KIND:       PodCliqueSet" in out
    assert "replicas\t<integer>" in out
    recursive = kubectl("explain", "pcs.spec.template", "--recursive")
    assert "cliques\t<[]Object>" in recursive
    assert "podSpec" in recursive


def test_explain_unknown_field(kubectl: Kubectl) -> None:
    assert 'field "nope" does not exist' in kubectl.fails("explain", "pods.nope")


def test_unknown_resources(kubectl: Kubectl) -> None:
    assert 'the server doesn\'t have a resource type "things"' in kubectl.fails("get", "things")


def test_unknown_kinds(kubectl: Kubectl) -> None:
    error = kubectl.fails("apply", "-f", "-", stdin={"apiVersion": "x.io/v1", "kind": "Thing", "metadata": {"name": "a"}})
    assert 'no matches for kind "Thing" in version "x.io/v1"' in error


def test_auth(kubectl: Kubectl) -> None:
    assert kubectl("auth", "can-i", "create", "pods").strip() == "yes"
    assert kubectl("auth", "can-i", "get", "pcs", "--subresource=status").strip() == "yes"
    assert "admin" in kubectl("auth", "whoami")
    assert "*.*" in kubectl("auth", "can-i", "--list")


def test_unknown_fields_are_refused_by_the_server(kubectl: Kubectl) -> None:
    bad = {**config("a"), "dataa": {}}
    assert 'strict decoding error: unknown field "dataa"' in kubectl.fails("apply", "-f", "-", stdin=bad)
    wrong = clique_set("a")
    wrong["spec"]["replicaz"] = 1
    assert 'strict decoding error: unknown field "spec.replicaz"' in kubectl.fails("create", "-f", "-", stdin=wrong)
    assert kubectl("create", "--validate=false", "-f", "-", stdin=wrong) == "podcliqueset.grove.io/a created\n"


def test_top_says_that_there_are_no_metrics(kubectl: Kubectl) -> None:
    assert "Metrics API not available" in kubectl.fails("top", "pods")
