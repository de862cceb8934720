"""Least squares for times of iterations: a plane with slopes that are not negative, or a line with one bend.

Planner behaviour: planner.md §14.4. Times are milliseconds. Sums over samples are numpy, the systems of two or three unknowns plain
floats.
"""

from math import exp, inf, isfinite, log
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = ("Fit", "fit_bent_line", "fit_plane", "solve")

_SMALLEST_PIVOT = 1e-12
_RIDGE = 1e-9
_SLOPE_TOLERANCE = 1e-6
_WEIGHT_FLOOR_MS = 25.0
_SMALLEST_TIME_MS = 1e-6
_TIE = 1e-12


class Fit(NamedTuple):
    """intercept + slope·x + second·z + bend·max(0, x − knot), in milliseconds."""

    intercept: float
    slope: float
    second: float = 0.0
    knot: float = 0.0
    bend: float = 0.0

    def predict_ms(self, x: float, z: float = 0.0) -> float:
        value = self.intercept + self.slope * x + self.second * z
        if self.bend and x > self.knot:
            value += self.bend * (x - self.knot)
        return value if value > _SMALLEST_TIME_MS else _SMALLEST_TIME_MS


def solve(matrix: list[list[float]], right: list[float]) -> list[float] | None:
    """Gauss-Jordan with partial pivoting, the last of equally large pivots; None if the system is singular."""
    n = len(right)
    rows = [[*row, value] for row, value in zip(matrix, right, strict=True)]
    for column in range(n):
        best = column
        for candidate in range(column + 1, n):
            if abs(rows[candidate][column]) >= abs(rows[best][column]):
                best = candidate
        pivot = rows[best][column]
        if not abs(pivot) >= _SMALLEST_PIVOT:
            return None
        rows[column], rows[best] = rows[best], rows[column]
        lead = [value / pivot for value in rows[column]]
        rows[column] = lead
        for other in range(n):
            factor = rows[other][column]
            if other != column and factor:
                rows[other] = [a - factor * b for a, b in zip(rows[other], lead, strict=True)]
    return [row[n] for row in rows]


def _solve_ridged(matrix: list[list[float]], right: list[float]) -> list[float] | None:
    """With a small weight against large slopes; the intercept (the first unknown) stays free."""
    extra = max(1.0, sum(abs(matrix[i][i]) for i in range(len(right)))) * _RIDGE
    ridged = [[value + extra if i == j and i else value for j, value in enumerate(row)] for i, row in enumerate(matrix)]
    return solve(ridged, right)


def fit_plane(columns: NDArray[np.float64]) -> Fit | None:
    """The best of the fits that use some of the features, each slope ≥ 0.

    `columns`: ones, one or two features, targets (SampleStore.columns). None if the best is flat although there are more samples than
    features: nothing can be learned from it.
    """
    features = len(columns) - 2
    used = columns[:-1]
    gram = [[float(used[i].dot(used[j])) for j in range(features + 1)] for i in range(features + 1)]
    right = [float(row.dot(columns[-1])) for row in used]
    best, best_sum = None, inf
    for mask in range(1 << features):
        unknowns = [0, *(1 + i for i in range(features) if mask >> i & 1)]
        fitted = _fit_subset(gram, right, unknowns, features)
        if fitted is None:
            continue
        residual = columns[-1] - fitted[0]
        for axis in unknowns[1:]:
            residual -= fitted[axis] * columns[axis]
        total = float(residual.dot(residual))
        if total < best_sum:
            best, best_sum = fitted, total
    if best is None or (columns.shape[1] > features and not any(slope > 0 for slope in best[1:])):
        return None
    return Fit(*best)


def _fit_subset(gram: list[list[float]], right: list[float], unknowns: list[int], features: int) -> list[float] | None:
    matrix = [[gram[i][j] for j in unknowns] for i in unknowns]
    values = [right[i] for i in unknowns]
    solved = solve(matrix, values) or _solve_ridged(matrix, values)
    if solved is None or not all(map(isfinite, solved)) or any(slope < 0 for slope in solved[1:]):
        return None
    full = [0.0] * (features + 1)
    for index, value in zip(unknowns, solved, strict=True):
        full[index] = value
    return full


def fit_bent_line(columns: NDArray[np.float64]) -> Fit | None:
    """A line with one bend, relative errors weighing the same; None if no knot gives one that does not fall.

    `columns`: ones, the feature (ascending), targets.
    """
    x, y = columns[1], columns[2]
    knots = _knots(x)
    if not knots:
        return None
    weight = 1.0 / np.maximum(y, _WEIGHT_FLOOR_MS)
    weight *= weight
    sums = _Sums.of(x, y, weight)
    best, best_rss = None, inf
    for knot, moments in zip(knots, _moments_above(x, weight, sums.residual(x, y), knots), strict=True):
        found = sums.bend(knot, moments)
        # Knots below the second smallest feature give the same fit but for rounding: the smallest knot is taken then.
        if found is not None and found[1] < best_rss - _TIE * abs(best_rss if best_rss < inf else 0.0):
            best, best_rss = found
    return best


