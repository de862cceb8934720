"""Where the search for an ARIMA model begins: number of differences, starting parameters."""

from collections.abc import Sequence
from math import isnan, nan

import numpy as np
from numpy.typing import NDArray

from controllers.planner.predict.arima.model import Order, Parameters, difference

__all__ = ("differences_needed", "inverse_roots", "is_constant", "starting_parameters")

Array = NDArray[np.float64]

MOST_DIFFERENCES = 2
LEVEL_AT_5_PERCENT = 0.463  # of the KPSS statistic
LEAST_VARIANCE = 1e-10
STABLE = 1 - 1e-10


def is_constant(series: Sequence[float]) -> bool:
    return all(x == series[0] for x in series)


def differences_needed(series: Sequence[float]) -> int:
    """0 to 2: until the KPSS test (level, 5 %) no longer rejects that the series is stationary, or nothing is left to remove."""
    for d in range(MOST_DIFFERENCES):
        if is_constant(series):
            return d
        statistic = _kpss(series)
        if statistic is None:
            return max(d - 1, 0)
        if statistic <= LEVEL_AT_5_PERCENT:
            return d
        series = difference(series, 1)
    is_defined = is_constant(series) or _kpss(series) is not None
    return MOST_DIFFERENCES if is_defined else MOST_DIFFERENCES - 1


def _kpss(series: Sequence[float]) -> float | None:
    """The statistic of Kwiatkowski, Phillips, Schmidt and Shin (1992) with Bartlett weights; None where it is not defined."""
    n = len(series)
    x = np.asarray(series, dtype=np.float64)
    rest = x - x.mean()
    sums = np.cumsum(rest)
    eta = float((sums * sums).sum()) / n**2
    variance = float((rest * rest).sum()) / n
    lags = int(4 * (n / 100) ** 0.25)
    weighted = sum(float(rest[i:] @ rest[:-i]) * (1 - i / (lags + 1)) for i in range(1, lags + 1))
    variance += 2 * weighted / n
    statistic = eta / variance if variance else nan
    return None if isnan(statistic) else statistic


def inverse_roots(polynomial: Sequence[float]) -> list[float]:
    """Sizes of the inverse roots of 1 + c1 z + c2 z² ..., given (1, c1, c2, ...)."""
    return [float(abs(root)) for root in np.roots(polynomial)]


def starting_parameters(order: Order, series: Sequence[float]) -> Parameters:
    """By conditional least squares, with the residuals of a long autoregression for the moving average (Hannan and Rissanen)."""
    w = np.asarray(difference(series, order.d), dtype=np.float64)
    p, q, constants = order.p, order.q, int(order.has_constant)
    if not p + q + constants:
        return Parameters(None, (), (), max(float(w @ w) / len(series), LEAST_VARIANCE))
    estimate = _least_squares(w, p, q, constants)
    if estimate is None:
        coefficients = np.zeros(constants + p + q)
        rest = np.concatenate([np.zeros(2 * q), w - w.mean()]) if len(w) else np.ones(2 * q + 1)
    else:
        coefficients, rest = estimate
    variance = float((rest[q:] ** 2).mean()) if len(rest) > max(1, q) else float(np.var(w))
    constant = float(coefficients[0]) if constants else None
    ar = tuple(map(float, coefficients[constants : constants + p]))
    ma = tuple(map(float, coefficients[constants + p :]))
    if not _is_stable([-a for a in ar]):
        ar = (0.0,) * p
    if not _is_stable(ma):
        ma = (0.0,) * q
    return Parameters(constant, ar, ma, max(variance, LEAST_VARIANCE))


def _least_squares(w: Array, p: int, q: int, constants: int) -> tuple[Array, Array] | None:
    """Coefficients (constant, AR, MA) and residuals; None: too few points."""
    n, long = len(w), 2 * q
    skipped = max(3 * q, p)
    columns: list[Array] = [np.ones(max(n - skipped, 0))] if constants else []
    noise = w[:0]
    if q:
        if long >= n:
            return None
        lags = np.column_stack([w[long - 1 - i : n - 1 - i] for i in range(long)])
        target = w[long:]
        noise = target - lags @ (np.linalg.pinv(lags) @ target)
    if p >= n or (q and q >= len(noise)):
        return None
    target = w[skipped:]
    columns += [w[skipped - 1 - i : n - 1 - i] for i in range(p)]
    at = skipped - long
    columns += [noise[at - 1 - i : len(noise) - 1 - i] for i in range(q)]
    if any(len(column) != len(target) for column in columns):
        return None
    x = np.column_stack(columns)
    coefficients = np.linalg.pinv(x) @ target
    return coefficients, target - x @ coefficients


def _is_stable(coefficients: Sequence[float]) -> bool:
    return not coefficients or all(size < STABLE for size in inverse_roots([1.0, *coefficients]))
