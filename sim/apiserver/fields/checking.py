"""Whether a configuration to apply fits its schema, in the words of kube-apiserver."""

import json
from typing import Any, TypeAlias

from sim.apiserver.fields.fieldset import element_text
from sim.apiserver.fields.shapes import FREE, Kind, Shape, item_key, shape_of
from sim.apiserver.objects import Object, is_list, is_map
from sim.apiserver.schema.model import Schema

__all__ = ("mistakes",)


Problem: TypeAlias = tuple[str, str]
"""Path and text."""
FINE: list[Problem] = []


def mistakes(config: Object, schema: Schema) -> str:
    """What is wrong with the configuration, as one text; "" when all is well."""
    found = [f"{path}: {text}" if path else text for path, text in _check(config, shape_of(schema))]
    return found[0] if len(found) == 1 else "\n  ".join(["errors:", *found]) if found else ""


def _check(value: Any, shape: Shape) -> list[Problem]:
    """Problems with their paths below this value, which callers complete: paths are wanted only when there is a problem."""
    if value is None:
        return FINE
    if is_map(value):
        if shape.is_map:
            return _check_map(value, shape)
    elif is_list(value):
        if shape.is_list:
            return _check_list(value, shape)
    elif shape.scalar:
        problem = _scalar_problem(value, shape.scalar)
        return [("", problem)] if problem else FINE
    if shape.is_map or shape.is_list:
        return [("", f"expected {'map' if shape.is_map else 'list'}, got &{{{_plain(value)}}}")]
    return [("", _container_problem(value, shape.scalar))]


def _check_map(value: Object, shape: Shape) -> list[Problem]:
    out = FINE
    named, values = shape.named, shape.values or FREE
    for key, item in value.items():
        hit = named.get(key)
        if hit is None:
            if shape.is_closed:
                return [*out, ("." + key, "field not declared in schema")]
            below = values
        else:
            below = hit[1]
        if type(item) is str and below.scalar == "string":
            continue
        if found := _check(item, below):
            out = [*out, *((f".{key}{path}", text) for path, text in found)]
    return out


def _check_list(value: list[Any], shape: Shape) -> list[Problem]:
    out: list[Problem] = []
    seen: set[str] = set()
    is_granular = shape.kind in (Kind.SET, Kind.KEYED)
    for at, item in enumerate(value):
        element = f"i:{at}"
        if is_granular:
            key = item_key(item, shape)
            if key is None:
                return [*out, ("", f"element {at}: {_item_problem(item, shape)}")]
            element = key
            if key in seen:
                out.append(("", f"duplicate entries for key {element_text(key)}"))
            seen.add(key)
        if found := _check(item, shape.items or FREE):
            out += [(element_text(element) + path, text) for path, text in found]
    return out


def _item_problem(item: Any, shape: Shape) -> str:
    if shape.kind == Kind.SET:
        if item is None:
            return "associative list without keys has an element that's an explicit null"
        if is_map(item):
            return "associative list without keys has an element that's a map type"
        return "not supported: associative list with lists as elements"
    if item is None:
        return "associative list with keys may not have a null element"
    if not is_map(item):
        return "associative list with keys may not have non-map elements"
    names = " ".join(map(json.dumps, shape.key_names))
    because = "(and doesn't have default values for any key fields)"
    return f"associative list with keys has an element that omits all key fields [{names}] {because}"


def _scalar_problem(value: Any, scalar: str) -> str:
    match scalar:
        case "numeric" if isinstance(value, bool) or not isinstance(value, int | float):
            return f"expected numeric (int or float), got {'bool' if isinstance(value, bool) else 'string'}"
        case "string" if not isinstance(value, str):
            return f"expected string, got &value.valueUnstructured{{Value:{_plain(value)}}}"
        case "boolean" if not isinstance(value, bool):
            return f"expected boolean, got &{{{_plain(value)}}}"
        case _:
            return ""


def _container_problem(value: Any, scalar: str) -> str:
    """Of a map or list where a scalar is wanted."""
    kind = "map[string]interface {}" if is_map(value) else "[]interface {}"
    match scalar:
        case "numeric":
            return f"expected numeric (int or float), got {kind}"
        case "string":
            return f"expected string, got &value.valueUnstructured{{Value:{_literal(value)}}}"
        case "boolean":
            return f"expected boolean, got &{{{_plain(value)}}}"
        case _:
            return f"expected any scalar, got &{{{_plain(value)}}}"


def _plain(value: Any) -> str:
    """Go's %v."""
    if is_map(value):
        return f"map[{' '.join(f'{k}:{_plain(v)}' for k, v in sorted(value.items()))}]"
    if is_list(value):
        return f"[{' '.join(map(_plain, value))}]"
    if isinstance(value, bool):
        return "true" if value else "false"
    return "<nil>" if value is None else str(value)


def _literal(value: Any) -> str:
    """Go's %#v."""
    if is_map(value):
        inside = ", ".join(f"{json.dumps(k)}:{_literal(v)}" for k, v in sorted(value.items()))
        return f"map[string]interface {{}}{{{inside}}}"
    if is_list(value):
        return f"[]interface {{}}{{{', '.join(map(_literal, value))}}}"
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    return "interface {}(nil)" if value is None else _plain(value)
