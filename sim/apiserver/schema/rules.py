"""x-kubernetes-validations: compiled with the schema, evaluated over objects."""

# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false, reportUnknownMemberType=false
# JSON data is told apart by isinstance, which says nothing about what is inside.

from collections.abc import Iterator
from typing import Any, Final

from api.fielderrors import OMITTED, ErrorKind, FieldError
from sim.apiserver.objects import Object
from sim.apiserver.schema.cel.library import FUNCTIONS
from sim.apiserver.schema.cel.program import compiled, reads
from sim.apiserver.schema.cel.values import NO_VALUE, CelError, MapList, Optional, SetList
from sim.apiserver.schema.correlation import list_key, old_field, old_items
from sim.apiserver.schema.model import ABSENT, Rule, Schema

__all__ = ("CAST_FORMATS", "check_rules", "compile_rules")


def _date(text: Any) -> Any:
    return FUNCTIONS["timestamp"](f"{text}T00:00:00Z")


CAST_FORMATS: Final = {"date-time": FUNCTIONS["timestamp"], "date": _date, "duration": FUNCTIONS["duration"], "byte": FUNCTIONS["bytes"]}
_KINDS: Final = {
    "FieldValueInvalid": ErrorKind.INVALID,
    "FieldValueForbidden": ErrorKind.FORBIDDEN,
    "FieldValueRequired": ErrorKind.REQUIRED,
    "FieldValueDuplicate": ErrorKind.DUPLICATE,
}
_SHOWN: Final = (str, int, float, bool)


def compile_rules(schema: Schema) -> tuple[Rule, ...]:
    """The rules of one node. Raises CelSyntaxError."""
    return tuple(_rule(entry, schema) for entry in schema.source.get("x-kubernetes-validations", ()))


def _rule(entry: Object, schema: Schema) -> Rule:
    source, optional = entry["rule"], entry.get("optionalOldSelf", False)
    message = entry.get("messageExpression", "")
    return Rule(
        rule=source,
        check=compiled(source, schema, optional),
        transition=reads(source, "oldSelf"),
        optional_old_self=optional,
        message=entry.get("message", ""),
        message_of=compiled(message, schema, optional) if message else None,
        reason=entry.get("reason", "FieldValueInvalid"),
        field_path=entry.get("fieldPath", ""),
    )


def check_rules(value: Any, schema: Schema, path: str = "", old: Any = ABSENT) -> Iterator[FieldError]:
    """Rules that do not hold, of the node and of those below. `old`: the value before, correlated by keys; ABSENT where there is none."""
    if not schema.has_rules or value is None:
        return
    if schema.rules:
        yield from _broken(value, schema, path, old)
    if isinstance(value, dict):
        fields: Object = value
        for key, item in fields.items():
            child = schema.field(key)
            if child is not None and child.has_rules:
                where = f"{path}.{key}" if path else key
                if key not in schema.properties:
                    where = f"{path}[{key}]"
                yield from check_rules(item, child, where, old_field(old, key))
    elif isinstance(value, list) and schema.items is not None and schema.items.has_rules:
        items: list[Any] = value
        for index, (item, before) in enumerate(zip(items, old_items(items, old, schema), strict=True)):
            yield from check_rules(item, schema.items, f"{path}[{index}]", before)


def _broken(value: Any, schema: Schema, path: str, old: Any) -> Iterator[FieldError]:
    seen, before = _cast(value, schema), old if old is ABSENT else _cast(old, schema)
    is_unchanged = False if old is ABSENT else None
    for rule in schema.rules:
        if rule.transition and before is ABSENT and not rule.optional_old_self:
            continue
        past = before
        if rule.optional_old_self:
            past = NO_VALUE if before is ABSENT else Optional(True, before)
        error = _outcome(rule, value, seen, past, path, schema.type)
        if error is None:
            continue
        if is_unchanged is None:
            is_unchanged = bool(value == old)
        # What was stored before a rule came may stay.
        if rule.transition or not is_unchanged:
            yield error


def _outcome(rule: Rule, value: Any, seen: Any, past: Any, path: str, kind_name: str) -> FieldError | None:
    try:
        if rule.check(seen, past) is True:
            return None
    except CelError as error:
        text = rule.message.strip() or rule.rule.strip()
        return FieldError(ErrorKind.INVALID, path, kind_name, f"{error} evaluating rule: {text}")
    kind = _KINDS.get(rule.reason, ErrorKind.INVALID)
    text = _message(rule, seen, past)
    shown = value if isinstance(value, _SHOWN) and kind in (ErrorKind.INVALID, ErrorKind.DUPLICATE) else OMITTED
    where = path + (rule.field_path if path else rule.field_path.removeprefix("."))
    if kind is ErrorKind.DUPLICATE:
        return FieldError(kind, where, shown)
    return FieldError(kind, where, shown, text)


def _message(rule: Rule, seen: Any, past: Any) -> str:
    if rule.message_of is not None:
        try:
            text = rule.message_of(seen, past)
        except CelError:
            text = ""
        if type(text) is str and text.strip() and "\n" not in text:
            return text.strip()
    return rule.message.strip() or f"failed rule: {rule.rule.strip()}"


def _cast(value: Any, schema: Schema) -> Any:
    """The value as rules see it: numbers as doubles, dates as timestamps, lists that are sets or maps as such."""
    if not (schema.has_casts or schema.has_unique) or value is None:
        return value
    if isinstance(value, dict):
        fields: Object = value
        return {key: item if (child := schema.field(key)) is None else _cast(item, child) for key, item in fields.items()}
    if isinstance(value, list):
        items: list[Any] = value
        seen = [_cast(item, schema.items) for item in items] if schema.items is not None else items
        if schema.list_type == "atomic":
            return seen
        return SetList(seen) if schema.list_type == "set" else MapList(seen, lambda item: list_key(item, schema))
    if schema.type == "number" and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    cast = CAST_FORMATS.get(schema.format) if isinstance(value, str) else None
    if cast is None:
        return value
    try:
        return cast(value)
    except ValueError:
        return value
