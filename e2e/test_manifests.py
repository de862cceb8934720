"""A real API server takes our manifests: the base, every component, the chart."""

import json
from pathlib import Path
from typing import Any

import pytest

from e2e.conftest import Kubectl
from hack.codegen.files import ROOT
from hack.kube import ControlPlane

MANIFESTS = ROOT / "manifests"
BASE, OVERLAY = MANIFESTS / "base", MANIFESTS / "overlays" / "example"
NAMESPACE = "grovekeeper-system"
COMPONENTS = sorted(p.parent.name for p in MANIFESTS.glob("components/*/kustomization.yaml"))
SERVICE_MONITORS = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "servicemonitors.monitoring.coreos.com"},
    "spec": {
        "group": "monitoring.coreos.com",
        "names": {"kind": "ServiceMonitor", "plural": "servicemonitors"},
        "scope": "Namespaced",
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}},
            }
        ],
    },
}


@pytest.fixture(scope="module")
def system(control_plane: ControlPlane, crds: None) -> str:
    """The namespace, which dry runs need but do not make, and what the manifests need of others."""
    with control_plane.client() as client:
        client.raw("POST", "/api/v1/namespaces", {"metadata": {"name": NAMESPACE}})
        client.raw("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", SERVICE_MONITORS)
    return NAMESPACE


def applied(said: str) -> dict[str, str]:
    """What kubectl did, by object."""
    return dict(line.removesuffix(" (server dry run)").rsplit(" ", 1) for line in said.splitlines())


def test_the_definitions_are_applied_by_their_kustomization(kubectl: Kubectl, crds: None) -> None:
    said = applied(kubectl("apply", "--server-side", "-k", str(MANIFESTS / "crds")))
    assert len(said) == len(list(MANIFESTS.glob("crds/*.yaml")))
    assert set(said.values()) == {"serverside-applied"}


def test_the_base_is_applied_twice_without_a_change(kubectl: Kubectl, system: str) -> None:
    tried = applied(kubectl("apply", "-k", str(BASE), "--dry-run=server", "--validate=strict"))
    done = applied(kubectl("apply", "-k", str(BASE), "--validate=strict"))
    assert tried.keys() == done.keys()
    assert "deployment.apps/grovekeeper-scheduler" in done
    assert set(applied(kubectl("apply", "-k", str(BASE), "--validate=strict")).values()) == {"unchanged"}


@pytest.mark.parametrize("component", COMPONENTS)
def test_every_component_passes_a_dry_run_of_the_server(kubectl: Kubectl, system: str, tmp_path: Path, component: str) -> None:
    lines = ["resources: [base]", f"components: [components/{component}]"]
    (tmp_path / "kustomization.yaml").write_text("\n".join(lines))
    for name in ("base", "config", "components"):
        (tmp_path / name).symlink_to(MANIFESTS / name)
    base, with_component = kubectl("kustomize", str(BASE)), kubectl("kustomize", str(tmp_path))
    assert with_component != base
    kubectl("apply", "--dry-run=server", "--validate=strict", "-f", "-", stdin=with_component)


def test_the_overlay_to_copy_passes_a_dry_run_and_gives_the_waiter_its_image(kubectl: Kubectl, system: str) -> None:
    kubectl("apply", "-k", str(OVERLAY), "--dry-run=server", "--validate=strict")
    built = kubectl("kustomize", str(OVERLAY))
    assert built.count("registry.example.com/platform/grovekeeper:0.1.0") == 3
    assert "image: grovekeeper" not in built


@pytest.mark.parametrize("component", ["controllers", "scheduler"])
def test_pods_are_admitted_where_pod_security_is_restricted(kubectl: Kubectl, system: str, component: str) -> None:
    kubectl("apply", "-k", str(BASE))
    deployment: dict[str, Any] = json.loads(kubectl("get", "deployment", f"grovekeeper-{component}", "-n", NAMESPACE, "-o", "json"))
    template = deployment["spec"]["template"]
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "probe", **template["metadata"]}, "spec": template["spec"]}
    kubectl("create", "--dry-run=server", "-n", NAMESPACE, "-f", "-", stdin=json.dumps(pod))
    template["spec"]["containers"][0]["securityContext"]["capabilities"] = {}
    with pytest.raises(AssertionError, match='violates PodSecurity "restricted'):
        kubectl("create", "--dry-run=server", "-n", NAMESPACE, "-f", "-", stdin=json.dumps(pod))
