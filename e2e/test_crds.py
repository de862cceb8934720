"""The CRDs on a real API server: accepted as they are, and their CEL rules judge as upstream's do (grove.md §1.5, TAS22)."""

import json
from typing import Any

import pytest

from api.registry import MODELS, crd_name
from e2e.conftest import Kubectl
from hack.codegen.crd import FOLDER, crd

DEPRECATED = "packDomain is deprecated and cannot be used on new workloads; use pack.required"


def install(kubectl: Kubectl) -> None:
    """Idempotent, so that every test may call it."""
    kubectl("apply", "--server-side", "--force-conflicts", "-f", str(FOLDER))
    names = [f"crd/{crd_name(m)}" for m in MODELS]
    # Waiting for a condition fails at once on an object that has no conditions yet.
    kubectl("wait", "--for=jsonpath={.status.conditions}", "--timeout=30s", *names)
    kubectl("wait", "--for=condition=Established", "--timeout=30s", *names)


def workload(
    top: dict[str, Any] | None = None, clique: dict[str, Any] | None = None, group: dict[str, Any] | None = None
) -> dict[str, Any]:
    """A PodCliqueSet with topology constraints at the levels given."""
    cliques: list[dict[str, Any]] = [{"name": "worker", "spec": {"podSpec": {"containers": [{"name": "main", "image": "x"}]}}}]
    groups: list[dict[str, Any]] = [{"name": "sg", "cliqueNames": ["worker"]}]
    template: dict[str, Any] = {"cliques": cliques, "podCliqueScalingGroups": groups}
    for level, constraint in ((template, top), (cliques[0], clique), (groups[0], group)):
        if constraint is not None:
            level["topologyConstraint"] = constraint
    return {"apiVersion": "grove.io/v1alpha1", "kind": "PodCliqueSet", "metadata": {"name": "chat"}, "spec": {"template": template}}


def create(kubectl: Kubectl, namespace: str, document: dict[str, Any]) -> dict[str, Any]:
    return json.loads(kubectl("create", "-n", namespace, "-f", "-", "-o", "json", stdin=json.dumps(document)))


def test_the_api_server_keeps_every_word_of_the_crds(kubectl: Kubectl) -> None:
    install(kubectl)
    for model in MODELS:
        live = json.loads(kubectl("get", "crd", crd_name(model), "-o", "json"))
        assert live["spec"]["versions"] == crd(model)["spec"]["versions"]
        problems = [c for c in live["status"]["conditions"] if c["type"] == "NonStructuralSchema" and c["status"] == "True"]
        assert problems == []


@pytest.mark.parametrize(
    ("document", "path", "message"),
    [
        (workload(top={"topologyName": "t"}), "topologyConstraint.pack", "topologyConstraint must specify pack or deprecated packDomain"),
        (workload(top={"pack": {}}), "topologyConstraint.pack", "pack must specify at least one of required or preferred"),
        (
            workload(top={"packDomain": "rack", "pack": {"required": "rack"}}),
            "topologyConstraint.pack.required",
            "must not set both pack.required and deprecated packDomain",
        ),
        (workload(top={"packDomain": "rack"}), "topologyConstraint.packDomain", DEPRECATED),
        (workload(clique={"packDomain": "rack"}), "cliques", DEPRECATED),
        (workload(group={"packDomain": "rack"}), "podCliqueScalingGroups", DEPRECATED),
    ],
    ids=["neither", "empty pack", "both", "packDomain", "packDomain of a clique", "packDomain of a group"],
)
def test_rules_refuse(kubectl: Kubectl, namespace: str, document: dict[str, Any], path: str, message: str) -> None:
    install(kubectl)
    with pytest.raises(AssertionError) as refused:
        create(kubectl, namespace, document)
    assert f"spec.template.{path}: " in str(refused.value)
    assert message in str(refused.value)


def test_preferred_alone_is_enough(kubectl: Kubectl, namespace: str) -> None:
    install(kubectl)
    preferred = {"pack": {"preferred": "rack"}}
    created = create(kubectl, namespace, workload(preferred, preferred, preferred))
    assert created["spec"]["template"]["topologyConstraint"] == preferred


def test_defaults_of_a_minimal_set(kubectl: Kubectl, namespace: str) -> None:
    install(kubectl)
    spec = create(kubectl, namespace, workload())["spec"]
    assert spec["replicas"] == 0
    assert spec["template"]["cliqueStartupType"] == "CliqueStartupTypeAnyOrder"
    assert spec["template"]["podCliqueScalingGroups"] == [{"name": "sg", "cliqueNames": ["worker"], "replicas": 1, "minAvailable": 1}]
    assert spec["template"]["cliques"][0]["spec"].keys() == {"podSpec"}


def test_pod_specs_are_kept_whole(kubectl: Kubectl, namespace: str) -> None:
    install(kubectl)
    claim = {"metadata": {"labels": {"team": "a"}}, "spec": {"resources": {"requests": {"storage": "1Gi"}}}}
    container = {
        "name": "main",
        "image": "x",
        "ports": [{"containerPort": 80, "protocol": "TCP"}, {"containerPort": 80, "protocol": "UDP"}],
        "resources": {"limits": {"cpu": 1, "memory": "1.5Gi", "nvidia.com/gpu": 8}},
        "livenessProbe": {"httpGet": {"port": "http", "path": "/"}},
        "readinessProbe": {"httpGet": {"port": 80, "path": "/"}},
    }
    pod = {"containers": [container], "restartPolicy": "", "volumes": [{"name": "v", "ephemeral": {"volumeClaimTemplate": claim}}]}
    document = workload()
    document["spec"]["template"]["cliques"][0]["spec"]["podSpec"] = pod
    assert create(kubectl, namespace, document)["spec"]["template"]["cliques"][0]["spec"]["podSpec"] == pod


def test_two_writers_share_the_conditions_of_a_gang(kubectl: Kubectl, namespace: str) -> None:
    install(kubectl)
    gang = {"apiVersion": "scheduler.grove.io/v1alpha1", "kind": "PodGang", "metadata": {"name": "g"}}
    create(kubectl, namespace, {**gang, "spec": {"podgroups": []}})
    for writer, status in (("controller", {"phase": "Pending"}), ("scheduler", {"bound": 3})):
        entry = {"type": writer, "status": "True", "reason": "R", "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z"}
        text = json.dumps({**gang, "status": {**status, "conditions": [entry]}})
        flags = ("--server-side", "--subresource=status", f"--field-manager={writer}")
        kubectl("apply", "-n", namespace, *flags, "-f", "-", stdin=text)
    live = json.loads(kubectl("get", "-n", namespace, "podgang", "g", "-o", "json"))["status"]
    assert [c["type"] for c in live["conditions"]] == ["controller", "scheduler"]
    assert (live["phase"], live["bound"]) == ("Pending", 3)


def test_the_category_lists_every_kind_and_sets_scale(kubectl: Kubectl, namespace: str) -> None:
    install(kubectl)
    create(kubectl, namespace, workload())
    assert "podcliqueset.grove.io/chat" in kubectl("get", "grovekeeper", "-n", namespace, "-o", "name")
    kubectl("scale", "pcs", "chat", "-n", namespace, "--replicas=3")
    assert kubectl("get", "pcs", "chat", "-n", namespace, "-o", "jsonpath={.spec.replicas}") == "3"
