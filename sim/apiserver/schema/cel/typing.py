"""What can be told from the schema before anything is evaluated: fields that do not exist."""

# pyright: reportUnknownArgumentType=false
# A literal may have any value.

from typing import Final

from sim.apiserver.schema.cel.evaluate import unescaped
from sim.apiserver.schema.cel.syntax import CelSyntaxError, Node
from sim.apiserver.schema.model import Schema

__all__ = ("check_fields", "result_type")

_BINDERS: Final = frozenset({"all", "exists", "exists_one", "existsOne", "filter", "map"})
_NAMES: Final = {"integer": "int", "number": "double", "boolean": "bool"}
_CAST: Final = {"date-time": "timestamp", "date": "timestamp", "duration": "duration", "byte": "bytes"}
Types = dict[str, Schema | None]


def check_fields(tree: Node, schema: Schema, optional_old_self: bool) -> None:
    """Raises CelSyntaxError for the first field that a known type lacks, and where two known types never compare."""
    _type_of(tree, {"self": schema, "oldSelf": None if optional_old_self else schema})


def _type_of(node: Node, types: Types) -> Schema | None:
    """The schema of what the node yields; None where unknown."""
    if node.kind == "name":
        return types.get(node.value)
    if node.kind in ("select", "has", "optional_select"):
        found = _field(node, _type_of(node.args[0], types))
        return found if node.kind == "select" else None
    if node.kind == "call" and node.is_method and node.value in _BINDERS and len(node.args) >= 3:
        return _comprehension(node, types)
    below = [_type_of(arg, types) for arg in node.args if not _binds(node)]
    if node.kind == "call" and node.value in ("_==_", "_!=_", "_<_", "_<=_", "_>_", "_>=_"):
        _comparable(node, below)
    if node.kind == "index" and below and below[0] is not None:
        return below[0].items or below[0].values
    return None


def _comparable(node: Node, below: list[Schema | None]) -> None:
    left, right = (_simple(arg, schema) for arg, schema in zip(node.args, below, strict=True))
    mixed = {left, right} <= {"int", "double"} and node.value not in ("_==_", "_!=_")
    if left and right and left != right and not mixed:
        raise CelSyntaxError(f"found no matching overload for '{node.value}' applied to '({left}, {right})'", node.at)


def _simple(node: Node, schema: Schema | None) -> str:
    """The name of a simple type; "" where unknown."""
    if node.kind == "literal":
        return {bool: "bool", int: "int", float: "double", str: "string"}.get(type(node.value), "")
    if schema is None or schema.is_nullable or schema.is_int_or_string or schema.format in _CAST:
        return ""
    return _NAMES.get(schema.type, "string" if schema.type == "string" else "")


def result_type(tree: Node, schema: Schema) -> str:
    """The simple type that the whole expression surely yields; "" where unknown."""
    return _simple(tree, schema if tree.kind == "name" and tree.value == "self" else None)


def _binds(node: Node) -> bool:
    """Macros that give names to values of unknown types: nothing is checked in them."""
    return node.kind == "call" and node.is_method and node.value in ("bind", "optMap", "optFlatMap", "transformList", "transformMap")


def _field(node: Node, target: Schema | None) -> Schema | None:
    if target is None or target.type in ("", "array"):
        return None
    if target.type != "object":
        name = _NAMES.get(target.type, target.type) if target.format not in _CAST else _CAST[target.format]
        raise CelSyntaxError(f"type '{name}' does not support field selection", node.at)
    found = target.field(unescaped(node.value))
    if found is None and target.values is None:
        raise CelSyntaxError(f"undefined field '{node.value}'", node.at)
    return found


def _comprehension(node: Node, types: Types) -> Schema | None:
    source = _type_of(node.args[0], types)
    rest = node.args[1:]
    count = 2 if len(rest) == 3 and node.value != "map" else 1
    item = None if source is None or count == 2 else source.items
    inner: Types = {**types, **{arg.value: None for arg in rest[:count]}, rest[0].value: item}
    for body in rest[count:]:
        _type_of(body, inner)
    return source if node.value == "filter" else None
