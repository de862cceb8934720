"""Quantities and durations: exact, in agreement with fractions, and refusing anything else by name."""

import re
from datetime import timedelta
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from api.duration import DurationError, canonical_duration, format_duration, parse_duration, timedelta_of
from api.quantity import QuantityError, compare, milli, nano, units

DECIMAL = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
BINARY = {s: 1024 ** (i + 1) for i, s in enumerate(("Ki", "Mi", "Gi", "Ti", "Pi", "Ei"))}
FACTORS = {**{s: Fraction(10) ** e for s, e in DECIMAL.items()}, **{s: Fraction(f) for s, f in BINARY.items()}}
MOST = 2**63 - 1

numbers = st.from_regex(r"[+-]?([0-9]{1,12}(\.[0-9]{0,12})?|\.[0-9]{1,12})", fullmatch=True)
suffixes = st.one_of(
    st.sampled_from(sorted(FACTORS)), st.integers(-20, 20).map(lambda n: f"e{n}"), st.integers(0, 20).map(lambda n: f"E+{n}")
)


def exact(number: str, suffix: str) -> Fraction:
    factor = FACTORS[suffix] if suffix in FACTORS else Fraction(10) ** int(suffix[1:])
    digits = number.lstrip("+-")
    value = Fraction(digits + "0" if digits.endswith(".") else f"0{digits}") * factor
    return -value if number.startswith("-") else value


def away_from_zero(value: Fraction) -> int:
    up = -(-abs(value).numerator // value.denominator)
    return up if value >= 0 else -up


@given(numbers, suffixes)
def test_quantities_are_exact_fractions_rounded_away_from_zero(number: str, suffix: str) -> None:
    value = exact(number, suffix)
    value = max(min(value, Fraction(MOST)), Fraction(-MOST))
    in_nano = away_from_zero(value * 10**9)
    assert nano(number + suffix) == in_nano
    assert milli(number + suffix) == away_from_zero(Fraction(in_nano, 10**6))
    assert units(number + suffix) == away_from_zero(Fraction(in_nano, 10**9))


@given(numbers, suffixes, numbers, suffixes)
def test_order_is_that_of_amounts(a: str, x: str, b: str, y: str) -> None:
    expected = (nano(a + x) > nano(b + y)) - (nano(a + x) < nano(b + y))
    assert compare(a + x, b + y) == expected == -compare(b + y, a + x)


@pytest.mark.parametrize(
    ("a", "b"), [("1", "1000m"), ("1Gi", "1073741824"), ("1.5Gi", "1536Mi"), ("2e3", "2k"), (0.5, "500m"), (4, "4"), ("1E", "1e18")]
)
def test_different_notations_of_one_amount(a: str | float, b: str) -> None:
    assert compare(a, b) == 0


@pytest.mark.parametrize(
    ("text", "value"), [("100m", 100), ("1", 1000), ("0.1m", 1), ("-0.1m", -1), ("1.0001", 1001), ("1Ki", 1_024_000), ("0", 0), (1.5, 1500)]
)
def test_milli_units(text: str | float, value: int) -> None:
    assert milli(text) == value


@pytest.mark.parametrize(
    "text",
    [
        "",
        "-",
        ".",
        "1 ",
        " 1",
        "1K",
        "1ki",
        "1KI",
        "e3",
        "1e",
        "1e1.5",
        "0x10",
        "1_000",
        "\u0661",
        "NaN",
        "inf",
        "1m2",
        "--1",
        "1\n",
        True,
        float("nan"),
    ],
)
def test_what_is_no_quantity_is_named(text: Any) -> None:
    with pytest.raises(QuantityError, match="is not a quantity"):
        nano(text)


@pytest.mark.parametrize("text", ["1e999999999999", "-1e999999999999", "9" * 100])
def test_amounts_beyond_all_bounds_are_capped(text: str) -> None:
    assert abs(units(text)) == MOST


def test_amounts_below_all_bounds_are_the_smallest() -> None:
    assert nano("1e-999999999999") == 1
    with pytest.raises(QuantityError, match="too long"):
        nano("1" * 10_000)


@given(st.text(max_size=20))
def test_any_text_is_a_quantity_or_refused(text: str) -> None:
    try:
        value = nano(text)
    except QuantityError:
        with pytest.raises(QuantityError, match=re.escape(repr(text))):
            units(text)
    else:
        assert (value > 0) is (compare(text, 0) > 0)


@given(st.integers(-(2**63) + 1, 2**63 - 1))
def test_durations_survive_printing(nanoseconds: int) -> None:
    text = format_duration(nanoseconds)
    assert parse_duration(text) == nanoseconds
    assert canonical_duration(text) == text


@given(st.integers(0, 1000), st.integers(0, 59), st.integers(0, 59))
def test_durations_print_hours_minutes_seconds(hours: int, minutes: int, seconds: int) -> None:
    given_text = f"{hours}h{minutes}m{seconds}s"
    printed = canonical_duration(given_text)
    assert printed == given_text.removeprefix("0h").removeprefix("0m") if not hours else printed == given_text
    assert timedelta_of(printed) == timedelta(hours=hours, minutes=minutes, seconds=seconds)


@pytest.mark.parametrize(
    ("given_text", "printed"),
    [
        ("4h", "4h0m0s"),
        ("1.5h", "1h30m0s"),
        ("90s", "1m30s"),
        ("10s", "10s"),
        ("0", "0s"),
        ("-0", "0s"),
        ("1h1ms", "1h0m0.001s"),
        ("1500us", "1.5ms"),
        ("1500µs", "1.5ms"),
        ("1500μs", "1.5ms"),
        ("100ns", "100ns"),
        ("0.5ns", "0s"),
        (".5s", "500ms"),
        ("+1m", "1m0s"),
        ("-1.5m", "-1m30s"),
        ("1m1h", "1h1m0s"),
    ],
)
def test_durations_print_as_go_prints_them(given_text: str, printed: str) -> None:
    assert canonical_duration(given_text) == printed


@pytest.mark.parametrize("text", ["", "-", "1", "s", ".s", "1 s", "1h 2m", "1d", "h1", "1hh", "soon", "\u0661s", "1s\n", "1e3s"])
def test_what_is_no_duration_is_named(text: str) -> None:
    with pytest.raises(DurationError, match="is not a duration"):
        parse_duration(text)


@pytest.mark.parametrize("text", ["2562048h", "9" * 30 + "s", "1s" * 1000])
def test_durations_have_a_limit(text: str) -> None:
    with pytest.raises(DurationError, match="is too long"):
        parse_duration(text)


@given(st.text(max_size=20))
def test_any_text_is_a_duration_or_refused(text: str) -> None:
    try:
        value = parse_duration(text)
    except DurationError:
        with pytest.raises(DurationError, match=re.escape(repr(text))):
            canonical_duration(text)
    else:
        assert parse_duration(canonical_duration(text)) == value
