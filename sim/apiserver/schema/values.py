"""Whether values have the types and keep the bounds of a structural schema, in the words of kube-apiserver."""

from collections.abc import Iterator
from typing import Any, Final

from api.fielderrors import ErrorKind as Kind
from api.fielderrors import FieldError, invalid, not_supported, required
from sim.apiserver.objects import Object
from sim.apiserver.schema.bounds import bounds_of_list, bounds_of_map, bounds_of_number, bounds_of_text
from sim.apiserver.schema.correlation import old_field, old_items
from sim.apiserver.schema.formats import FORMATS
from sim.apiserver.schema.model import ABSENT, Schema

__all__ = ("check_values", "json_type")

_NOWHERE: Final = "<nil>"
_INT64: Final = 2**63
_INT_FORMATS: Final = {"int32": 2**31, "int64": 2**63, "": 2**63}


def json_type(value: Any) -> str:
    """As error messages call it. Integers beyond 64 bits are numbers, floats without a fraction integers."""
    if isinstance(value, str):
        return "string"
    if isinstance(value, bool):
        return "boolean"
    if value is None:
        return "null"
    if isinstance(value, (int, float)):
        return "integer" if -_INT64 <= value < _INT64 and value == int(value) else "number"
    return "array" if isinstance(value, list) else "object"


def check_values(value: Any, schema: Schema, path: str = "", old: Any = ABSENT) -> list[FieldError]:
    """Errors of a value and all below it. What was as wrong before and has not changed is let through."""
    if type(value) is str and schema.type == "string" and not schema.has_bounds:
        return []
    errors = list(_errors(value, schema, path, old))
    if errors and old is not ABSENT and value == old:
        return []
    return errors


def _errors(value: Any, schema: Schema, path: str, old: Any) -> Iterator[FieldError]:
    kind = json_type(value)
    if value is None:
        if schema.is_nullable or not (schema.type or schema.is_int_or_string):
            return
        yield _type_error(schema, path, kind)
        return
    if not _fits(kind, schema):
        yield _wrong_type(value, kind, schema, path)
    if schema.has_bounds:
        if schema.logic:
            yield from _logic(value, schema, path, old)
        yield from _bounds(value, kind, schema, path)
    if kind == "object":
        yield from _fields(value, schema, path, old)
    elif kind == "array" and schema.items is not None:
        items: list[Any] = value
        for index, (item, before) in enumerate(zip(items, old_items(items, old, schema), strict=True)):
            yield from check_values(item, schema.items, f"{path}[{index}]", before)
        yield from bounds_of_list(items, schema.source, path)


def _fits(kind: str, schema: Schema) -> bool:
    if schema.is_int_or_string:
        return kind in ("integer", "string")
    return schema.type in ("", kind) or (schema.type == "number" and kind == "integer")


def _wrong_type(value: Any, kind: str, schema: Schema, path: str) -> FieldError:
    """Of a number where a format is asked for, the message names the format."""
    if schema.format and kind != "string" and not schema.is_int_or_string:
        shown = "" if kind not in ("number", "integer") else "int64" if isinstance(value, int) and kind == "integer" else "float64"
        return FieldError(Kind.TYPE_INVALID, path, shown, f'{path} in body must be of type {schema.format}: "{shown}"')
    return _type_error(schema, path, kind)


def _type_error(schema: Schema, path: str, kind: str) -> FieldError:
    wanted = "integer,string" if schema.is_int_or_string else schema.type
    return FieldError(Kind.TYPE_INVALID, path, kind, f'{path} in body must be of type {wanted}: "{kind}"')


def _bounds(value: Any, kind: str, schema: Schema, path: str) -> Iterator[FieldError]:
    source = schema.source
    if kind == "string":
        yield from bounds_of_text(value, source, path)
        form = schema.format.replace("-", "")
        if form in FORMATS and not FORMATS[form](value):
            yield FieldError(Kind.TYPE_INVALID, path, value, f'{path} in body must be of type {schema.format}: "{value}"')
    elif kind in ("integer", "number"):
        if schema.type == "integer" and (kind == "number" or not _in_range(value, schema.format)):
            form = f"with format {schema.format}" if schema.format else "(default format)"
            yield invalid(_NOWHERE, "", f"Checked value must be of type integer {form} in {path}")
        else:
            yield from bounds_of_number(value, source, path)
    enum: list[Any] = source.get("enum", [])
    if enum and not any(value == option and isinstance(value, bool) == isinstance(option, bool) for option in enum):
        yield not_supported(path, value, [option if isinstance(option, str) else _text(option) for option in enum])


def _in_range(value: Any, form: str) -> bool:
    limit = _INT_FORMATS.get(form, _INT64)
    return -limit <= value < limit


def _text(option: Any) -> str:
    return "true" if option is True else "false" if option is False else "<nil>" if option is None else str(option)


def _fields(fields: Object, schema: Schema, path: str, old: Any) -> Iterator[FieldError]:
    if schema.has_bounds and (error := bounds_of_map(fields, schema.source, path)) is not None:
        yield error
        return
    for key, value in fields.items():
        child = schema.properties.get(key) or schema.values
        if child is not None and (type(value) is not str or child.type != "string" or child.has_bounds):
            yield from check_values(value, child, f"{path}.{key}" if path else key, old_field(old, key))
    for key in schema.required:
        if key not in fields:
            yield required(f"{path}.{key}" if path else key)


def _logic(value: Any, schema: Schema, path: str, old: Any) -> Iterator[FieldError]:
    results = {word: [check_values(value, branch, path, old) for branch in branches] for word, branches in schema.logic.items()}
    if (results_of := results.get("anyOf")) and all(results_of) and not schema.is_int_or_string:
        yield invalid(_NOWHERE, "", f'"{path}" must validate at least one schema (anyOf)')
        yield from results_of[0]
    if (results_of := results.get("oneOf")) is not None:
        valid = sum(not errors for errors in results_of)
        found = "Found none valid" if not valid else f"Found {valid} valid alternatives"
        if valid != 1:
            yield invalid(_NOWHERE, "", f'"{path}" must validate one and only one schema (oneOf). {found}')
        if not valid and results_of:
            yield from results_of[0]
    if (results_of := results.get("allOf")) and any(results_of):
        for errors in results_of:
            yield from errors
        if not schema.is_int_or_string:
            none = ". None validated" if all(results_of) else ""
            yield invalid(_NOWHERE, "", f'"{path}" must validate all the schemas (allOf){none}')
    if (results_of := results.get("not")) is not None and not results_of[0]:
        yield invalid(_NOWHERE, "", f'"{path}" must not validate the schema (not)')
