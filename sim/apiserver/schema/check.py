"""Everything that is asked of an object and its schema, under one name."""

from typing import Any, Final

from api.fielderrors import ErrorKind, FieldError, invalid
from sim.apiserver.objects import Object
from sim.apiserver.schema.decode import decode_any, decode_json, decode_yaml
from sim.apiserver.schema.embedded import check_embedded, embedded_problem
from sim.apiserver.schema.fields import drop_nulls, fill_defaults, prune, strict_text, unknown_fields
from sim.apiserver.schema.gotypes import built_in_problem, meta_problem
from sim.apiserver.schema.lists import check_lists
from sim.apiserver.schema.model import ABSENT, Schema
from sim.apiserver.schema.rules import check_rules
from sim.apiserver.schema.values import check_values

__all__ = ("decode_any", "decode_json", "decode_problem", "decode_yaml", "drop_nulls", "embedded_problem", "fill_defaults", "prune",
           "strict_text", "type_errors", "unknown_fields", "validate", "validate_status")  # fmt: skip

_BLOCKING: Final = frozenset({ErrorKind.REQUIRED, ErrorKind.TOO_LONG, ErrorKind.TOO_MANY, ErrorKind.TYPE_INVALID, ErrorKind.NOT_SUPPORTED})
_SKIPPED: Final = (
    "some validation rules were not checked because the object was invalid; correct the existing errors to complete validation"
)


def decode_problem(obj: Object, schema: Schema, kind: str) -> str:
    """The bare complaint of Go's decoder about an object, or ""."""
    if not schema.name:
        return meta_problem(obj.get("metadata")) or embedded_problem(obj, schema)
    return built_in_problem(obj, schema, kind)


def type_errors(obj: Object, schema: Schema, kind: str, api_version: str) -> str:
    """Why the object cannot be decoded into its type: the text of a 400, or "". Of custom resources only metadata has a type, and
    embedded objects have."""
    problem = decode_problem(obj, schema, kind)
    return f'{kind} in version "{api_version.rpartition("/")[2]}" cannot be handled as a {kind}: {problem}' if problem else ""


def validate(obj: Object, schema: Schema, old: Any = ABSENT) -> list[FieldError]:
    """Errors of a custom resource against its schema: values, embedded objects, duplicates in lists, rules. `old`: what it replaces.

    `metadata` is not looked at. Total: never raises, whatever the object.
    """
    errors = check_values(obj, schema, "", old)
    errors += check_embedded(obj, schema)
    return _with_rules(errors, obj, schema, old)


def validate_status(obj: Object, schema: Schema, old: Any = ABSENT) -> list[FieldError]:
    """The same for a write of status, of which only the values of status are looked at; texts name fields as seen from there."""
    below, errors = schema.properties.get("status"), list[FieldError]()
    if below is not None and "status" in obj:
        before = ABSENT if old is ABSENT else old.get("status", ABSENT)
        for error in check_values(obj["status"], below, "", before):
            place = "status" if error.path in ("", "<nil>") else f"status.{error.path}"
            errors.append(FieldError(error.kind, place, error.value, error.detail))
    return _with_rules(errors, obj, schema, old)


def _with_rules(errors: list[FieldError], obj: Object, schema: Schema, old: Any) -> list[FieldError]:
    """Adds duplicates in lists, which may stay where they were, and what rules say where nothing worse is wrong."""
    doubled = list(check_lists(obj, schema))
    if doubled and (old is ABSENT or not any(True for _ in check_lists(old, schema))):
        errors += doubled
    if schema.has_rules:
        if any(e.kind in _BLOCKING for e in errors):
            errors.append(invalid("<nil>", None, _SKIPPED))
        else:
            errors += check_rules(obj, schema, "", old)
    return errors
