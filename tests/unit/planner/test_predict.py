"""Predictors and the state of traffic, by example."""

import pickle
import subprocess
import sys
from math import expm1, inf, log1p, nan
from typing import Any

import pytest

from controllers.planner.config.load import parse_config
from controllers.planner.predict.arima.predictor import MOST_POINTS, ArimaPredictor
from controllers.planner.predict.kalman import KalmanOptions, KalmanPredictor
from controllers.planner.predict.traffic import Prediction, TrafficState, new_predictor, run_traffic_fit
from controllers.planner.types import Capabilities, RoleCapabilities, TrafficObservation

SERIES = [10.0, 12.0, 9.0, 14.0, 11.0, 17.0, 12.0, 13.0]


def state(nextn: int | None = None, **settings: Any) -> TrafficState:
    decode = RoleCapabilities(speculative_nextn=nextn)
    return TrafficState(parse_config({"load_predictor": "constant", **settings}, {}), Capabilities(decode=decode))


def window(num_req: float, isl: float = 100.0, osl: float = 10.0, **rest: float | None) -> TrafficObservation:
    return TrafficObservation(60.0, num_req, isl, osl, **rest)


def predicted(given: TrafficState) -> Prediction:
    prediction = given.predict()
    assert prediction is not None, given.error
    return prediction


@pytest.mark.parametrize("kind", ["constant", "arima", "kalman"])
def test_zeros_before_the_first_value_are_left_out(kind: str) -> None:
    predictor = new_predictor(parse_config({"load_predictor": kind, "kalman_min_points": 1}, {}))
    for value in (0.0, nan, -0.0, 7.0):
        predictor.add(value)
    assert predictor.predict() == 7.0
    predictor.restart()
    predictor.add(0.0)
    assert predictor.predict() == 7.0


def test_nothing_seen_predicts_nothing() -> None:
    assert predicted(state()) == Prediction(0.0, 0.0, 0.0, None, 1.0)


@pytest.mark.parametrize("value", [inf, -inf])
def test_infinite_values_are_left_out(value: float) -> None:
    traffic = state()
    traffic.observe(window(5))
    traffic.observe(window(value, value, value, kv_hit_rate=value, accept_length=value))
    assert predicted(traffic) == Prediction(5, 100, 10, None, 1.0)


def test_an_idle_window_repeats_the_last_lengths() -> None:
    traffic = state()
    traffic.observe(window(5, 100, nan))
    traffic.observe(window(0, 900, 90))
    assert predicted(traffic) == Prediction(0, 100, 0.0)


def test_an_idle_window_before_any_traffic_has_its_own_lengths() -> None:
    traffic = state()
    traffic.observe(window(0, 900, 90))
    assert predicted(traffic) == Prediction(0, 900, 90)


def test_after_warming_leading_idle_windows_are_left_out_again() -> None:
    traffic = state()
    traffic.warm([window(5), window(7, 300, 30, kv_hit_rate=0.5)])
    traffic.observe(window(0, 0, 0))
    assert predicted(traffic) == Prediction(7, 300, 30, None, 1.0)


@pytest.mark.parametrize(
    ("published", "configured", "length", "expected"),
    [(3, 0, 2.5, 2.5), (3, 0, 9.0, 4.0), (3, 5, 9.0, 4.0), (None, 5, 9.0, 6.0), (0, 5, 9.0, 6.0), (0, 0, 9.0, 1.0), (3, 0, 0.2, 1.0)],
)
def test_accept_length_is_clamped(published: int | None, configured: int, length: float, expected: float) -> None:
    traffic = state(published, speculative_nextn=configured)
    traffic.observe(window(1, accept_length=length))
    assert traffic.accept_length == expected


def test_accept_length_is_clamped_again_to_what_is_proposed_now() -> None:
    traffic, plain = state(8), parse_config({}, {})
    traffic.observe(window(1, accept_length=6.0))
    traffic.observe(window(1, accept_length=nan))
    traffic.update(plain, Capabilities(decode=RoleCapabilities(speculative_nextn=4)))
    assert traffic.accept_length == 5.0
    traffic.update(parse_config({"speculative_nextn": 2}, {}), Capabilities())
    assert traffic.accept_length == 3.0
    traffic.update(plain, Capabilities())
    assert traffic.accept_length == 1.0


