"""No traffic, however odd, makes a predictor crash, predict no number, or grow."""

from math import isfinite

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from controllers.planner.config.load import parse_config
from controllers.planner.predict.traffic import TrafficState
from controllers.planner.types import Capabilities, TrafficObservation

ODD = st.one_of(st.floats(), st.floats(0, 1e5), st.integers(0, 50).map(float), st.sampled_from([0.0, 1.0]))
WINDOWS = st.builds(TrafficObservation, st.just(60.0), ODD, ODD, ODD, st.none() | ODD, st.none() | ODD)


@pytest.mark.parametrize("in_logs", [False, True])
@pytest.mark.parametrize("kind", ["constant", "kalman", "arima"])
@settings(max_examples=5, deadline=None)
@given(windows=st.lists(WINDOWS, max_size=8))
def test_any_traffic_has_a_prediction_or_a_reason(kind: str, in_logs: bool, windows: list[TrafficObservation]) -> None:
    traffic = TrafficState(parse_config({"load_predictor": kind, "load_predictor_log1p": in_logs}, {}), Capabilities())
    for index, window in enumerate(windows):
        traffic.observe(window)
        # A first fit of ARIMA takes its time: one per series is enough.
        if kind == "arima" and index < len(windows) - 2:
            continue
        prediction = traffic.predict()
        if prediction is None:
            assert traffic.error
            continue
        assert all(map(isfinite, (prediction.num_req, prediction.isl, prediction.osl, prediction.accept_length)))
        assert prediction == traffic.predict()
        if kind == "arima":
            assert min(prediction.num_req, prediction.isl, prediction.osl) >= 0
