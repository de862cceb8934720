"""Macros of CEL: comprehensions, cel.bind, optMap."""

# pyright: reportUnknownLambdaType=false, reportUnknownMemberType=false, reportUnknownArgumentType=false, reportUnknownVariableType=false
# Values of expressions have no static type: functions get whatever an expression gives them, and fail when it does not fit.

from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

from sim.apiserver.schema.cel.syntax import CelSyntaxError, Node
from sim.apiserver.schema.cel.values import NO_VALUE, Budget, CelError, Closure, Optional, Scope, no_overload

__all__ = ("BUDGET", "build_bind", "build_macro", "build_opt_map")

BUDGET = ""
"""Where a scope has its Budget: no variable has that name."""

Build: TypeAlias = Callable[[Node, frozenset[str]], Closure]


def build_macro(node: Node, names: frozenset[str], build: Build) -> Closure:
    """x.all(v, p), x.all(i, v, p), x.map(v, t), x.map(v, p, t), x.filter(v, p)...; args[0] is x."""
    name: str = node.value
    name = "exists_one" if name == "existsOne" else name
    rest = node.args[1:]
    transforms = name.startswith("transform")
    wide = transforms or (name in ("all", "exists", "exists_one") and len(rest) == 3)
    variables = [_variable(arg) for arg in rest[: 2 if wide else 1]]
    inner = names | frozenset(variables)
    bodies = [build(arg, inner) for arg in rest[len(variables) :]]
    source = build(node.args[0], names)
    if not 1 <= len(bodies) <= (2 if name == "map" or transforms else 1):
        raise CelSyntaxError(f"undeclared reference to '{name}' (in container '')", node.at)
    run = _ALL[name]

    def scopes(scope: Scope) -> Iterator[tuple[Any, Any, Scope]]:
        value = source(scope)
        own = dict(scope)
        budget: Budget = scope[BUDGET]
        for key, item in _pairs(value, len(variables)):
            budget.spend()
            own[variables[0]] = key
            if len(variables) == 2:
                own[variables[1]] = item
            yield key, item, own

    return lambda scope: run(scopes(scope), bodies)


def _pairs(value: Any, count: int) -> Iterator[tuple[Any, Any]]:
    if isinstance(value, list):
        return iter(enumerate(value)) if count == 2 else iter((item, item) for item in value)
    if type(value) is dict:
        return iter(value.items())
    raise no_overload()


def _variable(node: Node) -> str:
    if node.kind != "name":
        raise CelSyntaxError("argument is not an identifier", node.at)
    return node.value


def _truth(value: Any) -> bool:
    if type(value) is not bool:
        raise no_overload()
    return value


def _quantified(scopes: Iterator[tuple[Any, Any, Scope]], bodies: list[Closure], decisive: bool) -> bool:
    """An error counts only if nothing decides."""
    failed: CelError | None = None
    for _, _, scope in scopes:
        try:
            if _truth(bodies[0](scope)) is decisive:
                return decisive
        except CelError as error:
            failed = failed or error
    if failed is not None:
        raise failed
    return not decisive


def _all(scopes: Iterator[tuple[Any, Any, Scope]], bodies: list[Closure]) -> bool:
    return _quantified(scopes, bodies, False)


def _exists(scopes: Iterator[tuple[Any, Any, Scope]], bodies: list[Closure]) -> bool:
    return _quantified(scopes, bodies, True)


def _exists_one(scopes: Iterator[tuple[Any, Any, Scope]], bodies: list[Closure]) -> bool:
    return sum(_truth(bodies[0](scope)) for _, _, scope in scopes) == 1


def _filter(scopes: Iterator[tuple[Any, Any, Scope]], bodies: list[Closure]) -> list[Any]:
    return [key for key, _, scope in scopes if _truth(bodies[0](scope))]


def _map(scopes: Iterator[tuple[Any, Any, Scope]], bodies: list[Closure]) -> list[Any]:
    chosen = bodies[0] if len(bodies) == 2 else None
    return [bodies[-1](scope) for _, _, scope in scopes if chosen is None or _truth(chosen(scope))]


def _transform_map(scopes: Iterator[tuple[Any, Any, Scope]], bodies: list[Closure]) -> dict[Any, Any]:
    chosen = bodies[0] if len(bodies) == 2 else None
    return {key: bodies[-1](scope) for key, _, scope in scopes if chosen is None or _truth(chosen(scope))}


def _transform_entry(scopes: Iterator[tuple[Any, Any, Scope]], bodies: list[Closure]) -> dict[Any, Any]:
    out: dict[Any, Any] = {}
    for entry in _map(scopes, bodies):
        for key, value in entry.items():
            if key in out:
                raise CelError(f"insert failed: key {key} already exists")
            out[key] = value
    return out


_ALL = {
    "all": _all,
    "exists": _exists,
    "exists_one": _exists_one,
    "filter": _filter,
    "map": _map,
    "transformList": _map,
    "transformMap": _transform_map,
    "transformMapEntry": _transform_entry,
}


def build_bind(node: Node, names: frozenset[str], build: Build) -> Closure:
    """cel.bind(v, value, result)."""
    name = _variable(node.args[1])
    value, result = build(node.args[2], names), build(node.args[3], names | {name})
    return lambda scope: result({**scope, name: value(scope)})


def build_opt_map(node: Node, names: frozenset[str], build: Build) -> Closure:
    """x.optMap(v, e) and x.optFlatMap(v, e)."""
    name = _variable(node.args[1])
    target, result = build(node.args[0], names), build(node.args[2], names | {name})
    flat = node.value == "optFlatMap"

    def run(scope: Scope) -> Any:
        value = target(scope)
        if type(value) is not Optional:
            raise no_overload()
        if not value.has_value:
            return NO_VALUE
        out = result({**scope, name: value.value})
        return out if flat else Optional(True, out)

    return run
