"""Least squares for times of iterations: a plane with slopes that are not negative, or a line with one bend.

Planner behaviour: planner.md §14.4. Times are milliseconds. Sums over samples are numpy, the systems of two or three unknowns plain
floats.
"""

from collections.abc import Sequence
from itertools import pairwise
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
_ROUNDING = 1e-28


class Fit(NamedTuple):
    """intercept + slope·x + second·z + bend·max(0, x - knot), in milliseconds."""

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


def solve(matrix: Sequence[Sequence[float]], right: Sequence[float]) -> list[float] | None:
    """Gauss-Jordan with partial pivoting, the last of equally large pivots; None if the system is singular."""
    n = len(right)
    rows = [[*row, value] for row, value in zip(matrix, right, strict=True)]
    for column in range(n):
        best = column
        for candidate in range(column + 1, n):
            if abs(rows[candidate][column]) >= abs(rows[best][column]):
                best = candidate
        lead = rows[best]
        pivot = lead[column]
        if not abs(pivot) >= _SMALLEST_PIVOT:
            return None
        rows[best] = rows[column]
        rows[column] = lead
        for row in rows:
            if row is not lead and row[column]:
                factor = row[column] / pivot
                for after in range(column + 1, n + 1):
                    row[after] -= factor * lead[after]
    return [row[n] / row[i] for i, row in enumerate(rows)]


def _solve_ridged(matrix: Sequence[Sequence[float]], right: Sequence[float]) -> list[float] | None:
    """With a small weight against large slopes; the intercept (the first unknown) stays free."""
    extra = max(1.0, sum(abs(matrix[i][i]) for i in range(len(right)))) * _RIDGE
    ridged = [[value + extra if i == j and i else value for j, value in enumerate(row)] for i, row in enumerate(matrix)]
    return solve(ridged, right)


# Times of 1e150 ms overflow when squared; nothing that is fitted to them is finite, and so it is refused.
_QUIETLY = np.errstate(over="ignore", invalid="ignore")


@_QUIETLY
def fit_plane(columns: NDArray[np.float64]) -> Fit | None:
    """The best of the fits that use some of the features, each slope ≥ 0.

    `columns`: ones, one or two features, targets (SampleStore.columns). None if the best is flat although there are more samples than
    features: nothing can be learned from it.
    """
    features = len(columns) - 2
    used = columns[:-1]
    gram = [[0.0] * (features + 1) for _ in range(features + 1)]
    for i in range(features + 1):
        for j in range(i + 1):
            gram[i][j] = gram[j][i] = float(used[i].dot(used[j]))
    right = [float(row.dot(columns[-1])) for row in used]
    rounding = _ROUNDING * float(columns[-1].dot(columns[-1]))
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
        # Of fits that differ by rounding only, the one with fewer features: equal samples must not look like a slope.
        if total < best_sum - rounding:
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


@_QUIETLY
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
    if not weight.any():
        return None
    line, residual = _straight_line(x, y, weight)
    best, best_rss = None, inf
    for knot, moments in zip(knots, _moments_above(x, weight, residual, knots), strict=True):
        found = line.bend(knot, moments)
        # Knots below the second smallest feature give the same fit but for rounding: the smallest knot is taken then.
        if found is not None and found[1] < best_rss - (_TIE * best_rss if best_rss < inf else 0.0):
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
        start, span = log(low), log(high) - log(low)
        candidates += [exp(start + i / 9 * span) for i in range(1, 9)]
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


def _moments_above(
    x: NDArray[np.float64], weight: NDArray[np.float64], residual: NDArray[np.float64], knots: list[float]
) -> list[_Moments]:
    """Sums of each interval between knots are taken once, then carried down from knot to knot: terms are all positive, nothing cancels."""
    starts: list[int] = x.searchsorted(knots).tolist()
    counts = [end - start for start, end in pairwise([*starts, len(x)])]
    first = starts[0]
    u = x[first:] - np.repeat(knots, counts)
    terms = np.empty((5, len(u)))
    terms[0] = weight[first:]
    np.multiply(terms[0], u, out=terms[1])
    np.multiply(terms[1], u, out=terms[2])
    np.multiply(terms[0], residual[first:], out=terms[3])
    np.multiply(terms[3], u, out=terms[4])
    sums = np.add.reduceat(terms, [start - first for start in starts], axis=1).T.tolist()
    found: list[_Moments] = []
    s0 = s1 = s2 = r0 = r1 = 0.0
    above = knots[-1]
    for knot, count, (d0, d1, d2, e0, e1) in zip(reversed(knots), reversed(counts), reversed(sums), strict=True):
        gap = above - knot
        s2 += gap * (2.0 * s1 + gap * s0)
        s1 += gap * s0
        r1 += gap * r0
        if count:  # Of an empty interval reduceat gives the sample after it.
            s0, s1, s2, r0, r1 = s0 + d0, s1 + d1, s2 + d2, r0 + e0, r1 + e1
        found.append(_Moments(s1, s2, r1))
        above = knot
    found.reverse()
    return found


