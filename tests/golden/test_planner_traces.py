"""Whole runs of Planner against recorded ones: each number, reason and decision of every tick."""

from importlib.util import find_spec
from typing import Any

import pytest

from controllers.planner.replay.compare import differences
from tests.golden.planner_traces import expected, names, played, walk

EVICTING = "sla_both_disagg_evict"
"""The original drops samples at random there, so its estimates differ from run to run, and sometimes a decision."""
FEW = 5
TOLERANCES = {"arima": 1e-4, "prophet": 1e-4}


def tolerance(name: str) -> float:
    return next((rtol for part, rtol in TOLERANCES.items() if part in name), 1e-6)


def case(name: str) -> Any:
    """Prophet takes a fit for every prediction."""
    return pytest.param(name, marks=pytest.mark.timeout(300)) if "prophet" in name else name


@pytest.mark.parametrize("name", [case(name) for name in names() if name != EVICTING])
@pytest.mark.filterwarnings("ignore::Warning")  # Prophet and its dependencies warn of themselves
def test_every_tick(name: str) -> None:
    if "prophet" in name and find_spec("prophet") is None:
        pytest.skip("the extra `prophet` is not installed")
    wanted, actual = expected(name), played(name)
    assert len(actual) == len(wanted)
    found: list[str] = []
    for index, (one, other) in enumerate(zip(wanted, actual, strict=True)):
        walk()(f"tick {index}", one, other, tolerance(name), found)
    assert found == []


def test_decisions_where_samples_are_dropped() -> None:
    wanted, actual = expected(EVICTING), played(EVICTING)
    decided = [{key: tick[key] for key in ("at_s", "scale_to", "desired")} for tick in wanted]
    found: list[str] = []
    for index, (one, other) in enumerate(zip(decided, actual, strict=True)):
        walk()(f"tick {index}", one, other, 1e-6, found)
    assert len(found) <= FEW


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"a": 1.0, "b": [1, None]}, {"a": 1.0 + 1e-9, "b": [1, None], "c": 3}),
        ({"a": 1}, {"a": 2}),
        ({"a": None}, {"a": 0}),
        ({"a": 1}, {"a": True}),
        ({"a": [1]}, {"a": [1, 2]}),
        ({"a": 1, "us": 3}, {"a": 1}),
        ({"a": 1.0}, {"a": 1.1}),
        ({"a": "x"}, {}),
    ],
)
def test_our_comparison_agrees_with_that_of_the_cases(one: Any, other: Any) -> None:
    found: list[str] = []
    walk()("", one, other, 1e-6, found)
    assert bool(list(differences(one, other, 1e-6))) is bool(found)
