"""Predictors against recorded series: two predictions after every point."""

from importlib.util import find_spec
from math import nan
from typing import Any

import pytest

from controllers.planner.config.load import parse_config
from controllers.planner.predict.traffic import new_predictor
from tests.golden.planner_vectors import vectors

# Fits end where their optimiser stops, which rounding moves a little.
TOLERANCE = {"arima": 1e-4, "prophet": 1e-4}
RECORDED = vectors("predictors", "predictor")


def name_of(vector: dict[str, Any]) -> str:
    config = vector["in"]["config"]
    options = [key for key in config if key != "load_predictor"]
    return "-".join([config["load_predictor"], vector["in"]["series"], *options])


@pytest.mark.parametrize("vector", RECORDED, ids=name_of)
@pytest.mark.filterwarnings("ignore::Warning")  # Prophet and its dependencies warn of themselves
def test_series(vector: dict[str, Any]) -> None:
    given = vector["in"]
    config = parse_config(given["config"], {})
    if config.load_predictor == "prophet" and find_spec("prophet") is None:
        pytest.skip("the extra `prophet` is not installed")
    predictor = new_predictor(config)
    predictions: list[list[float]] = []
    for index, value in enumerate(given["values"]):
        if index == given["reset_idle_skip_before"]:
            predictor.restart()
        predictor.add(nan if value in (None, "nan", "NaN") else value)
        predictions.append([predictor.predict(), predictor.predict()])
    tolerance = TOLERANCE.get(config.load_predictor, 1e-9)
    assert predictions == [pytest.approx(pair, rel=tolerance, abs=1e-12) for pair in vector["out"]]
