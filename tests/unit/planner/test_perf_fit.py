"""Fits: planes with slopes that do not fall, lines with a bend, and what is too little to fit."""

from collections.abc import Callable
from math import isfinite

import numpy as np
import pytest

from controllers.planner.perfmodel.fit import Fit, fit_bent_line, fit_plane, solve


def _columns(*rows: list[float]) -> np.ndarray:
    return np.array([[1.0] * len(rows[0]), *rows])


def test_solve_needs_row_exchange() -> None:
    assert solve([[0.0, 1.0], [2.0, 0.0]], [3.0, 4.0]) == [2.0, 3.0]


def test_solve_refuses_singular() -> None:
    assert solve([[1.0, 2.0], [2.0, 4.0]], [1.0, 2.0]) is None


def test_plane_finds_both_slopes() -> None:
    x, z = [1.0, 4.0, 2.0, 7.0], [10.0, 5.0, 80.0, 30.0]
    fit = fit_plane(_columns(x, z, [3 + 2 * a + 0.5 * b for a, b in zip(x, z, strict=True)]))
    assert fit is not None
    assert (fit.intercept, fit.slope, fit.second) == (pytest.approx(3), pytest.approx(2), pytest.approx(0.5))


@pytest.mark.parametrize("fit", [fit_plane, fit_bent_line])
@pytest.mark.parametrize("huge", [1e150, 1e160, 1e300])
def test_times_beyond_all_bounds_fit_nothing_that_is_not_finite(fit: Callable[[np.ndarray], Fit | None], huge: float) -> None:
    for times in ([1.0, 2.0, huge, 4.0, 5.0], [huge] * 5, [huge, 2 * huge, 3 * huge, 4 * huge, 5 * huge]):
        found = fit(_columns([1.0, 2.0, 3.0, 4.0, 5.0], times))
        assert found is None or all(isfinite(number) for number in (found.intercept, found.slope, found.second))


def test_plane_drops_the_feature_that_would_fall() -> None:
    x, z = [1.0, 4.0, 2.0, 7.0], [10.0, 5.0, 80.0, 30.0]
    fit = fit_plane(_columns(x, z, [30 + 2 * a - 0.1 * b for a, b in zip(x, z, strict=True)]))
    assert fit is not None
    assert fit.second == 0.0
    assert fit.slope > 0


def test_plane_of_collinear_features_uses_the_first() -> None:
    x = [1.0, 3.0, 6.0, 9.0]
    fit = fit_plane(_columns(x, [3000 * a for a in x], [6 + 0.2 * a for a in x]))
    assert fit is not None
    assert fit.second == 0.0
    assert fit.slope == pytest.approx(0.2)


@pytest.mark.parametrize("samples", [2, 3], ids=["as many samples as features", "one more"])
def test_flat_plane_counts_only_while_samples_are_few(samples: int) -> None:
    fit = fit_plane(_columns([1.0, 2.0, 3.0][:samples], [5.0, 5.0, 5.0][:samples], [10.0] * samples))
    assert (fit is None) is (samples == 3)


def test_equal_samples_tell_nothing() -> None:
    assert fit_plane(_columns([1000.0] * 69, [100000.012] * 69)) is None


def test_bent_line_finds_the_knot() -> None:
    x = [float(v) for v in range(100, 1200, 100)]
    knot = x[2 * (len(x) - 1) // 5]
    fit = fit_bent_line(_columns(x, [30 + 0.01 * v + 0.05 * max(0.0, v - knot) for v in x]))
    assert fit is not None
    assert fit.knot == knot
    assert (fit.slope, fit.bend) == (pytest.approx(0.01), pytest.approx(0.05))


def test_bent_line_weighs_relative_errors() -> None:
    """A slow sample with a large absolute error must not spoil the fit of the quick ones."""
    x = [100.0, 200.0, 300.0, 400.0, 500.0, 10000.0]
    fit = fit_bent_line(_columns(x, [30.0, 35.0, 40.0, 45.0, 50.0, 900.0]))
    assert fit is not None
    assert fit.predict_ms(300.0) == pytest.approx(40.0, rel=1e-3)


@pytest.mark.parametrize(
    ("x", "y"),
    [([1.0, 1.0, 2.0, 2.0], [5.0, 5.0, 6.0, 6.0]), ([1.0, 2.0, 3.0, 4.0], [90.0, 70.0, 50.0, 30.0])],
    ids=["two lengths", "falls"],
)
def test_no_bent_line(x: list[float], y: list[float]) -> None:
    assert fit_bent_line(_columns(x, y)) is None


def test_bend_that_falls_within_tolerance_is_levelled() -> None:
    x = [float(v) for v in range(1000, 9000, 1000)]
    fit = fit_bent_line(_columns(x, [1e-3 - 1e-9 * v for v in x]))
    assert fit is not None
    assert (fit.slope, fit.slope + fit.bend) == (0.0, 0.0)


def test_moments_are_exact_far_from_the_origin() -> None:
    """Knots near the upper end leave small distances: sums of them must not be differences of large numbers."""
    x = [1e6 + v for v in (0.0, 1.0, 2.0, 3.0, 4.0, 5.0)]
    fit = fit_bent_line(_columns(x, [100.0 + (v - 1e6) + 3 * max(0.0, v - 1e6 - 2) for v in x]))
    assert fit is not None
    assert fit.predict_ms(1e6 + 4) == pytest.approx(110.0, rel=1e-6)


def test_time_is_never_zero() -> None:
    assert Fit(-5.0, 0.1).predict_ms(1.0) == 1e-6
