"""A real API server takes our manifests: the base, every component, the chart."""

import json
from typing import Any

import pytest

from e2e.conftest import Kubectl
from hack.codegen.files import ROOT

BASE = ROOT / "manifests" / "base"
NAMESPACE = "grovekeeper-system"


@pytest.fixture(scope="module")
def system(control_plane: Any, crds: None) -> str:
    """The namespace that dry runs need: they do not make it."""
    with control_plane.client() as client:
        client.raw("POST", "/api/v1/namespaces", {"metadata": {"name": NAMESPACE}})
    return NAMESPACE


def test_the_base_passes_a_dry_run_of_the_server(kubectl: Kubectl, system: str) -> None:
    said = kubectl("apply", "-k", str(BASE), "--dry-run=server", "--validate=strict")
    assert all(line.endswith("(server dry run)") for line in said.splitlines())
    assert "deployment.apps/grovekeeper-scheduler created (server dry run)" in said


def test_the_base_is_applied_twice_without_a_change(kubectl: Kubectl, system: str) -> None:
    kubectl("apply", "-k", str(BASE), "--validate=strict")
    again = kubectl("apply", "-k", str(BASE), "--validate=strict")
    assert all(line.endswith(" unchanged") for line in again.splitlines()), again


@pytest.mark.parametrize("component", ["controllers", "scheduler"])
def test_pods_are_admitted_where_pod_security_is_restricted(kubectl: Kubectl, system: str, component: str) -> None:
    kubectl("apply", "-k", str(BASE))
    found = json.loads(kubectl("get", "deployment", f"grovekeeper-{component}", "-n", NAMESPACE, "-o", "json"))
    template = found["spec"]["template"]
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "probe", **template["metadata"]}, "spec": template["spec"]}
    kubectl("create", "--dry-run=server", "-n", NAMESPACE, "-f", "-", stdin=json.dumps(pod))
    pod["spec"]["containers"][0]["securityContext"]["capabilities"] = {}
    with pytest.raises(AssertionError, match='violates PodSecurity "restricted'):
        kubectl("create", "--dry-run=server", "-n", NAMESPACE, "-f", "-", stdin=json.dumps(pod))
