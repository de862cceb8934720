"""Expressions ready to run."""

from collections.abc import Callable
from typing import Any, TypeAlias

from sim.apiserver.schema.cel.evaluate import build
from sim.apiserver.schema.cel.macros import BUDGET
from sim.apiserver.schema.cel.syntax import CelSyntaxError, Node, parse
from sim.apiserver.schema.cel.typing import check_fields, result_type
from sim.apiserver.schema.cel.values import Budget, CelError, Closure, OutOfBudget
from sim.apiserver.schema.model import Schema

__all__ = ("Program", "bounded", "compiled", "reads", "yields")

Program: TypeAlias = Callable[[Any, Any], Any]
"""Of self and oldSelf."""
_NAMES = frozenset({"self", "oldSelf"})
MAX_STEPS = 250_000
"""Turns of all loops of one evaluation: about what the real server's limit of 1,000,000 units of cost allows."""


def compiled(source: str, schema: Schema | None = None, optional_old_self: bool = False) -> Program:
    """The expression as a function; it raises CelError. `schema`: of self, against which fields are checked.

    Raises CelSyntaxError with the complaint as the real compiler prints it.
    """
    try:
        tree = parse(source)
        closure = build(tree, _NAMES)
        if schema is not None:
            check_fields(tree, schema, optional_old_self)
    except CelSyntaxError as error:
        raise CelSyntaxError(_located(source, str(error), error.at), error.at) from None

    evaluate = bounded(closure)
    return lambda value, old: evaluate({"self": value, "oldSelf": old})


def bounded(closure: Closure) -> Callable[[dict[str, Any]], Any]:
    """A built expression as a function of its variables, in a dict that may be changed. It ends, and raises nothing but CelError."""

    def run(variables: dict[str, Any]) -> Any:
        variables[BUDGET] = Budget(MAX_STEPS)
        try:
            return closure(variables)
        except RecursionError:
            raise CelError("expression is nested too deeply") from None
        except OutOfBudget:
            raise CelError("operation cancelled: actual cost limit exceeded") from None

    return run


def reads(source: str, name: str) -> bool:
    """Whether a valid expression uses a variable."""

    def used(node: Node) -> bool:
        return (node.kind == "name" and node.value == name) or any(used(arg) for arg in node.args)

    return used(parse(source))


def yields(source: str, schema: Schema) -> str:
    """The simple type (bool, string, int, double) that a valid expression surely yields; "" where unknown."""
    return result_type(parse(source), schema)


def _located(source: str, message: str, at: int) -> str:
    line = source.count("\n", 0, at)
    column = at - (source.rfind("\n", 0, at) + 1)
    text = source.split("\n")[line]
    return f"ERROR: <input>:{line + 1}:{column + 1}: {message}\n | {text}\n | {'.' * column}^"
