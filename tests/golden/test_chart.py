"""The chart, as Helm renders it for four sets of values, and what it says about values that are wrong.

GROVEKEEPER_UPDATE=1 writes the expected manifests anew: look at the difference before it is committed.
"""

import os

import pytest
import yaml

from api.operatorconfig import load_operator_configuration
from hack.chart.files import FOLDER, stale
from tests.golden.chart.release import HERE, VALUE_SETS, helm, rendered


def test_files_are_up_to_date() -> None:
    assert stale() == []


@pytest.mark.parametrize("values", VALUE_SETS)
def test_renders_what_is_expected(values: str) -> None:
    expected, text = HERE / f"{values}.yaml", rendered(values)
    if os.environ.get("GROVEKEEPER_UPDATE") == "1":
        expected.write_text(text)
    assert text == expected.read_text()


@pytest.mark.parametrize("values", VALUE_SETS)
def test_the_configuration_is_valid_and_its_change_rolls_out(values: str) -> None:
    def parts(*more: str) -> tuple[str, set[str]]:
        found = [d for d in yaml.safe_load_all(rendered(values, *more)) if d]
        pods = [d["spec"]["template"] for d in found if d["kind"] == "Deployment"]
        (config,) = [d["data"]["controllers.yaml"] for d in found if d["kind"] == "ConfigMap"]
        return config, {p["metadata"]["annotations"]["checksum/config"] for p in pods}

    before, after = parts(), parts("--set", "config.logLevel=error")
    assert load_operator_configuration(after[0]).log_level == "error"
    assert len(before[1]) == len(after[1]) == 1
    assert before[1] != after[1]


REFUSED = [
    (["imagee.tag=1"], "imagee"),
    (["controllers.replica=1"], "replica"),
    (["config.leaderElection.leaseDurationSeconds=15"], "leaseDurationSeconds"),
    (["config.grovekeeper.token=none"], "projected"),
    (["config.leaderElection.leaseDuration=PT15S"], "leaseDuration"),
    (["image.digest=sha256:abc"], "digest"),
    (["controllers.topologySpread=Sometimes"], "topologySpread"),
    (["extraLabels.app\\.kubernetes\\.io/component=x"], "app.kubernetes.io/component"),
    (["scheduler.enabled=false"], "name the scheduler that places gangs"),
]


@pytest.mark.parametrize(("values", "said"), REFUSED, ids=[v[0] for v, _ in REFUSED])
def test_values_that_are_wrong_are_refused_by_name(values: list[str], said: str) -> None:
    done = helm("template", "grovekeeper", str(FOLDER), *(part for value in values for part in ("--set", value)))
    assert done.returncode != 0
    assert said in done.stderr


def test_names_that_look_like_numbers_stay_texts() -> None:
    odd = ("controllers.priorityClassName=1e3", "config.leaderElection.resourceName=42", "config.leaderElection.resourceNamespace=0x1")
    values = [part for value in (*odd, "networkPolicy.enabled=true") for part in ("--set-string", value)]
    values[-2] = "--set"
    done = helm("template", "007", str(FOLDER), "--namespace", "123", *values)
    assert done.returncode == 0, done.stderr
    found = [d for d in yaml.safe_load_all(done.stdout) if d]
    metadata = [d["metadata"] for d in found]
    assert {m.get("namespace") for m in metadata} == {None, "123", "0x1"}
    assert {m["labels"]["app.kubernetes.io/instance"] for m in metadata} == {"007"}
    subjects = [s["namespace"] for d in found for s in d.get("subjects", ())]
    assert subjects == ["123"] * len(subjects) != []
    priorities = [d["spec"]["template"]["spec"].get("priorityClassName") for d in found if d["kind"] == "Deployment"]
    assert sorted(map(str, priorities)) == ["1e3", "None"]
    assert ["42"] in [r["resourceNames"] for d in found if d["kind"] == "Role" for r in d["rules"] if "resourceNames" in r]


def test_the_linter_has_nothing_to_say() -> None:
    done = helm("lint", "--strict", str(FOLDER))
    assert done.returncode == 0, done.stdout