def test_hit_rate_is_the_last_known() -> None:
    traffic = state()
    for rate in (0.25, None, nan):
        traffic.observe_runtime(window(1, kv_hit_rate=rate))
    assert traffic.kv_hit_rate == 0.25


def test_kalman_may_predict_less_than_nothing() -> None:
    predictor = KalmanPredictor(KalmanOptions(1.0, 0.1, 10.0, 2, in_logs=False))
    for value in (100.0, 50.0, 1.0):
        predictor.add(value)
    assert predictor.predict() < 0


def test_kalman_that_overflows_fails_with_a_reason() -> None:
    traffic = state(load_predictor="kalman", load_predictor_log1p=True, kalman_min_points=2)
    for value in (1.0, 1e10, 1e100, 1e200, 1e300, 1e308):
        traffic.observe(window(value))
    assert traffic.predict() is None
    assert traffic.error == "the predicted logarithm is too large"


def test_a_fit_elsewhere_is_the_fit_here() -> None:
    here, elsewhere = state(load_predictor="arima"), state(load_predictor="arima")
    for value in SERIES:
        for traffic in (here, elsewhere):
            traffic.observe(window(value, value * 10, 10))
        if (job := elsewhere.fit_job()) is not None:
            elsewhere.take(pickle.loads(pickle.dumps(run_traffic_fit(pickle.loads(pickle.dumps(job))))))  # noqa: S301
            assert elsewhere.fit_job() is None
        assert predicted(elsewhere) == predicted(here)


def test_points_during_a_fit_wait_for_the_next() -> None:
    traffic = state(load_predictor="arima")
    for value in SERIES[:6]:
        traffic.observe(window(value))
    job = traffic.fit_job()
    assert job is not None
    fitted = run_traffic_fit(job)
    traffic.observe(window(SERIES[6]))
    traffic.take(fitted)
    assert traffic.fit_job() is not None
    together = state(load_predictor="arima")
    for value in SERIES[:6]:
        together.observe(window(value))
    predicted(together)
    together.observe(window(SERIES[6]))
    assert predicted(traffic) == predicted(together)


def test_arima_follows_a_constant_without_a_fit() -> None:
    predictor = ArimaPredictor(in_logs=False)
    for _ in range(50):
        predictor.add(4.0)
    assert predictor.fit_job() is None
    assert predictor.predict() == 4.0


def test_arima_counts_negative_values_as_none() -> None:
    predictor = ArimaPredictor(in_logs=False)
    for value in (-3.0, -4.0, -5.0, -6.0, -1.0):
        predictor.add(value)
    assert predictor.predict() == 0.0


def test_arima_in_logs_stays_close_to_what_it_saw() -> None:
    predictor = ArimaPredictor(in_logs=True)
    for value in SERIES:
        predictor.add(value)
    assert expm1(log1p(min(SERIES))) <= predictor.predict() <= max(SERIES)


def test_arima_keeps_a_window() -> None:
    predictor = ArimaPredictor(in_logs=False)
    for step in range(MOST_POINTS * 3):
        predictor.add(float(step % 7))
    job = predictor.fit_job()
    assert job is not None
    assert len(job.argument.points) == MOST_POINTS  # pyright: ignore[reportAttributeAccessIssue]


def test_arima_without_a_fit_predicts_the_last_value() -> None:
    predictor = ArimaPredictor(in_logs=False)
    for value in (1e300, 1.0, 1e308, 3.0, 1e200, 5.0):
        predictor.add(value)
    assert predictor.predict() == 5.0


def test_unknown_kind_is_refused() -> None:
    with pytest.raises(ValueError, match=r"load_predictor: there is no 'oracle'"):
        new_predictor(parse_config({"load_predictor": "constant"}, {}).model_copy(update={"load_predictor": "oracle"}))


def test_no_statistics_packages_are_loaded() -> None:
    heavy = {"scipy", "pandas", "statsmodels", "prophet"}
    program = f"import sys, controllers.planner.predict.traffic; print(*sorted({heavy} & {{*sys.modules}}))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)  # noqa: S603
    assert done.stdout.strip() == ""
