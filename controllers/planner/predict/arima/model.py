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
    """w[t] = constant + sum ar[i] w[t-1-i] + e[t] + sum ma[j] e[t-1-j], e of that variance, w the series after d differences.

    A constant of None is 0 and not estimated.
    """

    constant: float | None
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
    return Parameters(free[0] if at else None, ar, ma, free[-1] * free[-1])


def to_free(parameters: Parameters) -> list[float]:
    """Inverse of `to_parameters`. ArimaError where there is none: on the edge of stationarity."""
    constant = [] if parameters.constant is None else [parameters.constant]
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


@dataclass(slots=True)
class _Filter:
    """What the filter knows before a point: mean and covariance of the state. Lists are replaced, never changed."""

    ar: list[float]
    constant: float
    noise: list[list[float]]
    mean: list[float]
    cov: list[list[float]]
    settled: float  # changes of the covariance, squared and summed, below which it is kept
    log_likelihood: float = 0.0


def filter_series(series: Sequence[float], differenced: Sequence[float], d: int, parameters: Parameters) -> Filtered:
    """Of a series of at least d + 1 points; `differenced` is `difference(series, d)`."""
    r = max(len(parameters.ar), len(parameters.ma) + 1)
    ar = [*parameters.ar, *[0.0] * (r - len(parameters.ar))]
    ma = [1.0, *parameters.ma, *[0.0] * (r - 1 - len(parameters.ma))]
    noise = [[parameters.variance * a * b for b in ma] for a in ma]
    constant = parameters.constant or 0.0
    settled = SETTLED if parameters.constant is None else 0.0
    state = _Filter(ar, constant, noise, _stationary_mean(ar, constant), _stationary_covariance(ar, noise), settled)
    if not d:
        _run(state, differenced)
        return Filtered(state.log_likelihood, state.mean[0])
    gone, forecast = _through_levels(state, series, d)
    if gone < len(series):
        _run(state, differenced[gone - d :])
        forecast = state.mean[0] + (series[-1] if d == 1 else 2 * series[-1] - series[-2])
    return Filtered(state.log_likelihood, forecast)


def _run(state: _Filter, series: Sequence[float]) -> None:
    """The filter on an ARMA series."""
    ar, constant, noise, mean, cov = state.ar, state.constant, state.noise, state.mean, state.cov
    r = len(ar)
    total = 0.0
    count = len(series)
    inner = range(r - 1)
    for t, w in enumerate(series):
        f = cov[0][0]
        if f < LEAST_VARIANCE:
            count -= 1
            mean = _shift(mean, ar)
            mean[0] += constant
            cov = _predict(cov, ar, noise)
            continue
        first = cov[0]
        gain = [x / f for x in first]
        v = w - mean[0]
        total += log(f) + v * v / f
        mean = [*(ar[i] * w + mean[i + 1] + gain[i + 1] * v for i in inner), ar[-1] * w]
        mean[0] += constant
        before = cov
        # An exact point leaves nothing in the first row, so prediction only shifts the rest.
        cov = [[*(cov[i + 1][j + 1] - gain[i + 1] * first[j + 1] + noise[i][j] for j in inner), noise[i][-1]] for i in inner]
        cov.append(noise[-1])
        change = _change(cov, before)
        if change < state.settled or change <= SETTLED_RELATIVE * f * f:
            rest, mean = _run_settled(series[t + 1 :], ar, constant, mean, ([x / f for x in cov[0]], gain), f)
            total += rest
            break
    state.mean, state.cov = mean, cov
    state.log_likelihood -= 0.5 * (total + LOG_2PI * count)


def _change(a: list[list[float]], b: list[list[float]]) -> float:
    return sum((x - y) ** 2 for row, other in zip(a, b, strict=True) for x, y in zip(row, other, strict=True))


def _run_settled(
    series: Sequence[float], ar: list[float], constant: float, state: list[float], gains: tuple[list[float], list[float]], f: float
) -> tuple[float, list[float]]:
    """The rest of the filter, when the gain no longer changes: that of the next point, then that of the point before, for good."""
    r = len(ar)
    if r <= 3:
        return _run_settled_short(series, ar, constant, state, gains, f)
    inner = range(r - 1)
    squares = 0.0
    gain, after = gains
    for w in series:
        v = w - state[0]
        squares += v * v
        state = [*(ar[i] * w + state[i + 1] + gain[i + 1] * v for i in inner), ar[-1] * w]
        state[0] += constant
        gain = after
    return log(f) * len(series) + squares / f, state


