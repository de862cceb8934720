"""ClusterTopologyBindings: distinct levels, and bindings to schedulers that can use them."""

import pytest

from api.grove import ClusterTopologyBinding, ClusterTopologyBindingSpec
from api.validation import validate_clustertopologybinding
from tests.admission import binding, config, texts

CONFIG = config("kai-scheduler", "volcano", "grovekeeper-scheduler")
REFERENCE = "spec.schedulerTopologyReferences[0].schedulerName"


def errors_of(subject: ClusterTopologyBinding) -> list[str]:
    return texts(validate_clustertopologybinding(subject, CONFIG))


@pytest.mark.parametrize(
    ("levels", "expected"),
    [
        pytest.param([("zone", "a"), ("rack", "b")], [], id="distinct"),
        pytest.param([("zone", "a"), ("zone", "b")], ['spec.levels[1].domain: Duplicate value: "zone"'], id="one domain twice"),
        pytest.param([("zone", "a"), ("rack", "a")], ['spec.levels[1].key: Duplicate value: "a"'], id="one key twice"),
        pytest.param(
            [("zone", "a"), ("rack", "b"), ("zone", "b")],
            ['spec.levels[2].domain: Duplicate value: "zone"', 'spec.levels[2].key: Duplicate value: "b"'],
            id="domain and key twice",
        ),
    ],
)
def test_levels(levels: list[tuple[str, str]], expected: list[str]) -> None:
    assert errors_of(binding(levels=levels)) == expected


def test_no_levels() -> None:
    empty = binding().model_copy(update={"spec": ClusterTopologyBindingSpec.model_construct(levels=())})
    assert errors_of(empty) == ["spec.levels: Required value: at least one level must be given"]


@pytest.mark.parametrize(
    ("scheduler", "expected"),
    [
        pytest.param("kai-scheduler", "", id="has topologies"),
        pytest.param("lpx-scheduler", "scheduler backend is not enabled in Grove", id="not enabled"),
        pytest.param("other", "scheduler backend is not enabled in Grove", id="unknown"),
        pytest.param("default-scheduler", "scheduler backend does not implement topology-aware scheduling", id="has none"),
        pytest.param(
            "grovekeeper-scheduler",
            "grovekeeper-scheduler reads ClusterTopologyBindings themselves and needs no binding; remove it",
            id="needs none",
        ),
    ],
)
def test_schedulers(scheduler: str, expected: str) -> None:
    subject = binding(schedulerTopologyBindings=[{"schedulerName": scheduler, "topologyReference": "t"}])
    assert errors_of(subject) == ([f'{REFERENCE}: Invalid value: "{scheduler}": {expected}'] if expected else [])


def test_one_scheduler_twice() -> None:
    entry = {"schedulerName": "kai-scheduler", "topologyReference": "t"}
    errors = errors_of(binding(schedulerTopologyBindings=[entry, {**entry, "topologyReference": "u"}]))
    assert errors == ['spec.schedulerTopologyReferences[1].schedulerName: Duplicate value: "kai-scheduler"']
