"""ARIMA forecasts of the packages behind Planner 1.5.1, of short and of very regular series: a forecast after every point.

There the first steps of a fit decide, and with them its rounding: the variance starts at its least, or none is left to a point.
The series are those of which the packages say the same with any arithmetic kernel; planner_arima.json names the versions.
"""

import json
from pathlib import Path
from typing import Any

import pytest

from controllers.planner.predict.arima.predictor import ArimaPredictor

RECORDED = json.loads(Path(__file__).with_name("planner_arima.json").read_text(encoding="utf-8"))["series"]


@pytest.mark.parametrize("recorded", RECORDED, ids=lambda recorded: recorded["name"])
def test_forecasts(recorded: dict[str, Any]) -> None:
    predictor = ArimaPredictor(recorded["in_logs"])
    predictions: list[float] = []
    for count, value in enumerate(recorded["values"], 1):
        predictor.add(value)
        if count >= recorded["first"]:
            predictions.append(predictor.predict())
    assert predictions == pytest.approx(recorded["predictions"], rel=1e-4, abs=1e-12)