class _Line(NamedTuple):
    """The weighted straight line, its residual sum of squares, and sums over all samples; bends are told as corrections of it."""

    intercept: float
    slope: float
    rss: float
    w: float
    wx: float
    wxx: float
    mean: float
    spread: float

    def bend(self, knot: float, above: _Moments) -> tuple[Fit, float] | None:
        """The fit with a bend at `knot` and its weighted sum of squares; None if it cannot be told or falls somewhere."""
        across = above.uu + (knot - self.mean) * above.u
        own = above.uu - above.u * above.u / self.w - (across * across / self.spread if self.spread > 0 else 0.0)
        # A lower bound of the pivots that the elimination of the whole system would meet.
        largest = max(self.w, self.wx, self.wxx)
        if not own * self.w * self.spread >= _SMALLEST_PIVOT * 4.0 * largest * largest:
            return self._bend_ill(knot, above)
        bend = above.ur / own
        tilt = -across * bend / self.spread
        lift = -above.u * bend / self.w - tilt * self.mean
        below = self.slope + tilt
        if below >= 0 and below + bend >= 0:
            return Fit(self.intercept + lift, below, 0.0, knot, bend), max(self.rss - bend * above.ur, 0.0)
        return self._levelled(knot, above, [lift, tilt, bend])

    def _matrix(self, knot: float, above: _Moments) -> list[list[float]]:
        hx = above.uu + knot * above.u
        return [[self.w, self.wx, above.u], [self.wx, self.wxx, hx], [above.u, hx, above.uu]]

    def _bend_ill(self, knot: float, above: _Moments) -> tuple[Fit, float] | None:
        """The same from the whole system, which may need a ridge."""
        matrix = self._matrix(knot, above)
        change = solve(matrix, [0.0, 0.0, above.ur])
        if change is None:
            whole = [row[0] * self.intercept + row[1] * self.slope for row in matrix]
            whole[2] += above.ur
            ridged = _solve_ridged(matrix, whole)
            if ridged is None:
                return None
            change = [ridged[0] - self.intercept, ridged[1] - self.slope, ridged[2]]
        return self._levelled(knot, above, change)

    def _levelled(self, knot: float, above: _Moments, change: Sequence[float]) -> tuple[Fit, float] | None:
        """A part that falls by no more than the tolerance is made level; the sum of squares is that of the levelled line."""
        lift, tilt, bend = change
        below, beyond = self.slope + tilt, self.slope + tilt + bend
        if not (isfinite(lift) and below >= -_SLOPE_TOLERANCE and beyond >= -_SLOPE_TOLERANCE):
            return None
        below, beyond = max(below, 0.0), max(beyond, 0.0)
        moved = (lift, below - self.slope, beyond - below)
        rss = self.rss - 2.0 * moved[2] * above.ur
        for row, change_of in zip(self._matrix(knot, above), moved, strict=True):
            rss += change_of * sum(a * b for a, b in zip(row, moved, strict=True))
        return Fit(self.intercept + lift, below, 0.0, knot, beyond - below), max(rss, 0.0)


def _straight_line(x: NDArray[np.float64], y: NDArray[np.float64], weight: NDArray[np.float64]) -> tuple[_Line, NDArray[np.float64]]:
    """And the residual of every sample."""
    w, wx = float(np.add.reduce(weight)), float(weight.dot(x))
    mean = wx / w
    centred = x - mean
    weighted = weight * centred
    spread = float(weighted.dot(centred))
    slope = float(weighted.dot(y)) / spread if spread > 0 else 0.0
    level = float(weight.dot(y)) / w
    residual = y - level
    residual -= slope * centred
    rss = float((weight * residual).dot(residual))
    return _Line(level - slope * mean, slope, rss, w, wx, spread + wx * mean, mean, spread), residual
