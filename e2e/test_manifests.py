"""A real API server takes our manifests: the base, every component, the chart."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from e2e.cluster import eventually
from e2e.conftest import Kubectl, kubectl_of
from hack.codegen.files import ROOT
from hack.kube import ControlPlane
from tests.golden.chart.release import VALUE_SETS, rendered

MANIFESTS = ROOT / "manifests"
BASE, OVERLAY = MANIFESTS / "base", MANIFESTS / "overlays" / "example"
NAMESPACE = "grovekeeper-system"
NAMESPACES = (NAMESPACE, "inference", "leases")
"""The base's, and those of the value sets of the chart."""
COMPONENTS = sorted(p.parent.name for p in MANIFESTS.glob("components/*/kustomization.yaml"))
SERVICE_MONITORS: dict[str, Any] = {
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
def system(control_plane: ControlPlane, crds: None) -> Iterator[str]:
    """The namespaces, which dry runs need but do not make, and what the manifests need of others. All is gone afterwards."""
    definitions, run = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", kubectl_of(control_plane)
    with control_plane.client() as client:
        for name in NAMESPACES:
            client.raw("POST", "/api/v1/namespaces", {"metadata": {"name": name}})
        client.raw("POST", definitions, SERVICE_MONITORS)
    yield NAMESPACE
    run("delete", "-k", str(BASE), "--ignore-not-found", "--wait=false")
    run("delete", "namespace", *NAMESPACES)
    run("delete", "crd", SERVICE_MONITORS["metadata"]["name"])


@pytest.fixture(scope="module")
def base(control_plane: ControlPlane) -> str:
    """What kustomize makes of the base."""
    return kubectl_of(control_plane)("kustomize", str(BASE))


@pytest.fixture(scope="module")
def installed(control_plane: ControlPlane, system: str, base: str) -> dict[str, str]:
    """The base is applied."""
    return applied(kubectl_of(control_plane)("apply", "--validate=strict", "-f", "-", stdin=base))


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
def test_every_component_passes_a_dry_run_of_the_server(kubectl: Kubectl, base: str, system: str, tmp_path: Path, component: str) -> None:
    lines = ["resources: [base]", f"components: [components/{component}]"]
    (tmp_path / "kustomization.yaml").write_text("\n".join(lines))
    for name in ("base", "config", "components"):
        (tmp_path / name).symlink_to(MANIFESTS / name)
    with_component = kubectl("kustomize", str(tmp_path))
    assert with_component != base
    kubectl("apply", "--dry-run=server", "--validate=strict", "-f", "-", stdin=with_component)


def test_the_overlay_to_copy_passes_a_dry_run_and_gives_the_waiter_its_image(kubectl: Kubectl, system: str) -> None:
    kubectl("apply", "-k", str(OVERLAY), "--dry-run=server", "--validate=strict")
    built = kubectl("kustomize", str(OVERLAY))
    assert built.count("registry.example.com/platform/grovekeeper:0.1.0") == 3
    assert "image: grovekeeper" not in built


MAY = [
    ("view", "get", "podgangs.scheduler.grove.io", True),
    *(("view", verb, "podcliquesets.grove.io", verb in ("list", "watch")) for verb in ("list", "watch", "create", "delete")),
    *(("edit", verb, "podcliquesets.grove.io", True) for verb in ("get", "create", "update", "patch", "delete")),
    *(("edit", "update", f"{plural}.grove.io/scale", True) for plural in ("podcliquesets", "podcliques", "podcliquescalinggroups")),
    *(("edit", verb, "podgangs.scheduler.grove.io", False) for verb in ("create", "patch", "delete")),
    ("edit", "create", "podcliques.grove.io", False),
    ("admin", "create", "podcliquesets.grove.io", True),
]


def test_roles_of_people_reach_our_resources(kubectl: Kubectl, control_plane: ControlPlane, installed: object, namespace: str) -> None:
    for role in ("view", "edit", "admin"):
        kubectl("create", "rolebinding", role, "-n", namespace, f"--clusterrole={role}", f"--user={role}er")

    def may(role: str, verb: str, resource: str) -> bool:
        plural, _, rest = resource.partition(".")
        group, _, subresource = rest.partition("/")
        asked = {"namespace": namespace, "verb": verb, "group": group, "resource": plural, "subresource": subresource}
        review = {"spec": {"user": f"{role}er", "resourceAttributes": asked}}
        with control_plane.client() as client:
            return client.request("POST", "/apis/authorization.k8s.io/v1/subjectaccessreviews", review)["status"]["allowed"]

    eventually(lambda: may("admin", "create", "podcliquesets.grove.io"), "the roles are not aggregated")
    assert [(role, verb, resource, may(role, verb, resource)) for role, verb, resource, _ in MAY] == MAY


@pytest.mark.parametrize("component", ["controllers", "scheduler"])
def test_pods_are_admitted_where_pod_security_is_restricted(kubectl: Kubectl, installed: object, component: str) -> None:
    deployment: dict[str, Any] = json.loads(kubectl("get", "deployment", f"grovekeeper-{component}", "-n", NAMESPACE, "-o", "json"))
    template = deployment["spec"]["template"]
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "probe", **template["metadata"]}, "spec": template["spec"]}
    kubectl("create", "--dry-run=server", "-n", NAMESPACE, "-f", "-", stdin=json.dumps(pod))
    template["spec"]["containers"][0]["securityContext"]["capabilities"] = {}
    with pytest.raises(AssertionError, match='violates PodSecurity "restricted'):
        kubectl("create", "--dry-run=server", "-n", NAMESPACE, "-f", "-", stdin=json.dumps(pod))


