"""scheduler.cpsat against OR-Tools' own front: the same model, and so the same answer."""

import subprocess
import sys

import pytest

from scheduler.cpsat import FEASIBLE, INFEASIBLE, OPTIMAL, Model, solve, weighted_sum

LIMIT = 1.0


def small() -> Model:
    """Every kind of statement that the scheduler makes, with one optimum."""
    model = Model()
    x, y = model.new_int_var(0, 9), model.new_int_var(2, 5)
    a, b, c = (model.new_bool_var() for _ in range(3))
    model.add(weighted_sum([x, y], [2, 3]) <= 23)
    model.add(x <= 7 * a)
    model.add_at_most_one([b, c])
    model.add_exactly_one(v for v in (a, b))
    model.add_all_true([a, ~b])
    model.add(weighted_sum([], []) <= 0)
    model.minimize(weighted_sum([x, y, c], [-3, -4, -1]))
    model.add_hint(x, 4)
    return model


def test_the_model_is_what_the_usual_front_makes() -> None:
    from ortools.sat.python import cp_model

    model = cp_model.CpModel()
    x, y = model.new_int_var(0, 9, ""), model.new_int_var(2, 5, "")
    a, b, c = (model.new_bool_var("") for _ in range(3))
    model.add(cp_model.LinearExpr.weighted_sum([x, y], [2, 3]) <= 23)
    model.add(x <= 7 * a)
    model.add_at_most_one([b, c])
    model.add_exactly_one(v for v in (a, b))
    model.add_bool_and([a, ~b])
    model.add(cp_model.LinearExpr.weighted_sum([], []) <= 0)
    model.minimize(cp_model.LinearExpr.weighted_sum([x, y, c], [-3, -4, -1]))
    model.add_hint(x, 4)
    assert str(small().proto) == str(model.proto)


def test_the_optimum_is_found_and_its_values_read() -> None:
    model = Model()
    x, y = model.new_int_var(0, 9), model.new_int_var(2, 5)
    model.add(weighted_sum([x, y], [2, 3]) <= 23)
    model.minimize(weighted_sum([x, y], [-3, -4]))
    found = solve(model, seed=7, limit=LIMIT)
    assert found.status == OPTIMAL
    assert (found.value(x), found.value(y)) == (7, 3)


def test_a_contradiction_is_infeasible() -> None:
    model = small()
    model.add_contradiction()
    assert solve(model, seed=7, limit=LIMIT).status == INFEASIBLE


def test_an_exhausted_limit_is_no_verdict() -> None:
    model = Model()
    places = [[model.new_bool_var() for _ in range(12)] for _ in range(13)]
    for line in places:
        model.add_exactly_one(line)
    for column in zip(*places, strict=True):
        model.add_at_most_one(column)
    assert solve(model, seed=7, limit=1e-9).status not in (OPTIMAL, FEASIBLE, INFEASIBLE)


def test_only_comparisons_of_expressions_can_be_added() -> None:
    with pytest.raises(TypeError):
        Model().add(True)


def test_the_scheduler_does_not_load_pandas() -> None:
    said = subprocess.run(
        [sys.executable, "-c", "import sys, cli.scheduler; print('pandas' in sys.modules, 'numpy' in sys.modules)"],
        check=True, capture_output=True, text=True,
    )  # fmt: skip
    assert said.stdout.split() == ["False", "True"]
