"""The part of CP-SAT that the scheduler uses, on OR-Tools' native binding.

The usual front, ortools.sat.python.cp_model, imports pandas for series of variables: more than 40 MiB and a quarter of a second in each
scheduler, and a fifth of the image. Nothing here has series. tests/unit/test_cpsat.py compares the two.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from ortools.sat.python import cp_model_helper
from ortools.util.python.sorted_interval_list import Domain

__all__ = ("FEASIBLE", "INFEASIBLE", "OPTIMAL", "BoolVar", "Expression", "IntVar", "Model", "Solution", "Status", "solve", "weighted_sum")

IntVar = cp_model_helper.IntVar
BoolVar = cp_model_helper.Literal
"""A variable of 0 and 1, or its negation."""
Expression = cp_model_helper.LinearExpr
Status = cp_model_helper.CpSolverStatus
OPTIMAL, FEASIBLE, INFEASIBLE = Status.OPTIMAL, Status.FEASIBLE, Status.INFEASIBLE

_KINDS = cp_model_helper.BoolArgumentConstraint
_binding: Any = cp_model_helper  # its stubs leave out what fronts are built on


def weighted_sum(variables: Iterable[IntVar], weights: Iterable[int]) -> Expression:
    """The sum of products; as many weights as variables."""
    return cp_model_helper.LinearExpr.weighted_sum(list(variables), list(weights))  # pyright: ignore[reportUnknownMemberType]


class Model:
    """Variables, constraints that all have to hold, an objective and a hint."""

    def __init__(self) -> None:
        self._base: Any = _binding.CpBaseModel(None)
        self.proto: Any = self._base.model_proto

    def new_int_var(self, lowest: int, highest: int) -> IntVar:
        """A variable with a value from lowest to highest."""
        variable: IntVar = _binding.IntVar(self.proto)
        return variable.with_domain(Domain(lowest, highest))

    def new_bool_var(self) -> IntVar:
        """A variable that is 0 or 1."""
        return self.new_int_var(0, 1)

    def add(self, constraint: object) -> None:
        """A comparison of expressions, as their operators make it. Raises TypeError for anything else."""
        self._base._add_bounded_linear_expression(constraint)

    def add_at_most_one(self, literals: Iterable[BoolVar]) -> None:
        """At most one of these is true."""
        self._base._add_bool_argument_constraint(_KINDS.at_most_one, list(literals))

    def add_exactly_one(self, literals: Iterable[BoolVar]) -> None:
        """One of these is true."""
        self._base._add_bool_argument_constraint(_KINDS.exactly_one, list(literals))

    def add_all_true(self, literals: Iterable[BoolVar]) -> None:
        """All of these are true."""
        self._base._add_bool_argument_constraint(_KINDS.bool_and, list(literals))

    def add_contradiction(self) -> None:
        """Makes the model infeasible: the disjunction of nothing."""
        self._base._add_bool_argument_constraint(_KINDS.bool_or, [])

    def minimize(self, expression: Expression) -> None:
        """The objective, with whole coefficients. To be called once."""
        flat: Any = _binding.FlatIntExpr(expression)
        objective = self.proto.objective
        for variable in flat.vars:
            objective.vars.append(variable.index)
        objective.coeffs.extend(flat.coeffs)
        objective.offset = flat.offset
        objective.scaling_factor = 1.0

    def add_hint(self, variable: IntVar, value: int) -> None:
        """A value to try first."""
        self.proto.solution_hint.vars.append(variable.index)
        self.proto.solution_hint.values.append(value)


@dataclass(frozen=True, slots=True)
class Solution:
    """`status`: OPTIMAL, FEASIBLE, INFEASIBLE, or another one when the limit was reached first."""

    status: Status
    response: Any

    def value(self, variable: IntVar) -> int:
        """Of a variable; only after OPTIMAL and FEASIBLE."""
        return int(_binding.ResponseHelper.value(self.response, variable))


def solve(model: Model, *, seed: int, limit: float) -> Solution:
    """By one worker and within `limit` of CP-SAT's deterministic time (about seconds), so that the answer is a function of the input."""
    parameters: Any = _binding.SatParameters()
    parameters.num_workers = 1
    parameters.random_seed = seed
    parameters.max_deterministic_time = limit
    wrapper: Any = _binding.SolveWrapper()
    wrapper.set_parameters(parameters)
    response = wrapper.solve(model.proto)
    return Solution(response.status, response)
