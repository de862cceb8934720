"""The circuit breaker, step by step."""

from controllers.planner.plugins.breaker import Breaker, CircuitState


def opened() -> Breaker:
    breaker = Breaker()
    assert [breaker.failed(10.0 + n) for n in range(5)] == [False, False, False, False, True]
    return breaker


def test_five_failures_in_a_row_open() -> None:
    breaker = opened()
    assert breaker.state(14.0) is CircuitState.OPEN
    assert breaker.state(43.99) is CircuitState.OPEN
    assert breaker.state(44.0) is CircuitState.HALF_OPEN


def test_a_success_starts_the_count_again() -> None:
    breaker = Breaker()
    for _ in range(4):
        breaker.failed(0.0)
    breaker.succeeded()
    assert [breaker.failed(1.0) for _ in range(4)] == [False] * 4
    assert breaker.state(1.0) is CircuitState.CLOSED


def test_half_open_goes_either_way() -> None:
    breaker = opened()
    assert breaker.failed(50.0) is True
    assert breaker.state(79.9) is CircuitState.OPEN
    assert breaker.state(80.0) is CircuitState.HALF_OPEN
    breaker.succeeded()
    assert (breaker.state(80.0), breaker.failures) == (CircuitState.CLOSED, 0)


def test_a_failure_while_open_does_not_prolong_it() -> None:
    breaker = opened()
    assert breaker.failed(20.0) is False
    assert breaker.state(44.0) is CircuitState.HALF_OPEN
