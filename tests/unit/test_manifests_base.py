"""The base and its components as files: names, versions and promises that nothing but a reader would notice."""

import tomllib
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import yaml

from cli.configuration import load_configuration
from cli.main import parser

ROOT = Path(__file__).parents[2]
MANIFESTS = ROOT / "manifests"
VERSION = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
KUSTOMIZATIONS = sorted([*MANIFESTS.glob("*/kustomization.yaml"), *MANIFESTS.glob("*/*/kustomization.yaml")])
COMPONENTS = ("controllers", "scheduler")


def documents(*patterns: str) -> Iterator[dict[str, Any]]:
    for pattern in patterns:
        for path in sorted(MANIFESTS.glob(pattern)):
            yield from (d for d in yaml.safe_load_all(path.read_text()) if d)


def rules() -> Iterator[tuple[str, dict[str, Any]]]:
    """Every rule of the base and of what components add, with where it stands."""
    for document in documents("base/*-rbac.yaml", "base/roles.yaml"):
        for rule in document.get("rules", ()):
            yield f"{document['kind']} {document['metadata']['name']}", rule
    for path in MANIFESTS.glob("components/*/kustomization.yaml"):
        for patch in yaml.safe_load(path.read_text()).get("patches", ()):
            for operation in yaml.safe_load(patch["patch"]) if "op:" in patch["patch"] else ():
                if operation["path"] == "/rules/-":
                    yield path.parent.name, operation["value"]


def deployment(component: str) -> dict[str, Any]:
    (found,) = [d for d in documents(f"base/{component}.yaml") if d["kind"] == "Deployment"]
    return found


def test_no_rule_has_a_wildcard() -> None:
    found = list(rules())
    assert len(found) > 25
    assert [where for where, rule in found if any("*" in rule[part] for part in ("apiGroups", "resources", "verbs"))] == []


def test_only_the_component_for_secrets_gives_a_right_on_secrets() -> None:
    assert {where for where, rule in rules() if "secrets" in rule["resources"]} == {"waiter-secrets"}


def test_nobody_may_grant_more_than_it_has() -> None:
    assert [where for where, rule in rules() if {"escalate", "bind", "impersonate"} & set(rule["verbs"])] == []


@pytest.mark.parametrize("component", COMPONENTS)
def test_a_comment_says_what_uses_each_rule(component: str) -> None:
    text = (MANIFESTS / "base" / f"{component}-rbac.yaml").read_text().splitlines()
    bare = [line for before, line in pairwise(text) if line.startswith("- apiGroups") and not before.startswith("# ")]
    assert bare == []


@pytest.mark.parametrize("path", KUSTOMIZATIONS, ids=lambda p: p.parent.name)
def test_images_have_the_version_of_the_project(path: Path) -> None:
    """Those of the base and of the overlay to copy."""
    tags = [image["newTag"] for image in yaml.safe_load(path.read_text()).get("images", ())]
    assert tags == [VERSION] * len(tags)
    assert tags or path.parent.name not in ("base", "example")


def test_samples_for_small_clusters_use_the_image_of_the_base() -> None:
    (sample,) = documents("samples/kind.yaml")
    pods = [clique["spec"]["podSpec"] for clique in sample["spec"]["template"]["cliques"]]
    assert {c["image"] for pod in pods for c in pod["containers"]} == {f"grovekeeper:{VERSION}"}


def test_all_definitions_are_in_their_kustomization() -> None:
    listed = yaml.safe_load((MANIFESTS / "crds" / "Kustomization").read_text())["resources"]
    assert listed == sorted(p.name for p in MANIFESTS.glob("crds/*.yaml"))


@pytest.mark.parametrize("folder", ["config", "components/controllers-only", "overlays/example"])
def test_configurations_are_valid(folder: str) -> None:
    load_configuration(str(MANIFESTS / folder / "controllers.yaml"))


@pytest.mark.parametrize("component", COMPONENTS)
def test_arguments_are_those_of_the_command_and_probes_ask_where_it_listens(component: str) -> None:
    (container,) = deployment(component)["spec"]["template"]["spec"]["containers"]
    options = parser([component]).parse_args(container["args"])
    assert options.command == component
    assert options.config == "/etc/grovekeeper/controllers.yaml"
    (port,) = container["ports"]
    assert (options.bind, port["name"]) == (f"0.0.0.0:{port['containerPort']}", "http")
    probes = {name: container[name]["httpGet"] for name in ("startupProbe", "readinessProbe", "livenessProbe")}
    assert {p["port"] for p in probes.values()} == {"http"}
    assert {name: p["path"] for name, p in probes.items() if p["path"] != "/healthz"} == {"readinessProbe": "/readyz"}


@pytest.mark.parametrize("component", COMPONENTS)
def test_a_hanging_process_has_a_minute_and_a_stopping_one_longer_than_it_needs(component: str) -> None:
    spec = deployment(component)["spec"]["template"]["spec"]
    liveness = spec["containers"][0]["livenessProbe"]
    assert liveness["periodSeconds"] * liveness["failureThreshold"] >= 60
    assert spec["terminationGracePeriodSeconds"] > 20 + 2 + 2


def test_scrapes_go_to_the_port_of_the_process() -> None:
    for service in documents("components/metrics/services.yaml"):
        component = service["metadata"]["labels"]["app.kubernetes.io/component"]
        (container,) = deployment(component)["spec"]["template"]["spec"]["containers"]
        (port,) = service["spec"]["ports"]
        assert (port["port"], port["targetPort"]) == (container["ports"][0]["containerPort"], "http")
        assert service["spec"]["selector"] == deployment(component)["spec"]["selector"]["matchLabels"]
