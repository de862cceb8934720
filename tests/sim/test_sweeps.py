"""One fault at some of the places where it can happen; all places by `grovekeeper sim --sweep`."""

import pytest

from api.operatorconfig import OperatorConfiguration
from cli.programs import PROGRAMS
from sim.cluster.cluster import Setup
from sim.faults.plan import Fault, FaultKind
from sim.sweeps.runner import Result
from sim.sweeps.sieve import Clean, clean_run, differences, faults_of, swept

pytestmark = pytest.mark.timeout(120)

SCENARIOS = ("create", "scale-up", "scale-down", "delete")


@pytest.fixture(scope="module")
def clean(config: OperatorConfiguration) -> dict[str, Clean]:
    """Runs without faults, by scenario."""
    return {name: clean_run(Setup(PROGRAMS, config), name, 1) for name in SCENARIOS}


@pytest.mark.parametrize("scenario", SCENARIOS)
@pytest.mark.parametrize(("sweep", "every"), [("crashes", 20), ("lost-answers", 20), ("frozen", 18)])
def test_the_end_is_the_same(clean: dict[str, Clean], scenario: str, sweep: str, every: int) -> None:
    faults = list(faults_of(clean[scenario], sweep))[::every]
    assert len(faults) >= 5
    assert {str(fault): str(found) for fault in faults if (found := swept(clean[scenario], fault)[0])} == {}


def test_every_write_is_a_place(clean: dict[str, Clean]) -> None:
    faults = list(faults_of(clean["create"], "crashes"))
    writes = clean["create"].result.writes
    assert len(faults) == sum(writes.values())
    assert writes["controllers-0"] > 50
    assert faults[0] == Fault(FaultKind.CRASH, "controllers-0", nth=1, seconds=0.5)


def test_another_end_is_told() -> None:
    one, two = Result(state={"pods/a": {"ready": True, "x": 1}}), Result(state={"pods/a": {"ready": False, "x": 1}, "pods/b": {}})
    assert differences(one, one) == []
    assert differences(one, two) == ["pods/a: ready {True -> False}", "pods/b: None -> {}"]
