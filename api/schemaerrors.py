"""What a model refuses, as field errors: the part of validation that the API server does by the CRD's schema."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import ValidationError

from api.fielderrors import FieldError, forbidden, invalid, not_supported, required, too_long

__all__ = ("errors_from_pydantic", "field_path")

PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
TYPES = {
    "int_type": "an integer",
    "int_parsing": "an integer",
    "int_from_float": "an integer",
    "float_type": "a number",
    "float_parsing": "a number",
    "string_type": "a string",
    "bool_type": "true or false",
    "bool_parsing": "true or false",
    "dict_type": "an object",
    "model_type": "an object",
    "model_attributes_type": "an object",
    "mapping_type": "an object",
    "tuple_type": "a list",
    "list_type": "a list",
}


def errors_from_pydantic(error: ValidationError) -> tuple[FieldError, ...]:
    """Each mistake with its Kubernetes path, such as spec.template.cliques[0].spec.replicas."""
    return tuple(_field_error(e) for e in error.errors(include_url=False))


def field_path(location: Sequence[str | int]) -> str:
    """spec.levels[0].domain; a map key that is no plain name goes into brackets. "" for the whole object."""
    text = ""
    for part in location:
        if isinstance(part, int):
            text += f"[{part}]"
        elif part == "[key]":
            continue
        elif PLAIN.fullmatch(part):
            text += f".{part}" if text else part
        else:
            text += f"[{part}]"
    return text


def _field_error(error: Mapping[str, Any]) -> FieldError:
    path = field_path(error["loc"]) or "(root)"
    kind: str = error["type"]
    context: Mapping[str, Any] = error.get("ctx") or {}
    value = _shown(error.get("input"))
    if kind == "missing":
        return required(path, "must be set")
    if kind == "extra_forbidden":
        return forbidden(path, "unknown field; remove it or check its spelling")
    if kind == "literal_error":
        return not_supported(path, value, re.findall(r"'([^']*)'", str(context.get("expected", ""))))
    if kind in TYPES:
        return required(path, "must not be null") if error.get("input") is None else invalid(path, value, f"must be {TYPES[kind]}")
    if kind in ("string_too_long", "too_long"):
        return too_long(path, f"may have at most {context.get('max_length')} {'characters' if kind == 'string_too_long' else 'items'}")
    return invalid(path, value, _limit(kind, context) or str(error["msg"]).removeprefix("Value error, "))


def _limit(kind: str, context: Mapping[str, Any]) -> str:
    match kind:
        case "string_pattern_mismatch":
            return f"must match {context.get('pattern')}"
        case "less_than_equal":
            return f"must be at most {context.get('le')}"
        case "greater_than_equal":
            return f"must be at least {context.get('ge')}"
        case "string_too_short":
            return f"must have at least {context.get('min_length')} characters"
        case "too_short":
            return f"must have at least {context.get('min_length')} items"
        case _:
            return ""


def _shown(value: object) -> object:
    """Whole objects and lists would drown the message: only what they are is shown."""
    if isinstance(value, Mapping):
        return "object"
    return value if isinstance(value, (str, int, float)) or value is None else "array"
