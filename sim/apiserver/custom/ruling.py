"""Whether the entries of x-kubernetes-validations are sound: they compile, and say what the server accepts."""

# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false, reportUnknownMemberType=false
# JSON data is told apart by isinstance, which says nothing about what is inside.

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from api.fielderrors import ErrorKind, FieldError, invalid, not_supported, required
from sim.apiserver.objects import Object
from sim.apiserver.schema.cel.program import compiled, reads, yields
from sim.apiserver.schema.cel.syntax import CelSyntaxError
from sim.apiserver.schema.model import Schema
from sim.apiserver.schema.structural import compile_structural

__all__ = ("check_entries",)

_REASONS: Final = ("FieldValueDuplicate", "FieldValueForbidden", "FieldValueInvalid", "FieldValueRequired")


@dataclass(frozen=True)
class _Spoken(FieldError):
    """An error whose detail has lines, and whose value is shown as Go's JSON encoder writes it."""

    @property
    def body(self) -> str:
        shown = json.dumps(self.value, separators=(",", ":"), ensure_ascii=False)
        for char in "<>&":
            shown = shown.replace(char, f"\\u{ord(char):04x}")
        return f"{self.kind.value}: {shown}: {self.detail}"


def check_entries(node: Object, path: str) -> Iterator[FieldError]:
    """Errors of all rules in a schema that is structural."""
    entries: list[Object] = node.get("x-kubernetes-validations") or []
    if entries:
        schema = compile_structural(_ruleless(node))
        for index, entry in enumerate(entries):
            yield from _entry(entry, schema, f"{path}.x-kubernetes-validations[{index}]")
    for key, child in (node.get("properties") or {}).items():
        yield from check_entries(child, f"{path}.properties[{key}]")
    for word in ("items", "additionalProperties"):
        if isinstance(node.get(word), dict):
            yield from check_entries(node[word], f"{path}.{word}")


def _ruleless(node: Object) -> Object:
    """A copy of the schema without rules, which may be wrong."""
    out = {key: value for key, value in node.items() if key != "x-kubernetes-validations"}
    if "properties" in out:
        out["properties"] = {key: _ruleless(child) for key, child in out["properties"].items()}
    for word in ("items", "additionalProperties"):
        if isinstance(out.get(word), dict):
            out[word] = _ruleless(out[word])
    return out


def _entry(entry: Object, schema: Schema, path: str) -> Iterator[FieldError]:
    rule = str(entry.get("rule", ""))
    if not rule.strip():
        yield required(f"{path}.rule", "rule is not specified")
        return
    message = entry.get("message", "")
    if "\n" in message.strip() or "\r" in message.strip():
        yield invalid(f"{path}.message", message, "must not contain line breaks")
    if entry.get("reason") not in (None, *_REASONS):
        yield not_supported(f"{path}.reason", entry["reason"], _REASONS)
    if entry.get("fieldPath") and not _leads(entry["fieldPath"], schema):
        yield invalid(f"{path}.fieldPath", entry["fieldPath"], "must be a valid path")
    problem = _problem(rule, schema, entry)
    if problem:
        yield _Spoken(ErrorKind.INVALID, f"{path}.rule", _internal(entry), f"compilation failed: {problem}")
    elif yields(rule, schema) not in ("", "bool"):
        yield _Spoken(ErrorKind.INVALID, f"{path}.rule", _internal(entry), "cel expression must evaluate to a bool")
    elif entry.get("optionalOldSelf") and not reads(rule, "oldSelf"):
        yield invalid(f"{path}.optionalOldSelf", entry["optionalOldSelf"], "may not be set if oldSelf is not used in rule")
    yield from _expression(entry, schema, path)


def _expression(entry: Object, schema: Schema, path: str) -> Iterator[FieldError]:
    source = entry.get("messageExpression")
    if not source:
        return
    if problem := _problem(source, schema, entry):
        text = f"messageExpression compilation failed: {problem}"
        yield _Spoken(ErrorKind.INVALID, f"{path}.messageExpression", _internal(entry), text)
    elif yields(source, schema) not in ("", "string"):
        yield _Spoken(ErrorKind.INVALID, f"{path}.messageExpression", _internal(entry), "messageExpression must evaluate to a string")


def _problem(source: str, schema: Schema, entry: Object) -> str:
    try:
        compiled(source, schema, entry.get("optionalOldSelf", False))
    except CelSyntaxError as error:
        return str(error)
    return ""


def _leads(path: str, schema: Schema) -> bool:
    here: Schema | None = schema
    for key in path.replace("['", ".").replace("']", "").removeprefix(".").split("."):
        here = here.field(key) if here is not None else None
    return here is not None


def _internal(entry: Object) -> Object:
    """A rule as the server prints it: its internal form."""
    return {
        "Rule": entry.get("rule", ""),
        "Message": entry.get("message", ""),
        "MessageExpression": entry.get("messageExpression", ""),
        "Reason": entry.get("reason"),
        "FieldPath": entry.get("fieldPath", ""),
        "OptionalOldSelf": entry.get("optionalOldSelf"),
    }
