"""What all predictors have in common: how points come in, and a fit that may run elsewhere. planner.md §11.2."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from math import isinf, isnan
from typing import final

__all__ = ("FitJob", "PredictError", "Predictor", "run_fit")

MINIMUM_POINTS = 5


class PredictError(RuntimeError):
    """A predictor has no value for the next point."""


@dataclass(frozen=True, slots=True)
class FitJob:
    """Heavy work that is due: a function of a module and its one argument, both fit to be pickled for another process."""

    function: Callable[[Hashable], Hashable]
    argument: Hashable


def run_fit(job: FitJob) -> Hashable:
    """The result for `Predictor.take`. Pure, may take long; PredictError if there is none."""
    return job.function(job.argument)


class Predictor(ABC):
    """Points come in one by one; the value expected next comes out. Values are counts or lengths, of one interval each."""

    def __init__(self) -> None:
        self._has_begun = False
        self._points = 0
        self._last = 0.0

    @final
    def add(self, value: float) -> None:
        """NaN counts as 0; zeros are left out until something else was seen; an infinite value is no measurement and left out.

        The last is a choice of ours: Planner 1.5.1 keeps infinity and from then on predicts it or fails.
        """
        value = 0.0 if isnan(value) else value
        if isinf(value) or (not value and not self._has_begun):
            return
        self._has_begun = True
        self._points += 1
        self._last = value
        self._append(value)

    @final
    def restart(self) -> None:
        """Leave out zeros again until something else is seen. What was learnt stays."""
        self._has_begun = False

    @property
    def last(self) -> float:
        """The last point; 0 before the first."""
        return self._last

    def fit_job(self) -> FitJob | None:
        """Heavy work that `predict` would do now, to be done by `run_fit` and brought back by `take`. None: predict is cheap."""
        return None

    def take(self, result: Hashable) -> None:  # noqa: B027 - most predictors have nothing to take
        """The result of the last `fit_job`. Points may have come in since."""

    @final
    def predict(self) -> float:
        """The next value, the same until another point comes in. Does the work of `fit_job` if nobody did. PredictError."""
        if (job := self.fit_job()) is not None:
            self.take(run_fit(job))
        return self._predict()

    @abstractmethod
    def _append(self, value: float) -> None: ...

    @abstractmethod
    def _predict(self) -> float: ...
