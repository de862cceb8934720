"""Validation rules of custom resources."""
# ruff: noqa: E501 - messages of the server stand whole, to be found by searching.

from typing import Any

import pytest
import yaml

from tests.contract import rows
from tests.contract.client import Api
from tests.contract.kinds import Kind
from tests.contract.rows import GONE, Step, case, fails, patch, post, run
from tests.contract.things import definition

RULES = yaml.safe_load("""
type: object
properties:
  plain: {type: integer, x-kubernetes-validations: [{rule: self > 2, message: must be above two}]}
  unnamed: {type: integer, x-kubernetes-validations: [{rule: self > 2}]}
  said: {type: integer, x-kubernetes-validations: [{rule: self > 2, messageExpression: "self > 0 ? 'got a positive one' : 'got another'"}]}
  said_badly: {type: integer, x-kubernetes-validations: [{rule: self > 2, message: plain words, messageExpression: "self > 100 ? 'x' : ['y'][self]"}]}
  reason: {type: integer, x-kubernetes-validations: [{rule: self > 2, message: refused, reason: FieldValueForbidden}]}
  twice: {type: integer, x-kubernetes-validations: [{rule: self > 2, message: two}, {rule: self > 3, message: three}]}
  pair:
    type: object
    x-kubernetes-validations: [{rule: "self.low <= self.high", message: low above high, fieldPath: .high, reason: FieldValueDuplicate}]
    required: [low, high]
    properties: {low: {type: integer}, high: {type: integer}}
  fixed: {type: string, x-kubernetes-validations: [{rule: self == oldSelf, message: fixed}]}
  grows: {type: integer, x-kubernetes-validations: [{rule: "!oldSelf.hasValue() || self >= oldSelf.value()", optionalOldSelf: true, message: shrinks}]}
  list: {type: array, maxItems: 5, items: {type: string, maxLength: 9}, x-kubernetes-validations: [{rule: "self.all(x, x.startsWith('a'))", message: not all}, {rule: "self.exists(x, x == 'a')", message: lacks a}]}
  items: {type: array, maxItems: 5, items: {type: integer, x-kubernetes-validations: [{rule: self % 2 == 0, message: odd}]}}
  map: {type: object, maxProperties: 5, additionalProperties: {type: integer, x-kubernetes-validations: [{rule: self > 0, message: not positive}]}}
  named:
    type: array
    maxItems: 5
    x-kubernetes-list-type: map
    x-kubernetes-list-map-keys: [name]
    items: {type: object, required: [name], properties: {name: {type: string, maxLength: 9}, value: {type: integer, x-kubernetes-validations: [{rule: self >= oldSelf, message: lower}]}}}
  set: {type: array, maxItems: 5, x-kubernetes-list-type: set, items: {type: string, maxLength: 9}, x-kubernetes-validations: [{rule: "self == ['a', 'b']", message: not a and b}]}
  either: {x-kubernetes-int-or-string: true, maxLength: 9, x-kubernetes-validations: [{rule: "type(self) == int ? self > 0 : self.matches('^[0-9]+%$')", message: neither}]}
  has: {type: object, properties: {a: {type: string}, b: {type: string}}, x-kubernetes-validations: [{rule: has(self.a) != has(self.b), message: one of a and b}]}
  when: {type: string, format: date-time, x-kubernetes-validations: [{rule: "self > timestamp('2024-01-01T00:00:00Z')", message: too early}]}
  lasts: {type: string, format: duration, x-kubernetes-validations: [{rule: "self < duration('1h')", message: too long}]}
  quantity: {type: string, maxLength: 9, x-kubernetes-validations: [{rule: "isQuantity(self) && quantity(self).isGreaterThan(quantity('1Gi'))", message: too small}]}
  size: {type: string, maxLength: 20, x-kubernetes-validations: [{rule: "self.size() == 3 && self.lowerAscii() == self", message: not three}]}
  fails: {type: integer, x-kubernetes-validations: [{rule: 10 / self > 1, message: refused}]}
  url: {type: string, maxLength: 90, x-kubernetes-validations: [{rule: "isURL(self) && url(self).getScheme() == 'https'", message: not secure}]}
  split: {type: string, maxLength: 90, x-kubernetes-validations: [{rule: "self.split('-').size() == 2 && self.split('-')[0] == 'a'", message: no pair}]}
  cross: {type: integer, minimum: 5, x-kubernetes-validations: [{rule: self < 3, message: both}]}
  dash-ed: {type: integer}
x-kubernetes-validations:
- {rule: "!has(self.dash__dash__ed) || self.dash__dash__ed > 1", message: dashed}
- {rule: "!has(self.fixed) || self.fixed != 'bad'", message: bad}
""")
KIND = Kind("contract.example.com/v1", "rules", "Rule")
rows.RESOURCES["rules"] = KIND
rows.CUSTOM["rules"] = definition("rules", "Rule", RULES)


