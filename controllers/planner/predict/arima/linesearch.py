"""Step length along a descent direction: sufficient decrease and curvature, after Moré and Thuente (1994)."""

from dataclasses import dataclass
from math import sqrt

__all__ = ("LineSearch",)

DECREASE = 1e-3
CURVATURE = 0.9
WIDTH = 0.1  # relative, of an interval too small to go on with
LONGEST = 1e10


@dataclass(slots=True)
class _Point:
    """Step, value and slope there."""

    step: float
    value: float
    slope: float

    def tilted(self, slope: float) -> "_Point":
        """Of the function minus the line of that slope."""
        return _Point(self.step, self.value - self.step * slope, self.slope - slope)


class LineSearch:
    """Ask for the value and slope at `step` and tell `is_done`, until it is."""

    def __init__(self, value: float, slope: float, step: float) -> None:
        self.step = step
        self._value, self._slope = value, slope
        self._best = _Point(0.0, value, slope)
        self._other = _Point(0.0, value, slope)
        self._is_bracketed = False
        self._needs_decrease = True
        self._width, self._width_before = LONGEST, 2 * LONGEST
        self._least, self._most = 0.0, 5 * step

    def is_done(self, value: float, slope: float) -> bool:
        """True: the step is accepted, or no better can be had. Else `step` is the next to try."""
        needed = DECREASE * self._slope
        limit = self._value + self.step * needed
        if self._needs_decrease and value <= limit and slope >= 0:
            self._needs_decrease = False
        if self._is_over(value, slope, limit, needed):
            return True
        here = _Point(self.step, value, slope)
        if self._needs_decrease and value <= self._best.value and value > limit:
            self._best, self._other = self._best.tilted(needed), self._other.tilted(needed)
            self._narrow(here.tilted(needed))
            self._best, self._other = self._best.tilted(-needed), self._other.tilted(-needed)
        else:
            self._narrow(here)
        self._choose()
        return False

    def _is_over(self, value: float, slope: float, limit: float, needed: float) -> bool:
        step = self.step
        if self._is_bracketed and (step <= self._least or step >= self._most or self._most - self._least <= WIDTH * self._most):
            return True
        if step == LONGEST and value <= limit and slope <= needed:
            return True
        if step == 0.0 and (value > limit or slope >= needed):
            return True
        return value <= limit and abs(slope) <= CURVATURE * -self._slope

    def _choose(self) -> None:
        best, other = self._best.step, self._other.step
        if self._is_bracketed:
            if abs(other - best) >= 0.66 * self._width_before:
                self.step = best + 0.5 * (other - best)
            self._width_before, self._width = self._width, abs(other - best)
            self._least, self._most = min(best, other), max(best, other)
        else:
            self._least = self.step + 1.1 * (self.step - best)
            self._most = self.step + 4.0 * (self.step - best)
        self.step = min(max(self.step, 0.0), LONGEST)
        is_stuck = self.step <= self._least or self.step >= self._most or self._most - self._least <= WIDTH * self._most
        if self._is_bracketed and is_stuck:
            self.step = best

    def _narrow(self, here: _Point) -> None:
        """One safeguarded step by cubic or quadratic interpolation; keeps the best point and the other end of the interval."""
        best, other = self._best, self._other
        same_sign = (here.slope < 0) == (best.slope < 0) or not here.slope or not best.slope
        if here.value > best.value:
            step = _between_higher(best, here)
            self._is_bracketed = True
        elif not same_sign:
            step = _between_signs(best, here)
            self._is_bracketed = True
        elif abs(here.slope) < abs(best.slope):
            step = self._beyond(best, here)
        elif self._is_bracketed:
            step = _cubic_to_other(here, other)
        else:
            step = self._most if here.step > best.step else self._least
        if here.value > best.value:
            self._other = here
        else:
            if not same_sign:
                self._other = best
            self._best = here
        self.step = step

    def _beyond(self, best: _Point, here: _Point) -> float:
        """The slope flattens without a change of sign: the cubic may have no minimum in this direction."""
        theta, gamma = _cubic(best, here)
        if here.step > best.step:
            gamma = -gamma
        p = (gamma - here.slope) + theta
        q = (gamma + (best.slope - here.slope)) + gamma
        ratio = p / q if q else 0.0
        if ratio < 0 and gamma != 0:
            cubic = here.step + ratio * (best.step - here.step)
        else:
            cubic = self._most if here.step > best.step else self._least
        secant = here.step + here.slope / (here.slope - best.slope) * (best.step - here.step)
        is_cubic_closer = abs(cubic - here.step) < abs(secant - here.step)
        if not self._is_bracketed:
            step = secant if is_cubic_closer else cubic
            return min(max(step, self._least), self._most)
        step = cubic if is_cubic_closer else secant
        bound = here.step + 0.66 * (self._other.step - here.step)
        return min(bound, step) if here.step > best.step else max(bound, step)


def _cubic(a: _Point, b: _Point) -> tuple[float, float]:
    """Coefficients of the cubic through both points: theta and the (positive) root gamma."""
    theta = 3.0 * (a.value - b.value) / (b.step - a.step) + a.slope + b.slope
    s = max(abs(theta), abs(a.slope), abs(b.slope))
    return theta, s * sqrt(max(0.0, (theta / s) ** 2 - (a.slope / s) * (b.slope / s))) if s else 0.0


def _between_higher(best: _Point, here: _Point) -> float:
    theta, gamma = _cubic(best, here)
    if here.step < best.step:
        gamma = -gamma
    r = ((gamma - best.slope) + theta) / (((gamma - best.slope) + gamma) + here.slope)
    cubic = best.step + r * (here.step - best.step)
    slope = (best.value - here.value) / (here.step - best.step) + best.slope
    quadratic = best.step + best.slope / slope / 2.0 * (here.step - best.step)
    if abs(cubic - best.step) < abs(quadratic - best.step):
        return cubic
    return cubic + (quadratic - cubic) / 2.0


def _between_signs(best: _Point, here: _Point) -> float:
    theta, gamma = _cubic(best, here)
    if here.step > best.step:
        gamma = -gamma
    r = ((gamma - here.slope) + theta) / (((gamma - here.slope) + gamma) + best.slope)
    cubic = here.step + r * (best.step - here.step)
    secant = here.step + here.slope / (here.slope - best.slope) * (best.step - here.step)
    return cubic if abs(cubic - here.step) > abs(secant - here.step) else secant


def _cubic_to_other(here: _Point, other: _Point) -> float:
    theta, gamma = _cubic(here, other)
    if here.step > other.step:
        gamma = -gamma
    p = (gamma - here.slope) + theta
    q = ((gamma - here.slope) + gamma) + other.slope
    return here.step + p / q * (other.step - here.step)