def _knots(x: NDArray[np.float64]) -> list[float]:
    """Where the line may bend, ascending: quintiles of the distinct values, and steps of equal ratio."""
    starts = np.flatnonzero(x[1:] != x[:-1])
    m = len(starts) + 1
    if m < 3:
        return []
    low, high = float(x[0]), float(x[-1])
    candidates = [float(x[starts[at - 1] + 1]) if (at := j * (m - 1) // 5) else low for j in range(1, 5)]
    if low > 0:
        span = log(high) - log(low)
        candidates += [exp(log(low) + i / 9 * span) for i in range(1, 9)]
    knots: list[float] = []
    for knot in sorted(candidates):
        if low < knot < high and not (knots and knot - knots[-1] <= _RIDGE * max(1.0, abs(knot))):
            knots.append(knot)
    return knots


class _Moments(NamedTuple):
    """Weighted sums over the samples above a knot, u the distance to it and r the residual of the straight line: u, u², u·r."""

    u: float
    uu: float
    ur: float


def _moments_above(x: NDArray[np.float64], weight: NDArray[np.float64], residual: NDArray[np.float64], knots: list[float]) -> list[_Moments]:
    """Sums of each interval between knots are taken once, then carried down from knot to knot: terms are all positive, nothing cancels."""
    starts = x.searchsorted(knots)
    counts = np.append(starts[1:], len(x)) - starts
    first = int(starts[0])
    u = x[first:] - np.repeat(knots, counts)
    w = weight[first:]
    terms = np.empty((5, len(u)))
    terms[0] = w
    np.multiply(w, u, out=terms[1])
    np.multiply(terms[1], u, out=terms[2])
    np.multiply(w, residual[first:], out=terms[3])
    np.multiply(terms[3], u, out=terms[4])
    # Of an empty interval reduceat gives the sample after it.
    sums = np.add.reduceat(terms, starts - first, axis=1) * (counts > 0)
    found: list[_Moments] = []
    s0 = s1 = s2 = r0 = r1 = 0.0
    above = knots[-1]
    for knot, (d0, d1, d2, e0, e1) in zip(reversed(knots), reversed(sums.T.tolist()), strict=True):
        gap = above - knot
        s2 += gap * (2.0 * s1 + gap * s0) + d2
        s1 += gap * s0 + d1
        s0 += d0
        r1 += gap * r0 + e1
        r0 += e0
        found.append(_Moments(s1, s2, r1))
        above = knot
    found.reverse()
    return found


class _Sums(NamedTuple):
    """Weighted sums over all samples and the straight line, from which bends are told as corrections."""

    w: float
    wx: float
    wxx: float
    intercept: float
    slope: float
    wr: float
    wxr: float
    wrr: float

    @classmethod
    def of(cls, x: NDArray[np.float64], y: NDArray[np.float64], weight: NDArray[np.float64]) -> "_Sums":
        weighted_x = weight * x
        w, wx, wxx = float(weight.sum()), float(weighted_x.sum()), float(weighted_x.dot(x))
        centre = x - wx / w
        weighted = weight * centre
        spread = float(weighted.dot(centre))
        slope = float(weighted.dot(y)) / spread if spread > 0 else 0.0
        intercept = float(weight.dot(y)) / w - slope * (wx / w)
        residual = y - intercept - slope * x
        weighted_residual = weight * residual
        return cls(
            w, wx, wxx, intercept, slope, float(weighted_residual.sum()), float(weighted_residual.dot(x)), float(weighted_residual.dot(residual))
        )

    def residual(self, x: NDArray[np.float64], y: NDArray[np.float64]) -> NDArray[np.float64]:
        return y - self.intercept - self.slope * x

    def bend(self, knot: float, above: _Moments) -> tuple[Fit, float] | None:
        """The fit with a bend at `knot` and its weighted sum of squares; None if it cannot be told or falls somewhere."""
        hx = above.uu + knot * above.u
        matrix = [[self.w, self.wx, above.u], [self.wx, self.wxx, hx], [above.u, hx, above.uu]]
        right = [self.wr, self.wxr, above.ur]
        change = solve(matrix, right)
        if change is None:
            line = (self.intercept, self.slope)
            whole = [value + row[0] * line[0] + row[1] * line[1] for row, value in zip(matrix, right, strict=True)]
            ridged = _solve_ridged(matrix, whole)
            if ridged is None:
                return None
            change = [ridged[0] - line[0], ridged[1] - line[1], ridged[2]]
        slope, bend = self.slope + change[1], change[2]
        if not (isfinite(change[0]) and slope >= -_SLOPE_TOLERANCE and slope + bend >= -_SLOPE_TOLERANCE):
            return None
        rss = self.wrr
        for row, value, c in zip(matrix, right, change, strict=True):
            rss += c * (sum(a * b for a, b in zip(row, change, strict=True)) - 2.0 * value)
        return Fit(self.intercept + change[0], slope, 0.0, knot, bend), max(rss, 0.0)
