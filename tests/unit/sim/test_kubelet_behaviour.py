"""Delays and behaviours as people write them."""

from random import Random
from statistics import fmean, median

import pytest

from sim.kubelet.behaviour import ALWAYS, Behaviour, BehaviourError, behaviour_of
from sim.kubelet.distributions import Delay, DelayError, parse_delay


def rng() -> Random:
    return Random(1)  # noqa: S311 - seeded on purpose


@pytest.mark.parametrize(
    ("text", "delay"),
    [
        ("0", Delay("constant", (0.0,))),
        ("1m30s", Delay("constant", (90.0,))),
        ("constant(2s)", Delay("constant", (2.0,))),
        ("uniform(1s,3s)", Delay("uniform", (1.0, 3.0))),
        (" uniform( 1s , 1s ) ", Delay("uniform", (1.0, 1.0))),
        ("exponential(250ms)", Delay("exponential", (0.25,))),
        ("lognormal(30s, 0.5)", Delay("lognormal", (30.0, 0.5))),
    ],
)
def test_delays_are_read(text: str, delay: Delay) -> None:
    assert parse_delay(text) == delay


@pytest.mark.parametrize(
    "text",
    ["", "2", "-1s", "800h", "uniform(1s)", "uniform(3s, 1s)", "normal(1s, 1)", "lognormal(1s, x)", "lognormal(1s, nan)", "exponential()"],
)
def test_what_is_no_delay_is_refused(text: str) -> None:
    with pytest.raises(DelayError):
        parse_delay(text)


def test_draws_follow_their_distribution_and_repeat_with_the_seed() -> None:
    def draws(text: str) -> list[float]:
        source = rng()
        return [parse_delay(text).draw(source) for _ in range(4000)]

    assert set(draws("2s")) == {2.0}
    flat = draws("uniform(1s, 3s)")
    assert min(flat) >= 1
    assert max(flat) <= 3
    assert fmean(flat) == pytest.approx(2, abs=0.05)
    assert fmean(draws("exponential(5s)")) == pytest.approx(5, rel=0.1)
    assert median(draws("lognormal(30s, 0.5)")) == pytest.approx(30, rel=0.1)
    assert draws("exponential(5s)") == draws("exponential(5s)")


def test_zero_means_nothing_at_all() -> None:
    assert parse_delay("exponential(0s)").draw(rng()) == 0
    assert parse_delay("lognormal(0s, 1)").draw(rng()) == 0


def test_annotations_override_the_defaults() -> None:
    defaults = Behaviour(start=Delay("constant", (5.0,)))
    assert behaviour_of(None, defaults) is defaults
    assert behaviour_of({"other": "x"}, defaults) is defaults
    own = behaviour_of({"sim.grovekeeper.io/ready-delay": "2s", "sim.grovekeeper.io/pull-error": "always"}, defaults)
    assert own == Behaviour(start=Delay("constant", (5.0,)), ready=Delay("constant", (2.0,)), pull_errors=ALWAYS)


def test_a_crash_happens_after_a_second_unless_told() -> None:
    assert behaviour_of({"sim.grovekeeper.io/crash": "3"}, Behaviour()).run_time == Delay("constant", (1.0,))
    both = {"sim.grovekeeper.io/crash": "3", "sim.grovekeeper.io/run-time": "1m"}
    assert behaviour_of(both, Behaviour()).run_time == Delay("constant", (60.0,))


@pytest.mark.parametrize(
    ("key", "text"),
    [("start-delay", "soon"), ("crash", "-1"), ("crash", "often"), ("exit-code", "256"), ("exit-code", "x"), ("strat-delay", "1s")],
)
def test_a_mistake_is_named(key: str, text: str) -> None:
    with pytest.raises(BehaviourError, match=f"sim.grovekeeper.io/{key}"):
        behaviour_of({f"sim.grovekeeper.io/{key}": text}, Behaviour())


def test_what_a_behaviour_is_about() -> None:
    assert Behaviour().is_about("main", False)
    assert not Behaviour().is_about("init", True)
    assert Behaviour(container="init").is_about("init", True)
    assert not Behaviour(container="init").is_about("main", False)
