"""How dear an expression may become, estimated before anything is evaluated.

Less exact than the real estimator, and never above it by intent: iterations over lists and maps and walks through texts count, as do
variables, fields and calls; everything else is free. What is refused here is refused there.
"""

from collections.abc import Mapping
from typing import Any, Final

from sim.apiserver.schema.cel.evaluate import unescaped
from sim.apiserver.schema.cel.syntax import Node, parse
from sim.apiserver.schema.model import Schema

__all__ = ("max_count", "worst_cost")

_REQUEST: Final = 3 * 1024 * 1024
_LOOPS: Final = frozenset({"all", "exists", "exists_one", "existsOne", "filter", "map"})
_PER_BYTE: Final = 0.1
_PER_BYTE_OF_PATTERN: Final = 0.25
_BYTES_PER_RUNE: Final = 4
_SMALLEST: Final = {"boolean": 4, "string": 2, "array": 2, "object": 2}
_FORMATS: Final = {"date": 12, "date-time": 27, "duration": 34}
Types = Mapping[str, Schema | None]


def worst_cost(source: str, schema: Schema) -> int:
    """Of one evaluation of a valid expression. `schema`: of self."""
    return int(_cost(parse(source), {"self": schema, "oldSelf": schema})[0])


def max_count(schema: Schema) -> int:
    """How many values of a schema one request can hold."""
    return _REQUEST // (_smallest(schema) + 1)


def _smallest(schema: Schema) -> int:
    """Bytes of the shortest JSON of a value."""
    size = _SMALLEST.get(schema.type, 1)
    required = (child for key in schema.required if (child := schema.properties.get(key)) is not None and child is not schema)
    return size + sum(_smallest(child) + 4 for child in required) + sum(map(len, schema.required))


def _size(schema: Schema) -> int:
    """The most items, fields or bytes of a value."""
    if schema.type == "string":
        options: list[Any] = schema.source.get("enum") or []
        if options:
            return max(len(str(option)) for option in options)
        length = schema.source.get("maxLength")
        return _FORMATS.get(schema.format) or (_REQUEST - 2 if length is None else length * _BYTES_PER_RUNE)
    bound: int | None = schema.source.get("maxItems" if schema.type == "array" else "maxProperties")
    if bound is not None:
        return bound
    below = schema.items if schema.type == "array" else schema.values
    smallest = 1 if below is None else _smallest(below)
    return (_REQUEST - 2) // (smallest + (1 if schema.type == "array" else 6))


def _cost(node: Node, types: Types) -> tuple[float, Schema | None]:
    """The cost and, where it is known, the schema of what the node yields."""
    if node.kind == "name":
        return 1, types.get(node.value)
    if node.kind in ("select", "has"):
        cost, target = _cost(node.args[0], types)
        return cost + 1, None if target is None or node.kind == "has" else target.field(unescaped(node.value))
    if node.kind == "call" and node.is_method and node.value in _LOOPS and len(node.args) >= 3:
        return _loop(node, types)
    below = [_cost(arg, types) for arg in node.args]
    costs = [cost for cost, _ in below]
    if node.kind == "conditional":
        return costs[0] + max(costs[1:]), None
    if node.kind == "index":
        target = below[0][1]
        return sum(costs) + 1, None if target is None else target.items or target.values
    if node.kind == "call":
        return sum(costs) + 1 + _walk(node, [schema for _, schema in below]), None
    return sum(costs), None


def _walk(node: Node, below: list[Schema | None]) -> float:
    """Of comparing texts, or searching in one."""
    sizes = [_text(arg, schema) for arg, schema in zip(node.args, below, strict=True)]
    if node.value in ("_==_", "_!=_") and None not in sizes:
        return _PER_BYTE * min(size for size in sizes if size is not None)
    if not node.is_method or len(sizes) != 2:
        return 0
    text, other = ((size or 0) for size in sizes)
    match node.value:
        case "startsWith" | "endsWith":
            return _PER_BYTE * other
        case "contains":
            return _PER_BYTE * text * _PER_BYTE * other
        case "matches":
            return _PER_BYTE * text * _PER_BYTE_OF_PATTERN * other
        case _:
            return 0


def _text(node: Node, schema: Schema | None) -> int | None:
    """The most bytes of a text; None for what surely or maybe is none."""
    if node.kind == "literal":
        return len(node.value) if isinstance(node.value, str) else None
    return _size(schema) if schema is not None and schema.type == "string" else None


def _loop(node: Node, types: Types) -> tuple[float, Schema | None]:
    """A macro that goes through a list or map."""
    source, *rest = node.args
    cost, target = _cost(source, types)
    count = 2 if len(rest) == 3 and node.value != "map" else 1
    is_list = target is not None and target.type == "array"
    inner: dict[str, Schema | None] = {**types, **{arg.value: None for arg in rest[:count]}}
    if target is not None and is_list:
        inner[rest[count - 1].value] = target.items
    elif target is not None and count == 2:
        inner[rest[1].value] = target.values
    times = 0 if target is None or (not is_list and target.values is None) else _size(target)
    return cost + times * sum(_cost(body, inner)[0] for body in rest[count:]), target if node.value == "filter" else None
