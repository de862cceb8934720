"""ARIMA predictor: planner.md §11.4."""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from math import expm1, isfinite, log1p
from typing import cast

import numpy as np

from controllers.planner.predict.arima.search import Fitted, choose, fit
from controllers.planner.predict.base import MINIMUM_POINTS, FitJob, Predictor

__all__ = ("ArimaPredictor",)

# Points that the model is fit to: a day of windows of three minutes. Planner 1.5.1 keeps all, so that memory and time of a fit grow
# for ever; a fit to the last points differs from that only for longer series, and there by little.
MOST_POINTS = 480
UPDATE_ITERATIONS = 5
POINTS_PER_ITERATION = 10


@dataclass(frozen=True, slots=True)
class _Model:
    """The model, and the series it was fit to: of values, or of their log1p."""

    fitted: Fitted
    series: tuple[float, ...]
    in_logs: bool


@dataclass(frozen=True, slots=True)
class _Work:
    """Either a first fit to `points`, or an update of `model` with them. `count` points of the pending ones are in it."""

    model: _Model | None
    points: tuple[float, ...]
    in_logs: bool
    count: int


@dataclass(frozen=True, slots=True)
class _Done:
    """None: the fit failed. `had_model` tells whether the points were to update one."""

    model: _Model | None
    count: int


class ArimaPredictor(Predictor):
    """The order is chosen once, at the first prediction after five points that are not all equal; later points only update it.

    A fit that fails costs the pending points: the model goes on without them and the last value is the prediction.
    """

    def __init__(self, in_logs: bool) -> None:
        super().__init__()
        self._starts_in_logs = in_logs
        self._raw: list[float] = []
        self._pending: list[float] = []
        self._first = 0.0
        self._varies = False
        self._model: _Model | None = None
        self._has_failed = False

    def _append(self, value: float) -> None:
        value = max(0.0, value)
        if self._points == 1:
            self._first = value
        self._varies = self._varies or value != self._first
        for series in (self._raw, self._pending):
            series.append(value)
            del series[:-MOST_POINTS]
        self._has_failed = False

    def fit_job(self) -> FitJob | None:
        if self._points < MINIMUM_POINTS or not self._varies or not self._pending:
            return None
        points = self._raw if self._model is None else self._pending
        return FitJob(_run, _Work(self._model, tuple(points), self._starts_in_logs, len(self._pending)))

    def take(self, result: Hashable) -> None:
        done = cast("_Done", result)
        del self._pending[: done.count]
        self._has_failed = done.model is None
        if done.model is not None:
            self._model = done.model

    def _predict(self) -> float:
        last = self._raw[-1] if self._raw else 0.0
        if self._points < MINIMUM_POINTS or not self._varies or self._model is None or self._has_failed:
            return last
        forecast = self._model.fitted.forecast
        try:
            value = expm1(forecast) if self._model.in_logs else forecast
        except OverflowError:
            return last
        return max(0.0, value) if isfinite(value) else last


def _run(argument: Hashable) -> _Done:
    work = cast("_Work", argument)
    try:
        # What is too large for floats ends as an infinity or NaN in the likelihood, and with it the fit.
        with np.errstate(all="ignore"):
            model = _first_fit(work) if work.model is None else _update(work.model, work.points)
    except (ValueError, ArithmeticError):
        model = None
    return _Done(model, work.count)


def _first_fit(work: _Work) -> _Model:
    logs = tuple(map(log1p, work.points))
    if work.in_logs:
        return _Model(choose(logs), logs, True)
    fitted = choose(work.points)
    if not fitted.order.p and not fitted.order.q:
        # Nothing but a level or a random walk was found; logarithms may show more.
        try:
            return _Model(choose(logs), logs, True)
        except (ValueError, ArithmeticError):
            pass
    return _Model(fitted, work.points, False)


def _update(model: _Model, points: Sequence[float]) -> _Model:
    new = map(log1p, points) if model.in_logs else points
    series = (*model.series, *new)[-MOST_POINTS:]
    iterations = max(UPDATE_ITERATIONS, len(points) // POINTS_PER_ITERATION)
    return _Model(fit(model.fitted.order, series, model.fitted.parameters, iterations), series, model.in_logs)