def _run_settled_short(
    series: Sequence[float], ar: list[float], constant: float, state: list[float], gains: tuple[list[float], list[float]], f: float
) -> tuple[float, list[float]]:
    """As `_run_settled` for up to three states, without lists: most of the time of a fit is spent here."""
    r = len(ar)
    a0, a1, a2 = (*ar, 0.0, 0.0)[:3]
    x0, x1, x2 = (*state, 0.0, 0.0)[:3]
    _, g1, g2 = (*gains[0], 0.0, 0.0)[:3]
    _, after1, after2 = (*gains[1], 0.0, 0.0)[:3]
    squares = 0.0
    for w in series:
        v = w - x0
        squares += v * v
        x0, x1, x2 = a0 * w + x1 + g1 * v + constant, a1 * w + x2 + g2 * v, a2 * w
        g1, g2 = after1, after2
    return log(f) * len(series) + squares / f, [x0, x1, x2][:r]


def _through_levels(state: _Filter, series: Sequence[float], d: int) -> tuple[int, float]:
    """The filter with the d levels in the state, until they are known: how many points that took, and the mean of the next.

    Rounding matters here: next to 1e6 it is 1e-10, which is much for a series of logarithms and decides where a fit that stops
    early ends. So the steps are those of the textbook, in its order, though shorter ones exist; and where the covariance then
    happens to have settled, rounding and all, the whole series is gone through. Where rounding leaves no variance to a point, it
    carries no news and the levels take as many points more.
    """
    ar, k = state.ar, d + 1
    size = d + len(ar)
    mean = [*[0.0] * d, *state.mean]
    wide = [[LEVEL_VARIANCE if i == j else 0.0 for j in range(size)] for i in range(d)]
    wide += [[*[0.0] * d, *row] for row in state.cov]
    end = _wide_steps(state, d)
    for t, y in enumerate(series):
        if t == end:
            break
        seen = [sum(row[:k]) for row in wide]
        f = sum(seen[:k])
        is_news = not f < LEAST_VARIANCE
        v = y - sum(mean[:k])
        inverse = 1 / f if is_news else 0.0
        if is_news and t >= d:
            state.log_likelihood -= 0.5 * (log(f) + v * v * inverse + LOG_2PI)
        mean = _through(d, [a + b * (inverse * v) for a, b in zip(mean, seen, strict=True)], ar)
        mean[d] += state.constant
        before = wide
        wide = _predict_wide(wide, seen, inverse, state, d)
        if not is_news:
            end = t + 1 + _wide_steps(state, d)
        elif t and _change(wide, before) < state.settled:
            return len(series), _run_wide(state, series[t + 1 :], d, mean, ([sum(row[:k]) for row in wide], seen), f)
    state.mean, state.cov = mean[d:], [row[d:] for row in wide[d:]]
    return min(end, len(series)), sum(mean[:k])


def _predict_wide(wide: list[list[float]], seen: list[float], inverse: float, state: _Filter, d: int) -> list[list[float]]:
    """Covariance before the next point, levels first."""
    size = len(wide)
    gain = [sum(x * inverse for x in row[: d + 1]) for row in wide]
    half = [_through(d, [row[j] - g * seen[j] for row, g in zip(wide, gain, strict=True)], state.ar) for j in range(size)]
    out = [_through(d, [column[i] for column in half], state.ar) for i in range(size)]
    for row, noise in zip(out[d:], state.noise, strict=True):
        row[d:] = [a + b for a, b in zip(row[d:], noise, strict=True)]
    return [[0.5 * (out[i][j] + out[j][i]) for j in range(size)] for i in range(size)]


def _run_wide(state: _Filter, series: Sequence[float], d: int, mean: list[float], seens: tuple[list[float], ...], f: float) -> float:
    """As `_run_settled`, with levels in the state: the forecast."""
    squares = 0.0
    seen, after = seens
    for y in series:
        v = y - sum(mean[: d + 1])
        squares += v * v
        mean = _through(d, [a + b * (v / f) for a, b in zip(mean, seen, strict=True)], state.ar)
        seen = after
    state.log_likelihood -= 0.5 * ((log(f) + LOG_2PI) * len(series) + squares / f)
    return sum(mean[: d + 1])


def _wide_steps(state: _Filter, d: int) -> int:
    """Points after which nothing of the levels' variance is left, not even by rounding, and none of it decides what has settled."""
    return 2 * d + (len(state.ar) + 1 if state.settled else 0)


def _through(d: int, x: Sequence[float], ar: list[float]) -> list[float]:
    """The transition matrix with d levels times x: every level adds up those after it and the first ARMA state."""
    return [*(sum(x[i : d + 1]) for i in range(d)), *_shift(x[d:], ar)]


def _shift(x: Sequence[float], ar: list[float]) -> list[float]:
    """The transition matrix times x."""
    return [a * x[0] + b for a, b in zip(ar, [*x[1:], 0.0], strict=True)]


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
