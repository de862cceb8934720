"""Limited-memory BFGS for smooth functions without bounds, gradients by forward differences.

The same steps as L-BFGS-B takes without bounds (Byrd, Lu, Nocedal, Zhu 1995; line search of Moré and Thuente 1994), because
Planner's ARIMA stops after a few iterations: where it stops is part of the prediction, not only where it would end.
"""

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from math import inf, sqrt

from controllers.planner.predict.arima.linesearch import LineSearch

__all__ = ("minimize",)

Function = Callable[[list[float]], float]

STEP = 1e-5  # of the forward differences
MEMORY = 10
EPSILON = 2.220446049250313e-16
LEAST_DECREASE = 1e7 * EPSILON
LEAST_GRADIENT = 1e-5
MOST_TRIALS = 20  # of one line search


def minimize(function: Function, start: Sequence[float], most_iterations: int) -> list[float]:
    """Where the function is least, or where the iterations ended."""
    x = list(start)
    value = function(x)
    gradient = _gradient(function, x, value)
    if _largest(gradient) <= LEAST_GRADIENT:
        return x
    memory = _Memory()
    for done in range(1, most_iterations + 1):
        found = _search(function, x, value, gradient, memory, done == 1)
        while found is None:
            if not memory.pairs:
                return x
            memory = _Memory()
            found = _search(function, x, value, gradient, memory, done == 1)
        decrease = (value - found.value) / max(abs(value), abs(found.value), 1.0)
        change = [a - b for a, b in zip(found.gradient, gradient, strict=True)]
        x, value, gradient = found.x, found.value, found.gradient
        if _largest(gradient) <= LEAST_GRADIENT or decrease <= LEAST_DECREASE:
            return x
        memory.learn(found, change)
    return x


@dataclass(slots=True)
class _Found:
    """A point that the line search accepts."""

    x: list[float]
    value: float
    gradient: list[float]
    move: list[float]  # from the point before
    slope_before: float  # along the move
    slope: float


@dataclass(slots=True)
class _Memory:
    """Pairs (move, change of gradient, their product), oldest first."""

    pairs: deque[tuple[list[float], list[float], float]] = field(default_factory=lambda: deque(maxlen=MEMORY))
    scale: float = 1.0

    def learn(self, found: _Found, change: list[float]) -> None:
        curvature = found.slope - found.slope_before
        if curvature > EPSILON * -found.slope_before:
            self.pairs.append((found.move, change, curvature))
            self.scale = curvature / _dot(change, change)

    def direction(self, gradient: list[float]) -> list[float]:
        """Two loops over the pairs: minus the gradient times the estimate of the inverse Hessian."""
        d = [-g for g in gradient]
        weights: list[float] = []
        for move, change, product in reversed(self.pairs):
            weight = _dot(move, d) / product
            weights.append(weight)
            d = [a - weight * b for a, b in zip(d, change, strict=True)]
        if self.pairs:
            d = [self.scale * a for a in d]
        for move, change, product in self.pairs:
            weight = weights.pop() - _dot(change, d) / product
            d = [a + weight * b for a, b in zip(d, move, strict=True)]
        return d


def _search(function: Function, x: list[float], value: float, gradient: list[float], memory: _Memory, is_first: bool) -> _Found | None:
    """None: no step of the direction is any good."""
    # L-BFGS-B moves towards a target, and so the direction has the rounding of the target: much where the step is short.
    direction = [(a + b) - a for a, b in zip(x, memory.direction(gradient), strict=True)]
    slope = _dot(gradient, direction)
    if not slope < 0:
        return None
    step = min(1.0 / sqrt(_dot(direction, direction)), 1e10) if is_first else 1.0
    search = LineSearch(value, slope, step)
    for _ in range(MOST_TRIALS):
        step = search.step
        at = [a + step * b for a, b in zip(x, direction, strict=True)]
        there = function(at)
        gradient_there = _gradient(function, at, there)
        slope_there = _dot(gradient_there, direction)
        if search.is_done(there, slope_there):
            move = [step * b for b in direction]
            return _Found(at, there, gradient_there, move, step * slope, step * slope_there)
    return None


def _gradient(function: Function, x: list[float], value: float) -> list[float]:
    gradient: list[float] = []
    for i, coordinate in enumerate(x):
        moved = coordinate + STEP
        x[i] = moved
        gradient.append((function(x) - value) / (moved - coordinate) if moved != coordinate else inf)
        x[i] = coordinate
    return gradient


def _dot(a: Sequence[float], b: Sequence[float]) -> float:
    return sum(x * y for x, y in zip(a, b, strict=True))


def _largest(gradient: Sequence[float]) -> float:
    return max(map(abs, gradient), default=0.0)
