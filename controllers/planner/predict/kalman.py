"""Level and trend by a Kalman filter, in plain floats: planner.md §11.5."""

from dataclasses import dataclass
from math import expm1, log1p

from controllers.planner.predict.base import PredictError, Predictor

__all__ = ("KalmanOptions", "KalmanPredictor")

START_VARIANCE = 1000.0


@dataclass(frozen=True, slots=True)
class KalmanOptions:
    """Variances of the level's and the trend's steps and of the measurement; points before the first prediction."""

    q_level: float
    q_trend: float
    r: float
    min_points: int
    in_logs: bool


class KalmanPredictor(Predictor):
    """In raw mode the prediction may be negative: it is the level, as it comes."""

    def __init__(self, options: KalmanOptions) -> None:
        super().__init__()
        self._options = options
        self._q_level, self._q_trend = max(1e-12, options.q_level), max(1e-12, options.q_trend)
        self._r = max(1e-9, options.r)
        self._level = self._trend = 0.0
        # Covariance of level and trend: [[a, b], [b, c]].
        self._a, self._b, self._c = START_VARIANCE, 0.0, START_VARIANCE
        self._is_ahead = False  # the state is already that of the next point

    def _append(self, value: float) -> None:
        z = log1p(max(0.0, value)) if self._options.in_logs else value
        if self._points == 1:
            self._level = z
            return
        if not self._is_ahead:
            self._advance()
        self._is_ahead = False
        rest = z - self._level
        spread = self._a + self._r
        gain_level, gain_trend = self._a / spread, self._b / spread
        self._level += gain_level * rest
        self._trend += gain_trend * rest
        a, b, c = self._a, self._b, self._c
        self._a, self._b, self._c = (1 - gain_level) * a, (1 - gain_level) * b, c - gain_trend * b

    def _advance(self) -> None:
        a, b, c = self._a, self._b, self._c
        self._level += self._trend
        self._a, self._b, self._c = a + 2 * b + c + self._q_level, b + c, c + self._q_trend

    def _predict(self) -> float:
        if not self._points or self._points < self._options.min_points:
            return self.last
        if not self._is_ahead:
            self._advance()
            self._is_ahead = True
        if not self._options.in_logs:
            return self._level
        try:
            return max(0.0, expm1(self._level))
        except OverflowError:
            raise PredictError("the predicted logarithm is too large") from None
