"""Prophet with its default settings, fit anew for every prediction: planner.md §11.6. Needs the extra `prophet`.

Prophet and pandas are imported only when a fit is run. Both tell of their progress by `logging`; a program that minds sets the
levels of the loggers "prophet" and "cmdstanpy".
"""

from collections import deque
from collections.abc import Hashable
from dataclasses import dataclass
from importlib import import_module
from math import expm1, isfinite, log1p
from typing import Any, cast

from controllers.planner.predict.base import MINIMUM_POINTS, FitJob, PredictError, Predictor

__all__ = ("ProphetOptions", "ProphetPredictor")

EPOCH = "2024-01-01"


@dataclass(frozen=True, slots=True)
class ProphetOptions:
    """Points that a fit sees; seconds between points."""

    window: int
    interval_s: int
    in_logs: bool


@dataclass(frozen=True, slots=True)
class _Work:
    """The last points, in model space; `points` is how many there were in all."""

    values: tuple[float, ...]
    points: int
    interval_s: int


@dataclass(frozen=True, slots=True)
class _Done:
    value: float
    points: int


class ProphetPredictor(Predictor):
    def __init__(self, options: ProphetOptions) -> None:
        super().__init__()
        self._options = options
        self._window: deque[float] = deque(maxlen=options.window)
        self._done: _Done | None = None

    def _append(self, value: float) -> None:
        self._window.append(log1p(max(0.0, value)) if self._options.in_logs else value)

    def fit_job(self) -> FitJob | None:
        is_done = self._done is not None and self._done.points == self._points
        if len(self._window) < MINIMUM_POINTS or is_done:
            return None
        return FitJob(_run, _Work(tuple(self._window), self._points, self._options.interval_s))

    def take(self, result: Hashable) -> None:
        self._done = cast("_Done", result)

    def _predict(self) -> float:
        if self._done is None or len(self._window) < MINIMUM_POINTS:
            value = self._window[-1] if self._window else 0.0
            return self._from_logs(value) if self._options.in_logs else value
        return self._from_logs(self._done.value) if self._options.in_logs else max(0.0, self._done.value)

    def _from_logs(self, value: float) -> float:
        try:
            return max(0.0, expm1(value))
        except OverflowError:
            raise PredictError("the predicted logarithm is too large") from None


def _run(argument: Hashable) -> _Done:
    work = cast("_Work", argument)
    try:
        prophet: Any = import_module("prophet")
        pandas: Any = import_module("pandas")
    except ImportError as error:
        raise PredictError(f"load_predictor prophet needs the extra `prophet`: {error}") from error
    first = work.points - len(work.values)
    # One more than there are values: the last time is the one to predict.
    steps = pandas.to_timedelta([(first + i) * work.interval_s for i in range(len(work.values) + 1)], unit="s")
    times = pandas.Timestamp(EPOCH) + steps
    model: Any = prophet.Prophet()
    model.fit(pandas.DataFrame({"ds": times[:-1], "y": work.values}))
    value = float(model.predict(pandas.DataFrame({"ds": times[-1:]}))["yhat"].iloc[-1])
    if not isfinite(value):
        raise PredictError("Prophet predicts no number")
    return _Done(value, work.points)