def refused(name: str, spec: str, expected: Any) -> Any:
    return case(name, post("rules/r", f"{{spec: {spec}}}", expected))


def accepted(name: str, spec: str) -> Any:
    return case(name, post("rules/r", f"{{spec: {spec}}}", {"spec": yaml.safe_load(spec)}))


def changed(name: str, old: str, new: str, expected: Any) -> Any:
    return case(name, post("rules/r", f"{{spec: {old}}}"), patch("merge", "rules/r", f"{{spec: {new}}}", expected))


CASES = [
    refused(
        "message",
        "{plain: 1}",
        fails(
            422,
            "Invalid",
            'Rule.contract.example.com "r" is invalid: spec.plain: Invalid value: 1: must be above two',
            causes=[("spec.plain", "FieldValueInvalid")],
            details={
                "name": "r",
                "group": "contract.example.com",
                "kind": "Rule",
                "causes": [{"reason": "FieldValueInvalid", "message": "Invalid value: 1: must be above two", "field": "spec.plain"}],
            },
        ),
    ),
    refused(
        "no_message",
        "{unnamed: 1}",
        fails(422, "Invalid", 'Rule.contract.example.com "r" is invalid: spec.unnamed: Invalid value: 1: failed rule: self > 2'),
    ),
    refused(
        "message_expression",
        "{said: 1}",
        fails(422, "Invalid", 'Rule.contract.example.com "r" is invalid: spec.said: Invalid value: 1: got a positive one'),
    ),
    refused(
        "message_expression_fails",
        "{said_badly: 1}",
        fails(422, "Invalid", 'Rule.contract.example.com "r" is invalid: spec.said_badly: Invalid value: 1: plain words'),
    ),
    refused(
        "reason",
        "{reason: 1}",
        fails(
            422,
            "Invalid",
            'Rule.contract.example.com "r" is invalid: spec.reason: Forbidden: refused',
            causes=[("spec.reason", "FieldValueForbidden")],
        ),
    ),
    refused(
        "two_rules",
        "{twice: 1}",
        fails(
            422,
            "Invalid",
            'Rule.contract.example.com "r" is invalid: [spec.twice: Invalid value: 1: two, spec.twice: Invalid value: 1: three]',
            causes=[("spec.twice", "FieldValueInvalid"), ("spec.twice", "FieldValueInvalid")],
        ),
    ),
    refused(
        "field_path_and_reason",
        "{pair: {low: 3, high: 2}}",
        fails(
            422,
            "Invalid",
            'Rule.contract.example.com "r" is invalid: spec.pair.high: Duplicate value',
            causes=[("spec.pair.high", "FieldValueDuplicate")],
        ),
    ),
    refused(
        "list",
        "{list: [b]}",
        fails(
            422,
            "Invalid",
            'Rule.contract.example.com "r" is invalid: [spec.list: Invalid value: not all, spec.list: Invalid value: lacks a]',
        ),
    ),
    refused(
        "items",
        "{items: [2, 3, 5]}",
        fails(
            422,
            "Invalid",
            'Rule.contract.example.com "r" is invalid: [spec.items[1]: Invalid value: 3: odd, spec.items[2]: Invalid value: 5: odd]',
            causes=[("spec.items[1]", "FieldValueInvalid"), ("spec.items[2]", "FieldValueInvalid")],
        ),
    ),
    refused(
        "map",
        "{map: {a: 1, b: 0}}",
        fails(
            422,
            "Invalid",
            'Rule.contract.example.com "r" is invalid: spec.map[b]: Invalid value: 0: not positive',
            causes=[("spec.map[b]", "FieldValueInvalid")],
        ),
    ),
    refused(
        "set_order_is_no_matter",
        "{set: [b]}",
        fails(422, "Invalid", 'Rule.contract.example.com "r" is invalid: spec.set: Invalid value: not a and b'),
    ),
    refused(
        "int_or_string_int",
        "{either: 0}",
        fails(422, "Invalid", 'Rule.contract.example.com "r" is invalid: spec.either: Invalid value: 0: neither'),
    ),
    refused(
        "int_or_string_string",
        "{either: x}",
        fails(422, "Invalid", 'Rule.contract.example.com "r" is invalid: spec.either: Invalid value: "x": neither'),
    ),
    refused("has", "{has: {}}", fails(422, "Invalid", 'Rule.contract.example.com "r" is invalid: spec.has: Invalid value: one of a and b')),
    refused(
        "timestamp",
        "{when: '2023-01-01T00:00:00Z'}",
        fails(422, "Invalid", 'Rule.contract.example.com "r" is invalid: spec.when: Invalid value: "2023-01-01T00:00:00Z": too early'),
    ),
    refused(
        "duration",
        "{lasts: 2h}",
        fails(422, "Invalid", 'Rule.contract.example.com "r" is invalid: spec.lasts: Invalid value: "2h": too long'),
    ),
    refused(
        "duration_format",
        "{lasts: x}",
        fails(
            422,
            "Invalid",
            'Rule.contract.example.com "r" is invalid: [spec.lasts: Invalid value: "x": spec.lasts in body must be of type duration: "x", <nil>: Invalid value: null: some validation rules were not checked because the object was invalid; correct the existing errors to complete validation]',
        ),
    ),
    refused(
        "quantity",
        "{quantity: 1Mi}",
        fails(422, "Invalid", 'Rule.contract.example.com "r" is invalid: spec.quantity: Invalid value: "1Mi": too small'),
    ),
    refused(
        "quantity_bad",
        "{quantity: x}",
        fails(422, "Invalid", 'Rule.contract.example.com "r" is invalid: spec.quantity: Invalid value: "x": too small'),
    ),
    refused(
        "strings",
        "{size: ABC}",
        fails(422, "Invalid", 'Rule.contract.example.com "r" is invalid: spec.size: Invalid value: "ABC": not three'),
    ),
    refused(
        "runtime_error",
        "{fails: 0}",
        fails(
            422,
            "Invalid",
            'Rule.contract.example.com "r" is invalid: spec.fails: Invalid value: "integer": division by zero evaluating rule: refused',
        ),
    ),
    refused(
        "url",
        "{url: 'http://x'}",
        fails(422, "Invalid", 'Rule.contract.example.com "r" is invalid: spec.url: Invalid value: "http://x": not secure'),
    ),
    refused(
        "split", "{split: a}", fails(422, "Invalid", 'Rule.contract.example.com "r" is invalid: spec.split: Invalid value: "a": no pair')
    ),
    refused(
        "schema_fails_first",
        "{cross: 4}",
        fails(
            422,
            "Invalid",
            'Rule.contract.example.com "r" is invalid: [spec.cross: Invalid value: 4: spec.cross in body should be greater than or equal to 5, spec.cross: Invalid value: 4: both]',
        ),
    ),
    refused("root_rule", "{fixed: bad}", fails(422, "Invalid", 'Rule.contract.example.com "r" is invalid: spec: Invalid value: bad')),
    refused("escaped_name", "{dash-ed: 1}", fails(422, "Invalid", 'Rule.contract.example.com "r" is invalid: spec: Invalid value: dashed')),
    refused(
        "type_fails_first",
        "{plain: x}",
        fails(
            422,
            "Invalid",
            'Rule.contract.example.com "r" is invalid: [spec.plain: Invalid value: "string": spec.plain in body must be of type integer: "string", <nil>: Invalid value: null: some validation rules were not checked because the object was invalid; correct the existing errors to complete validation]',
        ),
    ),
    accepted(
        "all_fits",
        "{plain: 3, unnamed: 3, said: 3, pair: {low: 1, high: 1}, list: [a, ab], items: [2], map: {a: 1}, set: [b, a], either: 5%, has: {a: x}, size: abc, quantity: 2Gi, url: 'https://x', split: a-b, lasts: 59m, dash-ed: 2}",
    ),
    changed(
        "transition",
        "{fixed: a}",
        "{fixed: b}",
        fails(
            422,
            "Invalid",
            'Rule.contract.example.com "r" is invalid: spec.fixed: Invalid value: "b": fixed',
            causes=[("spec.fixed", "FieldValueInvalid")],
        ),
    ),
    changed("transition_same", "{fixed: a}", "{fixed: a, plain: 3}", {"spec.plain": 3}),
    changed("transition_set_later", "{}", "{fixed: a}", {"spec.fixed": "a"}),
    changed("transition_removed", "{fixed: a}", "{fixed: null}", {"spec.fixed": GONE}),
    changed(
        "optional_old",
        "{grows: 5}",
        "{grows: 4}",
        fails(422, "Invalid", 'Rule.contract.example.com "r" is invalid: spec.grows: Invalid value: 4: shrinks'),
    ),
    changed("optional_old_grows", "{grows: 5}", "{grows: 6}", {"spec.grows": 6}),
    changed(
        "correlated_items",
        "{named: [{name: a, value: 1}, {name: b, value: 5}]}",
        "{named: [{name: b, value: 4}, {name: a, value: 2}]}",
        {
            "@": 422,
            "reason": "Invalid",
            "message": 'Rule.contract.example.com "r" is invalid: spec.named[0].value: Invalid value: 4: lower',
        },
    ),
    changed(
        "new_item_has_no_old", "{named: [{name: a, value: 1}]}", "{named: [{name: b, value: 0}, {name: a, value: 1}]}", {"spec.named.#": 2}
    ),
    case(
        "deleting_allowed",
        post("rules/r", "{metadata: {finalizers: [x/a]}, spec: {plain: 3}}"),
        patch("merge", "rules/r", "{metadata: {finalizers: null}}", {"metadata.finalizers": GONE}),
    ),
]


@pytest.mark.parametrize("steps", CASES)
async def test_a_validation_rule(api: Api, steps: tuple[Step, ...]) -> None:
    await run(api, steps)