def by_name(text: str) -> dict[tuple[str, str], dict[str, Any]]:
    """Objects by kind and name; the hash that kustomize puts behind the name of the configuration is cut off."""
    found = [d for d in yaml.safe_load_all(text) if d]
    return {(d["kind"], re.sub(r"^(grovekeeper-config)-[a-z0-9]{10}$", r"\1", d["metadata"]["name"])): d for d in found}


def plain(document: dict[str, Any]) -> dict[str, Any]:
    """Without what only Helm adds, with the configuration as data, and names without hashes."""
    text = re.sub(r"grovekeeper-config-[a-z0-9]{10}", "grovekeeper-config", json.dumps(document))
    found = json.loads(text)
    for key in ("app.kubernetes.io/instance", "app.kubernetes.io/version", "app.kubernetes.io/managed-by", "helm.sh/chart"):
        found["metadata"]["labels"].pop(key, None)
    if found["kind"] == "ConfigMap":
        found["data"] = {name: yaml.safe_load(value) for name, value in found["data"].items()}
    if found["kind"] == "Deployment":
        found["spec"]["template"]["metadata"]["annotations"].pop("checksum/config", None)
    return found


def test_the_chart_with_its_defaults_makes_the_objects_of_the_base(base: str) -> None:
    ours, chart = by_name(base), by_name(rendered("default"))
    assert ours.keys() - chart.keys() == {("Namespace", NAMESPACE)}
    assert chart.keys() <= ours.keys()
    for key, document in chart.items():
        assert plain(document) == plain(ours[key])


@pytest.mark.parametrize("values", VALUE_SETS)
def test_the_chart_passes_a_dry_run_of_the_server(kubectl: Kubectl, system: str, values: str) -> None:
    text = rendered(values)
    said = applied(kubectl("apply", "--dry-run=server", "--validate=strict", "-f", "-", stdin=text))
    assert len(said) == len(by_name(text))


def test_the_installing_job_is_admitted_where_pod_security_is_restricted(kubectl: Kubectl, installed: object) -> None:
    template = by_name(rendered("production"))["Job", "grovekeeper-install-crds"]["spec"]["template"]
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "probe", **template["metadata"]}, "spec": template["spec"]}
    kubectl("create", "--dry-run=server", "-n", NAMESPACE, "-f", "-", stdin=json.dumps(pod))
