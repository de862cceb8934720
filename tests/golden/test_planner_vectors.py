"""Recorded calls of single functions, as `grovekeeper planner replay --vectors` makes them again."""

import pytest

from controllers.planner.replay.vectors import Outcome, check_vector
from tests.golden.planner_traces import folder

FEWEST = {"budget": 700, "capacity": 8, "config": 50, "merge": 260, "perf": 17, "predictors": 28}


@pytest.mark.parametrize("group", sorted(FEWEST))
@pytest.mark.timeout(300)  # where there is Prophet
@pytest.mark.filterwarnings("ignore::Warning")  # Prophet and its dependencies warn of themselves
def test_group(group: str) -> None:
    with (folder() / "vectors" / f"{group}.jsonl").open("rb") as lines:
        checks = [check_vector(line, 1e-6) for line in lines]
    wrong = [(number, check) for number, check in enumerate(checks, 1) if check.outcome not in (Outcome.OK, Outcome.SKIPPED)]
    assert wrong == []
    assert all("prophet" in check.detail for check in checks if check.outcome is Outcome.SKIPPED)
    assert sum(check.outcome is Outcome.OK for check in checks) >= FEWEST[group]
