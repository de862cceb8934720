"""Trees of CEL to closures."""

# pyright: reportUnknownLambdaType=false, reportUnknownMemberType=false, reportUnknownArgumentType=false, reportUnknownVariableType=false
# Values of expressions have no static type: functions get whatever an expression gives them, and fail when it does not fit.

from collections.abc import Callable, Mapping
from typing import Any

from sim.apiserver.schema.cel.library import FUNCTIONS, METHODS, NAMESPACES, TYPES
from sim.apiserver.schema.cel.macros import build_bind, build_macro, build_opt_map
from sim.apiserver.schema.cel.syntax import CelSyntaxError, Node
from sim.apiserver.schema.cel.values import NO_VALUE, CelError, Closure, Optional, Scope, equal, no_overload

__all__ = ("build", "unescaped")

_MACROS = frozenset({"all", "exists", "exists_one", "existsOne", "filter", "map", "transformList", "transformMap", "transformMapEntry"})
_RESERVED = ("true", "false", "null", "in", "as", "break", "const", "continue", "else", "for", "function", "if", "import", "let", "loop",
             "package", "namespace", "return", "var", "void", "while")  # fmt: skip
_ESCAPES = {"__dot__": ".", "__dash__": "-", "__slash__": "/", "__underscores__": "__", **{f"__{word}__": word for word in _RESERVED}}


def unescaped(name: str) -> str:
    """The name of a field from the form that CEL can spell: a__dash__b."""
    if "__" not in name:
        return name
    if name in _ESCAPES and name[2:-2] in _RESERVED:
        return _ESCAPES[name]
    for written, meant in (("__dot__", "."), ("__dash__", "-"), ("__slash__", "/"), ("__underscores__", "__")):
        name = name.replace(written, meant)
    return name


def build(node: Node, names: frozenset[str]) -> Closure:
    """A closure that evaluates the tree in a scope that has at least `names`. Raises CelSyntaxError for undeclared names and functions."""
    if node.kind == "call":
        return _call(node, names)
    return _BUILDERS[node.kind](node, names)


def _literal(node: Node, names: frozenset[str]) -> Closure:
    del names
    value = node.value
    return lambda scope: value


def _name(node: Node, names: frozenset[str]) -> Closure:
    name: str = node.value
    if name in names:
        return lambda scope: scope[name]
    if name in TYPES:
        return _literal(Node("literal", node.at, TYPES[name]), names)
    raise CelSyntaxError(f"undeclared reference to '{name}' (in container '')", node.at)


def _select(node: Node, names: frozenset[str]) -> Closure:
    if (dotted := _dotted(node)) in TYPES:
        return _literal(Node("literal", node.at, TYPES[dotted]), names)
    target, name = build(node.args[0], names), unescaped(node.value)

    def run(scope: Scope) -> Any:
        return _field(target(scope), name)

    return run


def _field(value: Any, name: str) -> Any:
    if type(value) is dict:
        try:
            return value[name]
        except KeyError:
            raise CelError(f"no such key: {name}") from None
    if type(value) is Optional:
        return _optional_field(value, name)
    raise no_overload()


def _optional_field(value: Any, name: Any) -> Optional:
    if type(value) is Optional:
        if not value.has_value:
            return NO_VALUE
        value = value.value
    if type(value) is dict:
        return Optional(True, value[name]) if name in value else NO_VALUE
    if isinstance(value, list) and type(name) is int:
        return Optional(True, value[name]) if 0 <= name < len(value) else NO_VALUE
    raise no_overload()


def _optional_select(node: Node, names: frozenset[str]) -> Closure:
    target, name = build(node.args[0], names), unescaped(node.value)
    return lambda scope: _optional_field(target(scope), name)


def _has(node: Node, names: frozenset[str]) -> Closure:
    target, name = build(node.args[0], names), unescaped(node.value)

    def run(scope: Scope) -> bool:
        value = target(scope)
        if type(value) is dict:
            return name in value
        if type(value) is Optional:
            return _optional_field(value, name).has_value
        raise no_overload()

    return run


def _index(node: Node, names: frozenset[str]) -> Closure:
    target, key = build(node.args[0], names), build(node.args[1], names)

    def run(scope: Scope) -> Any:
        value, index = target(scope), key(scope)
        if isinstance(value, list):
            return _item(value, index)
        if type(value) is dict:
            if isinstance(index, (str, int, float)) and index in value:
                return value[index]
            raise CelError(f"no such key: {index}")
        if type(value) is Optional:
            return _optional_field(value, index)
        raise no_overload()

    return run


