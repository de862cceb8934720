"""Whether the entries of x-kubernetes-validations are sound: they compile, and say what the server accepts."""

# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false, reportUnknownMemberType=false
# JSON data is told apart by isinstance, which says nothing about what is inside.

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from api.fielderrors import ErrorKind, FieldError, forbidden, invalid, not_supported, required
from sim.apiserver.objects import Object
from sim.apiserver.schema.cel.costs import max_count, worst_cost
from sim.apiserver.schema.cel.program import compiled, reads, yields
from sim.apiserver.schema.cel.syntax import CelSyntaxError
from sim.apiserver.schema.model import ANY, Schema
from sim.apiserver.schema.structural import compile_structural

__all__ = ("check_entries",)

_MAX_COST: Final = 10_000_000
_MAX_TOTAL: Final = 100_000_000
_NAMED: Final = 4
"""How many of the dearest rules are named where all together are too dear."""
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


@dataclass(frozen=True, slots=True)
class _Place:
    """Where rules stand. `count`: how many values of the node an object can have, None without bound; `uncorrelated`: the list whose
    items have no identity, so that nobody knows what they were before; "" where there is none."""

    count: int | None = 1
    uncorrelated: str = ""

    def below(self, node: Object, path: str) -> "_Place":
        """Of the items of a list or the values of a map."""
        is_list = node.get("type") == "array"
        most: int | None = node.get("maxItems" if is_list else "maxProperties")
        count = None if most is None or self.count is None else most * self.count
        is_lost = is_list and node.get("x-kubernetes-list-type") != "map"
        return _Place(count, self.uncorrelated or (path if is_lost else ""))


def check_entries(root: Object, path: str) -> Iterator[FieldError]:
    """Errors of all rules in a schema that is structural."""
    costs: list[tuple[str, int]] = []
    yield from _entries(root, path, _Place(), costs)
    total = sum(cost for _, cost in costs)
    if total > _MAX_TOTAL:
        for where, _ in sorted(costs, key=lambda known: -known[1])[:_NAMED]:
            yield forbidden(where, "contributed to estimated rule cost total exceeding cost limit for entire OpenAPIv3 schema")
        what = "x-kubernetes-validations estimated rule cost total for entire OpenAPIv3 schema"
        yield forbidden(path, _too_dear(what, total, _MAX_TOTAL))


def _entries(node: Object, path: str, place: _Place, costs: list[tuple[str, int]]) -> Iterator[FieldError]:
    entries: list[Object] = node.get("x-kubernetes-validations") or []
    schema = compile_structural(_ruleless(node)) if entries else ANY
    for index, entry in enumerate(entries):
        where = f"{path}.x-kubernetes-validations[{index}]"
        problems = list(_entry(entry, schema, where))
        if not any(error.path == f"{where}.rule" for error in problems):
            yield from _sound(entry["rule"], schema, f"{where}.rule", place, costs)
        yield from problems
    for key, child in (node.get("properties") or {}).items():
        yield from _entries(child, f"{path}.properties[{key}]", place, costs)
    for word in ("items", "additionalProperties"):
        if isinstance(node.get(word), dict):
            yield from _entries(node[word], f"{path}.{word}", place.below(node, path), costs)


def _sound(rule: str, schema: Schema, path: str, place: _Place, costs: list[tuple[str, int]]) -> Iterator[FieldError]:
    """What is wrong with a rule that compiles: it costs too much, or compares with a past that nobody knows."""
    cost = worst_cost(rule, schema) * (max_count(schema) if place.count is None else place.count)
    costs.append((path, cost))
    if cost > _MAX_COST:
        yield forbidden(path, _too_dear("estimated rule cost", cost, _MAX_COST))
    if place.uncorrelated and reads(rule, "oldSelf"):
        yield invalid(path, rule, f"oldSelf cannot be used on the uncorrelatable portion of the schema within {place.uncorrelated}")


def _too_dear(what: str, cost: int, limit: int) -> str:
    factor = cost / limit
    shown = "more than 100x" if factor > 100 else f"{factor:f}x" if factor < 1.5 else f"{factor:.1f}x"
    advice = "try simplifying the rule, or adding maxItems, maxProperties, and maxLength where arrays, maps, and strings are declared"
    return f"{what} exceeds budget by factor of {shown} ({advice})"


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
