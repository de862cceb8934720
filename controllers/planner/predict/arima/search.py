"""Chooses the order of an ARIMA model step by step (Hyndman and Khandakar 2008) and fits it; planner.md §11.4."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf, isfinite

from controllers.planner.predict.arima.minimize import minimize
from controllers.planner.predict.arima.model import (
    ArimaError,
    Order,
    Parameters,
    difference,
    filter_series,
    to_free,
    to_parameters,
)
from controllers.planner.predict.arima.start import differences_needed, inverse_roots, is_constant, starting_parameters

__all__ = ("Fitted", "choose", "fit")

FIT_ITERATIONS = 50
MOST_FITS = 100
MOST_TERMS = 5
LARGEST_INVERSE_ROOT = 0.99
NEIGHBOURS = ((-1, 0), (0, -1), (1, 0), (0, 1), (-1, -1), (-1, 1), (1, -1), (1, 1))


@dataclass(frozen=True, slots=True)
class Fitted:
    """A model and what it says of the series it was fit to: log likelihood, mean of the next point."""

    order: Order
    parameters: Parameters
    log_likelihood: float
    forecast: float

    @property
    def aic(self) -> float:
        order = self.order
        return 2 * (order.p + order.q + order.has_constant + 1) - 2 * self.log_likelihood


def fit(order: Order, series: Sequence[float], start: Parameters, most_iterations: int = FIT_ITERATIONS) -> Fitted:
    """Maximum likelihood from these parameters on. ArimaError or ArithmeticError if there is no such model."""
    differenced = difference(series, order.d)

    def cost(free: list[float]) -> float:
        return -filter_series(series, differenced, order.d, to_parameters(order, free)).log_likelihood / len(series)

    parameters = to_parameters(order, minimize(cost, to_free(start), most_iterations))
    found = filter_series(series, differenced, order.d, parameters)
    return Fitted(order, parameters, found.log_likelihood, found.forecast)


def choose(series: Sequence[float]) -> Fitted:
    """The model of least AIC among those met on the way from (2, d, 2). ArimaError if none fits."""
    d = differences_needed(series)
    if is_constant(difference(series, d)):
        # A constant series is taken for noise around 0, as in Planner 1.5.1.
        order = Order(0, d, 0, not is_constant(series))
        fitted = fit(order, series, starting_parameters(order, series))
        if not isfinite(fitted.aic):
            raise ArimaError("no model fits the series")
        return fitted
    return _Search(series, d).run()


class _Search:
    def __init__(self, series: Sequence[float], d: int) -> None:
        self._series = series
        self._d = d
        self._most = min(MOST_TERMS, len(series) // 3)
        self._seen: set[Order] = set()
        self._best: Fitted | None = None
        self._best_aic = inf

    def run(self) -> Fitted:
        p = q = min(1 if len(self._series) < 10 else 2, self._most)
        constant = self._d < 2
        self._improves(p, q, constant)
        simple = [(0, 0, constant)]
        if self._most > 0:
            simple += [(1, 0, constant), (0, 1, constant)]
        if constant:
            simple.append((0, 0, False))
        for order in simple:
            if self._improves(*order):
                p, q, _ = order
        while True:
            step = self._step(p, q, constant)
            if step is None:
                break
            p, q, constant = step
        if self._best is None:
            raise ArimaError("no model fits the series")
        return self._best

    def _step(self, p: int, q: int, constant: bool) -> tuple[int, int, bool] | None:
        for dp, dq in NEIGHBOURS:
            near = p + dp, q + dq
            if min(near) >= 0 and max(near) <= self._most and self._improves(*near, constant):
                return *near, constant
        return (p, q, not constant) if self._improves(p, q, not constant) else None

    def _improves(self, p: int, q: int, constant: bool) -> bool:
        order = Order(p, self._d, q, constant)
        if order in self._seen or len(self._seen) >= MOST_FITS:
            return False
        self._seen.add(order)
        try:
            fitted = fit(order, self._series, starting_parameters(order, self._series))
        except (ValueError, ArithmeticError):
            return False
        aic = fitted.aic if _is_inside(fitted) else inf
        if not isfinite(aic) or (self._best is not None and not aic < self._best_aic):
            return False
        self._best, self._best_aic = fitted, aic
        return True


def _is_inside(fitted: Fitted) -> bool:
    """No inverse root near the unit circle; with moving-average terms only theirs are looked at, as in Planner 1.5.1."""
    parameters = fitted.parameters
    coefficients = parameters.ma or [-a for a in parameters.ar]
    if not coefficients:
        return True
    sizes = inverse_roots([1.0, *coefficients])
    if not sizes:
        raise ArimaError("all terms of the model are zero")
    return max(sizes) <= LARGEST_INVERSE_ROOT
