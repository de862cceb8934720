"""Which scheduler a set may use, and what that scheduler requires."""

from typing import Any

import pytest

from api.operatorconfig import OperatorConfiguration
from tests.admission import clique, config, created, kinds, pcs

PATH = "spec.template.cliques.spec.podSpec.schedulerName"
SAME = "the schedulerName for all pods have to be the same"
ENABLED = "schedulerName must be an enabled scheduler backend"

ALL = config("grovekeeper-scheduler", "kai-scheduler", "volcano", "lpx-scheduler")
OURS = config("grovekeeper-scheduler", default="grovekeeper-scheduler")
PLAIN = config()


@pytest.mark.parametrize(
    ("names", "settings", "error"),
    [
        pytest.param(["", ""], PLAIN, None, id="none named: the default profile"),
        pytest.param(["default-scheduler", "default-scheduler"], PLAIN, None, id="all name the default profile"),
        pytest.param(["", "default-scheduler"], PLAIN, None, id="none named is the default profile"),
        pytest.param(["grovekeeper-scheduler", ""], OURS, None, id="ours is the default profile"),
        pytest.param(["default-scheduler"], OURS, None, id="another enabled one than the default"),
        pytest.param(["lpx-scheduler", "lpx-scheduler"], ALL, None, id="all name an enabled one"),
        pytest.param(
            ["default-scheduler", "kai-scheduler"], ALL, f'Invalid value: "default-scheduler, kai-scheduler": {SAME}', id="two schedulers"
        ),
        pytest.param(
            ["", "kai-scheduler"], ALL, f'Invalid value: "default-scheduler, kai-scheduler": {SAME}', id="the default and another one"
        ),
        pytest.param(
            ["", "default-scheduler"], OURS, f'Invalid value: "grovekeeper-scheduler, default-scheduler": {SAME}', id="not our default"
        ),
        pytest.param(
            ["kai-scheduler"],
            PLAIN,
            f'Invalid value: "kai-scheduler": {ENABLED}; enabled are default-scheduler',
            id="known but not enabled",
        ),
        pytest.param(["mine"], PLAIN, f'Invalid value: "mine": {ENABLED}; enabled are default-scheduler', id="unknown"),
    ],
)
def test_scheduler_names(names: list[str], settings: OperatorConfiguration, error: str | None) -> None:
    cliques = [clique(f"c{i}", pod={"schedulerName": name} if name else {}) for i, name in enumerate(names)]
    assert created(pcs(*cliques), settings) == ([f"{PATH}: {error}"] if error else [])


def test_a_scheduler_name_that_is_no_text() -> None:
    errors = created(pcs(clique("a", pod={"schedulerName": ["x"]})))
    assert errors == ['spec.template.cliques[0].spec.podSpec.schedulerName: Invalid value: ["x"]: must be a string']


QUEUE = "kai.scheduler/queue"
VOLCANO_QUEUE = "scheduling.grove.io/volcano-queue"


@pytest.mark.parametrize(
    ("metadata", "cliques", "accepted"),
    [
        pytest.param({"labels": {QUEUE: "q"}}, [{}], True, id="a label of the set"),
        pytest.param({"annotations": {QUEUE: "q"}}, [{}], True, id="an annotation of the set"),
        pytest.param({"labels": {QUEUE: "q"}, "annotations": {QUEUE: "ignored"}}, [{}], True, id="the label counts before the annotation"),
        pytest.param({}, [{"labels": {QUEUE: "q"}}, {}], True, id="one clique names it"),
        pytest.param({}, [{"labels": {QUEUE: "q"}}, {"annotations": {QUEUE: "q"}}], True, id="cliques agree"),
        pytest.param({"labels": {QUEUE: "q"}}, [{"labels": {QUEUE: "q"}}], True, id="clique and set agree"),
        pytest.param({}, [{}], False, id="nowhere"),
        pytest.param({}, [{"labels": {QUEUE: "q"}}, {"labels": {QUEUE: "r"}}], False, id="cliques disagree"),
        pytest.param({"labels": {QUEUE: "q"}}, [{}, {"labels": {QUEUE: "r"}}], False, id="clique and set disagree"),
    ],
)
def test_kai_needs_one_queue(metadata: dict[str, Any], cliques: list[dict[str, Any]], accepted: bool) -> None:
    templates = [clique(f"c{i}", pod={"schedulerName": "kai-scheduler"}, **fields) for i, fields in enumerate(cliques)]
    errors = created(pcs(*templates, metadata=metadata), ALL)
    assert [path for path, _ in kinds(errors)] == ([] if accepted else ["spec"])


def test_other_schedulers_need_no_queue_but_volcano_wants_cliques_to_agree() -> None:
    def volcano(queue: str) -> dict[str, Any]:
        return clique("a", pod={"schedulerName": "volcano"}, annotations={VOLCANO_QUEUE: queue})

    assert created(pcs(clique("a", pod={"schedulerName": "volcano"})), ALL) == []
    assert created(pcs(volcano("q"), metadata={"annotations": {VOLCANO_QUEUE: "q"}}), ALL) == []
    assert kinds(created(pcs(volcano("q"), metadata={"annotations": {VOLCANO_QUEUE: "r"}}), ALL)) == [("spec", "Invalid value")]


@pytest.mark.parametrize(
    ("scheduler", "accepted"), [("default-scheduler", True), ("grovekeeper-scheduler", True), ("volcano", False), ("lpx-scheduler", False)]
)
def test_who_understands_topology_constraints(scheduler: str, accepted: bool) -> None:
    constraint = {"topologyName": "grove-topology", "pack": {"required": "rack"}}
    errors = created(pcs(clique("a", pod={"schedulerName": scheduler}, topologyConstraint=constraint)), ALL)
    assert [path for path, _ in kinds(errors)] == ([] if accepted else ["spec"])
