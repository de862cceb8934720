"""Defaults of PodCliqueSets: the rules one by one, and what the upstream operator stored for recorded manifests."""

import json
import os
from pathlib import Path
from typing import Any

import pytest
import yaml

from api.defaulting import default_podcliqueset
from api.grove import PodCliqueSet

CASES = Path(os.environ.get("GROVEKEEPER_SHARED") or Path(__file__).parents[3] / "shared") / "cases" / "grove"
needs_cases = pytest.mark.skipif(not CASES.is_dir(), reason=f"recorded cases are not at {CASES}; set GROVEKEEPER_SHARED")


def defaulted(template: dict[str, Any], spec: dict[str, Any] | None = None) -> dict[str, Any]:
    """spec.template of a set after defaulting, as it would be stored."""
    pcs = PodCliqueSet.model_validate({"metadata": {"name": "chat"}, "spec": {**(spec or {}), "template": template}})
    return default_podcliqueset(pcs).to_manifest()["spec"]["template"]


def without_empty(value: Any) -> Any:
    if isinstance(value, list):
        items: list[Any] = value
        return [without_empty(item) for item in items]
    if not isinstance(value, dict):
        return value
    fields: dict[str, Any] = value
    return {k: without_empty(v) for k, v in fields.items() if v != {}}


def clique(**spec: Any) -> dict[str, Any]:
    return {"name": "worker", "spec": {"podSpec": {}, **spec}}


@pytest.mark.parametrize(
    ("given", "replicas", "minimum"),
    [
        pytest.param({"replicas": 3}, 3, 3, id="minAvailable follows replicas"),
        pytest.param({"replicas": 3, "minAvailable": 2}, 3, 2, id="a given minAvailable stays"),
        pytest.param({"replicas": 0}, 1, 0, id="replicas 0 becomes 1 while minAvailable follows the 0"),
        pytest.param({}, 1, 0, id="absent replicas count as 0"),
    ],
)
def test_replicas_and_minimum(given: dict[str, Any], replicas: int, minimum: int) -> None:
    spec = defaulted({"cliques": [clique(**given)]})["cliques"][0]["spec"]
    assert (spec["replicas"], spec["minAvailable"]) == (replicas, minimum)


def test_lower_bounds_of_scaling_follow_the_replicas_given() -> None:
    template = defaulted(
        {
            "cliques": [clique(replicas=2, autoScalingConfig={"maxReplicas": 5})],
            "podCliqueScalingGroups": [
                {"name": "g", "cliqueNames": ["worker"], "replicas": 4, "scaleConfig": {"maxReplicas": 6}},
                {"name": "h", "cliqueNames": [], "scaleConfig": {"minReplicas": 2, "maxReplicas": 6}},
            ],
        }
    )
    assert template["cliques"][0]["spec"]["autoScalingConfig"]["minReplicas"] == 2
    first, second = template["podCliqueScalingGroups"]
    assert (first["scaleConfig"]["minReplicas"], first["minAvailable"]) == (4, 1)
    assert (second["scaleConfig"]["minReplicas"], second["replicas"]) == (2, 1)


def test_pod_spec_gets_restart_policy_and_grace_period_and_keeps_the_rest() -> None:
    given = {"containers": [{"name": "x"}], "restartPolicy": "", "terminationGracePeriodSeconds": None}
    assert defaulted({"cliques": [clique(podSpec=given)]})["cliques"][0]["spec"]["podSpec"] == {
        "containers": [{"name": "x"}],
        "restartPolicy": "Always",
        "terminationGracePeriodSeconds": 30,
    }
    kept = {"restartPolicy": "Never", "terminationGracePeriodSeconds": 0}
    assert defaulted({"cliques": [clique(podSpec=kept)]})["cliques"][0]["spec"]["podSpec"] == kept


@pytest.mark.parametrize(
    ("given", "stored"),
    [(None, "4h0m0s"), ("1m", "1m0s"), ("90s", "1m30s"), ("0s", "0s"), ("30s", "30s"), ("-1h", "-1h0m0s"), ("soon", "soon")],
)
def test_termination_delay_is_stored_as_go_prints_it(given: str | None, stored: str) -> None:
    template = {"cliques": [clique()]} | ({"terminationDelay": given} if given is not None else {})
    assert defaulted(template)["terminationDelay"] == stored


def test_the_rest_of_the_template() -> None:
    template = defaulted({"cliques": [clique()]})
    assert template["cliqueStartupType"] == "CliqueStartupTypeAnyOrder"
    assert template["headlessServiceConfig"] == {"publishNotReadyAddresses": True}
    kept = defaulted({"cliques": [clique()], "headlessServiceConfig": {"publishNotReadyAddresses": False}})
    assert kept["headlessServiceConfig"] == {"publishNotReadyAddresses": False}


def test_namespace_and_identity() -> None:
    pcs = PodCliqueSet.model_validate({"metadata": {"name": "chat", "uid": "u"}, "spec": {"template": {"cliques": [clique()]}}})
    out = default_podcliqueset(pcs)
    assert (out.metadata.namespace, out.metadata.uid) == ("default", "u")
    assert pcs.metadata.namespace == ""
    assert default_podcliqueset(out) == out


@needs_cases
@pytest.mark.parametrize("path", sorted(CASES.glob("manifests/[01]*.yaml")), ids=lambda p: p.stem)
def test_recorded_manifests_are_stored_as_upstream_stored_them(path: Path) -> None:
    recording = json.loads((CASES / "expected" / f"{path.stem}.json").read_text())
    stored = next(o for o in recording["objects"][0] if o["kind"] == "PodCliqueSet")
    pcs = PodCliqueSet.model_validate(yaml.safe_load(path.read_text()), extra="forbid")
    ours = default_podcliqueset(pcs).to_manifest()
    # Upstream's typed decoding writes `resources: {}` into containers that have none; that says nothing.
    assert without_empty(ours["spec"]) == without_empty(stored["spec"])
    assert ours["metadata"]["namespace"] == stored["metadata"]["namespace"]
