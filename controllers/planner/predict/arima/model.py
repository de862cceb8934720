"""ARIMA(p, d, q) with a constant: likelihood and one-step forecast by a Kalman filter.

State space after Harvey: the ARMA part starts in its stationary distribution, each of the d levels with variance 1e6, and the
first d points do not count in the likelihood. As a point is observed without error, the filter knows the levels after d
points and runs on the differenced series with max(p, q + 1) states, of which prediction only shifts the covariance.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import inf, isfinite, log, nan, pi, sqrt

__all__ = ("ArimaError", "Order", "Parameters", "difference", "filter_series", "to_free", "to_parameters")

LEVEL_VARIANCE = 1e6
LEAST_VARIANCE = 1e-12  # of a forecast; below, a point carries no news
# Sum of squared changes of the covariance below which the gain is kept: absolute, as in the filter that Planner 1.5.1 uses, if
# there is no constant (with one it never settles, and so must not here by more than rounding).
SETTLED = 1e-19
SETTLED_RELATIVE = 1e-26
LOG_2PI = log(2 * pi)


class ArimaError(ValueError):
    """The series has no such model."""


@dataclass(frozen=True, slots=True)
class Order:
    """p autoregressive terms, d differences, q moving-average terms, with or without a constant."""

    p: int
    d: int
    q: int
    has_constant: bool


@dataclass(frozen=True, slots=True)
class Parameters:
    """w[t] = constant + sum ar[i] w[t-1-i] + e[t] + sum ma[j] e[t-1-j], e of that variance, w the series after d differences."""

    constant: float
    ar: tuple[float, ...]
    ma: tuple[float, ...]
    variance: float


@dataclass(frozen=True, slots=True)
class Filtered:
    """Log likelihood of a series and the mean of its next point."""

    log_likelihood: float
    forecast: float


def difference(series: Sequence[float], times: int) -> list[float]:
    """Differences of neighbours, that many times."""
    out = list(series)
    for _ in range(times):
        out = [b - a for a, b in pairwise(out)]
    return out


def to_parameters(order: Order, free: Sequence[float]) -> Parameters:
    """From any real numbers (constant, AR, MA, standard deviation): stationary, invertible, positive."""
    at = int(order.has_constant)
    ar = _stable(free[at : at + order.p])
    ma = tuple(-x for x in _stable(free[at + order.p : at + order.p + order.q]))
    return Parameters(free[0] if at else 0.0, ar, ma, free[-1] * free[-1])


def to_free(order: Order, parameters: Parameters) -> list[float]:
    """Inverse of `to_parameters`. ArimaError where there is none: on the edge of stationarity."""
    constant = [parameters.constant] if order.has_constant else []
    free = [*constant, *_unstable(parameters.ar), *_unstable([-x for x in parameters.ma]), sqrt(parameters.variance)]
    if not all(map(isfinite, free)):
        raise ArimaError("the model is at the edge of stationarity")
    return free


def _stable(free: Sequence[float]) -> tuple[float, ...]:
    """Partial autocorrelations x / sqrt(1 + x²), then Durbin and Levinson (Monahan 1984)."""
    row: list[float] = []
    for x in free:
        r = x / sqrt(1 + x * x)
        row = [*(a + r * b for a, b in zip(row, reversed(row), strict=True)), r]
    return tuple(-a for a in row)


def _unstable(coefficients: Sequence[float]) -> list[float]:
    row = [-a for a in coefficients]
    free: list[float] = []
    while row:
        r = row.pop()
        rest = 1 - r * r
        if rest <= 0:
            raise ArimaError("the model is at the edge of stationarity")
        free.append(r / sqrt(rest))
        row = [(a - r * b) / rest for a, b in zip(row, reversed(row), strict=True)]
    return free[::-1]


def filter_series(series: Sequence[float], differenced: Sequence[float], d: int, parameters: Parameters) -> Filtered:
    """Of a series of at least d + 1 points; `differenced` is `difference(series, d)`."""
    r = max(len(parameters.ar), len(parameters.ma) + 1)
    ar = [*parameters.ar, *[0.0] * (r - len(parameters.ar))]
    ma = [1.0, *parameters.ma, *[0.0] * (r - 1 - len(parameters.ma))]
    noise = [[parameters.variance * a * b for b in ma] for a in ma]
    state = _stationary_mean(ar, parameters.constant)
    cov = _stationary_covariance(ar, noise)
    if d:
        state, cov = _after_levels(series, d, ar, parameters.constant, state, cov, noise)
    total, state = _run(differenced, ar, parameters.constant, state, cov, noise)
    forecast = state[0]
    if d:
        forecast += series[-1] if d == 1 else 2 * series[-1] - series[-2]
    return Filtered(total, forecast)


def _run(
    series: Sequence[float], ar: list[float], constant: float, state: list[float], cov: list[list[float]], noise: list[list[float]]
) -> tuple[float, list[float]]:
    """The filter on an ARMA series: log likelihood, and the state predicted for the next point."""
    r = len(ar)
    total = 0.0
    count = len(series)
    inner = range(r - 1)
    settled = 0.0 if constant else SETTLED
    for t, w in enumerate(series):
        f = cov[0][0]
        if f < LEAST_VARIANCE:
            count -= 1
            w = state[0]
            state = [ar[i] * w + (state[i + 1] if i < r - 1 else 0.0) for i in range(r)]
            state[0] += constant
            cov = _predict(cov, ar, noise)
            continue
        first = cov[0]
        gain = [x / f for x in first]
        v = w - state[0]
        total += log(f) + v * v / f
        state = [*(ar[i] * w + state[i + 1] + gain[i + 1] * v for i in inner), ar[-1] * w]
        state[0] += constant
        before = cov
        cov = [
            [
                (cov[i + 1][j + 1] - gain[i + 1] * first[j + 1] if i < r - 1 and j < r - 1 else 0.0) + noise[i][j]
                for j in range(r)
            ]
            for i in range(r)
        ]
        change = sum((a - b) ** 2 for x, y in zip(cov, before, strict=True) for a, b in zip(x, y, strict=True))
        if change < settled or change <= SETTLED_RELATIVE * f * f:
            rest, state = _run_settled(series[t + 1 :], ar, constant, state, gain, f)
            return -0.5 * (total + rest + LOG_2PI * count), state
    return -0.5 * (total + LOG_2PI * count), state


def _run_settled(
    series: Sequence[float], ar: list[float], constant: float, state: list[float], gain: list[float], f: float
) -> tuple[float, list[float]]:
    """The rest of the filter, when the gain no longer changes."""
    r = len(ar)
    inner = range(r - 1)
    squares = 0.0
    for w in series:
        v = w - state[0]
        squares += v * v
        state = [*(ar[i] * w + state[i + 1] + gain[i + 1] * v for i in inner), ar[-1] * w]
        state[0] += constant
    return log(f) * len(series) + squares / f, state


def _after_levels(
    series: Sequence[float], d: int, ar: list[float], constant: float, state: list[float], cov: list[list[float]], noise: list[list[float]]
) -> tuple[list[float], list[list[float]]]:
    """State and covariance predicted for point d, after the first d points have told about the levels.

    With one level c, the first point is c + w0. With two, c1 and c2, it is c1 + c2 + w0, and the first difference c2 + w0 + w1.
    """
    r = len(ar)
    f = d * LEVEL_VARIANCE + cov[0][0]
    v = series[0] - state[0]
    if d == 1:
        state = [a + x / f * v for a, x in zip(state, cov[0], strict=True)]
        cov = [[cov[i][j] - cov[i][0] * cov[0][j] / f for j in range(r)] for i in range(r)]
        return _advance(state, ar, constant), _predict(cov, ar, noise)
    # c2 + w0 is a state of its own, in front.
    with_first = [LEVEL_VARIANCE + cov[0][0], *cov[0]]
    big = [with_first, *([with_first[i + 1], *cov[i]] for i in range(r))]
    mean = [state[0], *state]
    seen = [LEVEL_VARIANCE + cov[0][0], *cov[0]]
    mean = [a + x / f * v for a, x in zip(mean, seen, strict=True)]
    big = [[big[i][j] - seen[i] * seen[j] / f for j in range(r + 1)] for i in range(r + 1)]
    state = _advance(mean[1:], ar, constant)
    cov = _predict([row[1:] for row in big[1:]], ar, noise)
    cross = _shift(big[0][1:], ar)
    # The first difference is seen: that front state plus w1.
    v = series[1] - series[0] - (mean[0] + state[0])
    f = big[0][0] + 2 * cross[0] + cov[0][0]
    seen = [a + b for a, b in zip(cross, cov[0], strict=True)]
    state = [a + x / f * v for a, x in zip(state, seen, strict=True)]
    cov = [[cov[i][j] - seen[i] * seen[j] / f for j in range(r)] for i in range(r)]
    return _advance(state, ar, constant), _predict(cov, ar, noise)


def _shift(x: Sequence[float], ar: list[float]) -> list[float]:
    """The transition matrix times x."""
    return [a * x[0] + b for a, b in zip(ar, [*x[1:], 0.0], strict=True)]


def _advance(state: Sequence[float], ar: list[float], constant: float) -> list[float]:
    out = _shift(state, ar)
    out[0] += constant
    return out


def _predict(cov: list[list[float]], ar: list[float], noise: list[list[float]]) -> list[list[float]]:
    half = [_shift(row, ar) for row in cov]  # cov times the transposed transition
    columns = [_shift([row[j] for row in half], ar) for j in range(len(ar))]
    return [[columns[j][i] + noise[i][j] for j in range(len(ar))] for i in range(len(ar))]


def _stationary_mean(ar: list[float], constant: float) -> list[float]:
    if not constant:
        return [0.0] * len(ar)
    rest = 1 - sum(ar)
    mean = constant / rest if rest else nan
    out = [mean * sum(ar[i:]) for i in range(len(ar))]
    out[0] = mean
    return out


def _stationary_covariance(ar: list[float], noise: list[list[float]]) -> list[list[float]]:
    """P = T P T' + noise. Along the diagonals all follows from the first row of P, for which that leaves r equations."""
    r = len(ar)
    system = [[0.0] * r for _ in range(r)]
    right = [0.0] * r
    for j in range(r):
        system[j][j] += 1.0
        for k in range(r - j):
            a, b = ar[k], ar[j + k]
            system[j][0] -= a * b
            if j + k + 1 < r:
                system[j][j + k + 1] -= a
            if k + 1 < r:
                system[j][k + 1] -= b
            right[j] += noise[k][j + k]
    first = _solve(system, right)
    cov = [[0.0] * r for _ in range(r)]
    cov[0] = first
    for i in range(1, r):
        cov[i][0] = first[i]
    for i in range(r - 1, 0, -1):
        for j in range(r - 1, i - 1, -1):
            after = cov[i + 1][j + 1] if j + 1 < r and i + 1 < r else 0.0
            ends = (ar[i] * first[j + 1] if j + 1 < r else 0.0) + (ar[j] * first[i + 1] if i + 1 < r else 0.0)
            cov[i][j] = cov[j][i] = ar[i] * ar[j] * first[0] + ends + after + noise[i][j]
    return cov


def _solve(system: list[list[float]], right: list[float]) -> list[float]:
    """Gaussian elimination with row pivots; infinities where the system is singular."""
    n = len(right)
    rows = [[*row, value] for row, value in zip(system, right, strict=True)]
    for k in range(n):
        pivot = max(range(k, n), key=lambda i: abs(rows[i][k]))
        if rows[pivot][k] == 0:
            return [inf] * n
        rows[k], rows[pivot] = rows[pivot], rows[k]
        head = rows[k]
        for row in rows[k + 1 :]:
            factor = row[k] / head[k]
            if factor:
                for j in range(k, n + 1):
                    row[j] -= factor * head[j]
    out = [0.0] * n
    for k in range(n - 1, -1, -1):
        row = rows[k]
        out[k] = (row[n] - sum(row[j] * out[j] for j in range(k + 1, n))) / row[k]
    return out