def _item(items: list[Any], index: Any) -> Any:
    if type(index) is float and index.is_integer():
        index = int(index)
    if type(index) is not int:
        raise no_overload()
    if not 0 <= index < len(items):
        raise CelError(f"index out of bounds: {index}")
    return items[index]


def _optional_index(node: Node, names: frozenset[str]) -> Closure:
    target, key = build(node.args[0], names), build(node.args[1], names)
    return lambda scope: _optional_field(target(scope), key(scope))


def _list(node: Node, names: frozenset[str]) -> Closure:
    parts = [(build(arg, names), optional) for arg, optional in zip(node.args, node.flags, strict=True)]

    def run(scope: Scope) -> list[Any]:
        out: list[Any] = []
        for part, optional in parts:
            value = part(scope)
            if not optional:
                out.append(value)
            elif value.has_value:
                out.append(value.value)
        return out

    return run


def _map(node: Node, names: frozenset[str]) -> Closure:
    built = [build(arg, names) for arg in node.args]
    parts = list(zip(built[::2], built[1::2], node.flags, strict=True))

    def run(scope: Scope) -> Mapping[Any, Any]:
        out: dict[Any, Any] = {}
        for key_of, value_of, optional in parts:
            key, value = key_of(scope), value_of(scope)
            if not isinstance(key, (str, int, float)):
                raise CelError("unsupported key type")
            if not optional:
                out[key] = value
            elif value.has_value:
                out[key] = value.value
        return out

    return run


def _logical(node: Node, names: frozenset[str]) -> Closure:
    """&& and ||: an error of one side does not count where the other side decides."""
    left, right = build(node.args[0], names), build(node.args[1], names)
    decisive = node.kind == "or"

    def run(scope: Scope) -> bool:
        failed: CelError | None = None
        try:
            first = left(scope)
            if first is decisive:
                return decisive
            if type(first) is not bool:
                failed = no_overload()
        except CelError as error:
            failed = error
        second = right(scope)
        if second is decisive:
            return decisive
        if failed is not None:
            raise failed
        if type(second) is not bool:
            raise no_overload()
        return not decisive

    return run


def _conditional(node: Node, names: frozenset[str]) -> Closure:
    condition, yes, no = (build(arg, names) for arg in node.args)

    def run(scope: Scope) -> Any:
        value = condition(scope)
        if type(value) is not bool:
            raise no_overload()
        return yes(scope) if value else no(scope)

    return run


def _call(node: Node, names: frozenset[str]) -> Closure:
    name: str = node.value
    if node.is_method:
        if name in _MACROS and len(node.args) >= 3:
            return build_macro(node, names, build)
        if node.args[0].kind in ("name", "select") and (space := _dotted(node.args[0])) in NAMESPACES:
            return _namespaced(node, names, space)
        if name in ("optMap", "optFlatMap") and len(node.args) == 3:
            return build_opt_map(node, names, build)
        table: Mapping[str, Callable[..., Any]] = METHODS
    else:
        table = FUNCTIONS
    function = table.get(name)
    if function is None:
        raise CelSyntaxError(f"undeclared reference to '{name}' (in container '')", node.at)
    return _applied(function, [build(arg, names) for arg in node.args])


def _namespaced(node: Node, names: frozenset[str], space: str) -> Closure:
    if space == "cel" and node.value == "bind" and len(node.args) == 4:
        return build_bind(node, names, build)
    function = NAMESPACES[space].get(node.value)
    if function is None:
        raise CelSyntaxError(f"undeclared reference to '{node.value}' (in container '')", node.at)
    return _applied(function, [build(arg, names) for arg in node.args[1:]])


def _applied(function: Callable[..., Any], args: list[Closure]) -> Closure:
    if function is equal and len(args) == 2:
        left, right = args
        return lambda scope: equal(left(scope), right(scope))

    def run(scope: Scope) -> Any:
        values = [arg(scope) for arg in args]
        try:
            return function(*values)
        except CelError:
            raise
        except (TypeError, AttributeError) as error:
            # Wrong kinds or numbers of arguments; functions rely on it instead of checking each argument.
            raise no_overload() from error
        except (ValueError, OverflowError, ZeroDivisionError) as error:
            raise CelError(str(error)) from error

    return run


def _dotted(node: Node) -> str:
    if node.kind == "name":
        return node.value
    if node.kind == "select" and (space := _dotted(node.args[0])):
        return f"{space}.{node.value}"
    return ""


_BUILDERS: dict[str, Callable[[Node, frozenset[str]], Closure]] = {
    "literal": _literal,
    "name": _name,
    "select": _select,
    "optional_select": _optional_select,
    "has": _has,
    "index": _index,
    "optional_index": _optional_index,
    "list": _list,
    "map": _map,
    "and": _logical,
    "or": _logical,
    "conditional": _conditional,
}
