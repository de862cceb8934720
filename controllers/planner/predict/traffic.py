"""Traffic of the past and what it lets expect: planner.md §11.1."""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from math import isfinite

from controllers.planner.config.model import PlannerConfig
from controllers.planner.predict.arima.predictor import ArimaPredictor
from controllers.planner.predict.base import FitJob, PredictError, Predictor, run_fit
from controllers.planner.predict.constant import ConstantPredictor
from controllers.planner.predict.kalman import KalmanOptions, KalmanPredictor
from controllers.planner.predict.prophet import ProphetOptions, ProphetPredictor
from controllers.planner.types import Capabilities, TrafficObservation

__all__ = ("Prediction", "TrafficFit", "TrafficState", "new_predictor", "run_traffic_fit")

_MOST_DRAFTED = 2**31 - 1
"""More than any engine; larger integers may not fit a float."""


@dataclass(frozen=True, slots=True)
class Prediction:
    """Requests of the next window, mean lengths in tokens; the last cache hit rate and accepted tokens per step."""

    num_req: float
    isl: float
    osl: float
    kv_hit_rate: float | None = None
    accept_length: float = 1.0


@dataclass(frozen=True, slots=True)
class TrafficFit:
    """Fits that are due, or their results, of the series of num_req, isl and osl; None: nothing to do. Fit to be pickled."""

    jobs: tuple[FitJob | None, ...]


@dataclass(frozen=True, slots=True)
class TrafficFitted:
    """What `run_traffic_fit` found. An error instead of a result makes the prediction fail."""

    results: tuple[Hashable, ...]
    error: str | None = None


def run_traffic_fit(fit: TrafficFit) -> TrafficFitted:
    """Does the fits. Pure and slow: for a worker thread or process. A result of None says that there was no job."""
    try:
        return TrafficFitted(tuple(None if job is None else run_fit(job) for job in fit.jobs))
    except PredictError as error:
        return TrafficFitted((), str(error))


def new_predictor(config: PlannerConfig) -> Predictor:
    """Of the configured kind. ValueError if there is no such kind."""
    in_logs = config.load_predictor_log1p
    match config.load_predictor:
        case "constant":
            return ConstantPredictor()
        case "arima":
            return ArimaPredictor(in_logs)
        case "kalman":
            variances = config.kalman_q_level, config.kalman_q_trend, config.kalman_r
            return KalmanPredictor(KalmanOptions(*variances, config.kalman_min_points, in_logs))
        case "prophet":
            interval = config.throughput_adjustment_interval_seconds
            return ProphetPredictor(ProphetOptions(config.prophet_window_size, interval, in_logs))
        case other:
            raise ValueError(f"load_predictor: there is no {other!r}")


class TrafficState:
    """Takes observations at little cost and predicts the next.

    `predict` alone does all that is needed. To keep slow fits off an event loop, take `fit_job`, run `run_traffic_fit` on it
    elsewhere, give the result to `take`, then predict. Observations may come in meanwhile: they wait for the next fit.
    """

    def __init__(self, config: PlannerConfig, capabilities: Capabilities) -> None:
        self._requests, self._isl, self._osl = (new_predictor(config) for _ in range(3))
        self._most_accepted = _most_accepted(config, capabilities)
        self._has_seen_traffic = False
        # Lengths of the last window with requests; an idle window has none of its own.
        self._last_isl = self._last_osl = 0.0
        self._kv_hit_rate: float | None = None
        self._accept_length = 1.0
        self._error: str | None = None

    @property
    def error(self) -> str | None:
        """Why the last prediction failed; None if it did not."""
        return self._error

    @property
    def kv_hit_rate(self) -> float | None:
        """The last that was observed."""
        return self._kv_hit_rate

    @property
    def accept_length(self) -> float:
        """Accepted tokens per step of a decode, between 1 and what the engine may propose plus 1."""
        return self._accept_length

    def observe(self, traffic: TrafficObservation) -> None:
        """One window. Lengths that are not finite are left out; a request count of NaN is 0."""
        self._add(traffic)
        self.observe_runtime(traffic)

    def observe_runtime(self, traffic: TrafficObservation) -> None:
        """Only the cache hit rate and the accept length of a window, as far as they are known."""
        rate, length = traffic.kv_hit_rate, traffic.accept_length
        if rate is not None and isfinite(rate):
            self._kv_hit_rate = rate
        if length is not None and isfinite(length):
            self._accept_length = self.clamped(length)

    def warm(self, history: Sequence[TrafficObservation]) -> None:
        """Past windows, before the first live one. Leading idle windows that follow are left out again."""
        for traffic in history:
            self._add(traffic)
        for predictor in (self._requests, self._isl, self._osl):
            predictor.restart()
        self._has_seen_traffic = False

    def update(self, config: PlannerConfig, capabilities: Capabilities) -> None:
        """The accept length is clamped again to what the engine may propose now; predictors stay as they are."""
        self._most_accepted = _most_accepted(config, capabilities)
        self._accept_length = self.clamped(self._accept_length)

    def fit_job(self) -> TrafficFit | None:
        """None: `predict` is cheap."""
        jobs = (self._requests.fit_job(), self._isl.fit_job(), self._osl.fit_job())
        return TrafficFit(jobs) if any(jobs) else None

    def take(self, fitted: TrafficFitted) -> None:
        """What `run_traffic_fit` made of the last `fit_job`."""
        self._error = fitted.error
        for predictor, result in zip((self._requests, self._isl, self._osl), fitted.results, strict=False):
            if result is not None:
                predictor.take(result)

    def predict(self) -> Prediction | None:
        """None: it failed, see `error`. Does the work of `fit_job` if nobody did."""
        try:
            num_req, isl, osl = self._requests.predict(), self._isl.predict(), self._osl.predict()
        except (PredictError, ArithmeticError, ValueError, TypeError, IndexError) as error:
            self._error = str(error)
            return None
        self._error = None
        return Prediction(num_req, isl, osl, self._kv_hit_rate, self._accept_length)

    def _add(self, traffic: TrafficObservation) -> None:
        num_req, isl, osl = traffic.num_req, traffic.isl, traffic.osl
        self._requests.add(num_req)
        if num_req > 0:
            self._has_seen_traffic = True
            self._last_isl = isl if isfinite(isl) else self._last_isl
            self._last_osl = osl if isfinite(osl) else self._last_osl
        elif num_req == 0 and self._has_seen_traffic:
            isl, osl = self._last_isl, self._last_osl
        if isfinite(isl):
            self._isl.add(isl)
        if isfinite(osl):
            self._osl.add(osl)

    def clamped(self, length: float) -> float:
        """An accept length within what the engine may propose."""
        return min(max(length, 1.0), self._most_accepted)


def _most_accepted(config: PlannerConfig, capabilities: Capabilities) -> float:
    """Tokens of a decode step if every draft is accepted. What engines publish counts before what is configured."""
    published = None if capabilities.decode is None else capabilities.decode.speculative_nextn
    drafted = published if published is not None and published > 0 else config.speculative_nextn
    return min(drafted, _MOST_DRAFTED) + 1.0
