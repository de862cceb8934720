"""Delays drawn from distributions, written as text: `2s`, `uniform(1s, 3s)`, `exponential(5s)`, `lognormal(30s, 0.5)`."""

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from random import Random
from typing import Literal

from api.duration import DurationError, parse_duration

__all__ = ("ZERO", "Delay", "DelayError", "parse_delay")

FORM = re.compile(r"\s*([a-z]+)\s*\(([^()]*)\)\s*")
LONGEST_S = 30 * 86400.0
MAX_SIGMA = 5.0

Form = Literal["constant", "uniform", "exponential", "lognormal"]


class DelayError(ValueError):
    """A text is not a delay. The message says what is."""


@dataclass(frozen=True, slots=True)
class Delay:
    """Seconds. Parameters of constant: (value,), uniform: (from, to), exponential: (mean,), lognormal: (median, sigma of the log)."""

    form: Form = "constant"
    parameters: tuple[float, ...] = (0.0,)

    @property
    def is_random(self) -> bool:
        return self.form != "constant"

    def draw(self, rng: Random) -> float:
        """Seconds, at least 0 and at most 30 days. A constant draws nothing."""
        return min(LONGEST_S, DRAW[self.form](rng, self.parameters)) if self.is_random else self.parameters[0]


ZERO = Delay()

DRAW: Mapping[Form, Callable[[Random, tuple[float, ...]], float]] = {
    "uniform": lambda rng, p: rng.uniform(p[0], p[1]),
    "exponential": lambda rng, p: rng.expovariate(1.0 / p[0]) if p[0] > 0 else 0.0,
    "lognormal": lambda rng, p: rng.lognormvariate(math.log(p[0]), p[1]) if p[0] > 0 else 0.0,
}


def parse_delay(text: str) -> Delay:
    """The distribution that a text means. Raises DelayError."""
    form = FORM.fullmatch(text)
    if form is None:
        return Delay("constant", (_seconds(text),))
    name, parts = form[1], [part.strip() for part in form[2].split(",")]
    match name, parts:
        case "constant", [value]:
            return Delay("constant", (_seconds(value),))
        case "uniform", [low, high]:
            bounds = _seconds(low), _seconds(high)
            if bounds[0] > bounds[1]:
                raise DelayError(f"{text!r}: the first bound is above the second")
            return Delay("uniform", bounds)
        case "exponential", [mean]:
            return Delay("exponential", (_seconds(mean),))
        case "lognormal", [median, sigma]:
            return Delay("lognormal", (_seconds(median), _sigma(sigma)))
        case _:
            pass
    raise DelayError(f"{text!r} is not a delay; write 2s, uniform(1s, 3s), exponential(5s) or lognormal(30s, 0.5)")


def _seconds(text: str) -> float:
    try:
        seconds = parse_duration(text.strip()) / 1e9
    except DurationError as error:
        raise DelayError(str(error)) from error
    if not 0 <= seconds <= LONGEST_S:
        raise DelayError(f"{text!r}: a delay is between 0s and 720h")
    return seconds


def _sigma(text: str) -> float:
    try:
        sigma = float(text)
    except ValueError:
        sigma = -1.0
    if not 0 <= sigma <= MAX_SIGMA:
        raise DelayError(f"{text!r}: sigma is a number between 0 and {MAX_SIGMA:g}")
    return sigma
